//! One run from its beginning to its end: ledger, messages, agent, adapter, ledger, terminal
//! event.

use std::sync::Arc;

use agui_adapter::{
    model::event::Object,
    options::{AdapterOptions, AssumePeer, Peer},
    outbound::{Adapter, AdapterParts, EndOutcome, IdSource, RunFailure, RunSetup, StreamEnd},
};
use agui_protocol::RunAgentInput;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    connect,
    core::{Closed, Core},
    ledger::{Beginning, Ended, Ticket},
    log,
    opening::Opening,
    outlet::Outlet,
    refusal,
    service::{RunRequest, Shared},
    watch::{Watched, watch},
};
use crate::agents::AgentRequest;

/// What the log says of a run.
pub(super) struct Report {
    /// The end; `None` = the client left and the run was stopped.
    pub(super) end: Option<EndOutcome>,
    /// Events of the run.
    pub(super) events: usize,
}

/// Runs `request` and sends its events, the last batch after the ledger knows the end.
pub(super) async fn run(shared: Arc<Shared>, request: RunRequest, outlet: Outlet) {
    let began = Instant::now();
    let beginning = shared.ledger.begin(request.key(), &request.agent_id, &request.input).await;
    let report = match beginning {
        Ok(Beginning::Run(ticket)) => begun(&shared, &request, *ticket, outlet).await,
        Ok(Beginning::Repeat(repeat)) => connect::repeat(&shared, &request, &repeat, outlet),
        Err(refused) => {
            refuse(&shared, &request, Object::new(), refusal::refused(&refused), outlet)
        }
    };
    log::ended(&request, &report, began.elapsed());
}

/// The run has its thread.
async fn begun(shared: &Shared, request: &RunRequest, ticket: Ticket, outlet: Outlet) -> Report {
    let policy = shared.ledger.policy();
    let mut ids = shared.sources.ids();
    let mut opening = match Opening::new(request, ticket.begun(), policy, &mut *ids) {
        Ok(opening) => opening,
        Err(error) => {
            let metadata = ticket.begun().started_metadata();
            ticket.give_up().await;
            return refuse(shared, request, metadata, refusal::bad_answer(&error), outlet);
        }
    };
    log::input(request, ticket.begun(), &opening);
    let core = Arc::new(core(shared, request, &opening, ids));
    let key = ticket.key().clone();
    shared.live.insert(key.clone(), Arc::clone(&core));
    let watched = match ticket.to_raise() {
        Some(parked) => {
            let end = Some(StreamEnd::Raise(parked.open.clone()));
            Watched { end, outlet: Some(outlet) }
        }
        None => {
            let agent_request = agent_request(shared, request, &mut opening, &ticket);
            watch(shared, request, agent_request, &ticket, &core, outlet).await
        }
    };
    let report = leave(shared, request, ticket, &core, &opening, watched).await;
    shared.live.remove(&key, &core);
    report
}

/// Closes the conversion, gives the thread back, and then sends the end.
async fn leave(
    shared: &Shared,
    request: &RunRequest,
    ticket: Ticket,
    core: &Core,
    opening: &Opening,
    watched: Watched,
) -> Report {
    let Watched { end, outlet } = watched;
    let client_left = end.is_none();
    let closed = core.close(end.unwrap_or_else(|| StreamEnd::Failed(refusal::client_left())));
    // Results that were not sent any more.
    let settled = core.settled();
    let keeps = shared.ledger.policy().keep_history
        || ticket.begun().parked.is_some()
        || !closed.end.open.is_empty()
        || !closed.end.deferred.is_empty();
    let Closed { mut batch, end, events, transcript, state, seen } = closed;
    let messages =
        if keeps { opening.with(&request.input, transcript, seen.as_ref()) } else { Vec::new() };
    let messages = Arc::new(messages);
    let decisions = &opening.decisions;
    let ended = Ended { end: &end, messages, state, decisions, settled: &settled };
    // Recorded before the terminal event leaves, so that a fast resume cannot overtake it.
    let outcome = match ticket.end(&ended).await {
        Ok(()) => end.outcome,
        Err(error) => {
            tracing::error!(error = %error, "the end of a run was not recorded");
            core.fail(&mut batch, &opening.decisions)
        }
    };
    let shown = core.release(batch);
    if let Some(outlet) = outlet {
        outlet.end(shown);
    }
    Report { end: (!client_left).then_some(outcome), events }
}

/// Answers with RUN_STARTED and RUN_ERROR; no agent is called.
pub(super) fn refuse(
    shared: &Shared,
    request: &RunRequest,
    started_metadata: Object,
    failure: RunFailure,
    outlet: Outlet,
) -> Report {
    let opening = Opening::refused(started_metadata);
    let core = core(shared, request, &opening, shared.sources.ids());
    let Closed { batch, end, events, .. } = core.close(StreamEnd::Failed(failure));
    outlet.end(core.release(batch));
    Report { end: Some(end.outcome), events }
}

fn agent_request(
    shared: &Shared,
    request: &RunRequest,
    opening: &mut Opening,
    ticket: &Ticket,
) -> AgentRequest {
    let input = &request.input;
    AgentRequest {
        thread_id: input.thread_id.clone(),
        run_id: input.run_id.clone(),
        input: Arc::clone(input),
        messages: std::mem::take(&mut opening.messages),
        decisions: opening.decisions.clone(),
        parked: ticket.claimed().and_then(|parked| parked.state.clone()),
        kept: ticket.begun().kept.clone(),
        session: request.key().digest(),
        delegation: None,
        state: opening.state(input),
        context: Arc::clone(&request.context),
        cancel: CancellationToken::new(),
        request_id: Arc::clone(&request.request_id),
        background: shared.tasks.clone(),
    }
}

fn core(shared: &Shared, request: &RunRequest, opening: &Opening, ids: Box<dyn IdSource>) -> Core {
    let setup = RunSetup {
        history: opening.history.clone(),
        peer: peer(&request.input, &request.options),
        answered: opening.decisions.clone(),
        owed: opening.owed.clone(),
        taken: opening.taken.clone(),
        started_metadata: opening.started_metadata.clone(),
        stored_state: opening.stored_state.clone(),
        ..RunSetup::new(Arc::clone(&request.input), Peer::Current)
    };
    let parts = AdapterParts {
        setup,
        options: Arc::clone(&request.options),
        extensions: Arc::clone(&shared.extensions),
        context: Arc::clone(&request.context),
        ids,
        clock: shared.sources.clock(),
    };
    let adapter = match &shared.factory {
        Some(factory) => factory.adapter(parts),
        None => Adapter::new(parts),
    };
    let clock = shared.sources.clock();
    Core::new(adapter, clock, request, opening)
}

/// A peer that declares any version is served as a current one (VER-4, VER-6).
pub(super) fn peer(input: &RunAgentInput, options: &AdapterOptions) -> Peer {
    match (options.assume_peer, &input.protocol_version) {
        (AssumePeer::Current, _) | (AssumePeer::Auto, Some(_)) => Peer::Current,
        (AssumePeer::Legacy, _) | (AssumePeer::Auto, None) => Peer::Legacy,
    }
}
