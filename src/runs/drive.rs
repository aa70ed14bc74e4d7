//! The task that polls the agent.
//!
//! It can be aborted at any time and may hang inside the agent: nothing that a run's end needs
//! may live here only.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::{Context, Poll},
};

use agui_protocol::Event;
use tokio::sync::mpsc;

use super::core::{Core, FULL, Fed};
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
    /// Nobody receives the events any more.
    Unwatched,
}

enum Step {
    Flush,
    Stop(Stopped),
}

/// Runs the agent until the run is over. Events that are ready at once leave in one batch, up to
/// a number and a length; a full channel stops the polling, so that a slow reader slows the agent
/// down and what waits for it stays small.
pub(super) async fn drive(
    agent: Arc<dyn Agent>,
    request: AgentRequest,
    core: Arc<Core>,
    events: mpsc::Sender<Vec<Event>>,
) -> Stopped {
    let Ok(mut stream) = catch_unwind(AssertUnwindSafe(|| agent.run(request))) else {
        return Stopped::Panicked;
    };
    loop {
        let step = std::future::poll_fn(|cx| {
            catch_unwind(AssertUnwindSafe(|| drain(&mut stream, &core, cx)))
                .unwrap_or(Poll::Ready(Step::Stop(Stopped::Panicked)))
        });
        match step.await {
            Step::Stop(stopped) => return stopped,
            Step::Flush => match events.reserve().await {
                Ok(permit) => core.flush(permit),
                Err(_closed) => return Stopped::Unwatched,
            },
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
