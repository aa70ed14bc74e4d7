//! Agent events -> AG-UI events.
//!
//! [`Adapter`] is the conversion of one run. One converter per kind of agent event says what
//! happened, the sequencer makes events of it, the tail (enrichers, gate, frame length,
//! downgrade) has the last word.

mod activity;
mod child_results;
mod children;
mod context;
mod convert;
mod custom;
mod interrupt;
mod lifecycle;
mod media;
mod raise;
mod state;
mod subagent;
mod subagent_custom;
mod text;
mod tool;
mod usage;

use std::{collections::HashSet, sync::Arc};

use agui_protocol::{Event, InterruptId, Message, RunAgentInput, RunOutcome, ToolCallId};
use serde_json::Value;

pub use crate::sequencer::{IdSource, RunFailure};
pub use context::StreamContext;
pub use convert::{AgentEventConverter, ConvertError};

use crate::{
    enrich::{AguiEventEnricher, Enrichers},
    model::{AgentEvent, event::Object},
    options::{AdapterOptions, Peer, SubagentEvents},
    resume::{Decision, OpenInterrupt, Verdict},
    runtime_context::RuntimeContext,
    sequencer::{Earlier, Opening, Sequencer},
    tail::{Tail, TailSetup},
    transcript::{OpenItems, Transcript},
    view::View,
};

/// Tells the time; passed in so that streams are reproducible.
pub trait Clock: Send {
    /// Milliseconds since the Unix epoch.
    fn now_ms(&self) -> i64;
}

/// What the adapter must know of a run before its first event.
#[derive(Clone, Debug)]
pub struct RunSetup {
    /// The input; thread id, run id, tools, state and known calls are taken from it.
    pub input: Arc<RunAgentInput>,
    /// The thread's messages where the server keeps them; `None` = those of the input. Calls in
    /// them are known, so that no id is used twice and answers find their calls.
    pub history: Option<Arc<Vec<Message>>>,
    /// What the peer understands.
    pub peer: Peer,
    /// The answers to the interrupts with which the thread's last run ended.
    pub answered: Vec<Decision>,
    /// Results of settled calls that the client does not have; sent first.
    pub owed: Vec<Message>,
    /// Ids of interrupts that the thread used before; new ones get others (INT-2).
    pub taken: HashSet<InterruptId>,
    /// Entries for `RUN_STARTED.metadata`, e.g. `agentscope.ignoredResume`.
    pub started_metadata: Object,
    /// The thread's state as the server kept it. Where the input brings none it is the state the
    /// run begins with, and the client is told it first; otherwise it does not count.
    pub stored_state: Option<Arc<Value>>,
}

impl RunSetup {
    /// A fresh run: nothing answered, nothing stored.
    pub fn new(input: Arc<RunAgentInput>, peer: Peer) -> Self {
        Self {
            input,
            history: None,
            peer,
            answered: Vec::new(),
            owed: Vec::new(),
            taken: HashSet::new(),
            started_metadata: Object::new(),
            stored_state: None,
        }
    }
}

/// How the agent's stream ended when it was not by an event.
#[derive(Clone, Debug)]
pub enum StreamEnd {
    /// The stream just ended.
    Completed,
    /// The stream failed, or the run was stopped by a limit that counts as a failure.
    Failed(RunFailure),
    /// The run only raises interrupts that the thread's last run deferred.
    Raise(Vec<OpenInterrupt>),
    /// The run was stopped on purpose; the reason is machine readable, e.g. `cancelled`.
    Cancelled(&'static str),
}

/// How a run ended, for the ledger and the log.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEnd {
    /// Which terminal event was sent.
    pub outcome: EndOutcome,
    /// The outcome that RUN_FINISHED carries for a current peer; `None` after an error.
    pub finished: Option<RunOutcome>,
    /// The interrupts raised; empty unless the outcome is [`EndOutcome::Interrupted`].
    pub open: Vec<OpenInterrupt>,
    /// Interrupts that the thread's next run has to raise: calls of the client's own tools were
    /// pending at the same time, and a client cannot answer both at once.
    pub deferred: Vec<OpenInterrupt>,
    /// The thread's state at the end, if the agent changed it.
    pub state: Option<Arc<Value>>,
    /// What the agent parked last in this run, whatever the outcome; it goes back to the agent
    /// with the answers to the interrupts.
    pub parked: Option<Arc<Value>>,
    /// What the agent kept last in this run, null to keep nothing any more; `None` = it said
    /// nothing of it. No longer than [`RunEnd::MAX_KEPT`].
    pub kept: Option<Arc<Value>>,
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
///
/// Of two converters for one event type, and among enrichers, the lower order comes first.
#[derive(Clone, Default)]
pub struct Extensions {
    converters: convert::Converters,
    enrichers: Enrichers,
}

impl Extensions {
    /// Adds a converter; it replaces the built-in one of its event types.
    #[must_use]
    pub fn converter(mut self, order: i32, converter: Arc<dyn AgentEventConverter>) -> Self {
        self.converters.insert(order, converter);
        self
    }

