//! One AG-UI message -> one AgentScope message.

use std::collections::HashMap;

use agui_protocol::message::{MediaPart, MessageBase};
use agui_protocol::{Content, ContentPart, Message, MessageId, PartSource, ToolCall};
use serde_json::Value;

use super::InboundNote;
use crate::kept::{Kept, KeptPart};
use crate::model::event::{Call, Object, ResultState};
use crate::model::msg::{MediaKind, MediaSource};
use crate::model::wire::parse_object;
use crate::model::{Block, Msg, Role};
use crate::names::STATE_KEY;

/// Converts one message; `None` for an activity, which is nothing to an agent.
pub(super) fn to_msg(
    message: &Message,
    names: &HashMap<&str, &str>,
    notes: &mut Vec<InboundNote>,
) -> Option<Msg> {
    let mut kept = Kept { base: message.base().clone(), ..Kept::default() };
    let (role, content) = match message {
        Message::User { id, content, .. } => {
            (Role::User, content_blocks(content, id, &mut kept, notes))
        }
        Message::Assistant { content, tool_calls, .. } => {
            (Role::Assistant, assistant_blocks(content.as_deref(), tool_calls, &mut kept))
        }
        Message::Tool { id, tool_call_id, content, error, .. } => {
            let output = content_blocks(content, id, &mut kept, notes);
            let name = names.get(tool_call_id.as_str()).copied().unwrap_or_default();
            let result =
                tool_result(tool_call_id.as_str(), name, output, error.as_ref(), &mut kept);
            (Role::Tool, vec![result])
        }
        Message::System { content, .. } => (Role::System, text_blocks(content, &mut kept)),
        Message::Developer { content, .. } => {
            kept.developer = true;
            (Role::System, text_blocks(content, &mut kept))
        }
        // Thinking of the assistant, never words of the person.
        Message::Reasoning { content, .. } => {
            let encrypted = kept.base.encrypted_value.take();
            (Role::Assistant, vec![Block::Thinking { thinking: content.clone(), encrypted }])
        }
        Message::Activity { .. } => return None,
    };
    let name = name_of(message);
    kept.empty_name = name == Some("");
    let name = name.unwrap_or_default().to_owned();
    let id = message.id().as_str().to_owned();
    Some(Msg { id, name, role, content, metadata: kept.into_metadata() })
}

fn name_of(message: &Message) -> Option<&str> {
    match message {
        Message::User { name, .. }
        | Message::Assistant { name, .. }
        | Message::System { name, .. }
        | Message::Developer { name, .. } => name.as_deref(),
        Message::Tool { .. } | Message::Reasoning { .. } | Message::Activity { .. } => None,
    }
}

/// Empty text makes no block: models refuse empty blocks.
fn text_blocks(text: &str, kept: &mut Kept) -> Vec<Block> {
    if text.is_empty() {
        kept.empty_content = true;
        return Vec::new();
    }
    vec![Block::Text { text: text.to_owned() }]
}

fn content_blocks(
    content: &Content,
    message: &MessageId,
    kept: &mut Kept,
    notes: &mut Vec<InboundNote>,
) -> Vec<Block> {
    let parts = match content {
        Content::Text(text) => return text_blocks(text, kept),
        Content::Parts(parts) => parts,
    };
    let mut blocks = Vec::with_capacity(parts.len());
    let mut kept_parts = Vec::with_capacity(parts.len());
    for part in parts {
        match part_block(part) {
            Some((block, kept_part)) => {
                blocks.push(block);
                kept_parts.push(kept_part);
            }
            None => {
                if part.media().is_some() {
                    notes.push(InboundNote::FileSkipped { message: message.clone() });
                }
                kept_parts.push(KeptPart { whole: Some(part.clone()), ..KeptPart::default() });
            }
        }
    }
    kept.parts = Some(kept_parts);
    blocks
}

