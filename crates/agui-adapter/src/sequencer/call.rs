//! Tool calls: one AG-UI call per call of the agent, however often the agent repeats its start
//! and end, under an id that is unique over the thread.

use agui_protocol::{
    Body, Content, Event, MessageId, SubagentRunId, ToolCallId,
    event::{EncryptedSubtype, ToolRole},
};

use super::{Earlier, KnownCall, Owner, OwnerId, Sequencer, with_metadata};
use crate::model::event::Object;

/// A call that this run started, in start order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    /// Until the call is answered: only of calls that wait does anybody ask.
    arguments: String,
    encrypted: Option<String>,
    phase: CallPhase,
    answered: bool,
    epoch: u32,
    /// False for a call of an earlier run that the agent announced again: the client has it.
    visible: bool,
}

/// An answered call as the client knows it, and whose it is.
type Answered = (ToolCallId, Option<SubagentRunId>);

/// The call that a result names.
enum Target {
    /// One of this run.
    Own(CallIndex),
    /// One that this run's resume answers, by its place.
    Resumed(usize),
    /// Another one of the thread's.
    History(ToolCallId),
    /// None that is known.
    Unknown,
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
        let resumed = self.resumed_call(owner, id).map(|at| &self.resumed[at]);
        // A settled call is over: this is another one under its id.
        let resumed = resumed.filter(|call| !call.settled).map(|call| call.wire.clone());
        let visible = resumed.is_none();
        let wire = resumed.unwrap_or_else(|| self.fresh_call_id(id));
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
            answered: false,
            epoch: self.owners[owner.0].epoch,
            visible,
        });
        let state = &mut self.owners[owner.0];
        state.open_calls.push(index);
        state.unanswered.insert(index);
        state.calls.entry(id.to_owned()).or_default().push(index);
        let known = KnownCall { tag: state.tag.clone(), tool: name.to_owned(), answered: false };
        self.used.insert(wire, known);
        self.note_holder(owner, id);
        self.push_start(index);
        Started::New(index)
    }

    /// The call that a repeated start names: the latest under this id, of the same tool, that has
    /// no result and belongs to the same model call. A blank id names nothing once its call was
    /// ended.
    fn same_call(&self, owner: OwnerId, id: &str, name: &str) -> Option<CallIndex> {
        let index = self.own_call(owner, id)?;
        let call = &self.calls[index.0];
        let goes_on = if id.trim().is_empty() {
            call.phase == CallPhase::Open
        } else {
            !call.answered && call.epoch == self.owners[owner.0].epoch
        };
        (goes_on && call.name == name).then_some(index)
    }

    /// The owner's latest call under this id.
    fn own_call(&self, owner: OwnerId, id: &str) -> Option<CallIndex> {
        self.owners[owner.0].calls.get(id)?.last().copied()
    }

    /// Where the call of an earlier run stands that this owner names. The root's events may speak
    /// for its children's calls too.
    fn resumed_call(&self, owner: OwnerId, id: &str) -> Option<usize> {
        let tag = &self.owners[owner.0].tag;
        let own = self.resumed.iter().position(|call| call.id == id && call.tag == *tag);
        let any = || self.resumed.iter().position(|call| call.id == id);
        own.or_else(|| (owner == OwnerId::ROOT).then(any).flatten())
    }

    /// The agent's id if the client can have it, else a minted one.
    fn fresh_call_id(&mut self, id: &str) -> ToolCallId {
        if !id.trim().is_empty() && id.len() <= MAX_ID && !self.used.contains_key(id) {
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
        let Some(index) = self.own_call(owner, id) else { return false };
        if delta.is_empty() || self.ended {
            return true;
        }
        let (shown, tag) = (self.shows_args, self.tag(owner));
        let call = &mut self.calls[index.0];
        if !call.answered {
            call.arguments.push_str(delta);
        }
        if !call.visible {
            return true;
        }
        if shown && call.phase == CallPhase::Closed {
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
        let Some(index) = self.own_call(owner, id) else { return };
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
    /// or one nobody started (its start and end first). `false` = the call has its answer, and a
    /// client takes no second one (TOOL-15).
    pub(crate) fn call_result(
        &mut self,
        owner: OwnerId,
        id: &str,
        name: &str,
        content: Content,
        metadata: Object,
    ) -> bool {
        if self.ended {
            return true;
        }
        self.start_run();
        self.flush_call_ends(owner);
        let Some(answered) = self.answer(owner, id, name) else { return false };
        self.new_turn(owner);
        self.push_result(answered, content, metadata);
        true
    }

    /// Answers a call of an earlier run under the client's id, unless it has its answer in this
    /// run. A settled call is answered again.
    pub(crate) fn earlier_result(&mut self, wire: &ToolCallId, content: Content, metadata: Object) {
        self.start_run();
        self.flush_call_ends(OwnerId::ROOT);
        let again = self.calls.iter().position(|call| call.wire == *wire);
        let answered = match again {
            Some(at) => self.answer_own(CallIndex(at)),
            None => {
                let at = self.resumed.iter().position(|call| call.wire == *wire);
                at.map(|at| self.answer_resumed(at))
            }
        };
        if let Some(answered) = answered {
            self.push_result(answered, content, metadata);
        }
    }

    fn push_result(&mut self, answered: Answered, content: Content, metadata: Object) {
        let (tool_call_id, subagent_run_id) = answered;
        let message_id = self.next_message_id();
        let body = Body::ToolCallResult {
            message_id,
            tool_call_id,
            content,
            role: Some(ToolRole::Tool),
            subagent_run_id,
        };
        self.out.push(with_metadata(body, metadata));
    }

    /// The call that a result names.
    fn target(&self, owner: OwnerId, id: &str, name: &str) -> Target {
        if let Some(index) = self.to_answer(&self.owners[owner.0], id, name) {
            return Target::Own(index);
        }
        if let Some(at) = self.resumed_call(owner, id) {
            return Target::Resumed(at);
        }
        let tag = &self.owners[owner.0].tag;
        if let Some((wire, _)) = self.used.get_key_value(id).filter(|(_, call)| call.tag == *tag) {
            return Target::History(wire.clone());
        }
        let theirs = self.holder(owner, id).and_then(|other| self.to_answer(other, id, name));
        theirs.map_or(Target::Unknown, Target::Own)
    }

    /// Marks the call that a result names as answered; `None` = it was before.
    fn answer(&mut self, owner: OwnerId, id: &str, name: &str) -> Option<Answered> {
        match self.target(owner, id, name) {
            Target::Own(index) => self.answer_own(index),
            Target::Resumed(at) if self.resumed[at].settled => None,
            Target::Resumed(at) => Some(self.answer_resumed(at)),
            Target::History(wire) => {
                let first = self.settle(&wire);
                first.then(|| (wire, self.tag(owner)))
            }
            Target::Unknown => {
                let name = if name.is_empty() { UNKNOWN_TOOL } else { name };
                let (Started::New(index) | Started::Again(index)) =
                    self.start_call(owner, id, name);
                self.answer_own(index)
            }
        }
    }

    fn answer_resumed(&mut self, at: usize) -> Answered {
        let call = &self.resumed[at];
        if call.settled {
            return (call.wire.clone(), call.tag.clone());
        }
        let Earlier { wire, tag, .. } = self.resumed.remove(at);
        self.settle(&wire);
        (wire, tag)
    }

    /// Notes that a call of the thread has its answer; `false` = it had one.
    fn settle(&mut self, wire: &ToolCallId) -> bool {
        let Some(call) = self.used.get_mut(wire) else { return false };
        !std::mem::replace(&mut call.answered, true)
    }

    fn answer_own(&mut self, index: CallIndex) -> Option<Answered> {
        if self.calls[index.0].answered {
            return None;
        }
        self.close_call(index);
        let call = &mut self.calls[index.0];
        call.answered = true;
        call.arguments = String::new();
        self.owners[call.owner.0].unanswered.remove(&index);
        let (owner, id, wire) = (call.owner, call.id.clone(), call.wire.clone());
        self.forget_answered(owner, &id);
        self.resumed.retain(|earlier| earlier.wire != wire);
        self.settle(&wire);
        Some((wire, self.tag(owner)))
    }

    /// Of the calls under one id only the latest is kept once it is answered.
    fn forget_answered(&mut self, owner: OwnerId, id: &str) {
        let Some(calls) = self.owners[owner.0].calls.get_mut(id) else { return };
        let latest = calls.last().copied();
        calls.retain(|call| !self.calls[call.0].answered || Some(*call) == latest);
    }

    /// The call of an owner that a result names. Of several under one id: of the latest model call
    /// the first without an answer, if possible one of the tool that the result names.
    fn to_answer(&self, owner: &Owner, id: &str, name: &str) -> Option<CallIndex> {
        let calls = owner.calls.get(id)?;
        let call = |index: &&CallIndex| &self.calls[index.0];
        let open = || calls.iter().filter(|index| !call(index).answered);
        let Some(epoch) = open().map(|index| call(&index).epoch).max() else {
            return calls.last().copied();
        };
        let mut latest = open().filter(|index| call(index).epoch == epoch);
        let named = latest.clone().find(|index| call(index).name == name);
        named.or_else(|| latest.next()).copied()
    }

    /// The latest call under the agent's own id: the owner's, else, for the root, anybody's.
    pub(crate) fn call_of(&self, owner: OwnerId, id: &str) -> Option<CallIndex> {
        let others = || self.holder(owner, id)?.calls.get(id)?.last().copied();
        self.own_call(owner, id).or_else(others)
    }

    /// The tool of the call that a result names; `name` itself if nobody made the call.
    pub(crate) fn tool_to_answer<'a>(&'a self, owner: OwnerId, id: &str, name: &'a str) -> &'a str {
        match self.target(owner, id, name) {
            Target::Own(index) => self.call_name(index),
            Target::Resumed(at) => &self.resumed[at].tool,
            Target::History(wire) => self.used.get(&wire).map_or(name, |call| call.tool.as_str()),
            Target::Unknown => name,
        }
    }

    /// The calls of an owner that this run started and nobody has answered, in start order.
    pub(crate) fn unanswered_of(&self, owner: OwnerId) -> Vec<CallIndex> {
        self.owners[owner.0].unanswered.iter().copied().collect()
    }

    /// Whether there are such calls of the owner.
    pub(crate) fn is_waiting(&self, owner: OwnerId) -> bool {
        !self.owners[owner.0].unanswered.is_empty()
    }

    /// All calls that this run started and nobody has answered, as the client knows them, in
    /// start order (LIFE-16).
    pub(crate) fn unanswered(&self) -> Vec<ToolCallId> {
        let open = self.calls.iter().filter(|call| !call.answered && call.visible);
        open.map(|call| call.wire.clone()).collect()
    }

    /// Whose those calls are, and their tools.
    pub(crate) fn unanswered_tools(&self) -> impl Iterator<Item = (OwnerId, &str)> {
        let open = self.calls.iter().filter(|call| !call.answered && call.visible);
        open.map(|call| (call.owner, call.name.as_str()))
    }

    /// The call's argument text so far; empty once it is answered.
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
        if let Some(index) = self.own_call(owner, id) {
            return self.calls[index.0].wire.clone();
        }
        if let Some(at) = self.resumed_call(owner, id) {
            return self.resumed[at].wire.clone();
        }
        let other = self.call_of(owner, id);
        other.map_or_else(|| ToolCallId::from(id), |index| self.calls[index.0].wire.clone())
    }

    /// Shows a call that is about to be asked about, unless the client has it and it still waits.
    pub(crate) fn ensure_call(&mut self, owner: OwnerId, id: &str, name: &str, arguments: &str) {
        let tag = &self.owners[owner.0].tag;
        let known = self.call_of(owner, id).is_some()
            || self.resumed_call(owner, id).is_some_and(|at| !self.resumed[at].settled)
            || self.used.get(id).is_some_and(|call| call.tag == *tag && !call.answered);
        if known || self.ended {
            return;
        }
        self.start_call(owner, id, if name.is_empty() { UNKNOWN_TOOL } else { name });
        self.call_args(owner, id, arguments);
        self.end_call(owner, id, None);
    }
}

/// The longest call id in bytes that clients are given: it stands in every event of the call.
const MAX_ID: usize = 1024;

/// Name of a tool whose call was never started and whose result does not name it.
const UNKNOWN_TOOL: &str = "unknown_tool";
