//! Runs that answer the interrupts of the run before. Every one is played after a real first run.

use agui_adapter::{
    options::{AdapterOptions, FrontendToolOutcome, SubagentEvents},
    outbound::RunEnd,
    resume::{Decision, decide},
};
use agui_protocol::ResumeEntry;
use serde_json::{Value, json};

use super::{
    FRONTEND, Played, Run, SUCCESS, child_line, made, play,
    script::*,
    subagents::{CHILD, child_end, child_start},
    support::input,
};

/// The answers to everything that is open, all alike.
pub fn answers(end: &RunEnd, status: &str, payload: &Value) -> Vec<Decision> {
    let entry = |open: &agui_adapter::resume::OpenInterrupt| -> ResumeEntry {
        let mut entry = json!({ "interruptId": open.interrupt.id, "status": status });
        if !payload.is_null() {
            entry["payload"] = payload.clone();
        }
        serde_json::from_value(entry).expect("an entry")
    };
    let entries: Vec<_> = end.open.iter().map(entry).collect();
    decide(&entries, &end.open).expect("decisions")
}

fn asked() -> Played {
    play(&joined![start(), call("c1", "find", "{\"a\":1}"), confirm(&[("c1", "find")]), end()])
}

/// Goes on with the same answer to everything. Whether the client sends the calls in its messages
/// makes no difference.
#[track_caller]
pub fn resumed(first: &Played, status: &str, payload: Value, lines: &[String]) -> Played {
    let answered = answers(&first.end, status, &payload);
    let bare = Run {
        answered: answered.clone(),
        excused: &["TOOL-14"],
        ..Run::with_input(r#"{"messages":[]}"#)
    };
    let messages = first.end.open.iter().filter_map(|open| {
        let call = open.call.as_ref()?;
        let mut message = made(&call.wire_id, &call.name);
        if let Some(owner) = &open.interrupt.subagent_run_id {
            message["subagentRunId"] = json!(owner);
        }
        Some(message)
    });
    let messages = json!({ "messages": messages.collect::<Vec<_>>() });
    let played = Run { answered, ..Run::with_input(&messages.to_string()) }.play(lines);
    assert_eq!(bare.play(lines).lines(), played.lines());
    played
}

const DENIED: &str = "{\"metadata\":{\"agentscope.state\":\"denied\"}}";

#[test]
fn an_approved_call_is_answered_alone() {
    let lines =
        joined![start(), confirmed("c1", "find", true), result("c1", "A"), text("done"), end(),];
    resumed(&asked(), "resolved", json!({ "approved": true }), &lines).gives(&[
        "RESULT id-1 c1 A",
        "TEXT id-2",
        "TEXT+ id-2 done",
        "TEXT. id-2",
        SUCCESS,
    ]);
}

#[test]
fn an_approved_call_that_the_agent_announces_again_is_not_shown_again() {
    let lines = joined![start(), call("c1", "find", "{\"a\":2}"), result("c1", "A"), end()];
    resumed(&asked(), "resolved", json!({ "approved": true, "editedArgs": { "a": 2 } }), &lines)
        .gives(&["RESULT id-1 c1 A", SUCCESS]);
}

#[test]
fn a_denied_call_gets_a_result_though_the_agent_sends_none() {
    let lines = joined![
        start(),
        confirmed("c1", "find", false),
        model_start(),
        text("As you like."),
        end(),
    ];
    let no = json!({ "approved": false, "reason": "too dear" });
    let denied = format!("RESULT id-1 c1 Permission denied by user: too dear {DENIED}");
    let rest = ["TEXT id-2", "TEXT+ id-2 As you like.", "TEXT. id-2", SUCCESS];
    resumed(&asked(), "resolved", no, &lines).gives(&[&[denied.as_str()], &rest[..]].concat());
    let denied = format!("RESULT id-1 c1 Permission denied by user {DENIED}");
    resumed(&asked(), "cancelled", json!(null), &lines)
        .gives(&[&[denied.as_str()], &rest[..]].concat());
    // Nothing but the end: still answered.
    resumed(&asked(), "resolved", json!("true"), &joined![start(), end()])
        .gives(&[&denied, SUCCESS]);
}

#[test]
fn a_denied_call_that_the_agent_answers_is_answered_once() {
    let lines = joined![
        start(),
        result_start("c1", "find"),
        result_text("c1", "denied by user!"),
        result_end("c1", "denied"),
        text("ok"),
        end(),
    ];
    let denied = format!("RESULT id-1 c1 denied by user! {DENIED}");
    let rest = ["TEXT id-2", "TEXT+ id-2 ok", "TEXT. id-2", SUCCESS];
    resumed(&asked(), "resolved", json!({ "approved": false }), &lines)
        .gives(&[&[denied.as_str()], &rest[..]].concat());
    // And once if it comes late.
    let late = joined![
        start(),
        text("ok"),
        result_text("c1", "denied by user!"),
        result_end("c1", "denied"),
        end(),
    ];
    let ours = format!("RESULT id-1 c1 Permission denied by user {DENIED}");
    resumed(&asked(), "resolved", json!({ "approved": false }), &late)
        .gives(&[&[ours.as_str()], &rest[..]].concat());
}

#[test]
fn several_answers_are_sent_in_the_order_of_the_asks() {
    let first = play(&joined![start(), confirm(&[("c1", "find"), ("c2", "send")]), end(),]);
    let no = json!({ "approved": false });
    resumed(&first, "resolved", no, &joined![start(), model_start(), end()]).gives(&[
        &format!("RESULT id-1 c1 Permission denied by user {DENIED}"),
        &format!("RESULT id-2 c2 Permission denied by user {DENIED}"),
        SUCCESS,
    ]);
}

fn suspended() -> Played {
    play(&joined![start(), external(&[("c1", "print")]), end()])
}

#[test]
fn the_result_of_an_external_call_is_sent_by_the_run_that_brings_it() {
    let text = ["TEXT id-2", "TEXT+ id-2 ok", "TEXT. id-2", SUCCESS];
    let lines =
        joined![start(), executed("c1", "print", "printed"), text_of("R", "b", "ok"), end()];
    resumed(&suspended(), "resolved", json!("printed"), &lines)
        .gives(&[&["RESULT id-1 c1 printed"], &text[..]].concat());
    let silent = joined![start(), text_of("R", "b", "ok"), end()];
    resumed(&suspended(), "resolved", json!({ "ok": true }), &silent)
        .gives(&[&["RESULT id-1 c1 {\"ok\":true}"], &text[..]].concat());
    resumed(&suspended(), "resolved", json!(null), &silent)
        .gives(&[&["RESULT id-1 c1 "], &text[..]].concat());
    let cancelled = "RESULT id-1 c1 Interrupt cancelled by user \
                     {\"metadata\":{\"agentscope.state\":\"interrupted\"}}";
    resumed(&suspended(), "cancelled", json!(null), &silent)
        .gives(&[&[cancelled], &text[..]].concat());
}

/// Python resumes without a second start of the result.
#[test]
fn a_result_that_goes_on_without_a_start_answers_the_stored_call() {
    let lines = joined![
        python("REPLY_START", json!({ "name": "Friday" })),
        python("TOOL_RESULT_TEXT_DELTA", json!({ "tool_call_id": "c1", "delta": "A" })),
        python("TOOL_RESULT_END", json!({ "tool_call_id": "c1", "state": "success" })),
        python("REPLY_END", json!({ "finished_reason": "completed" })),
    ];
    resumed(&suspended(), "resolved", json!("A"), &lines).gives(&["RESULT id-1 c1 A", SUCCESS]);
}

#[test]
fn an_answer_beside_a_tool_message_is_still_sent() {
    let answered = answers(&suspended().end, "resolved", &json!("A"));
    let run = Run { answered, excused: &["TOOL-15"], ..Run::default() };
    run.knowing(&[("c1", "print", Some("from the client"))])
        .play(&joined![start(), result("c1", "A"), end()])
        .gives(&["RESULT id-1 c1 A", SUCCESS]);
}

#[test]
fn a_tool_message_answers_a_call_of_the_clients_tool() {
    let run = || Run::with_input(FRONTEND).knowing(&[("c1", "paint", Some("painted"))]);
    let text = ["TEXT id-1", "TEXT+ id-1 Nice.", "TEXT. id-1", SUCCESS];
    let java =
        joined![start(), executed("c1", "paint", "painted"), text_of("R", "b", "Nice."), end()];
    run().play(&java).gives(&text);
    let python = joined![
        start(),
        python("TOOL_RESULT_TEXT_DELTA", json!({ "tool_call_id": "c1", "delta": "painted" })),
        python("TOOL_RESULT_END", json!({ "tool_call_id": "c1", "state": "success" })),
        text_of("R", "b", "Nice."),
        end(),
    ];
    run().play(&python).gives(&text);
}

/// What a run left open that interrupts for the client's tool.
fn painting() -> Played {
    let mut run = Run { excused: &["INT-24"], ..Run::with_input(FRONTEND) };
    run.options.frontend_tool_outcome = FrontendToolOutcome::Interrupt;
    run.play(&joined![start(), external(&[("c1", "paint")]), end()])
}

#[test]
fn an_answer_to_an_interrupt_of_the_clients_tool_is_sent() {
    let answered = answers(&painting().end, "resolved", &json!("painted"));
    let options = AdapterOptions {
        frontend_tool_outcome: FrontendToolOutcome::Interrupt,
        ..AdapterOptions::default()
    };
    let input = input(r#"{"tools":[{"name":"paint","description":"d"}],"messages":[]}"#);
    let run = Run { answered, options, input, excused: &["TOOL-14"], ..Run::default() };
    run.play(&joined![start(), executed("c1", "paint", "painted"), end()])
        .gives(&["RESULT id-1 c1 painted", SUCCESS]);
}

#[test]
fn the_clients_own_tool_message_is_not_repeated_as_a_result() {
    let answered = answers(&painting().end, "resolved", &json!("painted"));
    let run = Run { answered, ..Run::with_input(FRONTEND) };
    run.knowing(&[("c1", "paint", Some("painted"))])
        .play(&joined![start(), text("Nice."), end()])
        .gives(&["TEXT id-1", "TEXT+ id-1 Nice.", "TEXT. id-1", SUCCESS]);
}

#[test]
fn a_childs_call_under_the_id_of_a_resumed_one_is_its_own() {
    let child = joined![
        child_start("R"),
        call_start("c1", "find"),
        nameless_result("c1", "the child's"),
        child_end(),
    ];
    let lines = joined![start(), from(CHILD, child), nameless_result("c1", "the root's"), end()];
    resumed(&asked(), "resolved", json!({ "approved": true }), &lines).gives(&[
        "SUBAGENT_STARTED @id-1 {\"name\":\"R\"}",
        "CALL id-2 find id-3 @id-1",
        "CALL. id-2 @id-1",
        "RESULT id-4 id-2 the child's @id-1",
        "SUBAGENT_FINISHED @id-1",
        "RESULT id-5 c1 the root's",
        SUCCESS,
    ]);
}

#[test]
fn an_id_that_waits_for_its_answer_may_be_used_for_a_new_call_afterwards() {
    let lines = joined![
        start(),
        result("c1", "A"),
        model_start(),
        call("c1", "find", "{}"),
        result("c1", "B"),
        end(),
    ];
    resumed(&asked(), "resolved", json!({ "approved": true }), &lines).gives(&[
        "RESULT id-1 c1 A",
        "CALL id-2 find id-3",
        "CALL+ id-2 {}",
        "CALL. id-2",
        "RESULT id-4 id-2 B",
        SUCCESS,
    ]);
}

#[test]
fn a_call_under_a_minted_id_is_answered_under_it() {
    let first = play(&joined![start(), call("", "find", "{}"), end()]);
    assert_eq!(first.lines()[1], "CALL id-1 find id-2");
    let taken = Run::default().knowing(&[("c1", "f", None)]);
    let asked = joined![start(), call("c1", "find", "{}"), confirm(&[("c1", "find")]), end()];
    let first = taken.play(&asked);
    assert_eq!(first.end.open[0].interrupt.id.as_str(), "R2:id-1");
    resumed(
        &first,
        "resolved",
        json!({ "approved": true }),
        &joined![start(), result("c1", "A"), end()],
    )
    .gives(&["RESULT id-1 id-1 A", SUCCESS]);
}

#[test]
fn a_new_ask_after_the_answer_interrupts_again() {
    let lines = joined![start(), result("c1", "A"), confirm(&[("c2", "send")]), end()];
    let played = resumed(&asked(), "resolved", json!({ "approved": true }), &lines);
    assert_eq!(played.open_ids(), ["R2:c2"]);
    let lines = played.lines();
    assert_eq!(
        lines[1..5],
        ["RESULT id-1 c1 A", "CALL c2 send id-2", "CALL+ c2 {\"a\":1}", "CALL. c2"]
    );
}

/// A child whose call ends as running: it waits for somebody outside.
fn suspended_child() -> Vec<String> {
    let child = joined![
        any("AGENT_START", json!({ "name": "R" })),
        call("c7", "deploy", "{}"),
        result_start("c7", "deploy"),
        result_end("c7", "running"),
        any("AGENT_END", json!({})),
    ];
    joined![start(), from("main/a", child), end()]
}

/// The same child with the result that it waited for.
fn answered_child() -> Vec<String> {
    let child = joined![
        any("AGENT_START", json!({ "name": "R" })),
        text("done"),
        any("AGENT_END", json!({})),
    ];
    joined![start(), from("main/a", child), end()]
}

#[test]
fn a_child_that_a_running_result_suspended_goes_on_under_its_id() {
    let first = play(&suspended_child());
    assert_eq!(first.end.open[0].source.as_deref(), Some("main/a"));
    let interrupt = json!({
        "subagentRunId": "id-1", "id": "R2:c7", "reason": "tool_call",
        "message": "Run deploy and answer with its result", "toolCallId": "c7",
        "metadata": { "agentscope.interruptKind": "external_execution", "toolName": "deploy",
            "toolContent": "{}", "replyId": "R2", "agentscope.source": "main/a" },
    });
    let outcome = json!({ "outcome": { "type": "interrupt", "interrupts": [interrupt] } });
    first.gives(&[
        "SUBAGENT_STARTED @id-1 {\"name\":\"R\"}",
        "CALL c7 deploy id-2 @id-1",
        "CALL+ c7 {} @id-1",
        "CALL. c7 @id-1",
        "SUBAGENT_FINISHED @id-1 {\"outcome\":{\"type\":\"suspended\",\"interruptIds\":[\"R2:c7\"]}}",
        &format!("FINISHED {outcome}"),
    ]);
    resumed(&first, "resolved", json!("ok"), &answered_child()).gives(&[
        "SUBAGENT_STARTED @id-1 {\"name\":\"R\"}",
        "RESULT id-1 c7 ok @id-1",
        "TEXT id-2 @id-1",
        "TEXT+ id-2 done @id-1",
        "TEXT. id-2 @id-1",
        "SUBAGENT_FINISHED @id-1",
        SUCCESS,
    ]);
}

#[test]
fn the_answer_to_a_suspended_child_in_custom_form_is_no_result_of_the_root() {
    let custom = |answered| {
        let mut run = Run { answered, ..Run::with_input(r#"{"messages":[]}"#) };
        run.options.subagent_events = SubagentEvents::Custom;
        run
    };
    let first = custom(Vec::new()).play(&suspended_child());
    let name = json!({ "name": "R" });
    let result = json!({ "toolCallId": "c7", "toolName": "deploy", "state": "SUCCESS",
        "content": "ok" });
    custom(answers(&first.end, "resolved", &json!("ok"))).play(&answered_child()).gives(&[
        &child_line("lifecycle", "AGENT_START", name.clone()),
        &child_line("tool_result", "TOOL_RESULT_END", result),
        &child_line("text", "TEXT_BLOCK_DELTA", json!({ "delta": "done" })),
        &child_line("lifecycle", "AGENT_END", name),
        SUCCESS,
    ]);
}
