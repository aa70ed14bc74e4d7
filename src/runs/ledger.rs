//! The ledger: which thread has a run, and which interrupts wait for an answer.
//!
//! In memory. [`Ledger::begin`] is one atomic step: it takes the thread's only slot and claims
//! the interrupts that the run answers. A claim is never a deletion: the run that ends with
//! RUN_FINISHED turns it into answers, every other end gives the interrupts back. Touched at the
//! beginning and the end of a run only, never per event. What an answer means is the adapter's
//! business.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use agui_adapter::{
    outbound::{EndOutcome, RunEnd},
    resume::{Coverage, OpenInterrupt, coverage},
};
use agui_protocol::{InterruptId, ResumeEntry, ThreadId};
use serde_json::Value;

use super::{AgentId, Principal};

/// How many answered interrupts are remembered per thread; an older one counts as never raised.
const MAX_ANSWERED: usize = 64;

/// What the ledger is keyed by: threads of two principals never meet.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadKey {
    /// Whose thread.
    pub principal: Principal,
    /// The thread, as the client names it.
    pub thread: ThreadId,
}

/// Interrupts that wait for answers, and whose they are.
#[derive(Clone, Debug, PartialEq)]
pub struct Parked {
    /// The agent that asked; only it can go on.
    pub agent: AgentId,
    /// What it asked.
    pub open: Vec<OpenInterrupt>,
    /// What it needs to go on.
    pub state: Option<Arc<Value>>,
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
        parked: Arc<Parked>,
    },
    /// The open interrupts belong to another agent.
    OtherAgent {
        /// What is open, and whose it is.
        parked: Arc<Parked>,
    },
}

/// All threads that have a run or something to remember.
#[derive(Debug)]
pub struct Ledger {
    threads: Mutex<Threads>,
    max_idle: usize,
}

#[derive(Debug, Default)]
struct Threads {
    by_key: HashMap<ThreadKey, Thread>,
    /// Threads without a run, the longest idle first.
    idle: BTreeMap<u64, ThreadKey>,
    sequence: u64,
}

#[derive(Debug, Default)]
struct Thread {
    /// The run that has the slot; every run has its own number, so that a late clean-up cannot
    /// free the slot of a successor.
    owner: Option<u64>,
    parked: Option<Arc<Parked>>,
    claimed: Option<Arc<Parked>>,
    /// Interrupts that the next run has to raise.
    deferred: Option<Arc<Parked>>,
    answered: VecDeque<InterruptId>,
    idle_since: Option<u64>,
}

impl Ledger {
    /// An empty ledger that remembers at most `max_idle` threads without a run.
    pub fn new(max_idle: usize) -> Arc<Self> {
        Arc::new(Self { threads: Mutex::default(), max_idle })
    }

    /// Takes the thread's slot and claims the interrupts that `resume` answers.
    ///
    /// # Errors
    ///
    /// When the thread has a run, or its open interrupts are not answered as they must be.
    pub fn begin(
        self: &Arc<Self>,
        key: ThreadKey,
        agent: &AgentId,
        resume: &[ResumeEntry],
    ) -> Result<Ticket, Refusal> {
        let mut threads = self.lock();
        let threads = &mut *threads;
        let thread = threads.by_key.get(&key);
        if thread.is_some_and(|thread| thread.owner.is_some()) {
            return Err(Refusal::Busy);
        }
        let parked = thread.and_then(|thread| thread.parked.clone());
        let unknown = check(parked.as_ref(), agent, resume)?;
        let answered = thread.map(|thread| &thread.answered);
        let (ignored, never_raised) = unknown
            .into_iter()
            .partition(|id| answered.is_some_and(|answered| answered.contains(id)));
        let owner = threads.next();
        let thread = threads.by_key.entry(key.clone()).or_default();
        thread.owner = Some(owner);
        thread.claimed = thread.parked.take();
        let deferred = thread.deferred.clone();
        if let Some(since) = thread.idle_since.take() {
            threads.idle.remove(&since);
        }
        let ledger = Arc::clone(self);
        let agent = agent.clone();
        Ok(Ticket {
            ledger,
            key,
            owner,
            agent,
            claimed: parked,
            deferred,
            answered: ignored,
            never_raised,
        })
    }

