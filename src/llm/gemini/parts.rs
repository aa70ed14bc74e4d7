//! Turns as contents.

use agui_adapter::model::{
    Block,
    event::{Call, Object, ResultState},
    msg::{MediaKind, MediaSource},
};
use serde_json::{Value, json};

use super::{
    super::{
        Artefact,
        media::{Medium, stand_in},
        names,
        turns::{Conversation, Part, Side, Turn, arguments, failure_text},
    },
    PART_SIGNATURE, SIGNATURE,
};

/// Image types that the API takes.
const IMAGES: &[&str] = &["image/jpeg", "image/png", "image/webp", "image/heic", "image/heif"];

/// What the API takes in place of the signature of a call that another provider's model made, or
/// whose signature was lost on its way through a client.
const UNSIGNED: &str = "skip_thought_signature_validator";

/// Makes the contents of one request.
pub(super) struct Contents {
    vision: bool,
    /// Whether calls of the turn in progress need a signature.
    signed: bool,
    /// Whether calls and answers have ids; else the order tells which belong together.
    identified: bool,
    /// How many pictures were left out.
    left_out: usize,
}

impl Contents {
    /// For a model that sees images or not, insists on signatures or not, and takes ids or not.
    pub(super) fn new(vision: bool, signed: bool, identified: bool) -> Self {
        Self { vision, signed, identified, left_out: 0 }
    }

    /// The contents, and how many pictures were left out of them.
    pub(super) fn of(mut self, conversation: &Conversation<'_>) -> (Vec<Value>, usize) {
        let in_progress = conversation.in_progress();
        let mut contents = Vec::new();
        for (at, turn) in conversation.turns.iter().enumerate() {
            match turn.side {
                Side::Model => {
                    let parts = self.model(turn, at >= in_progress);
                    if !parts.is_empty() {
                        contents.push(json!({"role": "model", "parts": parts}));
                    }
                }
                Side::User => {
                    let (answers, parts) = self.user(turn);
                    // Apart: beside answers the model takes the words of the person for its own.
                    for parts in [answers, parts].into_iter().filter(|parts| !parts.is_empty()) {
                        contents.push(json!({"role": "user", "parts": parts}));
                    }
                }
            }
        }
        (contents, self.left_out)
    }

    fn model(&mut self, turn: &Turn<'_>, in_progress: bool) -> Vec<Value> {
        let mut parts: Vec<Value> = Vec::new();
        let mut called = false;
        for part in &turn.parts {
            match part {
                Part::Text(text) => parts.push(json!({"text": text})),
                Part::Thinking { text, artefact } => thought(text, artefact, &mut parts),
                Part::Media { kind, source, name } => parts.push(self.media(*kind, source, *name)),
                Part::Call { call, artefact, .. } => {
                    let signature = artefact.filter(|it| it.kind == SIGNATURE).map(|it| it.value);
                    // Of calls at once the first is signed, for all.
                    let due = self.signed && in_progress && !called;
                    called = true;
                    parts.push(self.function_call(call, signature.or(due.then_some(UNSIGNED))));
                }
                Part::Result { .. } => {}
            }
        }
        parts
    }

    /// Answers, and what else is said.
    fn user(&mut self, turn: &Turn<'_>) -> (Vec<Value>, Vec<Value>) {
        let (mut answers, mut parts) = (Vec::new(), Vec::new());
        for part in &turn.parts {
            match part {
                Part::Result { call, output, state, .. } => {
                    answers.push(self.answer(call, output, *state, &mut parts));
                }
                Part::Text(text) => parts.push(json!({"text": text})),
                Part::Media { kind, source, name } => parts.push(self.media(*kind, source, *name)),
                Part::Thinking { .. } | Part::Call { .. } => {}
            }
        }
        (answers, parts)
    }

