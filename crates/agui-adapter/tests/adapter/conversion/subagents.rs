//! Children.

use agui_adapter::options::{Peer, SubagentEvents};
use serde_json::{Value, json};

use super::{Run, SUCCESS, play, script::*};

pub const CHILD: &str = "main/researcher";

pub fn child_start(name: &str) -> String {
    any("AGENT_START", json!({ "sessionId": "s", "name": name }))
}

pub fn child_end() -> String {
    any("AGENT_END", json!({}))
}

pub fn mode(mode: SubagentEvents) -> Run {
    Run::with(|options| {
        options.subagent_events = mode;
        options.enable_reasoning = true;
    })
}

/// A call, a child that thinks, speaks and uses a tool, and the call's result.
fn delegation() -> Vec<String> {
    let child = joined![
        child_start("Researcher"),
        think("t"),
        think_end(),
        text("found"),
        text_end(),
        call("k1", "search", "{}"),
        result("k1", "hit"),
        child_end(),
    ];
    joined![
        start(),
        text("I ask."),
        call("c1", "agent_spawn", "{}"),
        result_start("c1", "agent_spawn"),
        from(CHILD, child),
        result_text("c1", "found"),
        result_end("c1", "success"),
        end(),
    ]
}

#[test]
fn a_child_is_announced_attributed_and_ended() {
    mode(SubagentEvents::Auto).play(&delegation()).gives(&[
        "TEXT id-1",
        "TEXT+ id-1 I ask.",
        "TEXT. id-1",
        "CALL c1 agent_spawn id-1",
        "CALL+ c1 {}",
        "CALL. c1",
        "SUBAGENT_STARTED @id-2 {\"name\":\"Researcher\",\"parentToolCallId\":\"c1\",\"parentMessageId\":\"id-1\"}",
        "SPAN id-3 @id-2",
        "THINK id-3 @id-2",
        "THINK+ id-3 t @id-2",
        "THINK. id-3 @id-2",
        "SPAN. id-3 @id-2",
        "TEXT id-4 @id-2",
        "TEXT+ id-4 found @id-2",
        "TEXT. id-4 @id-2",
        "CALL k1 search id-4 @id-2",
        "CALL+ k1 {} @id-2",
        "CALL. k1 @id-2",
        "RESULT id-5 k1 hit @id-2",
        "SUBAGENT_FINISHED @id-2",
        "RESULT id-6 c1 found",
        SUCCESS,
    ]);
}

#[test]
fn a_childs_thinking_is_nothing_by_default() {
    play(&delegation()).gives(&[
        "TEXT id-1",
        "TEXT+ id-1 I ask.",
        "TEXT. id-1",
        "CALL c1 agent_spawn id-1",
        "CALL+ c1 {}",
        "CALL. c1",
        "SUBAGENT_STARTED @id-2 {\"name\":\"Researcher\",\"parentToolCallId\":\"c1\",\"parentMessageId\":\"id-1\"}",
        "TEXT id-3 @id-2",
        "TEXT+ id-3 found @id-2",
        "TEXT. id-3 @id-2",
        "CALL k1 search id-3 @id-2",
        "CALL+ k1 {} @id-2",
        "CALL. k1 @id-2",
        "RESULT id-4 k1 hit @id-2",
        "SUBAGENT_FINISHED @id-2",
        "RESULT id-5 c1 found",
        SUCCESS,
    ]);
}

/// A child's event as CUSTOM; it has no id where the child itself is not there.
pub fn told((source, id): (&str, Option<&str>), kind: &str, members: Value) -> String {
    let mut value = json!({ "source": source, "type": members["type"] });
    if let Some(id) = id {
        value["subagentRunId"] = id.into();
    }
    for (key, member) in members.as_object().expect("object") {
        value[key] = member.clone();
    }
    format!("CUSTOM {}", json!({ "name": format!("subagent.{kind}"), "value": value }))
}

fn custom(kind: &str, members: Value) -> String {
    told((CHILD, Some("id-2")), kind, members)
}