    /// Adds an enricher.
    #[must_use]
    pub fn enricher(mut self, order: i32, enricher: Arc<dyn AguiEventEnricher>) -> Self {
        self.enrichers.register(order, enricher);
        self
    }
}

/// Everything that an adapter is made of.
pub struct AdapterParts {
    /// The run.
    pub setup: RunSetup,
    /// The agent's switches.
    pub options: Arc<AdapterOptions>,
    /// The program's converters and enrichers.
    pub extensions: Arc<Extensions>,
    /// Runtime context, for enrichers.
    pub context: Arc<RuntimeContext>,
    /// Mints ids.
    pub ids: Box<dyn IdSource>,
    /// Tells the time.
    pub clock: Box<dyn Clock>,
}

/// Makes the adapter of a run, in place of [`Adapter::new`].
///
/// ```
/// use std::sync::Arc;
/// use agui_adapter::outbound::{Adapter, AdapterFactory, AdapterParts};
///
/// /// Shows reasoning to everybody who asks for it in the run's forwarded properties.
/// struct ReasoningOnDemand;
///
/// impl AdapterFactory for ReasoningOnDemand {
///     fn adapter(&self, mut parts: AdapterParts) -> Adapter {
///         let wanted = parts.setup.input.forwarded_props.as_ref();
///         if wanted.is_some_and(|props| props["reasoning"] == true) {
///             Arc::make_mut(&mut parts.options).enable_reasoning = true;
///         }
///         Adapter::new(parts)
///     }
/// }
/// ```
pub trait AdapterFactory: Send + Sync {
    /// Makes the adapter.
    fn adapter(&self, parts: AdapterParts) -> Adapter;
}

/// The conversion of one run: agent events in, AG-UI events out.
pub struct Adapter {
    context: StreamContext,
    extensions: Arc<Extensions>,
    transcript: Transcript,
    tail: Tail,
    clock: Box<dyn Clock>,
}

impl Adapter {
    /// Begins a run. Nothing is emitted before the first event or the end.
    pub fn new(parts: AdapterParts) -> Self {
        let AdapterParts { setup, options, extensions, context, ids, clock } = parts;
        let opening = Opening {
            parent_run_id: setup.input.parent_run_id.clone(),
            echo: options.echo_input.then(|| Box::new((*setup.input).clone())),
            metadata: setup.started_metadata.clone(),
        };
        let resumed = resumed_calls(&setup.answered);
        let shows_args = options.emit_tool_call_args;
        let known = setup.history.as_ref().map_or(&setup.input.messages, |history| &**history);
        let sequencer = Sequencer::new(&setup.input, known, opening, resumed, shows_args, ids);
        let transcript = Transcript::new(setup.input.thread_id.clone(), setup.input.run_id.clone());
        let tail_setup = TailSetup {
            thread_id: setup.input.thread_id.clone(),
            run_id: setup.input.run_id.clone(),
            peer: setup.peer,
            runtime_context: context,
            guarded: !extensions.converters.is_empty(),
        };
        let tail = Tail::new(&options, extensions.enrichers.clone(), tail_setup);
        let context = StreamContext::new(&setup, options, sequencer, clock.now_ms());
        if context.subagents == SubagentEvents::Attributed && setup.peer == Peer::Legacy {
            context.warn("SUBAGENT_* events are sent to a client that may not know them");
        }
        Self { context, extensions, transcript, tail, clock }
    }

    /// What the run added to the thread up to now.
    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// The same, taken out; what comes later is recorded anew.
    pub fn take_transcript(&mut self) -> Transcript {
        let (thread_id, run_id) = (self.context.thread_id(), self.context.run_id());
        let empty = Transcript::new(thread_id.clone(), run_id.clone());
        std::mem::replace(&mut self.transcript, empty)
    }

    /// The approved calls of children to which what was fed since the last time gave a result, with
    /// that result: whether and how the client is told of it makes no difference.
    pub fn take_child_results(&mut self) -> Vec<Decision> {
        self.context.child_results.take()
    }

    /// The thread's state as the agent has it now, whether the client may see it or not.
    pub fn state(&self) -> &Arc<Value> {
        self.context.state.current()
    }

    /// The thread's state as the stream's clients have it, for a client that joins them; `None` =
    /// they have none, or may see none.
    pub fn shown_state(&self) -> Option<&Arc<Value>> {
        self.context.state.shown().filter(|_| self.context.options.emit_state_events)
    }

