//! Tool calls that the client knows from before this run.

use std::collections::HashMap;

use agui_protocol::{Message, SubagentRunId, ToolCallId};

/// A call of an earlier run that this run may answer.
#[derive(Clone, Debug)]
pub(crate) struct Earlier {
    /// The agent's own id.
    pub(crate) id: String,
    pub(crate) wire: ToolCallId,
    pub(crate) name: String,
    pub(crate) tag: Option<SubagentRunId>,
    pub(super) answered: bool,
}

impl Earlier {
    pub(crate) fn new(
        id: String,
        wire: ToolCallId,
        name: String,
        tag: Option<SubagentRunId>,
    ) -> Self {
        Self { id, wire, name, tag, answered: false }
    }
}

/// Everything that is known of calls from before, and of ids that are taken.
///
/// The agent's ids are only unique within an owner, so nothing is looked up without one.
pub(super) struct EarlierCalls {
    /// Ids that the client has, and whose they are.
    used: HashMap<ToolCallId, Option<SubagentRunId>>,
    /// Calls that this run's resume is about.
    resumed: Vec<Earlier>,
}

impl EarlierCalls {
    pub(super) fn new(messages: &[Message], resumed: Vec<Earlier>) -> Self {
        Self { used: known_calls(messages), resumed }
    }

    pub(super) fn is_used(&self, id: &str) -> bool {
        self.used.contains_key(id)
    }

    pub(super) fn mark_used(&mut self, id: ToolCallId, tag: Option<SubagentRunId>) {
        self.used.entry(id).or_insert(tag);
    }

    /// A call of the client's history under the agent's own id.
    pub(super) fn in_history(&self, id: &str, tag: Option<&SubagentRunId>) -> Option<&ToolCallId> {
        let (wire, owner) = self.used.get_key_value(id)?;
        (owner.as_ref() == tag).then_some(wire)
    }

    /// A call that this run's resume is about.
    pub(super) fn resumed(&self, id: &str, tag: Option<&SubagentRunId>) -> Option<&Earlier> {
        self.resumed.iter().find(|call| call.id == id && call.tag.as_ref() == tag)
    }

    /// The same, and it has its answer from now on.
    pub(super) fn answer(&mut self, id: &str, tag: Option<&SubagentRunId>) -> Option<ToolCallId> {
        let call =
            self.resumed.iter_mut().find(|call| call.id == id && call.tag.as_ref() == tag)?;
        call.answered = true;
        Some(call.wire.clone())
    }
}

fn known_calls(messages: &[Message]) -> HashMap<ToolCallId, Option<SubagentRunId>> {
    let mut known = HashMap::new();
    for message in messages {
        match message {
            Message::Assistant { tool_calls, base, .. } => {
                let of = |id: &ToolCallId| (id.clone(), base.subagent_run_id.clone());
                known.extend(tool_calls.iter().map(|call| of(&call.id)));
            }
            Message::Tool { tool_call_id, .. } => {
                known.entry(tool_call_id.clone()).or_insert(None);
            }
            _ => {}
        }
    }
    known
}
