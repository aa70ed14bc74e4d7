//! Faults that users of other servers met, and the rules of resumed runs, each with its events.

use std::sync::Arc;

use agui_adapter::{
    options::{AdapterOptions, Peer, SubagentEvents},
    outbound::{EndOutcome, RunSetup, StreamEnd},
    resume::decide,
};
use agui_protocol::{ResumeEntry, RunAgentInput};
use serde_json::{Value, json};

use super::support::{Converted, convert_run, input};

fn run_with(lines: &[Value], input: RunAgentInput, options: AdapterOptions) -> Converted {
    let peer = if input.protocol_version.is_some() { Peer::Current } else { Peer::Legacy };
    run_setup(lines, RunSetup::new(Arc::new(input), peer), options)
}

fn run_setup(lines: &[Value], setup: RunSetup, options: AdapterOptions) -> Converted {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let run_input = (*setup.input).clone();
    let converted = convert_run(&lines, setup, options, StreamEnd::Completed);
    let mut found = converted.violations(&run_input);
    // A deferred ask leaves its call without a result although the run is a success.
    found.retain(|violation| violation.rule != "TOOL-15" || converted.end.deferred.is_empty());
    assert_eq!(found, [], "{}", converted.to_lines());
    converted
}

fn run(lines: &[Value]) -> Converted {
    run_with(lines, input("{}"), AdapterOptions::default())
}

fn started() -> Value {
    json!({"type":"RUN_STARTED","threadId":"t1","runId":"r1","protocolVersion":"1.0"})
}

fn success() -> Value {
    json!({"type":"RUN_FINISHED","threadId":"t1","runId":"r1","outcome":{"type":"success"}})
}

fn text(id: &str, deltas: &[&str]) -> Vec<Value> {
    let mut all = vec![json!({"type":"TEXT_MESSAGE_START","messageId":id,"role":"assistant"})];
    let content = |d: &&str| json!({"type":"TEXT_MESSAGE_CONTENT","messageId":id,"delta":d});
    all.extend(deltas.iter().map(content));
    all.push(json!({"type":"TEXT_MESSAGE_END","messageId":id}));
    all
}

fn call(id: &str, name: &str, parent: &str, args: &[&str]) -> Vec<Value> {
    let mut all = vec![json!({
        "type":"TOOL_CALL_START","toolCallId":id,"toolCallName":name,"parentMessageId":parent
    })];
    all.extend(args.iter().map(|d| json!({"type":"TOOL_CALL_ARGS","toolCallId":id,"delta":d})));
    all.push(json!({"type":"TOOL_CALL_END","toolCallId":id}));
    all
}

fn result(message: &str, id: &str, content: &str) -> Value {
    json!({
        "type":"TOOL_CALL_RESULT","messageId":message,"toolCallId":id,"content":content,"role":"tool"
    })
}

fn stream(parts: &[Vec<Value>]) -> Vec<Value> {
    parts.concat()
}

fn delta(reply: &str, block: &str, delta: &str) -> Value {
    json!({"type":"TEXT_BLOCK_DELTA","replyId":reply,"blockId":block,"delta":delta})
}

fn tool(id: &str, args: &[&str]) -> Vec<Value> {
    let start = json!({"type":"TOOL_CALL_START","replyId":"R1","toolCallId":id,"toolCallName":"f"});
    let mut all = vec![start];
    let args = args.iter().map(|d| json!({"type":"TOOL_CALL_DELTA","toolCallId":id,"delta":d}));
    all.extend(args);
    all.push(json!({"type":"TOOL_CALL_END","toolCallId":id}));
    all
}

fn answer(id: &str, deltas: &[&str], state: &str) -> Vec<Value> {
    let start =
        json!({"type":"TOOL_RESULT_START","replyId":"R1","toolCallId":id,"toolCallName":"f"});
    let mut all = vec![start];
    let text = |d: &&str| json!({"type":"TOOL_RESULT_TEXT_DELTA","toolCallId":id,"delta":d});
    all.extend(deltas.iter().map(text));
    all.push(json!({"type":"TOOL_RESULT_END","replyId":"R1","toolCallId":id,"state":state}));
    all
}

fn start() -> Value {
    json!({"type":"AGENT_START","replyId":"R1","name":"agent"})
}

fn end() -> Value {
    json!({"type":"AGENT_END","replyId":"R1"})
}

