//! Threads in the memory of this process.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agui_adapter::outbound::Clock;
use agui_protocol::ThreadId;
use futures_util::future::{self, BoxFuture, FutureExt};
use tokio_util::sync::CancellationToken;

use super::{
    Change, Listed, Millis, Next, Page, Position, Principal, RunOwner, Store, StoreError, Thread,
    ThreadKey, weight::weight,
};

/// What is kept at most. Threads with a run are never dropped, whatever their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    /// Threads on which nothing happens and nothing waits; beyond it the one unused for longest
    /// goes.
    pub idle: usize,
    /// How long such a thread is kept; `None` = for ever.
    pub idle_for: Option<Duration>,
    /// About how many bytes all such threads may hold.
    pub idle_bytes: usize,
    /// Threads with open interrupts; beyond it the oldest goes.
    pub parked: usize,
    /// About how many bytes all threads with open interrupts may hold.
    pub parked_bytes: usize,
}

impl Default for MemoryLimits {
    fn default() -> Self {
        Self {
            idle: 1000,
            idle_for: Some(Duration::from_secs(30 * 60)),
            idle_bytes: 512 << 20,
            parked: 10_000,
            parked_bytes: 256 << 20,
        }
    }
}

/// Keeps threads in memory: gone with the process.
pub struct MemoryStore {
    records: Mutex<Records>,
    limits: MemoryLimits,
    clock: Mutex<Box<dyn Clock>>,
}

#[derive(Default)]
struct Records {
    by_key: HashMap<Arc<ThreadKey>, Record>,
    /// Per principal, the one updated last first.
    by_time: BTreeSet<(Principal, Reverse<Millis>, ThreadId)>,
    /// Without a run and without interrupts, the one unused for longest first.
    idle: BTreeMap<u64, Arc<ThreadKey>>,
    /// Without a run and with interrupts, the oldest first.
    parked: BTreeMap<u64, Arc<ThreadKey>>,
    idle_bytes: usize,
    parked_bytes: usize,
    sequence: u64,
}

struct Record {
    thread: Arc<Thread>,
    rest: Rest,
    run: Option<Signals>,
}

/// Which of the orders a record stands in.
enum Rest {
    Active,
    Idle { at: u64, bytes: usize },
    Parked { at: u64, bytes: usize },
}

/// What waits for the run of a record.
struct Signals {
    owner: RunOwner,
    cancel: CancellationToken,
    over: CancellationToken,
}

impl MemoryStore {
    /// An empty store.
    pub fn new(limits: MemoryLimits, clock: Box<dyn Clock>) -> Self {
        Self { records: Mutex::default(), limits, clock: Mutex::new(clock) }
    }

    /// How many threads are kept.
    pub fn len(&self) -> usize {
        self.lock().by_key.len()
    }

    /// Whether no thread is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn now(&self) -> Millis {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner).now_ms()
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        // A change that panics leaves the record as it was.
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn current(&self) -> MutexGuard<'_, Records> {
        let now = self.now();
        let mut records = self.lock();
        if let Some(idle_for) = self.limits.idle_for {
            let idle_for = Millis::try_from(idle_for.as_millis()).unwrap_or(Millis::MAX);
            records.drop_unused(now.saturating_sub(idle_for));
        }
        records
    }

    fn changed(&self, key: &ThreadKey, change: &mut Change<'_>) {
        let now = self.now();
        let mut records = self.current();
        let thread = records.by_key.get(key).map(|record| Arc::clone(&record.thread));
        match change(thread.as_deref(), now) {
            Next::Keep => {}
            Next::Put(thread) => {
                records.put(key, *thread);
                records.make_room(&self.limits);
            }
            Next::Remove => drop(records.remove(key)),
        }
    }
}

impl Store for MemoryStore {
    fn update<'a>(
        &'a self,
        key: &'a ThreadKey,
        change: &'a mut Change<'_>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.changed(key, change);
        future::ready(Ok(())).boxed()
    }

    fn load<'a>(
        &'a self,
        key: &'a ThreadKey,
    ) -> BoxFuture<'a, Result<Option<Arc<Thread>>, StoreError>> {
        let record = self.current().by_key.get(key).map(|record| Arc::clone(&record.thread));
        future::ready(Ok(record)).boxed()
    }

    fn list<'a>(
        &'a self,
        principal: &'a Principal,
        page: &'a Page,
    ) -> BoxFuture<'a, Result<Vec<Listed>, StoreError>> {
        future::ready(Ok(self.current().page(principal, page))).boxed()
    }

    fn cancelled(&self, key: &ThreadKey, owner: RunOwner) -> BoxFuture<'static, ()> {
        let records = self.lock();
        let run = records.by_key.get(key).and_then(|record| record.run.as_ref());
        match run.filter(|run| run.owner == owner) {
            Some(run) => run.cancel.clone().cancelled_owned().boxed(),
            None => future::pending().boxed(),
        }
    }

    fn at_rest(&self, key: &ThreadKey) -> BoxFuture<'static, ()> {
        let records = self.lock();
        match records.by_key.get(key).and_then(|record| record.run.as_ref()) {
            Some(run) => run.over.clone().cancelled_owned().boxed(),
            None => future::ready(()).boxed(),
        }
    }

    fn lease(&self) -> Option<Duration> {
        None
    }
}

