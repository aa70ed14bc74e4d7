//! Messages in the form of AgentScope Python 2, which rebuilds its `Msg`s from them
//! (`Msg.model_validate`).
//!
//! That form has no role for tools: a tool's answer is a block of the assistant's message that
//! made the call. Members that Python fills in itself (block ids, times) are left out, and so is
//! what this server keeps in metadata for its own use.

use serde_json::{Value, json};

use crate::kept::AGUI_KEY;
use crate::model::msg::{Block, MediaKind, MediaSource, Msg, Role};

/// The messages of a history.
///
/// Calls are `finished`, answered or not: AgentScope would run a pending one, and a history that a
/// client sent must never make a tool run. A message without a name gets the name of its role,
/// since model APIs refuse an empty one.
pub fn python_msgs(msgs: &[Msg]) -> Vec<Value> {
    let mut written: Vec<Value> = Vec::with_capacity(msgs.len());
    for msg in msgs {
        let content: Vec<Value> = msg.content.iter().map(block).collect();
        if msg.role == Role::Tool
            && let Some(calls) = written.last_mut().and_then(assistant_content)
        {
            calls.extend(content);
            continue;
        }
        written.push(message(msg, content));
    }
    written
}

fn message(msg: &Msg, content: Vec<Value>) -> Value {
    let role = role(msg.role);
    let name = if msg.name.is_empty() { role } else { &msg.name };
    let mut metadata = msg.metadata.clone();
    metadata.shift_remove(AGUI_KEY);
    let mut message = json!({"name": name, "role": role, "content": content});
    if !msg.id.is_empty() {
        message["id"] = msg.id.as_str().into();
    }
    if !metadata.is_empty() {
        message["metadata"] = Value::Object(metadata);
    }
    message
}

/// The content of a message, if it is the assistant's.
fn assistant_content(message: &mut Value) -> Option<&mut Vec<Value>> {
    if message["role"] != role(Role::Assistant) {
        return None;
    }
    message["content"].as_array_mut()
}

fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant | Role::Tool => "assistant",
    }
}

fn block(block: &Block) -> Value {
    match block {
        Block::Text { text } => json!({"type": "text", "text": text}),
        Block::Thinking { thinking, encrypted } => {
            let block = json!({"type": "thinking", "thinking": thinking});
            with_artefact(block, encrypted.as_ref())
        }
        Block::Media { kind, source, name, .. } => {
            let mut block = json!({"type": "data", "source": media(*kind, source)});
            if let Some(name) = name {
                block["name"] = name.as_str().into();
            }
            block
        }
        Block::ToolUse { call, encrypted } => {
            let block = json!({
                "type": "tool_call", "id": call.id, "name": call.name, "input": call.arguments,
                "state": "finished",
            });
            with_artefact(block, encrypted.as_ref())
        }
        Block::ToolResult { call_id, name, output, state, metadata } => json!({
            "type": "tool_result", "id": call_id, "name": name,
            "output": output.iter().filter(|part| is_output(part)).map(self::block).collect::<Value>(),
            "state": state.as_str(), "metadata": metadata,
        }),
        Block::Hint { text } => json!({"type": "hint", "hint": text}),
    }
}

/// What a Python tool result can hold.
fn is_output(block: &Block) -> bool {
    matches!(block, Block::Text { .. } | Block::Media { .. })
}

/// An extra member, which Python's thinking blocks keep and its other blocks drop.
fn with_artefact(mut block: Value, encrypted: Option<&String>) -> Value {
    if let Some(encrypted) = encrypted {
        block["encrypted_value"] = encrypted.as_str().into();
    }
    block
}

/// Python needs a media type, and looks at its first part to know what it deals with.
fn media(kind: MediaKind, source: &MediaSource) -> Value {
    let media_type = source.media_type().unwrap_or(match kind {
        MediaKind::Image => "image/*",
        MediaKind::Audio => "audio/*",
        MediaKind::Video => "video/*",
        MediaKind::Document => "application/octet-stream",
    });
    match source {
        MediaSource::Base64 { data, .. } => {
            json!({"type": "base64", "media_type": media_type, "data": data})
        }
        MediaSource::Url { url, .. } => {
            json!({"type": "url", "media_type": media_type, "url": url})
        }
    }
}

#[cfg(test)]
mod tests {
    use agui_protocol::RunAgentInput;

    use super::*;
    use crate::inbound::{InboundOptions, to_msgs};

    #[test]
    fn a_history_of_a_client_becomes_messages_that_python_can_rebuild() {
        let input: RunAgentInput = serde_json::from_value(json!({
            "threadId": "t", "runId": "r", "messages": [
                {"id": "s", "role": "developer", "content": "Be brief."},
                {"id": "u", "role": "user", "name": "Ann", "content": [
                    {"type": "text", "id": "p", "text": "Look:"},
                    {"type": "image", "source": {"type": "url", "value": "https://x.example/a"}},
                    {"type": "document", "metadata": {"filename": "a.pdf"}, "source":
                        {"type": "data", "value": "AAAA", "mimeType": "application/pdf"}},
                ]},
                {"id": "th", "role": "reasoning", "content": "Hm.", "encryptedValue": "e"},
                {"id": "a", "role": "assistant", "content": "Two calls.", "toolCalls": [
                    {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":"}},
                    {"id": "c2", "type": "function", "function": {"name": "g", "arguments": "{}"}},
                ]},
                {"id": "r1", "role": "tool", "toolCallId": "c1", "content": "", "error": "broken"},
                {"id": "b", "role": "assistant", "content": "Done."},
            ],
        }))
        .unwrap();
        let options = InboundOptions { accept_client_system_messages: true, ..Default::default() };
        assert_eq!(
            Value::from(python_msgs(&to_msgs(&input.messages, &options).msgs)),
            json!([
                {"name": "system", "role": "system", "id": "s",
                    "content": [{"type": "text", "text": "Be brief."}]},
                {"name": "Ann", "role": "user", "id": "u", "content": [
                    {"type": "text", "text": "Look:"},
                    {"type": "data", "source":
                        {"type": "url", "media_type": "image/*", "url": "https://x.example/a"}},
                    {"type": "data", "name": "a.pdf", "source":
                        {"type": "base64", "media_type": "application/pdf", "data": "AAAA"}},
                ]},
                {"name": "assistant", "role": "assistant", "id": "th", "content": [
                    {"type": "thinking", "thinking": "Hm.", "encrypted_value": "e"},
                ]},
                {"name": "assistant", "role": "assistant", "id": "a", "content": [
                    {"type": "text", "text": "Two calls."},
                    {"type": "tool_call", "id": "c1", "name": "f", "input": "{\"a\":",
                        "state": "finished"},
                    {"type": "tool_call", "id": "c2", "name": "g", "input": "{}",
                        "state": "finished"},
                    {"type": "tool_result", "id": "c1", "name": "f", "state": "error",
                        "metadata": {}, "output": [{"type": "text", "text": "broken"}]},
                ]},
                {"name": "assistant", "role": "assistant", "id": "b",
                    "content": [{"type": "text", "text": "Done."}]},
            ])
        );
    }
}
