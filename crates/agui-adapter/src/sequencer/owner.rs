//! Who an item belongs to, and what that owner has open.

use std::collections::{BTreeSet, HashMap};

use agui_protocol::{MessageId, SubagentRunId};

use super::{BlockKey, CallIndex, Sequencer};

/// The root agent, or one invocation of a sub-agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct OwnerId(pub(super) usize);

impl OwnerId {
    /// The root agent.
    pub(crate) const ROOT: Self = Self(0);
}

/// What one owner has open.
pub(super) struct Owner {
    pub(super) tag: Option<SubagentRunId>,
    /// SUBAGENT_STARTED was sent, so its end must be.
    pub(super) announced: bool,
    pub(super) closed: bool,
    pub(super) texts: Vec<OpenBlock>,
    pub(super) reasoning: Option<OpenBlock>,
    /// The assistant message that calls hang on until the next turn.
    pub(super) carrier: Option<MessageId>,
    pub(super) steps: Vec<String>,
    /// Calls whose TOOL_CALL_END has not been sent, in start order.
    pub(super) open_calls: Vec<CallIndex>,
    /// How many of `open_calls` the agent has ended.
    pub(super) held_ends: usize,
    /// The calls under each of the agent's own ids: those without an answer, and the latest.
    pub(super) calls: HashMap<String, Vec<CallIndex>>,
    /// The calls without an answer, in start order.
    pub(super) unanswered: BTreeSet<CallIndex>,
    /// Counts model calls.
    pub(super) epoch: u32,
}

impl Owner {
    pub(super) fn root() -> Self {
        Self::child(None, false)
    }

    pub(super) fn child(tag: Option<SubagentRunId>, announced: bool) -> Self {
        Self {
            tag,
            announced,
            closed: false,
            texts: Vec::new(),
            reasoning: None,
            carrier: None,
            steps: Vec::new(),
            open_calls: Vec::new(),
            held_ends: 0,
            calls: HashMap::new(),
            unanswered: BTreeSet::new(),
            epoch: 0,
        }
    }

    pub(super) fn text(&self, key: BlockKey<'_>) -> Option<&OpenBlock> {
        self.texts.iter().find(|open| open.is(key))
    }
}

impl Sequencer {
    /// The first owner of a call under this id. An id that was used stays in its owner's calls.
    pub(super) fn note_holder(&mut self, owner: OwnerId, id: &str) {
        match self.holders.get_mut(id) {
            Some(first) => *first = owner.min(*first),
            None => {
                self.holders.insert(id.to_owned(), owner);
            }
        }
    }

    /// Of the owners whose calls this owner's events may speak of, the first with this id: the
    /// root's events may speak of all.
    pub(super) fn holder(&self, owner: OwnerId, id: &str) -> Option<&Owner> {
        let first = self.holders.get(id).filter(|_| owner == OwnerId::ROOT)?;
        self.owners.get(first.0)
    }
}

/// A text or reasoning message that is open, and the agent's block that it shows.
pub(super) struct OpenBlock {
    reply: String,
    block: String,
    pub(super) message_id: MessageId,
}

impl OpenBlock {
    pub(super) fn new(key: BlockKey<'_>, message_id: MessageId) -> Self {
        Self { reply: key.reply.to_owned(), block: key.block.to_owned(), message_id }
    }

    pub(super) fn is(&self, key: BlockKey<'_>) -> bool {
        self.block == key.block && self.reply == key.reply
    }
}
