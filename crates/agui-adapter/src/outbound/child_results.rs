//! The results of children's calls that a person approved, as the children gave them: a client may
//! be told of them in any form, or of nothing.

use agui_protocol::ToolCallId;

use super::{context::StreamContext, tool::ResultContent};
use crate::{
    model::event::ResultState,
    resume::{Decision, StoredResult, Verdict},
    sequencer::OwnerId,
};

/// The approved calls of children that have no result yet, and those that have it.
#[derive(Default)]
pub(super) struct ChildResults {
    claimed: Vec<Decision>,
    given: Vec<Decision>,
}

impl ChildResults {
    pub(super) fn new(answered: &[Decision]) -> Self {
        let is_claimed = |decision: &&Decision| {
            decision.open.source.is_some()
                && !decision.settled
                && matches!(decision.verdict, Verdict::Approved { .. })
        };
        Self { claimed: answered.iter().filter(is_claimed).cloned().collect(), given: Vec::new() }
    }

    pub(super) fn take(&mut self) -> Vec<Decision> {
        std::mem::take(&mut self.given)
    }
}

impl StreamContext {
    /// A child gives the result of a call.
    pub(super) fn note_child_result(
        &mut self,
        owner: OwnerId,
        call: &str,
        content: &ResultContent,
        state: ResultState,
    ) {
        if self.child_results.claimed.is_empty() {
            return;
        }
        let Some(at) = self.claimed_call(owner, call) else { return };
        let text = content.clone().into_content().text_content();
        let state = state.as_str().to_owned();
        let mut decision = self.child_results.claimed.remove(at);
        decision.result = Some(StoredResult { text, state });
        self.child_results.given.push(decision);
    }

    /// Where the decision stands about a child's call. Several children of one path may have used
    /// one id: then the client's id of the call tells them apart, if anything does.
    fn claimed_call(&self, owner: OwnerId, call: &str) -> Option<usize> {
        let (source, task) = (self.source_of(owner)?, self.task_of(owner));
        let wire: ToolCallId = self.sequencer.wire_id(owner, call);
        let claimed = || self.child_results.claimed.iter().enumerate();
        let is_it = |decision: &Decision| {
            let open = &decision.open;
            open.source.as_deref() == Some(source)
                && (open.task.as_deref() == task || open.task.is_none() || task.is_none())
                && open.call.as_ref().is_some_and(|open| open.id == call)
        };
        let has_wire = |decision: &Decision| {
            decision.open.call.as_ref().is_some_and(|open| open.wire_id == wire.as_str())
        };
        let same = claimed().find(|(_, decision)| is_it(decision) && has_wire(decision));
        let any = || claimed().find(|(_, decision)| is_it(decision));
        same.or_else(any).map(|(at, _)| at)
    }
}