/// The block of a part and what is kept of the part; `None` for what makes no block: empty text,
/// and files, whose handles are nobody's business here.
fn part_block(part: &ContentPart) -> Option<(Block, KeptPart)> {
    let (kind, media) = match part {
        ContentPart::Text { text, .. } if text.is_empty() => return None,
        ContentPart::Text { id, text, metadata } => {
            let kept = KeptPart { whole: None, id: id.clone(), metadata: metadata.clone() };
            return Some((Block::Text { text: text.clone() }, kept));
        }
        ContentPart::Image(media) => (MediaKind::Image, media),
        ContentPart::Audio(media) => (MediaKind::Audio, media),
        ContentPart::Video(media) => (MediaKind::Video, media),
        ContentPart::Document(media) => (MediaKind::Document, media),
    };
    let source = media_source(&media.source)?;
    let kept = KeptPart { id: media.id.clone(), ..KeptPart::default() };
    let metadata = media.metadata.clone();
    Some((Block::Media { kind, source, name: file_name(media), metadata }, kept))
}

fn media_source(source: &PartSource) -> Option<MediaSource> {
    match source {
        PartSource::Data { value, mime_type } => {
            Some(MediaSource::Base64 { media_type: mime_type.clone(), data: value.clone() })
        }
        PartSource::Url { value, mime_type } => {
            Some(MediaSource::Url { media_type: mime_type.clone(), url: value.clone() })
        }
        PartSource::File { .. } => None,
    }
}

/// Clients put file names into a part's metadata, under one of these names.
fn file_name(media: &MediaPart) -> Option<String> {
    let metadata = media.metadata.as_ref()?;
    let name = ["filename", "fileName", "name"].iter().find_map(|key| metadata.get(key)?.as_str());
    name.filter(|name| !name.is_empty()).map(str::to_owned)
}

fn assistant_blocks(content: Option<&str>, calls: &[ToolCall], kept: &mut Kept) -> Vec<Block> {
    let mut blocks = content.map_or_else(Vec::new, |text| text_blocks(text, kept));
    blocks.extend(calls.iter().map(tool_use));
    if calls.iter().any(|call| call.metadata.is_some()) {
        kept.call_metadata = calls.iter().map(|call| call.metadata.clone()).collect();
    }
    blocks
}

/// The argument text stays as it is, so that broken JSON is not hidden from the model.
fn tool_use(call: &ToolCall) -> Block {
    let arguments = call.function.arguments.clone();
    let call_block = Call {
        id: call.id.as_str().to_owned(),
        name: call.function.name.clone(),
        input: parse_object(&arguments),
        arguments,
        suggested_rules: Vec::new(),
    };
    Block::ToolUse { call: call_block, encrypted: call.encrypted_value.clone() }
}

fn tool_result(
    call: &str,
    name: &str,
    mut output: Vec<Block>,
    error: Option<&String>,
    kept: &mut Kept,
) -> Block {
    let state = match error {
        Some(_) => ResultState::Error,
        None => stated(&kept.base),
    };
    kept.error = error.cloned();
    if let Some(error) = error.filter(|error| output.is_empty() && !error.is_empty()) {
        // Otherwise the model would see an empty answer and no failure.
        kept.empty_content = true;
        output.push(Block::Text { text: error.clone() });
    }
    let (call_id, name) = (call.to_owned(), name.to_owned());
    Block::ToolResult { call_id, name, output, state, metadata: Object::new() }
}

/// The state that this server wrote beside a result which did not succeed.
fn stated(base: &MessageBase) -> ResultState {
    let metadata = base.metadata.as_ref();
    let name = metadata.and_then(|metadata| metadata.get(STATE_KEY)).and_then(Value::as_str);
    match name.and_then(ResultState::from_name) {
        // A message is an answer, whatever it says of itself.
        None | Some(ResultState::Running) => ResultState::Success,
        Some(state) => state,
    }
}
