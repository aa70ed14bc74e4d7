"""An MCP server over stdio without any library, of the protocol before 2026-07-28.

Its argument says what is odd about it.
"""

import json
import os
import signal
import subprocess
import sys
import time

MODE = sys.argv[1] if len(sys.argv) > 1 else ""

tools = ["env", "die", "wait", "cancelled", "pid", "child", "meta", "grow"]
# Why calls were cancelled, and who wants to know.
reasons = []
curious = []


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def tool(name):
    return {"name": name, "inputSchema": {"type": "object"}}


def page(cursor):
    if MODE == "pages":
        number = int(cursor or "0")
        rest = {"nextCursor": str(number + 1)} if number < 2 else {}
        return {"tools": [tool(f"t{number}")], **rest}
    if MODE == "odd":
        bad = [
            {"name": "text", "inputSchema": "none"},
            {"name": "list", "inputSchema": {"type": "array"}},
            {"inputSchema": {"type": "object"}},
        ]
        return {"tools": [tool("good"), *bad, tool("good"), tool("also good")]}
    return {"tools": [tool(name) for name in tools]}


def answer(ident, text):
    send({"id": ident, "result": {"content": [{"type": "text", "text": text}]}})


def call(ident, params):
    name, meta = params["name"], params["_meta"]
    if name == "env":
        answer(ident, json.dumps(dict(sorted(os.environ.items()))))
    elif name == "die":
        sys.exit(3)
    elif name == "wait":
        progress = {"progressToken": meta["progressToken"], "progress": 1, "message": "waiting"}
        send({"method": "notifications/progress", "params": progress})
    elif name == "cancelled":
        curious.append(ident)
        tell()
    elif name == "pid":
        answer(ident, str(os.getpid()))
    elif name == "child":
        answer(ident, str(subprocess.Popen(["sleep", "1000"]).pid))
    elif name == "meta":
        own = {key: value for key, value in meta.items() if key != "progressToken"}
        answer(ident, json.dumps(own, sort_keys=True))
    elif name == "grow":
        tools.append("grown")
        send({"method": "notifications/tools/list_changed"})
        answer(ident, "grown")
    elif name == "grown":
        answer(ident, "tall")


def tell():
    if reasons:
        for ident in curious:
            answer(ident, json.dumps(reasons))
        curious.clear()


def receive(message):
    method, ident, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method == "notifications/cancelled":
        reasons.append(params.get("reason"))
        tell()
    elif method == "initialize":
        capabilities = {} if MODE == "no-tools" else {"tools": {"listChanged": True}}
        information = {"name": "raw", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": capabilities}
        send({"id": ident, "result": {**result, "serverInfo": information}})
    elif method == "tools/list":
        send({"id": ident, "result": page(params.get("cursor"))})
    elif method == "tools/call":
        call(ident, params)
    elif ident is not None:
        send({"id": ident, "error": {"code": -32601, "message": "no such method"}})


def main():
    print("raw is here", file=sys.stderr, flush=True)
    if MODE == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for line in sys.stdin:
        receive(json.loads(line))
    while MODE == "stubborn":
        time.sleep(1)


main()
