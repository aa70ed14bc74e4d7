//! The wire of Anthropic's messages API, piece by piece.

use serde_json::{Value, json};

use super::answer::{Answer, Frame};

/// An event; its name is its type.
pub(crate) fn event(event: Value) -> Frame {
    Frame::named(event["type"].as_str().unwrap(), &event)
}

/// The head of an answer with what is known of its usage.
pub(crate) fn start(usage: &Value) -> Frame {
    event(json!({"type": "message_start", "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage,
    }}))
}

/// A block from its start to its end.
pub(crate) fn block(index: usize, start: &Value, deltas: &[Value]) -> Vec<Frame> {
    let mut frames =
        vec![event(json!({"type": "content_block_start", "index": index, "content_block": start}))];
    frames.extend(deltas.iter().map(|delta| {
        event(json!({"type": "content_block_delta", "index": index, "delta": delta}))
    }));
    frames.push(event(json!({"type": "content_block_stop", "index": index})));
    frames
}

/// A block of text.
pub(crate) fn text(index: usize, words: &[&str]) -> Vec<Frame> {
    let deltas = words.iter().map(|words| json!({"type": "text_delta", "text": words}));
    block(index, &json!({"type": "text", "text": ""}), &deltas.collect::<Vec<_>>())
}

/// A block of thinking with its signature.
pub(crate) fn thinking(index: usize, words: &[&str], signature: &str) -> Vec<Frame> {
    let deltas = words.iter().map(|words| json!({"type": "thinking_delta", "thinking": words}));
    let signed = json!({"type": "signature_delta", "signature": signature});
    let deltas: Vec<_> = deltas.chain([signed]).collect();
    block(index, &json!({"type": "thinking", "thinking": "", "signature": ""}), &deltas)
}

/// A call with its arguments in fragments.
pub(crate) fn call(index: usize, id: &str, name: &str, arguments: &[&str]) -> Vec<Frame> {
    let deltas =
        arguments.iter().map(|text| json!({"type": "input_json_delta", "partial_json": text}));
    let start = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
    block(index, &start, &deltas.collect::<Vec<_>>())
}

/// The end of an answer with the usage of the whole.
pub(crate) fn end(reason: &str, usage: &Value) -> Vec<Frame> {
    let delta = json!({"stop_reason": reason, "stop_sequence": null});
    vec![
        event(json!({"type": "message_delta", "delta": delta, "usage": usage})),
        event(json!({"type": "message_stop"})),
    ]
}

/// A whole stream of these events.
pub(crate) fn answer(frames: impl IntoIterator<Item = Frame>) -> Answer {
    Answer::events(frames)
}

/// A failure, in the stream or in its place.
pub(crate) fn error(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}})
}
