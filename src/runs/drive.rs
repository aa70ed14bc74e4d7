//! The task that polls the agent.
//!
//! It can be aborted at any time and may hang inside the agent: nothing that a run's end needs
//! may live here only.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::{Context, Poll},
};

use super::{
    core::{Core, FULL, Fed},
    ledger::Settler,
    outlet::Batches,
};
use crate::agents::{Agent, AgentError, AgentRequest, AgentStream};

/// Agent events converted before what they gave is sent although more are ready.
const MAX_EVENTS: usize = 256;

/// Why polling stopped.
#[derive(Debug)]
pub(super) enum Stopped {
    /// An event ended the run, or somebody else closed it.
    Over,
    /// The agent's stream ended.
    StreamEnded,
    /// The agent gave an error.
    Failed(AgentError),
    /// The agent or a converter panicked; the panic hook has logged it.
    Panicked,
    /// Nobody receives the events any more, and nobody has to.
    Unwatched,
    /// A result could not be stored, so nobody may see it.
    StoreFailed,
}

enum Step {
    Flush,
    Stop(Stopped),
}

/// What polling works on.
pub(super) struct Drive {
    pub(super) agent: Arc<dyn Agent>,
    pub(super) request: AgentRequest,
    pub(super) core: Arc<Core>,
    pub(super) events: Batches,
    /// Stores the results of claimed calls before they are sent.
    pub(super) settler: Settler,
    /// Whether the run goes on when its client has left.
    pub(super) goes_on: bool,
}

/// Runs the agent until the run is over. Events that are ready at once leave in one batch, up to
/// a number and a length; a full channel stops the polling, so that a slow reader slows the agent
/// down and what waits for it stays small.
pub(super) async fn drive(drive: Drive) -> Stopped {
    let Drive { agent, request, core, events, settler, goes_on } = drive;
    let Ok(mut stream) = catch_unwind(AssertUnwindSafe(|| agent.run(request))) else {
        return Stopped::Panicked;
    };
    loop {
        let step = std::future::poll_fn(|cx| {
            catch_unwind(AssertUnwindSafe(|| drain(&mut stream, &core, cx)))
                .unwrap_or(Poll::Ready(Step::Stop(Stopped::Panicked)))
        });
        if let Step::Stop(stopped) = step.await {
            return stopped;
        }
        let settled = core.settled();
        if !settled.is_empty() {
            if settler.settle(&settled).await.is_err() {
                return Stopped::StoreFailed;
            }
            core.stored(settled.len());
        }
        match events.place().await {
            Some(place) => core.flush(Some(place)),
            None if goes_on => core.flush(None),
            None => return Stopped::Unwatched,
        }
    }
}

fn drain(stream: &mut AgentStream, core: &Core, cx: &mut Context<'_>) -> Poll<Step> {
    let mut waiting = 0;
    for _ in 0..MAX_EVENTS {
        let event = match stream.as_mut().poll_next(cx) {
            Poll::Pending if waiting == 0 => return Poll::Pending,
            Poll::Pending => break,
            Poll::Ready(Some(Ok(event))) => event,
            Poll::Ready(Some(Err(error))) => return stop(Stopped::Failed(error)),
            Poll::Ready(None) => return stop(Stopped::StreamEnded),
        };
        match core.feed(&event) {
            Fed::Waiting(bytes) => waiting = bytes,
            Fed::Over => return stop(Stopped::Over),
        }
        if waiting >= FULL {
            break;
        }
    }
    Poll::Ready(Step::Flush)
}

fn stop(stopped: Stopped) -> Poll<Step> {
    Poll::Ready(Step::Stop(stopped))
}
