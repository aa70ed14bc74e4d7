//! Clients older than 1.0.

use agui_adapter::{options::Peer, outbound::StreamEnd};
use serde_json::json;

use super::{
    FRONTEND, Run,
    interrupts::{approval, interrupts},
    script::*,
    subagents::told,
};

fn legacy(json: &str) -> Run {
    let mut run = Run { peer: Peer::Legacy, ..Run::with_input(json) };
    run.input.protocol_version = None;
    run
}

#[test]
fn a_success_has_no_outcome() {
    legacy("{}").play(&joined![start(), end()]).gives(&["FINISHED"]);
    let lines = joined![
        start(),
        call("c1", "paint", "{}"),
        result_start("c1", "paint"),
        result_end("c1", "running"),
        external(&[("c1", "paint")]),
        end()
    ];
    legacy(FRONTEND).play(&lines).gives(&[
        "CALL c1 paint id-1",
        "CALL+ c1 {}",
        "CALL. c1",
        "FINISHED",
    ]);
}

#[test]
fn a_cancelled_run_is_an_error() {
    let cancelled = "ERROR CANCELLED The run was cancelled.";
    let limit = any("EXCEED_MAX_ITERS", json!({ "replyId": "", "maxIters": 3 }));
    let metadata =
        " {\"metadata\":{\"agentscope.reason\":\"max_iterations\",\"agentscope.maxIters\":3}}";
    legacy("{}").play(&joined![start(), limit, end()]).gives(&[&format!("{cancelled}{metadata}")]);
    let stopped = Run { end: StreamEnd::Cancelled("cancelled"), ..legacy("{}") };
    let metadata = " {\"metadata\":{\"agentscope.reason\":\"cancelled\"}}";
    stopped.play(&joined![start()]).gives(&[&format!("{cancelled}{metadata}")]);
}

#[test]
fn an_interrupt_stays_one() {
    let played = legacy("{}").play(&joined![start(), confirm(&[("c1", "find")]), end()]);
    let before = ["CALL c1 find id-1", "CALL+ c1 {\"a\":1}", "CALL. c1"];
    interrupts(&played, &before, &[approval("R2:c1", "c1", "find")]);
}

#[test]
fn parts_of_a_result_become_their_text() {
    let image =
        json!({ "type": "image", "source": { "type": "url", "url": "https://example.invalid/a" } });
    let lines = joined![
        start(),
        call("c1", "f", "{}"),
        call("c2", "f", "{}"),
        result_text("c1", "a"),
        result_data("c1", image.clone()),
        nameless_result("c1", "b"),
        result_data("c2", image),
        result_end("c2", "success"),
        end(),
    ];
    legacy("{}").play(&lines).gives(&[
        "CALL c1 f id-1",
        "CALL+ c1 {}",
        "CALL c2 f id-1",
        "CALL+ c2 {}",
        "CALL. c1",
        "CALL. c2",
        "RESULT id-2 c1 ab",
        "RESULT id-3 c2 ",
        "FINISHED",
    ]);
}

#[test]
fn a_child_is_told_without_subagent_events() {
    let child =
        joined![any("AGENT_START", json!({ "name": "R" })), text("x"), any("AGENT_END", json!({}))];
    let lines = joined![start(), from("main/a", child), end()];
    let told = |kind: &str, members| told(("main/a", Some("id-1")), kind, members);
    legacy("{}").play(&lines).gives(&[
        &told("lifecycle", json!({ "type": "AGENT_START", "name": "R" })),
        &told("text", json!({ "type": "TEXT_BLOCK_DELTA", "delta": "x" })),
        &told("lifecycle", json!({ "type": "AGENT_END", "name": "R" })),
        "FINISHED",
    ]);
}
