//! The end of a run: everything is closed, then exactly one terminal event.

use agui_protocol::{Body, Event, RunOutcome, TokenUsage};

use super::{OwnerEnd, OwnerId, Phase, Sequencer};
use crate::{model::event::Object, outbound::RunFailure};

/// What `RUN_ERROR` says.
pub(crate) struct Failed {
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) metadata: Object,
    pub(crate) timestamp: i64,
}

impl Sequencer {
    /// Ends the run with `RUN_FINISHED`; whatever is still open must have been closed by
    /// [`Sequencer::end_owner`] and is closed here at the latest (LIFE-6).
    pub(crate) fn finish_run(
        &mut self,
        outcome: Option<RunOutcome>,
        usage: Vec<TokenUsage>,
        metadata: Object,
    ) {
        self.before_end();
        self.phase = Phase::Ended;
        self.push_finished(outcome, usage, metadata);
    }

    /// Ends the run with `RUN_ERROR` (LIFE-3). `finish_after` appends the RUN_FINISHED that old
    /// clients expect.
    pub(crate) fn fail_run(&mut self, failure: Failed, usage: Vec<TokenUsage>, finish_after: bool) {
        self.before_end();
        self.phase = Phase::Ended;
        let code = Some(failure.code);
        let mut event = Event::new(Body::RunError { message: failure.message, code, usage })
            .with_timestamp(failure.timestamp);
        if !failure.metadata.is_empty() {
            event.metadata = Some(failure.metadata);
        }
        self.out.push(event);
        if finish_after {
            self.push_finished(None, Vec::new(), Object::new());
        }
    }

    /// RUN_ERROR in place of a terminal event that never left.
    pub(crate) fn error_again(&self, failure: RunFailure, timestamp: i64) -> Event {
        let RunFailure { code, message, .. } = failure;
        Event::new(Body::RunError { message, code: Some(code), usage: Vec::new() })
            .with_timestamp(timestamp)
    }

    fn push_finished(
        &mut self,
        outcome: Option<RunOutcome>,
        usage: Vec<TokenUsage>,
        metadata: Object,
    ) {
        let mut event = Event::new(Body::RunFinished {
            thread_id: self.thread_id.clone(),
            run_id: self.run_id.clone(),
            result: None,
            outcome,
            usage,
        });
        if !metadata.is_empty() {
            event.metadata = Some(metadata);
        }
        self.out.push(event);
    }

    fn before_end(&mut self) {
        self.start_run();
        for index in (1..self.owners.len()).rev() {
            self.end_owner(OwnerId(index), OwnerEnd::Finished);
        }
        self.close_items(OwnerId::ROOT);
    }
}