#[test]
fn a_legacy_client_gets_a_child_as_custom_events() {
    let mut legacy = mode(SubagentEvents::Auto);
    legacy.peer = Peer::Legacy;
    let expected = [
        "TEXT id-1".to_owned(),
        "TEXT+ id-1 I ask.".to_owned(),
        "TEXT. id-1".to_owned(),
        "CALL c1 agent_spawn id-1".to_owned(),
        "CALL+ c1 {}".to_owned(),
        "CALL. c1".to_owned(),
        custom("lifecycle", json!({ "type": "AGENT_START", "name": "Researcher" })),
        custom("thinking", json!({ "type": "THINKING_BLOCK_DELTA", "delta": "t" })),
        custom("text", json!({ "type": "TEXT_BLOCK_DELTA", "delta": "found" })),
        custom(
            "tool_call",
            json!({ "type": "TOOL_CALL_START", "toolCallId": "k1", "toolName": "search" }),
        ),
        custom(
            "tool_call",
            json!({ "type": "TOOL_CALL_END", "toolCallId": "k1", "toolName": "search",
            "arguments": "{}" }),
        ),
        custom(
            "tool_result",
            json!({ "type": "TOOL_RESULT_END", "toolCallId": "k1",
            "toolName": "search", "state": "SUCCESS", "content": "hit" }),
        ),
        custom("lifecycle", json!({ "type": "AGENT_END", "name": "Researcher" })),
        "RESULT id-3 c1 found".to_owned(),
        "FINISHED".to_owned(),
    ];
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    legacy.play(&delegation()).gives(&expected);
}

#[test]
fn native_children_are_tagged_and_have_no_boundaries() {
    mode(SubagentEvents::Native).play(&delegation()).gives(&[
        "TEXT id-1",
        "TEXT+ id-1 I ask.",
        "TEXT. id-1",
        "CALL c1 agent_spawn id-1",
        "CALL+ c1 {}",
        "CALL. c1",
        "SPAN id-3 @id-2",
        "THINK id-3 @id-2",
        "THINK+ id-3 t @id-2",
        "THINK. id-3 @id-2",
        "SPAN. id-3 @id-2",
        "TEXT id-4 @id-2",
        "TEXT+ id-4 found @id-2",
        "TEXT. id-4 @id-2",
        "CALL k1 search id-4 @id-2",
        "CALL+ k1 {} @id-2",
        "CALL. k1 @id-2",
        "RESULT id-5 k1 hit @id-2",
        "RESULT id-6 c1 found",
        SUCCESS,
    ]);
}

#[test]
fn a_childs_text_never_mixes_with_its_parents() {
    let lines = joined![
        start(),
        text("p1"),
        from(CHILD, joined![child_start("R"), text("k1")]),
        text("p2"),
        from(CHILD, joined![text("k2"), child_end()]),
        text("p3"),
        end(),
    ];
    let texts = |tag: &str| {
        [
            "TEXT id-1".to_owned(),
            "TEXT+ id-1 p1".to_owned(),
            format!("TEXT id-3{tag}"),
            format!("TEXT+ id-3 k1{tag}"),
            "TEXT+ id-1 p2".to_owned(),
            format!("TEXT+ id-3 k2{tag}"),
            format!("TEXT. id-3{tag}"),
            "TEXT+ id-1 p3".to_owned(),
            "TEXT. id-1".to_owned(),
            SUCCESS.to_owned(),
        ]
    };
    let native = texts(" @id-2");
    let native: Vec<&str> = native.iter().map(String::as_str).collect();
    mode(SubagentEvents::Native).play(&lines).gives(&native);
    let mut attributed = native;
    attributed.insert(2, "SUBAGENT_STARTED @id-2 {\"name\":\"R\"}");
    attributed.insert(8, "SUBAGENT_FINISHED @id-2");
    mode(SubagentEvents::Attributed).play(&lines).gives(&attributed);
}

#[test]
fn parallel_children_do_not_close_each_others_text() {
    let (a, b) = ("main/a", "main/b");
    let lines = joined![
        start(),
        from(a, child_start("A")),
        from(b, child_start("B")),
        from(a, text("a1")),
        from(b, text("b1")),
        from(a, text("a2")),
        from(b, child_end()),
        from(a, text("a3")),
        from(a, child_end()),
        end(),
    ];
    play(&lines).gives(&[
        "SUBAGENT_STARTED @id-1 {\"name\":\"A\"}",
        "SUBAGENT_STARTED @id-2 {\"name\":\"B\"}",
        "TEXT id-3 @id-1",
        "TEXT+ id-3 a1 @id-1",
        "TEXT id-4 @id-2",
        "TEXT+ id-4 b1 @id-2",
        "TEXT+ id-3 a2 @id-1",
        "TEXT. id-4 @id-2",
        "SUBAGENT_FINISHED @id-2",
        "TEXT+ id-3 a3 @id-1",
        "TEXT. id-3 @id-1",
        "SUBAGENT_FINISHED @id-1",
        SUCCESS,
    ]);
}

