//! What the log says of the names of an agent's tools.

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
};

/// So many are told at once; a server can have any number of tools.
const TOLD: usize = 20;

/// What was told last: tools come and go with their servers, and what stays the same is told once.
#[derive(Debug, Default)]
pub(super) struct Notices {
    with_subagents: Mutex<Vec<String>>,
    without: Mutex<Vec<String>>,
}

impl Notices {
    /// Logs what is new.
    pub(super) fn tell(&self, agent: &str, delegates: bool, now: &[String]) {
        let news = self.news(delegates, now);
        for notice in news.iter().take(TOLD) {
            tracing::warn!(agent, "{notice}");
        }
        let more = news.len().saturating_sub(TOLD);
        if more > 0 {
            tracing::warn!(agent, more, "names of tools were changed");
        }
    }

    fn news(&self, delegates: bool, now: &[String]) -> Vec<String> {
        let told = if delegates { &self.with_subagents } else { &self.without };
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        if *told == now {
            return Vec::new();
        }
        let before = std::mem::replace(&mut *told, now.to_vec());
        let before: HashSet<String> = before.into_iter().collect();
        now.iter().filter(|notice| !before.contains(*notice)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_the_same_is_told_once() {
        let notices = Notices::default();
        let texts = |of: &[&str]| of.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let news = |delegates, now: &[&str]| notices.news(delegates, &texts(now));
        assert_eq!(news(true, &[]), texts(&[]));
        assert_eq!(news(true, &["a", "b"]), texts(&["a", "b"]));
        assert_eq!(news(true, &["a", "b"]), texts(&[]));
        assert_eq!(news(false, &["a"]), texts(&["a"]));
        assert_eq!(news(true, &["a", "c"]), texts(&["c"]));
        assert_eq!(news(true, &[]), texts(&[]));
        assert_eq!(news(true, &["a"]), texts(&["a"]));
    }
}
