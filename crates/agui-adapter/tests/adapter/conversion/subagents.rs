//! Children.

use agui_adapter::{
    options::{Peer, SubagentEvents},
    resume::decide,
};
use serde_json::{Value, json};

use super::{Played, Run, play, script::*};

const SUCCESS: &str = "FINISHED {\"outcome\":{\"type\":\"success\"}}";
const CHILD: &str = "main/researcher";

fn child_start(name: &str) -> String {
    any("AGENT_START", json!({ "sessionId": "s", "name": name }))
}

fn child_end() -> String {
    any("AGENT_END", json!({}))
}

fn mode(mode: SubagentEvents) -> Run {
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

fn custom(kind: &str, members: Value) -> String {
    let mut value = json!({ "source": CHILD, "type": members["type"], "subagentRunId": "id-2" });
    for (key, member) in members.as_object().expect("object") {
        value[key] = member.clone();
    }
    format!("CUSTOM {}", json!({ "name": format!("subagent.{kind}"), "value": value }))
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
    let values = mode(SubagentEvents::Custom).play(&lines).values();
    assert_eq!(
        values[3]["value"],
        json!({ "source": CHILD, "type": "AGENT_END", "subagentRunId": "id-1", "name": "R",
            "error": { "message": "The model failed.", "code": "MODEL_ERROR" } })
    );
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

fn asking_child() -> Vec<String> {
    joined![
        start(),
        from(
            CHILD,
            joined![
                child_start("R"),
                call("c7", "send", "{\"a\":1}"),
                confirm(&[("c7", "send")]),
                child_end(),
            ]
        ),
        any("REQUEST_STOP", json!({ "generateReason": "PERMISSION_ASKING" })),
        end(),
    ]
}

fn outcome(played: &Played) -> Value {
    played.values().last().map(|event| event["outcome"].clone()).unwrap_or_default()
}

#[test]
fn a_childs_ask_is_the_runs_and_goes_on_under_the_childs_id() {
    let first = play(&asking_child());
    let lines = first.lines();
    assert_eq!(
        lines[1..6],
        [
            "SUBAGENT_STARTED @id-1 {\"name\":\"R\"}",
            "CALL c7 send id-2 @id-1",
            "CALL+ c7 {\"a\":1} @id-1",
            "CALL. c7 @id-1",
            "SUBAGENT_FINISHED @id-1 {\"outcome\":{\"type\":\"suspended\",\"interruptIds\":[\"R2:c7\"]}}",
        ]
    );
    let interrupt = outcome(&first)["interrupts"][0].clone();
    assert_eq!(interrupt["subagentRunId"], "id-1");
    assert_eq!(interrupt["metadata"]["agentscope.source"], CHILD);
    let entry =
        json!({ "interruptId": "R2:c7", "status": "resolved", "payload": { "approved": true } });
    let entries = [serde_json::from_value(entry).expect("an entry")];
    let answered = decide(&entries, &first.end.open).expect("decisions");
    let run = Run { answered, ..Run::with_input(r#"{"messages":[]}"#) };
    let second = run.play(&joined![
        start(),
        from(CHILD, joined![child_start("R"), result("c7", "sent"), text("done"), child_end()]),
        end(),
    ]);
    second.gives(&[
        "SUBAGENT_STARTED @id-1 {\"name\":\"R\"}",
        "RESULT id-1 c7 sent @id-1",
        "TEXT id-2 @id-1",
        "TEXT+ id-2 done @id-1",
        "TEXT. id-2 @id-1",
        "SUBAGENT_FINISHED @id-1",
        SUCCESS,
    ]);
}

#[test]
fn a_childs_denied_call_is_answered_as_the_childs() {
    let first = play(&asking_child());
    let entry = json!({ "interruptId": "R2:c7", "status": "cancelled" });
    let entries = [serde_json::from_value(entry).expect("an entry")];
    let answered = decide(&entries, &first.end.open).expect("decisions");
    let run = Run { answered, ..Run::with_input(r#"{"messages":[]}"#) };
    run.play(&joined![start(), end()]).gives(&[
        "RESULT id-1 c7 Permission denied by user @id-1 {\"metadata\":{\"agentscope.state\":\"denied\"}}",
        SUCCESS,
    ]);
}

#[test]
fn a_childs_ask_in_custom_form_lists_the_calls() {
    let played = mode(SubagentEvents::Custom).play(&asking_child());
    let asked = played.values()[4]["value"].clone();
    assert_eq!(
        asked,
        json!({ "source": CHILD, "type": "REQUIRE_USER_CONFIRM", "subagentRunId": "id-1",
            "toolCallCount": 1, "toolCalls": [
                { "toolCallId": "c7", "toolName": "send", "arguments": "{\"a\":1}" }] })
    );
    assert_eq!(outcome(&played)["interrupts"][0]["id"], "R2:c7");
    let entry = json!({ "interruptId": "R2:c7", "status": "cancelled" });
    let entries = [serde_json::from_value(entry).expect("an entry")];
    let answered = decide(&entries, &played.end.open).expect("decisions");
    let run = Run { answered, ..mode(SubagentEvents::Custom) };
    let result = json!({ "name": "subagent.tool_result", "value": {
        "source": CHILD, "type": "TOOL_RESULT_END", "toolCallId": "c7", "toolName": "send",
        "state": "DENIED", "content": "Permission denied by user" } });
    run.play(&joined![start(), end()]).gives(&[&format!("CUSTOM {result}"), SUCCESS]);
}

#[test]
fn asks_of_two_children_in_custom_form_have_two_ids() {
    let asking =
        |source| from(source, joined![child_start("R"), confirm(&[("c7", "send")]), child_end()]);
    let played = mode(SubagentEvents::Custom).play(&joined![
        start(),
        asking("main/a"),
        asking("main/b"),
        end()
    ]);
    let ids: Vec<_> = played.end.open.iter().map(|open| open.interrupt.id.as_str()).collect();
    assert_eq!(ids, ["R2:c7", "R2:c7:2"]);
}

/// How the child ended is only known when the run ends.
#[test]
fn a_child_is_suspended_only_if_its_question_stands() {
    let child = joined![
        child_start("R"),
        call("c7", "send", "{}"),
        confirm(&[("c7", "send")]),
        child_end()
    ];
    let head = [
        "SUBAGENT_STARTED @id-1 {\"name\":\"R\"}",
        "CALL c7 send id-2 @id-1",
        "CALL+ c7 {} @id-1",
        "CALL. c7 @id-1",
    ];
    let answered = joined![
        start(),
        from(CHILD, child.clone()),
        confirmed("c7", "send", true),
        result("c7", "sent"),
        end(),
    ];
    play(&answered).gives(
        &[&head[..], &["RESULT id-3 c7 sent @id-1", "SUBAGENT_FINISHED @id-1", SUCCESS]].concat(),
    );
    let stopped = joined![start(), from(CHILD, child), agent_result("", "INTERRUPTED"), end()];
    let rest = [
        "SUBAGENT_ERROR @id-1 {\"message\":\"The run was stopped.\",\"code\":\"CANCELLED\"}",
        "FINISHED {\"outcome\":{\"type\":\"cancelled\"},\"metadata\":{\"agentscope.reason\":\"interrupted\"}}",
    ];
    play(&stopped).gives(&[&head[..], &rest[..]].concat());
}

#[test]
fn a_child_that_waits_for_the_client_is_not_suspended() {
    let run = Run::with_input(r#"{"tools":[{"name":"paint","description":"d"}]}"#);
    let lines = joined![
        start(),
        from(
            CHILD,
            joined![
                child_start("R"),
                call("k1", "paint", "{}"),
                external(&[("k1", "paint")]),
                child_end()
            ]
        ),
        end(),
    ];
    run.play(&lines).gives(&[
        "SUBAGENT_STARTED @id-1 {\"name\":\"R\"}",
        "CALL k1 paint id-2 @id-1",
        "CALL+ k1 {} @id-1",
        "CALL. k1 @id-1",
        "SUBAGENT_FINISHED @id-1",
        "FINISHED {\"outcome\":{\"type\":\"success\",\"pendingToolCallIds\":[\"k1\"]}}",
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
