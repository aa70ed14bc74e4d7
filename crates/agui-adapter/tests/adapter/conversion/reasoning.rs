//! Thinking.

use serde_json::json;

use agui_adapter::{
    model::{AgentEvent, AgentEventKind},
    options::{EnricherSpec, SubagentEvents},
};

use super::{Run, SUCCESS, play, script::*, wire};

fn reasoning() -> Run {
    Run::with(|options| options.enable_reasoning = true)
}

#[test]
fn thinking_is_nothing_by_default() {
    let lines = joined![start(), think("secret"), think_end(), text("b"), end()];
    play(&lines).gives(&["TEXT id-1", "TEXT+ id-1 b", "TEXT. id-1", SUCCESS]);
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
    reasoning().play(&lines).gives(&[SUCCESS]);
}

#[test]
fn thinking_without_end_closes_at_the_end_of_the_run() {
    reasoning().play(&joined![start(), think("a"), end()]).gives(&[
        "SPAN id-1",
        "THINK id-1",
        "THINK+ id-1 a",
        "THINK. id-1",
        "SPAN. id-1",
        SUCCESS,
    ]);
}

#[test]
fn what_is_hidden_is_cut_out_of_an_unknown_event() {
    let secret = "SECRET-THOUGHT";
    let lines = joined![
        start(),
        any(
            "NEW_KIND",
            json!({ "thinking": secret, "hint": secret, "content": [
                { "type": "thinking", "thinking": secret }, { "type": "text", "text": "ok" }] })
        ),
        end(),
    ];
    let rest = json!({ "content": [{ "type": "text", "text": "ok" }], "type": "NEW_KIND",
        "createdAt": "2026-01-01T00:00:00Z" });
    play(&lines).gives(&[&format!("RAW {}", json!({ "event": rest })), SUCCESS]);
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
        // In CUSTOM form the thinking lets the call's end go.
        from("main/a", joined![call("c1", "f", "{}"), think(secret)]),
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
    let (reply, block) = (|| "R".to_owned(), || "b".to_owned());
    let end_block = |encrypted: &str| {
        AgentEvent::local(AgentEventKind::ThinkingBlockEnd {
            reply: reply(),
            block: block(),
            encrypted: Some(encrypted.to_owned()),
        })
    };
    let delta = AgentEvent::local(AgentEventKind::ThinkingBlockDelta {
        reply: reply(),
        block: block(),
        delta: "a".to_owned(),
    });
    let value = |message: &str, value: &str| {
        let members = json!({ "subtype": "message", "entityId": message, "encryptedValue": value });
        format!("REASONING_ENCRYPTED_VALUE {members}")
    };
    let events = [wire(start()), delta, end_block("sig-1"), end_block("sig-2"), wire(end())];
    reasoning().play_events(&events).gives(&[
        "SPAN id-1",
        "THINK id-1",
        "THINK+ id-1 a",
        "THINK. id-1",
        &value("id-1", "sig-1"),
        "SPAN. id-1",
        "SPAN id-2",
        "THINK id-2",
        "THINK. id-2",
        &value("id-2", "sig-2"),
        "SPAN. id-2",
        SUCCESS,
    ]);
}
