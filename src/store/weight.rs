//! About how much memory a thread holds.

use agui_adapter::history::Stored;
use agui_protocol::{
    Content, ContentPart, Message, Object, PartSource, ToolCall,
    message::{FunctionCall, MessageBase},
};
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
        let call = open.call.as_ref();
        let call = call.map_or(0, |call| 4 * (call.arguments.len() + call.name.len()));
        EACH + asked + call + schema.map(value).sum::<usize>()
    });
    let states = [parked.and_then(|parked| parked.state.as_deref()), thread.state.as_deref()];
    let states = states.into_iter().flatten().map(value);
    let settled = parked.into_iter().flat_map(|parked| &parked.settled);
    let results = settled.map(|decision| decision.result.as_ref().map_or(0, |r| r.text.len()));
    let kept = thread.kept.values().map(|kept| EACH + value(kept));
    let last = thread.last_answer.iter().map(|last| {
        let ids = last.known.iter().map(|id| EACH_ID + id.as_str().len());
        messages_weight(&last.messages) + ids.sum::<usize>()
    });
    EACH + messages + calls.chain(results).chain(states).chain(kept).chain(last).sum::<usize>()
}

/// The same for messages alone.
pub fn messages_weight(messages: &[Stored]) -> usize {
    messages.iter().map(|stored| message(&stored.message)).sum()
}

fn message(message: &Message) -> usize {
    let MessageBase { encrypted_value, subagent_run_id, metadata } = message.base();
    let base = message.id().as_str().len()
        + text(encrypted_value.as_ref())
        + subagent_run_id.as_ref().map_or(0, |id| id.as_str().len())
        + metadata.as_ref().map_or(0, object);
    EACH + base + content_of(message)
}

fn text(text: Option<&String>) -> usize {
    text.map_or(0, String::len)
}

fn content_of(message: &Message) -> usize {
    match message {
        Message::User { name, content: body, .. } => text(name.as_ref()) + content(body),
        Message::Tool { tool_call_id, content: body, error, .. } => {
            tool_call_id.as_str().len() + content(body) + text(error.as_ref())
        }
        Message::Assistant { name, content, tool_calls, .. } => {
            let calls = tool_calls.iter().map(call).sum::<usize>();
            text(name.as_ref()) + text(content.as_ref()) + calls
        }
        Message::System { name, content, .. } | Message::Developer { name, content, .. } => {
            text(name.as_ref()) + content.len()
        }
        Message::Reasoning { content, .. } => content.len(),
        Message::Activity { activity_type, content, .. } => activity_type.len() + object(content),
    }
}

fn call(call: &ToolCall) -> usize {
    let FunctionCall { name, arguments } = &call.function;
    EACH + call.id.as_str().len()
        + name.len()
        + arguments.len()
        + text(call.encrypted_value.as_ref())
        + call.metadata.as_ref().map_or(0, object)
}

fn content(content: &Content) -> usize {
    match content {
        Content::Text(text) => text.len(),
        Content::Parts(parts) => parts.iter().map(part).sum(),
    }
}

fn part(part: &ContentPart) -> usize {
    let (id, content, metadata) = match part {
        ContentPart::Text { id, text, metadata } => (id, text.len(), metadata),
        ContentPart::Image(media)
        | ContentPart::Audio(media)
        | ContentPart::Video(media)
        | ContentPart::Document(media) => (&media.id, source(&media.source), &media.metadata),
    };
    EACH + text(id.as_ref()) + content + metadata.as_ref().map_or(0, value)
}

fn source(source: &PartSource) -> usize {
    match source {
        PartSource::Data { value, mime_type } => value.len() + mime_type.len(),
        PartSource::Url { value, mime_type } => value.len() + text(mime_type.as_ref()),
        PartSource::File { value, provider, mime_type } => {
            value.len() + text(provider.as_ref()) + text(mime_type.as_ref())
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::store::AgentId;

    #[test]
    fn what_agents_keep_is_not_free() {
        let kept = Arc::new(json!({"rules": ["x".repeat(1000)]}));
        let before = weight(&Thread::default());
        let agents = ["a", "b"].map(|id| (AgentId::new(id), Arc::clone(&kept)));
        let thread = Thread { kept: agents.into(), ..Thread::default() };
        assert!(weight(&thread) >= before + 2000);
    }

    #[test]
    fn no_member_of_a_message_is_free() {
        let long = "x".repeat(1000);
        let metadata = json!({"k": &long});
        let base = json!({
            "id": &long, "encryptedValue": &long, "subagentRunId": &long, "metadata": &metadata,
        });
        let parts = json!([
            {"type": "text", "id": &long, "text": &long, "metadata": &metadata},
            {"type": "image", "id": &long, "metadata": &metadata,
                "source": {"type": "data", "value": &long, "mimeType": &long}},
            {"type": "audio", "source": {"type": "url", "value": &long, "mimeType": &long}},
            {"type": "video", "source":
                {"type": "file", "value": &long, "provider": &long, "mimeType": &long}},
        ]);
        let call = json!({
            "id": &long, "type": "function", "encryptedValue": &long, "metadata": &metadata,
            "function": {"name": &long, "arguments": &long},
        });
        let kinds = [
            json!({"role": "user", "name": &long, "content": &parts}),
            json!({"role": "assistant", "name": &long, "content": &long, "toolCalls": [call]}),
            json!({"role": "tool", "toolCallId": &long, "content": &parts, "error": &long}),
            json!({"role": "system", "name": &long, "content": &long}),
            json!({"role": "developer", "name": &long, "content": &long}),
            json!({"role": "reasoning", "content": &long}),
            json!({"role": "activity", "activityType": &long, "content": &metadata}),
        ];
        for mut message in kinds {
            message.as_object_mut().unwrap().extend(base.as_object().unwrap().clone());
            let stored = Stored::seen(serde_json::from_value(message).unwrap());
            let (kept, weight) = (
                serde_json::to_string(&stored).unwrap(),
                messages_weight(std::slice::from_ref(&stored)),
            );
            assert!(weight >= kept.matches(&long).count() * 1000, "{}", stored.message.role());
        }
    }
}
