//! Odd streams that once broke a rule; each was shrunk from a random run.

use agui_adapter::model::{AgentEvent, AgentEventKind};
use serde_json::json;

use super::{Played, Run, SUCCESS, play, resume::resumed, script::*, wire};

/// Goes on from a run whose call `d1` was denied.
#[track_caller]
fn denied(lines: &[String]) -> Played {
    let first = play(&joined![start(), confirm(&[("d1", "find")]), end()]);
    resumed(&first, "cancelled", json!(null), lines)
}

#[test]
fn a_childs_result_under_the_id_of_a_denied_call_does_not_answer_it() {
    let lines = joined![start(), from("main/a", result_end("d1", "success")), end()];
    denied(&lines).gives(&[
        "SUBAGENT_STARTED @id-1 {\"name\":\"a\"}",
        "CALL id-2 unknown_tool id-3 @id-1",
        "CALL. id-2 @id-1",
        "RESULT id-4 id-2  @id-1",
        "RESULT id-5 d1 Permission denied by user {\"metadata\":{\"agentscope.state\":\"denied\"}}",
        "SUBAGENT_FINISHED @id-1",
        SUCCESS,
    ]);
}

#[test]
fn a_denied_call_that_is_answered_twice_is_answered_once() {
    let lines = joined![
        start(),
        result_end("d1", "denied"),
        result_end("d1", "denied"),
        confirmed("d1", "find", false),
        end(),
    ];
    denied(&lines)
        .gives(&["RESULT id-1 d1  {\"metadata\":{\"agentscope.state\":\"denied\"}}", SUCCESS]);
}

#[test]
fn a_childs_call_under_the_id_of_a_denied_call_is_shown() {
    let lines = joined![
        start(),
        from("main/a", joined![call("d1", "find", "{}"), result("d1", "A")]),
        end()
    ];
    denied(&lines).gives(&[
        "SUBAGENT_STARTED @id-1 {\"name\":\"a\"}",
        "RESULT id-2 d1 Permission denied by user {\"metadata\":{\"agentscope.state\":\"denied\"}}",
        "CALL id-3 find id-4 @id-1",
        "CALL+ id-3 {} @id-1",
        "CALL. id-3 @id-1",
        "RESULT id-5 id-3 A @id-1",
        "SUBAGENT_FINISHED @id-1",
        SUCCESS,
    ]);
}

#[test]
fn a_childs_stray_result_does_not_answer_its_parents_call() {
    let lines = joined![
        start(),
        call("c1", "find", "{}"),
        from("main/a", result("c1", "stray")),
        result("c1", "A"),
        end(),
    ];
    play(&lines).gives(&[
        "CALL c1 find id-1",
        "CALL+ c1 {}",
        "CALL. c1",
        "SUBAGENT_STARTED @id-2 {\"name\":\"a\",\"parentToolCallId\":\"c1\",\"parentMessageId\":\"id-1\"}",
        "CALL id-3 find id-4 @id-2",
        "CALL. id-3 @id-2",
        "RESULT id-5 id-3 stray @id-2",
        "RESULT id-6 c1 A",
        "SUBAGENT_FINISHED @id-2",
        SUCCESS,
    ]);
}

#[test]
fn a_call_asked_about_in_two_ways_is_one_interrupt() {
    let lines = joined![start(), external(&[("c1", "f")]), confirm(&[("c1", "f")]), end()];
    assert_eq!(play(&lines).open_ids(), ["R2:c1"]);
}

#[test]
fn questions_of_two_children_have_two_ids() {
    let question = || {
        AgentEvent::local(AgentEventKind::Question {
            id: "q1".to_owned(),
            message: "What?".to_owned(),
            schema: None,
        })
    };
    let (a, b) = (question().from_source("main/a"), question().from_source("main/b"));
    let played = Run::default().play_events(&[wire(start()), question(), a, b, wire(end())]);
    assert_eq!(played.open_ids(), ["r1:q1", "r1:id-1:q1", "r1:id-2:q1"]);
}

#[test]
fn a_suspended_call_that_nobody_announced_is_shown_before_it_is_asked_about() {
    let lines = joined![start(), result_start("c1", "f"), result_end("c1", "running"), end()];
    let lines = play(&lines).lines();
    assert_eq!(lines[1..3], ["CALL c1 f id-1", "CALL. c1"]);
}

#[test]
fn an_id_that_an_interrupt_of_the_thread_had_is_not_used_again() {
    let question = AgentEvent::local(AgentEventKind::Question {
        id: "q1".to_owned(),
        message: "What?".to_owned(),
        schema: None,
    });
    let asks = joined![start(), call("c1", "f", "{}"), confirm(&[("c1", "f")])];
    let mut events: Vec<_> = asks.into_iter().map(wire).collect();
    events.extend([question, wire(end())]);
    let run = Run { taken: &["R2:c1", "R2:c1:2", "r1:q1", "c1"], ..Run::default() };
    assert_eq!(run.play_events(&events).open_ids(), ["R2:c1:3", "r1:q1:2"]);
    // A child's is told under the same id wherever it is named.
    let child = joined![
        any("AGENT_START", json!({ "name": "R" })),
        call("c7", "f", "{}"),
        confirm(&[("c7", "f")]),
    ];
    let run = Run { taken: &["R2:c7"], ..Run::default() };
    let played = run.play(&joined![start(), from("main/a", child), end()]);
    assert_eq!(played.open_ids(), ["R2:c7:2"]);
    let suspended = played.values().into_iter().find(|event| event["type"] == "SUBAGENT_FINISHED");
    assert_eq!(suspended.expect("an end")["outcome"]["interruptIds"], json!(["R2:c7:2"]));
}
