//! What the two tasks of a run share: the adapter and the events not yet sent.
//!
//! One task polls the agent, the other one ends the run. An agent may block its thread inside a
//! poll, so what it said before must be within reach of the other task: each event is converted
//! into the shared batch at once. The lock around it is never held across a poll or an await and
//! is contended once in a run at most, at its end, and once for each client that joins;
//! uncontended it costs less than moving the event to a buffer of its own would.

use std::{
    collections::{HashMap, HashSet},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use agui_adapter::{
    model::AgentEvent,
    outbound::{Adapter, Clock, EndOutcome, RunEnd, RunFailure, StreamEnd},
    resume::{Decision, Verdict},
    transcript::{OpenItems, Transcript},
    truncate::weight,
    view::View,
};
use agui_protocol::{
    Body, Event, Message, MessageId, PROTOCOL_VERSION, RunAgentInput, RunId, ToolCallId,
};
use serde_json::Value;
use tokio::sync::mpsc::Permit;

use super::{
    begun::BegunCalls,
    joiner::{Joiner, Joiners},
    ledger::Settled,
    opening::Opening,
    service::RunRequest,
};

/// Bytes of converted events at which a batch is full.
pub(super) const FULL: usize = 256 << 10;

/// A run under way: its conversion, open until [`Core::close`], and those who watch it.
pub(super) struct Core {
    state: Mutex<State>,
    input: Arc<RunAgentInput>,
    /// The thread's messages before the run; `None` = those of the input.
    history: Option<Arc<Vec<Message>>>,
}

struct State {
    adapter: Adapter,
    clock: Box<dyn Clock>,
    batch: Vec<Event>,
    /// About how many bytes the batch holds.
    weight: usize,
    /// Size of the last batch, as a guess at the next one's.
    last_len: usize,
    sent: usize,
    /// What the client that began the run is shown.
    view: View,
    joiners: Joiners,
    /// Approved calls of this run that have no result yet.
    claimed: Claimed,
    /// Approved calls that are being executed.
    begun: BegunCalls,
    /// Their results, until they are stored.
    settled: Vec<Settled>,
    /// What the client had when it left; `None` = it is there.
    seen: Option<HashSet<MessageId>>,
    /// The thread had a state before the run.
    had_state: bool,
    /// The end that an event brought about.
    end: Option<RunEnd>,
    closed: bool,
}

/// What became of an event.
pub(super) enum Fed {
    /// It was converted; about this many bytes of events wait to be sent.
    Waiting(usize),
    /// The run is over.
    Over,
}

/// The last events of a run, and what it leaves behind.
pub(super) struct Closed {
    /// What is still to be sent, by [`Core::release`]; the terminal event is the last.
    pub(super) batch: Vec<Event>,
    /// How it ended.
    pub(super) end: RunEnd,
    /// Events of the whole run, these included.
    pub(super) events: usize,
    /// What it added to the thread.
    pub(super) transcript: Transcript,
    /// The thread's state at the end; `None` = it has none.
    pub(super) state: Option<Arc<Value>>,
    /// What the client had when it left; `None` = it stayed.
    pub(super) seen: Option<HashSet<MessageId>>,
}

/// A run as a client finds it that joins.
pub(super) struct Joined {
    /// The run.
    pub(super) run_id: RunId,
    /// The thread's messages up to now.
    pub(super) messages: Vec<Message>,
    /// The state as clients have it; `None` = they have none.
    pub(super) state: Option<Arc<Value>>,
    /// What is open.
    pub(super) open: OpenItems,
    /// What comes from now on.
    pub(super) joiner: Joiner,
}

impl Core {
    /// A run that has said nothing yet.
    pub(super) fn new(
        mut adapter: Adapter,
        clock: Box<dyn Clock>,
        request: &RunRequest,
        opening: &Opening,
    ) -> Self {
        let state = State {
            view: adapter.take_view(),
            adapter,
            clock,
            batch: Vec::new(),
            weight: 0,
            last_len: 4,
            sent: 0,
            joiners: Joiners::default(),
            claimed: claimed(&opening.decisions),
            begun: BegunCalls::new(&opening.decisions),
            settled: Vec::new(),
            seen: None,
            had_state: request.input.state.is_some() || opening.stored_state.is_some(),
            end: None,
            closed: false,
        };
        let (input, history) = (Arc::clone(&request.input), opening.history.clone());
        Self { state: Mutex::new(state), input, history }
    }

    /// Converts one event of the agent.
    pub(super) fn feed(&self, event: &AgentEvent) -> Fed {
        let mut state = self.lock();
        let State { adapter, batch, weight: held, last_len, end, closed, begun, .. } = &mut *state;
        if *closed || end.is_some() {
            return Fed::Over;
        }
        if batch.capacity() == 0 {
            batch.reserve(*last_len);
        }
        let before = batch.len();
        begun.note(event);
        *end = adapter.on_event(event, batch);
        *held += batch.iter().skip(before).map(|event| weight(event, FULL)).sum::<usize>();
        let (over, held) = (end.is_some(), *held);
        state.note_child_results();
        if !state.claimed.is_empty() {
            state.note_results(before);
        }
        if over { Fed::Over } else { Fed::Waiting(held) }
    }

    /// Results of claimed calls that wait to be sent: they are stored first.
    pub(super) fn settled(&self) -> Vec<Settled> {
        self.lock().settled.clone()
    }

    /// The first of them are stored; who is stopped before that leaves them to the end of the run.
    pub(super) fn stored(&self, count: usize) {
        let mut state = self.lock();
        let count = count.min(state.settled.len());
        state.settled.drain(..count);
    }

    /// Sends what waits. Sending under the lock keeps these events before the closing ones.
    /// `None` = the client has left.
    pub(super) fn flush(&self, place: Option<Permit<'_, Vec<Event>>>) {
        let mut state = self.lock();
        if state.closed || state.batch.is_empty() {
            return;
        }
        if place.is_none() {
            // What waits has reached nobody.
            state.client_left();
        }
        let batch = state.take();
        if let Some(place) = place.filter(|_| !batch.is_empty()) {
            place.send(batch);
        }
    }

    /// Another client watches from now on; `None` = the run is over.
    pub(super) fn join(&self) -> Option<Joined> {
        let mut state = self.lock();
        if state.closed || state.end.is_some() {
            return None;
        }
        let unsent = state.batch.len();
        let transcript = state.adapter.transcript().clone();
        let history = self.history.as_deref().unwrap_or(&self.input.messages);
        Some(Joined {
            run_id: self.input.run_id.clone(),
            messages: transcript.onto(history.clone()),
            state: state.adapter.shown_state().cloned(),
            open: state.adapter.open_items().clone(),
            // What waits to be sent to the others is in the snapshot already.
            joiner: state.joiners.join(unsent),
        })
    }

    /// The client that began the run has left; the run goes on without it.
    pub(super) fn client_left(&self) {
        self.lock().client_left();
    }

    /// What ends the response of the client that began the run, while the run goes on.
    pub(super) fn cut(&self, failure: RunFailure) -> Vec<Event> {
        let mut state = self.lock();
        let mut batch = state.take();
        state.client_left();
        if state.sent == 0 {
            batch.push(self.started());
        }
        batch.push(failed(failure, state.clock.now_ms()));
        batch
    }

    /// The end could not be recorded, so the client must not hear of it, nor of results of the
    /// approved calls that were to be recorded with it.
    pub(super) fn fail(&self, batch: &mut Vec<Event>, decisions: &[Decision]) -> EndOutcome {
        let claimed = claimed(decisions);
        let failure = super::refusal::internal();
        let outcome = EndOutcome::Error(failure.code.clone());
        batch.retain(|event| match &event.body {
            Body::RunFinished { .. } | Body::RunError { .. } => false,
            Body::ToolCallResult { tool_call_id, .. } => !claimed.contains_key(tool_call_id),
            _ => true,
        });
        batch.push(failed(failure, self.lock().clock.now_ms()));
        outcome
    }

    fn started(&self) -> Event {
        let RunAgentInput { thread_id, run_id, parent_run_id, .. } = &*self.input;
        Event::new(Body::RunStarted {
            thread_id: thread_id.clone(),
            run_id: run_id.clone(),
            protocol_version: Some(PROTOCOL_VERSION.to_owned()),
            parent_run_id: parent_run_id.clone(),
            input: None,
        })
    }

    /// Ends the conversion: with the end that an event brought about, else with `end`.
    pub(super) fn close(&self, end: StreamEnd) -> Closed {
        let mut state = self.lock();
        state.closed = true;
        let end = match state.end.take() {
            Some(end) => end,
            None => self.finish(&mut state, end),
        };
        let batch = std::mem::take(&mut state.batch);
        let transcript = state.adapter.take_transcript();
        let now = state.known_state();
        let (events, seen) = (state.sent + batch.len(), state.seen.take());
        Closed { batch, end, events, transcript, state: now, seen }
    }

    /// The end is recorded: those who joined see it; gives what the client that began the run is
    /// shown.
    pub(super) fn release(&self, batch: Vec<Event>) -> Vec<Event> {
        let mut state = self.lock();
        state.batch = batch;
        let shown = state.take();
        state.joiners.end();
        shown
    }

    /// Lets the adapter end the stream. If it cannot, because the panic that ends the run was its
    /// own, the stream still gets its terminal event.
    fn finish(&self, state: &mut State, end: StreamEnd) -> RunEnd {
        self.cut_off(state);
        let State { adapter, batch, sent, clock, .. } = state;
        let before = batch.len();
        let finished = catch_unwind(AssertUnwindSafe(|| adapter.finish(end, batch)));
        finished.unwrap_or_else(|_panic| {
            batch.truncate(before);
            if *sent == 0 && batch.is_empty() {
                batch.push(self.started());
            }
            let failure = super::refusal::internal();
            let outcome = EndOutcome::Error(failure.code.clone());
            batch.push(failed(failure, clock.now_ms()));
            RunEnd {
                outcome,
                finished: None,
                open: Vec::new(),
                deferred: Vec::new(),
                state: None,
                parked: None,
                kept: None,
            }
        })
    }

    /// Calls that were approved and are being executed get a result that says so: they are settled
    /// like those that have one, and nobody executes them again.
    fn cut_off(&self, state: &mut State) {
        let before = state.batch.len();
        for event in state.begun.cut_off() {
            let State { adapter, batch, .. } = state;
            // If the adapter panicked, it does so again; then the call is open again.
            let fed = catch_unwind(AssertUnwindSafe(|| adapter.on_event(&event, batch)));
            if fed.is_err() {
                state.batch.truncate(before);
                return;
            }
            state.note_child_results();
        }
        state.note_results(before);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic in a converter poisons the lock; `close` copes with what it left behind.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// What waits, as the client that began the run is shown it; those who joined get it too.
    fn take(&mut self) -> Vec<Event> {
        self.last_len = self.batch.len();
        self.sent += self.batch.len();
        self.weight = 0;
        let batch = std::mem::take(&mut self.batch);
        self.joiners.send(&batch);
        if self.view.shows_all() {
            return batch;
        }
        let mut shown = Vec::with_capacity(batch.len());
        self.view.show(batch, self.clock.now_ms(), &mut shown);
        shown
    }

    /// An agent that never touched the state has left none.
    fn known_state(&self) -> Option<Arc<Value>> {
        let state = self.adapter.state();
        let untouched = state.as_object().is_some_and(serde_json::Map::is_empty);
        (self.had_state || !untouched).then(|| Arc::clone(state))
    }

    fn client_left(&mut self) {
        if self.seen.is_some() {
            return;
        }
        // Of a message that is not complete yet the client has a part at most.
        let open = self.adapter.open_items().starts();
        let unsent = self.batch.iter();
        let open: HashSet<&MessageId> = open.chain(unsent).filter_map(message_of).collect();
        let messages = self.adapter.transcript().messages().map(Message::id);
        let seen = messages.filter(|id| !open.contains(id)).cloned().collect();
        self.seen = Some(seen);
    }

    /// Notes the results of children's claimed calls. What is shown of them says little: a client
    /// may be told in another form, or nothing.
    fn note_child_results(&mut self) {
        for decision in self.adapter.take_child_results() {
            let call = decision.open.call.as_ref();
            let wire = call.map(|call| ToolCallId::from(call.wire_id.as_str()));
            let message = wire.as_ref().and_then(|wire| {
                self.claimed.remove(wire)?;
                self.result_message(wire)
            });
            self.settled.push((decision, message));
        }
    }

    /// Notes the results of claimed calls among the events from `from` on.
    fn note_results(&mut self, from: usize) {
        for event in self.batch.iter().skip(from) {
            let Body::ToolCallResult { tool_call_id, .. } = &event.body else { continue };
            let Some(decision) = self.claimed.remove(tool_call_id) else { continue };
            self.settled.push((decision, self.result_message(tool_call_id)));
        }
    }

    fn result_message(&self, call: &ToolCallId) -> Option<Message> {
        let mut messages = self.adapter.transcript().messages();
        messages.find(|message| message.answered_call() == Some(call)).cloned()
    }
}

/// The calls that a run may execute, by the ids that the client knows, but for those of children
/// that it was not shown.
type Claimed = HashMap<ToolCallId, Decision>;

fn claimed(decisions: &[Decision]) -> Claimed {
    let claimed = decisions.iter().filter(|decision| !decision.settled).filter_map(|decision| {
        let Verdict::Approved { call, .. } = &decision.verdict else { return None };
        let open = &decision.open;
        let shown = open.source.is_none() || open.interrupt.subagent_run_id.is_some();
        shown.then(|| (ToolCallId::from(call.wire_id.as_str()), decision.clone()))
    });
    claimed.collect()
}

/// The message that an event begins or adds to.
fn message_of(event: &Event) -> Option<&MessageId> {
    match &event.body {
        Body::TextMessageStart { message_id, .. }
        | Body::TextMessageContent { message_id, .. }
        | Body::ReasoningStart { message_id, .. }
        | Body::ReasoningMessageContent { message_id, .. }
        | Body::ToolCallResult { message_id, .. } => Some(message_id),
        Body::ToolCallStart { parent_message_id, .. } => parent_message_id.as_ref(),
        _ => None,
    }
}

/// RUN_ERROR, which always carries the time.
pub(super) fn failed(failure: RunFailure, now_ms: i64) -> Event {
    let RunFailure { code, message, .. } = failure;
    let mut event = Event::new(Body::RunError { message, code: Some(code), usage: Vec::new() });
    event.timestamp = Some(now_ms);
    event
}
