//! How long things are as JSON: a cheap guess first, the exact length only when the guess is
//! near the limit.

use std::io::{self, Write};

use agui_protocol::{Body, Content, ContentPart, Event, Object, PartSource, PatchOperation};
use serde_json::Value;

/// One byte of a string takes at most six in JSON (`\u001f`).
pub(super) const WORST_ESCAPE: usize = 6;

/// What the names of an event's members and the ids made here take at most in practice.
pub(super) const FRAME_OVERHEAD: usize = 4096;

/// Bytes that are certainly not exceeded before escaping, counted up to `enough`. Large members
/// whose shape is not worth walking count as `enough`: the exact length decides about them.
pub(super) fn guess(event: &Event, enough: usize) -> usize {
    let mut sum = Sum { bytes: FRAME_OVERHEAD, enough };
    if let Some(raw) = &event.raw_event {
        sum.value(raw);
    }
    if let Some(metadata) = &event.metadata {
        sum.object(metadata);
    }
    sum.body(&event.body);
    sum.bytes
}

/// The same as [`guess`] for a body alone.
pub(super) fn guess_body(body: &Body, enough: usize) -> usize {
    let mut sum = Sum { bytes: FRAME_OVERHEAD, enough };
    sum.body(body);
    sum.bytes
}

struct Sum {
    bytes: usize,
    enough: usize,
}

impl Sum {
    fn add(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    fn body(&mut self, body: &Body) {
        self.add(names_len(body));
        match body {
            Body::ToolCallResult { content, .. } => self.content(content),
            Body::RunError { message, .. } | Body::SubagentError { message, .. } => {
                self.add(message.len());
            }
            Body::ReasoningEncryptedValue { encrypted_value, .. } => {
                self.add(encrypted_value.len());
            }
            Body::StateSnapshot { snapshot: value, .. }
            | Body::Custom { value, .. }
            | Body::Raw { event: value, .. } => self.value(value),
            Body::StateDelta { delta: patch, .. } | Body::ActivityDelta { patch, .. } => {
                patch.iter().for_each(|operation| self.operation(operation));
            }
            Body::ActivitySnapshot { content, .. } => self.object(content),
            Body::SubagentFinished { result: Some(result), .. } => self.value(result),
            // Rare and deep: once a run at most.
            Body::MessagesSnapshot { .. }
            | Body::RunFinished { .. }
            | Body::RunStarted { input: Some(_), .. } => self.add(self.enough),
            _ => self.add(body.delta().map_or(0, str::len)),
        }
    }

    fn content(&mut self, content: &Content) {
        match content {
            Content::Text(text) => self.add(text.len()),
            Content::Parts(parts) => parts.iter().for_each(|part| self.part(part)),
        }
    }

    fn part(&mut self, part: &ContentPart) {
        self.add(64);
        let metadata = match part {
            ContentPart::Text { text, metadata, .. } => {
                self.add(text.len());
                metadata
            }
            ContentPart::Image(media)
            | ContentPart::Audio(media)
            | ContentPart::Video(media)
            | ContentPart::Document(media) => {
                self.add(source_len(&media.source));
                &media.metadata
            }
        };
        if let Some(metadata) = metadata {
            self.value(metadata);
        }
    }

    fn operation(&mut self, operation: &PatchOperation) {
        use PatchOperation::{Add, Copy, Move, Remove, Replace, Test};
        self.add(64);
        match operation {
            Add { path, value, extra }
            | Replace { path, value, extra }
            | Test { path, value, extra } => {
                self.add(path.len());
                self.value(value);
                self.object(extra);
            }
            Remove { path, extra } => {
                self.add(path.len());
                self.object(extra);
            }
            Move { from, path, extra } | Copy { from, path, extra } => {
                self.add(from.len() + path.len());
                self.object(extra);
            }
        }
    }

    fn object(&mut self, object: &Object) {
        for (key, value) in object {
            if self.bytes > self.enough {
                return;
            }
            self.add(key.len() + 4);
            self.value(value);
        }
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Null | Value::Bool(_) => self.add(6),
            Value::Number(_) => self.add(32),
            Value::String(text) => self.add(text.len() + 3),
            Value::Array(items) => {
                self.add(2);
                for item in items {
                    if self.bytes > self.enough {
                        return;
                    }
                    self.value(item);
                }
            }
            Value::Object(object) => {
                self.add(2);
                self.object(object);
            }
        }
    }
}

/// Length of the names and ids that an agent chose.
fn names_len(body: &Body) -> usize {
    match body {
        Body::ToolCallStart { tool_call_id, tool_call_name, .. } => {
            tool_call_id.as_str().len() + tool_call_name.len()
        }
        Body::ToolCallArgs { tool_call_id, .. }
        | Body::ToolCallEnd { tool_call_id, .. }
        | Body::ToolCallResult { tool_call_id, .. } => tool_call_id.as_str().len(),
        Body::StepStarted { step_name: name, .. }
        | Body::StepFinished { step_name: name, .. }
        | Body::TextMessageStart { name: Some(name), .. }
        | Body::ActivitySnapshot { activity_type: name, .. }
        | Body::ActivityDelta { activity_type: name, .. }
        | Body::Raw { source: Some(name), .. }
        | Body::Custom { name, .. } => name.len(),
        Body::SubagentStarted { name, description, .. } => {
            name.len() + description.as_ref().map_or(0, String::len)
        }
        _ => 0,
    }
}

/// Length of what a media part's source holds.
pub(super) fn source_len(source: &PartSource) -> usize {
    match source {
        PartSource::Data { value, .. }
        | PartSource::Url { value, .. }
        | PartSource::File { value, .. } => value.len(),
    }
}

/// Length of `value` as JSON.
pub(crate) fn exact(value: &impl serde::Serialize) -> usize {
    let mut counter = Counter(0);
    match serde_json::to_writer(&mut counter, value) {
        Ok(()) => counter.0,
        // What cannot be written has no length; whoever writes it will say so.
        Err(_) => 0,
    }
}

struct Counter(usize);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Shortens `text` at the end of a character so that, escaped, it takes at most `budget` bytes.
/// Says whether something was cut.
pub(super) fn cut(text: &mut String, budget: usize) -> bool {
    let mut used = 0;
    for (index, character) in text.char_indices() {
        used += escaped_len(character);
        if used > budget {
            text.truncate(index);
            return true;
        }
    }
    false
}

fn escaped_len(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => WORST_ESCAPE,
        other => other.len_utf8(),
    }
}
