//! Watching over a run: whatever ends it, the agent included.

use std::{pin::pin, sync::Arc, time::Duration};

use agui_adapter::outbound::StreamEnd;
use futures_util::future;
use tokio::time::{self, sleep};
use tokio_util::sync::CancellationToken;

use super::{
    core::Core,
    drive::{Drive, Stopped, drive},
    ledger::Ticket,
    log,
    outlet::Outlet,
    refusal,
    service::{RunRequest, Shared},
};
use crate::agents::AgentRequest;

/// How long an agent that was asked to stop may take to say its last words.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// How polling the agent came to its end.
pub(super) struct Watched {
    /// How the stream ends; `None` = the client left and the run was stopped.
    pub(super) end: Option<StreamEnd>,
    /// Where the end goes; `None` = the response is over already.
    pub(super) outlet: Option<Outlet>,
}

/// Polls the agent in a task of its own until that ends or something ends it.
pub(super) async fn watch(
    shared: &Shared,
    request: &RunRequest,
    agent_request: AgentRequest,
    ticket: &Ticket,
    core: &Arc<Core>,
    outlet: Outlet,
) -> Watched {
    let cancel = agent_request.cancel.clone();
    // Whatever ends the run, what the agent started on the side hears of it.
    let _cancel_at_end = cancel.clone().drop_guard();
    let goes_on = !shared.threads.interrupt_on_disconnect;
    let driving = drive(Drive {
        agent: Arc::clone(&request.agent),
        request: agent_request,
        core: Arc::clone(core),
        events: outlet.sender(),
        settler: ticket.settler(),
        goes_on,
    });
    let mut driver = shared.tasks.spawn(driving);
    let mut response = Response { outlet: Some(outlet), goes_on, core };
    let mut cancelling = Cancelling { cancel, since: None };
    let end = {
        let (mut limit, mut response_limit, mut cancelled) = (
            pin!(limit(request.run_timeout)),
            pin!(limit(shared.threads.sse_timeout)),
            pin!(ticket.cancelled()),
        );
        let mut renewing = pin!(renew(ticket));
        loop {
            tokio::select! {
                biased;
                stopped = &mut driver => {
                    let stopped = stopped.unwrap_or(Stopped::Panicked);
                    break stream_end(request, stopped, cancelling.since.is_some());
                }
                () = response.left() => if !goes_on { break None },
                () = &mut limit => break Some(StreamEnd::Failed(refusal::timed_out())),
                () = &mut response_limit, if response.is_open() => {
                    if !goes_on {
                        break Some(StreamEnd::Failed(refusal::response_timed_out()));
                    }
                    response.cut();
                }
                () = shared.stopping.cancelled() => {
                    break Some(StreamEnd::Failed(refusal::shutting_down()));
                }
                () = &mut cancelled, if cancelling.since.is_none() => cancelling.begin(),
                () = cancelling.over() => break Some(StreamEnd::Cancelled(CANCELLED)),
                () = &mut renewing => break Some(StreamEnd::Failed(refusal::internal())),
            }
        }
    };
    driver.abort();
    Watched { end, outlet: response.outlet }
}

/// The reason of a run that was cancelled by a request.
const CANCELLED: &str = "cancelled";

fn stream_end(request: &RunRequest, stopped: Stopped, cancelled: bool) -> Option<StreamEnd> {
    match stopped {
        Stopped::Over => Some(StreamEnd::Completed),
        // It was asked to stop and did, without a word about it.
        Stopped::StreamEnded if cancelled => Some(StreamEnd::Cancelled(CANCELLED)),
        Stopped::StreamEnded => Some(StreamEnd::Completed),
        Stopped::Failed(error) => {
            log::agent_failed(request, &error);
            Some(StreamEnd::Failed(refusal::agent_failed(&error)))
        }
        Stopped::Panicked => {
            log::agent_panicked(request);
            Some(StreamEnd::Failed(refusal::internal()))
        }
        Stopped::StoreFailed => Some(StreamEnd::Failed(refusal::internal())),
        Stopped::Unwatched => None,
    }
}

/// The response of the client that began the run.
struct Response<'a> {
    outlet: Option<Outlet>,
    goes_on: bool,
    core: &'a Core,
}

impl Response<'_> {
    fn is_open(&self) -> bool {
        self.outlet.is_some()
    }

    /// Resolves when the client leaves.
    async fn left(&mut self) {
        match &self.outlet {
            Some(outlet) => outlet.closed().await,
            None => future::pending().await,
        }
        if self.goes_on {
            self.outlet = None;
            self.core.client_left();
        }
    }

    /// Ends the response, not the run.
    fn cut(&mut self) {
        if let Some(outlet) = self.outlet.take() {
            outlet.end(self.core.cut(refusal::response_timed_out()));
        }
    }
}

/// A run that was asked to stop.
struct Cancelling {
    cancel: CancellationToken,
    since: Option<time::Instant>,
}

impl Cancelling {
    fn begin(&mut self) {
        self.cancel.cancel();
        self.since = Some(time::Instant::now());
    }

    /// Resolves when the agent had its time.
    async fn over(&self) {
        match self.since {
            Some(since) => time::sleep_until(since + LAST_WORDS).await,
            None => future::pending().await,
        }
    }
}

/// Resolves when the time is over; never without a limit.
pub(super) async fn limit(limit: Option<Duration>) {
    match limit {
        Some(limit) => sleep(limit).await,
        None => future::pending().await,
    }
}

/// Keeps the thread as long as the store can be reached; resolves when it is lost.
async fn renew(ticket: &Ticket) {
    let Some(every) = ticket.renew_every() else { return future::pending().await };
    loop {
        sleep(every).await;
        if let Err(error) = ticket.renew().await {
            tracing::error!(error = %error, "a run lost its thread");
            return;
        }
    }
}
