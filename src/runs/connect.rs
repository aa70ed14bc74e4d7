//! Showing a thread without calling its agent: what is stored, what is going on, how the last run
//! ended.

use std::{collections::HashSet, pin::pin, sync::Arc};

use agui_adapter::{
    connect::{Connect, Ending, Snapshot, pending_calls},
    history::{Incoming, Keep, Stored, reconcile},
    model::event::Object,
    options::Peer,
    outbound::{EndOutcome, RunFailure},
    view::View,
};
use agui_protocol::{Event, InterruptId, Message, MessageId, RunOutcome};
use serde_json::json;
use tokio::time::Instant;

use super::{
    core::{Joined, failed},
    joiner::{End, Joiner},
    ledger::Repeat,
    log,
    outlet::Outlet,
    pipeline::{Report, peer, refuse},
    refusal,
    service::{RunRequest, Shared},
    watch::limit,
};
use crate::store::{Millis, Thread, ThreadKey};

/// Answers a connect: joins the thread's run, else shows the thread at rest.
pub(super) async fn connect(shared: Arc<Shared>, request: RunRequest, outlet: Outlet) {
    let began = Instant::now();
    let joined = find_run(&shared, &request.key()).await;
    let is_joined = joined.is_some();
    match joined {
        Some(joined) => follow(&shared, &request, joined, outlet).await,
        None => show(&shared, &request, outlet).await,
    }
    log::connected(&request, is_joined, began.elapsed());
}

/// The thread's run; `None` = it has none, or not in this process.
async fn find_run(shared: &Shared, key: &ThreadKey) -> Option<Joined> {
    loop {
        let another = shared.live.another();
        let live = shared.live.get(key);
        if let Some(joined) = live.as_ref().and_then(|core| core.join()) {
            return Some(joined);
        }
        let store = shared.ledger.store();
        let runs = match store.load(key).await {
            Ok(thread) => thread.is_some_and(|thread| thread.active.is_some()),
            Err(_error) => false,
        };
        // With a lease the run may be another process's.
        if !runs || (live.is_none() && store.lease().is_some()) {
            return None;
        }
        // Between the store and the list of runs: about to be joinable, or about to be over.
        tokio::select! {
            () = another => {}
            () = store.at_rest(key) => {}
        }
    }
}

/// Tells a client again how its answers were taken.
pub(super) fn repeat(
    shared: &Shared,
    request: &RunRequest,
    repeat: &Repeat,
    outlet: Outlet,
) -> Report {
    let ignored: Vec<&str> = repeat.answered.iter().map(|id| id.as_str()).collect();
    let mut metadata = Object::new();
    metadata.insert("agentscope.ignoredResume".to_owned(), json!(ignored));
    let (events, outcome) = at_rest(shared, request, &repeat.thread, metadata);
    let count = events.len();
    outlet.end(events);
    Report { end: Some(outcome), events: count }
}

async fn show(shared: &Shared, request: &RunRequest, outlet: Outlet) {
    match shared.ledger.store().load(&request.key()).await {
        Ok(thread) => {
            let thread = thread.unwrap_or_default();
            outlet.end(at_rest(shared, request, &thread, Object::new()).0);
        }
        Err(error) => {
            tracing::error!(error = %error, "a thread could not be shown");
            refuse(shared, request, Object::new(), refusal::internal(), outlet);
        }
    }
}

/// The thread as it is stored, and how its last run ended.
fn at_rest(
    shared: &Shared,
    request: &RunRequest,
    thread: &Thread,
    metadata: Object,
) -> (Vec<Event>, EndOutcome) {
    let messages = merged(shared, request, Vec::clone(&thread.messages));
    let now_ms = shared.sources.clock().now_ms();
    let mut outcome = outcome(thread, &messages);
    if peer(&request.input, &request.options) == Peer::Legacy {
        outcome = for_legacy(outcome, thread, now_ms);
    }
    let ended = match outcome {
        RunOutcome::Success { .. } => EndOutcome::Success,
        RunOutcome::Interrupt { .. } => EndOutcome::Interrupted,
        RunOutcome::Cancelled => EndOutcome::Cancelled,
    };
    let snapshot = Snapshot { messages, state: thread.state.clone() };
    let mut ending = Ending::from(outcome);
    if let Some(code) = &thread.failure {
        ending.metadata.insert("agentscope.lastError".to_owned(), json!(code));
    }
    (viewer(request, metadata).at_rest(snapshot, ending, now_ms), ended)
}

