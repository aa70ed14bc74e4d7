//! What the loop parks when it stops to ask, and reads when the answers come, on any replica.

use std::{collections::HashSet, sync::Arc};

use agui_adapter::model::{Block, Msg, Role};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    call::Outcome,
    forms::{BlockForm, MsgForm, StateForm, blocks, forms},
    round::{Slot, Standing},
    toolkit::{EntryKind, Toolkit},
    turn::Made,
};

/// The form's version; another one is not read.
const VERSION: u32 = 1;

/// A reply that waits.
#[derive(Serialize, Deserialize)]
pub(super) struct Parked {
    version: u32,
    /// The last message of the history before the reply; `None` = there was none.
    pub(super) anchor: Option<String>,
    /// Model calls so far.
    pub(super) iterations: u32,
    /// What the reply has added to the history.
    messages: Vec<MsgForm>,
    /// The calls of the round that stopped.
    pub(super) calls: Vec<ParkedCall>,
}

/// A call of the round that stopped.
#[derive(Serialize, Deserialize)]
pub(super) struct ParkedCall {
    id: String,
    name: String,
    /// Where its tool came from: another one of the name is not what was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) source: Option<Arc<str>>,
    arguments: String,
    #[serde(flatten)]
    pub(super) standing: ParkedStanding,
}

/// What a call waited for.
#[derive(Serialize, Deserialize)]
#[serde(tag = "standing", rename_all = "snake_case")]
pub(super) enum ParkedStanding {
    /// A person's consent.
    Asked,
    /// The consent to others.
    Allowed,
    /// The client, whose tool it is.
    Frontend,
    /// Somebody outside who runs it.
    External,
    /// The answer to its question.
    Question {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parked: Option<Value>,
    },
    /// The answer to what its sub-agent asked.
    Child { parked: Value },
    /// Nothing.
    Done { output: Vec<BlockForm>, state: StateForm },
}

impl Parked {
    pub(super) fn new(
        anchor: Option<String>,
        iterations: u32,
        messages: &[Arc<Msg>],
        slots: &[Slot],
        toolkit: &Toolkit,
    ) -> Self {
        Self {
            version: VERSION,
            anchor,
            iterations,
            messages: messages.iter().map(|message| MsgForm::from(&**message)).collect(),
            calls: slots.iter().map(|slot| ParkedCall::new(slot, toolkit)).collect(),
        }
    }

    /// Reads what was parked; `None` = it is none of ours.
    pub(super) fn read(value: &Value) -> Option<Self> {
        let parked = Self::deserialize(value).ok()?;
        (parked.version == VERSION).then_some(parked)
    }

    /// What is parked. Every form of it can be written.
    pub(super) fn write(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Whether nothing is waited for but the client's own tools.
    pub(super) fn waits_for_client_only(&self) -> bool {
        self.calls.iter().all(|call| {
            matches!(call.standing, ParkedStanding::Frontend | ParkedStanding::Done { .. })
        })
    }

    /// Whether these messages go on where the reply stopped: they have what was said before, the
    /// calls and the results of the client's tools, and no agent has said anything since.
    pub(super) fn is_answered_by(&self, messages: &[Msg]) -> bool {
        let anchor = self.anchor.as_deref();
        let begun = anchor.is_none_or(|anchor| messages.iter().any(|msg| msg.id == anchor));
        let is_call = |id: &str| self.calls.iter().any(|call| call.id == id);
        let calls = |msg: &Msg| {
            let mut blocks = msg.content.iter();
            blocks.any(|block| matches!(block, Block::ToolUse { call, .. } if is_call(&call.id)))
        };
        let Some(called) = messages.iter().rposition(calls) else { return false };
        let answered: HashSet<&str> = messages
            .iter()
            .flat_map(|msg| &msg.content)
            .filter_map(|block| match block {
                Block::ToolResult { call_id, .. } => Some(call_id.as_str()),
                _ => None,
            })
            .collect();
        let mut waits = self.calls.iter();
        begun
            && messages.iter().skip(called + 1).all(|msg| msg.role != Role::Assistant)
            && waits.all(|call| {
                !matches!(call.standing, ParkedStanding::Frontend)
                    || answered.contains(call.id.as_str())
            })
    }

    pub(super) fn take_messages(&mut self) -> Vec<Msg> {
        std::mem::take(&mut self.messages).into_iter().map(Msg::from).collect()
    }
}

impl ParkedCall {
    fn new(slot: &Slot, toolkit: &Toolkit) -> Self {
        let Made { id, name, arguments, .. } = slot.call.clone();
        let entry = toolkit.get(&name);
        let is_frontend = || entry.is_some_and(|entry| matches!(entry.kind, EntryKind::Frontend));
        let source = entry.and_then(|entry| entry.source.clone());
        let standing = match &slot.standing {
            Standing::Asked { .. } => ParkedStanding::Asked,
            Standing::Run(_) => ParkedStanding::Allowed,
            Standing::Elsewhere if is_frontend() => ParkedStanding::Frontend,
            Standing::Elsewhere => ParkedStanding::External,
            Standing::Question { parked } => ParkedStanding::Question { parked: parked.clone() },
            Standing::Child { parked } => ParkedStanding::Child { parked: parked.clone() },
            Standing::Done { outcome, .. } => {
                ParkedStanding::Done { output: forms(&outcome.output), state: outcome.state.into() }
            }
        };
        Self { id, name, source, arguments, standing }
    }

    pub(super) fn made(&self) -> Made {
        let (id, name) = (self.id.clone(), self.name.clone());
        Made { id, name, arguments: self.arguments.clone(), is_cut: false }
    }
}

impl ParkedStanding {
    /// A result that was there already.
    pub(super) fn outcome(output: Vec<BlockForm>, state: StateForm) -> Outcome {
        Outcome { output: blocks(output), state: state.into() }
    }
}