/// Only their replies and calls tell them apart.
#[test]
fn two_invocations_of_one_agent_at_once_stay_apart() {
    let model = |kind: &str, reply: &str| any(kind, json!({ "replyId": reply }));
    let call_start = |reply: &str, call: &str| {
        let members = json!({ "replyId": reply, "toolCallId": call, "toolCallName": "find" });
        any("TOOL_CALL_START", members)
    };
    let child = joined![
        child_start("R"),
        model("MODEL_CALL_START", "RA"),
        text_of("RA", "text", "first"),
        child_start("R"),
        text_of("RA", "text", " still first"),
        model("MODEL_CALL_START", "RB"),
        text_of("RB", "text", "second"),
        call_start("RB", "c2"),
        call_start("RA", "c1"),
        args("c2", "2"),
        args("c1", "1"),
        model("MODEL_CALL_END", "RA"),
        model("MODEL_CALL_END", "RB"),
        result_text("c2", "two"),
        result_text("c1", "one"),
        result_end("c1", "success"),
        result_end("c2", "success"),
        child_end(),
        child_end(),
    ];
    play(&joined![start(), from(CHILD, child), end()]).gives(&[
        "SUBAGENT_STARTED @id-1 {\"name\":\"R\"}",
        "TEXT id-2 @id-1",
        "TEXT+ id-2 first @id-1",
        "SUBAGENT_STARTED @id-3 {\"name\":\"R\"}",
        "TEXT+ id-2  still first @id-1",
        "TEXT id-4 @id-3",
        "TEXT+ id-4 second @id-3",
        "TEXT. id-4 @id-3",
        "CALL c2 find id-4 @id-3",
        "TEXT. id-2 @id-1",
        "CALL c1 find id-2 @id-1",
        "CALL+ c2 2 @id-3",
        "CALL+ c1 1 @id-1",
        "CALL. c1 @id-1",
        "RESULT id-5 c1 one @id-1",
        "CALL. c2 @id-3",
        "RESULT id-6 c2 two @id-3",
        "SUBAGENT_FINISHED @id-1",
        "SUBAGENT_FINISHED @id-3",
        SUCCESS,
    ]);
}

#[test]
fn two_children_with_one_source_stay_apart() {
    let (a, b) = (|block| text_of("RA", block, "a"), |block| text_of("RB", block, "b"));
    let model = |reply: &str| any("MODEL_CALL_START", json!({ "replyId": reply }));
    let lines = joined![
        start(),
        call("c1", "agent_spawn", "{}"),
        call("c2", "agent_spawn", "{}"),
        result_start("c1", "agent_spawn"),
        result_start("c2", "agent_spawn"),
        from(CHILD, child_start("R")),
        from(CHILD, child_start("R")),
        from(CHILD, joined![model("RA"), model("RB"), a("text"), b("text"), a("text")]),
        from(CHILD, joined![child_end(), child_end()]),
        end(),
    ];
    mode(SubagentEvents::Attributed).play(&lines).gives(&[
        "CALL c1 agent_spawn id-1",
        "CALL+ c1 {}",
        "CALL c2 agent_spawn id-1",
        "CALL+ c2 {}",
        "CALL. c1",
        "CALL. c2",
        "SUBAGENT_STARTED @id-2 {\"name\":\"R\",\"parentToolCallId\":\"c1\",\"parentMessageId\":\"id-1\"}",
        "SUBAGENT_STARTED @id-3 {\"name\":\"R\",\"parentToolCallId\":\"c2\",\"parentMessageId\":\"id-1\"}",
        "TEXT id-4 @id-2",
        "TEXT+ id-4 a @id-2",
        "TEXT id-5 @id-3",
        "TEXT+ id-5 b @id-3",
        "TEXT+ id-4 a @id-2",
        "TEXT. id-5 @id-3",
        "SUBAGENT_FINISHED @id-3",
        "TEXT. id-4 @id-2",
        "SUBAGENT_FINISHED @id-2",
        "FINISHED {\"outcome\":{\"type\":\"success\",\"pendingToolCallIds\":[\"c1\",\"c2\"]}}",
    ]);
}

#[test]
fn a_child_of_a_child_names_its_parent() {
    let inner = "main/researcher/reader";
    let lines = joined![
        start(),
        from(CHILD, joined![child_start("R"), call("k1", "agent_spawn", "{}")]),
        from(inner, joined![child_start("Reader"), text("x"), child_end()]),
        from(CHILD, joined![result("k1", "x"), child_end()]),
        end(),
    ];
    play(&lines).gives(&[
        "SUBAGENT_STARTED @id-1 {\"name\":\"R\"}",
        "CALL k1 agent_spawn id-2 @id-1",
        "CALL+ k1 {} @id-1",
        "CALL. k1 @id-1",
        "SUBAGENT_STARTED @id-3 {\"name\":\"Reader\",\"parentSubagentRunId\":\"id-1\",\"parentToolCallId\":\"k1\",\"parentMessageId\":\"id-2\"}",
        "TEXT id-4 @id-3",
        "TEXT+ id-4 x @id-3",
        "TEXT. id-4 @id-3",
        "SUBAGENT_FINISHED @id-3",
        "RESULT id-5 k1 x @id-1",
        "SUBAGENT_FINISHED @id-1",
        SUCCESS,
    ]);
}

