//! Reasoning: in which field it comes, and what has to go back.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use super::WIRE;
use crate::llm::Artefact;

/// Kind of the artefact that holds OpenRouter's `reasoning_details`.
pub(super) const DETAILS: &str = "reasoning_details";

/// Kind of the artefact of a call that holds Gemini's `extra_content`.
pub(super) const EXTRA: &str = "extra_content";

/// In which of two fields a provider gives its reasoning, and so takes it back. Some refuse the
/// other one.
#[derive(Debug, Default)]
pub(super) struct ReasoningField(AtomicBool);

impl ReasoningField {
    /// It came as `reasoning`, not as `reasoning_content`.
    pub(super) fn seen_short(&self) {
        // Read first: the line is shared by all runs, and one write is enough.
        if !self.0.load(Ordering::Relaxed) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    pub(super) fn name(&self) -> &'static str {
        if self.0.load(Ordering::Relaxed) { "reasoning" } else { "reasoning_content" }
    }
}

/// An artefact of this wire.
pub(super) fn seal(kind: &str, value: &Value) -> String {
    Artefact { wire: WIRE, kind, value: &value.to_string() }.seal()
}

/// What an artefact of this wire and kind holds.
pub(super) fn unseal(encrypted: Option<&str>, kind: &str) -> Option<Value> {
    let artefact = Artefact::parse(encrypted?)?;
    let ours = artefact.wire == WIRE && artefact.kind == kind;
    ours.then(|| serde_json::from_str(artefact.value).ok()).flatten()
}

/// The pieces of `reasoning_details`, put together as they have to go back.
#[derive(Debug, Default)]
pub(super) struct Details(Vec<Value>);

impl Details {
    /// One more piece: it continues the entry of its type and index, or is an entry.
    pub(super) fn add(&mut self, piece: Value) {
        let place = |value: &Value| (value.get("type").cloned(), value.get("index").cloned());
        let (kind, index) = place(&piece);
        let last =
            self.0.iter_mut().rev().find(|entry| place(entry) == (kind.clone(), index.clone()));
        match (last, index, piece) {
            (Some(Value::Object(entry)), Some(_), Value::Object(piece)) => {
                for (name, value) in piece {
                    let grows = ["text", "summary", "data"].contains(&name.as_str());
                    match (entry.get_mut(&name), value) {
                        (Some(Value::String(text)), Value::String(more)) if grows => {
                            text.push_str(&more);
                        }
                        (Some(_), Value::Null) => {}
                        (_, value) => {
                            entry.insert(name, value);
                        }
                    }
                }
            }
            (_, _, piece) => self.0.push(piece),
        }
    }

    /// What was put together, if anything; the rest begins anew.
    pub(super) fn take(&mut self) -> Option<String> {
        let entries = std::mem::take(&mut self.0);
        (!entries.is_empty()).then(|| seal(DETAILS, &Value::Array(entries)))
    }
}

/// The text of a piece, for those who give no other.
pub(super) fn text_of(piece: &Value) -> Option<&str> {
    piece.get("text").or_else(|| piece.get("summary")).and_then(Value::as_str)
}