impl Records {
    fn put(&mut self, key: &ThreadKey, thread: Thread) {
        let before = self.remove_record(key);
        let key = Arc::new(key.clone());
        let run = signals(before.and_then(|record| record.run), &thread);
        self.sequence += 1;
        let at = self.sequence;
        let rest = if run.is_some() {
            Rest::Active
        } else if thread.is_parked() {
            let bytes = weight(&thread);
            self.parked.insert(at, Arc::clone(&key));
            self.parked_bytes += bytes;
            Rest::Parked { at, bytes }
        } else {
            let bytes = weight(&thread);
            self.idle.insert(at, Arc::clone(&key));
            self.idle_bytes += bytes;
            Rest::Idle { at, bytes }
        };
        self.by_time.insert(time_key(&key, &thread));
        self.by_key.insert(key, Record { thread: Arc::new(thread), rest, run });
    }

    fn remove(&mut self, key: &ThreadKey) -> Option<Arc<Thread>> {
        let record = self.remove_record(key)?;
        if let Some(run) = record.run {
            run.over.cancel();
        }
        Some(record.thread)
    }

    fn remove_record(&mut self, key: &ThreadKey) -> Option<Record> {
        let record = self.by_key.remove(key)?;
        match record.rest {
            Rest::Active => {}
            Rest::Idle { at, bytes } => {
                self.idle.remove(&at);
                self.idle_bytes -= bytes;
            }
            Rest::Parked { at, bytes } => {
                self.parked.remove(&at);
                self.parked_bytes -= bytes;
            }
        }
        self.by_time.remove(&time_key(key, &record.thread));
        Some(record)
    }

    fn drop_unused(&mut self, since: Millis) {
        while let Some((_, key)) = self.idle.first_key_value() {
            let unused = self.by_key.get(key).is_none_or(|r| r.thread.updated_ms <= since);
            if !unused {
                return;
            }
            let key = Arc::clone(key);
            self.remove(&key);
        }
    }

    fn make_room(&mut self, limits: &MemoryLimits) {
        while self.idle.len() > limits.idle || self.idle_bytes > limits.idle_bytes {
            let Some((_, key)) = self.idle.first_key_value() else { break };
            let key = Arc::clone(key);
            self.remove(&key);
        }
        while self.parked.len() > limits.parked || self.parked_bytes > limits.parked_bytes {
            let Some((_, key)) = self.parked.first_key_value() else { break };
            let key = Arc::clone(key);
            let dropped = self.remove(&key);
            let interrupts = dropped.and_then(|thread| Some(thread.parked.as_ref()?.open.len()));
            tracing::warn!(
                thread.id = key.thread.as_str(),
                interrupts,
                "too many parked threads: the oldest was dropped with its open interrupts"
            );
        }
    }

    fn page(&self, principal: &Principal, page: &Page) -> Vec<Listed> {
        let newest = (principal.clone(), Reverse(Millis::MAX), ThreadId::from(""));
        let after = page.after.as_ref().map(|Position { updated_ms, thread }| {
            (principal.clone(), Reverse(*updated_ms), thread.clone())
        });
        let start = after.as_ref().unwrap_or(&newest);
        let listed = self.by_time.range(start..).take_while(|(whose, ..)| whose == principal);
        let listed = listed.filter(|place| after.as_ref() != Some(*place));
        let listed = listed.filter_map(|(principal, _, thread)| {
            let key = ThreadKey { principal: principal.clone(), thread: thread.clone() };
            let record = self.by_key.get(&key)?;
            Some(Listed { thread_id: key.thread, thread: Arc::clone(&record.thread) })
        });
        let wanted = |listed: &Listed| page.agent.is_none() || listed.thread.agent == page.agent;
        listed.filter(wanted).take(page.limit).collect()
    }
}

fn time_key(key: &ThreadKey, thread: &Thread) -> (Principal, Reverse<Millis>, ThreadId) {
    (key.principal.clone(), Reverse(thread.updated_ms), key.thread.clone())
}

/// The signals of the run that a record has now; whoever waits for an earlier one is told.
fn signals(before: Option<Signals>, thread: &Thread) -> Option<Signals> {
    let active = thread.active.as_ref();
    let (same, other) = match (before, active) {
        (Some(before), Some(run)) if before.owner == run.owner => (Some(before), None),
        (before, _) => (None, before),
    };
    if let Some(over) = other {
        over.over.cancel();
    }
    let run = active?;
    let signals = same.unwrap_or_else(|| Signals {
        owner: run.owner,
        cancel: CancellationToken::new(),
        over: CancellationToken::new(),
    });
    if run.cancel {
        signals.cancel.cancel();
    }
    Some(signals)
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let records = self.lock();
        f.debug_struct("MemoryStore")
            .field("threads", &records.by_key.len())
            .field("idle_bytes", &records.idle_bytes)
            .field("parked", &records.parked.len())
            .field("parked_bytes", &records.parked_bytes)
            .finish_non_exhaustive()
    }
}
