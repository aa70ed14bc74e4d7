//! The ledger: which thread has a run, and which interrupts wait for an answer.
//!
//! The rules are functions from a thread's record to its next one ([`begin`], [`end`],
//! [`control`]); the store makes each of them one atomic step. An answer is a claim first: the
//! run that ends with RUN_FINISHED turns it into the answer, every other end gives back what it
//! has not settled. Touched at the beginning and the end of a run and once per approved call,
//! never per event. What an answer means is the adapter's business.

mod begin;
mod control;
mod end;
#[cfg(test)]
mod tests;

use std::{collections::HashSet, sync::Arc};

use agui_adapter::{
    history::Stored,
    outbound::RunEnd,
    resume::{Decision, OpenInterrupt},
};
use agui_protocol::{InterruptId, Message, RunAgentInput};
use futures_util::FutureExt;
use serde_json::Value;

pub use self::control::{Cancelled, Deleted};
use crate::{
    config::OnUnanswered,
    store::{AgentId, Millis, Next, Parked, RunOwner, Store, StoreError, Thread, ThreadKey},
};

/// What the configuration says about threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// `on-unanswered-interrupts`.
    pub on_unanswered: OnUnanswered,
    /// `server-side-memory`: histories outlive their runs.
    pub keep_history: bool,
}

/// Why a run may not begin. The thread is as it was before.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// The thread has a run.
    Busy,
    /// The resume does not answer every open interrupt exactly once.
    Uncovered {
        /// Open interrupts without an entry.
        missing: Vec<InterruptId>,
        /// Open interrupts with more than one entry.
        duplicate: Vec<InterruptId>,
        /// What is open.
        open: Vec<OpenInterrupt>,
    },
    /// It resolves interrupts whose time is over; they can only be cancelled.
    Expired {
        /// Which.
        expired: Vec<InterruptId>,
        /// What is open.
        open: Vec<OpenInterrupt>,
    },
    /// The open interrupts belong to another agent.
    OtherAgent {
        /// Whose they are.
        agent: AgentId,
        /// What is open.
        open: Vec<OpenInterrupt>,
    },
    /// The store cannot be reached.
    Store(StoreError),
}

/// What a request may do on its thread.
#[derive(Debug)]
pub enum Beginning {
    /// Run: the thread is its own until the ticket ends.
    Run(Box<Ticket>),
    /// Nothing: it only repeats answers that an earlier run took. The client is told again how
    /// that ended.
    Repeat(Box<Repeat>),
}

/// The end that is told again.
#[derive(Clone, Debug, PartialEq)]
pub struct Repeat {
    /// The thread as it is, with the messages that the client may have missed.
    pub thread: Thread,
    /// The entries.
    pub answered: Vec<InterruptId>,
}

/// What a run finds when it begins.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Begun {
    /// The interrupts that the run answers, or has to raise.
    pub parked: Option<Parked>,
    /// The entries to decide by; those that time or policy made are cancellations.
    pub entries: Vec<agui_protocol::ResumeEntry>,
    /// The history as stored.
    pub messages: Arc<Vec<Stored>>,
    /// The state as stored.
    pub state: Option<Arc<Value>>,
    /// What the agent kept in earlier runs.
    pub kept: Option<Arc<Value>>,
    /// Entries for interrupts that an earlier run answered.
    pub already_answered: Vec<InterruptId>,
    /// Entries for interrupts that nobody raised on this thread.
    pub never_raised: Vec<InterruptId>,
    /// Ids of the interrupts that the thread remembers, for none to be used again.
    pub taken: HashSet<InterruptId>,
}

/// What a run leaves behind.
#[derive(Debug)]
pub struct Ended<'a> {
    /// How it ended.
    pub end: &'a RunEnd,
    /// The whole history, the run's own messages included; may be empty where nothing is kept.
    pub messages: Arc<Vec<Stored>>,
    /// The state at the end.
    pub state: Option<Arc<Value>>,
    /// What was decided.
    pub decisions: &'a [Decision],
    /// Results of approved calls that may not be stored yet.
    pub settled: &'a [Settled],
}

/// The ledger over a store.
#[derive(Clone, Debug)]
pub struct Ledger {
    store: Arc<dyn Store>,
    policy: Policy,
}

