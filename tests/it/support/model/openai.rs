//! The wire of OpenAI's chat completions, piece by piece.

use serde_json::{Value, json};

use super::answer::{Answer, Frame};

/// A chunk with this delta.
pub(crate) fn delta(delta: Value) -> Value {
    chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]))
}

fn chunk(choices: Value) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": choices,
    })
}

/// More text.
pub(crate) fn text(text: &str) -> Value {
    delta(json!({"content": text}))
}

/// More thinking, in the field of most providers.
pub(crate) fn reasoning_content(text: &str) -> Value {
    delta(json!({"reasoning_content": text}))
}

/// More thinking, in the field of OpenRouter and vLLM.
pub(crate) fn reasoning(text: &str) -> Value {
    delta(json!({"reasoning": text}))
}

/// The start of a call, as OpenAI has it.
pub(crate) fn call(index: usize, id: &str, name: &str, arguments: &str) -> Value {
    calls(json!([{
        "index": index, "id": id, "type": "function",
        "function": {"name": name, "arguments": arguments},
    }]))
}

/// More argument text of a call, by its index alone.
pub(crate) fn arguments(index: usize, text: &str) -> Value {
    calls(json!([{"index": index, "function": {"arguments": text}}]))
}

/// Entries of `tool_calls` as they are.
pub(crate) fn calls(calls: Value) -> Value {
    delta(json!({"tool_calls": calls}))
}

/// The chunk that ends the choice.
pub(crate) fn finish(reason: &str) -> Value {
    chunk(json!([{"index": 0, "delta": {}, "finish_reason": reason}]))
}

/// The chunk behind it that tells the usage.
pub(crate) fn usage(usage: Value) -> Value {
    let mut chunk = chunk(json!([]));
    chunk["usage"] = usage;
    chunk
}

/// A whole stream: these chunks and its end.
pub(crate) fn answer(chunks: impl IntoIterator<Item = Value>) -> Answer {
    let done = Frame::raw("[DONE]");
    Answer::events(chunks.into_iter().map(Frame::from).chain([done]))
}

/// A whole answer of text alone.
pub(crate) fn says(words: &[&str]) -> Answer {
    answer(words.iter().map(|words| text(words)).chain([finish("stop")]))
}

/// A whole answer of one call.
pub(crate) fn asks(id: &str, name: &str, arguments: &str) -> Answer {
    answer([call(0, id, name, arguments), finish("tool_calls")])
}

/// A failure.
pub(crate) fn failure(status: u16, error: &Value) -> Answer {
    Answer::json(status, &json!({"error": error}))
}

/// Says all that the request says: its body, as text.
pub(crate) fn echo(request: &super::Request) -> Answer {
    says(&[&request.text])
}

/// The messages of a request, a line for each: role and text, calls and results.
pub(crate) fn lines(body: &Value) -> Vec<String> {
    body["messages"].as_array().unwrap().iter().map(line).collect()
}

fn line(message: &Value) -> String {
    let mut said = vec![words(&message["content"])];
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        let function = &call["function"];
        let [name, arguments, id] = [&function["name"], &function["arguments"], &call["id"]];
        let [name, arguments, id] = [name, arguments, id].map(|text| text.as_str().unwrap());
        said.push(format!("{name}({arguments}) as {id}"));
    }
    said.retain(|words| !words.is_empty());
    let call = message["tool_call_id"].as_str().map(|id| format!(" {id}")).unwrap_or_default();
    format!("{}{call}: {}", message["role"].as_str().unwrap(), said.join(" | "))
}

fn words(content: &Value) -> String {
    match content {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
