//! The last stage, one for each client that reads a stream: its peer's downgrade, and, for a
//! client that joined a run under way, the boundary events of its own request.

use std::collections::HashSet;

use agui_protocol::{Body, Event, RunId, SubagentRunId, ThreadId};

use crate::{
    downgrade::Downgrade,
    options::{AdapterOptions, Peer},
};

/// What one client is shown of a stream. The default shows everything as it is.
#[derive(Debug, Default)]
pub struct View {
    /// Only for peers that need it.
    downgrade: Option<Downgrade>,
    joined: Option<Joined>,
}

/// A client that did not begin the run.
#[derive(Debug)]
struct Joined {
    thread_id: ThreadId,
    run_id: RunId,
    /// Its own RUN_STARTED was sent; a later one is that of the run it joined.
    begun: bool,
    /// The sub-agents that this client saw begin.
    subagents: HashSet<SubagentRunId>,
}

impl View {
    /// Of the client that began the run; the ids are for the log.
    pub fn new(peer: Peer, options: &AdapterOptions, thread_id: ThreadId, run_id: RunId) -> Self {
        let downgrade = (peer == Peer::Legacy).then(|| Downgrade::new(options, thread_id, run_id));
        Self { downgrade, joined: None }
    }

    /// Of a client that joins a run under way with a request of its own, whose ids these are. What
    /// it is sent begins with its own RUN_STARTED; the run's is left out, and the end has its ids.
    pub fn joining(
        peer: Peer,
        options: &AdapterOptions,
        thread_id: ThreadId,
        run_id: RunId,
    ) -> Self {
        let joined = Joined {
            thread_id: thread_id.clone(),
            run_id: run_id.clone(),
            begun: false,
            subagents: HashSet::new(),
        };
        Self { joined: Some(joined), ..Self::new(peer, options, thread_id, run_id) }
    }

    /// Whether the client is shown every event as it is.
    pub fn shows_all(&self) -> bool {
        self.downgrade.is_none() && self.joined.is_none()
    }

    /// Appends to `out` what the client is shown of `events`. `now_ms` is the time of a RUN_ERROR
    /// that is made of another event.
    pub fn show(
        &mut self,
        events: impl IntoIterator<Item = Event>,
        now_ms: i64,
        out: &mut Vec<Event>,
    ) {
        let Self { downgrade, joined } = self;
        let events = events.into_iter();
        let events = events.filter_map(|event| match joined {
            Some(joined) => joined.apply(event),
            None => Some(event),
        });
        match downgrade {
            None => out.extend(events),
            Some(downgrade) => {
                out.extend(events.filter_map(|event| downgrade.apply(event, now_ms)));
            }
        }
    }
}

impl Joined {
    fn apply(&mut self, mut event: Event) -> Option<Event> {
        match &mut event.body {
            Body::RunStarted { .. } if std::mem::replace(&mut self.begun, true) => return None,
            Body::RunFinished { thread_id, run_id, .. } => {
                thread_id.clone_from(&self.thread_id);
                run_id.clone_from(&self.run_id);
            }
            Body::SubagentStarted { subagent_run_id, parent_subagent_run_id, .. } => {
                // One that ended before this client came is not known to it (G8).
                if parent_subagent_run_id.as_ref().is_some_and(|id| !self.subagents.contains(id)) {
                    *parent_subagent_run_id = None;
                }
                self.subagents.insert(subagent_run_id.clone());
            }
            _ => {}
        }
        Some(event)
    }
}
