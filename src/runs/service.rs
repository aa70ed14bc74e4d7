//! Starting runs, and stopping all of them.

use std::{fmt, sync::Arc, time::Duration};

use agui_adapter::{
    options::AdapterOptions,
    outbound::{AdapterFactory, Extensions},
};
use agui_protocol::{Event, RunAgentInput};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{AgentId, Principal, Sources, ledger::Ledger, outlet::Outlet, pipeline};
use crate::agents::{Agent, RuntimeContext};

/// Batches that may wait for the reader before the agent is no longer polled.
const WAITING_BATCHES: usize = 4;

/// How many threads without a run the ledger remembers.
const MAX_PARKED_THREADS: usize = 10_000;

/// Everything that starts a run.
#[derive(Clone)]
pub struct RunRequest {
    /// The agent.
    pub agent: Arc<dyn Agent>,
    /// Its id.
    pub agent_id: AgentId,
    /// Adapter switches.
    pub options: Arc<AdapterOptions>,
    /// Who asks.
    pub principal: Principal,
    /// The input.
    pub input: Arc<RunAgentInput>,
    /// Context for agents, tools and extensions.
    pub context: Arc<RuntimeContext>,
    /// Longest run; `None` = no limit.
    pub run_timeout: Option<Duration>,
    /// Whether client system and developer messages reach the agent.
    pub accept_client_system_messages: bool,
    /// Names the request in the log.
    pub request_id: Arc<str>,
}

impl fmt::Debug for RunRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunRequest").field("agent_id", &self.agent_id).finish_non_exhaustive()
    }
}

/// A run that was started. Dropping it stops the run.
#[derive(Debug)]
pub struct RunHandle {
    events: mpsc::Receiver<Vec<Event>>,
}

impl RunHandle {
    /// The run's events, in batches; the terminal event is the last of the last batch. Dropping
    /// the receiver stops the run.
    pub fn events(self) -> mpsc::Receiver<Vec<Event>> {
        self.events
    }
}

/// Why a run was not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// As many runs as allowed are under way.
    #[error("too many runs at once")]
    TooManyRuns,
    /// The server stops.
    #[error("the server is shutting down")]
    ShuttingDown,
}

/// What a program adds to all runs.
#[derive(Clone, Default)]
pub struct RunServiceSetup {
    /// Where ids and times come from.
    pub sources: Sources,
    /// Converters and enrichers.
    pub extensions: Arc<Extensions>,
    /// Makes the adapters; `None` = the built-in ones.
    pub factory: Option<Arc<dyn AdapterFactory>>,
}

impl fmt::Debug for RunServiceSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunServiceSetup").finish_non_exhaustive()
    }
}

/// Starts runs. Cheap to clone.
#[derive(Clone)]
pub struct RunService(Arc<Shared>);

/// What all runs share.
pub(super) struct Shared {
    pub(super) ledger: Arc<Ledger>,
    pub(super) sources: Sources,
    pub(super) extensions: Arc<Extensions>,
    pub(super) factory: Option<Arc<dyn AdapterFactory>>,
    /// Cancelled when no run may begin any more.
    draining: CancellationToken,
    /// Cancelled when all runs have to end.
    pub(super) stopping: CancellationToken,
    pub(super) tasks: TaskTracker,
    slots: Arc<Semaphore>,
    max_runs: u32,
}

impl RunService {
    /// A service that allows `max_runs` runs at once.
    pub fn new(max_runs: usize, setup: RunServiceSetup) -> Self {
        let max_runs = u32::try_from(max_runs.min(Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        Self(Arc::new(Shared {
            ledger: Ledger::new(MAX_PARKED_THREADS),
            sources: setup.sources,
            extensions: setup.extensions,
            factory: setup.factory,
            draining: CancellationToken::new(),
            stopping: CancellationToken::new(),
            tasks: TaskTracker::new(),
            slots: Arc::new(Semaphore::new(max_runs as usize)),
            max_runs,
        }))
    }

    /// Starts a run. From here on every failure is an event of the run.
    ///
    /// # Errors
    ///
    /// When there are too many runs, or no more are taken.
    pub fn start(&self, request: RunRequest) -> Result<RunHandle, StartError> {
        let slot = Arc::clone(&self.0.slots).try_acquire_owned();
        // Asked behind the slot: a drain waits for everyone who has one.
        if self.is_draining() {
            return Err(StartError::ShuttingDown);
        }
        let slot = slot.map_err(|_full| StartError::TooManyRuns)?;
        // One place more: the terminal event's, which `Outlet` keeps free.
        let (sender, events) = mpsc::channel(WAITING_BATCHES + 1);
        let run = pipeline::run(Arc::clone(&self.0), request, Outlet::new(sender));
        self.0.tasks.spawn(async move {
            run.await;
            drop(slot);
        });
        Ok(RunHandle { events })
    }

    /// Starts no more runs; those under way go on.
    pub fn drain(&self) {
        self.0.draining.cancel();
    }

    /// Whether [`RunService::drain`] or [`RunService::stop`] was called.
    pub fn is_draining(&self) -> bool {
        self.0.draining.is_cancelled()
    }

    /// Waits until no run is left; only after [`RunService::drain`]. An agent that does not let go
    /// of a run that has ended does not count.
    pub async fn drained(&self) {
        // Whoever has all slots knows that nobody else has one. The semaphore is never closed.
        self.0.slots.acquire_many(self.0.max_runs).await.ok();
    }

    /// Ends all runs with RUN_ERROR `SERVER_SHUTTING_DOWN` and starts no more.
    pub fn stop(&self) {
        self.drain();
        self.0.stopping.cancel();
        self.0.tasks.close();
    }

    /// Waits until all runs have ended and all agents have let go; only after
    /// [`RunService::stop`].
    pub async fn stopped(&self) {
        self.0.tasks.wait().await;
    }
}

impl fmt::Debug for RunService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunService").field("runs", &self.0.tasks.len()).finish_non_exhaustive()
    }
}
