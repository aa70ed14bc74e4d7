//! Reads the stream of an answer.

use std::collections::BTreeMap;

use agui_adapter::model::event::ModelUsage;
use serde_json::Value;

use super::{
    super::{
        Artefact, FinishReason, ModelError, ModelErrorKind, ModelEvent, ModelRequest,
        failure::ProviderError, json, names::Names, wire::Decoder,
    },
    REDACTED, SIGNATURE, WIRE,
};

/// Reads one answer.
pub(super) struct Messages {
    names: Names,
    /// Blocks that are not complete, by the API's index.
    open: BTreeMap<u64, Block>,
    /// How many calls began.
    calls: usize,
    tokens: Tokens,
    reason: Option<FinishReason>,
    finished: bool,
}

/// A block while it forms.
enum Block {
    Text,
    Thinking {
        said: bool,
        signature: String,
    },
    Redacted {
        data: String,
    },
    Call {
        index: usize,
        input: String,
    },
    /// Of a tool that runs at the provider's, or of a kind to come.
    Foreign,
}

/// Counts so far; they only grow, and some servers repeat them as zeros.
#[derive(Default)]
struct Tokens {
    input: Option<u64>,
    output: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    told: bool,
}

impl Messages {
    pub(super) fn new(request: &ModelRequest) -> Self {
        Self {
            names: Names::of(&request.tools),
            open: BTreeMap::new(),
            calls: 0,
            tokens: Tokens::default(),
            reason: None,
            finished: false,
        }
    }

    fn start(&mut self, index: u64, block: &Value, out: &mut Vec<ModelEvent>) {
        self.close_thinking(out);
        self.stop(index, out);
        let text = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
        let opened = match text("type") {
            "text" => {
                push_text(text("text"), out);
                Block::Text
            }
            "thinking" => {
                let said = push_thinking(text("thinking"), out);
                Block::Thinking { said, signature: text("signature").to_owned() }
            }
            "redacted_thinking" => Block::Redacted { data: text("data").to_owned() },
            "tool_use" => {
                let index = self.calls;
                self.calls += 1;
                let (id, name) = (text("id").to_owned(), self.names.decode(text("name")));
                out.push(ModelEvent::CallStart { index, id, name });
                Block::Call { index, input: whole_input(block.get("input")) }
            }
            _ => Block::Foreign,
        };
        self.open.insert(index, opened);
    }

    fn delta(&mut self, index: u64, delta: &Value, out: &mut Vec<ModelEvent>) {
        let text = |key: &str| delta.get(key).and_then(Value::as_str).unwrap_or_default();
        match (text("type"), self.open.get_mut(&index)) {
            ("text_delta", Some(Block::Text)) => push_text(text("text"), out),
            ("thinking_delta", Some(Block::Thinking { said, .. })) => {
                *said |= push_thinking(text("thinking"), out);
            }
            ("signature_delta", Some(Block::Thinking { signature, .. })) => {
                signature.push_str(text("signature"));
            }
            ("input_json_delta", Some(Block::Call { index, input })) => {
                let delta = text("partial_json");
                if !delta.is_empty() {
                    input.clear();
                    out.push(ModelEvent::CallDelta { index: *index, delta: delta.to_owned() });
                }
            }
            _ => {}
        }
    }

    fn stop(&mut self, index: u64, out: &mut Vec<ModelEvent>) {
        if let Some(block) = self.open.remove(&index) {
            block.end(out);
        }
    }

    /// Blocks come one behind the other, so thinking ends at the latest where another one begins.
    fn close_thinking(&mut self, out: &mut Vec<ModelEvent>) {
        let thinking =
            |block: &mut Block| matches!(block, Block::Thinking { .. } | Block::Redacted { .. });
        for (_, block) in self.open.extract_if(.., |_, block| thinking(block)) {
            block.end(out);
        }
    }

    fn message_delta(&mut self, data: &Value, out: &mut Vec<ModelEvent>) {
        let reason = data.pointer("/delta/stop_reason").and_then(Value::as_str);
        if let Some(reason) = reason {
            self.reason = Some(finish_reason(reason));
        }
        self.tokens.add(data.get("usage"));
        out.extend(self.tokens.tell());
    }

    fn finish(&mut self, out: &mut Vec<ModelEvent>) {
        for block in std::mem::take(&mut self.open).into_values() {
            block.end(out);
        }
        out.extend(self.tokens.tell());
        let reason = self.reason.take().unwrap_or(FinishReason::Stop);
        out.push(ModelEvent::Finish(match reason {
            FinishReason::Stop if self.calls > 0 => FinishReason::ToolCalls,
            reason => reason,
        }));
        self.finished = true;
    }
}

