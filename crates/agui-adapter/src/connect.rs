//! The stream that shows a thread to a client that comes to it: its messages and its state as
//! snapshots, and, if a run is under way, what is open in it, so that the run's events can follow.
//!
//! Nothing is started and nothing is remembered here. What is shown is what the agent's switches
//! let a client see.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use agui_protocol::{
    Body, Event, Message, MessageId, Object, PROTOCOL_VERSION, RunAgentInput, RunId, RunOutcome,
    ThreadId, ToolCallId,
};
use serde_json::Value;

use crate::{
    enrich::{EnrichContext, EnricherChain, Enrichers},
    options::{AdapterOptions, Droppable, EnricherSpec, Peer},
    runtime_context::RuntimeContext,
    sequencer::with_metadata,
    transcript::OpenItems,
    truncate::{self, TRUNCATED, Truncate},
    view::View,
};

/// The metadata key of RUN_STARTED that names the run which a client joined.
pub const JOINED_RUN: &str = "agentscope.joinedRunId";

/// What a thread is at a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Its messages; without any there is no MESSAGES_SNAPSHOT, which would wipe the client's.
    pub messages: Vec<Message>,
    /// Its state, if there is one.
    pub state: Option<Arc<Value>>,
}

/// How the stream of a thread at rest ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    /// The outcome of RUN_FINISHED.
    pub outcome: RunOutcome,
    /// Its metadata.
    pub metadata: Object,
}

impl From<RunOutcome> for Ending {
    fn from(outcome: RunOutcome) -> Self {
        Self { outcome, metadata: Object::new() }
    }
}

/// Makes the stream for one request.
#[derive(Clone, Debug)]
pub struct Connect {
    thread_id: ThreadId,
    run_id: RunId,
    parent_run_id: Option<RunId>,
    peer: Peer,
    options: Arc<AdapterOptions>,
    metadata: Object,
    /// The messages that the client has.
    holds: HashSet<MessageId>,
}

impl Connect {
    /// For a request; its ids stand on both boundary events. `metadata` are entries for
    /// RUN_STARTED.
    pub fn new(
        input: &RunAgentInput,
        peer: Peer,
        options: Arc<AdapterOptions>,
        metadata: Object,
    ) -> Self {
        Self {
            thread_id: input.thread_id.clone(),
            run_id: input.run_id.clone(),
            parent_run_id: input.parent_run_id.clone(),
            peer,
            options,
            metadata,
            holds: input.messages.iter().map(|message| message.id().clone()).collect(),
        }
    }

    /// The whole stream of a thread in which no run is under way. `now_ms` is the time of events
    /// that get one, in milliseconds since the Unix epoch.
    pub fn at_rest(self, snapshot: Snapshot, ending: Ending, now_ms: i64) -> Vec<Event> {
        let (thread_id, run_id) = (self.thread_id.clone(), self.run_id.clone());
        let mut view = View::new(self.peer, &self.options, thread_id.clone(), run_id.clone());
        let mut events = self.head(snapshot);
        let Ending { outcome, metadata } = ending;
        let body = Body::RunFinished {
            thread_id,
            run_id,
            result: None,
            outcome: Some(outcome),
            usage: Vec::new(),
        };
        events.push(with_metadata(body, metadata));
        self.shown(events, &mut view, now_ms)
    }

    /// The beginning of the stream of a client that joins the run `joined`, and the view through
    /// which the run's further events follow. `snapshot` holds what the run said so far, the open
    /// items included; each of these is opened again under its id.
    pub fn joining(
        mut self,
        joined: &RunId,
        mut snapshot: Snapshot,
        open: &OpenItems,
        now_ms: i64,
    ) -> (Vec<Event>, View) {
        self.metadata.insert(JOINED_RUN.to_owned(), Value::from(joined.as_str()));
        let (thread_id, run_id) = (self.thread_id.clone(), self.run_id.clone());
        let mut view = View::joining(self.peer, &self.options, thread_id, run_id);
        let reopened = match self.peer {
            Peer::Current => open.starts().cloned().collect(),
            Peer::Legacy => streamed_anew(&mut snapshot.messages, open, &self.options),
        };
        let mut events = self.head(snapshot);
        events.extend(reopened);
        let events = self.shown(events, &mut view, now_ms);
        (events, view)
    }