    /// An answer under the name of its call. It holds JSON only; its media follow behind all
    /// answers.
    fn answer(
        &mut self,
        call: &Call,
        output: &[Block],
        state: ResultState,
        behind: &mut Vec<Value>,
    ) -> Value {
        let name = names::encode(&call.name);
        let mut texts = Vec::new();
        let mut media = Vec::new();
        for block in output {
            match block {
                Block::Text { text } | Block::Hint { text } => texts.push(text.as_str()),
                Block::Media { kind, source, name, .. } => {
                    media.push(self.media(*kind, source, name.as_deref()));
                }
                Block::Thinking { .. } | Block::ToolUse { .. } | Block::ToolResult { .. } => {}
            }
        }
        let mut text = texts.join("\n");
        if !media.is_empty() {
            behind.push(json!({"text": format!("Media of the result of {name}:")}));
            behind.append(&mut media);
            if text.trim().is_empty() {
                "The media follow.".clone_into(&mut text);
            }
        }
        let response = match failure_text(state) {
            Some(failure) if text.trim().is_empty() => json!({"error": failure}),
            Some(_) => json!({"error": text}),
            None => json!({"result": text}),
        };
        json!({"functionResponse": self.named(call, "response", response)})
    }

    fn function_call(&self, call: &Call, signature: Option<&str>) -> Value {
        let function_call = self.named(call, "args", Value::Object(arguments(call)));
        match signature {
            Some(signature) => {
                json!({"functionCall": function_call, "thoughtSignature": signature})
            }
            None => json!({"functionCall": function_call}),
        }
    }

    /// Id, if there is one, and name of a call with what goes along.
    fn named(&self, call: &Call, member: &str, value: Value) -> Value {
        let name = names::encode(&call.name);
        if call.id.is_empty() || !self.identified {
            json!({"name": name, member: value})
        } else {
            json!({"id": call.id, "name": name, member: value})
        }
    }

    fn media(&mut self, kind: MediaKind, source: &MediaSource, name: Option<&str>) -> Value {
        let seen = match kind {
            MediaKind::Image => Some("image"),
            MediaKind::Video => Some("video"),
            MediaKind::Audio | MediaKind::Document => None,
        };
        if let Some(seen) = seen.filter(|_| !self.vision) {
            self.left_out += 1;
            return json!({"text": format!("[{seen} left out]")});
        }
        media_part(source).unwrap_or_else(|| json!({"text": stand_in(kind, source, name)}))
    }
}

fn thought(text: &str, artefact: &Artefact<'_>, parts: &mut Vec<Value>) {
    let signature = artefact.value;
    match artefact.kind {
        SIGNATURE => {
            parts.push(json!({"text": text, "thought": true, "thoughtSignature": signature}));
        }
        PART_SIGNATURE => match signable(parts) {
            Some(part) => drop(part.insert("thoughtSignature".to_owned(), json!(signature))),
            None => parts.push(json!({"text": "", "thoughtSignature": signature})),
        },
        _ => {}
    }
}

/// The text or medium that the signature behind it belongs to. Clients keep calls with the text
/// before them, so calls may stand between.
fn signable(parts: &mut [Value]) -> Option<&mut Object> {
    let mut back = parts.iter_mut().rev();
    let part = back.find(|part| part.get("functionCall").is_none())?.as_object_mut()?;
    (!part.contains_key("thoughtSignature")).then_some(part)
}

/// `None` = the API takes no media of this type.
fn media_part(source: &MediaSource) -> Option<Value> {
    match Medium::of(source) {
        Medium::Inline { media_type, data } => {
            Some(json!({"inlineData": {"mimeType": taken(media_type?)?, "data": data}}))
        }
        Medium::Url { media_type: None, url } => Some(json!({"fileData": {"fileUri": url}})),
        Medium::Url { media_type: Some(media_type), url } => {
            let media_type = taken(media_type)?;
            Some(json!({"fileData": {"mimeType": media_type, "fileUri": url}}))
        }
    }
}

/// The name under which the API takes media of a type.
fn taken(media_type: &str) -> Option<&str> {
    match media_type {
        "application/json" => Some("text/plain"),
        "application/pdf" => Some(media_type),
        image if image.starts_with("image/") => IMAGES.contains(&image).then_some(image),
        other => {
            ["audio/", "video/", "text/"].iter().any(|it| other.starts_with(it)).then_some(other)
        }
    }
}