impl Decoder for Messages {
    fn on_event(
        &mut self,
        name: Option<&str>,
        data: &str,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        if self.finished {
            return Ok(());
        }
        let data: Value = json::parse(data).map_err(|_| failed("data that is not JSON"))?;
        let index = data.get("index").and_then(Value::as_u64).unwrap_or_default();
        let part = |key: &str| data.get(key).unwrap_or(&Value::Null);
        let named = data.get("type").and_then(Value::as_str).or(name);
        // Servers that only speak like this API may say an error without its frame.
        let unnamed = if data.get("error").is_some_and(Value::is_object) { "error" } else { "" };
        match named.unwrap_or(unnamed) {
            "message_start" => self.tokens.add(data.pointer("/message/usage")),
            "content_block_start" => self.start(index, part("content_block"), out),
            "content_block_delta" => self.delta(index, part("delta"), out),
            "content_block_stop" => self.stop(index, out),
            "message_delta" => self.message_delta(&data, out),
            "message_stop" => self.finish(out),
            "error" => return Err(ProviderError::of(&data).in_band()),
            // Pings, and events to come.
            _ => {}
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.reason.is_some()
    }

    fn on_end(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if self.finished {
            return Ok(());
        }
        if self.reason.is_none() {
            return Err(failed("a stream that ends before the answer does"));
        }
        self.finish(out);
        Ok(())
    }
}

impl Block {
    fn end(self, out: &mut Vec<ModelEvent>) {
        match self {
            Self::Thinking { said, signature } => {
                let encrypted = (!signature.is_empty()).then(|| seal(SIGNATURE, &signature));
                if said || encrypted.is_some() {
                    out.push(ModelEvent::ThinkingEnd { encrypted });
                }
            }
            Self::Redacted { data } if data.is_empty() => {}
            Self::Redacted { data } => {
                out.push(ModelEvent::ThinkingEnd { encrypted: Some(seal(REDACTED, &data)) });
            }
            Self::Call { index, input } => {
                if !input.is_empty() {
                    out.push(ModelEvent::CallDelta { index, delta: input });
                }
                out.push(ModelEvent::CallEnd { index, encrypted: None });
            }
            Self::Text | Self::Foreign => {}
        }
    }
}

impl Tokens {
    fn add(&mut self, usage: Option<&Value>) {
        let count = |key: &str| usage?.get(key)?.as_u64();
        for (slot, key) in [
            (&mut self.input, "input_tokens"),
            (&mut self.output, "output_tokens"),
            (&mut self.cache_read, "cache_read_input_tokens"),
            (&mut self.cache_write, "cache_creation_input_tokens"),
        ] {
            let count = count(key);
            self.told &= count <= *slot;
            *slot = (*slot).max(count);
        }
    }

    /// The counts, if they are news.
    fn tell(&mut self) -> Option<ModelEvent> {
        let known = self.input.or(self.output).or(self.cache_read).or(self.cache_write);
        if std::mem::replace(&mut self.told, true) || known.is_none() {
            return None;
        }
        // The API counts prompt tokens without those of the cache.
        let cached = self.cache_read.unwrap_or(0).saturating_add(self.cache_write.unwrap_or(0));
        Some(ModelEvent::Usage(ModelUsage {
            input: self.input.map(|input| input.saturating_add(cached)),
            output: self.output,
            cache_read: self.cache_read,
            cache_write: self.cache_write,
            ..ModelUsage::default()
        }))
    }
}

fn push_text(text: &str, out: &mut Vec<ModelEvent>) {
    if !text.is_empty() {
        out.push(ModelEvent::Text(text.to_owned()));
    }
}

/// Whether there was any.
fn push_thinking(text: &str, out: &mut Vec<ModelEvent>) -> bool {
    if text.is_empty() {
        return false;
    }
    out.push(ModelEvent::Thinking(text.to_owned()));
    true
}

/// Arguments that came with the start of a call: said only if no deltas follow.
fn whole_input(input: Option<&Value>) -> String {
    match input {
        Some(Value::Object(object)) if object.is_empty() => String::new(),
        None | Some(Value::Null) => String::new(),
        Some(input) => input.to_string(),
    }
}

fn seal(kind: &str, value: &str) -> String {
    Artefact { wire: WIRE, kind, value }.seal()
}

fn finish_reason(reason: &str) -> FinishReason {
    match reason {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "tool_use" => FinishReason::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "refusal" => FinishReason::ContentFilter,
        // `pause_turn` of tools that run at the provider's, and reasons to come.
        other => FinishReason::other(other),
    }
}

fn failed(what: &str) -> ModelError {
    ModelError { kind: ModelErrorKind::Other, cause: format!("the answer is {what}") }
}
