//! Reads the chunks of an answer.

use std::sync::Arc;

use agui_adapter::model::{event::ModelUsage, msg::MediaSource};
use serde_json::Value;

use super::{
    calls::Calls,
    chunk::{Choice, Chunk, Delta, Loose, Piece, usage},
    reasoning::{Details, ReasoningField, text_of},
};
use crate::llm::{
    FinishReason, ModelError, ModelErrorKind, ModelEvent, failure::ProviderError, json,
    media::data_url, names::Names, wire::Decoder,
};

/// What ends a stream.
const DONE: &str = "[DONE]";

/// The state of one answer.
pub(super) struct ChatDecoder {
    names: Names,
    field: Arc<ReasoningField>,
    calls: Calls,
    details: Details,
    usage: Option<ModelUsage>,
    finish: Option<FinishReason>,
    /// Index of the answer that is read. `parameters` may ask for several, of which one is.
    choice: Option<u64>,
    /// Whether the model said anything.
    spoke: bool,
}

impl ChatDecoder {
    pub(super) fn new(names: Names, field: Arc<ReasoningField>) -> Self {
        Self {
            names,
            field,
            calls: Calls::default(),
            details: Details::default(),
            usage: None,
            finish: None,
            choice: None,
            spoke: false,
        }
    }

    fn chunk(&mut self, chunk: Chunk, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let groq = chunk.x_groq.as_ref().and_then(|groq| groq.get("usage")).and_then(usage);
        let own = chunk.usage.as_ref().and_then(usage).or(groq);
        let ours = chunk.choices.into_iter().flatten().find(|choice| self.is_ours(choice));
        let Some(choice) = ours else {
            self.usage = own.or(self.usage.take());
            return Ok(());
        };
        let Choice { delta, message, finish_reason, usage: beside, .. } = choice;
        let beside = beside.as_ref().and_then(usage);
        self.usage = own.or(beside).or(self.usage.take());
        let before = out.len();
        if let Some(delta) = delta {
            self.delta(delta, out);
        }
        self.spoke |= out.len() > before;
        if let Some(message) = message.filter(|_| !self.spoke) {
            self.delta(message, out);
            self.spoke = out.len() > before;
        }
        match finish_reason.and_then(Loose::text).as_deref() {
            // DashScope's word for none.
            None | Some("null") => Ok(()),
            Some("error") => Err(other("the answer ends with an error")),
            Some(reason) => {
                self.finish = Some(reason_of(reason));
                Ok(())
            }
        }
    }

    /// Whether it is a piece of the answer of which the first one was.
    fn is_ours(&mut self, choice: &Choice) -> bool {
        let index = choice.index.as_ref().and_then(Value::as_u64).unwrap_or_default();
        *self.choice.get_or_insert(index) == index
    }

    fn delta(&mut self, delta: Delta, out: &mut Vec<ModelEvent>) {
        self.reasoning(delta.reasoning_content, delta.reasoning, delta.reasoning_details, out);
        match delta.content {
            Some(Loose::Other(Value::Array(parts))) => self.parts(&parts, out),
            content => self.text(content, out),
        }
        self.text(delta.refusal, out);
        let transcript = delta.audio.as_ref().and_then(|audio| audio.get("transcript"));
        self.text(transcript.and_then(Value::as_str).map(|text| Loose::Text(text.to_owned())), out);
        for image in delta.images.into_iter().flatten() {
            let url = image.pointer("/image_url/url").and_then(Value::as_str);
            if let Some(url) = url {
                self.end_thinking(out);
                out.push(ModelEvent::Media(medium(url)));
            }
        }
        let legacy = delta.function_call.map(Piece::from);
        let calls = delta.tool_calls.into_iter().flatten().map(Piece::from);
        for piece in calls.chain(legacy) {
            self.end_thinking(out);
            self.calls.take(piece, &self.names, out);
        }
    }

    fn reasoning(
        &mut self,
        long: Option<Loose>,
        short: Option<Loose>,
        details: Option<Vec<Value>>,
        out: &mut Vec<ModelEvent>,
    ) {
        let mut text = long.and_then(Loose::text);
        if text.is_none() {
            text = short.and_then(Loose::text);
            if text.is_some() {
                self.field.seen_short();
            }
        }
        for piece in details.into_iter().flatten() {
            if text.is_none() {
                out.extend(thinking(text_of(&piece)));
            }
            self.details.add(piece);
        }
        out.extend(thinking(text.as_deref()));
    }

