//! The wire of Gemini's `streamGenerateContent`, piece by piece.

use serde_json::{Value, json};

use super::answer::Answer;

/// A chunk with these parts.
pub(crate) fn parts(parts: Value) -> Value {
    chunk(json!({"content": {"role": "model", "parts": parts}, "index": 0}))
}

fn chunk(candidate: Value) -> Value {
    json!({"candidates": [candidate], "modelVersion": "m", "responseId": "resp_1"})
}

/// More text.
pub(crate) fn text(text: &str) -> Value {
    parts(json!([{"text": text}]))
}

/// More thinking.
pub(crate) fn thought(text: &str) -> Value {
    parts(json!([{"text": text, "thought": true}]))
}

/// A call, which is always whole, with its signature, if it has one.
pub(crate) fn call(name: &str, arguments: &Value, signature: Option<&str>) -> Value {
    let mut part = json!({"functionCall": {"name": name, "args": arguments}});
    if let Some(signature) = signature {
        part["thoughtSignature"] = signature.into();
    }
    parts(json!([part]))
}

/// The chunk that ends the answer.
pub(crate) fn finish(reason: &str, usage: Option<&Value>) -> Value {
    let content = json!({"role": "model", "parts": [{"text": ""}]});
    let mut chunk = chunk(json!({"content": content, "finishReason": reason, "index": 0}));
    if let Some(usage) = usage {
        chunk["usageMetadata"] = usage.clone();
    }
    chunk
}

/// A whole stream of these chunks.
pub(crate) fn answer(chunks: impl IntoIterator<Item = Value>) -> Answer {
    Answer::events(chunks)
}

/// A failure, in the stream or in its place.
pub(crate) fn error(code: u16, status: &str, message: &str) -> Value {
    json!({"error": {"code": code, "message": message, "status": status}})
}