/// A client from before AG-UI 1.0 keeps what it holds for open when it sees an error, as which it
/// would be told of a cancelled run, and can neither resolve nor cancel what has expired: it would
/// never get on. What has expired is cancelled by a run that does not answer it.
fn for_legacy(outcome: RunOutcome, thread: &Thread, now_ms: Millis) -> RunOutcome {
    let open = thread.parked.iter().flat_map(|parked| &parked.open);
    let expired = open.filter(|open| open.expires_ms.is_some_and(|expires| expires <= now_ms));
    let expired: HashSet<&InterruptId> = expired.map(|open| &open.interrupt.id).collect();
    let nothing_open = RunOutcome::Success { pending_tool_call_ids: Vec::new() };
    match outcome {
        RunOutcome::Cancelled => nothing_open,
        RunOutcome::Interrupt { mut interrupts } => {
            interrupts.retain(|interrupt| !expired.contains(&interrupt.id));
            if interrupts.is_empty() { nothing_open } else { RunOutcome::Interrupt { interrupts } }
        }
        success @ RunOutcome::Success { .. } => success,
    }
}

/// What is open is open still; calls of the client's own tools are pending as long as nobody
/// answered them.
fn outcome(thread: &Thread, messages: &[Message]) -> RunOutcome {
    let parked = thread.parked.as_ref().filter(|parked| parked.raised && !parked.open.is_empty());
    if let Some(parked) = parked {
        let interrupts = parked.open.iter().map(|open| open.interrupt.clone()).collect();
        return RunOutcome::Interrupt { interrupts };
    }
    match &thread.outcome {
        Some(RunOutcome::Cancelled) => RunOutcome::Cancelled,
        Some(RunOutcome::Success { pending_tool_call_ids }) => {
            let unanswered: HashSet<_> = pending_calls(messages).into_iter().collect();
            let pending = pending_tool_call_ids.iter().filter(|call| unanswered.contains(*call));
            RunOutcome::Success { pending_tool_call_ids: pending.cloned().collect() }
        }
        // Its interrupts were answered or given up.
        Some(RunOutcome::Interrupt { .. }) | None => {
            RunOutcome::Success { pending_tool_call_ids: Vec::new() }
        }
    }
}

/// Shows a run under way until it ends, the client leaves, or the client falls behind.
async fn follow(shared: &Shared, request: &RunRequest, joined: Joined, outlet: Outlet) {
    let Joined { run_id, messages, state, open, joiner } = joined;
    let messages = messages.into_iter().map(Stored::seen).collect();
    let snapshot = Snapshot { messages: merged(shared, request, messages), state };
    let now_ms = shared.sources.clock().now_ms();
    let (head, view) = viewer(request, Object::new()).joining(&run_id, snapshot, &open, now_ms);
    let follower = Follower { shared, view, joiner };
    let batches = outlet.sender();
    let Some(place) = batches.place().await else { return };
    place.send(head);
    let last = follower.pass_on(&outlet).await;
    if let Some(last) = last {
        outlet.end(last);
    }
}

struct Follower<'a> {
    shared: &'a Shared,
    view: View,
    joiner: Joiner,
}

impl Follower<'_> {
    /// Passes on what comes; gives the last batch, `None` if the client left.
    async fn pass_on(mut self, outlet: &Outlet) -> Option<Vec<Event>> {
        let batches = outlet.sender();
        let mut limit = pin!(limit(self.shared.threads.sse_timeout));
        loop {
            let (events, end) = tokio::select! {
                biased;
                next = self.joiner.next() => next,
                () = outlet.closed() => return None,
                () = &mut limit => return Some(self.failed(refusal::response_timed_out())),
            };
            let mut shown = Vec::with_capacity(events.len());
            self.view.show(events, self.shared.sources.clock().now_ms(), &mut shown);
            match end {
                None => tokio::select! {
                    biased;
                    place = batches.place() => place?.send(shown),
                    // A joiner that does not read must not hold up the end of the server.
                    () = self.shared.stopping.cancelled() => {
                        return Some(self.failed(refusal::shutting_down()));
                    }
                },
                Some(End::Over) => return Some(shown),
                Some(End::TooSlow) => {
                    shown.extend(self.failed(refusal::too_slow()));
                    return Some(shown);
                }
            }
        }
    }

    fn failed(&self, failure: RunFailure) -> Vec<Event> {
        vec![failed(failure, self.shared.sources.clock().now_ms())]
    }
}

fn viewer(request: &RunRequest, metadata: Object) -> Connect {
    let peer = peer(&request.input, &request.options);
    Connect::new(&request.input, peer, Arc::clone(&request.options), metadata)
}

/// What is stored, and what the client has beyond it.
fn merged(shared: &Shared, request: &RunRequest, stored: Vec<Stored>) -> Vec<Message> {
    if stored.is_empty() {
        // Nothing to show: a snapshot would replace what the client has.
        return Vec::new();
    }
    let mut ids = shared.sources.ids();
    let answered = HashSet::new();
    let incoming = Incoming { messages: &request.input.messages, answered_calls: &answered };
    let mut mint = || MessageId::from(ids.next_id());
    let merged = reconcile(stored, Keep::Everything, &incoming, &mut mint);
    merged.history.into_iter().map(|stored| stored.message).collect()
}
