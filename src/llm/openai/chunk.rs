//! A chunk of an answer, read so that no provider's habit breaks it.

use agui_adapter::model::event::ModelUsage;
use serde::Deserialize;
use serde_json::Value;

/// One `data:` of the stream, or the whole answer of a server that does not stream.
#[derive(Debug, Deserialize)]
pub(super) struct Chunk {
    pub(super) choices: Option<Vec<Choice>>,
    pub(super) usage: Option<Value>,
    pub(super) error: Option<Value>,
    /// Groq puts usage here.
    pub(super) x_groq: Option<Value>,
}

/// A piece of one of the answers; as a rule there is but one.
#[derive(Debug, Deserialize)]
pub(super) struct Choice {
    /// Of which answer.
    pub(super) index: Option<Value>,
    /// What is new.
    pub(super) delta: Option<Delta>,
    /// The whole answer of a server that does not stream; MiniMax repeats it at the end of a
    /// stream.
    pub(super) message: Option<Delta>,
    pub(super) finish_reason: Option<Loose>,
    /// Moonshot puts usage here.
    pub(super) usage: Option<Value>,
}

/// What is new.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Delta {
    pub(super) content: Option<Loose>,
    pub(super) reasoning_content: Option<Loose>,
    pub(super) reasoning: Option<Loose>,
    pub(super) reasoning_details: Option<Vec<Value>>,
    pub(super) refusal: Option<Loose>,
    pub(super) images: Option<Vec<Value>>,
    pub(super) audio: Option<Value>,
    pub(super) tool_calls: Option<Vec<CallPiece>>,
    /// What came before `tool_calls`.
    pub(super) function_call: Option<Function>,
}

/// A piece of a call.
#[derive(Debug, Default, Deserialize)]
pub(super) struct CallPiece {
    index: Option<Value>,
    id: Option<Loose>,
    function: Option<Function>,
    /// Gemini's signature of a thought.
    pub(super) extra_content: Option<Value>,
}

/// Name and arguments.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Function {
    name: Option<Loose>,
    arguments: Option<Loose>,
}

/// A string, or what some send in its place.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Loose {
    /// What it should be.
    Text(String),
    /// Something else.
    Other(Value),
}

impl Loose {
    /// The text; an empty one is none.
    pub(super) fn text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text).filter(|text| !text.is_empty()),
            Self::Other(_) => None,
        }
    }

    /// The text; of something else its JSON.
    fn json(self) -> Option<String> {
        match self {
            Self::Other(Value::Null) => None,
            Self::Other(value) => Some(value.to_string()),
            text => text.text(),
        }
    }
}

/// A piece of a call, with nothing empty.
#[derive(Debug, Default)]
pub(super) struct Piece {
    pub(super) index: Option<u64>,
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) arguments: Option<String>,
    pub(super) extra: Option<Value>,
}

impl From<CallPiece> for Piece {
    fn from(piece: CallPiece) -> Self {
        let function = piece.function.unwrap_or_default();
        let index = piece.index.and_then(|index| match index {
            Value::String(digits) => digits.parse().ok(),
            number => number.as_u64(),
        });
        Self {
            index,
            id: piece.id.and_then(Loose::json),
            extra: piece.extra_content.filter(|extra| !extra.is_null()),
            ..Self::from(function)
        }
    }
}

impl From<Function> for Piece {
    fn from(function: Function) -> Self {
        Self {
            name: function.name.and_then(Loose::text),
            arguments: function.arguments.and_then(Loose::json),
            ..Self::default()
        }
    }
}

/// Usage; a count that is not there is unknown, and `None` if all are.
pub(super) fn usage(value: &Value) -> Option<ModelUsage> {
    let count = |path: &str| {
        let found = value.pointer(path)?;
        found.as_u64().or_else(|| {
            // Some count in floating point.
            let text = found.as_f64().filter(|count| *count >= 0.0)?.trunc().to_string();
            text.parse().ok()
        })
    };
    let first = |paths: &[&str]| paths.iter().find_map(|path| count(path));
    let usage = ModelUsage {
        input: count("/prompt_tokens"),
        output: count("/completion_tokens"),
        cache_read: first(&[
            "/prompt_tokens_details/cached_tokens",
            "/prompt_cache_hit_tokens",
            "/cached_tokens",
        ]),
        cache_write: first(&[
            "/prompt_tokens_details/cache_write_tokens",
            "/prompt_tokens_details/cache_creation_input_tokens",
        ]),
        reasoning: count("/completion_tokens_details/reasoning_tokens"),
        total: count("/total_tokens"),
        seconds: None,
    };
    (usage != ModelUsage::default()).then_some(usage)
}
