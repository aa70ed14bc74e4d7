//! The keys of `agentscope.agui` about threads: their memory, their interrupts, their clients.

use std::time::Duration;

use super::tree::Block;

/// What the server remembers of threads, and how it treats what waits on them.
#[derive(Clone, Debug)]
pub struct ThreadsConfig {
    /// `server-side-memory`: histories are kept by the server; default false.
    pub server_side_memory: bool,
    /// `max-thread-sessions`: threads kept on which nothing happens and nothing waits; default
    /// 1000.
    pub max_thread_sessions: usize,
    /// `session-timeout-minutes`: how long such a thread is kept; `None` = for ever; default 30
    /// minutes.
    pub session_timeout: Option<Duration>,
    /// `max-parked-threads`: threads kept that have open interrupts; default 10000.
    pub max_parked_threads: usize,
    /// `interrupt-ttl`: how long an interrupt can be resolved; `None` = for ever, the default.
    pub interrupt_ttl: Option<Duration>,
    /// `on-unanswered-interrupts`: what a run without `resume` does on a thread with open
    /// interrupts; default reject.
    pub on_unanswered_interrupts: OnUnanswered,
    /// `interrupt-on-disconnect`: a run whose client leaves is stopped; default true.
    pub interrupt_on_disconnect: bool,
    /// `sse-timeout`: longest life of one response; `None` = no limit, the default.
    pub sse_timeout: Option<Duration>,
}

/// `on-unanswered-interrupts`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnUnanswered {
    /// The run is refused; the interrupts stay open.
    #[default]
    Reject,
    /// The interrupts are cancelled and the run goes on.
    Cancel,
}

impl Default for ThreadsConfig {
    fn default() -> Self {
        Self {
            server_side_memory: false,
            max_thread_sessions: 1000,
            session_timeout: Some(Duration::from_secs(30 * 60)),
            max_parked_threads: 10_000,
            interrupt_ttl: None,
            on_unanswered_interrupts: OnUnanswered::default(),
            interrupt_on_disconnect: true,
            sse_timeout: None,
        }
    }
}

/// Reads the keys.
pub(super) fn read(block: &Block<'_>) -> ThreadsConfig {
    let default = ThreadsConfig::default();
    let session_timeout = block
        .integer("session-timeout-minutes")
        .map(|minutes: u64| (minutes > 0).then(|| Duration::from_secs(minutes.saturating_mul(60))));
    ThreadsConfig {
        server_side_memory: block
            .boolean("server-side-memory")
            .unwrap_or(default.server_side_memory),
        max_thread_sessions: block
            .integer("max-thread-sessions")
            .unwrap_or(default.max_thread_sessions),
        session_timeout: session_timeout.unwrap_or(default.session_timeout),
        max_parked_threads: block
            .integer("max-parked-threads")
            .unwrap_or(default.max_parked_threads),
        interrupt_ttl: block.duration("interrupt-ttl").unwrap_or(default.interrupt_ttl),
        on_unanswered_interrupts: match block.text("on-unanswered-interrupts") {
            Some("cancel") => OnUnanswered::Cancel,
            _ => default.on_unanswered_interrupts,
        },
        interrupt_on_disconnect: block
            .boolean("interrupt-on-disconnect")
            .unwrap_or(default.interrupt_on_disconnect),
        sse_timeout: block.duration("sse-timeout").unwrap_or(default.sse_timeout),
    }
}
