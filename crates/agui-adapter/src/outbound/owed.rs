//! Answers that the client is owed: results of calls that a person denied, or that were run
//! outside, for which the agent may send no result of its own.

use agui_protocol::{Message, SubagentRunId, ToolCallId};

use super::{
    context::StreamContext,
    tool::{ResultContent, result_metadata, send_result},
};
use crate::{
    model::event::ResultState,
    resume::{Decision, StoredCall, Verdict},
    sequencer::OwnerId,
};

/// An answer that the client gets even if the agent sends no result for the call: Java sends
/// none for a call that the person denied, nor for one that was run outside.
pub(super) struct Owed {
    /// The sub-agent that made the call.
    pub(super) tag: Option<SubagentRunId>,
    pub(super) call: String,
    pub(super) wire: ToolCallId,
    pub(super) name: String,
    pub(super) content: ResultContent,
    pub(super) state: ResultState,
}

/// What an answer to an interrupt makes the client expect.
pub(super) fn owed_by(decision: &Decision) -> Option<Owed> {
    if decision.open.is_of_custom_child() {
        return None;
    }
    let owed = |call: &StoredCall, text: &str, state| Owed {
        tag: decision.open.interrupt.subagent_run_id.clone(),
        call: call.id.clone(),
        wire: ToolCallId::from(call.wire_id.as_str()),
        name: call.name.clone(),
        content: ResultContent::text(text),
        state,
    };
    match &decision.verdict {
        Verdict::Denied { call, reason } => {
            Some(owed(call, &denial(reason.as_deref()), ResultState::Denied))
        }
        Verdict::Result { call, text, answered } => {
            let state = if *answered { ResultState::Success } else { ResultState::Interrupted };
            Some(owed(call, text, state))
        }
        Verdict::Approved { .. } | Verdict::Answer { .. } => None,
    }
}

/// AgentScope's own sentence, and the person's reason.
pub(super) fn denial(reason: Option<&str>) -> String {
    match reason {
        Some(reason) => format!("Permission denied by user: {reason}"),
        None => "Permission denied by user".to_owned(),
    }
}

impl StreamContext {
    /// A child shown as CUSTOM events has no calls that the client could get an answer to.
    pub(super) fn owe(&mut self, owner: OwnerId, owed: Owed) {
        let started = self.sequencer.call_of(owner, &owed.call);
        let tool = started.map_or(owed.name.as_str(), |index| self.sequencer.call_name(index));
        if self.is_frontend_tool(tool) {
            return;
        }
        let known = |other: &Owed| other.call == owed.call && other.tag == owed.tag;
        if !self.is_custom_child(owner) && !self.asks.owed.iter().any(known) {
            self.asks.owed.push(owed);
        }
    }

    /// The agent answered the call itself.
    pub(super) fn forget_owed(&mut self, owner: OwnerId, call: &str) {
        if self.asks.owed.is_empty() || self.is_custom_child(owner) {
            return;
        }
        let tag = self.sequencer.tag(owner);
        self.asks.owed.retain(|owed| owed.call != call || owed.tag != tag);
    }

    /// Sends the answers that the agent did not send: before anything that comes after them.
    pub(super) fn pay_owed(&mut self) {
        if self.asks.owed.is_empty() {
            return;
        }
        for owed in std::mem::take(&mut self.asks.owed) {
            if self.answered_by_client(&owed) {
                continue;
            }
            match self.sequencer.owner_with(owed.tag.as_ref()) {
                Some(owner) => {
                    send_result(owner, &owed.call, &owed.name, owed.content, owed.state, self);
                }
                None => send_earlier_result(owed, self),
            }
        }
    }

    /// A tool of the client whose result the client already put into its messages.
    fn answered_by_client(&self, owed: &Owed) -> bool {
        self.is_frontend_tool(&owed.name) && has_tool_message(&self.input.messages, &owed.wire)
    }
}

/// The answer to a call of a child that does not come back in this run.
fn send_earlier_result(owed: Owed, context: &mut StreamContext) {
    let metadata = result_metadata(owed.state);
    let content = owed.content.into_content();
    context.sequencer.earlier_result(owed.tag.as_ref(), &owed.call, content, metadata);
}

fn has_tool_message(messages: &[Message], call: &ToolCallId) -> bool {
    messages.iter().any(
        |message| matches!(message, Message::Tool { tool_call_id, .. } if tool_call_id == call),
    )
}
