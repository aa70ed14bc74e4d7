//! One run from its beginning to its end: ledger, messages, agent, adapter, ledger, terminal
//! event.
//!
//! The task here watches over the one that polls the agent ([`super::drive`]): a run's limit, a
//! client that leaves and a server that stops end the run even when the agent does not yield, as
//! long as another thread of the runtime is free.

use std::{sync::Arc, time::Duration};

use agui_adapter::{
    inbound::{Inbound, InboundNote, InboundOptions, to_msgs},
    model::{Msg, event::Object},
    options::{AdapterOptions, AssumePeer, Peer},
    outbound::{Adapter, AdapterParts, EndOutcome, RunFailure, RunSetup, StreamEnd},
    resume::{Decision, decide},
};
use agui_protocol::{InterruptId, RunAgentInput};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::{
    core::{Closed, Core},
    drive::{Stopped, drive},
    ledger::{ThreadKey, Ticket},
    outlet::Outlet,
    refusal,
    service::{RunRequest, Shared},
};
use crate::agents::AgentRequest;

/// What the log says of a run.
struct Report {
    /// The end; `None` = the client left first.
    end: Option<EndOutcome>,
    events: usize,
}

/// Runs `request` and sends its events, the last batch after the ledger knows the end.
pub(super) async fn run(shared: Arc<Shared>, request: RunRequest, outlet: Outlet) {
    let began = Instant::now();
    let key =
        ThreadKey { principal: request.principal.clone(), thread: request.input.thread_id.clone() };
    let ticket = shared.ledger.begin(key, &request.agent_id, &request.input.resume);
    let report = match ticket {
        Ok(ticket) => begun(&shared, &request, ticket, outlet).await,
        Err(refused) => {
            let core = core(&shared, &request, Vec::new(), Object::new());
            refuse(&request, &core, refusal::refused(&refused), outlet)
        }
    };
    log_end(&request, &report, began.elapsed());
}

/// The run has its thread.
async fn begun(shared: &Shared, request: &RunRequest, ticket: Ticket, outlet: Outlet) -> Report {
    let decisions = decide(&request.input.resume, ticket.claimed());
    let prepared = Prepared::new(request, &ticket);
    log_input(request, &ticket, &prepared);
    let decisions = match decisions {
        Ok(decisions) => decisions,
        Err(error) => {
            drop(ticket);
            let core = core(shared, request, Vec::new(), prepared.started_metadata);
            return refuse(request, &core, refusal::bad_answer(&error), outlet);
        }
    };
    let core = Arc::new(core(shared, request, decisions.clone(), prepared.started_metadata));
    let cancel = CancellationToken::new();
    // Whatever ends the run, what the agent started on the side hears of it.
    let _cancel_at_end = cancel.clone().drop_guard();
    let stop = if ticket.deferred().is_empty() {
        let told = Told { messages: prepared.messages, decisions, parked: ticket.parked(), cancel };
        let agent_request = agent_request(shared, request, told);
        watch(shared, request, agent_request, &core, &outlet).await
    } else {
        Some(StreamEnd::Raise(ticket.deferred().to_vec()))
    };
    let Some(end) = stop else {
        drop(ticket);
        return Report { end: None, events: core.abandon() };
    };
    let Closed { batch, end, events } = core.close(end, &request.input);
    // Recorded before the terminal event leaves, so that a fast resume cannot overtake it.
    ticket.finish(&end);
    outlet.end(batch);
    Report { end: Some(end.outcome), events }
}

/// Polls the agent in a task of its own until that ends or something ends it; `None` = nobody
/// listens any more.
async fn watch(
    shared: &Shared,
    request: &RunRequest,
    agent_request: AgentRequest,
    core: &Arc<Core>,
    outlet: &Outlet,
) -> Option<StreamEnd> {
    let agent = Arc::clone(&request.agent);
    let driving = drive(agent, agent_request, Arc::clone(core), outlet.sender());
    let mut driver = shared.tasks.spawn(driving);
    let end = tokio::select! {
        biased;
        stopped = &mut driver => match stopped.unwrap_or(Stopped::Panicked) {
            Stopped::Over | Stopped::StreamEnded => Some(StreamEnd::Completed),
            Stopped::Failed(error) => Some(agent_failed(request, &error)),
            Stopped::Panicked => Some(panicked(request)),
            Stopped::Unwatched => None,
        },
        () = outlet.closed() => None,
        () = limit(request.run_timeout) => Some(StreamEnd::Failed(refusal::timed_out())),
        () = shared.stopping.cancelled() => Some(StreamEnd::Failed(refusal::shutting_down())),
    };
    driver.abort();
    end
}

async fn limit(run_timeout: Option<Duration>) {
    match run_timeout {
        Some(limit) => sleep(limit).await,
        None => std::future::pending().await,
    }
}

fn refuse(request: &RunRequest, core: &Core, failure: RunFailure, outlet: Outlet) -> Report {
    let Closed { batch, end, events } = core.close(StreamEnd::Failed(failure), &request.input);
    outlet.end(batch);
    Report { end: Some(end.outcome), events }
}

/// What the agent and RUN_STARTED are told of the input.
struct Prepared {
    messages: Vec<Msg>,
    started_metadata: Object,
    dropped_system: usize,
    notes: Vec<InboundNote>,
}

