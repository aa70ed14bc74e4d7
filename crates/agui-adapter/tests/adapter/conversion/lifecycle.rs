//! The boundaries of runs.

use agui_adapter::outbound::{EndOutcome, RunFailure, StreamEnd};
use serde_json::json;

use super::{Run, SUCCESS, play, script::*};

#[test]
fn start_and_end_of_the_agent_are_those_of_the_run() {
    let played = play(&joined![start(), end()]);
    played.gives(&[SUCCESS]);
    assert_eq!(played.end.outcome, EndOutcome::Success);
}

#[test]
fn the_input_is_echoed_only_on_demand() {
    let run = Run::with(|options| options.echo_input = true);
    let echo = json!({ "threadId": "t1", "runId": "r1", "protocolVersion": "1.0",
        "messages": [{ "role": "user", "id": "u1", "content": "hi" }], "tools": [], "context": [] });
    run.play(&joined![start(), end()])
        .gives_all(&[&format!("RUN t1 r1 1.0 {}", json!({ "input": echo })), SUCCESS]);
}

#[test]
fn run_started_repeats_the_parent_run_and_the_servers_metadata() {
    let mut run = Run::with_input(r#"{"parentRunId":"r0"}"#);
    run.started_metadata.insert("agentscope.droppedMessages".to_owned(), json!(2));
    run.play(&joined![start(), end()]).gives_all(&[
        "RUN t1 r1 1.0 {\"parentRunId\":\"r0\",\"metadata\":{\"agentscope.droppedMessages\":2}}",
        SUCCESS,
    ]);
}

#[test]
fn a_stream_without_start_starts_before_its_first_event() {
    play(&joined![text("a"), start(), end()]).gives(&[
        "TEXT id-1",
        "TEXT+ id-1 a",
        "TEXT. id-1",
        SUCCESS,
    ]);
}

#[test]
fn later_starts_and_what_follows_the_end_give_nothing() {
    let lines =
        joined![start(), start(), end(), text("late"), end(), start(), from("main/a", text("x"))];
    play(&lines).gives(&[SUCCESS]);
}

#[test]
fn a_stream_that_stops_before_its_end_is_an_error() {
    let early = "ERROR AGENT_ENDED_EARLY The agent stopped before it had finished.";
    let played = play(&joined![start(), text("half")]);
    played.gives(&["TEXT id-1", "TEXT+ id-1 half", "TEXT. id-1", early]);
    assert_eq!(played.end.outcome, EndOutcome::Error("AGENT_ENDED_EARLY".to_owned()));
    play(&[]).gives(&[early]);
}

#[test]
fn everything_open_closes_at_the_end() {
    let run = Run::with(|options| options.enable_reasoning = true);
    let lines = joined![start(), call_start("c1", "f"), think("a"), end()];
    run.play(&lines).gives(&[
        "CALL c1 f id-1",
        "SPAN id-2",
        "THINK id-2",
        "THINK+ id-2 a",
        "THINK. id-2",
        "SPAN. id-2",
        "CALL. c1",
        "FINISHED {\"outcome\":{\"type\":\"success\",\"pendingToolCallIds\":[\"c1\"]}}",
    ]);
    let run = Run::with(|options| options.enable_reasoning = true);
    let lines = joined![
        start(),
        call_start("c1", "f"),
        call_start("c2", "f"),
        think("a"),
        text("b"),
        end()
    ];
    run.play(&lines).gives(&[
        "CALL c1 f id-1",
        "CALL c2 f id-1",
        "SPAN id-2",
        "THINK id-2",
        "THINK+ id-2 a",
        "THINK. id-2",
        "SPAN. id-2",
        "TEXT id-3",
        "TEXT+ id-3 b",
        "TEXT. id-3",
        "CALL. c1",
        "CALL. c2",
        "FINISHED {\"outcome\":{\"type\":\"success\",\"pendingToolCallIds\":[\"c1\",\"c2\"]}}",
    ]);
}

fn failing(end: RunFailure) -> Run {
    let mut run = Run { end: StreamEnd::Failed(end), ..Run::default() };
    run.options.enable_reasoning = true;
    run
}

#[test]
fn a_failure_closes_what_is_open_first() {
    let timeout = || RunFailure::new("TIMEOUT_ERROR", "The run took too long.");
    let error = "ERROR TIMEOUT_ERROR The run took too long.";
    failing(timeout()).play(&joined![start(), text("a")]).gives(&[
        "TEXT id-1",
        "TEXT+ id-1 a",
        "TEXT. id-1",
        error,
    ]);
    failing(timeout()).play(&joined![start(), think("a")]).gives(&[
        "SPAN id-1",
        "THINK id-1",
        "THINK+ id-1 a",
        "THINK. id-1",
        "SPAN. id-1",
        error,
    ]);
    failing(timeout()).play(&joined![start(), call_start("c1", "f")]).gives(&[
        "CALL c1 f id-1",
        "CALL. c1",
        error,
    ]);
}

#[test]
fn a_failure_before_any_event_starts_the_run_first() {
    let input_error = RunFailure::new("INVALID_INPUT_ERROR", "No.");
    failing(input_error).play(&[]).gives(&["ERROR INVALID_INPUT_ERROR No."]);
    let internal = RunFailure::new("INTERNAL_ERROR", "Sorry.");
    failing(internal).play(&joined![start()]).gives(&["ERROR INTERNAL_ERROR Sorry."]);
}

#[test]
fn the_metadata_of_a_failure_stands_on_the_error() {
    let mut failure = RunFailure::new("AGUI_INTERRUPT_CONTRACT_ERROR", "Answer first.");
    failure.metadata.insert("agentscope.openInterrupts".to_owned(), json!([]));
    failing(failure).play(&[]).gives(&["ERROR AGUI_INTERRUPT_CONTRACT_ERROR Answer first. \
         {\"metadata\":{\"agentscope.openInterrupts\":[]}}"]);
}

#[test]
fn old_clients_get_a_finish_behind_the_error_on_demand() {
    let mut run = failing(RunFailure::new("INTERNAL_ERROR", "Sorry."));
    run.options.emit_run_finished_after_error = true;
    run.excused = &["LIFE-3"];
    run.play(&joined![start()]).gives(&["ERROR INTERNAL_ERROR Sorry.", "FINISHED"]);
}

#[test]
fn a_run_that_reached_its_limit_is_cancelled() {
    let lines = joined![
        start(),
        any("EXCEED_MAX_ITERS", json!({ "replyId": "", "maxIters": 3, "currentIter": 3 })),
        text("summary so far"),
        text_end(),
        end(),
    ];
    let played = play(&lines);
    played.gives(&[
        "TEXT id-1",
        "TEXT+ id-1 summary so far",
        "TEXT. id-1",
        "FINISHED {\"outcome\":{\"type\":\"cancelled\"},\"metadata\":\
         {\"agentscope.reason\":\"max_iterations\",\"agentscope.maxIters\":3}}",
    ]);
    assert_eq!(played.end.outcome, EndOutcome::Cancelled);
}

#[test]
fn a_run_that_was_stopped_is_cancelled_with_the_reason() {
    let run = Run { end: StreamEnd::Cancelled("cancelled"), ..Run::default() };
    run.play(&joined![start(), text("a")]).gives(&[
        "TEXT id-1",
        "TEXT+ id-1 a",
        "TEXT. id-1",
        "FINISHED {\"outcome\":{\"type\":\"cancelled\"},\"metadata\":{\"agentscope.reason\":\"cancelled\"}}",
    ]);
}

#[test]
fn the_reason_of_a_java_run_stands_in_its_result() {
    for (reason, outcome) in [
        ("MODEL_STOP", "success"),
        ("STRUCTURED_OUTPUT", "success"),
        ("ALL_TOOLS_DENIED", "success"),
        ("INTERRUPTED", "cancelled"),
        ("MAX_ITERATIONS", "cancelled"),
        ("REASONING_STOP_REQUESTED", "cancelled"),
    ] {
        let played = play(&joined![start(), agent_result("", reason), end()]);
        assert_eq!(played.values()[1]["outcome"]["type"], outcome, "{reason}");
    }
}

#[test]
fn the_reason_of_a_python_run_stands_on_its_end() {
    let ended = |reason: &str, error: serde_json::Value| {
        let end = python("REPLY_END", json!({ "finished_reason": reason, "error": error }));
        play(&joined![python("REPLY_START", json!({ "name": "Friday" })), end]).lines().remove(1)
    };
    assert_eq!(ended("completed", json!(null)), SUCCESS);
    assert_eq!(
        ended("interrupted", json!(null)),
        "FINISHED {\"outcome\":{\"type\":\"cancelled\"},\"metadata\":{\"agentscope.reason\":\"interrupted\"}}"
    );
    assert_eq!(
        ended("exceed_max_iters", json!(null)),
        "FINISHED {\"outcome\":{\"type\":\"cancelled\"},\"metadata\":{\"agentscope.reason\":\"max_iterations\"}}"
    );
    for (class, code) in [
        ("authentication", "MODEL_AUTH_ERROR"),
        ("permission", "MODEL_AUTH_ERROR"),
        ("rate_limit", "MODEL_RATE_LIMITED"),
        ("connection", "MODEL_UNAVAILABLE"),
        ("upstream", "MODEL_ERROR"),
        ("invalid_request", "MODEL_ERROR"),
        ("internal", "UPSTREAM_ERROR"),
    ] {
        let error = json!({ "type": class, "message": "Said so." });
        assert_eq!(ended("error", error), format!("ERROR {code} Said so."));
    }
    let silent = json!({ "type": "internal", "message": "" });
    assert_eq!(ended("error", silent), "ERROR UPSTREAM_ERROR The agent failed.");
    let foreign = json!({ "type": "Traceback", "message": "/secret/path" });
    assert_eq!(ended("error", foreign), "ERROR UPSTREAM_ERROR The agent failed.");
}
