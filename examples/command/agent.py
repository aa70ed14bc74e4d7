"""An AgentScope 2 agent behind agentscope-agui: looks up the weather, asks before it sends mail and
has labels printed by somebody else. agentscope.yaml, beside it, says how to serve it."""
import asyncio, json, os, signal, sys

from agentscope.agent import Agent
from agentscope.credential import OpenAICredential
from agentscope.event import ConfirmResult, ExternalExecutionResultEvent, UserConfirmResultEvent
from agentscope.message import Msg, ToolCallState, ToolResultBlock
from agentscope.model import OpenAIChatModel
from agentscope.state import AgentState
from agentscope.tool import FunctionTool, Toolkit

NAME, NONE = "assistant", {"type": "object", "properties": {}}
KEY, URL = os.environ["OPENAI_API_KEY"], os.environ.get("OPENAI_BASE_URL")
MODEL = OpenAIChatModel(OpenAICredential(api_key=KEY, base_url=URL), os.environ["MODEL"])
OUT, sys.stdout = sys.stdout, sys.stderr  # stdout is for events; print() goes to the server's log

def get_weather(city: str) -> str:
    """Tells the weather of a city."""
    return f"Sunny, 21 degrees in {city}"

def send_mail(to: str, subject: str) -> str:
    """Sends a mail."""
    print("sending a mail")
    return f"Mail '{subject}' sent to {to}"

def external(name, description, parameters=None, **_):
    """A tool that somebody else runs: the front end, or whoever answers the interrupt."""
    tool = FunctionTool(lambda: None, name, description, parameters or NONE, is_read_only=True)
    tool.is_external_tool = True
    return tool

LABEL = external("print_label", "Prints a label.", {"type": "object", "properties": {"text": {}}})
TOOLS = [FunctionTool(get_weather, is_read_only=True), FunctionTool(send_mail), LABEL]

def answers(state, decided, results):
    """The events that continue a parked reply; none if one of its calls still has no answer."""
    confirms, outputs = [], []
    for call in state.get_awaiting_tool_calls(NAME):
        answer = decided.get(call.id)
        if call.id in results:  # of a front end's tool, or of an earlier run that failed later
            call.state = ToolCallState.SUBMITTED
            outputs.append(results[call.id])
        elif answer and answer["verdict"] == "result":
            how = "interrupted" if answer["cancelled"] else "success"
            text = answer["text"]
            outputs.append(ToolResultBlock(id=call.id, name=call.name, output=text, state=how))
        elif answer:  # approved with these arguments, or denied
            call = call.model_copy(update={"input": answer["arguments"]})
            yes, rules = answer["verdict"] == "approved", answer.get("rules")
            confirms.append(ConfirmResult(confirmed=yes, tool_call=call, rules=rules))
        else:
            return
    if confirms:
        yield UserConfirmResultEvent(reply_id=state.reply_id, confirm_results=confirms)
    if outputs:
        yield ExternalExecutionResultEvent(reply_id=state.reply_id, execution_results=outputs)

async def main(run):
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asyncio.current_task().cancel)
    history = [Msg.model_validate(message) for message in run["messages"]]
    results = {block.id: block for m in history for block in m.get_content_blocks("tool_result")}
    decided = {answer["toolCallId"]: answer for answer in run["resume"] if "toolCallId" in answer}
    state = AgentState.model_validate(run["parked"] or {})
    inputs = list(answers(state, decided, results))
    if not inputs:  # a fresh reply
        inputs, state = [None], AgentState(context=history)
    toolkit = Toolkit(tools=TOOLS + [external(**tool) for tool in run["input"]["tools"]])
    agent = Agent(NAME, "You are helpful.", MODEL, toolkit, state=state)
    for item in inputs:
        async for event in agent.reply_stream(item):
            print(event.model_dump_json(), file=OUT, flush=True)
            reason = decided.get(getattr(event, "tool_call_id", None), {}).get("reason")
            if event.type == "TOOL_RESULT_END" and reason:  # the model should know why
                agent.state.context[-1].content[-1].output += f" Reason: {reason}"
    if agent.state.has_awaiting_tool_calls(NAME):
        print(json.dumps({"@": "park", "state": agent.state.model_dump(mode="json")}), file=OUT)

asyncio.run(main(json.loads(sys.stdin.readline())))
