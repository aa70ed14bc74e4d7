//! Agent events -> AG-UI events.

use std::sync::Arc;

use agui_protocol::{Event, RunAgentInput};
use serde_json::Value;

use crate::{
    model::{AgentEvent, event::Object},
    options::{AdapterOptions, Peer},
    resume::OpenInterrupt,
};

/// Mints ids; passed in so that streams are reproducible.
pub trait IdSource: Send {
    /// A fresh id, unique over every thread.
    fn next_id(&mut self) -> String;
}

/// Tells the time; passed in so that streams are reproducible.
pub trait Clock: Send {
    /// Milliseconds since the Unix epoch.
    fn now_ms(&self) -> i64;
}

/// What the adapter must know of a run before its first event.
#[derive(Clone, Debug)]
pub struct RunSetup {
    /// The input; thread id, run id, tools, state and known message ids are taken from it.
    pub input: Arc<RunAgentInput>,
    /// What the peer understands.
    pub peer: Peer,
    /// The interrupts that this run's resume answered.
    pub answered: Vec<OpenInterrupt>,
    /// Entries for `RUN_STARTED.metadata`, e.g. `agentscope.ignoredResume`.
    pub started_metadata: Object,
    /// The thread's state when it is not the input's; `None` = `input.state`.
    pub stored_state: Option<Value>,
}

/// How the agent's stream ended when it was not by an event.
#[derive(Clone, Debug)]
pub enum StreamEnd {
    /// The stream just ended.
    Completed,
    /// The stream failed, or the run was stopped by a limit that counts as a failure.
    Failed(RunFailure),
    /// The run was stopped on purpose; the reason is machine readable, e.g. `cancelled`.
    Cancelled(&'static str),
}

/// A failure as the client sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFailure {
    /// Stable code.
    pub code: String,
    /// For people.
    pub message: String,
}

/// How a run ended, for the ledger and the log.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEnd {
    /// Which terminal event was sent.
    pub outcome: EndOutcome,
    /// The interrupts raised; empty unless the outcome is [`EndOutcome::Interrupted`].
    pub open: Vec<OpenInterrupt>,
    /// The thread's state at the end, if the agent changed it.
    pub state: Option<Value>,
}

/// Which terminal event was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndOutcome {
    /// RUN_FINISHED, success.
    Success,
    /// RUN_FINISHED, interrupt.
    Interrupted,
    /// RUN_FINISHED, cancelled.
    Cancelled,
    /// RUN_ERROR with this code.
    Error(String),
}

/// Converters and enrichers that a program adds to the built-in ones.
#[derive(Clone, Default)]
pub struct Extensions {}

/// The conversion of one run.
pub struct Adapter {}

impl Adapter {
    /// Begins a run. Nothing is emitted before the first event or the end.
    pub fn new(
        setup: RunSetup,
        options: Arc<AdapterOptions>,
        extensions: Arc<Extensions>,
        ids: Box<dyn IdSource>,
        clock: Box<dyn Clock>,
    ) -> Self {
        let _ = (setup, options, extensions, ids, clock);
        Self {}
    }

    /// Converts one event, appending to `out`. `Some` = the terminal event is the last of `out`;
    /// nothing may be fed after it.
    pub fn on_event(&mut self, event: &AgentEvent, out: &mut Vec<Event>) -> Option<RunEnd> {
        let _ = (event, out);
        None
    }

    /// Ends the run when the agent's stream ended, failed or was stopped; the terminal event is
    /// the last of `out`.
    pub fn finish(&mut self, end: StreamEnd, out: &mut Vec<Event>) -> RunEnd {
        let _ = (end, out);
        RunEnd { outcome: EndOutcome::Success, open: Vec::new(), state: None }
    }
}
