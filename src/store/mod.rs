//! What outlives a run: threads, their open interrupts, their history.
//!
//! A [`Store`] keeps records and knows no rules. What a record may become is decided by the
//! functions that the `runs` room hands to [`Store::update`], so the rules of the ledger exist
//! once, whatever keeps the records. `tests/it/store` holds the tests that every store passes.

mod key;
mod memory;
mod thread;
mod weight;

use std::{fmt, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;

pub use self::{
    key::{AgentId, Principal, RunOwner, ThreadKey},
    memory::{MemoryLimits, MemoryStore},
    thread::{ActiveRun, Claim, LastAnswer, Parked, Thread},
    weight::messages_weight,
};

/// Milliseconds since the Unix epoch, as the store's clock has it: replicas that share a store
/// share its time.
pub type Millis = i64;

/// What becomes of a record.
#[derive(Debug)]
pub enum Next {
    /// It stays as it is.
    Keep,
    /// It becomes this.
    Put(Box<Thread>),
    /// It is forgotten.
    Remove,
}

/// A change of a record: called with the record as it is, and the time. It may be called more
/// than once when somebody else was faster; only what the last call gave counts.
pub type Change<'a> = dyn FnMut(Option<&Thread>, Millis) -> Next + Send + 'a;

/// Keeps threads.
///
/// Every operation is atomic for its thread. Runs call a store at their beginning, at their end
/// and once for each approved call, never per event.
pub trait Store: Send + Sync + 'static {
    /// Replaces the record of `key` by what `change` makes of it: one compare-and-set. Beginning
    /// a run, storing the result of an approved call, ending a run, renewing a lease, asking a
    /// run to stop and forgetting a thread are all changes of this form.
    ///
    /// # Errors
    ///
    /// When the store cannot be reached; then nothing has changed.
    fn update<'a>(
        &'a self,
        key: &'a ThreadKey,
        change: &'a mut Change<'_>,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// The record of `key`.
    ///
    /// # Errors
    ///
    /// When the store cannot be reached.
    fn load<'a>(
        &'a self,
        key: &'a ThreadKey,
    ) -> BoxFuture<'a, Result<Option<Arc<Thread>>, StoreError>>;

    /// The threads of a principal, the one updated last first.
    ///
    /// # Errors
    ///
    /// When the store cannot be reached.
    fn list<'a>(
        &'a self,
        principal: &'a Principal,
        page: &'a Page,
    ) -> BoxFuture<'a, Result<Vec<Listed>, StoreError>>;

    /// Resolves when somebody asks the run `owner` of `key` to stop, wherever that was said:
    /// [`ActiveRun::cancel`] has become true. Never resolves for a run that is over.
    fn cancelled(&self, key: &ThreadKey, owner: RunOwner) -> BoxFuture<'static, ()>;

    /// Resolves when `key` has no run, also when it has none now.
    fn at_rest(&self, key: &ThreadKey) -> BoxFuture<'static, ()>;

    /// How long a run's claim on its thread holds without being renewed; `None` when the records
    /// end together with the process that runs the agents, so that no run can get lost.
    fn lease(&self) -> Option<Duration>;
}

/// A part of the list of threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// At most so many.
    pub limit: usize,
    /// Only those behind this one.
    pub after: Option<Position>,
    /// Only threads whose last run was this agent's.
    pub agent: Option<AgentId>,
}

/// A place in the list of threads, stable while other threads come and go.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// When the thread was updated.
    pub updated_ms: Millis,
    /// The thread.
    pub thread: agui_protocol::ThreadId,
}

/// A thread of the list.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Its id.
    pub thread_id: agui_protocol::ThreadId,
    /// Its record.
    pub thread: Arc<Thread>,
}

impl Listed {
    /// Its place in the list.
    pub fn position(&self) -> Position {
        Position { updated_ms: self.thread.updated_ms, thread: self.thread_id.clone() }
    }
}

/// The store cannot be used; the text is for the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store is unavailable: {0}")]
pub struct StoreError(pub String);

impl fmt::Debug for dyn Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Store")
    }
}
