//! Content blocks, tool calls and messages, as they stand inside events and in stored histories.
//!
//! Lenient: a block of an unknown type is left out, an absent member is empty.

use serde_json::Value;

use super::fields::{object_of, take, text_of};
use crate::model::event::{Call, Object, ResultState};
use crate::model::msg::{Block, MediaKind, MediaSource, Msg, Role};

/// Reads one message; `None` if it is not an object. A role that nobody knows is the assistant's.
pub fn decode_msg(value: Value) -> Option<Msg> {
    let mut map = object_of(value)?;
    Some(Msg {
        id: text(&mut map, "id").unwrap_or_default(),
        name: text(&mut map, "name").unwrap_or_default(),
        role: take(&mut map, "role", "role").map_or(Role::Assistant, |role| role_of(&role)),
        content: read_content(take(&mut map, "content", "content")),
        metadata: object(&mut map, "metadata").unwrap_or_default(),
    })
}

fn role_of(role: &Value) -> Role {
    match role.as_str().map(str::to_ascii_lowercase).as_deref() {
        Some("system") => Role::System,
        Some("user") => Role::User,
        Some("tool") => Role::Tool,
        _ => Role::Assistant,
    }
}

/// Reads one content block; `None` if its type is unknown or a member that makes it is absent.
pub fn decode_block(value: Value) -> Option<Block> {
    let mut map = object_of(value)?;
    let kind = text(&mut map, "type")?;
    match kind.as_str() {
        "text" => Some(Block::Text { text: text(&mut map, "text")? }),
        "thinking" => {
            Some(Block::Thinking { thinking: text(&mut map, "thinking")?, encrypted: None })
        }
        "image" => read_media(map, Some(MediaKind::Image)),
        "audio" => read_media(map, Some(MediaKind::Audio)),
        "video" => read_media(map, Some(MediaKind::Video)),
        "data" => read_media(map, None),
        "tool_use" | "tool_call" => Some(Block::ToolUse { call: read_call(map), encrypted: None }),
        "tool_result" => Some(read_tool_result(map)),
        "hint" => Some(Block::Hint { text: hint_text(take(&mut map, "hint", "hint")) }),
        _ => None,
    }
}

/// Reads a tool call of either wire: Java's `input` object with the raw text in `content`, or
/// Python's raw text in `input`. `None` if it is not an object.
pub fn decode_call(value: Value) -> Option<Call> {
    object_of(value).map(read_call)
}

fn read_call(mut map: Object) -> Call {
    let raw = text(&mut map, "content").filter(|raw| !raw.is_empty());
    let (arguments, input) = match take(&mut map, "input", "input") {
        Some(Value::Object(input)) => {
            let arguments = raw.unwrap_or_else(|| Value::Object(input.clone()).to_string());
            (arguments, Some(input))
        }
        Some(Value::String(arguments)) => {
            let input = parse_object(&arguments);
            (arguments, input)
        }
        Some(other) => (other.to_string(), None),
        None => {
            let arguments = raw.unwrap_or_default();
            let input = parse_object(&arguments);
            (arguments, input)
        }
    };
    let suggested_rules = match take(&mut map, "suggested_rules", "suggestedRules") {
        Some(Value::Array(rules)) => rules,
        _ => Vec::new(),
    };
    Call {
        id: text(&mut map, "id").unwrap_or_default(),
        name: text(&mut map, "name").unwrap_or_default(),
        arguments,
        input,
        suggested_rules,
    }
}

/// The text parsed, if it is a JSON object.
pub(crate) fn parse_object(text: &str) -> Option<Object> {
    serde_json::from_str(text).ok()
}

fn read_tool_result(mut map: Object) -> Block {
    let state = take(&mut map, "state", "state").and_then(|state| state_of(&state));
    Block::ToolResult {
        call_id: text(&mut map, "id").unwrap_or_default(),
        name: text(&mut map, "name").unwrap_or_default(),
        output: read_content(take(&mut map, "output", "output")),
        state: state.unwrap_or(ResultState::Success),
        metadata: object(&mut map, "metadata").unwrap_or_default(),
    }
}

/// The state of a tool result, in either case.
pub(super) fn state_of(state: &Value) -> Option<ResultState> {
    ResultState::from_name(state.as_str()?)
}

/// A string as one text block, or a list of blocks; empty text is no block.
fn read_content(content: Option<Value>) -> Vec<Block> {
    match content {
        Some(Value::String(text)) if !text.is_empty() => vec![Block::Text { text }],
        Some(Value::Array(blocks)) => blocks.into_iter().filter_map(decode_block).collect(),
        _ => Vec::new(),
    }
}

/// The text of a hint, which is a string or a list of blocks; media in it is left out.
pub(super) fn hint_text(hint: Option<Value>) -> String {
    match hint {
        Some(Value::String(text)) => text,
        Some(Value::Array(blocks)) => {
            let texts: Vec<String> = blocks
                .into_iter()
                .filter_map(|block| match decode_block(block) {
                    Some(Block::Text { text }) => Some(text),
                    _ => None,
                })
                .collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

fn read_media(mut map: Object, kind: Option<MediaKind>) -> Option<Block> {
    let source = read_source(object(&mut map, "source")?)?;
    let kind =
        kind.unwrap_or_else(|| source.media_type().map_or(MediaKind::Document, MediaKind::of));
    Some(Block::Media { kind, source, name: text(&mut map, "name"), metadata: None })
}

fn read_source(mut map: Object) -> Option<MediaSource> {
    let media_type = take(&mut map, "media_type", "mediaType")
        .or_else(|| take(&mut map, "mime_type", "mimeType"))
        .and_then(text_of)
        .filter(|media_type| !media_type.is_empty());
    // The member tells the form as surely as `type` does.
    if let Some(data) = text(&mut map, "data") {
        return Some(MediaSource::Base64 { media_type: media_type.unwrap_or_default(), data });
    }
    Some(MediaSource::Url { media_type, url: text(&mut map, "url")? })
}

fn text(map: &mut Object, key: &str) -> Option<String> {
    take(map, key, key).and_then(text_of)
}

fn object(map: &mut Object, key: &str) -> Option<Object> {
    take(map, key, key).and_then(object_of)
}
