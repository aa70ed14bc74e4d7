//! Tool calls: one AG-UI call per call of the agent, however often the agent repeats its start
//! and end, under an id that is unique over the thread.

use agui_protocol::{
    Body, Content, Event, MessageId, SubagentRunId, ToolCallId,
    event::{EncryptedSubtype, ToolRole},
};

use super::{Earlier, OwnerId, Phase, Sequencer};
use crate::model::event::Object;

/// A call that this run started, in start order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CallIndex(pub(super) usize);

/// Where a call is between its boundary events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallPhase {
    Open,
    /// The agent ended it; TOOL_CALL_END waits, for the agent may go on with the same call.
    EndHeld,
    Closed,
}

pub(super) struct Call {
    owner: OwnerId,
    /// The agent's own id.
    id: String,
    pub(super) wire: ToolCallId,
    name: String,
    pub(super) parent: Option<MessageId>,
    arguments: String,
    encrypted: Option<String>,
    phase: CallPhase,
    results: u32,
    epoch: u32,
    /// False for a call of an earlier run that the agent announced again: the client has it.
    visible: bool,
}

/// What a `TOOL_CALL_START` meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Started {
    /// A call that was not there before.
    New(CallIndex),
    /// The same call once more.
    Again(CallIndex),
}

impl Sequencer {
    /// The agent starts a call, or repeats the start of one.
    pub(crate) fn start_call(&mut self, owner: OwnerId, id: &str, name: &str) -> Started {
        if let Some(index) = self.same_call(owner, id, name) {
            return Started::Again(index);
        }
        self.start_run();
        self.close_reasoning(owner);
        self.close_texts(owner);
        let index = CallIndex(self.calls.len());
        let resumed = self.resumed.get(id).cloned();
        let visible = resumed.is_none();
        let wire = match resumed {
            Some(earlier) => earlier.wire,
            None => self.fresh_call_id(id),
        };
        let parent = visible.then(|| self.carrier(owner));
        self.calls.push(Call {
            owner,
            id: id.to_owned(),
            wire: wire.clone(),
            name: name.to_owned(),
            parent,
            arguments: String::new(),
            encrypted: None,
            phase: CallPhase::Open,
            results: 0,
            epoch: self.owners[owner.0].epoch,
            visible,
        });
        let state = &mut self.owners[owner.0];
        state.open_calls.push(index);
        state.calls.insert(id.to_owned(), index);
        self.used.insert(wire);
        self.push_start(index);
        Started::New(index)
    }

    /// The call that a repeated start names: the latest under this id that has no result and
    /// belongs to the same model call. A blank id names nothing once its call was ended.
    fn same_call(&self, owner: OwnerId, id: &str, name: &str) -> Option<CallIndex> {
        let state = &self.owners[owner.0];
        let index = *state.calls.get(id)?;
        let call = &self.calls[index.0];
        let same = if id.trim().is_empty() {
            call.phase == CallPhase::Open && call.name == name
        } else {
            call.results == 0 && call.epoch == state.epoch
        };
        same.then_some(index)
    }

    /// The agent's id if the client can have it, else a minted one.
    fn fresh_call_id(&mut self, id: &str) -> ToolCallId {
        if !id.trim().is_empty() && !self.used.contains(id) {
            return ToolCallId::from(id);
        }
        ToolCallId::from(self.ids.next_id())
    }

    /// The assistant message that the owner's calls hang on; a minted id if no text is there.
    fn carrier(&mut self, owner: OwnerId) -> MessageId {
        if let Some(id) = &self.owners[owner.0].carrier {
            return id.clone();
        }
        let id = self.next_message_id();
        self.owners[owner.0].carrier = Some(id.clone());
        id
    }

    fn push_start(&mut self, index: CallIndex) {
        let call = &self.calls[index.0];
        if !call.visible {
            return;
        }
        self.out.push(Event::new(Body::ToolCallStart {
            tool_call_id: call.wire.clone(),
            tool_call_name: call.name.clone(),
            parent_message_id: call.parent.clone(),
            subagent_run_id: self.owners[call.owner.0].tag.clone(),
        }));
    }

