//! About how much memory a thread holds.

use agui_adapter::history::Stored;
use agui_protocol::{Content, ContentPart, Message, Object, PartSource, message::MessageBase};
use serde_json::Value;

use super::Thread;

/// What a message, a call or an interrupt takes besides its texts.
const EACH: usize = 256;

/// What an id takes besides its text.
const EACH_ID: usize = 64;

/// Bytes, counted by the lengths of the long members only.
pub(super) fn weight(thread: &Thread) -> usize {
    let messages = messages_weight(&thread.messages);
    let parked = thread.parked.as_ref();
    let opens = parked.into_iter().flat_map(|parked| {
        parked.open.iter().chain(parked.settled.iter().map(|decision| &decision.open))
    });
    let calls = opens.map(|open| {
        // The arguments stand in the call and, for people, in the interrupt.
        let schema = open.interrupt.response_schema.iter().flat_map(|schema| schema.values());
        let asked = open.interrupt.message.as_ref().map_or(0, String::len);
        let call = open.call.as_ref().map_or(0, |call| 4 * call.arguments.len());
        EACH + asked + call + schema.map(value).sum::<usize>()
    });
    let states = [parked.and_then(|parked| parked.state.as_deref()), thread.state.as_deref()];
    let states = states.into_iter().flatten().map(value);
    let last = thread.last_answer.iter().map(|last| {
        let ids = last.known.iter().map(|id| EACH_ID + id.as_str().len());
        messages_weight(&last.messages) + ids.sum::<usize>()
    });
    EACH + messages + calls.chain(states).chain(last).sum::<usize>()
}

/// The same for messages alone.
pub fn messages_weight(messages: &[Stored]) -> usize {
    messages.iter().map(|stored| message(&stored.message)).sum()
}

fn message(message: &Message) -> usize {
    let MessageBase { encrypted_value, metadata, .. } = message.base();
    let base = message.id().as_str().len()
        + encrypted_value.as_ref().map_or(0, String::len)
        + metadata.as_ref().map_or(0, object);
    EACH + base + content_of(message)
}

fn content_of(message: &Message) -> usize {
    match message {
        Message::User { content: body, .. } => content(body),
        Message::Tool { tool_call_id, content: body, error, .. } => {
            tool_call_id.as_str().len() + content(body) + error.as_ref().map_or(0, String::len)
        }
        Message::Assistant { content, tool_calls, .. } => {
            let calls = tool_calls.iter().map(|call| {
                let encrypted = call.encrypted_value.as_ref().map_or(0, String::len);
                let metadata = call.metadata.as_ref().map_or(0, object);
                EACH + call.id.as_str().len() + call.function.arguments.len() + encrypted + metadata
            });
            content.as_ref().map_or(0, String::len) + calls.sum::<usize>()
        }
        Message::System { content, .. }
        | Message::Developer { content, .. }
        | Message::Reasoning { content, .. } => content.len(),
        Message::Activity { content, .. } => object(content),
    }
}

fn content(content: &Content) -> usize {
    match content {
        Content::Text(text) => text.len(),
        Content::Parts(parts) => parts.iter().map(part).sum(),
    }
}

fn part(part: &ContentPart) -> usize {
    EACH + match part {
        ContentPart::Text { text, metadata, .. } => text.len() + metadata.as_ref().map_or(0, value),
        ContentPart::Image(media)
        | ContentPart::Audio(media)
        | ContentPart::Video(media)
        | ContentPart::Document(media) => {
            let source = match &media.source {
                PartSource::Data { value, .. } | PartSource::Url { value, .. } => value.len(),
                PartSource::File { .. } => 0,
            };
            source + media.metadata.as_ref().map_or(0, value)
        }
    }
}

fn value(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 32,
        Value::Array(items) => 32 + items.iter().map(self::value).sum::<usize>(),
        Value::Object(members) => object(members),
        Value::Null | Value::Bool(_) | Value::Number(_) => 32,
    }
}

fn object(members: &Object) -> usize {
    let members = members.iter().map(|(key, value)| key.len() + 64 + self::value(value));
    32 + members.sum::<usize>()
}