    /// What is open in the stream as it leaves, for a client that joins it.
    pub fn open_items(&self) -> &OpenItems {
        self.tail.open_items()
    }

    /// Takes the stage of the run's own peer out: from now on events leave as every viewer may
    /// take them, and the caller sends each of them through a [`View`] of its own.
    pub fn take_view(&mut self) -> View {
        self.tail.take_view()
    }

    /// Converts one event, appending to `out`. `Some` = the terminal event is the last of `out`;
    /// nothing may be fed after it, and what is fed all the same is left out.
    pub fn on_event(&mut self, event: &AgentEvent, out: &mut Vec<Event>) -> Option<RunEnd> {
        if self.context.sequencer.ended() {
            return None;
        }
        self.context.now_ms = self.clock.now_ms();
        self.context.start_run();
        if let Err(error) = self.extensions.converters.convert(event, &mut self.context) {
            return Some(self.broken(&error, out));
        }
        if let Err(error) = self.push(Some(event), out) {
            return Some(self.broken(&error, out));
        }
        self.context.ending.run_end.take()
    }

    /// Ends the run when the agent's stream ended, failed or was stopped; the terminal event is
    /// the last of `out`.
    pub fn finish(&mut self, end: StreamEnd, out: &mut Vec<Event>) -> RunEnd {
        self.context.now_ms = self.clock.now_ms();
        if self.context.ending.run_end.is_some() {
            // It was made and has not left: an extension panicked on it.
            return self.fail(failure_of(end), out);
        }
        lifecycle::finish_stream(end, &mut self.context);
        if let Err(error) = self.push(None, out) {
            return self.broken(&error, out);
        }
        self.context.ending.run_end.take().unwrap_or_else(RunEnd::internal_error)
    }

    fn push(
        &mut self,
        source: Option<&AgentEvent>,
        out: &mut Vec<Event>,
    ) -> Result<(), crate::enrich::EnrichError> {
        let now_ms = self.context.now_ms;
        let events = self.context.sequencer.pending();
        events.iter().for_each(|event| self.transcript.apply(event));
        self.tail.push(source, events, now_ms, out)
    }

    /// An extension failed: the run ends with RUN_ERROR, whatever was said before.
    fn broken(&mut self, error: &dyn std::error::Error, out: &mut Vec<Event>) -> RunEnd {
        let (thread, run) = (self.context.thread_id(), self.context.run_id());
        tracing::error!(thread.id = thread.as_str(), run.id = run.as_str(), error = %error, "an extension failed");
        self.fail(internal_failure(), out)
    }

    /// Ends the run with RUN_ERROR in place of any end that has not left.
    fn fail(&mut self, failure: RunFailure, out: &mut Vec<Event>) -> RunEnd {
        lifecycle::finish_failed(failure, &mut self.context);
        // The failed enricher is not asked again, so this cannot fail.
        if let Err(error) = self.push(None, out) {
            tracing::error!(error = %error, "the end of a failed run was lost");
        }
        self.context.ending.run_end.take().unwrap_or_else(RunEnd::internal_error)
    }
}

impl RunEnd {
    /// The longest that an agent may keep on a thread, in bytes of JSON.
    pub const MAX_KEPT: usize = 64 << 10;

    fn internal_error() -> Self {
        Self {
            outcome: EndOutcome::Error("INTERNAL_ERROR".to_owned()),
            finished: None,
            open: Vec::new(),
            deferred: Vec::new(),
            state: None,
            parked: None,
            kept: None,
        }
    }
}

/// The failure to tell of when the end that there was is lost.
fn failure_of(end: StreamEnd) -> RunFailure {
    match end {
        StreamEnd::Failed(failure) => failure,
        _ => internal_failure(),
    }
}

/// A fault of the program, of which the client learns nothing more.
fn internal_failure() -> RunFailure {
    RunFailure::new("INTERNAL_ERROR", "The run failed because of a server error.")
}

/// The calls that the answers are about. A call of a child shown as CUSTOM events has no owner
/// that the client knows, and was never the client's.
fn resumed_calls(answered: &[Decision]) -> Vec<Earlier> {
    let shown = answered.iter().filter(|decision| !decision.open.is_of_custom_child());
    let calls = shown.filter_map(|decision| {
        let call = match &decision.verdict {
            Verdict::Approved { call, .. }
            | Verdict::Denied { call, .. }
            | Verdict::Result { call, .. } => call,
            Verdict::Answer { .. } => return None,
        };
        Some(Earlier {
            id: call.id.clone(),
            wire: ToolCallId::from(call.wire_id.as_str()),
            tag: decision.open.interrupt.subagent_run_id.clone(),
            tool: call.name.clone(),
            settled: decision.settled,
        })
    });
    calls.collect()
}
