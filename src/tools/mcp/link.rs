//! The way to one MCP server: connected again whenever the connection is lost.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    connection::{self, Live},
    server::{Hub, Setup},
};
use crate::tools::ToolSpec;

/// The first wait before a connection is tried again; each one doubles, up to [`LONGEST_REST`].
const FIRST_REST: Duration = Duration::from_millis(200);
const LONGEST_REST: Duration = Duration::from_secs(30);
/// The longest rest while somebody waits.
const SHORTEST_REST: Duration = Duration::from_secs(1);
/// A connection that lasted so long was a good one.
const STEADY: Duration = Duration::from_secs(10);

/// How it stands.
#[derive(Clone, Debug)]
pub(super) enum State {
    /// No connection yet, or one that is doubted.
    Starting,
    /// Connected.
    Ready(Ready),
    /// Not connected; tried again.
    Failed(String),
    /// For good.
    Ended,
}

/// What a connection offers.
#[derive(Clone, Debug)]
pub(super) struct Ready {
    pub(super) live: Arc<Live>,
    pub(super) tools: Arc<[ToolSpec]>,
}

/// One way to a server.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) stop: CancellationToken,
    state: watch::Sender<State>,
    /// Somebody waits for a connection.
    wanted: Notify,
    users: AtomicUsize,
    /// When the last user left.
    left: Mutex<Instant>,
    /// Not used for so long, it ends.
    idle: Option<Duration>,
}

impl Link {
    pub(super) fn new(stop: CancellationToken, idle: Option<Duration>) -> Self {
        Self {
            stop,
            state: watch::Sender::new(State::Starting),
            wanted: Notify::new(),
            users: AtomicUsize::new(0),
            left: Mutex::new(Instant::now()),
            idle,
        }
    }

    pub(super) fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// The connection, once there is one; waits for it as long as `patience`, and not at all for
    /// one that has failed, if its tools `may_miss`.
    pub(super) async fn ready(&self, patience: Duration, may_miss: bool) -> Result<Ready, String> {
        let mut states = self.state.subscribe();
        let usable = |state: &State| match state {
            State::Ready(ready) => !ready.live.tap.gone.is_cancelled(),
            State::Ended => true,
            State::Failed(_) => may_miss,
            State::Starting => false,
        };
        self.wanted.notify_one();
        let state = match timeout(patience, states.wait_for(usable)).await {
            Ok(Ok(state)) => state.clone(),
            Ok(Err(_)) => State::Ended,
            Err(_late) => self.state(),
        };
        match state {
            State::Ready(ready) => Ok(ready),
            State::Failed(cause) => Err(cause),
            State::Starting => Err("it was not ready in time".to_owned()),
            State::Ended => Err("it has ended".to_owned()),
        }
    }

    /// The connection that there is at this moment.
    pub(super) fn current(&self) -> Option<Arc<Live>> {
        match &*self.state.borrow() {
            State::Ready(ready) => Some(Arc::clone(&ready.live)),
            _ => None,
        }
    }

    /// The connection is there, and so are these tools.
    pub(super) fn is_ready(&self, live: &Arc<Live>, tools: Arc<[ToolSpec]>) {
        self.state.send_replace(State::Ready(Ready { live: Arc::clone(live), tools }));
    }

    /// This connection may be broken: whoever comes now waits until it was looked at.
    pub(super) fn doubt(&self, live: &Arc<Live>) {
        let doubted = self.state.send_if_modified(|state| match state {
            State::Ready(ready) if Arc::ptr_eq(&ready.live, live) => {
                *state = State::Starting;
                true
            }
            _ => false,
        });
        if doubted {
            live.doubt();
        }
    }

    /// Since when nobody uses it; `None` = somebody does.
    pub(super) fn unused_since(&self) -> Option<Instant> {
        let left = *self.left.lock().unwrap_or_else(PoisonError::into_inner);
        (self.users.load(Ordering::Acquire) == 0).then_some(left)
    }

    /// Resolves when nobody has used it for long enough.
    pub(super) async fn unused(&self) {
        let Some(idle) = self.idle else { return std::future::pending().await };
        loop {
            let since = self.unused_since().unwrap_or_else(Instant::now);
            if since.elapsed() >= idle {
                return;
            }
            sleep_until(since + idle).await;
        }
    }

    /// Connects, again and again, until it is told to stop or nobody uses it.
    pub(super) async fn keep(&self, setup: &Setup, hub: &Hub) {
        let mut rest = FIRST_REST;
        while !self.stop.is_cancelled() {
            let server = &*setup.name;
            let cause = match connection::open(setup, hub, &self.stop).await {
                Ok(connection) => {
                    let tools = connection.tools.len();
                    tracing::info!(mcp.server = server, tools, "an MCP server is connected");
                    self.is_ready(&connection.live, Arc::clone(&connection.tools));
                    let since = Instant::now();
                    Box::pin(connection.attend(setup, self)).await;
                    if since.elapsed() >= STEADY {
                        rest = FIRST_REST;
                    }
                    "the connection was closed".to_owned()
                }
                Err(cause) => cause,
            };
            if self.stop.is_cancelled() || self.is_unused() {
                break;
            }
            tracing::warn!(mcp.server = server, cause, "an MCP server is not connected");
            self.state.send_replace(State::Failed(cause));
            self.rest(rest).await;
            rest = LONGEST_REST.min(rest * 2);
        }
    }

    /// It is over; nobody waits for it any more.
    pub(super) fn end(&self) {
        self.stop.cancel();
        self.state.send_replace(State::Ended);
    }

    /// Whether nobody has used it for long enough.
    pub(super) fn is_unused(&self) -> bool {
        let since = self.idle.zip(self.unused_since());
        since.is_some_and(|(idle, since)| since.elapsed() >= idle)
    }

    /// Waits before the next try.
    async fn rest(&self, time: Duration) {
        let wanted = async {
            sleep(SHORTEST_REST).await;
            self.wanted.notified().await;
        };
        let time = match self.unused_since() {
            Some(_) => time,
            None => time.min(SHORTEST_REST),
        };
        tokio::select! {
            () = sleep(time) => {}
            () = wanted => {}
            () = self.stop.cancelled() => {}
        }
    }
}

/// Somebody uses a link, which does not end meanwhile.
#[derive(Debug)]
pub(super) struct Use(Arc<Link>);

impl Use {
    pub(super) fn new(link: Arc<Link>) -> Self {
        link.users.fetch_add(1, Ordering::AcqRel);
        Self(link)
    }

    pub(super) fn link(&self) -> &Link {
        &self.0
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        *self.0.left.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.0.users.fetch_sub(1, Ordering::AcqRel);
    }
}
