//! The record of a run, rule by rule. Every test states the whole record, one message a line.

use agui_adapter::{model::AgentEventType, truncate::TRUNCATED};
use agui_adapter::{
    options::SubagentEvents,
    outbound::{AgentEventConverter, ConvertError, StreamContext},
    transcript::MAX_RECORDED,
};

use super::*;
use crate::conversion::script::*;

/// `<id> <role> <content>`, then the rest as JSON.
fn line(message: &Message) -> String {
    let mut value = json!(message);
    let members = value.as_object_mut().expect("a message");
    let mut line = String::new();
    for member in ["id", "role", "toolCallId", "content"] {
        match members.shift_remove(member) {
            Some(Value::String(text)) => line = format!("{line} {text}"),
            Some(other) => line = format!("{line} {other}"),
            None => {}
        }
    }
    for call in
        members.shift_remove("toolCalls").iter().flat_map(|calls| calls.as_array()).flatten()
    {
        let function = &call["function"];
        line = format!(
            "{line} {}={}({})",
            call["id"].as_str().expect("an id"),
            function["name"].as_str().expect("a name"),
            function["arguments"].as_str().expect("arguments"),
        );
    }
    if !members.is_empty() {
        line = format!("{line} {value}");
    }
    line.trim_start().to_owned()
}

fn run(lines: &[String], options: AdapterOptions, input: &str) -> Playing {
    let mut run = Playing::new(support::input(input), options);
    for line in lines {
        run.feed(&read(line));
    }
    run.finish(StreamEnd::Completed);
    run
}

fn recorded(lines: &[String], options: AdapterOptions) -> Vec<String> {
    run(lines, options, "{}").adapter.transcript().messages().map(line).collect()
}

fn with(change: impl FnOnce(&mut AdapterOptions)) -> AdapterOptions {
    let mut options = AdapterOptions::default();
    change(&mut options);
    options
}

fn talk() -> Vec<String> {
    joined![
        start(),
        model_start(),
        think("hm"),
        think_end(),
        text("I "),
        text("look."),
        text_end(),
        call_start("c1", "find"),
        args("c1", "{\"a\":"),
        call_start("c2", "find"),
        args("c2", "{}"),
        args("c1", "1}"),
        call_end("c1"),
        call_end("c2"),
        model_end(),
        result("c2", "two"),
        result("c1", "one"),
        model_start(),
        text_of("R3", "text", "Done."),
        end(),
    ]
}

#[test]
fn a_run_is_recorded_as_a_client_has_it() {
    assert_eq!(
        recorded(&talk(), AdapterOptions::default()),
        [
            "id-1 assistant I look. c1=find({\"a\":1}) c2=find({})",
            "id-2 tool c2 two",
            "id-3 tool c1 one",
            "id-4 assistant Done.",
        ]
    );
}

#[test]
fn thinking_is_recorded_where_clients_see_it() {
    let thought = joined![
        start(),
        think("h"),
        think("m"),
        python("THINKING_BLOCK_END", json!({ "reply_id": "R1", "block_id": "thinking" })),
        text("So."),
        end(),
    ];
    let on = with(|options| options.enable_reasoning = true);
    assert_eq!(recorded(&thought, on), ["id-1 reasoning hm", "id-2 assistant So."]);
    assert_eq!(recorded(&thought, AdapterOptions::default()), ["id-1 assistant So."]);
}

#[test]
fn hidden_arguments_are_recorded_and_do_not_change_what_is_shown() {
    let hidden = with(|options| options.emit_tool_call_args = false);
    let lines = joined![
        start(),
        call("c1", "find", "{\"a\""),
        text("Well."),
        // Late, for a call that is closed.
        args("c1", ":1}"),
        text(" Now."),
        result("c1", "one"),
        end(),
    ];
    let run = run(&lines, hidden, "{}");
    let types: Vec<_> = run.events.iter().map(|event| event.event_type().as_str()).collect();
    assert_eq!(
        types,
        [
            "RUN_STARTED",
            "TOOL_CALL_START",
            "TOOL_CALL_END",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_CONTENT",
            "TOOL_CALL_RESULT",
            "TEXT_MESSAGE_END",
            "RUN_FINISHED",
        ]
    );
    let lines: Vec<_> = run.adapter.transcript().messages().map(line).collect();
    assert_eq!(
        lines,
        ["id-1 assistant c1=find({\"a\":1})", "id-3 tool c1 one", "id-2 assistant Well. Now."]
    );
}

