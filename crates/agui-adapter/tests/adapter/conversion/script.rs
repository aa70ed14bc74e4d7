//! Lines of agent events, in the Java wire form unless the name says otherwise.

use serde_json::{Value, json};

fn event(kind: &str, mut members: Value) -> String {
    members["type"] = kind.into();
    members["createdAt"] = "2026-01-01T00:00:00Z".into();
    members.to_string()
}

/// Joins lists of lines.
macro_rules! script {
    ($($lines:expr),* $(,)?) => {{
        let mut all: Vec<String> = Vec::new();
        $($crate::conversion::script::Lines::add($lines, &mut all);)*
        all
    }};
}

pub(crate) use script as joined;

/// One line, or several.
pub trait Lines {
    fn add(self, to: &mut Vec<String>);
}

impl Lines for String {
    fn add(self, to: &mut Vec<String>) {
        to.push(self);
    }
}

impl Lines for &str {
    fn add(self, to: &mut Vec<String>) {
        to.push(self.to_owned());
    }
}

impl Lines for Vec<String> {
    fn add(self, to: &mut Vec<String>) {
        to.extend(self);
    }
}

/// Lines of a child.
pub fn from(source: &str, lines: impl Lines) -> Vec<String> {
    let mut all = Vec::new();
    lines.add(&mut all);
    let tagged = all.into_iter().map(|line| {
        let mut value: Value = serde_json::from_str(&line).expect("json");
        value["source"] = source.into();
        value.to_string()
    });
    tagged.collect()
}

/// Lines of the Python wire.
pub fn python(kind: &str, mut members: Value) -> String {
    members["type"] = kind.into();
    members["created_at"] = "2026-01-01T00:00:00.000001".into();
    if members.get("reply_id").is_none() {
        members["reply_id"] = "P".into();
    }
    members.to_string()
}

pub fn start() -> String {
    event("AGENT_START", json!({ "replyId": "R", "name": "Friday" }))
}

pub fn end() -> String {
    event("AGENT_END", json!({ "replyId": "R" }))
}

pub fn model_start() -> String {
    event("MODEL_CALL_START", json!({ "replyId": "R1" }))
}

pub fn model_end() -> String {
    event("MODEL_CALL_END", json!({ "replyId": "R1" }))
}

pub fn text(delta: &str) -> String {
    text_of("R1", "text", delta)
}

pub fn text_of(reply: &str, block: &str, delta: &str) -> String {
    event("TEXT_BLOCK_DELTA", json!({ "replyId": reply, "blockId": block, "delta": delta }))
}

pub fn text_start() -> String {
    event("TEXT_BLOCK_START", json!({ "replyId": "R1", "blockId": "text" }))
}

pub fn text_end() -> String {
    event("TEXT_BLOCK_END", json!({ "replyId": "R1", "blockId": "text" }))
}

pub fn think(delta: &str) -> String {
    event("THINKING_BLOCK_DELTA", json!({ "replyId": "R1", "blockId": "thinking", "delta": delta }))
}

pub fn think_end() -> String {
    event("THINKING_BLOCK_END", json!({ "replyId": "R1", "blockId": "thinking" }))
}

pub fn call_start(id: &str, name: &str) -> String {
    let members = json!({ "replyId": "R1", "toolCallId": id, "toolCallName": name });
    event("TOOL_CALL_START", members)
}

pub fn args(id: &str, delta: &str) -> String {
    let members = json!({ "replyId": "R1", "toolCallId": id,
        "toolCallName": "__fragment__", "delta": delta });
    event("TOOL_CALL_DELTA", members)
}

pub fn call_end(id: &str) -> String {
    event("TOOL_CALL_END", json!({ "replyId": "R1", "toolCallId": id, "toolCallName": "x" }))
}

/// A call from its start to its end.
pub fn call(id: &str, name: &str, arguments: &str) -> Vec<String> {
    vec![call_start(id, name), args(id, arguments), call_end(id)]
}

pub fn result_start(id: &str, name: &str) -> String {
    let members = json!({ "replyId": "R2", "toolCallId": id, "toolCallName": name });
    event("TOOL_RESULT_START", members)
}

pub fn result_text(id: &str, delta: &str) -> String {
    event("TOOL_RESULT_TEXT_DELTA", json!({ "replyId": "R2", "toolCallId": id, "delta": delta }))
}

pub fn result_data(id: &str, data: Value) -> String {
    event("TOOL_RESULT_DATA_DELTA", json!({ "replyId": "R2", "toolCallId": id, "data": data }))
}

pub fn result_end(id: &str, state: &str) -> String {
    event("TOOL_RESULT_END", json!({ "replyId": "R2", "toolCallId": id, "state": state }))
}

/// A whole result.
pub fn result(id: &str, text: &str) -> Vec<String> {
    joined![result_start(id, "find"), nameless_result(id, text)]
}

/// A result that begins without saying which tool it is of.
pub fn nameless_result(id: &str, text: &str) -> Vec<String> {
    vec![result_text(id, text), result_end(id, "success")]
}

fn tool_use(id: &str, name: &str) -> Value {
    json!({ "type": "tool_use", "id": id, "name": name, "input": { "a": 1 },
        "content": "{\"a\":1}", "state": "asking" })
}

pub fn confirm(calls: &[(&str, &str)]) -> String {
    let calls: Vec<Value> = calls.iter().map(|(id, name)| tool_use(id, name)).collect();
    event("REQUIRE_USER_CONFIRM", json!({ "replyId": "R2", "toolCalls": calls }))
}

pub fn external(calls: &[(&str, &str)]) -> String {
    let calls: Vec<Value> = calls.iter().map(|(id, name)| tool_use(id, name)).collect();
    event("REQUIRE_EXTERNAL_EXECUTION", json!({ "replyId": "R2", "toolCalls": calls }))
}

pub fn confirmed(id: &str, name: &str, yes: bool) -> String {
    let results = json!([{ "confirmed": yes, "toolCall": tool_use(id, name) }]);
    event("USER_CONFIRM_RESULT", json!({ "replyId": "R2", "confirmResults": results }))
}

pub fn executed(id: &str, name: &str, text: &str) -> String {
    let results = json!([{ "type": "tool_result", "id": id, "name": name, "state": "success",
        "output": [{ "type": "text", "text": text }] }]);
    event("EXTERNAL_EXECUTION_RESULT", json!({ "replyId": "R2", "toolResults": results }))
}

pub fn agent_result(text: &str, reason: &str) -> String {
    let content =
        if text.is_empty() { json!([]) } else { json!([{ "type": "text", "text": text }]) };
    event(
        "AGENT_RESULT",
        json!({ "result": { "id": "m", "name": "Friday", "role": "ASSISTANT", "content": content,
            "metadata": { "agentscope_generate_reason": reason } } }),
    )
}

pub fn custom(name: &str, value: Value) -> String {
    event("CUSTOM", json!({ "name": name, "value": value }))
}

pub fn any(kind: &str, members: Value) -> String {
    event(kind, members)
}
