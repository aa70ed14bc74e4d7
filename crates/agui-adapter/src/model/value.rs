//! What agent events are made of: reasons, calls, results, counts, changes.

use serde_json::Value;

use super::msg::{Block, MediaKind, MediaSource};

/// JSON object, open by key.
pub type Object = serde_json::Map<String, Value>;

/// Why an agent's reply ended.
#[derive(Clone, Debug, PartialEq)]
pub enum EndReason {
    /// Done (Python `completed`). On the Java wire `AGENT_END` carries no reason: see
    /// [`EndReason::Unstated`].
    Completed,
    /// Stopped by a person or the application.
    Interrupted,
    /// The limit of iterations was reached.
    MaxIterations,
    /// The reply failed.
    Failed(Failure),
    /// The wire gave none (Java: the reason stands in the preceding `AGENT_RESULT` or
    /// `REQUEST_STOP`; none of them = completed).
    Unstated,
}

/// A failure as AgentScope words it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Python's `error.type`: authentication, permission, rate_limit, invalid_request, upstream,
    /// connection, internal, setup, unknown; or any other string.
    pub class: String,
    /// A sentence; may only be shown to clients when the class is known to be sanitised.
    pub message: String,
}

/// State of a finished, or suspended, tool result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultState {
    /// The tool returned.
    Success,
    /// The tool failed.
    Error,
    /// The tool was stopped.
    Interrupted,
    /// The call was refused.
    Denied,
    /// Not a result: the call waits for somebody outside (suspended).
    Running,
}

impl ResultState {
    /// The name as it stands on both wires, in lower case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Error => "error",
            Self::Interrupted => "interrupted",
            Self::Denied => "denied",
            Self::Running => "running",
        }
    }

    /// The state of that name, in either case.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Success, Self::Error, Self::Interrupted, Self::Denied, Self::Running]
            .into_iter()
            .find(|state| state.as_str().eq_ignore_ascii_case(name))
    }
}

/// A tool call as it stands in an ask, a request for external execution, or a message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Call {
    /// Id; empty when the wire gave none.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// The raw argument text; Java's `content`, Python's `input`. Made from `input` when absent.
    pub arguments: String,
    /// The arguments parsed, if they are a JSON object.
    pub input: Option<Object>,
    /// Rules that would make the ask unnecessary (Python only), as they stood on the wire.
    pub suggested_rules: Vec<Value>,
}

/// One answer inside `USER_CONFIRM_RESULT`.
#[derive(Clone, Debug, PartialEq)]
pub struct Confirmation {
    /// Whether the call may run.
    pub confirmed: bool,
    /// The call, with edited arguments if the person edited them.
    pub call: Call,
}

/// One answer inside `EXTERNAL_EXECUTION_RESULT`.
#[derive(Clone, Debug, PartialEq)]
pub struct ExternalResult {
    /// The call answered.
    pub call_id: String,
    /// Name of the tool.
    pub name: String,
    /// What the tool said.
    pub output: Vec<Block>,
    /// How it went; [`ResultState::Running`] = still waiting.
    pub state: ResultState,
}

/// The largest count that survives a JSON reader with doubles.
pub(crate) const MAX_COUNT: u64 = (1 << 53) - 1;

/// Counts of one model call; absent = the model did not say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelUsage {
    /// All prompt tokens, cached ones included.
    pub input: Option<u64>,
    /// All generated tokens.
    pub output: Option<u64>,
    /// Prompt tokens read from a cache.
    pub cache_read: Option<u64>,
    /// Prompt tokens written to a cache.
    pub cache_write: Option<u64>,
    /// Generated tokens spent on reasoning.
    pub reasoning: Option<u64>,
    /// The provider's own total (Java `totalTokens`).
    pub total: Option<u64>,
    /// Seconds.
    pub seconds: Option<f64>,
}

/// What a binary block or result delta carries.
#[derive(Clone, Debug, PartialEq)]
pub enum DataChunk {
    /// A piece of base64; pieces of one block are concatenated.
    Base64(String),
    /// A URL.
    Url(String),
}

/// A change of the thread's shared state.
#[derive(Clone, Debug, PartialEq)]
pub enum StateChange {
    /// Replace the whole state.
    Set(Value),
    /// RFC 6902 operations.
    Patch(Value),
}

/// A change of an activity.
#[derive(Clone, Debug, PartialEq)]
pub enum ActivityChange {
    /// Replace the whole content.
    Content(Object),
    /// RFC 6902 operations.
    Patch(Value),
}

/// Beginning or end of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepPhase {
    /// It begins.
    Start,
    /// It ends.
    Finish,
}

/// One part, or piece of a part, of a tool's answer.
#[derive(Clone, Debug, PartialEq)]
pub enum ResultData {
    /// A text block inside a data delta (Java).
    Text(String),
    /// Media.
    Media {
        /// What kind, where the wire names it; else the media type tells.
        kind: Option<MediaKind>,
        /// Media type, if the wire says.
        media_type: Option<String>,
        /// File name, if the wire says.
        name: Option<String>,
        /// The bytes.
        data: DataChunk,
    },
}

impl DataChunk {
    /// The medium that these bytes are the whole of.
    pub(crate) fn typed(self, media_type: Option<String>) -> MediaSource {
        match self {
            Self::Base64(data) => {
                MediaSource::Base64 { media_type: media_type.unwrap_or_default(), data }
            }
            Self::Url(url) => MediaSource::Url { media_type, url },
        }
    }
}

impl From<MediaSource> for DataChunk {
    fn from(source: MediaSource) -> Self {
        match source {
            MediaSource::Base64 { data, .. } => Self::Base64(data),
            MediaSource::Url { url, .. } => Self::Url(url),
        }
    }
}
