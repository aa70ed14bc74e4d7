//! One message of the record and the answers to its calls. Which message an event belongs to is
//! not decided here.

use agui_protocol::{Content, ContentPart, Event, Message, Object, ToolCall};
use serde_json::Value;

use super::bound;
use crate::truncate;

/// A message, and the answers that stand behind it.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) message: Message,
    pub(super) answers: Vec<Message>,
    /// Its text was cut, so nothing more is added to it.
    pub(super) cut: bool,
}

impl Entry {
    pub(super) fn new(message: Message) -> Self {
        Self { message, answers: Vec::new(), cut: false }
    }

    pub(super) fn is_assistant(&self) -> bool {
        matches!(self.message, Message::Assistant { .. })
    }

    pub(super) fn is_activity(&self) -> bool {
        matches!(self.message, Message::Activity { .. })
    }

    pub(super) fn calls_mut(&mut self) -> Option<&mut Vec<ToolCall>> {
        match &mut self.message {
            Message::Assistant { tool_calls, .. } => Some(tool_calls),
            _ => None,
        }
    }

    /// Adds to the message's text; `false` = it takes no more.
    pub(super) fn append(&mut self, delta: &str) -> bool {
        if self.cut {
            bound::note_more(&mut self.message.base_mut().metadata, delta.len());
            return false;
        }
        let Some(text) = text_mut(&mut self.message) else { return false };
        text.push_str(delta);
        true
    }

    /// Activities take metadata of their own events only.
    pub(super) fn merge_metadata(&mut self, event: &Event) {
        merge(&mut self.message.base_mut().metadata, event.metadata.as_ref());
    }
}

/// The text that deltas are added to.
pub(super) fn text_mut(message: &mut Message) -> Option<&mut String> {
    match message {
        Message::Assistant { content, .. } => Some(content.get_or_insert_default()),
        Message::User { content: Content::Text(content), .. }
        | Message::System { content, .. }
        | Message::Developer { content, .. }
        | Message::Reasoning { content, .. } => Some(content),
        Message::User { .. } | Message::Tool { .. } | Message::Activity { .. } => None,
    }
}

/// Key by key, the last write wins (META-3).
pub(super) fn merge(target: &mut Option<Object>, more: Option<&Object>) {
    let Some(more) = more else { return };
    let target = target.get_or_insert_default();
    target.extend(more.iter().map(|(key, value)| (key.clone(), value.clone())));
}

/// Bytes of text and media.
pub(super) fn content_len(content: &Content) -> usize {
    match content {
        Content::Text(text) => text.len(),
        Content::Parts(parts) => parts.iter().map(part_len).sum(),
    }
}

fn part_len(part: &ContentPart) -> usize {
    truncate::part_len(part) + part.media().map_or(0, |media| truncate::exact(&media.metadata))
}

/// Whether an operation of the patch names the whole document.
pub(super) fn touches_root(patch: &Value) -> bool {
    let root = |operation: &Value, key: &str| operation[key] == "";
    let operations = patch.as_array().map_or(&[][..], Vec::as_slice);
    operations.iter().any(|operation| root(operation, "path") || root(operation, "from"))
}