    /// Content in parts, as Mistral has it.
    fn parts(&mut self, parts: &[Value], out: &mut Vec<ModelEvent>) {
        for part in parts {
            let text = part.get("text").and_then(Value::as_str);
            match part.get("thinking") {
                Some(Value::String(text)) => out.extend(thinking(Some(text))),
                Some(Value::Array(inner)) => {
                    out.extend(inner.iter().flat_map(|part| thinking(text_of(part))));
                }
                _ => self.text(text.map(|text| Loose::Text(text.to_owned())), out),
            }
        }
    }

    fn text(&mut self, text: Option<Loose>, out: &mut Vec<ModelEvent>) {
        if let Some(text) = text.and_then(Loose::text) {
            self.end_thinking(out);
            out.push(ModelEvent::Text(text));
        }
    }

    /// The thinking before something else is complete, if it has an artefact.
    fn end_thinking(&mut self, out: &mut Vec<ModelEvent>) {
        if let Some(details) = self.details.take() {
            out.push(ModelEvent::ThinkingEnd { encrypted: Some(details) });
        }
    }

    fn finish(&mut self, reason: FinishReason, out: &mut Vec<ModelEvent>) {
        self.end_thinking(out);
        self.calls.finish(out);
        out.extend(self.usage.take().map(ModelEvent::Usage));
        // Some say `stop` and mean that they wait for tools.
        let waits = reason == FinishReason::Stop && !self.calls.is_empty();
        out.push(ModelEvent::Finish(if waits { FinishReason::ToolCalls } else { reason }));
    }

    /// What a failed answer cost counts all the same.
    fn fail(&mut self, error: ModelError, out: &mut Vec<ModelEvent>) -> ModelError {
        out.extend(self.usage.take().map(ModelEvent::Usage));
        error
    }
}

impl Decoder for ChatDecoder {
    fn on_event(
        &mut self,
        name: Option<&str>,
        data: &str,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        if data == DONE {
            let spoke = self.spoke.then_some(FinishReason::Stop);
            return match self.finish.take().or(spoke) {
                Some(reason) => {
                    self.finish(reason, out);
                    Ok(())
                }
                None => Err(self.fail(other("the answer is empty"), out)),
            };
        }
        let read = match json::parse::<Chunk>(data) {
            Ok(chunk) => match error_of(name, &chunk, data) {
                Some(error) => Err(error),
                None => self.chunk(chunk, out),
            },
            Err(_) if name == Some("error") => {
                Err(ProviderError::of_body(data.as_bytes()).in_band())
            }
            // The text of the fault may quote the answer.
            Err(error) => Err(other(&format!(
                "a chunk is no JSON of a chat completion (column {})",
                error.column()
            ))),
        };
        read.map_err(|error| self.fail(error, out))
    }

    fn is_complete(&self) -> bool {
        self.finish.is_some()
    }

    fn on_end(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        match self.finish.take() {
            Some(reason) => {
                self.finish(reason, out);
                Ok(())
            }
            None => Err(self.fail(other("the answer ends without a reason"), out)),
        }
    }
}

/// The error that a chunk is.
fn error_of(name: Option<&str>, chunk: &Chunk, data: &str) -> Option<ModelError> {
    match &chunk.error {
        Some(Value::Null | Value::Bool(false)) | None => {}
        Some(Value::String(text)) if text.is_empty() => {}
        Some(error) => return Some(ProviderError::of(error).in_band()),
    }
    if name != Some("error") && (chunk.choices.is_some() || chunk.usage.is_some()) {
        return None;
    }
    // vLLM and DashScope have errors without a member of that name.
    let value: Value = json::parse(data).ok()?;
    let code = value.get("code").or_else(|| value.get("error_code"));
    let is_error = name == Some("error")
        || value.get("object").is_some_and(|object| object == "error")
        || (code.is_some_and(|code| !code.is_null()) && value.get("message").is_some());
    is_error.then(|| ProviderError::of(&value).in_band())
}

fn thinking(text: Option<&str>) -> Option<ModelEvent> {
    let text = text.filter(|text| !text.is_empty())?;
    Some(ModelEvent::Thinking(text.to_owned()))
}

fn medium(url: &str) -> MediaSource {
    match data_url(url) {
        Some((media_type, data)) => MediaSource::Base64 {
            media_type: media_type.unwrap_or_default().to_owned(),
            data: data.to_owned(),
        },
        None => MediaSource::Url { media_type: None, url: url.to_owned() },
    }
}

fn reason_of(reason: &str) -> FinishReason {
    match reason {
        "stop" => FinishReason::Stop,
        "tool_calls" | "function_call" => FinishReason::ToolCalls,
        "length" => FinishReason::Length,
        "content_filter" => FinishReason::ContentFilter,
        other => FinishReason::other(other),
    }
}

fn other(cause: &str) -> ModelError {
    ModelError { kind: ModelErrorKind::Other, cause: cause.to_owned() }
}
