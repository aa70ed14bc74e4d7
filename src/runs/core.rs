//! What the two tasks of a run share: the adapter and the events not yet sent.
//!
//! One task polls the agent, the other one ends the run. An agent may block its thread inside a
//! poll, so what it said before must be within reach of the other task: each event is converted
//! into the shared batch at once. The lock around it is never held across a poll or an await and
//! is contended once in a run at most, at its end; uncontended it costs less than moving the
//! event to a buffer of its own would.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Mutex, MutexGuard, PoisonError},
};

use agui_adapter::{
    model::AgentEvent,
    outbound::{Adapter, EndOutcome, RunEnd, RunFailure, StreamEnd},
    truncate::weight,
};
use agui_protocol::{Body, Event, PROTOCOL_VERSION, RunAgentInput};
use tokio::sync::mpsc::Permit;

/// Bytes of converted events at which a batch is full.
pub(super) const FULL: usize = 256 << 10;

/// Conversion of one run, open until [`Core::close`].
pub(super) struct Core(Mutex<State>);

struct State {
    adapter: Adapter,
    batch: Vec<Event>,
    /// About how many bytes the batch holds.
    weight: usize,
    /// Size of the last batch, as a guess at the next one's.
    last_len: usize,
    sent: usize,
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

/// The last events of a run, and how it ended.
pub(super) struct Closed {
    /// What is still to be sent; the terminal event is the last.
    pub(super) batch: Vec<Event>,
    /// How it ended.
    pub(super) end: RunEnd,
    /// Events of the whole run, these included.
    pub(super) events: usize,
}

impl Core {
    pub(super) fn new(adapter: Adapter) -> Self {
        let (batch, end) = (Vec::new(), None);
        let state = State { adapter, batch, weight: 0, last_len: 4, sent: 0, end, closed: false };
        Self(Mutex::new(state))
    }

    /// Converts one event of the agent.
    pub(super) fn feed(&self, event: &AgentEvent) -> Fed {
        let mut state = self.lock();
        let State { adapter, batch, weight: held, last_len, end, closed, .. } = &mut *state;
        if *closed || end.is_some() {
            return Fed::Over;
        }
        if batch.capacity() == 0 {
            batch.reserve(*last_len);
        }
        let before = batch.len();
        *end = adapter.on_event(event, batch);
        *held += batch.iter().skip(before).map(|event| weight(event, FULL)).sum::<usize>();
        if end.is_some() { Fed::Over } else { Fed::Waiting(*held) }
    }

    /// Sends what waits. Sending under the lock keeps these events before the closing ones.
    pub(super) fn flush(&self, permit: Permit<'_, Vec<Event>>) {
        let mut state = self.lock();
        if !state.closed && !state.batch.is_empty() {
            permit.send(state.take());
        }
    }

    /// Ends the conversion: with the end that an event brought about, else with `end`.
    pub(super) fn close(&self, end: StreamEnd, input: &RunAgentInput) -> Closed {
        let mut state = self.lock();
        state.closed = true;
        let end = match state.end.take() {
            Some(end) => end,
            None => finish(&mut state, end, input),
        };
        let batch = state.take();
        Closed { batch, end, events: state.sent }
    }

    /// Ends the conversion of a run whose client is gone; gives the number of events sent.
    pub(super) fn abandon(&self) -> usize {
        let mut state = self.lock();
        state.closed = true;
        state.sent
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic in a converter poisons the lock; `close` copes with what it left behind.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take(&mut self) -> Vec<Event> {
        self.last_len = self.batch.len();
        self.sent += self.batch.len();
        self.weight = 0;
        std::mem::take(&mut self.batch)
    }
}

/// Lets the adapter end the stream. If it cannot, because the panic that ends the run was its
/// own, the stream still gets its terminal event.
fn finish(state: &mut State, end: StreamEnd, input: &RunAgentInput) -> RunEnd {
    let State { adapter, batch, sent, .. } = state;
    let before = batch.len();
    let finished = catch_unwind(AssertUnwindSafe(|| adapter.finish(end, batch)));
    finished.unwrap_or_else(|_panic| {
        batch.truncate(before);
        if *sent == 0 && batch.is_empty() {
            batch.push(Event::new(Body::RunStarted {
                thread_id: input.thread_id.clone(),
                run_id: input.run_id.clone(),
                protocol_version: Some(PROTOCOL_VERSION.to_owned()),
                parent_run_id: input.parent_run_id.clone(),
                input: None,
            }));
        }
        let RunFailure { code, message, .. } = super::refusal::internal();
        batch.push(Event::new(Body::RunError {
            message,
            code: Some(code.clone()),
            usage: Vec::new(),
        }));
        RunEnd {
            outcome: EndOutcome::Error(code),
            open: Vec::new(),
            deferred: Vec::new(),
            state: None,
            parked: None,
        }
    })
}
