//! Reads the stream of an answer.

use agui_adapter::model::{event::ModelUsage, msg::MediaSource};
use serde_json::Value;

use super::{
    super::{
        Artefact, FinishReason, ModelError, ModelErrorKind, ModelEvent, ModelRequest, json,
        names::Names, wire::Decoder,
    },
    PART_SIGNATURE, SIGNATURE, WIRE, failure,
};

/// Reads one answer.
pub(super) struct Chunks {
    names: Names,
    /// Whether a block of thinking is open.
    thinking: bool,
    /// The signature of the text or medium that forms; held, because more of it may follow.
    signature: Option<String>,
    /// How many calls were made.
    calls: usize,
    usage: Option<ModelUsage>,
    reason: Option<FinishReason>,
    finished: bool,
}

impl Chunks {
    pub(super) fn new(request: &ModelRequest) -> Self {
        Self {
            names: Names::of(&request.tools),
            thinking: false,
            signature: None,
            calls: 0,
            usage: None,
            reason: None,
            finished: false,
        }
    }

    fn part(&mut self, part: &Value, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let signature = text(part, "thoughtSignature");
        let is_thought = part.get("thought").and_then(Value::as_bool) == Some(true);
        if let Some(call) = part.get("functionCall").filter(|call| call.is_object()) {
            return self.call(call, signature, out);
        }
        if is_thought {
            self.thought(text(part, "text").unwrap_or_default(), signature, out);
            return Ok(());
        }
        if let Some(text) = text(part, "text") {
            self.close_thinking(out);
            out.push(ModelEvent::Text(text.to_owned()));
        } else if let Some(source) = medium(part) {
            self.close(out);
            out.push(ModelEvent::Media(source));
        }
        if let Some(signature) = signature {
            self.close_thinking(out);
            self.signature = Some(signature.to_owned());
        }
        Ok(())
    }

    fn thought(&mut self, text: &str, signature: Option<&str>, out: &mut Vec<ModelEvent>) {
        self.close_part(out);
        if !text.is_empty() {
            self.thinking = true;
            out.push(ModelEvent::Thinking(text.to_owned()));
        }
        if let Some(signature) = signature {
            self.thinking = false;
            out.push(ModelEvent::ThinkingEnd { encrypted: Some(seal(SIGNATURE, signature)) });
        }
    }

    /// Calls come whole.
    fn call(
        &mut self,
        call: &Value,
        signature: Option<&str>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let name = text(call, "name").ok_or_else(|| failed("a function call without a name"))?;
        self.close(out);
        let index = self.calls;
        self.calls += 1;
        let (id, name) = (text(call, "id").unwrap_or_default(), self.names.decode(name));
        out.push(ModelEvent::CallStart { index, id: id.to_owned(), name });
        if let Some(arguments) = call.get("args").filter(|arguments| !arguments.is_null()) {
            out.push(ModelEvent::CallDelta { index, delta: arguments.to_string() });
        }
        let encrypted = signature.map(|signature| seal(SIGNATURE, signature));
        out.push(ModelEvent::CallEnd { index, encrypted });
        Ok(())
    }

    fn close(&mut self, out: &mut Vec<ModelEvent>) {
        self.close_thinking(out);
        self.close_part(out);
    }

    fn close_thinking(&mut self, out: &mut Vec<ModelEvent>) {
        if std::mem::take(&mut self.thinking) {
            out.push(ModelEvent::ThinkingEnd { encrypted: None });
        }
    }

    fn close_part(&mut self, out: &mut Vec<ModelEvent>) {
        if let Some(signature) = self.signature.take() {
            let encrypted = Some(seal(PART_SIGNATURE, &signature));
            out.push(ModelEvent::ThinkingEnd { encrypted });
        }
    }
}

impl Decoder for Chunks {
    fn on_event(
        &mut self,
        _name: Option<&str>,
        data: &str,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        if self.finished {
            return Ok(());
        }
        let data: Value = json::parse(data).map_err(|_| failed("data that is not JSON"))?;
        if data.get("error").is_some_and(|error| !error.is_null()) {
            return Err(failure::in_stream(&data));
        }
        let candidate = data.pointer("/candidates/0").unwrap_or(&Value::Null);
        let parts = candidate.pointer("/content/parts").and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            self.part(part, out)?;
        }
        if let Some(reason) = text(candidate, "finishReason") {
            self.reason = Some(finish_reason(reason));
        } else if data.pointer("/promptFeedback/blockReason").is_some() {
            self.reason.get_or_insert(FinishReason::ContentFilter);
        }
        if let Some(usage) = data.get("usageMetadata") {
            self.usage = usage_of(usage).or(self.usage.take());
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.reason.is_some()
    }

    /// Only here the answer is complete: counts may come behind the reason why it stops.
    fn on_end(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if self.finished {
            return Ok(());
        }
        let reason = self
            .reason
            .take()
            .ok_or_else(|| failed("a stream that ends before the answer does"))?;
        self.close(out);
        out.extend(self.usage.take().map(ModelEvent::Usage));
        out.push(ModelEvent::Finish(match reason {
            FinishReason::Stop if self.calls > 0 => FinishReason::ToolCalls,
            reason => reason,
        }));
        self.finished = true;
        Ok(())
    }
}

/// A member that is text, and not empty.
fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str).filter(|text| !text.is_empty())
}

fn medium(part: &Value) -> Option<MediaSource> {
    if let Some(inline) = part.get("inlineData") {
        let media_type = text(inline, "mimeType").unwrap_or_default().to_owned();
        return Some(MediaSource::Base64 { media_type, data: text(inline, "data")?.to_owned() });
    }
    let file = part.get("fileData")?;
    let media_type = text(file, "mimeType").map(str::to_owned);
    Some(MediaSource::Url { media_type, url: text(file, "fileUri")?.to_owned() })
}

/// The API counts thoughts beside the answer, and the prompts of its own tools beside ours.
fn usage_of(usage: &Value) -> Option<ModelUsage> {
    let count = |key: &str| usage.get(key).and_then(Value::as_u64);
    let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    };
    let reasoning = count("thoughtsTokenCount");
    let usage = ModelUsage {
        input: sum(count("promptTokenCount"), count("toolUsePromptTokenCount")),
        output: sum(count("candidatesTokenCount"), reasoning),
        cache_read: count("cachedContentTokenCount"),
        reasoning,
        total: count("totalTokenCount"),
        ..ModelUsage::default()
    };
    (usage != ModelUsage::default()).then_some(usage)
}

fn seal(kind: &str, value: &str) -> String {
    Artefact { wire: WIRE, kind, value }.seal()
}

fn finish_reason(reason: &str) -> FinishReason {
    match reason {
        "STOP" => FinishReason::Stop,
        "MAX_TOKENS" => FinishReason::Length,
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "MODEL_ARMOR" => FinishReason::ContentFilter,
        // `MALFORMED_FUNCTION_CALL`, and reasons to come.
        other => FinishReason::other(other),
    }
}

fn failed(what: &str) -> ModelError {
    ModelError { kind: ModelErrorKind::Other, cause: format!("the answer is {what}") }
}
