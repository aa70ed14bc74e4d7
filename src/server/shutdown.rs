//! Serving until told to end, and ending although streams are open.

use std::{
    future::Future,
    pin::{Pin, pin},
    time::Duration,
};

use axum::Router;
use futures_util::FutureExt;
use tokio::time::{Instant, sleep, sleep_until};

use super::accept::{Accept, Connections};
use crate::runs::RunService;

/// How long clients may take to receive the last of their streams, and agents to let go, once all
/// runs were ended.
const LAST: Duration = Duration::from_millis(500);

/// The times of a server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// How long runs may go on once the server drains.
    pub(super) grace: Duration,
    /// How long a client may take nothing.
    pub(super) write_timeout: Option<Duration>,
}

/// Serves until told to end.
///
/// When `drain` resolves, no new run begins, but connections are still accepted, so that probes
/// and clients get an answer that says so. The server stops when no run is left, when the grace is
/// over, or when `stop` resolves: runs that are left end with RUN_ERROR, each stream gets its
/// terminal event and its end. Then neither a client that does not read nor an agent that does
/// not yield holds the server for longer than [`LAST`].
pub(super) async fn serve(
    mut listener: impl Accept,
    router: Router,
    runs: RunService,
    times: Times,
    drain: impl Future<Output = ()>,
    stop: impl Future<Output = ()>,
) {
    let connections = Connections::new(router, runs.clone(), times.write_timeout);
    let mut stop = pin!(stop.fuse());
    let until = tokio::select! {
        never = connections.accept(&mut listener) => match never {},
        until = drained(&runs, times.grace, drain, stop.as_mut()) => until,
    };
    drop(listener);
    runs.stop();
    let in_order = async {
        connections.close().await;
        runs.stopped().await;
    };
    let told_again = async {
        stop.await;
        sleep(LAST).await;
    };
    tokio::select! {
        () = in_order => {}
        () = sleep_until(until + LAST) => cut(&connections),
        () = told_again => cut(&connections),
    }
}

/// Waits for the drain and then for its end; gives the moment until which clients may receive what
/// their streams hold.
async fn drained(
    runs: &RunService,
    grace: Duration,
    drain: impl Future<Output = ()>,
    mut stop: Pin<&mut impl Future<Output = ()>>,
) -> Instant {
    tokio::select! {
        () = drain => {}
        () = stop.as_mut() => return Instant::now(),
    }
    runs.drain();
    tracing::info!(grace_ms = grace.as_millis(), "draining: no more runs are taken");
    let until = Instant::now() + grace;
    tokio::select! {
        biased;
        () = runs.drained() => until,
        () = stop => Instant::now(),
        () = sleep_until(until) => {
            tracing::warn!("the grace is over: runs that are still under way are ended");
            until
        }
    }
}

fn cut(connections: &Connections) {
    tracing::warn!("connections or agents were still under way and are cut");
    connections.cut();
}

#[cfg(test)]
mod tests;
