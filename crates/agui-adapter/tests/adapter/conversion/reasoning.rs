//! Thinking.

use serde_json::json;

use agui_adapter::{
    model::{AgentEvent, AgentEventKind},
    options::{AdapterOptions, EnricherSpec, Peer, SubagentEvents},
    outbound::{Extensions, RunSetup},
};

use super::{Run, play, script::*, support};

fn reasoning() -> Run {
    Run::with(|options| options.enable_reasoning = true)
}

#[test]
fn thinking_is_nothing_by_default() {
    let lines = joined![start(), think("secret"), think_end(), text("b"), end()];
    play(&lines).gives(&[
        "TEXT id-1",
        "TEXT+ id-1 b",
        "TEXT. id-1",
        "FINISHED {\"outcome\":{\"type\":\"success\"}}",
    ]);
}

#[test]
fn each_block_is_a_span_and_closes_before_text_and_calls() {
    let lines = joined![start(), think("a"), text("b"), think("c"), call_start("c1", "f"), end()];
    reasoning().play(&lines).gives(&[
        "SPAN id-1",
        "THINK id-1",
        "THINK+ id-1 a",
        "THINK. id-1",
        "SPAN. id-1",
        "TEXT id-2",
        "TEXT+ id-2 b",
        "TEXT. id-2",
        "SPAN id-3",
        "THINK id-3",
        "THINK+ id-3 c",
        "THINK. id-3",
        "SPAN. id-3",
        "CALL c1 f id-2",
        "CALL. c1",
        "FINISHED {\"outcome\":{\"type\":\"success\",\"pendingToolCallIds\":[\"c1\"]}}",
    ]);
}

#[test]
fn a_block_without_characters_is_nothing() {
    let lines = joined![start(), think(""), think_end(), end()];
    reasoning().play(&lines).gives(&["FINISHED {\"outcome\":{\"type\":\"success\"}}"]);
}

#[test]
fn thinking_without_end_closes_at_the_end_of_the_run() {
    reasoning().play(&joined![start(), think("a"), end()]).gives(&[
        "SPAN id-1",
        "THINK id-1",
        "THINK+ id-1 a",
        "THINK. id-1",
        "SPAN. id-1",
        "FINISHED {\"outcome\":{\"type\":\"success\"}}",
    ]);
}

/// Thinking can travel in a block of its own, in a finished message, in an event nobody knows, in
/// a hint, and beside every event as the agent's own one.
#[test]
fn switched_off_thinking_leaks_by_no_way() {
    let secret = "SECRET-THOUGHT";
    let block = json!({ "type": "thinking", "thinking": secret });
    let lines = joined![
        start(),
        think(secret),
        think_end(),
        any("NEW_KIND", json!({ "block": block, "list": [block], "thinking": secret })),
        any("HINT_BLOCK", json!({ "replyId": "R", "blockId": "h", "hint": secret })),
        from("main/a", think(secret)),
        any(
            "AGENT_RESULT",
            json!({ "result": { "id": "m", "name": "n", "role": "ASSISTANT", "content": [block] } })
        ),
        text("b"),
        end(),
    ];
    for mode in [SubagentEvents::Attributed, SubagentEvents::Custom, SubagentEvents::Native] {
        let mut run = Run::with(|options| {
            options.enrichers = vec![EnricherSpec::RawEvent];
            options.subagent_events = mode;
        });
        run.keep_raw = true;
        let sent = run.play(&lines).lines().concat();
        assert!(sent.contains("NEW_KIND"));
        assert!(!sent.contains(secret), "{sent}");
    }
}

#[test]
fn an_encrypted_artefact_hangs_on_the_message_of_its_block() {
    let options = AdapterOptions { enable_reasoning: true, ..AdapterOptions::default() };
    let setup = RunSetup::new(std::sync::Arc::new(support::input("{}")), Peer::Current);
    let mut adapter = support::adapter(setup, options, Extensions::default());
    let end = |encrypted: &str| AgentEventKind::ThinkingBlockEnd {
        reply: "R".to_owned(),
        block: "b".to_owned(),
        encrypted: Some(encrypted.to_owned()),
    };
    let delta = AgentEventKind::ThinkingBlockDelta {
        reply: "R".to_owned(),
        block: "b".to_owned(),
        delta: "a".to_owned(),
    };
    let mut events = Vec::new();
    for kind in [delta, end("sig-1"), end("sig-2")] {
        assert!(adapter.on_event(&AgentEvent::local(kind), &mut events).is_none());
    }
    let lines: Vec<_> = events
        .iter()
        .map(|event| super::line(serde_json::to_value(event).expect("json")))
        .collect();
    let value = "REASONING_ENCRYPTED_VALUE";
    assert_eq!(
        lines,
        [
            "RUN t1 r1 1.0".to_owned(),
            "SPAN id-1".to_owned(),
            "THINK id-1".to_owned(),
            "THINK+ id-1 a".to_owned(),
            "THINK. id-1".to_owned(),
            format!(
                "{value} {}",
                json!({ "subtype": "message", "entityId": "id-1", "encryptedValue": "sig-1" })
            ),
            "SPAN. id-1".to_owned(),
            "SPAN id-2".to_owned(),
            "THINK id-2".to_owned(),
            "THINK. id-2".to_owned(),
            format!(
                "{value} {}",
                json!({ "subtype": "message", "entityId": "id-2", "encryptedValue": "sig-2" })
            ),
            "SPAN. id-2".to_owned(),
        ]
    );
}
