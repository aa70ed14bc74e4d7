//! A conversation in the provider's messages.
//!
//! Instructions become `system`, pictures `image_url`, sound `input_audio`, films `video_url`,
//! documents `file`. Only a user may show something: what a tool or the assistant made, and hints,
//! follow the message or the results as a user's message. What has no form stands as a line of text.

use std::borrow::Cow;

use agui_adapter::model::{Block, Msg, Role, event::Call, msg::MediaKind};
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use super::{
    media::{name_of, part},
    reasoning::{DETAILS, EXTRA, unseal},
};
use crate::llm::{ModelRequest, names};

/// What the provider is told.
pub(super) struct Told {
    /// The messages.
    pub(super) messages: Vec<Value>,
    /// How many pictures were left out.
    pub(super) left_out: usize,
}

/// A part of a user's message.
enum Part {
    Text(String),
    Other(Value),
}

/// Puts the messages together.
pub(super) struct Messages {
    told: Told,
    vision: bool,
    /// The field in which reasoning goes back.
    reasoning: &'static str,
    /// The assistant's message in the making.
    assistant: Assistant,
    /// What a user's message has to show as soon as there may be one.
    later: Vec<Part>,
}

#[derive(Default)]
struct Assistant {
    texts: Vec<String>,
    calls: Vec<Value>,
    thinking: Vec<String>,
    details: Vec<Value>,
}

impl Messages {
    /// `reasoning`: the field in which the provider gives it and takes it back.
    pub(super) fn tell(request: &ModelRequest, vision: bool, reasoning: &'static str) -> Told {
        let mut all = Self {
            told: Told { messages: Vec::new(), left_out: 0 },
            vision,
            reasoning,
            assistant: Assistant::default(),
            later: Vec::new(),
        };
        all.system(request);
        let leading = request.messages.iter().take_while(|msg| msg.role == Role::System).count();
        // Reasoning goes back within a turn: providers want it then, and refuse or waste it later.
        let turn = request.messages.iter().rposition(|msg| msg.role == Role::User);
        for (at, msg) in request.messages.iter().enumerate().skip(leading) {
            all.message(msg, turn.is_none_or(|turn| at > turn));
        }
        all.show();
        all.told
    }

    /// Instructions at the beginning make one message; some providers take no second one.
    fn system(&mut self, request: &ModelRequest) {
        let leading = request.messages.iter().take_while(|msg| msg.role == Role::System);
        let texts =
            std::iter::once(request.system.clone()).chain(leading.map(|msg| msg.text_content()));
        let texts: Vec<String> = texts.filter(|text| !text.is_empty()).collect();
        if !texts.is_empty() {
            self.push("system", texts.join("\n\n").into());
        }
    }

    fn message(&mut self, msg: &Msg, in_turn: bool) {
        match msg.role {
            Role::System => {
                self.show();
                self.push("system", msg.text_content().into());
            }
            Role::User => {
                self.show();
                let parts = msg.content.iter().filter_map(|block| self.part(block)).collect();
                self.user(parts);
            }
            Role::Assistant | Role::Tool => {
                for block in &msg.content {
                    self.block(block, in_turn);
                }
                self.end_assistant();
            }
        }
    }

    /// A block of the assistant's, or the answer to a call.
    fn block(&mut self, block: &Block, in_turn: bool) {
        match block {
            Block::ToolResult { call_id, name, output, .. } => {
                self.end_assistant();
                self.result(call_id, name, output);
            }
            Block::Media { .. } | Block::Hint { .. } => {
                let part = self.part(block);
                self.later.extend(part);
            }
            Block::Text { text } => {
                self.begin_assistant();
                self.assistant.texts.push(text.clone());
            }
            Block::Thinking { thinking, encrypted } => {
                self.begin_assistant();
                match unseal(encrypted.as_deref(), DETAILS) {
                    Some(Value::Array(details)) => self.assistant.details.extend(details),
                    // An artefact of another wire tells that the thinking is another model's.
                    _ if encrypted.is_none() && in_turn => {
                        self.assistant.thinking.push(thinking.clone());
                    }
                    _ => {}
                }
            }
            Block::ToolUse { call, encrypted } => {
                self.begin_assistant();
                self.assistant.calls.push(tool_call(call, encrypted.as_deref()));
            }
        }
    }

    /// A new message of the assistant's comes behind what has to be shown.
    fn begin_assistant(&mut self) {
        if self.assistant.is_empty() {
            self.show();
        }
    }

    fn end_assistant(&mut self) {
        let assistant = std::mem::take(&mut self.assistant);
        self.told.messages.extend(assistant.told(self.reasoning));
    }

