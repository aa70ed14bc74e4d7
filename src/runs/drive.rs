//! The task that polls the agent.
//!
//! It can be aborted at any time and may hang inside the agent: nothing that a run's end needs
//! may live here only.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::{Context, Poll},
};

use tokio::task::yield_now;

use super::{
    core::{Core, FULL, Fed},
    ledger::Settler,
    outlet::Batches,
};
use crate::agents::{Agent, AgentError, AgentRequest, AgentStream};

/// Agent events converted before what they gave is sent although more are ready.
const MAX_EVENTS: usize = 256;

/// How often whoever feeds the agent gets its turn before what is there is sent. An HTTP client
/// hands over what it has read piece by piece, each time the piece before was taken; without
/// these turns each of them would leave in a write of its own. A turn is no wait: it is over at
/// once when nobody has anything to do.
const TURNS: usize = 3;

/// The number of events up to which the first batch of turns grows; each later one grows to four
/// times as many. So a long answer that is all there shows its first words at once.
const FIRST_GATHERED: usize = 8;

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
    /// There is something to send, and nothing more for now.
    Flush,
    /// There is more than enough.
    Full,
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
    let Ok(stream) = catch_unwind(AssertUnwindSafe(|| agent.run(request))) else {
        return Stopped::Panicked;
    };
    let mut source = Source { stream, core: &core, room: MAX_EVENTS, gathered: FIRST_GATHERED };
    // The first events show the client that its run has begun.
    let mut turns = 0;
    loop {
        if let Step::Stop(stopped) = source.batch(turns).await {
            return stopped;
        }
        turns = TURNS;
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

/// What the agent says, on its way into the shared batch.
struct Source<'a> {
    stream: AgentStream,
    core: &'a Core,
    /// How many events the batch may still take.
    room: usize,
    /// How many events end its turns.
    gathered: usize,
}

impl Source<'_> {
    /// Waits for events, and takes along those that come within so many turns of the runtime.
    async fn batch(&mut self, turns: usize) -> Step {
        self.room = MAX_EVENTS;
        let mut step = poll_fn(|cx| self.poll(cx)).await;
        let mut left = turns;
        while left > 0 && matches!(step, Step::Flush) && MAX_EVENTS - self.room < self.gathered {
            yield_now().await;
            match poll_fn(|cx| Poll::Ready(self.poll(cx))).await {
                Poll::Pending => left -= 1,
                Poll::Ready(next) => (step, left) = (next, turns),
            }
        }
        // Only those that are full: a paced stream never needs more.
        if MAX_EVENTS - self.room >= self.gathered {
            self.gathered = (self.gathered * 4).min(MAX_EVENTS);
        }
        step
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        catch_unwind(AssertUnwindSafe(|| self.drain(cx)))
            .unwrap_or(Poll::Ready(Step::Stop(Stopped::Panicked)))
    }

    /// Converts what is ready.
    fn drain(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        let mut waiting = 0;
        while self.room > 0 {
            let event = match self.stream.as_mut().poll_next(cx) {
                Poll::Pending if waiting == 0 => return Poll::Pending,
                Poll::Pending => return Poll::Ready(Step::Flush),
                Poll::Ready(Some(Ok(event))) => event,
                Poll::Ready(Some(Err(error))) => return stop(Stopped::Failed(error)),
                Poll::Ready(None) => return stop(Stopped::StreamEnded),
            };
            match self.core.feed(&event) {
                Fed::Waiting(bytes) => waiting = bytes,
                Fed::Over => return stop(Stopped::Over),
            }
            if waiting >= FULL {
                break;
            }
            self.room -= 1;
        }
        Poll::Ready(Step::Full)
    }
}

fn stop(stopped: Stopped) -> Poll<Step> {
    Poll::Ready(Step::Stop(stopped))
}
