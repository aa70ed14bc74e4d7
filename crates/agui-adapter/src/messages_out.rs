//! AgentScope messages -> AG-UI messages.
//!
//! Nothing that a client can show is lost: media come back as content parts, a message that holds
//! thinking, calls and results in one (as Python keeps them) becomes several in the same order.
//! What [`crate::inbound`] kept beside a message goes back to its place. Hints are for models and
//! are left out.

use std::collections::VecDeque;

use agui_protocol::message::{FunctionCall, MessageBase, ToolCallKind};
use agui_protocol::{Content, ContentPart, Message, MessageId, ToolCall, ToolCallId};
use serde_json::Value;

use crate::kept::{Kept, KeptPart};
use crate::model::event::{Call, Object, ResultState};
use crate::model::msg::MediaSource;
use crate::model::{Block, Msg, Role};
use crate::names::{MEDIA_ACTIVITY, STATE_KEY};
use crate::shown_media::{media_activity, media_part, named};

/// Gives the id of a further AG-UI message made of one AgentScope message: from the message's own
/// id and a number that counts from 1.
pub type FurtherId<'a> = dyn FnMut(&str, usize) -> MessageId + 'a;

/// The plainest [`FurtherId`]: `<id>-<number>`.
pub fn numbered_id(id: &str, number: usize) -> MessageId {
    MessageId::from(format!("{id}-{number}"))
}

/// Converts a history. See [`to_messages`].
pub fn history(
    msgs: &[Msg],
    include_reasoning: bool,
    further_id: &mut FurtherId<'_>,
) -> Vec<Message> {
    msgs.iter().flat_map(|msg| to_messages(msg, include_reasoning, further_id)).collect()
}

/// Converts one message into none, one or several.
///
/// The first one has the message's id, further ones what `further_id` gives. Without
/// `include_reasoning` thinking is left out.
pub fn to_messages(
    msg: &Msg,
    include_reasoning: bool,
    further_id: &mut FurtherId<'_>,
) -> Vec<Message> {
    let kept = Kept::of(msg);
    match msg.role {
        Role::User => vec![user(msg, kept)],
        Role::System => vec![system(msg, kept)],
        Role::Assistant | Role::Tool => {
            let mut out = Out { msg, kept, include_reasoning, further_id, messages: Vec::new() };
            out.blocks();
            out.messages
        }
    }
}

fn user(msg: &Msg, mut kept: Kept) -> Message {
    Message::User {
        id: MessageId::from(msg.id.as_str()),
        name: name_of(msg, &kept),
        content: content_of(&msg.content, kept.parts.take()),
        base: kept.base,
    }
}

fn system(msg: &Msg, kept: Kept) -> Message {
    let id = MessageId::from(msg.id.as_str());
    let (name, content, base) = (name_of(msg, &kept), msg.text_content(), kept.base);
    if kept.developer {
        Message::Developer { id, name, content, base }
    } else {
        Message::System { id, name, content, base }
    }
}

fn name_of(msg: &Msg, kept: &Kept) -> Option<String> {
    (kept.empty_name || !msg.name.is_empty()).then(|| msg.name.clone())
}

/// The blocks of an assistant's or a tool's message on their way out.
struct Out<'a, 'f> {
    msg: &'a Msg,
    kept: Kept,
    include_reasoning: bool,
    further_id: &'a mut FurtherId<'f>,
    messages: Vec<Message>,
}

/// Text and calls that become one assistant message.
#[derive(Default)]
struct Spoken {
    texts: Vec<String>,
    calls: Vec<ToolCall>,
}

impl Out<'_, '_> {
    fn blocks(&mut self) {
        let msg = self.msg;
        let mut spoken = Spoken::default();
        let mut call_metadata: VecDeque<Option<Object>> =
            std::mem::take(&mut self.kept.call_metadata).into();
        for block in &msg.content {
            match block {
                // A tool's text without a result answers no call; AG-UI has no message for it.
                Block::Text { text } if msg.role == Role::Assistant => {
                    spoken.texts.push(text.clone());
                }
                Block::ToolUse { call, encrypted } => {
                    let metadata = call_metadata.pop_front().flatten();
                    spoken.calls.push(tool_call(call, encrypted.clone(), metadata));
                }
                Block::Thinking { thinking, encrypted } => {
                    self.flush(&mut spoken);
                    self.reasoning(thinking, encrypted.clone());
                }
                Block::ToolResult { call_id, output, state, .. } => {
                    self.flush(&mut spoken);
                    self.result(call_id, output, *state);
                }
                Block::Media { source, name, .. } => {
                    self.flush(&mut spoken);
                    self.media(source, name.as_deref());
                }
                Block::Text { .. } | Block::Hint { .. } => {}
            }
        }
        let says_nothing = msg.role == Role::Assistant && msg.content.is_empty();
        if says_nothing {
            self.assistant(Spoken::default());
        } else {
            self.flush(&mut spoken);
        }
    }

    fn flush(&mut self, spoken: &mut Spoken) {
        let spoken = std::mem::take(spoken);
        if !spoken.texts.is_empty() || !spoken.calls.is_empty() {
            self.assistant(spoken);
        }
    }

