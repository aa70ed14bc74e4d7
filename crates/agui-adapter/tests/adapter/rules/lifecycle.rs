//! The beginning and the end of a run.

use agui_adapter::{
    model::{AgentEventKind as Kind, event::EndReason},
    outbound::{EndOutcome, RunFailure, StreamEnd},
};
use serde_json::json;

use super::scene::*;

#[test]
fn start_and_end() {
    let end = scene([start(), end()]).gives(
        r#"
            RUN_STARTED
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
    assert_eq!(end.outcome, EndOutcome::Success);
}

#[test]
fn run_started_carries_the_input_where_it_is_wanted() {
    scene([start(), end()]).with(|options| options.echo_input = true).gives(r#"
            RUN_STARTED input={"threadId":"t1","runId":"r1","protocolVersion":"1.0","messages":[{"role":"user","id":"u1","content":"hi"}],"tools":[],"context":[]}
            RUN_FINISHED outcome={"type":"success"}
        "#);
}

#[test]
fn run_started_repeats_the_parent_run_and_the_servers_metadata() {
    let scene = scene([start(), end()]).input("parentRunId", json!("r0"));
    scene
        .setup(|setup| {
            setup.started_metadata.insert("agentscope.droppedMessages".into(), 2.into());
        })
        .gives(
            r#"
            RUN_STARTED parentRunId=r0 metadata={"agentscope.droppedMessages":2}
            RUN_FINISHED outcome={"type":"success"}
        "#,
        );
}

#[test]
fn a_stream_without_events_still_begins_and_ends() {
    scene([]).gives(r#"
            RUN_STARTED
            RUN_ERROR message="The agent stopped before it had finished." code=AGENT_ENDED_EARLY timestamp=1790000000000
        "#);
}

#[test]
fn a_stream_that_stops_without_an_end_closes_its_text_and_fails() {
    scene([start(), text("R1", "B1", "half")]).gives(r#"
            RUN_STARTED
            TEXT_MESSAGE_START messageId=id-1 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-1 delta=half
            TEXT_MESSAGE_END messageId=id-1
            RUN_ERROR message="The agent stopped before it had finished." code=AGENT_ENDED_EARLY timestamp=1790000000000
        "#);
}

#[test]
fn a_second_start_emits_nothing_and_what_follows_the_end_is_left_out() {
    scene([start(), start(), end(), text("R1", "B1", "late"), end()]).gives(
        r#"
            RUN_STARTED
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn an_end_closes_text_reasoning_and_calls_in_this_order() {
    let events = [
        start(),
        call("R1", "c1", "find"),
        call("R1", "c2", "find"),
        think("R1", "K", "hm"),
        text("R1", "B1", "so"),
        end(),
    ];
    scene(events).reasoning().excuse(&["TOOL-15"]).gives(
        r#"
            RUN_STARTED
            TOOL_CALL_START toolCallId=c1 toolCallName=find parentMessageId=id-1
            TOOL_CALL_START toolCallId=c2 toolCallName=find parentMessageId=id-1
            REASONING_START messageId=id-2
            REASONING_MESSAGE_START messageId=id-2 role=reasoning
            REASONING_MESSAGE_CONTENT messageId=id-2 delta=hm
            REASONING_MESSAGE_END messageId=id-2
            REASONING_END messageId=id-2
            TEXT_MESSAGE_START messageId=id-3 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-3 delta=so
            TEXT_MESSAGE_END messageId=id-3
            TOOL_CALL_END toolCallId=c1
            TOOL_CALL_END toolCallId=c2
            RUN_FINISHED outcome={"type":"success","pendingToolCallIds":["c1","c2"]}
        "#,
    );
}

#[test]
fn a_reached_limit_is_no_success() {
    let limit = event(Kind::ExceedMaxIters { max_iters: Some(3) });
    let events = [start(), limit, text("R1", "B1", "summary so far"), text_end("R1", "B1"), end()];
    scene(events).gives(r#"
            RUN_STARTED
            TEXT_MESSAGE_START messageId=id-1 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-1 delta="summary so far"
            TEXT_MESSAGE_END messageId=id-1
            RUN_FINISHED outcome={"type":"cancelled"} metadata={"agentscope.reason":"max_iterations","agentscope.maxIters":3}
        "#);
}

#[test]
fn an_interrupted_agent_ends_cancelled_with_its_recovery_text() {
    let events =
        [start(), text("R1", "B1", "I was"), result_message("INTERRUPTED", "I stopped."), end()];
    scene(events).gives(
        r#"
            RUN_STARTED
            TEXT_MESSAGE_START messageId=id-1 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-1 delta="I was"
            TEXT_MESSAGE_END messageId=id-1
            TEXT_MESSAGE_START messageId=id-2 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-2 delta="I stopped."
            TEXT_MESSAGE_END messageId=id-2
            RUN_FINISHED outcome={"type":"cancelled"} metadata={"agentscope.reason":"interrupted"}
        "#,
    );
}

#[test]
fn the_reason_of_a_python_end_decides() {
    scene([start(), end_with(EndReason::Completed)]).gives(
        r#"
            RUN_STARTED
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
    scene([start(), end_with(EndReason::Interrupted)]).gives(
        r#"
            RUN_STARTED
            RUN_FINISHED outcome={"type":"cancelled"} metadata={"agentscope.reason":"interrupted"}
        "#,
    );
    scene([start(), end_with(EndReason::MaxIterations)]).gives(r#"
            RUN_STARTED
            RUN_FINISHED outcome={"type":"cancelled"} metadata={"agentscope.reason":"max_iterations"}
        "#);
    scene([start(), end_with(failure("rate_limit", "Slow down."))]).gives(
        r#"
            RUN_STARTED
            RUN_ERROR message="Slow down." code=MODEL_RATE_LIMITED timestamp=1790000000000
        "#,
    );
    scene([start(), end_with(failure("secret_class", "key=123"))]).gives(
        r#"
            RUN_STARTED
            RUN_ERROR message="The agent failed." code=UPSTREAM_ERROR timestamp=1790000000000
        "#,
    );
}

#[test]
fn a_failure_before_any_event_begins_the_run_first() {
    let failed = StreamEnd::Failed(RunFailure::new("INTERNAL_ERROR", "It failed."));
    scene([]).ends(failed).gives(
        r#"
            RUN_STARTED
            RUN_ERROR message="It failed." code=INTERNAL_ERROR timestamp=1790000000000
        "#,
    );
}

#[test]
fn a_failure_closes_what_is_open_before_the_error() {
    let failed = || StreamEnd::Failed(RunFailure::new("TIMEOUT_ERROR", "Too long."));
    scene([start(), text("R1", "B1", "half")]).ends(failed()).gives(
        r#"
            RUN_STARTED
            TEXT_MESSAGE_START messageId=id-1 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-1 delta=half
            TEXT_MESSAGE_END messageId=id-1
            RUN_ERROR message="Too long." code=TIMEOUT_ERROR timestamp=1790000000000
        "#,
    );
    scene([start(), think("R1", "K", "half")]).reasoning().ends(failed()).gives(
        r#"
            RUN_STARTED
            REASONING_START messageId=id-1
            REASONING_MESSAGE_START messageId=id-1 role=reasoning
            REASONING_MESSAGE_CONTENT messageId=id-1 delta=half
            REASONING_MESSAGE_END messageId=id-1
            REASONING_END messageId=id-1
            RUN_ERROR message="Too long." code=TIMEOUT_ERROR timestamp=1790000000000
        "#,
    );
    scene([start(), call("R1", "c1", "find")]).ends(failed()).gives(
        r#"
            RUN_STARTED
            TOOL_CALL_START toolCallId=c1 toolCallName=find parentMessageId=id-1
            TOOL_CALL_END toolCallId=c1
            RUN_ERROR message="Too long." code=TIMEOUT_ERROR timestamp=1790000000000
        "#,
    );
}

#[test]
fn a_run_that_is_stopped_on_purpose_is_cancelled() {
    scene([start(), text("R1", "B1", "half")]).ends(StreamEnd::Cancelled("cancelled")).gives(
        r#"
            RUN_STARTED
            TEXT_MESSAGE_START messageId=id-1 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-1 delta=half
            TEXT_MESSAGE_END messageId=id-1
            RUN_FINISHED outcome={"type":"cancelled"} metadata={"agentscope.reason":"cancelled"}
        "#,
    );
}

#[test]
fn old_clients_can_have_a_finish_after_the_error() {
    scene([start()])
        .with(|options| options.emit_run_finished_after_error = true)
        .excuse(&["LIFE-3"])
        .gives(r#"
            RUN_STARTED
            RUN_ERROR message="The agent stopped before it had finished." code=AGENT_ENDED_EARLY timestamp=1790000000000
            RUN_FINISHED
        "#);
}

#[test]
fn steps_stand_around_model_calls_and_rounds_of_tools() {
    let events = [
        start(),
        model("R1"),
        call("R1", "c1", "find"),
        call_end("c1"),
        model_end("R1"),
        result_start("c1", "find"),
        output("c1", "found"),
        result_end("c1"),
        model("R2"),
        text("R2", "B1", "done"),
        text_end("R2", "B1"),
        model_end("R2"),
        end(),
    ];
    scene(events).with(|options| options.emit_step_events = true).gives(
        r#"
            RUN_STARTED
            STEP_STARTED stepName=model_call
            TOOL_CALL_START toolCallId=c1 toolCallName=find parentMessageId=id-1
            TOOL_CALL_END toolCallId=c1
            STEP_FINISHED stepName=model_call
            STEP_STARTED stepName=tool_round
            TOOL_CALL_RESULT messageId=id-2 toolCallId=c1 content=found role=tool
            STEP_FINISHED stepName=tool_round
            STEP_STARTED stepName=model_call
            TEXT_MESSAGE_START messageId=id-3 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-3 delta=done
            TEXT_MESSAGE_END messageId=id-3
            STEP_FINISHED stepName=model_call
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}