#[test]
fn a_hidden_state_is_kept() {
    let hidden = with(|options| options.emit_state_events = false);
    let set = custom("agui.state", json!({ "set": { "n": 1 } }));
    let run = run(&joined![start(), set, end()], hidden, r#"{"state":{"m":0}}"#);
    assert_eq!(**run.adapter.state(), json!({ "n": 1 }));
    assert_eq!(run.adapter.shown_state(), None);
}

#[test]
fn the_state_of_a_run_that_changes_none_is_the_inputs() {
    let told = run(&joined![start(), end()], AdapterOptions::default(), r#"{"state":{"m":0}}"#);
    assert_eq!(**told.adapter.state(), json!({ "m": 0 }));
    assert_eq!(told.adapter.shown_state(), Some(told.adapter.state()));
    let none = run(&joined![start(), end()], AdapterOptions::default(), "{}");
    assert_eq!((&**none.adapter.state(), none.adapter.shown_state()), (&json!({}), None));
}

#[test]
fn a_result_says_how_it_went_and_may_be_of_parts() {
    let image = json!({ "type": "image", "source":
        { "type": "base64", "media_type": "image/png", "data": "AA==" } });
    let lines = joined![
        start(),
        call("c1", "find", "{}"),
        result_start("c1", "find"),
        result_text("c1", "no"),
        result_end("c1", "error"),
        call("c2", "draw", "{}"),
        result_start("c2", "draw"),
        result_data("c2", image),
        result_end("c2", "success"),
        end(),
    ];
    assert_eq!(
        recorded(&lines, AdapterOptions::default()),
        [
            "id-1 assistant c1=find({})",
            "id-2 tool c1 no {\"metadata\":{\"agentscope.state\":\"error\"}}",
            "id-3 assistant c2=draw({})",
            "id-4 tool c2 [{\"type\":\"image\",\"source\":{\"type\":\"data\",\"value\":\"AA==\",\"mimeType\":\"image/png\"}}]",
        ]
    );
}

#[test]
fn children_are_recorded_as_clients_see_them() {
    let child = joined![
        any("AGENT_START", json!({ "sessionId": "s", "name": "Researcher" })),
        text("found"),
        call("k1", "search", "{}"),
        result("k1", "hit"),
        any("AGENT_END", json!({})),
    ];
    let lines = joined![
        start(),
        call("c1", "spawn", "{}"),
        result_start("c1", "spawn"),
        from("main/researcher", child),
        nameless_result("c1", "ok"),
        end(),
    ];
    let owned = "{\"subagentRunId\":\"id-2\"}";
    let attributed = [
        "id-1 assistant c1=spawn({})".to_owned(),
        "id-5 tool c1 ok".to_owned(),
        format!("id-3 assistant found k1=search({{}}) {owned}"),
        format!("id-4 tool k1 hit {owned}"),
    ];
    for mode in [SubagentEvents::Attributed, SubagentEvents::Native] {
        assert_eq!(recorded(&lines, with(|options| options.subagent_events = mode)), attributed);
    }
    let custom = with(|options| options.subagent_events = SubagentEvents::Custom);
    assert_eq!(recorded(&lines, custom), ["id-1 assistant c1=spawn({})", "id-3 tool c1 ok"]);
}

#[test]
fn an_activity_is_one_message() {
    let activity = |member: &str, value: Value| {
        custom("agui.activity", json!({ "id": "p", "type": "PLAN", member: value }))
    };
    let lines = joined![
        start(),
        activity("content", json!({ "a": 1 })),
        text("Plan."),
        activity("content", json!({ "a": 2, "steps": [] })),
        activity("patch", json!([{ "op": "add", "path": "/steps/-", "value": "x" }])),
        activity("patch", json!([{ "op": "remove", "path": "/none" }])),
        end(),
    ];
    assert_eq!(
        recorded(&lines, AdapterOptions::default()),
        [
            "id-1 activity {\"a\":2,\"steps\":[\"x\"]} {\"activityType\":\"PLAN\"}",
            "id-2 assistant Plan.",
        ]
    );
}

#[test]
fn an_answer_to_an_earlier_call_goes_behind_it() {
    let input = r#"{"messages":[
        {"id":"u1","role":"user","content":"hi"},
        {"id":"a1","role":"assistant","toolCalls":[
            {"id":"c1","type":"function","function":{"name":"find","arguments":"{}"}},
            {"id":"c2","type":"function","function":{"name":"find","arguments":"{}"}}]},
        {"id":"t2","role":"tool","toolCallId":"c2","content":"two"},
        {"id":"u2","role":"user","content":"and?"}]}"#;
    let lines = joined![start(), text("So."), text_end(), result("c1", "one"), end()];
    let run = run(&lines, AdapterOptions::default(), input);
    let own: Vec<_> = run.adapter.transcript().messages().map(line).collect();
    assert_eq!(own, ["id-1 assistant So.", "id-2 tool c1 one"]);
    let thread: Vec<_> = run.thread().iter().map(line).collect();
    assert_eq!(
        thread,
        [
            "u1 user hi",
            "a1 assistant c1=find({}) c2=find({})",
            "t2 tool c2 two",
            "id-2 tool c1 one",
            "u2 user and?",
            "id-1 assistant So.",
        ]
    );
    assert_eq!(messages_json(&run.thread()), run.client().messages);
}