impl Prepared {
    fn new(request: &RunRequest, ticket: &Ticket) -> Self {
        let calls = ticket.claimed().iter().filter_map(|open| open.call.as_ref());
        let options = InboundOptions {
            accept_client_system_messages: request.accept_client_system_messages,
            answered_calls: calls.map(|call| call.wire_id.as_str().into()).collect(),
            ..InboundOptions::default()
        };
        let Inbound { msgs, dropped_system, notes } = to_msgs(&request.input, &options);
        let mut metadata = Object::new();
        let ignored = [ticket.already_answered(), ticket.never_raised()].concat();
        if !ignored.is_empty() {
            let ignored: Vec<&str> = ignored.iter().map(InterruptId::as_str).collect();
            metadata.insert("agentscope.ignoredResume".to_owned(), json!(ignored));
        }
        if dropped_system > 0 {
            metadata.insert("agentscope.droppedMessages".to_owned(), json!(dropped_system));
        }
        Self { messages: msgs, started_metadata: metadata, dropped_system, notes }
    }
}

/// What the agent is told beside the request.
struct Told {
    messages: Vec<Msg>,
    decisions: Vec<Decision>,
    parked: Option<Arc<Value>>,
    cancel: CancellationToken,
}

fn agent_request(shared: &Shared, request: &RunRequest, told: Told) -> AgentRequest {
    let input = &request.input;
    let Told { messages, decisions, parked, cancel } = told;
    AgentRequest {
        thread_id: input.thread_id.clone(),
        run_id: input.run_id.clone(),
        input: Arc::clone(input),
        messages,
        decisions,
        parked,
        state: input.state.clone().unwrap_or_else(|| Arc::new(Value::Object(Object::new()))),
        context: Arc::clone(&request.context),
        cancel,
        request_id: Arc::clone(&request.request_id),
        background: shared.tasks.clone(),
    }
}

fn core(
    shared: &Shared,
    request: &RunRequest,
    answered: Vec<Decision>,
    started_metadata: Object,
) -> Core {
    let setup = RunSetup {
        input: Arc::clone(&request.input),
        peer: peer(&request.input, &request.options),
        answered,
        started_metadata,
        stored_state: None,
    };
    let parts = AdapterParts {
        setup,
        options: Arc::clone(&request.options),
        extensions: Arc::clone(&shared.extensions),
        context: Arc::clone(&request.context),
        ids: shared.sources.ids(),
        clock: shared.sources.clock(),
    };
    Core::new(match &shared.factory {
        Some(factory) => factory.adapter(parts),
        None => Adapter::new(parts),
    })
}

/// A peer that declares any version is served as a current one (VER-4, VER-6).
fn peer(input: &RunAgentInput, options: &AdapterOptions) -> Peer {
    match (options.assume_peer, &input.protocol_version) {
        (AssumePeer::Current, _) | (AssumePeer::Auto, Some(_)) => Peer::Current,
        (AssumePeer::Legacy, _) | (AssumePeer::Auto, None) => Peer::Legacy,
    }
}

fn panicked(request: &RunRequest) -> StreamEnd {
    tracing::error!(
        request.id = %request.request_id,
        agent.id = %request.agent_id,
        "the agent panicked; the line before tells where"
    );
    StreamEnd::Failed(refusal::internal())
}

fn agent_failed(request: &RunRequest, error: &crate::agents::AgentError) -> StreamEnd {
    tracing::warn!(
        request.id = %request.request_id,
        agent.id = %request.agent_id,
        code = error.code,
        cause = error.cause.as_deref().unwrap_or("none given"),
        "the agent failed"
    );
    StreamEnd::Failed(refusal::agent_failed(error))
}

fn log_input(request: &RunRequest, ticket: &Ticket, prepared: &Prepared) {
    let request_id = &*request.request_id;
    for note in &prepared.notes {
        tracing::info!(
            request.id = request_id,
            note = note.to_string(),
            "part of the input is not used"
        );
    }
    if prepared.dropped_system > 0 {
        let count = prepared.dropped_system;
        tracing::info!(request.id = request_id, count, "system messages of the client dropped");
    }
    if !ticket.never_raised().is_empty() || !ticket.already_answered().is_empty() {
        tracing::info!(
            request.id = request_id,
            never_raised = ticket.never_raised().len(),
            already_answered = ticket.already_answered().len(),
            "resume entries ignored"
        );
    }
}

/// The one log line of a run; never content.
fn log_end(request: &RunRequest, report: &Report, took: Duration) {
    let (outcome, code) = match &report.end {
        None => ("client-gone", None),
        Some(EndOutcome::Success) => ("success", None),
        Some(EndOutcome::Interrupted) => ("interrupt", None),
        Some(EndOutcome::Cancelled) => ("cancelled", None),
        Some(EndOutcome::Error(code)) => ("error", Some(code.as_str())),
    };
    tracing::info!(
        request.id = %request.request_id,
        thread.id = request.input.thread_id.as_str(),
        run.id = request.input.run_id.as_str(),
        agent.id = %request.agent_id,
        outcome,
        code,
        duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        events = report.events,
        "run ended"
    );
}