    /// More argument text; `false` = the call was never started. Text for a call that was closed
    /// meanwhile opens it again: the client appends.
    pub(crate) fn call_args(&mut self, owner: OwnerId, id: &str, delta: &str) -> bool {
        let Some(&index) = self.owners[owner.0].calls.get(id) else { return false };
        if delta.is_empty() || self.phase == Phase::Ended {
            return true;
        }
        let (emit, tag) = (self.emit_args, self.tag(owner));
        let call = &mut self.calls[index.0];
        call.arguments.push_str(delta);
        if !emit || !call.visible {
            return true;
        }
        if call.phase == CallPhase::Closed {
            call.phase = CallPhase::EndHeld;
            let state = &mut self.owners[owner.0];
            state.open_calls.push(index);
            state.held_ends += 1;
            self.close_reasoning(owner);
            self.close_texts(owner);
            self.push_start(index);
        }
        let tool_call_id = self.calls[index.0].wire.clone();
        self.out.push(Event::new(Body::ToolCallArgs {
            tool_call_id,
            delta: delta.to_owned(),
            subagent_run_id: tag,
        }));
        true
    }

    /// The agent ended a call. TOOL_CALL_END waits for the owner's next event that is not about
    /// arguments, since the agent may start the same call again.
    pub(crate) fn end_call(&mut self, owner: OwnerId, id: &str, encrypted: Option<&str>) {
        let Some(&index) = self.owners[owner.0].calls.get(id) else { return };
        let call = &mut self.calls[index.0];
        if let Some(value) = encrypted {
            call.encrypted = Some(value.to_owned());
        }
        if call.phase == CallPhase::Open {
            call.phase = CallPhase::EndHeld;
            self.owners[owner.0].held_ends += 1;
        }
    }

    /// Sends the ends that wait, in start order.
    pub(crate) fn flush_call_ends(&mut self, owner: OwnerId) {
        if self.owners[owner.0].held_ends == 0 {
            return;
        }
        self.owners[owner.0].held_ends = 0;
        let open = std::mem::take(&mut self.owners[owner.0].open_calls);
        for index in open {
            if self.calls[index.0].phase == CallPhase::EndHeld {
                self.push_end(index);
            } else {
                self.owners[owner.0].open_calls.push(index);
            }
        }
    }

    pub(super) fn close_calls(&mut self, owner: OwnerId) {
        self.owners[owner.0].held_ends = 0;
        for index in std::mem::take(&mut self.owners[owner.0].open_calls) {
            self.push_end(index);
        }
    }

    fn close_call(&mut self, index: CallIndex) {
        let owner = self.calls[index.0].owner;
        self.flush_call_ends(owner);
        let open = &mut self.owners[owner.0].open_calls;
        if let Some(at) = open.iter().position(|other| *other == index) {
            open.remove(at);
            self.push_end(index);
        }
    }

    fn push_end(&mut self, index: CallIndex) {
        let call = &mut self.calls[index.0];
        call.phase = CallPhase::Closed;
        let encrypted = call.encrypted.take();
        let call = &self.calls[index.0];
        if !call.visible {
            return;
        }
        let tag = self.owners[call.owner.0].tag.clone();
        self.out.push(Event::new(Body::ToolCallEnd {
            tool_call_id: call.wire.clone(),
            subagent_run_id: tag.clone(),
        }));
        if let Some(encrypted_value) = encrypted {
            self.out.push(Event::new(Body::ReasoningEncryptedValue {
                subtype: EncryptedSubtype::ToolCall,
                entity_id: call.wire.as_str().to_owned(),
                encrypted_value,
                subagent_run_id: tag,
            }));
        }
    }

    /// Answers a call: of this run (closed first), of an earlier one (the result alone, TOOL-14),
    /// or one nobody started (its start and end first).
    pub(crate) fn call_result(
        &mut self,
        owner: OwnerId,
        id: &str,
        name: &str,
        content: Content,
        metadata: Object,
    ) {
        if self.phase == Phase::Ended {
            return;
        }
        self.start_run();
        self.flush_call_ends(owner);
        let (tool_call_id, subagent_run_id) = self.answered_call(owner, id, name);
        self.new_turn(owner);
        let message_id = self.next_message_id();
        let mut event = Event::new(Body::ToolCallResult {
            message_id,
            tool_call_id,
            content,
            role: Some(ToolRole::Tool),
            subagent_run_id,
        });
        if !metadata.is_empty() {
            event.metadata = Some(metadata);
        }
        self.out.push(event);
    }

