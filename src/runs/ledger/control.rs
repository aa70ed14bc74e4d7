//! Asking a run to stop, giving up what is open, forgetting a thread.

use std::{sync::Arc, time::Duration};

use agui_protocol::RunOutcome;

use super::{Ledger, kept};
use crate::store::{Millis, Next, RunOwner, StoreError, Thread, ThreadKey};

/// What a request to cancel found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// A run, which was told to stop.
    Run,
    /// Open interrupts, which were given up.
    Interrupts,
    /// The thread has nothing to cancel.
    Nothing,
    /// There is no such thread.
    Unknown,
}

/// What a request to delete found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// The thread, which is gone.
    Gone,
    /// There is no such thread.
    Unknown,
    /// Its run did not end in time; the thread is as it was.
    StillRunning,
}

/// How long a run that was told to stop may take before a thread is not deleted.
const STOPPING: Duration = Duration::from_secs(10);

impl Ledger {
    /// Tells the active run of a thread to stop, else gives up its open interrupts.
    ///
    /// # Errors
    ///
    /// When the store cannot be reached.
    pub async fn cancel(&self, key: &ThreadKey) -> Result<Cancelled, StoreError> {
        let mut found = Cancelled::Unknown;
        let mut change = |thread: Option<&Thread>, now| {
            let (next, what) = cancel(thread, self.policy.keep_history, now);
            found = what;
            next
        };
        self.store().update(key, &mut change).await?;
        Ok(found)
    }

    /// Stops the thread's run, waits for its end and forgets the thread.
    ///
    /// # Errors
    ///
    /// When the store cannot be reached.
    pub async fn delete(&self, key: &ThreadKey) -> Result<Deleted, StoreError> {
        let mut deadline = std::pin::pin!(tokio::time::sleep(STOPPING));
        let mut known = false;
        loop {
            let (mut found, mut active) = (false, false);
            let mut change = |thread: Option<&Thread>, now| {
                found = thread.is_some();
                active = thread.is_some_and(|thread| thread.is_active(now));
                match thread {
                    Some(_) if active => stopping(thread),
                    Some(_) => Next::Remove,
                    None => Next::Keep,
                }
            };
            self.store().update(key, &mut change).await?;
            known |= found;
            if !active {
                // A thread without anything to remember goes with its run.
                return Ok(if known { Deleted::Gone } else { Deleted::Unknown });
            }
            tokio::select! {
                () = self.store().at_rest(key) => {}
                () = &mut deadline => return Ok(Deleted::StillRunning),
            }
        }
    }
}

fn cancel(thread: Option<&Thread>, keep_history: bool, now: Millis) -> (Next, Cancelled) {
    let Some(found) = thread else { return (Next::Keep, Cancelled::Unknown) };
    if found.is_active(now) {
        return (stopping(thread), Cancelled::Run);
    }
    let mut thread = super::end::reopened(found.clone());
    let Some(parked) = thread.parked.take() else { return (Next::Keep, Cancelled::Nothing) };
    thread.give_up(&parked);
    thread.outcome = Some(RunOutcome::Cancelled);
    if !keep_history {
        thread.messages = Arc::default();
        thread.state = None;
    }
    thread.updated_ms = now;
    (kept(thread), Cancelled::Interrupts)
}

fn stopping(thread: Option<&Thread>) -> Next {
    let Some(mut thread) = thread.cloned() else { return Next::Keep };
    let Some(run) = &mut thread.active else { return Next::Keep };
    if run.cancel {
        return Next::Keep;
    }
    run.cancel = true;
    Next::Put(Box::new(thread))
}

/// The run `owner` has its thread for another lease.
pub(super) fn renewed(
    thread: Option<&Thread>,
    owner: RunOwner,
    lease: Option<Duration>,
    now: Millis,
) -> Next {
    let Some(mut thread) = thread.cloned() else { return Next::Keep };
    match &mut thread.active {
        Some(run) if run.owner == owner => {
            run.lease_ends_ms = lease.map(|lease| later(now, lease));
        }
        _ => return Next::Keep,
    }
    Next::Put(Box::new(thread))
}

/// The time so much later.
pub(super) fn later(now: Millis, by: Duration) -> Millis {
    now.saturating_add(Millis::try_from(by.as_millis()).unwrap_or(Millis::MAX))
}
