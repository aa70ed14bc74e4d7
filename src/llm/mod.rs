//! Models: what the agent loop says to one, and what one answers.
//!
//! A wire (`openai`, `anthropic`, `gemini`) turns a [`ModelRequest`] into an HTTP request and the
//! stream of its answer into [`ModelEvent`]s, without I/O; one client does the talking for all of
//! them: retries, timeouts, errors. Knows AgentScope's messages and no agent.

mod answer;
mod anthropic;
mod body;
mod client;
mod failure;
mod gemini;
mod json;
mod media;
mod names;
mod openai;
mod retry;
mod source;
mod turns;
mod wire;

use std::{pin::Pin, sync::Arc, time::Duration};

use agui_adapter::model::{Msg, event::ModelUsage, msg::MediaSource};
use futures_util::Stream;
use serde_json::Value;

use crate::config::models::{ModelConfig, Provider};

/// What a model says: deltas as they form, then exactly one [`ModelEvent::Finish`], or one error.
/// Dropping it closes the connection to the model.
pub type ModelStream = Pin<Box<dyn Stream<Item = Result<ModelEvent, ModelError>> + Send>>;

/// A model that can be talked to. One object serves many runs at once.
pub trait ChatModel: Send + Sync + 'static {
    /// The name under which the provider knows it, e.g. `qwen-plus`.
    fn name(&self) -> &str;

    /// Starts one call.
    fn stream(&self, request: ModelRequest) -> ModelStream;
}

/// The model that is configured; connects when it is called.
pub fn connect(config: &ModelConfig, client: reqwest::Client) -> Arc<dyn ChatModel> {
    let wire: Box<dyn wire::Wire> = match config.provider {
        Provider::OpenAi => Box::new(openai::OpenAi::new(config)),
        Provider::Anthropic => Box::new(anthropic::Anthropic::new(config)),
        Provider::Gemini => Box::new(gemini::Gemini::new(config)),
    };
    Arc::new(client::HttpModel::new(config, wire, client))
}

/// One call of a model.
#[derive(Clone, Debug, Default)]
pub struct ModelRequest {
    /// Instructions; empty = none.
    pub system: String,
    /// The conversation: every answer behind its call, every call answered.
    pub messages: Vec<Arc<Msg>>,
    /// What the model may call.
    pub tools: Arc<[FunctionSpec]>,
    /// Whether it may.
    pub tool_choice: ToolChoice,
    /// Names the request in the log.
    pub request_id: Arc<str>,
}

/// A tool as the model is told of it.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionSpec {
    /// Its name; a wire encodes what its provider does not take, and maps it back.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of the arguments, an object.
    pub parameters: Arc<Value>,
}

/// Whether a model may call tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// As it likes.
    #[default]
    Auto,
    /// Not in this call.
    None,
}

/// A piece of a model's answer. None is empty.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelEvent {
    /// More text.
    Text(String),
    /// More thinking.
    Thinking(String),
    /// A block of thinking is complete; what follows is another block. One that hides its text
    /// comes as this event alone.
    ThinkingEnd {
        /// The provider's artefact, in the envelope of [`Artefact`].
        encrypted: Option<String>,
    },
    /// A medium of the model's own, whole.
    Media(MediaSource),
    /// A tool call begins.
    CallStart {
        /// Which call of this answer.
        index: usize,
        /// The provider's id; empty when it gave none.
        id: String,
        /// Name of the tool, as in [`FunctionSpec::name`].
        name: String,
    },
    /// More argument text of a call.
    CallDelta {
        /// Which call of this answer.
        index: usize,
        /// The text.
        delta: String,
    },
    /// A call is complete. Calls that get none are complete at the end.
    CallEnd {
        /// Which call of this answer.
        index: usize,
        /// The provider's artefact, in the envelope of [`Artefact`].
        encrypted: Option<String>,
    },
    /// What the call cost so far; the last one counts.
    Usage(ModelUsage),
    /// The answer is complete.
    Finish(FinishReason),
}

/// Why an answer is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FinishReason {
    /// Said all.
    Stop,
    /// Waits for tools.
    ToolCalls,
    /// Cut at the token limit.
    Length,
    /// Refused, or cut by a filter.
    ContentFilter,
    /// Another one, in the provider's word.
    Other(String),
}

impl FinishReason {
    /// One that has no meaning here; a log may show it, so a sentence does not count as a word.
    fn other(word: &str) -> Self {
        Self::Other(if failure::is_word(word) { word } else { "unknown" }.to_owned())
    }
}

/// An opaque artefact of a provider (a signature, encrypted thinking), in the form in which it
/// goes through histories and clients: `<wire>.<kind>:<value>`. The value comes back to a
/// provider of the same wire unmodified and is left out for every other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Artefact<'a> {
    /// Whose it is, e.g. `anthropic`.
    pub wire: &'a str,
    /// What it is, e.g. `signature`.
    pub kind: &'a str,
    /// Never interpreted, never logged.
    pub value: &'a str,
}

impl<'a> Artefact<'a> {
    /// Reads the envelope; `None` = none of ours.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (head, value) = text.split_once(':')?;
        let (wire, kind) = head.split_once('.')?;
        Some(Self { wire, kind, value })
    }

    /// The envelope.
    pub fn seal(self) -> String {
        let Self { wire, kind, value } = self;
        format!("{wire}.{kind}:{value}")
    }
}

/// Why a model's answer failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind:?}: {cause}")]
pub struct ModelError {
    /// What kind.
    pub kind: ModelErrorKind,
    /// For the log only: no keys, no content of messages.
    pub cause: String,
}

/// Kinds of failures; each has its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelErrorKind {
    /// 401, 403: the key is wrong or may not do this.
    Auth,
    /// 429.
    RateLimited {
        /// How long to wait, if the provider says.
        retry_after: Option<Duration>,
    },
    /// Nobody answers, or not in time, or 502, 503, 504, 529.
    Unavailable,
    /// The conversation is longer than the model takes.
    ContextExceeded,
    /// Everything else: other statuses, answers that make no sense, answers that break off.
    Other,
}

impl ModelErrorKind {
    /// The code of RUN_ERROR.
    pub fn code(self) -> &'static str {
        match self {
            Self::Auth => "MODEL_AUTH_ERROR",
            Self::RateLimited { .. } => "MODEL_RATE_LIMITED",
            Self::Unavailable => "MODEL_UNAVAILABLE",
            Self::ContextExceeded => "MODEL_CONTEXT_EXCEEDED",
            Self::Other => "MODEL_ERROR",
        }
    }

    /// The sentence of RUN_ERROR.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Auth => "The model refused the server's credentials.",
            Self::RateLimited { .. } => "The model takes no more requests for now.",
            Self::Unavailable => "The model cannot be reached.",
            Self::ContextExceeded => "The conversation is too long for the model.",
            Self::Other => "The model failed.",
        }
    }
}