    fn answered_call(
        &mut self,
        owner: OwnerId,
        id: &str,
        name: &str,
    ) -> (ToolCallId, Option<SubagentRunId>) {
        if let Some(index) = self.call_of(owner, id) {
            self.close_call(index);
            let call = &mut self.calls[index.0];
            call.results += 1;
            return (call.wire.clone(), self.owners[call.owner.0].tag.clone());
        }
        if let Some(Earlier { wire, tag }) = self.resumed.get(id).cloned() {
            return (wire, tag);
        }
        if let Some(known) = self.used.get(id) {
            return (known.clone(), self.tag(owner));
        }
        let name = if name.is_empty() { UNKNOWN_TOOL } else { name };
        let (Started::New(index) | Started::Again(index)) = self.start_call(owner, id, name);
        self.close_call(index);
        self.calls[index.0].results += 1;
        (self.calls[index.0].wire.clone(), self.tag(owner))
    }

    /// The call under the agent's own id: the owner's, else anybody's.
    pub(crate) fn call_of(&self, owner: OwnerId, id: &str) -> Option<CallIndex> {
        let own = self.owners[owner.0].calls.get(id);
        own.or_else(|| self.owners.iter().find_map(|other| other.calls.get(id))).copied()
    }

    /// Who made the call that an event of `owner` is about: itself, or the one that did.
    pub(crate) fn owner_of_call(&self, owner: OwnerId, id: &str) -> OwnerId {
        self.call_of(owner, id).map_or(owner, |index| self.calls[index.0].owner)
    }

    /// The calls of an owner that this run started and nobody has answered, in start order.
    pub(crate) fn unanswered_of(&self, owner: OwnerId) -> Vec<CallIndex> {
        (0..self.calls.len())
            .filter(|&at| self.calls[at].owner == owner && self.calls[at].results == 0)
            .map(CallIndex)
            .collect()
    }

    /// All calls that this run started and nobody has answered, as the client knows them, in
    /// start order (LIFE-16).
    pub(crate) fn unanswered(&self) -> Vec<ToolCallId> {
        let open = self.calls.iter().filter(|call| call.results == 0 && call.visible);
        open.map(|call| call.wire.clone()).collect()
    }

    /// Whether the call has an answer.
    pub(crate) fn answered(&self, index: CallIndex) -> bool {
        self.calls[index.0].results > 0
    }

    /// The call's argument text so far.
    pub(crate) fn arguments(&self, index: CallIndex) -> &str {
        &self.calls[index.0].arguments
    }

    /// The agent's own id of the call.
    pub(crate) fn call_id(&self, index: CallIndex) -> &str {
        &self.calls[index.0].id
    }

    /// Whether the owner made a call under this id.
    pub(crate) fn owns_call(&self, owner: OwnerId, id: &str) -> bool {
        self.owners[owner.0].calls.contains_key(id)
    }

    /// The call's tool.
    pub(crate) fn call_name(&self, index: CallIndex) -> &str {
        &self.calls[index.0].name
    }

    /// The id that the client knows a call by; `id` itself if the call is not known here.
    pub(crate) fn wire_id(&self, owner: OwnerId, id: &str) -> ToolCallId {
        if let Some(index) = self.call_of(owner, id) {
            return self.calls[index.0].wire.clone();
        }
        self.resumed.get(id).map_or_else(|| ToolCallId::from(id), |earlier| earlier.wire.clone())
    }

    /// Makes sure that the client has a call that is about to be asked about: one nobody started
    /// gets its start, arguments and end.
    pub(crate) fn ensure_call(&mut self, owner: OwnerId, id: &str, name: &str, arguments: &str) {
        let known = self.call_of(owner, id).is_some()
            || self.resumed.contains_key(id)
            || self.used.contains(id);
        if known || self.phase == Phase::Ended {
            return;
        }
        self.start_call(owner, id, if name.is_empty() { UNKNOWN_TOOL } else { name });
        self.call_args(owner, id, arguments);
        self.end_call(owner, id, None);
    }
}

/// Name of a tool whose call was never started and whose result does not name it.
const UNKNOWN_TOOL: &str = "unknown_tool";