    fn result(&mut self, call_id: &str, name: &str, output: &[Block]) {
        let mut texts = Vec::new();
        let mut shown = Vec::new();
        for block in output {
            match (block, self.part(block)) {
                (_, Some(Part::Text(text))) => texts.push(text),
                (_, Some(part)) => shown.push(part),
                (_, None) => {}
            }
        }
        if !shown.is_empty() {
            if texts.is_empty() {
                texts.push("[The result is shown in the next message.]".to_owned());
            }
            let of = if name.is_empty() { "a tool" } else { name };
            self.later.push(Part::Text(format!("[Result of {of}:]")));
            self.later.extend(shown);
        }
        self.told.messages.push(json!({
            "role": "tool",
            "tool_call_id": call_id,
            "content": texts.join("\n"),
        }));
    }

    /// What was put off becomes a user's message.
    fn show(&mut self) {
        let parts = std::mem::take(&mut self.later);
        if !parts.is_empty() {
            self.user(parts);
        }
    }

    /// A user's message: a string if it is nothing but text.
    fn user(&mut self, parts: Vec<Part>) {
        let texts: Option<Vec<&str>> = parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => Some(text.as_str()),
                Part::Other(_) => None,
            })
            .collect();
        let content = match texts {
            Some(texts) => texts.join("\n").into(),
            None => parts.into_iter().map(Part::told).collect::<Vec<Value>>().into(),
        };
        self.push("user", content);
    }

    fn push(&mut self, role: &str, content: Value) {
        self.told.messages.push(json!({"role": role, "content": content}));
    }

    /// A block as a part of a user's message.
    fn part(&mut self, block: &Block) -> Option<Part> {
        match block {
            Block::Text { text } | Block::Hint { text } => Some(Part::Text(text.clone())),
            Block::Media { kind, source, name, .. } => {
                let seen = matches!(kind, MediaKind::Image | MediaKind::Video);
                if seen && !self.vision {
                    self.told.left_out += 1;
                    return Some(Part::Text(format!("[{} left out]", name_of(*kind))));
                }
                Some(match part(*kind, source, name.as_deref()) {
                    Ok(part) => Part::Other(part),
                    Err(stand_in) => Part::Text(stand_in),
                })
            }
            Block::Thinking { .. } | Block::ToolUse { .. } | Block::ToolResult { .. } => None,
        }
    }
}

impl Assistant {
    fn is_empty(&self) -> bool {
        self.texts.is_empty()
            && self.calls.is_empty()
            && self.thinking.is_empty()
            && self.details.is_empty()
    }

    /// The message, unless it says nothing.
    fn told(self, reasoning: &'static str) -> Option<Value> {
        let text = self.texts.join("\n");
        if text.is_empty() && self.calls.is_empty() {
            return None;
        }
        let mut message = Map::new();
        message.insert("role".to_owned(), "assistant".into());
        let content = if text.is_empty() { Value::Null } else { text.into() };
        message.insert("content".to_owned(), content);
        if !self.details.is_empty() {
            message.insert(DETAILS.to_owned(), self.details.into());
        } else if !self.thinking.is_empty() && !self.calls.is_empty() {
            message.insert(reasoning.to_owned(), self.thinking.join("\n").into());
        }
        if !self.calls.is_empty() {
            message.insert("tool_calls".to_owned(), self.calls.into());
        }
        Some(message.into())
    }
}

impl Part {
    fn told(self) -> Value {
        match self {
            Self::Text(text) => json!({"type": "text", "text": text}),
            Self::Other(value) => value,
        }
    }
}

/// A call; its arguments are the model's own text, so that the provider's cache knows them.
fn tool_call(call: &Call, encrypted: Option<&str>) -> Value {
    let arguments = own_arguments(call);
    let mut told = json!({
        "id": call.id,
        "type": "function",
        "function": {"name": names::encode(&call.name), "arguments": arguments},
    });
    if let (Some(extra), Some(told)) = (unseal(encrypted, EXTRA), told.as_object_mut()) {
        told.insert(EXTRA.to_owned(), extra);
    }
    told
}

/// The model's own text if it is an object. Servers read what they are sent of earlier calls, and
/// refuse the whole conversation, in every later run too, for one text that was cut.
fn own_arguments(call: &Call) -> Cow<'_, str> {
    let text = call.arguments.trim_start();
    if text.starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok() {
        return Cow::Borrowed(&call.arguments);
    }
    call.input.as_ref().map_or(Cow::Borrowed("{}"), |input| json!(input).to_string().into())
}
