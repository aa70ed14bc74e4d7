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
tools += {"restless": ["lists"], "slow": ["hang", "elicit", "answered", "shout"]}.get(MODE, [])
# How often the list was asked for.
lists = 0
# The call in whose middle a question was asked, and the answer.
asking = None
answers = []
# Why calls were cancelled, and who wants to know.
reasons = []
curious = []


def send(*messages):
    lines = [json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages]
    sys.stdout.write("".join(lines))
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


def progress(meta, number, message):
    told = {"progressToken": meta["progressToken"], "progress": number, "message": message}
    return {"method": "notifications/progress", "params": told}


def answer(ident, text):
    send({"id": ident, "result": {"content": [{"type": "text", "text": text}]}})


def call(ident, params):
    global asking
    name, meta = params["name"], params["_meta"]
    if name == "env":
        answer(ident, json.dumps(dict(sorted(os.environ.items()))))
    elif name == "die":
        sys.exit(3)
    elif name == "wait":
        send(progress(meta, 1, "waiting"))
    elif name == "hang":
        time.sleep(1000)
    elif name == "lists":
        answer(ident, str(lists))
    elif name == "shout":
        send(progress(meta, 1, "x" * 100_000))
        answer(ident, "done")
    elif name == "elicit":
        asking = ident
        schema = {"type": "object", "properties": {}}
        question = {"message": "Really?", "requestedSchema": schema}
        question = {"id": "question", "method": "elicitation/create", "params": question}
        send(progress(meta, 1, "asking"), question)
    elif name == "answered":
        answer(ident, "yes" if answers else "no")
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
    global lists
    method, ident, params = message.get("method"), message.get("id"), message.get("params") or {}
    if ident == "question":
        answers.append(message["result"]["action"])
        answer(asking, answers[0])
        return
    if method == "notifications/cancelled":
        reasons.append(params.get("reason"))
        tell()
    elif method == "initialize":
        capabilities = {} if MODE == "no-tools" else {"tools": {"listChanged": True}}
        information = {"name": "raw", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": capabilities}
        send({"id": ident, "result": {**result, "serverInfo": information}})
    elif method == "tools/list":
        lists += 1
        send({"id": ident, "result": page(params.get("cursor"))})
        if MODE == "restless":
            send({"method": "notifications/tools/list_changed"})
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
