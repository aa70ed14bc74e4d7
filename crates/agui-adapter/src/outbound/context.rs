//! What a converter sees and may do.

use std::{collections::HashSet, io, sync::Arc};

use agui_protocol::{Body, Event, RunAgentInput, RunId, ThreadId};
use serde_json::Value;

use super::{
    RunEnd, RunSetup, activity::Activities, child_results::ChildResults, children::Children,
    convert, interrupt::Asks, lifecycle::Ending, state::SharedState, text::SentTexts,
    tool::Results, usage::Usage,
};
use crate::{
    model::{AgentEvent, event::Object},
    options::{AdapterOptions, Peer, SubagentEvents},
    sequencer::{OwnerId, Sequencer},
};

/// The conversion of one run as its converters see it.
///
/// Converters of this crate work on the parts; a converter of a program uses the public methods:
/// [`StreamContext::emit_custom`], [`StreamContext::emit`] and
/// [`StreamContext::convert_built_in`].
pub struct StreamContext {
    pub(super) sequencer: Sequencer,
    pub(super) options: Arc<AdapterOptions>,
    pub(super) input: Arc<RunAgentInput>,
    pub(super) subagents: SubagentEvents,
    pub(super) children: Children,
    pub(super) asks: Asks,
    pub(super) child_results: ChildResults,
    pub(super) results: Results,
    pub(super) texts: SentTexts,
    pub(super) usage: Usage,
    pub(super) state: SharedState,
    pub(super) activities: Activities,
    pub(super) ending: Ending,
    /// What the agent parked last.
    pub(super) parked: Option<Arc<Value>>,
    /// What the agent kept last.
    pub(super) kept: Option<Arc<Value>>,
    pub(super) now_ms: i64,
    noted: HashSet<&'static str>,
}

impl StreamContext {
    pub(super) fn new(
        setup: &RunSetup,
        options: Arc<AdapterOptions>,
        sequencer: Sequencer,
        now_ms: i64,
    ) -> Self {
        Self {
            subagents: resolve_subagents(options.subagent_events, setup.peer),
            children: Children::new(&setup.answered),
            asks: Asks::new(setup),
            child_results: ChildResults::new(&setup.answered),
            results: Results::default(),
            texts: SentTexts::default(),
            usage: Usage::default(),
            state: SharedState::new(setup),
            activities: Activities::default(),
            ending: Ending::default(),
            parked: None,
            kept: None,
            input: Arc::clone(&setup.input),
            sequencer,
            options,
            now_ms,
            noted: HashSet::new(),
        }
    }

    /// The conversation.
    pub fn thread_id(&self) -> &ThreadId {
        self.sequencer.thread_id()
    }

    /// The run.
    pub fn run_id(&self) -> &RunId {
        self.sequencer.run_id()
    }

    /// The run's input.
    pub fn input(&self) -> &RunAgentInput {
        &self.input
    }

    /// Milliseconds since the Unix epoch, as of the event being converted.
    pub fn now_ms(&self) -> i64 {
        self.now_ms
    }

    /// Sends a CUSTOM event, tagged with the sub-agent that `source` belongs to.
    pub fn emit_custom(&mut self, source: &AgentEvent, name: impl Into<String>, value: Value) {
        let owner = self.owner_of(source);
        let name = name.into();
        self.sequencer.emit(owner, |subagent_run_id| Body::Custom { name, value, subagent_run_id });
    }

    /// Sends any event. It passes the gate like everything an extension makes: an event that
    /// would break the stream's order is dropped there.
    pub fn emit(&mut self, event: Event) {
        self.sequencer.start_run();
        self.sequencer.flush_call_ends(OwnerId::ROOT);
        self.sequencer.pending().push(event);
    }

    /// Converts an event as if no converter had been registered for its type.
    pub fn convert_built_in(&mut self, event: &AgentEvent) {
        convert::built_in(event, self);
    }

    /// The owner of an event's items; a child that was not there before is announced.
    pub(super) fn owner_of(&mut self, event: &AgentEvent) -> OwnerId {
        match &event.source {
            None => OwnerId::ROOT,
            Some(source) => self.child_owner(event, source),
        }
    }

    /// Remembers what the agent wants to know in its later runs.
    pub(super) fn keep(&mut self, state: &Arc<Value>) {
        if json_len(state) <= RunEnd::MAX_KEPT {
            self.kept = Some(Arc::clone(state));
        } else {
            self.note("what the agent wants to keep on the thread is too long and is not kept");
        }
    }

    /// Logs once a run that something was left out by rule.
    pub(super) fn note(&mut self, what: &'static str) {
        if self.noted.insert(what) {
            self.warn(what);
        }
    }

    /// Logs once a run that something was left out by rule, unless it was not.
    pub(super) fn note_unless(&mut self, fine: bool, what: &'static str) {
        if !fine {
            self.note(what);
        }
    }

    pub(super) fn warn(&self, what: &'static str) {
        let (thread, run) = (self.thread_id(), self.run_id());
        tracing::warn!(thread.id = thread.as_str(), run.id = run.as_str(), "{what}");
    }
}

/// Bytes of a value as JSON.
fn json_len(value: &Value) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting cannot fail, nor can a value be none.
    serde_json::to_writer(&mut count, value).ok();
    count.0
}

fn resolve_subagents(option: SubagentEvents, peer: Peer) -> SubagentEvents {
    match (option, peer) {
        (SubagentEvents::Auto, Peer::Current) => SubagentEvents::Attributed,
        (SubagentEvents::Auto, Peer::Legacy) => SubagentEvents::Custom,
        (explicit, _) => explicit,
    }
}

/// An object with the members that have a value.
pub(super) fn object<const N: usize>(members: [(&str, Option<Value>); N]) -> Object {
    members.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}