    fn head(&self, snapshot: Snapshot) -> Vec<Event> {
        let body = Body::RunStarted {
            thread_id: self.thread_id.clone(),
            run_id: self.run_id.clone(),
            protocol_version: Some(PROTOCOL_VERSION.to_owned()),
            parent_run_id: self.parent_run_id.clone(),
            input: None,
        };
        let mut events = vec![with_metadata(body, self.metadata.clone())];
        let Snapshot { messages, state } = snapshot;
        let mut messages = Hidden::of(&self.options).filter(messages);
        if !messages.is_empty() {
            let mut metadata = Object::new();
            if let Some(original) = truncate::latest_turns(&mut messages, &self.holds) {
                metadata.insert(TRUNCATED.to_owned(), truncate::marker(original));
            }
            events.push(with_metadata(Body::MessagesSnapshot { messages }, metadata));
        }
        if let Some(state) = state.filter(|_| self.options.emit_state_events) {
            let snapshot = Arc::unwrap_or_clone(state);
            events.push(Event::new(Body::StateSnapshot { snapshot, subagent_run_id: None }));
        }
        events
    }

    /// The stages that a run's events pass, but for those that look for what came before.
    fn shown(&self, mut events: Vec<Event>, view: &mut View, now_ms: i64) -> Vec<Event> {
        let chain = EnricherChain::new(&self.options, Enrichers::default());
        let (thread_id, run_id) = (&self.thread_id, &self.run_id);
        let runtime_context = &RuntimeContext::default();
        let context = EnrichContext { thread_id, run_id, now_ms, runtime_context };
        chain.decorate(None, &mut events, &context);
        let mut truncate = Truncate::new(thread_id.clone(), run_id.clone());
        let (mut fitting, mut out) = (Vec::with_capacity(events.len()), Vec::new());
        events.into_iter().for_each(|event| truncate.apply(event, &mut fitting));
        view.show(fitting, now_ms, &mut out);
        out
    }
}

/// The starts of what is open, for peers older than 1.0: client 0.0.57 takes the second start of a
/// call for another call. So open calls are taken out of the messages and begin with what is there of their
/// arguments. The message that carries one stays, which keeps its place.
fn streamed_anew(
    messages: &mut [Message],
    open: &OpenItems,
    options: &AdapterOptions,
) -> Vec<Event> {
    let is_open: HashSet<&ToolCallId> = open.starts().filter_map(started_call).collect();
    let mut arguments: HashMap<ToolCallId, String> = HashMap::new();
    for message in messages {
        let Message::Assistant { tool_calls, .. } = message else { continue };
        for call in tool_calls.extract_if(.., |call| is_open.contains(&call.id)) {
            arguments.insert(call.id, call.function.arguments);
        }
    }
    let mut events = Vec::new();
    for start in open.starts() {
        events.push(start.clone());
        let Body::ToolCallStart { tool_call_id, subagent_run_id, .. } = &start.body else {
            continue;
        };
        let delta = arguments.remove(tool_call_id).unwrap_or_default();
        if options.emit_tool_call_args && !delta.is_empty() {
            let (tool_call_id, subagent_run_id) = (tool_call_id.clone(), subagent_run_id.clone());
            events.push(Event::new(Body::ToolCallArgs { tool_call_id, delta, subagent_run_id }));
        }
    }
    events
}

fn started_call(start: &Event) -> Option<&ToolCallId> {
    match &start.body {
        Body::ToolCallStart { tool_call_id, .. } => Some(tool_call_id),
        _ => None,
    }
}

/// The calls in a thread's messages that no message answers, in their order.
pub fn pending_calls(messages: &[Message]) -> Vec<ToolCallId> {
    let answered: HashSet<&ToolCallId> =
        messages.iter().filter_map(Message::answered_call).collect();
    let calls = messages.iter().filter_map(|message| match message {
        Message::Assistant { tool_calls, .. } => Some(tool_calls),
        _ => None,
    });
    calls.flatten().map(|call| &call.id).filter(|id| !answered.contains(id)).cloned().collect()
}

/// What the agent's switches keep from clients.
struct Hidden {
    reasoning: bool,
    activities: bool,
    arguments: bool,
}

impl Hidden {
    fn of(options: &AdapterOptions) -> Self {
        let dropped = |what: Droppable| {
            let drops = |spec: &EnricherSpec| matches!(spec, EnricherSpec::Drop { event, .. } if *event == what);
            options.enrichers.iter().any(drops)
        };
        Self {
            reasoning: !options.enable_reasoning || dropped(Droppable::Reasoning),
            activities: dropped(Droppable::Activity),
            arguments: !options.emit_tool_call_args,
        }
    }

    fn filter(&self, mut messages: Vec<Message>) -> Vec<Message> {
        messages.retain_mut(|message| match message {
            Message::Reasoning { .. } => !self.reasoning,
            Message::Activity { .. } => !self.activities,
            Message::Assistant { tool_calls, .. } if self.arguments => {
                tool_calls.iter_mut().for_each(|call| call.function.arguments = String::new());
                true
            }
            _ => true,
        });
        messages
    }
}
