//! What children ask, and the answers.

use agui_adapter::options::{Peer, SubagentEvents};
use serde_json::{Value, json};

use super::{
    FRONTEND, Run, SUCCESS,
    interrupts::{approval, interrupts},
    play,
    resume::{answers, resumed},
    script::*,
    subagents::{CHILD, child_end, child_start, mode, told},
};

fn asking_child() -> Vec<String> {
    let child = joined![
        child_start("R"),
        call("c7", "send", "{\"a\":1}"),
        confirm(&[("c7", "send")]),
        child_end(),
    ];
    joined![
        start(),
        from(CHILD, child),
        any("REQUEST_STOP", json!({ "generateReason": "PERMISSION_ASKING" })),
        end(),
    ]
}

/// The interrupt of a child; it has no id where children are CUSTOM events.
fn childs(interrupt: Value, (source, id): (&str, Option<&str>)) -> Value {
    let mut childs = json!({});
    if let Some(id) = id {
        childs["subagentRunId"] = id.into();
    }
    for (key, member) in interrupt.as_object().expect("object") {
        childs[key] = member.clone();
    }
    childs["metadata"]["agentscope.source"] = source.into();
    childs
}

#[test]
fn a_childs_ask_is_the_runs_and_goes_on_under_the_childs_id() {
    let first = play(&asking_child());
    let before = [
        "SUBAGENT_STARTED @id-1 {\"name\":\"R\"}",
        "CALL c7 send id-2 @id-1",
        "CALL+ c7 {\"a\":1} @id-1",
        "CALL. c7 @id-1",
        "SUBAGENT_FINISHED @id-1 {\"outcome\":{\"type\":\"suspended\",\"interruptIds\":[\"R2:c7\"]}}",
    ];
    let ask = childs(approval("R2:c7", "c7", "send"), (CHILD, Some("id-1")));
    interrupts(&first, &before, &[ask]);
    assert_eq!(first.end.open[0].source.as_deref(), Some(CHILD));
    let lines = joined![
        start(),
        from(CHILD, joined![child_start("R"), result("c7", "sent"), text("done"), child_end()]),
        end(),
    ];
    resumed(&first, "resolved", json!({ "approved": true }), &lines).gives(&[
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
    resumed(&first, "cancelled", json!(null), &joined![start(), end()]).gives(&[
        "RESULT id-1 c7 Permission denied by user @id-1 {\"metadata\":{\"agentscope.state\":\"denied\"}}",
        SUCCESS,
    ]);
}

#[test]
fn a_childs_ask_in_custom_form_lists_the_calls() {
    let told = |kind: &str, members| told((CHILD, Some("id-1")), kind, members);
    let listed = json!([{ "toolCallId": "c7", "toolName": "send", "arguments": "{\"a\":1}" }]);
    let before = [
        told("lifecycle", json!({ "type": "AGENT_START", "name": "R" })),
        told(
            "tool_call",
            json!({ "type": "TOOL_CALL_START", "toolCallId": "c7", "toolName": "send" }),
        ),
        told(
            "tool_call",
            json!({ "type": "TOOL_CALL_END", "toolCallId": "c7", "toolName": "send",
                "arguments": "{\"a\":1}" }),
        ),
        told(
            "require_confirm",
            json!({ "type": "REQUIRE_USER_CONFIRM", "toolCallCount": 1, "toolCalls": listed }),
        ),
        told("lifecycle", json!({ "type": "AGENT_END", "name": "R" })),
    ];
    let before: Vec<&str> = before.iter().map(String::as_str).collect();
    let ask = childs(approval("R2:c7", "c7", "send"), (CHILD, None));
    let legacy = Run { peer: Peer::Legacy, ..Run::default() };
    interrupts(&legacy.play(&asking_child()), &before, std::slice::from_ref(&ask));
    let played = mode(SubagentEvents::Custom).play(&asking_child());
    interrupts(&played, &before, &[ask]);
}

#[test]
fn a_childs_denied_call_is_answered_in_custom_form() {
    let first = mode(SubagentEvents::Custom).play(&asking_child());
    let answered = answers(&first.end, "cancelled", &json!(null));
    let result = json!({ "type": "TOOL_RESULT_END", "toolCallId": "c7", "toolName": "send",
        "state": "DENIED", "content": "Permission denied by user" });
    Run { answered, ..mode(SubagentEvents::Custom) }
        .play(&joined![start(), end()])
        .gives(&[&told((CHILD, None), "tool_result", result), SUCCESS]);
}

#[test]
fn a_childs_own_answer_to_a_denied_call_is_the_only_one_in_custom_form() {
    let first = mode(SubagentEvents::Custom).play(&asking_child());
    let answered = answers(&first.end, "cancelled", &json!(null));
    let child = joined![
        child_start("R"),
        result_start("c7", "send"),
        result_text("c7", "I may not."),
        result_end("c7", "denied"),
        child_end()
    ];
    let told = |kind: &str, members| told((CHILD, Some("id-1")), kind, members);
    let result = json!({ "type": "TOOL_RESULT_END", "toolCallId": "c7", "toolName": "send",
        "state": "DENIED", "content": "I may not." });
    Run { answered, ..mode(SubagentEvents::Custom) }
        .play(&joined![start(), from(CHILD, child), end()])
        .gives(&[
            &told("lifecycle", json!({ "type": "AGENT_START", "name": "R" })),
            &told("tool_result", result),
            &told("lifecycle", json!({ "type": "AGENT_END", "name": "R" })),
            SUCCESS,
        ]);
}

#[test]
fn asks_of_two_children_have_two_ids() {
    let asking =
        |source| from(source, joined![child_start("R"), confirm(&[("c7", "send")]), child_end()]);
    let lines = joined![start(), asking("main/a"), asking("main/b"), end()];
    assert_eq!(play(&lines).open_ids(), ["R2:c7", "R2:id-4"]);
    let custom = mode(SubagentEvents::Custom).play(&lines);
    assert_eq!(custom.open_ids(), ["R2:c7", "R2:c7:2"]);
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
    let child = joined![
        child_start("R"),
        call("k1", "paint", "{}"),
        external(&[("k1", "paint")]),
        child_end()
    ];
    Run::with_input(FRONTEND).play(&joined![start(), from(CHILD, child), end()]).gives(&[
        "SUBAGENT_STARTED @id-1 {\"name\":\"R\"}",
        "CALL k1 paint id-2 @id-1",
        "CALL+ k1 {} @id-1",
        "CALL. k1 @id-1",
        "SUBAGENT_FINISHED @id-1",
        "FINISHED {\"outcome\":{\"type\":\"success\",\"pendingToolCallIds\":[\"k1\"]}}",
    ]);
}

/// The call of the client's tool comes first, so the child's question waits for the next run.
#[test]
fn a_child_that_waits_is_not_suspended_where_the_run_is_not_interrupted() {
    let lines = joined![
        start(),
        from(CHILD, joined![child_start("R"), confirm(&[("c7", "send")]), child_end()]),
        call_start("c1", "paint"),
        external(&[("c1", "paint")]),
        end(),
    ];
    let played = Run::with_input(FRONTEND).play(&lines);
    played.gives(&[
        "SUBAGENT_STARTED @id-1 {\"name\":\"R\"}",
        "CALL c7 send id-2 @id-1",
        "CALL+ c7 {\"a\":1} @id-1",
        "CALL. c7 @id-1",
        "CALL c1 paint id-3",
        "SUBAGENT_FINISHED @id-1",
        "CALL. c1",
        "FINISHED {\"outcome\":{\"type\":\"success\",\"pendingToolCallIds\":[\"c7\",\"c1\"]}}",
    ]);
    assert_eq!(played.end.open, []);
    let deferred: Vec<_> = played.end.deferred.iter().map(|open| json!(open.interrupt)).collect();
    assert_eq!(deferred, [childs(approval("R2:c7", "c7", "send"), (CHILD, Some("id-1")))]);
}