#[test]
fn a_child_leaves_the_call_open_that_it_works_for() {
    let inner = "main/researcher/reader";
    let lines = joined![
        start(),
        from(CHILD, joined![child_start("R"), call_start("k1", "agent_spawn")]),
        from(CHILD, result_start("k1", "agent_spawn")),
        from(inner, joined![child_start("Reader"), text("x"), child_end()]),
        from(CHILD, joined![result_end("k1", "success"), child_end()]),
        end(),
    ];
    play(&lines).gives(&[
        "SUBAGENT_STARTED @id-1 {\"name\":\"R\"}",
        "CALL k1 agent_spawn id-2 @id-1",
        "SUBAGENT_STARTED @id-3 {\"name\":\"Reader\",\"parentSubagentRunId\":\"id-1\",\"parentToolCallId\":\"k1\",\"parentMessageId\":\"id-2\"}",
        "TEXT id-4 @id-3",
        "TEXT+ id-4 x @id-3",
        "TEXT. id-4 @id-3",
        "SUBAGENT_FINISHED @id-3",
        "CALL. k1 @id-1",
        "RESULT id-5 k1  @id-1",
        "SUBAGENT_FINISHED @id-1",
        SUCCESS,
    ]);
}

#[test]
fn a_child_that_fails_ends_alone() {
    let error = json!({ "finished_reason": "error",
        "error": { "type": "upstream", "message": "The model failed." } });
    let lines = joined![
        start(),
        from(CHILD, joined![child_start("R"), text("x"), python("REPLY_END", error)]),
        text("I go on."),
        end(),
    ];
    play(&lines).gives(&[
        "SUBAGENT_STARTED @id-1 {\"name\":\"R\"}",
        "TEXT id-2 @id-1",
        "TEXT+ id-2 x @id-1",
        "TEXT. id-2 @id-1",
        "SUBAGENT_ERROR @id-1 {\"message\":\"The model failed.\",\"code\":\"MODEL_ERROR\"}",
        "TEXT id-3",
        "TEXT+ id-3 I go on.",
        "TEXT. id-3",
        SUCCESS,
    ]);
    let told = |kind: &str, members| told((CHILD, Some("id-1")), kind, members);
    let error = json!({ "message": "The model failed.", "code": "MODEL_ERROR" });
    mode(SubagentEvents::Custom).play(&lines).gives(&[
        &told("lifecycle", json!({ "type": "AGENT_START", "name": "R" })),
        &told("text", json!({ "type": "TEXT_BLOCK_DELTA", "delta": "x" })),
        &told("lifecycle", json!({ "type": "AGENT_END", "name": "R", "error": error })),
        "TEXT id-2",
        "TEXT+ id-2 I go on.",
        "TEXT. id-2",
        SUCCESS,
    ]);
}

#[test]
fn a_child_that_never_ends_is_an_error_and_one_without_start_is_not() {
    let lines = joined![start(), from(CHILD, joined![child_start("R"), text("x")]), end()];
    play(&lines).gives(&[
        "SUBAGENT_STARTED @id-1 {\"name\":\"R\"}",
        "TEXT id-2 @id-1",
        "TEXT+ id-2 x @id-1",
        "TEXT. id-2 @id-1",
        "SUBAGENT_ERROR @id-1 {\"message\":\"The sub-agent did not finish.\",\"code\":\"AGENT_ENDED_EARLY\"}",
        SUCCESS,
    ]);
    play(&joined![start(), from(CHILD, text("x")), end()]).gives(&[
        "SUBAGENT_STARTED @id-1 {\"name\":\"researcher\"}",
        "TEXT id-2 @id-1",
        "TEXT+ id-2 x @id-1",
        "TEXT. id-2 @id-1",
        "SUBAGENT_FINISHED @id-1",
        SUCCESS,
    ]);
}

#[test]
fn late_arguments_of_a_child_in_custom_form_are_told_again() {
    let lines = joined![
        start(),
        from(CHILD, joined![call("k1", "f", "{\"a\""), text("x"), args("k1", ":1}"), text("y")]),
        end(),
    ];
    let values = mode(SubagentEvents::Custom).play(&lines).values();
    let ends: Vec<_> = values
        .iter()
        .filter(|event| event["value"]["type"] == "TOOL_CALL_END")
        .map(|event| event["value"]["arguments"].clone())
        .collect();
    assert_eq!(ends, ["{\"a\"", "{\"a\":1}"]);
}
