//! Where runs get fresh ids and the time from.
//!
//! Replaceable, so that a test's streams are literal.

use std::{
    fmt,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use agui_adapter::outbound::{Clock, IdSource};

type MakeIds = dyn Fn() -> Box<dyn IdSource> + Send + Sync;
type MakeClock = dyn Fn() -> Box<dyn Clock> + Send + Sync;

/// Makes the id source and the clock of every run.
#[derive(Clone)]
pub struct Sources {
    ids: Arc<MakeIds>,
    clock: Arc<MakeClock>,
}

impl Sources {
    /// Own sources; each is asked once per run.
    pub fn new(
        ids: impl Fn() -> Box<dyn IdSource> + Send + Sync + 'static,
        clock: impl Fn() -> Box<dyn Clock> + Send + Sync + 'static,
    ) -> Self {
        Self { ids: Arc::new(ids), clock: Arc::new(clock) }
    }

    /// A fresh id source.
    pub fn ids(&self) -> Box<dyn IdSource> {
        (self.ids)()
    }

    /// A clock.
    pub fn clock(&self) -> Box<dyn Clock> {
        (self.clock)()
    }
}

impl Default for Sources {
    fn default() -> Self {
        Self::new(|| Box::new(RunScopedIds::new()), || Box::new(SystemClock))
    }
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources").finish_non_exhaustive()
    }
}

/// One random number per run and a counter behind it: unique over every thread without asking
/// the system for randomness at every message.
struct RunScopedIds {
    run: String,
    next: u64,
}

impl RunScopedIds {
    fn new() -> Self {
        Self { run: uuid::Uuid::new_v4().simple().to_string(), next: 0 }
    }
}

impl IdSource for RunScopedIds {
    fn next_id(&mut self) -> String {
        self.next += 1;
        format!("{}-{}", self.run, self.next)
    }
}

struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_a_run_share_a_prefix_and_never_repeat() {
        let (mut one, mut other) = (RunScopedIds::new(), RunScopedIds::new());
        let (first, second) = (one.next_id(), one.next_id());
        assert_eq!(first, format!("{}-1", one.run));
        assert_eq!(second, format!("{}-2", one.run));
        assert_ne!(other.next_id(), first);
    }
}