    fn assistant(&mut self, spoken: Spoken) {
        let content = if spoken.texts.is_empty() {
            self.kept.empty_content.then(String::new)
        } else {
            Some(spoken.texts.join("\n"))
        };
        let name = name_of(self.msg, &self.kept);
        let (id, base) = (self.next_id(), self.base());
        self.messages.push(Message::Assistant {
            id,
            name,
            content,
            tool_calls: spoken.calls,
            base,
        });
    }

    fn reasoning(&mut self, thinking: &str, encrypted: Option<String>) {
        if self.include_reasoning {
            let base = MessageBase { encrypted_value: encrypted, ..self.base() };
            let (id, content) = (self.next_id(), thinking.to_owned());
            self.messages.push(Message::Reasoning { id, content, base });
        }
    }

    fn result(&mut self, call_id: &str, output: &[Block], state: ResultState) {
        // A suspended call has no answer yet.
        if state == ResultState::Running {
            return;
        }
        let from_client = self.kept.error.is_some();
        // Without content of its own the client's error stands in for it; see `inbound`.
        let output = if from_client && self.kept.empty_content { &[] } else { output };
        let content = content_of(output, self.kept.parts.take());
        let mut base = self.base();
        let mut error = self.kept.error.take();
        if !from_client && state != ResultState::Success {
            let metadata = base.metadata.get_or_insert_default();
            metadata.entry(STATE_KEY).or_insert_with(|| Value::from(state.as_str()));
            if state == ResultState::Error && !self.has_stated() {
                error = Some(content.text_content());
            }
        }
        let (id, tool_call_id) = (self.next_id(), ToolCallId::from(call_id));
        self.messages.push(Message::Tool { id, tool_call_id, content, error, base });
    }

    /// Media that no message can hold; a tool's are parts of its result.
    fn media(&mut self, source: &MediaSource, name: Option<&str>) {
        let content = media_activity(source.clone(), name);
        // Activities have no encrypted value.
        let base = MessageBase { encrypted_value: None, ..self.base() };
        let (id, activity_type) = (self.next_id(), MEDIA_ACTIVITY.to_owned());
        self.messages.push(Message::Activity { id, activity_type, content, base });
    }

    fn next_id(&mut self) -> MessageId {
        match self.messages.len() {
            0 => MessageId::from(self.msg.id.as_str()),
            number => (self.further_id)(&self.msg.id, number),
        }
    }

    /// What the client gave goes to the first message; the owner owns all of them.
    fn base(&self) -> MessageBase {
        if self.messages.is_empty() {
            return self.kept.base.clone();
        }
        let subagent_run_id = self.kept.base.subagent_run_id.clone();
        MessageBase { subagent_run_id, ..MessageBase::default() }
    }

    /// Whether the state stands in the metadata that the client sent.
    fn has_stated(&self) -> bool {
        let metadata = self.kept.base.metadata.as_ref();
        metadata.is_some_and(|metadata| metadata.contains_key(STATE_KEY))
    }
}

/// The argument text as the model wrote it, as it also streamed; only made anew when there is
/// none beside arguments that are parsed.
fn tool_call(call: &Call, encrypted_value: Option<String>, metadata: Option<Object>) -> ToolCall {
    let arguments = match &call.input {
        Some(input) if call.arguments.is_empty() => Value::Object(input.clone()).to_string(),
        _ => call.arguments.clone(),
    };
    ToolCall {
        id: ToolCallId::from(call.id.as_str()),
        kind: ToolCallKind::Function,
        function: FunctionCall { name: call.name.clone(), arguments },
        encrypted_value,
        metadata,
    }
}

/// A string where text is all there is, parts where the client sent parts or media are in it.
fn content_of(blocks: &[Block], kept: Option<Vec<KeptPart>>) -> Content {
    let has_media = blocks.iter().any(|block| matches!(block, Block::Media { .. }));
    if kept.is_none() && !has_media {
        let texts = blocks.iter().filter_map(text_of).collect::<Vec<_>>();
        return Content::Text(texts.join("\n"));
    }
    let mut blocks = blocks.iter();
    let mut parts = Vec::new();
    for kept in kept.unwrap_or_default() {
        match kept.whole {
            Some(part) => parts.push(part),
            None => {
                parts
                    .extend(blocks.next().and_then(|block| part_of(block, kept.id, kept.metadata)));
            }
        }
    }
    // Blocks that an agent added later.
    parts.extend(blocks.filter_map(|block| part_of(block, None, None)));
    Content::Parts(parts)
}

fn text_of(block: &Block) -> Option<&str> {
    match block {
        Block::Text { text } => Some(text),
        _ => None,
    }
}

fn part_of(block: &Block, id: Option<String>, metadata: Option<Value>) -> Option<ContentPart> {
    match block {
        Block::Text { text } => Some(ContentPart::Text { id, text: text.clone(), metadata }),
        Block::Media { kind, source, name, metadata } => {
            let metadata = metadata.clone().or_else(|| name.as_deref().map(named));
            Some(media_part(*kind, source.clone(), id, metadata))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