/// Sends what an agent's CUSTOM event holds as it is.
struct Verbatim;

impl AgentEventConverter for Verbatim {
    fn event_types(&self) -> &[AgentEventType] {
        &[AgentEventType::Custom]
    }

    fn convert(&self, event: &AgentEvent, context: &mut StreamContext) -> Result<(), ConvertError> {
        let agui_adapter::model::AgentEventKind::Custom { value, .. } = &event.kind else {
            return Ok(());
        };
        let events: Vec<Event> = serde_json::from_value(value.clone()).expect("events");
        events.into_iter().for_each(|event| context.emit(event));
        Ok(())
    }
}

#[test]
fn what_a_program_sends_under_ids_of_the_thread_goes_on_there() {
    let input = support::input(
        r#"{"messages":[
            {"id":"u1","role":"user","content":"hi"},
            {"id":"a1","role":"assistant","content":"One"},
            {"id":"p1","role":"activity","activityType":"P","content":{"n":1}}]}"#,
    );
    let events = json!([
        { "type": "TEXT_MESSAGE_START", "messageId": "a1", "role": "assistant" },
        { "type": "TEXT_MESSAGE_CONTENT", "messageId": "a1", "delta": " two" },
        { "type": "TEXT_MESSAGE_END", "messageId": "a1" },
        { "type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "f", "parentMessageId": "a1" },
        { "type": "TOOL_CALL_END", "toolCallId": "c1" },
        { "type": "TOOL_CALL_RESULT", "messageId": "t1", "toolCallId": "c1", "content": "x" },
        { "type": "ACTIVITY_SNAPSHOT", "messageId": "p1", "activityType": "Q", "content": {} },
        { "type": "TEXT_MESSAGE_START", "messageId": "n1", "role": "user", "name": "Bob", "metadata": { "k": 1 } },
        { "type": "TEXT_MESSAGE_END", "messageId": "n1", "metadata": { "l": 2 } },
    ]);
    let extensions = Extensions::default().converter(0, Arc::new(Verbatim));
    let setup = RunSetup::new(Arc::new(input), Peer::Current);
    let mut run = Playing::with(setup, AdapterOptions::default(), extensions);
    for line in joined![start(), custom("x", events), end()] {
        run.feed(&read(&line));
    }
    let thread: Vec<_> = run.thread().iter().map(line).collect();
    assert_eq!(
        thread,
        [
            "u1 user hi",
            "a1 assistant One two c1=f()",
            "t1 tool c1 x",
            "p1 activity {} {\"activityType\":\"Q\"}",
            "n1 user  {\"name\":\"Bob\",\"metadata\":{\"k\":1,\"l\":2}}",
        ]
    );
    assert_eq!(messages_json(&run.thread()), run.client().messages);
}

#[test]
fn the_record_can_be_taken_out() {
    let mut run = run(&talk(), AdapterOptions::default(), "{}");
    let record = run.adapter.take_transcript();
    assert_eq!(record.messages().count(), 4);
    assert!(run.adapter.transcript().is_empty());
}

const MIB: usize = 1024 * 1024;

#[test]
fn of_a_run_that_says_too_much_the_longest_texts_are_cut() {
    let mut run = Playing::new(support::input("{}"), AdapterOptions::default());
    let mut lines = joined![start(), text("short"), text_end()];
    lines.extend(joined![call("c1", "find", "{}"), result("c1", &"r".repeat(3 * MIB))]);
    lines.extend(call("c2", "find", &"a".repeat(4 * MIB)));
    lines.extend(result("c2", "two"));
    for line in lines {
        run.feed(&read(&line));
    }
    let more = text_of("R9", "text", &"é".repeat(MIB / 2));
    for _ in 0..20 {
        run.feed(&read(&more));
    }
    run.finish(StreamEnd::Completed);
    let messages: Vec<_> = run.adapter.transcript().messages().cloned().collect();
    let texts: Vec<usize> = messages.iter().map(|message| message.text_content().len()).collect();
    let arguments: Vec<usize> = messages
        .iter()
        .filter_map(|message| match message {
            Message::Assistant { tool_calls, .. } => Some(tool_calls),
            _ => None,
        })
        .flatten()
        .map(|call| call.function.arguments.len())
        .collect();
    // The result is shorter than what the two longest are cut to.
    let (spoken, argued) = (texts[4], arguments[1]);
    assert_eq!(texts, [5, 3 * MIB, 0, 3, spoken]);
    assert_eq!(arguments, [2, 4 * MIB]);
    assert!(spoken < 5 * MIB && spoken > 4 * MIB, "{spoken}");
    assert!(texts.iter().chain([&argued]).sum::<usize>() < MAX_RECORDED);
    let mark = |at: usize| messages[at].base().metadata.as_ref().map(|all| all[TRUNCATED].clone());
    assert_eq!(mark(1), None);
    assert_eq!(mark(4), Some(json!({ "originalBytes": 20 * MIB })));
}
