//! What is served: the [`Agent`] trait, its request, and the registry.
//!
//! A backend folder owns its configuration's meaning and its tests, emits AgentScope events only,
//! and never names an AG-UI event.

pub mod command;
mod directive;
pub mod directory;
pub mod react;
pub mod registry;
pub mod scripted;

use std::{pin::Pin, sync::Arc};

use agui_adapter::{
    model::{AgentEvent, Msg},
    resume::Decision,
};
use agui_protocol::{RunAgentInput, RunId, ThreadId};
use futures_util::Stream;
use serde_json::Value;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The stream of a run: agent events until the reply ends, or one error.
pub type AgentStream = Pin<Box<dyn Stream<Item = Result<AgentEvent, AgentError>> + Send>>;

pub use agui_adapter::runtime_context::{ContextValues, RuntimeContext};

/// Something that can be talked to.
///
/// One object serves many threads at once; everything that belongs to a run is in the request.
///
/// ```
/// use agentscope_agui::agents::{Agent, AgentRequest, AgentStream};
/// use agui_adapter::model::{AgentEvent, AgentEventKind, event::EndReason};
///
/// /// Says how many messages it was sent.
/// struct Counts;
///
/// impl Agent for Counts {
///     fn run(&self, request: AgentRequest) -> AgentStream {
///         let text = AgentEventKind::TextBlockDelta {
///             reply: String::new(),
///             block: "answer".to_owned(),
///             delta: format!("You sent {} messages.", request.messages.len()),
///         };
///         let end = AgentEventKind::AgentEnd { reply: None, reason: EndReason::Completed };
///         let events = [text, end].map(|kind| Ok(AgentEvent::local(kind)));
///         Box::pin(futures_util::stream::iter(events))
///     }
/// }
/// ```
pub trait Agent: Send + Sync + 'static {
    /// Starts one run. Dropping the stream stops the run, down to requests under way;
    /// `request.cancel` asks it to stop in order and to end its stream with an
    /// [`AgentEnd`](agui_adapter::model::AgentEventKind::AgentEnd) whose reason is interrupted.
    fn run(&self, request: AgentRequest) -> AgentStream;
}

/// Everything that one run needs.
#[derive(Clone, Debug)]
pub struct AgentRequest {
    /// The conversation.
    pub thread_id: ThreadId,
    /// The run.
    pub run_id: RunId,
    /// The run input as it came.
    pub input: Arc<RunAgentInput>,
    /// The history as AgentScope messages.
    pub messages: Vec<Msg>,
    /// Answers to the interrupts with which the thread's last run ended; empty in a fresh run.
    pub decisions: Vec<Decision>,
    /// What the agent parked when it stopped to ask.
    pub parked: Option<Arc<Value>>,
    /// What the agent kept on the thread in earlier runs
    /// ([`Keep`](agui_adapter::model::AgentEventKind::Keep)). No client can set it.
    pub kept: Option<Arc<Value>>,
    /// Names the principal and the thread, for what is kept per thread outside of the store. Tells
    /// neither.
    pub session: Arc<str>,
    /// Who delegated this run; `None` = a client asked for it.
    pub delegation: Option<Arc<Delegation>>,
    /// The thread's state at the start of the run.
    pub state: Arc<Value>,
    /// Context for agents, tools and extensions.
    pub context: Arc<RuntimeContext>,
    /// Asks the run to stop in order.
    pub cancel: CancellationToken,
    /// Names the request in the log.
    pub request_id: Arc<str>,
    /// Where an agent starts work that may outlast its stream, such as ending a program; shutdown
    /// waits for it.
    pub background: TaskTracker,
}

/// A run that another agent's run has asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delegation {
    /// The `source` path of the run, e.g. `main/researcher`, for the log. What the agent says needs
    /// no source: whoever delegated to it puts it on.
    pub source: Arc<str>,
    /// How many agents stand above it, 1 for a child of the run's root.
    pub depth: u32,
    /// How many more may stand below it.
    pub depth_left: u32,
    /// Tools that nobody below may call: `tool` or `source:tool` of the deny rules above.
    pub denied: Vec<String>,
}

/// Why a run failed: the code and the sentence that the client sees, and the cause for the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct AgentError {
    /// Stable code, e.g. `INTERNAL_ERROR`.
    pub code: &'static str,
    /// For people: no secrets, hosts, paths or backtraces.
    pub message: String,
    /// For the log only.
    pub cause: Option<String>,
}