    /// Frees the slot if `owner` still has it, and leaves the thread as `settle` makes it.
    fn release(&self, key: &ThreadKey, owner: u64, settle: impl FnOnce(&mut Thread)) {
        let mut threads = self.lock();
        let threads = &mut *threads;
        let since = threads.next();
        let Some(thread) = threads.by_key.get_mut(key).filter(|t| t.owner == Some(owner)) else {
            return;
        };
        settle(thread);
        thread.owner = None;
        if thread.parked.is_none() && thread.deferred.is_none() && thread.answered.is_empty() {
            threads.by_key.remove(key);
            return;
        }
        thread.idle_since = Some(since);
        threads.idle.insert(since, key.clone());
        if threads.idle.len() > self.max_idle {
            threads.drop_oldest();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Threads> {
        // Nothing between lock and unlock can panic half way through a change.
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Threads {
    fn next(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    fn drop_oldest(&mut self) {
        let Some((_, key)) = self.idle.pop_first() else { return };
        let dropped = self.by_key.remove(&key);
        if let Some(parked) = dropped.and_then(|thread| thread.parked) {
            tracing::warn!(
                thread.id = key.thread.as_str(),
                agent.id = %parked.agent,
                interrupts = parked.open.len(),
                "too many parked threads: the open interrupts of the oldest were dropped"
            );
        }
    }
}

/// Whether `resume` may go on with what is parked; gives the entries that answer nothing of it.
fn check(
    parked: Option<&Arc<Parked>>,
    agent: &AgentId,
    resume: &[ResumeEntry],
) -> Result<Vec<InterruptId>, Refusal> {
    let Some(parked) = parked else {
        return Ok(resume.iter().map(|entry| entry.interrupt_id.clone()).collect());
    };
    let Coverage { missing, duplicate, unknown } = coverage(resume, &parked.open);
    if parked.agent != *agent {
        return Err(Refusal::OtherAgent { parked: Arc::clone(parked) });
    }
    if !missing.is_empty() || !duplicate.is_empty() {
        return Err(Refusal::Uncovered { missing, duplicate, parked: Arc::clone(parked) });
    }
    Ok(unknown)
}

/// A run's hold on its thread. Dropped without [`Ticket::finish`], it frees the thread and opens
/// the claimed interrupts again.
#[derive(Debug)]
pub struct Ticket {
    ledger: Arc<Ledger>,
    key: ThreadKey,
    owner: u64,
    agent: AgentId,
    claimed: Option<Arc<Parked>>,
    deferred: Option<Arc<Parked>>,
    answered: Vec<InterruptId>,
    never_raised: Vec<InterruptId>,
}

impl Ticket {
    /// The interrupts that this run answers.
    pub fn claimed(&self) -> &[OpenInterrupt] {
        self.claimed.as_ref().map_or(&[], |parked| &parked.open)
    }

    /// What the agent parked with the interrupts that this run answers.
    pub fn parked(&self) -> Option<Arc<Value>> {
        self.claimed.as_ref().and_then(|parked| parked.state.clone())
    }

    /// The interrupts that this run has to raise instead of calling the agent: the last run ended
    /// with pending calls of the client's own tools beside them.
    pub fn deferred(&self) -> &[OpenInterrupt] {
        self.deferred.as_ref().map_or(&[], |parked| &parked.open)
    }

    /// Entries for interrupts that an earlier run answered.
    pub fn already_answered(&self) -> &[InterruptId] {
        &self.answered
    }

    /// Entries for interrupts that nobody raised on this thread.
    pub fn never_raised(&self) -> &[InterruptId] {
        &self.never_raised
    }

    /// Records how the run ended and frees the thread.
    pub fn finish(self, end: &RunEnd) {
        if matches!(end.outcome, EndOutcome::Error(_)) {
            return;
        }
        self.ledger.release(&self.key, self.owner, |thread| {
            let claimed = thread.claimed.take();
            let ids = claimed.iter().flat_map(|parked| &parked.open);
            thread.answered.extend(ids.map(|open| open.interrupt.id.clone()));
            let excess = thread.answered.len().saturating_sub(MAX_ANSWERED);
            thread.answered.drain(..excess);
            // Deferred interrupts stay with the agent that asked, and so does what it parked.
            let (agent, state) = match &self.deferred {
                Some(deferred) if !end.open.is_empty() => (&deferred.agent, &deferred.state),
                _ => (&self.agent, &end.parked),
            };
            let park = |open: &[OpenInterrupt]| {
                let (agent, state) = (agent.clone(), state.clone());
                let parked = Parked { agent, open: open.to_vec(), state };
                (!open.is_empty()).then(|| Arc::new(parked))
            };
            thread.parked = park(&end.open);
            thread.deferred = park(&end.deferred);
        });
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // After `finish` the slot is no longer this owner's and nothing happens.
        self.ledger.release(&self.key, self.owner, |thread| {
            thread.parked = thread.claimed.take();
        });
    }
}

#[cfg(test)]
mod tests;
