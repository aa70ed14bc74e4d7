//! About how much memory a thread holds.

use agui_adapter::history::Stored;
use agui_protocol::{Content, ContentPart, Message, PartSource};
use serde_json::Value;

use super::Thread;

/// What a message, a call or an interrupt takes besides its texts.
const EACH: usize = 256;

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
    EACH + messages + calls.chain(states).sum::<usize>()
}

/// The same for messages alone.
pub fn messages_weight(messages: &[Stored]) -> usize {
    messages.iter().map(|stored| message(&stored.message)).sum()
}

fn message(message: &Message) -> usize {
    EACH + match message {
        Message::User { content: body, .. } => content(body),
        Message::Tool { content: body, error, .. } => {
            content(body) + error.as_ref().map_or(0, String::len)
        }
        Message::Assistant { content, tool_calls, .. } => {
            let calls = tool_calls.iter().map(|call| EACH + call.function.arguments.len());
            content.as_ref().map_or(0, String::len) + calls.sum::<usize>()
        }
        Message::System { content, .. }
        | Message::Developer { content, .. }
        | Message::Reasoning { content, .. } => content.len(),
        Message::Activity { content, .. } => content.values().map(value).sum(),
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
        ContentPart::Text { text, .. } => text.len(),
        ContentPart::Image(media)
        | ContentPart::Audio(media)
        | ContentPart::Video(media)
        | ContentPart::Document(media) => match &media.source {
            PartSource::Data { value, .. } | PartSource::Url { value, .. } => value.len(),
            PartSource::File { .. } => 0,
        },
    }
}

fn value(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 32,
        Value::Array(items) => 32 + items.iter().map(self::value).sum::<usize>(),
        Value::Object(members) => {
            let members = members.iter().map(|(key, value)| key.len() + 64 + self::value(value));
            32 + members.sum::<usize>()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 32,
    }
}
