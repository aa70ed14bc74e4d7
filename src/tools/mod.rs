//! Tools that the server runs itself: what one is, and where they come from.
//!
//! Built-ins, HTTP tools and MCP servers; no agent logic, and no word about who may call what.
//! Tools that somebody else runs (the client's, external ones, sub-agents) are the agents' affair.

pub mod builtin;
pub mod http;
pub mod mcp;
pub mod schema;

use std::{future::Future, pin::Pin, sync::Arc};

use agui_adapter::{
    model::{
        event::{ActivityChange, Object, ResultState, StateChange},
        msg::Block,
    },
    runtime_context::RuntimeContext,
};
use agui_protocol::{RunId, ThreadId};
use futures_util::Stream;
use serde_json::Value;

/// What a tool says while it runs: any number of events, the last of which is [`ToolEvent::End`].
/// Dropping it cancels the call, down to whoever executes it.
pub type ToolStream = Pin<Box<dyn Stream<Item = ToolEvent> + Send>>;

/// A tool. One object serves many runs at once.
pub trait Tool: Send + Sync + 'static {
    /// What it is.
    fn spec(&self) -> &ToolSpec;

    /// Runs it. The arguments fit the schema. A failure is a result that the model reads, never a
    /// failure of the run; its text is for the model and may name neither secrets nor hosts.
    fn call(&self, call: ToolCall) -> ToolStream;
}

/// What a tool is.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Its own name.
    pub name: String,
    /// For the model.
    pub description: String,
    /// JSON Schema of the arguments, an object.
    pub parameters: Arc<Value>,
    /// It changes nothing (MCP `readOnlyHint`).
    pub read_only: bool,
    /// It may destroy something (MCP `destructiveHint`, where it is declared true).
    pub destructive: bool,
}

/// One call.
#[derive(Clone, Debug)]
pub struct ToolCall {
    /// Id of the call.
    pub id: String,
    /// The arguments.
    pub arguments: Object,
    /// The thread's state at the time of the call.
    pub state: Arc<Value>,
    /// Whose run it is.
    pub context: Arc<ToolContext>,
    /// The answer to what the tool asked in an earlier run; `None` = the first attempt.
    pub answer: Option<ToolAnswer>,
}

/// What a tool may know of the run.
#[derive(Clone, Debug)]
pub struct ToolContext {
    /// The thread.
    pub thread_id: ThreadId,
    /// The run.
    pub run_id: RunId,
    /// Names the request in the log.
    pub request_id: Arc<str>,
    /// The runtime context. What it resolved may be sent on; the protocol's own keys hold what the
    /// client sent and are not trusted.
    pub runtime: Arc<RuntimeContext>,
}

/// An answer to a question that a tool asked.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolAnswer {
    /// What the tool parked when it asked.
    pub parked: Option<Arc<Value>>,
    /// What was answered; `None` = the person declined.
    pub payload: Option<Value>,
}

/// What a tool says.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolEvent {
    /// How far it is.
    Progress {
        /// So far.
        progress: f64,
        /// Of how much, if known.
        total: Option<f64>,
        /// For people.
        message: Option<String>,
    },
    /// It changes the thread's state.
    State(StateChange),
    /// It changes an activity.
    Activity {
        /// Id within the thread.
        id: String,
        /// What kind of element.
        activity_type: String,
        /// How.
        change: ActivityChange,
    },
    /// It is done, or waits.
    End(ToolEnd),
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolEnd {
    /// With a result.
    Result {
        /// What the tool said.
        output: Vec<Block>,
        /// How it went.
        state: ResultState,
    },
    /// With a question to the person; the call is made again with the answer.
    Asks {
        /// What to show.
        message: String,
        /// JSON Schema of the answer.
        schema: Option<Object>,
        /// What the tool needs to go on, on any replica.
        parked: Option<Value>,
    },
}

impl ToolEnd {
    /// A text that the model reads.
    pub fn text(text: impl Into<String>, state: ResultState) -> Self {
        Self::Result { output: vec![Block::Text { text: text.into() }], state }
    }
}

/// Several tools that come and go together, such as those of an MCP server.
pub trait ToolSource: Send + Sync + 'static {
    /// Its name in the configuration.
    fn name(&self) -> &str;

    /// Whether a run goes on without it.
    fn is_optional(&self) -> bool;

    /// Its tools for a run, once it is ready. `session` names the principal and the thread: what
    /// is kept for one must not serve another.
    fn tools<'a>(&'a self, session: &'a str) -> ToolsFuture<'a>;
}

/// Resolves to the tools of a source.
pub type ToolsFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Vec<Arc<dyn Tool>>, SourceError>> + Send + 'a>>;

/// A source has no tools to give.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the tools of {source_name} are unavailable: {cause}")]
pub struct SourceError {
    /// Its name in the configuration.
    pub source_name: String,
    /// For the log only.
    pub cause: String,
}