impl Ledger {
    /// A ledger over this store.
    pub fn new(store: Arc<dyn Store>, policy: Policy) -> Self {
        Self { store, policy }
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// What the configuration says.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// Takes the thread and claims the interrupts that the input answers.
    ///
    /// # Errors
    ///
    /// When the thread has a run, or its open interrupts are not answered as they must be.
    pub async fn begin(
        &self,
        key: ThreadKey,
        agent: &AgentId,
        input: &RunAgentInput,
    ) -> Result<Beginning, Refusal> {
        let owner = RunOwner::fresh();
        let attempt =
            begin::Attempt { owner, agent, input, policy: self.policy, lease: self.store.lease() };
        let mut decided = None;
        let mut change = |thread: Option<&Thread>, now| {
            let (next, outcome) = begin::begin(thread, &attempt, now);
            decided = Some(outcome);
            next
        };
        self.store.update(&key, &mut change).await.map_err(Refusal::Store)?;
        // A store that did not ask has not begun the run.
        let begun = decided.unwrap_or(Err(Refusal::Busy))?;
        Ok(match begun {
            begin::Outcome::Repeat(repeat) => Beginning::Repeat(repeat),
            begin::Outcome::Begun(begun) => Beginning::Run(Box::new(Ticket {
                ledger: self.clone(),
                key,
                owner,
                agent: agent.clone(),
                begun: *begun,
                held: true,
            })),
        })
    }

    /// Makes a change that only the run which has the thread may make.
    async fn as_owner(
        &self,
        key: &ThreadKey,
        owner: RunOwner,
        mut rule: impl FnMut(Option<&Thread>, Millis) -> Next + Send,
    ) -> Result<(), StoreError> {
        let mut is_owner = false;
        let mut change = |thread: Option<&Thread>, now| {
            let active = thread.and_then(|thread| thread.active.as_ref());
            is_owner = active.is_some_and(|run| run.owner == owner);
            if is_owner { rule(thread, now) } else { Next::Keep }
        };
        self.store.update(key, &mut change).await?;
        let lost = || StoreError("the thread is another run's by now".to_owned());
        is_owner.then_some(()).ok_or_else(lost)
    }

    async fn give_up(&self, key: &ThreadKey, owner: RunOwner) {
        let policy = self.policy;
        let mut change = |thread: Option<&Thread>, now| end::given_up(thread, owner, policy, now);
        if let Err(error) = self.store.update(key, &mut change).await {
            tracing::error!(error = %error, "a thread was not freed");
        }
    }
}

/// A run's hold on its thread. Dropped without an end it frees the thread and opens again what
/// the run did not settle.
#[derive(Debug)]
pub struct Ticket {
    ledger: Ledger,
    key: ThreadKey,
    owner: RunOwner,
    agent: AgentId,
    begun: Begun,
    held: bool,
}

impl Ticket {
    /// The thread.
    pub fn key(&self) -> &ThreadKey {
        &self.key
    }

    /// What the run found.
    pub fn begun(&self) -> &Begun {
        &self.begun
    }

    /// The interrupts that this run has to raise instead of calling the agent: the last run ended
    /// with pending calls of the client's own tools beside them.
    pub fn to_raise(&self) -> Option<&Parked> {
        self.begun.parked.as_ref().filter(|parked| !parked.raised)
    }

    /// The interrupts that this run answers.
    pub fn claimed(&self) -> Option<&Parked> {
        self.begun.parked.as_ref().filter(|parked| parked.raised)
    }

    /// Resolves when somebody asks the run to stop.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + use<> {
        self.ledger.store.cancelled(&self.key, self.owner)
    }

    /// Half the time for which the claim on the thread holds: when to renew it.
    pub fn renew_every(&self) -> Option<std::time::Duration> {
        self.ledger.store.lease().map(|lease| lease / 2)
    }

    /// Renews the claim on the thread.
    ///
    /// # Errors
    ///
    /// When the store cannot be reached, or the thread is another run's by now.
    pub async fn renew(&self) -> Result<(), StoreError> {
        let (owner, lease) = (self.owner, self.ledger.store.lease());
        let renewed = |thread: Option<&Thread>, now| control::renewed(thread, owner, lease, now);
        self.ledger.as_owner(&self.key, owner, renewed).await
    }

    /// Frees the thread and opens again what the run did not settle.
    pub async fn give_up(mut self) {
        self.held = false;
        self.ledger.give_up(&self.key, self.owner).await;
    }

    /// Stores results of the run while it lasts.
    pub fn settler(&self) -> Settler {
        Settler { ledger: self.ledger.clone(), key: self.key.clone(), owner: self.owner }
    }

    /// Records how the run ended and frees the thread.
    ///
    /// # Errors
    ///
    /// When the store cannot be reached, or the thread is another run's: then nothing is recorded.
    pub async fn end(mut self, ended: &Ended<'_>) -> Result<(), StoreError> {
        self.held = false;
        let (owner, policy) = (self.owner, self.ledger.policy);
        let agent = self.to_raise().map_or(&self.agent, |parked| &parked.agent);
        let leaving = end::Leaving { owner, agent, ended, policy };
        let ended = |thread: Option<&Thread>, now| end::ended(thread, &leaving, now);
        self.ledger.as_owner(&self.key, owner, ended).await
    }
}

/// A claimed call that has its result, and the message of it; `None` = the client gets none.
pub type Settled = (Decision, Option<Message>);

/// Stores the results of a run's approved calls.
#[derive(Clone, Debug)]
pub struct Settler {
    ledger: Ledger,
    key: ThreadKey,
    owner: RunOwner,
}

impl Settler {
    /// Stores these results, before anybody sees them: whatever happens later, the calls are not
    /// executed again.
    ///
    /// # Errors
    ///
    /// When the store cannot be reached.
    pub async fn settle(&self, settled: &[Settled]) -> Result<(), StoreError> {
        let owner = self.owner;
        let settled = |thread: Option<&Thread>, _now| end::settled(thread, owner, settled);
        let stored = self.ledger.as_owner(&self.key, owner, settled).await;
        if let Err(error) = &stored {
            tracing::error!(error = %error, "the result of an approved call was not stored");
        }
        stored
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.held {
            return;
        }
        // Only behind a panic: every other run ends its ticket.
        let (ledger, key, owner) = (self.ledger.clone(), self.key.clone(), self.owner);
        let release = async move { ledger.give_up(&key, owner).await };
        let mut release = Box::pin(release);
        if release.as_mut().now_or_never().is_none() {
            match tokio::runtime::Handle::try_current() {
                Ok(runtime) => drop(runtime.spawn(release)),
                Err(_none) => tracing::error!("a thread was not freed: the server is gone"),
            }
        }
    }
}

/// Forgets the record if nothing in it is worth keeping.
fn kept(thread: Thread) -> Next {
    let empty = thread.active.is_none()
        && thread.parked.is_none()
        && thread.answered.is_empty()
        && thread.messages.is_empty()
        && thread.state.is_none()
        && thread.kept.is_empty();
    if empty { Next::Remove } else { Next::Put(Box::new(thread)) }
}
