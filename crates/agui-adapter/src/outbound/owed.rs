//! Answers to calls that the client gets even if the agent sends none: the Java wire has no
//! result for a call that the person denied, nor for one that was run outside.

use agui_protocol::{Message, ToolCallId};

use super::{
    context::StreamContext,
    tool::{ResultContent, send_result},
};
use crate::{
    model::event::ResultState,
    resume::{Decision, StoredCall, Verdict},
    sequencer::OwnerId,
};

/// One such answer.
pub(super) struct Owed {
    pub(super) call: String,
    pub(super) name: String,
    pub(super) content: ResultContent,
    pub(super) state: ResultState,
}

impl Owed {
    /// The person denied the call, without a reason.
    pub(super) fn denial(call: &str, name: &str) -> Self {
        Self {
            call: call.to_owned(),
            name: name.to_owned(),
            content: ResultContent::text(&denial(None)),
            state: ResultState::Denied,
        }
    }
}

/// What an answer of the run's resume makes the client expect.
pub(super) fn owed_by(decision: &Decision) -> Option<Owed> {
    let owed = |call: &StoredCall, text: &str, state| Owed {
        call: call.id.clone(),
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
fn denial(reason: Option<&str>) -> String {
    match reason {
        Some(reason) => format!("Permission denied by user: {reason}"),
        None => "Permission denied by user".to_owned(),
    }
}

impl StreamContext {
    /// Owes the client an answer, unless it is the client's to give or owed already.
    pub(super) fn owe(&mut self, owed: Owed) {
        let started = self.sequencer.call_of(OwnerId::ROOT, &owed.call);
        let tool = started.map_or(owed.name.as_str(), |index| self.sequencer.call_name(index));
        if self.is_frontend_tool(tool) {
            return;
        }
        if !self.asks.owed.iter().any(|other| other.call == owed.call) {
            self.asks.owed.push(owed);
        }
    }

    /// The agent answered the call itself.
    pub(super) fn forget_owed(&mut self, call: &str) {
        self.asks.owed.retain(|owed| owed.call != call);
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
            send_result(OwnerId::ROOT, &owed.call, &owed.name, owed.content, owed.state, self);
        }
    }

    /// A tool of the client whose result the client already put into its messages.
    fn answered_by_client(&self, owed: &Owed) -> bool {
        let wire = self.sequencer.wire_id(OwnerId::ROOT, &owed.call);
        self.is_frontend_tool(&owed.name) && has_tool_message(&self.input.messages, &wire)
    }
}

fn has_tool_message(messages: &[Message], call: &ToolCallId) -> bool {
    messages.iter().any(
        |message| matches!(message, Message::Tool { tool_call_id, .. } if tool_call_id == call),
    )
}
