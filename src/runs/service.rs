//! Starting runs, and stopping all of them.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agui_adapter::{
    options::AdapterOptions,
    outbound::{AdapterFactory, Extensions},
};
use agui_protocol::{Event, RunAgentInput};
use tokio::sync::{Notify, Semaphore, futures::Notified, mpsc};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    AgentId, Principal, Sources, connect,
    core::Core,
    ledger::{Ledger, Policy},
    outlet::Outlet,
    pipeline,
};
use crate::{
    agents::{Agent, RuntimeContext},
    config::ThreadsConfig,
    store::{MemoryLimits, MemoryStore, Store, ThreadKey},
};

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

impl RunRequest {
    /// The thread of the run.
    pub(super) fn key(&self) -> ThreadKey {
        ThreadKey { principal: self.principal.clone(), thread: self.input.thread_id.clone() }
    }
}

impl fmt::Debug for RunRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunRequest").field("agent_id", &self.agent_id).finish_non_exhaustive()
    }
}

/// A stream that was started. Dropping it tells the run that its client has left.
#[derive(Debug)]
pub struct RunHandle {
    events: mpsc::Receiver<Vec<Event>>,
}

impl RunHandle {
    /// The events, in batches; the terminal event is the last of the last batch. Dropping the
    /// receiver means that the client has left.
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
    /// Keeps the threads; `None` = the memory of this process, within the configured limits.
    pub store: Option<Arc<dyn Store>>,
}

impl fmt::Debug for RunServiceSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunServiceSetup").finish_non_exhaustive()
    }
}

/// What a [`RunService`] does at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    /// Tasks: up to two for a run, one for a client that looks at a thread, and what agents do
    /// beside their streams.
    pub tasks: usize,
    /// Runs that other clients can join.
    pub joinable: usize,
    /// How many more runs may begin.
    pub free_slots: usize,
}

/// Starts runs. Cheap to clone.
#[derive(Clone)]
pub struct RunService(Arc<Shared>);

/// What all runs share.
pub(super) struct Shared {
    pub(super) ledger: Ledger,
    pub(super) sources: Sources,
    pub(super) extensions: Arc<Extensions>,
    pub(super) factory: Option<Arc<dyn AdapterFactory>>,
    pub(super) threads: ThreadsConfig,
    /// The runs of this process, for those who join them.
    pub(super) live: Live,
    /// Cancelled when no run may begin any more.
    draining: CancellationToken,
    /// Cancelled when all runs have to end.
    pub(super) stopping: CancellationToken,
    pub(super) tasks: TaskTracker,
    slots: Arc<Semaphore>,
    max_runs: u32,
}

/// The runs under way, by thread. Used at the beginning and the end of a run only.
#[derive(Default)]
pub(super) struct Live {
    cores: Mutex<HashMap<ThreadKey, Arc<Core>>>,
    begun: Notify,
}

impl Live {
    /// The thread's run has begun.
    pub(super) fn insert(&self, key: ThreadKey, core: Arc<Core>) {
        self.lock().insert(key, core);
        self.begun.notify_waiters();
    }

    /// Resolves when another run has begun, from now on.
    pub(super) fn another(&self) -> Notified<'_> {
        self.begun.notified()
    }

    /// The run is over; a successor's entry stays.
    pub(super) fn remove(&self, key: &ThreadKey, core: &Arc<Core>) {
        let mut live = self.lock();
        if live.get(key).is_some_and(|other| Arc::ptr_eq(other, core)) {
            live.remove(key);
        }
    }

    /// How many there are.
    fn len(&self) -> usize {
        self.lock().len()
    }

    /// The thread's run, if it is one of this process.
    pub(super) fn get(&self, key: &ThreadKey) -> Option<Arc<Core>> {
        self.lock().get(key).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ThreadKey, Arc<Core>>> {
        self.cores.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunService {
    /// A service that allows `max_runs` runs at once.
    pub fn new(max_runs: usize, threads: ThreadsConfig, setup: RunServiceSetup) -> Self {
        let max_runs = u32::try_from(max_runs.min(Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        let RunServiceSetup { sources, extensions, factory, store } = setup;
        let limits = MemoryLimits {
            idle: threads.max_thread_sessions,
            idle_for: threads.session_timeout,
            parked: threads.max_parked_threads,
            ..MemoryLimits::default()
        };
        let store = store.unwrap_or_else(|| Arc::new(MemoryStore::new(limits, sources.clock())));
        let policy = Policy {
            on_unanswered: threads.on_unanswered_interrupts,
            keep_history: threads.server_side_memory,
        };
        Self(Arc::new(Shared {
            ledger: Ledger::new(store, policy),
            sources,
            extensions,
            factory,
            threads,
            live: Live::default(),
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
        let (outlet, events) = Outlet::new();
        let run = pipeline::run(Arc::clone(&self.0), request, outlet);
        self.0.tasks.spawn(async move {
            run.await;
            drop(slot);
        });
        Ok(RunHandle { events })
    }

    /// Shows a thread: its history, and its run if it has one. Calls no agent.
    pub fn connect(&self, request: RunRequest) -> RunHandle {
        let (outlet, events) = Outlet::new();
        self.0.tasks.spawn(connect::connect(Arc::clone(&self.0), request, outlet));
        RunHandle { events }
    }

    /// The threads and what can be done with them.
    pub fn ledger(&self) -> &Ledger {
        &self.0.ledger
    }

    /// What goes on at this moment.
    pub fn activity(&self) -> Activity {
        Activity {
            tasks: self.0.tasks.len(),
            joinable: self.0.live.len(),
            free_slots: self.0.slots.available_permits(),
        }
    }

    /// The tasks that the end of the service waits for.
    pub fn tasks(&self) -> &TaskTracker {
        &self.0.tasks
    }

    /// Cancelled when all runs have to end.
    pub fn stopping(&self) -> CancellationToken {
        self.0.stopping.child_token()
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
        f.debug_struct("RunService").field("activity", &self.activity()).finish_non_exhaustive()
    }
}