#[test]
fn a_stream_without_its_end_closes_what_is_open_and_fails() {
    let converted = run(&[start(), delta("R1", "B1", "half")]);
    let error = json!({
        "type":"RUN_ERROR","message":"The agent stopped before it had finished.",
        "code":"AGENT_ENDED_EARLY","timestamp":1_790_000_000_000_i64
    });
    assert_eq!(
        converted.values(),
        stream(&[vec![started()], text("id-1", &["half"]), vec![error]])
    );
}

#[test]
fn a_reached_limit_is_a_cancelled_run_and_an_error_to_old_clients() {
    let lines = [
        start(),
        json!({"type":"EXCEED_MAX_ITERS","replyId":"R1","maxIters":3,"currentIter":3}),
        delta("R1", "B1", "so far"),
        end(),
    ];
    let last = |converted: &Converted| converted.values().pop();
    let finished = json!({
        "type":"RUN_FINISHED","threadId":"t1","runId":"r1","outcome":{"type":"cancelled"},
        "metadata":{"agentscope.reason":"max_iterations","agentscope.maxIters":3}
    });
    assert_eq!(last(&run(&lines)), Some(finished));
    let legacy = run_with(&lines, input(r#"{"protocolVersion":null}"#), AdapterOptions::default());
    let error = json!({
        "type":"RUN_ERROR","message":"The run was cancelled.","code":"CANCELLED",
        "timestamp":1_790_000_000_000_i64,
        "metadata":{"agentscope.reason":"max_iterations","agentscope.maxIters":3}
    });
    assert_eq!(last(&legacy), Some(error));
}

#[test]
fn text_and_tools_in_turn_are_messages_of_their_own_and_calls_hang_on_the_text_before() {
    let lines = stream(&[
        vec![start(), delta("R1", "B1", "one ")],
        tool("c1", &["{}"]),
        answer("c1", &["A"], "success"),
        vec![delta("R1", "B1", "two ")],
        tool("c2", &["{}"]),
        answer("c2", &["B"], "success"),
        vec![delta("R1", "B1", "three"), end()],
    ]);
    let expected = stream(&[
        vec![started()],
        text("id-1", &["one "]),
        call("c1", "f", "id-1", &["{}"]),
        vec![result("id-2", "c1", "A")],
        text("id-3", &["two "]),
        call("c2", "f", "id-3", &["{}"]),
        vec![result("id-4", "c2", "B")],
        text("id-5", &["three"]),
        vec![success()],
    ]);
    assert_eq!(run(&lines).values(), expected);
}

#[test]
fn blocks_that_interleave_keep_their_text_apart() {
    let lines = [
        start(),
        delta("RA", "A", "a1"),
        delta("RB", "B", "b1"),
        delta("RA", "A", "a2"),
        delta("RB", "B", "b2"),
        end(),
    ];
    let open = |id: &str| json!({"type":"TEXT_MESSAGE_START","messageId":id,"role":"assistant"});
    let more = |id: &str, d: &str| json!({"type":"TEXT_MESSAGE_CONTENT","messageId":id,"delta":d});
    let close = |id: &str| json!({"type":"TEXT_MESSAGE_END","messageId":id});
    let expected = vec![
        started(),
        open("id-1"),
        more("id-1", "a1"),
        open("id-2"),
        more("id-2", "b1"),
        more("id-1", "a2"),
        more("id-2", "b2"),
        close("id-1"),
        close("id-2"),
        success(),
    ];
    assert_eq!(run(&lines).values(), expected);
}

#[test]
fn empty_blocks_show_nothing_and_white_space_is_kept() {
    let block = |kind: &str| json!({"type":kind,"replyId":"R1","blockId":"B1"});
    let empty =
        [start(), block("TEXT_BLOCK_START"), delta("R1", "B1", ""), block("TEXT_BLOCK_END"), end()];
    assert_eq!(run(&empty).values(), [started(), success()]);
    let spaces =
        [start(), delta("R1", "B1", " "), delta("R1", "B1", ""), delta("R1", "B1", "\n"), end()];
    let expected = stream(&[vec![started()], text("id-1", &[" ", "\n"]), vec![success()]]);
    assert_eq!(run(&spaces).values(), expected);
}

#[test]
fn a_call_that_is_announced_again_stays_one_call_with_its_arguments_once() {
    let lines = stream(&[
        vec![start()],
        tool("c1", &["{\"q\"", ":1}"]),
        vec![json!({"type":"TOOL_CALL_START","replyId":"R2","toolCallId":"c1","toolCallName":"f"})],
        answer("c1", &[], "success"),
        vec![end()],
    ]);
    let expected = stream(&[
        vec![started()],
        call("c1", "f", "id-1", &["{\"q\"", ":1}"]),
        vec![result("id-2", "c1", ""), success()],
    ]);
    assert_eq!(run(&lines).values(), expected);
    let options = AdapterOptions { emit_tool_call_args: false, ..AdapterOptions::default() };
    let expected = stream(&[
        vec![started()],
        call("c1", "f", "id-1", &[]),
        vec![result("id-2", "c1", ""), success()],
    ]);
    assert_eq!(run_with(&lines, input("{}"), options).values(), expected);
}

#[test]
fn a_call_id_that_the_thread_used_before_is_replaced_for_the_client() {
    let history = r#"{"messages":[
        {"id":"u1","role":"user","content":"hi"},
        {"id":"a1","role":"assistant","toolCalls":[
            {"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},
        {"id":"m1","role":"tool","toolCallId":"c1","content":"old"}]}"#;
    let lines =
        stream(&[vec![start()], tool("c1", &[]), answer("c1", &["new"], "success"), vec![end()]]);
    let expected = stream(&[
        vec![started()],
        call("id-1", "f", "id-2", &[]),
        vec![result("id-3", "id-1", "new"), success()],
    ]);
    let converted = run_with(&lines, input(history), AdapterOptions::default());
    assert_eq!(converted.values(), expected);
}

#[test]
fn thinking_leaves_only_when_it_is_enabled_and_never_through_raw() {
    let thought = json!({
        "type":"THINKING_BLOCK_DELTA","replyId":"R1","blockId":"T","delta":"SECRET-THOUGHT"
    });
    let odd = json!({"type":"NEW_KIND","parts":[{"type":"thinking","thinking":"SECRET-THOUGHT"}]});
    let lines = [start(), thought, odd, delta("R1", "B1", "x"), end()];
    let raw = |parts: Value| json!({"type":"RAW","event":{"type":"NEW_KIND","parts":parts}});
    let hidden = stream(&[vec![started(), raw(json!([]))], text("id-1", &["x"]), vec![success()]]);
    assert_eq!(run(&lines).values(), hidden);
    let options = AdapterOptions { enable_reasoning: true, ..AdapterOptions::default() };
    let shown = run_with(&lines, input("{}"), options).values();
    let reasoning: Vec<&Value> = shown.iter().skip(1).take(3).map(|event| &event["type"]).collect();
    assert_eq!(
        reasoning,
        ["REASONING_START", "REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT"]
    );
}

#[test]
fn state_is_changed_by_patches_that_apply_to_what_the_client_has() {
    let set = |value: Value| json!({"type":"CUSTOM","name":"agui.state","value":{"set":value}});
    let state = json!({"user/name": "n", "a~b": 1, "": 2, "steps": [1, 2, 3]});
    let mut next = state.clone();
    next["steps"] = json!([1, 2, 3, 4]);
    let with_state = input(&json!({ "state": state }).to_string());
    let lines = [start(), set(next.clone()), set(next), end()];
    let expected = vec![
        started(),
        json!({"type":"STATE_DELTA","delta":[{"op":"add","path":"/steps/3","value":4}]}),
        success(),
    ];
    assert_eq!(run_with(&lines, with_state, AdapterOptions::default()).values(), expected);
    let options = AdapterOptions { emit_state_events: false, ..AdapterOptions::default() };
    assert_eq!(run_with(&lines, input("{}"), options).values(), [started(), success()]);
}

fn ask(source: Option<&str>, ids: &[&str]) -> Value {
    let calls: Vec<Value> = ids
        .iter()
        .map(|id| json!({"type":"tool_use","id":id,"name":"f","input":{"p":1},"content":"{\"p\":1}"}))
        .collect();
    let mut ask = json!({"type":"REQUIRE_USER_CONFIRM","replyId":"R1","toolCalls":calls});
    if let Some(source) = source {
        ask["source"] = source.into();
    }
    ask
}

fn resumed(first: &Converted, entries: Value, lines: &[Value]) -> Converted {
    let entries: Vec<ResumeEntry> = serde_json::from_value(entries).expect("entries");
    let decisions = decide(&entries, &first.end.open).expect("decisions");
    let history = r#"{"messages":[
        {"id":"u1","role":"user","content":"hi"},
        {"id":"a1","role":"assistant","toolCalls":[
            {"id":"c1","type":"function","function":{"name":"f","arguments":"{\"p\":1}"}},
            {"id":"c2","type":"function","function":{"name":"f","arguments":"{\"p\":1}"}}]}]}"#;
    let mut setup = RunSetup::new(Arc::new(input(history)), Peer::Current);
    setup.answered = decisions;
    run_setup(lines, setup, AdapterOptions::default())
}

#[test]
fn a_denied_call_gets_one_answer_whether_the_agent_sends_one_or_not() {
    let first = run(&stream(&[vec![start()], tool("c1", &[]), vec![ask(None, &["c1"]), end()]]));
    assert_eq!(first.end.outcome, EndOutcome::Interrupted);
    let entries = json!([{"interruptId":"R1:c1","status":"resolved",
        "payload":{"approved":false,"reason":"too risky"}}]);
    let silent = [start(), delta("R2", "B", "ok"), end()];
    let mut denied = result("id-1", "c1", "Permission denied by user: too risky");
    denied["metadata"] = json!({"agentscope.state": "denied"});
    let expected = stream(&[vec![started(), denied], text("id-2", &["ok"]), vec![success()]]);
    assert_eq!(resumed(&first, entries.clone(), &silent).values(), expected);

    let own = stream(&[
        vec![start()],
        answer("c1", &["no"], "denied"),
        vec![delta("R2", "B", "ok"), end()],
    ]);
    let mut denied = result("id-1", "c1", "no");
    denied["metadata"] = json!({"agentscope.state": "denied"});
    let expected = stream(&[vec![started(), denied], text("id-2", &["ok"]), vec![success()]]);
    assert_eq!(resumed(&first, entries, &own).values(), expected);
}

#[test]
fn an_approved_call_is_answered_under_its_id_without_being_started_again() {
    let first = run(&stream(&[vec![start()], tool("c1", &[]), vec![ask(None, &["c1"]), end()]]));
    let entries = json!([{"interruptId":"R1:c1","status":"resolved","payload":{"approved":true}}]);
    let lines = stream(&[
        vec![start()],
        tool("c1", &["{}"]),
        answer("c1", &["done"], "success"),
        vec![end()],
    ]);
    let expected = vec![started(), result("id-1", "c1", "done"), success()];
    assert_eq!(resumed(&first, entries, &lines).values(), expected);
}

#[test]
fn the_result_of_an_external_call_comes_from_the_answer() {
    let external = json!({"type":"REQUIRE_EXTERNAL_EXECUTION","replyId":"R1","toolCalls":[
        {"type":"tool_use","id":"c1","name":"f","input":{}}]});
    let first = run(&stream(&[vec![start()], tool("c1", &[]), vec![external, end()]]));
    let interrupt = &first.end.open[0].interrupt;
    assert_eq!((interrupt.id.as_str(), interrupt.reason.as_str()), ("R1:c1", "tool_call"));
    let entries =
        json!([{"interruptId":"R1:c1","status":"resolved","payload":{"label":"printed"}}]);
    let expected = vec![started(), result("id-1", "c1", "{\"label\":\"printed\"}"), success()];
    assert_eq!(resumed(&first, entries, &[start(), end()]).values(), expected);
    let entries = json!([{"interruptId":"R1:c1","status":"cancelled"}]);
    let mut cancelled = result("id-1", "c1", "Interrupt cancelled by user");
    cancelled["metadata"] = json!({"agentscope.state": "interrupted"});
    let expected = vec![started(), cancelled, success()];
    assert_eq!(resumed(&first, entries, &[start(), end()]).values(), expected);
}

#[test]
fn a_call_of_the_clients_own_tool_stays_pending_and_asks_beside_it_are_deferred() {
    let tools = r#"{"tools":[{"name":"g","description":"d"}]}"#;
    let front =
        json!({"type":"TOOL_CALL_START","replyId":"R1","toolCallId":"c9","toolCallName":"g"});
    let wait = json!({"type":"REQUIRE_EXTERNAL_EXECUTION","replyId":"R1","toolCalls":[
        {"type":"tool_use","id":"c9","name":"g","input":{}}]});
    let lines =
        stream(&[vec![start(), front], tool("c1", &[]), vec![wait, ask(None, &["c1"]), end()]]);
    let converted = run_with(&lines, input(tools), AdapterOptions::default());
    let outcome = json!({"type":"success","pendingToolCallIds":["c9","c1"]});
    assert_eq!(converted.values().last().expect("an end")["outcome"], outcome);
    assert_eq!(converted.end.open, []);
    let deferred: Vec<&str> =
        converted.end.deferred.iter().map(|open| open.interrupt.id.as_str()).collect();
    assert_eq!(deferred, ["R1:c1"]);
}

#[test]
fn a_childs_ask_is_the_runs_interrupt_and_its_answer_goes_back_to_the_same_invocation() {
    let from = |mut event: Value| {
        event["source"] = "main/researcher".into();
        event
    };
    let child_start =
        || json!({"type":"AGENT_START","name":"researcher","source":"main/researcher"});
    let child_call =
        json!({"type":"TOOL_CALL_START","replyId":"RC","toolCallId":"c7","toolCallName":"f"});
    let lines = [
        start(),
        child_start(),
        from(child_call),
        ask(Some("main/researcher"), &["c7"]),
        json!({"type":"AGENT_END","source":"main/researcher"}),
        end(),
    ];
    let first = run(&lines);
    let values = first.values();
    assert_eq!(values[1]["type"], "SUBAGENT_STARTED");
    let suspended = json!({"type":"SUBAGENT_FINISHED","subagentRunId":"id-1",
        "outcome":{"type":"suspended","interruptIds":["R1:c7"]}});
    assert_eq!(values[values.len() - 2], suspended);
    assert_eq!(values[values.len() - 1]["outcome"]["interrupts"][0]["subagentRunId"], "id-1");
    let entries = json!([{"interruptId":"R1:c7","status":"resolved","payload":{"approved":true}}]);
    let second =
        [start(), child_start(), json!({"type":"AGENT_END","source":"main/researcher"}), end()];
    let expected = vec![
        started(),
        json!({"type":"SUBAGENT_STARTED","subagentRunId":"id-1","name":"researcher"}),
        json!({"type":"SUBAGENT_FINISHED","subagentRunId":"id-1"}),
        success(),
    ];
    assert_eq!(resumed(&first, entries, &second).values(), expected);
}

#[test]
fn two_children_of_one_agent_are_told_apart() {
    let child = |mut event: Value| {
        event["source"] = "main/a".into();
        event
    };
    let started_child = || child(json!({"type":"AGENT_START","name":"a"}));
    let model = |reply: &str| child(json!({"type":"MODEL_CALL_START","replyId":reply}));
    let lines = [
        start(),
        started_child(),
        started_child(),
        model("m1"),
        model("m2"),
        child(delta("m1", "text", "x")),
        child(delta("m2", "text", "y")),
        child(delta("m1", "text", "z")),
        end(),
    ];
    let said: Vec<(String, String)> = run(&lines)
        .values()
        .iter()
        .filter(|event| event["type"] == "TEXT_MESSAGE_CONTENT")
        .map(|event| (event["subagentRunId"].to_string(), event["delta"].to_string()))
        .collect();
    let pair = |id: &str, text: &str| (format!("\"{id}\""), format!("\"{text}\""));
    assert_eq!(said, [pair("id-1", "x"), pair("id-2", "y"), pair("id-1", "z")]);
}

#[test]
fn a_parents_text_has_no_character_of_a_child_in_any_mode() {
    let child = |text: &str| {
        json!({"type":"TEXT_BLOCK_DELTA","replyId":"RC","blockId":"text","delta":text,
            "source":"main/a"})
    };
    let lines = [
        start(),
        delta("R1", "text", "p1"),
        child("c1"),
        delta("R1", "text", "p2"),
        child("c2"),
        end(),
    ];
    for mode in [SubagentEvents::Attributed, SubagentEvents::Custom, SubagentEvents::Native] {
        let options = AdapterOptions { subagent_events: mode, ..AdapterOptions::default() };
        let parent: Vec<String> = run_with(&lines, input("{}"), options)
            .values()
            .iter()
            .filter(|event| event["type"] == "TEXT_MESSAGE_CONTENT")
            .filter(|event| event.get("subagentRunId").is_none())
            .map(|event| event["delta"].to_string())
            .collect();
        assert_eq!(parent, ["\"p1\"", "\"p2\""], "{mode:?}");
    }
}
