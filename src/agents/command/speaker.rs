//! Whose words a program's stderr holds.

use std::sync::Arc;

use agui_protocol::{RunId, ThreadId};

use crate::process;

/// The program of a run.
#[derive(Clone, Debug)]
pub(super) struct Speaker {
    pub(super) agent: Arc<str>,
    pub(super) request: Arc<str>,
    pub(super) thread: ThreadId,
    pub(super) run: RunId,
}

impl process::Speaker for Speaker {
    fn says(&self, line: &str) {
        let Self { agent, request, thread, run } = self;
        tracing::info!(
            request.id = &**request,
            thread.id = thread.as_str(),
            run.id = run.as_str(),
            agent.id = &**agent,
            "stderr: {line}"
        );
    }

    fn was_cut(&self, lines: u64) {
        let (request, agent) = (&*self.request, &*self.agent);
        tracing::warn!(request.id = request, agent.id = agent, lines, "stderr was left out");
    }
}
