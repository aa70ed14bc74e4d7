//! Clients older than 1.0.

use agui_adapter::{
    options::{AdapterOptions, Peer},
    outbound::StreamEnd,
};
use serde_json::json;

use super::{Run, script::*};

fn legacy(json: &str) -> Run {
    let mut run = Run { peer: Peer::Legacy, ..Run::with_input(json) };
    run.input.protocol_version = None;
    run
}

#[test]
fn a_success_has_no_outcome() {
    legacy("{}").play(&joined![start(), end()]).gives(&["FINISHED"]);
    let tools = r#"{"tools":[{"name":"paint","description":"d"}]}"#;
    legacy(tools).play(&joined![start(), call("c1", "paint", "{}"), end()]).gives(&[
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
    assert_eq!(played.values()[4]["outcome"]["type"], "interrupt");
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
        result_text("c1", "b"),
        result_end("c1", "success"),
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
    let run = Run { options: AdapterOptions::default(), ..legacy("{}") };
    let value = |kind: &str, rest: serde_json::Value| {
        let mut value = json!({ "source": "main/a", "type": kind, "subagentRunId": "id-1" });
        for (key, member) in rest.as_object().expect("object") {
            value[key] = member.clone();
        }
        value
    };
    let custom = |name: &str, value: serde_json::Value| {
        format!("CUSTOM {}", json!({ "name": name, "value": value }))
    };
    run.play(&lines).gives(&[
        &custom("subagent.lifecycle", value("AGENT_START", json!({ "name": "R" }))),
        &custom("subagent.text", value("TEXT_BLOCK_DELTA", json!({ "delta": "x" }))),
        &custom("subagent.lifecycle", value("AGENT_END", json!({ "name": "R" }))),
        "FINISHED",
    ]);
}
