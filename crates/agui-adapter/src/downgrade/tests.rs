use agui_protocol::Event;
use serde_json::{Value, json};

use super::*;

fn event(value: Value) -> Event {
    serde_json::from_value(value).unwrap()
}

fn stage(subagent_events: SubagentEvents) -> Downgrade {
    let options = AdapterOptions { subagent_events, ..AdapterOptions::default() };
    Downgrade::new(&options, "t1".into(), "r1".into())
}

/// What leaves of one event, and what was said to be lost.
fn apply(value: Value) -> (Option<Value>, Vec<Loss>) {
    let mut stage = stage(SubagentEvents::Auto);
    let out = stage.apply(event(value), 1234).map(|event| serde_json::to_value(event).unwrap());
    (out, stage.warned)
}

fn finished(outcome: Value) -> Value {
    json!({
        "type": "RUN_FINISHED", "threadId": "t1", "runId": "r1", "outcome": outcome,
        "usage": [{"model": "m", "inputTokens": 3}], "metadata": {"agentscope.reason": "x"},
    })
}

#[test]
fn success_has_no_outcome() {
    let bare = json!({
        "type": "RUN_FINISHED", "threadId": "t1", "runId": "r1",
        "usage": [{"model": "m", "inputTokens": 3}], "metadata": {"agentscope.reason": "x"},
    });
    for outcome in
        [json!({"type": "success"}), json!({"type": "success", "pendingToolCallIds": ["c1"]})]
    {
        assert_eq!(apply(finished(outcome)), (Some(bare.clone()), vec![]));
    }
}

#[test]
fn an_interrupt_keeps_its_outcome() {
    let asks =
        finished(json!({"type": "interrupt", "interrupts": [{"id": "i", "reason": "tool_call"}]}));
    assert_eq!(apply(asks.clone()), (Some(asks), vec![]));
}

#[test]
fn a_cancelled_run_ends_with_an_error_that_keeps_usage_and_metadata() {
    let error = json!({
        "type": "RUN_ERROR", "message": "The run was cancelled.", "code": "CANCELLED",
        "usage": [{"model": "m", "inputTokens": 3}], "timestamp": 1234,
        "metadata": {"agentscope.reason": "x"},
    });
    let cancelled = finished(json!({"type": "cancelled"}));
    assert_eq!(apply(cancelled.clone()), (Some(error.clone()), vec![Loss::CancelledOutcome]));
    let stamped = Event { timestamp: Some(7), ..event(cancelled) };
    let out = stage(SubagentEvents::Auto).apply(stamped, 1234).unwrap();
    assert_eq!(out, Event { timestamp: Some(7), ..event(error) });
}

#[test]
fn lists_of_a_result_become_their_text() {
    let result = |content: Value| json!({"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c", "content": content});
    let image =
        json!({"type": "image", "source": {"type": "url", "value": "https://example.com/a.png"}});
    let text = |text: &str| json!({"type": "text", "text": text});
    let cases = [
        (json!("as it is"), "as it is", vec![]),
        (json!([text("a"), text("b")]), "ab", vec![]),
        (json!([text("a"), image, text("b")]), "ab", vec![Loss::ResultParts]),
        (json!([image]), "", vec![Loss::ResultParts]),
        (json!([]), "", vec![]),
    ];
    for (content, flat, lost) in cases {
        assert_eq!(apply(result(content)), (Some(result(flat.into())), lost));
    }
}

#[test]
fn messages_of_snapshots_and_echoes_are_treated_alike() {
    let file = json!({"type": "document", "source": {"type": "file", "value": "f1"}});
    let image = json!({"type": "image", "source": {"type": "data", "value": "AA", "mimeType": "image/png"}});
    let text = json!({"type": "text", "text": "a"});
    let before = json!([
        {"role": "user", "id": "u", "content": [text, file, image]},
        {"role": "assistant", "id": "a", "content": "x", "subagentRunId": "s"},
        {"role": "tool", "id": "r", "toolCallId": "c", "content": [text, image]},
    ]);
    let after = json!([
        {"role": "user", "id": "u", "content": [text, image]},
        {"role": "assistant", "id": "a", "content": "x", "subagentRunId": "s"},
        {"role": "tool", "id": "r", "toolCallId": "c", "content": "a"},
    ]);
    let lost = vec![Loss::FileParts, Loss::ResultParts];
    let snapshot = |messages: &Value| json!({"type": "MESSAGES_SNAPSHOT", "messages": messages});
    assert_eq!(apply(snapshot(&before)), (Some(snapshot(&after)), lost.clone()));
    let started = |messages: &Value| {
        json!({
            "type": "RUN_STARTED", "threadId": "t1", "runId": "r1", "protocolVersion": "1.0",
            "input": {"threadId": "t1", "runId": "r1", "messages": messages, "tools": [], "context": []},
        })
    };
    assert_eq!(apply(started(&before)), (Some(started(&after)), lost));
}

#[test]
fn empty_deltas_are_left_out() {
    let deltas = [
        json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": ""}),
        json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": "m", "delta": ""}),
        json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": ""}),
    ];
    for mut delta in deltas {
        assert_eq!(apply(delta.clone()), (None, vec![]));
        delta["metadata"] = json!({"k": 1});
        assert_eq!(apply(delta.clone()), (None, vec![Loss::DeltaMetadata]));
        delta["delta"] = json!("x");
        assert_eq!(apply(delta.clone()), (Some(delta), vec![]));
    }
}

#[test]
fn invocations_are_not_announced_unless_configured() {
    let announcements = [
        json!({"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "n"}),
        json!({"type": "SUBAGENT_FINISHED", "subagentRunId": "s"}),
        json!({"type": "SUBAGENT_ERROR", "subagentRunId": "s", "message": "m"}),
    ];
    for announcement in announcements {
        assert_eq!(apply(announcement.clone()), (None, vec![Loss::SubagentEvents]));
        let mut stage = stage(SubagentEvents::Attributed);
        let event = event(announcement);
        assert_eq!(stage.apply(event.clone(), 0), Some(event));
        assert_eq!(stage.warned, [Loss::SubagentEventsKept]);
    }
}

#[test]
fn tags_metadata_versions_and_everything_else_stay() {
    let others = [
        json!({"type": "RUN_STARTED", "threadId": "t1", "runId": "r1", "protocolVersion": "1.0"}),
        json!({"type": "TEXT_MESSAGE_START", "messageId": "m", "subagentRunId": "s", "metadata": {"k": 1}}),
        json!({"type": "REASONING_START", "messageId": "m"}),
        json!({"type": "RUN_ERROR", "message": "m", "code": "C", "usage": [{"outputTokens": 1}]}),
        json!({"type": "CUSTOM", "name": "n", "value": null}),
    ];
    for other in others {
        assert_eq!(apply(other.clone()), (Some(other), vec![]));
    }
}

#[test]
fn each_loss_is_noted_once_a_run() {
    let mut stage = stage(SubagentEvents::Auto);
    let announcement = json!({"type": "SUBAGENT_FINISHED", "subagentRunId": "s"});
    for _ in 0..3 {
        assert_eq!(stage.apply(event(announcement.clone()), 0), None);
    }
    assert_eq!(stage.warned, [Loss::SubagentEvents]);
}
