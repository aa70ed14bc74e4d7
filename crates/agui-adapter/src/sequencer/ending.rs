//! The ends of runs and of sub-agents' invocations: close what is open, then say how it ended.

use agui_protocol::{Body, Event, RunOutcome, SubagentOutcome, TokenUsage};

use super::{OwnerId, Sequencer, with_metadata};
use crate::model::event::Object;

impl Sequencer {
    /// Ends a sub-agent's invocation: closes what it has open, then says how it ended.
    pub(crate) fn end_owner(&mut self, owner: OwnerId, end: OwnerEnd) {
        if self.ended || self.owners[owner.0].closed {
            return;
        }
        self.close_items(owner);
        let state = &mut self.owners[owner.0];
        state.closed = true;
        let (true, Some(id)) = (state.announced, state.tag.clone()) else { return };
        self.out.push(Event::new(match end {
            OwnerEnd::Finished => {
                Body::SubagentFinished { subagent_run_id: id, result: None, outcome: None }
            }
            OwnerEnd::Suspended(interrupt_ids) => Body::SubagentFinished {
                subagent_run_id: id,
                result: None,
                outcome: Some(SubagentOutcome::Suspended { interrupt_ids }),
            },
            OwnerEnd::Failed { message, code } => {
                Body::SubagentError { subagent_run_id: id, message, code: Some(code) }
            }
        }));
    }

    /// Ends the run with `RUN_FINISHED`; whatever is still open must have been closed by
    /// [`Sequencer::end_owner`] and is closed here at the latest (LIFE-6).
    pub(crate) fn finish_run(
        &mut self,
        outcome: Option<RunOutcome>,
        usage: Vec<TokenUsage>,
        metadata: Object,
    ) {
        self.before_end();
        self.ended = true;
        self.push_finished(outcome, usage, metadata);
    }

    /// Ends the run with `RUN_ERROR` (LIFE-3), also in place of an end that has not left.
    /// `finish_after` appends the RUN_FINISHED that old clients expect.
    pub(crate) fn fail_run(
        &mut self,
        failure: RunFailure,
        now_ms: i64,
        usage: Vec<TokenUsage>,
        finish_after: bool,
    ) {
        self.out.retain(|event| !is_end(&event.body));
        self.before_end();
        self.ended = true;
        let RunFailure { code, message, metadata } = failure;
        let body = Body::RunError { message, code: Some(code), usage };
        self.out.push(with_metadata(body, metadata).with_timestamp(now_ms));
        if finish_after {
            self.push_finished(None, Vec::new(), Object::new());
        }
    }

    fn push_finished(
        &mut self,
        outcome: Option<RunOutcome>,
        usage: Vec<TokenUsage>,
        metadata: Object,
    ) {
        let body = Body::RunFinished {
            thread_id: self.thread_id.clone(),
            run_id: self.run_id.clone(),
            result: None,
            outcome,
            usage,
        };
        self.out.push(with_metadata(body, metadata));
    }

    fn before_end(&mut self) {
        self.start_run();
        for index in (1..self.owners.len()).rev() {
            self.end_owner(OwnerId(index), OwnerEnd::Finished);
        }
        self.close_items(OwnerId::ROOT);
    }
}

fn is_end(body: &Body) -> bool {
    matches!(body, Body::RunFinished { .. } | Body::RunError { .. })
}

/// How a sub-agent's invocation ended.
pub(crate) enum OwnerEnd {
    Finished,
    Suspended(Vec<agui_protocol::InterruptId>),
    Failed { message: String, code: String },
}

/// A failure as the client sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFailure {
    /// Stable code.
    pub code: String,
    /// For people.
    pub message: String,
    /// Entries for `RUN_ERROR.metadata`, e.g. `agentscope.openInterrupts`.
    pub metadata: Object,
}

impl RunFailure {
    /// A failure without metadata.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), metadata: Object::new() }
    }
}
