//! The sequencer: events leave the adapter through it. The one exception is a whole event that a
//! program's converter sends, which is only put behind the others here; the gate looks at it.
//!
//! It knows which messages, reasoning blocks, tool calls and steps are open and whose they are,
//! mints every id, closes what has to be closed before something else opens, and puts the
//! boundary events. Our converters tell it what happened and cannot make it emit a stream that is
//! out of order. It knows no transport, no AgentScope event and no option but
//! `emit-tool-call-args`.

mod call;
mod ending;
mod owner;

use std::collections::HashMap;

use agui_protocol::{
    Body, Event, Message, MessageId, PROTOCOL_VERSION, RunAgentInput, RunId, SubagentRunId,
    ThreadId, ToolCallId, event::EncryptedSubtype, event::ReasoningRole, event::TextRole,
};

pub(crate) use call::CallIndex;
pub(crate) use ending::OwnerEnd;
pub use ending::RunFailure;
pub(crate) use owner::OwnerId;
use owner::{OpenBlock, Owner};

use crate::model::event::Object;

/// Mints ids; passed in so that streams are reproducible.
pub trait IdSource: Send {
    /// A fresh id, unique over every thread.
    fn next_id(&mut self) -> String;
}

/// What `RUN_STARTED` will say.
pub(crate) struct Opening {
    pub(crate) parent_run_id: Option<RunId>,
    pub(crate) echo: Option<Box<RunAgentInput>>,
    pub(crate) metadata: Object,
}

/// A call of an earlier run that this run may answer.
#[derive(Clone, Debug)]
pub(crate) struct Earlier {
    /// The agent's own id.
    pub(crate) id: String,
    pub(crate) wire: ToolCallId,
    pub(crate) tag: Option<SubagentRunId>,
    pub(crate) tool: String,
    /// It has its result: a run that failed later gave it.
    pub(crate) settled: bool,
}

/// What is known of a call of the thread.
struct KnownCall {
    tag: Option<SubagentRunId>,
    tool: String,
    answered: bool,
}

/// See the module documentation.
pub(crate) struct Sequencer {
    out: Vec<Event>,
    ids: Box<dyn IdSource>,
    thread_id: ThreadId,
    run_id: RunId,
    /// Until RUN_STARTED is sent.
    opening: Option<Opening>,
    ended: bool,
    owners: Vec<Owner>,
    calls: Vec<call::Call>,
    /// The first owner of a call under each of the agents' own ids.
    holders: HashMap<String, OwnerId>,
    /// Calls that the thread knows, under the client's ids.
    used: HashMap<ToolCallId, KnownCall>,
    /// Calls that this run's resume answers and that have no answer yet, and those that an earlier
    /// run settled.
    resumed: Vec<Earlier>,
    /// Arguments reach the client. Their events are made in any case, for the transcript.
    shows_args: bool,
}

/// Which block of the agent a piece of text belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockKey<'a> {
    pub(crate) reply: &'a str,
    pub(crate) block: &'a str,
}

impl Sequencer {
    pub(crate) fn new(
        input: &RunAgentInput,
        history: &[Message],
        opening: Opening,
        resumed: Vec<Earlier>,
        shows_args: bool,
        ids: Box<dyn IdSource>,
    ) -> Self {
        let mut used = known_calls(history);
        for call in &resumed {
            // A tool message beside the resume does not count: the answer is still to come.
            let (tag, tool) = (call.tag.clone(), call.tool.clone());
            used.insert(call.wire.clone(), KnownCall { tag, tool, answered: call.settled });
        }
        Self {
            out: Vec::new(),
            ids,
            thread_id: input.thread_id.clone(),
            run_id: input.run_id.clone(),
            opening: Some(opening),
            ended: false,
            owners: vec![Owner::root()],
            calls: Vec::new(),
            holders: HashMap::new(),
            used,
            resumed,
            shows_args,
        }
    }

    /// The events that have not left, in order.
    pub(crate) fn pending(&mut self) -> &mut Vec<Event> {
        &mut self.out
    }

    pub(crate) fn thread_id(&self) -> &ThreadId {
        &self.thread_id
    }

    pub(crate) fn run_id(&self) -> &RunId {
        &self.run_id
    }

    pub(crate) fn ended(&self) -> bool {
        self.ended
    }

    pub(crate) fn next_message_id(&mut self) -> MessageId {
        MessageId::from(self.ids.next_id())
    }

    /// Sends `RUN_STARTED`, unless it was sent (LIFE-1, LIFE-5).
    pub(crate) fn start_run(&mut self) {
        let Some(Opening { parent_run_id, echo, metadata }) = self.opening.take() else { return };
        let body = Body::RunStarted {
            thread_id: self.thread_id.clone(),
            run_id: self.run_id.clone(),
            protocol_version: Some(PROTOCOL_VERSION.to_owned()),
            parent_run_id,
            input: echo,
        };
        self.out.push(with_metadata(body, metadata));
    }

    /// Sends an event that opens and closes nothing: CUSTOM, RAW, state, activity. `body` gets
    /// the owner's tag.
    pub(crate) fn emit(
        &mut self,
        owner: OwnerId,
        body: impl FnOnce(Option<SubagentRunId>) -> Body,
    ) {
        self.emit_with(owner, Object::new(), body);
    }

    /// The same with metadata.
    pub(crate) fn emit_with(
        &mut self,
        owner: OwnerId,
        metadata: Object,
        body: impl FnOnce(Option<SubagentRunId>) -> Body,
    ) {
        if self.ended {
            return;
        }
        self.start_run();
        self.flush_call_ends(owner);
        let tag = self.tag(owner);
        self.out.push(with_metadata(body(tag), metadata));
    }

    /// More text of a block; opens its message at the first character (TXT-7). Text closes
    /// reasoning, and held tool calls, of the same owner.
    pub(crate) fn text(&mut self, owner: OwnerId, key: BlockKey<'_>, delta: &str) {
        if delta.is_empty() || self.ended {
            return;
        }
        let message_id = match self.owners[owner.0].text(key) {
            // Reasoning closes texts, so none is open beside one.
            Some(open) => {
                let id = open.message_id.clone();
                self.flush_call_ends(owner);
                id
            }
            None => self.open_text(owner, key),
        };
        let subagent_run_id = self.tag(owner);
        self.out.push(Event::new(Body::TextMessageContent {
            message_id,
            delta: delta.to_owned(),
            subagent_run_id,
        }));
    }

    fn open_text(&mut self, owner: OwnerId, key: BlockKey<'_>) -> MessageId {
        self.start_run();
        self.close_reasoning(owner);
        self.flush_call_ends(owner);
        let message_id = self.next_message_id();
        let state = &mut self.owners[owner.0];
        state.texts.push(OpenBlock::new(key, message_id.clone()));
        state.carrier = Some(message_id.clone());
        let subagent_run_id = state.tag.clone();
        self.out.push(Event::new(Body::TextMessageStart {
            message_id: message_id.clone(),
            role: Some(TextRole::Assistant),
            name: None,
            subagent_run_id,
        }));
        message_id
    }

    /// A text block ended. Nothing happens if it never had a character.
    pub(crate) fn end_text(&mut self, owner: OwnerId, key: BlockKey<'_>) {
        self.flush_call_ends(owner);
        let state = &mut self.owners[owner.0];
        if let Some(at) = state.texts.iter().position(|open| open.is(key)) {
            let open = state.texts.remove(at);
            self.push_text_end(owner, open.message_id);
        }
    }

    fn close_texts(&mut self, owner: OwnerId) {
        for open in std::mem::take(&mut self.owners[owner.0].texts) {
            self.push_text_end(owner, open.message_id);
        }
    }

    fn push_text_end(&mut self, owner: OwnerId, message_id: MessageId) {
        let subagent_run_id = self.tag(owner);
        self.out.push(Event::new(Body::TextMessageEnd { message_id, subagent_run_id }));
    }

    /// More thinking of a block: REASONING_START and a message around it (REAS-1). Thinking
    /// closes text, other thinking, and held tool calls, of the same owner.
    pub(crate) fn reasoning(&mut self, owner: OwnerId, key: BlockKey<'_>, delta: &str) {
        if delta.is_empty() || self.ended {
            return;
        }
        let open = self.owners[owner.0].reasoning.as_ref().filter(|open| open.is(key));
        let message_id = match open {
            Some(open) => {
                let id = open.message_id.clone();
                self.flush_call_ends(owner);
                id
            }
            None => self.open_reasoning(owner, key),
        };
        let subagent_run_id = self.tag(owner);
        self.out.push(Event::new(Body::ReasoningMessageContent {
            message_id,
            delta: delta.to_owned(),
            subagent_run_id,
        }));
    }

    fn open_reasoning(&mut self, owner: OwnerId, key: BlockKey<'_>) -> MessageId {
        self.start_run();
        self.close_reasoning(owner);
        self.close_texts(owner);
        self.flush_call_ends(owner);
        let message_id = self.next_message_id();
        self.owners[owner.0].reasoning = Some(OpenBlock::new(key, message_id.clone()));
        let tag = self.tag(owner);
        self.out.push(Event::new(Body::ReasoningStart {
            message_id: message_id.clone(),
            subagent_run_id: tag.clone(),
        }));
        self.out.push(Event::new(Body::ReasoningMessageStart {
            message_id: message_id.clone(),
            role: ReasoningRole::Reasoning,
            subagent_run_id: tag,
        }));
        message_id
    }

    /// A thinking block ended, perhaps with an opaque artefact of the provider (REAS-8); an
    /// artefact without thinking gets a message of its own to hang on.
    pub(crate) fn end_reasoning(
        &mut self,
        owner: OwnerId,
        key: BlockKey<'_>,
        encrypted: Option<&str>,
    ) {
        if self.ended {
            return;
        }
        let is_open = self.owners[owner.0].reasoning.as_ref().is_some_and(|open| open.is(key));
        if encrypted.is_some() && !is_open {
            self.open_reasoning(owner, key);
        } else if is_open {
            self.flush_call_ends(owner);
        } else {
            return;
        }
        self.close_reasoning_with(owner, encrypted);
    }

    fn close_reasoning(&mut self, owner: OwnerId) {
        self.close_reasoning_with(owner, None);
    }

    fn close_reasoning_with(&mut self, owner: OwnerId, encrypted: Option<&str>) {
        let Some(open) = self.owners[owner.0].reasoning.take() else { return };
        let tag = self.tag(owner);
        self.out.push(Event::new(Body::ReasoningMessageEnd {
            message_id: open.message_id.clone(),
            subagent_run_id: tag.clone(),
        }));
        if let Some(value) = encrypted {
            self.out.push(Event::new(Body::ReasoningEncryptedValue {
                subtype: EncryptedSubtype::Message,
                entity_id: open.message_id.as_str().to_owned(),
                encrypted_value: value.to_owned(),
                subagent_run_id: tag.clone(),
            }));
        }
        self.out.push(Event::new(Body::ReasoningEnd {
            message_id: open.message_id,
            subagent_run_id: tag,
        }));
    }

    /// A model call begins or a tool answered: calls made from now on belong to another
    /// assistant message (TXT-9).
    pub(crate) fn new_turn(&mut self, owner: OwnerId) {
        self.owners[owner.0].carrier = None;
    }

    /// A model call begins: a call id used before is from now on another call.
    pub(crate) fn new_model_call(&mut self, owner: OwnerId) {
        self.flush_call_ends(owner);
        self.new_turn(owner);
        self.owners[owner.0].epoch += 1;
    }

    /// A step begins; ignored while one of this name is open (LIFE-28).
    pub(crate) fn start_step(&mut self, owner: OwnerId, name: &str) {
        if self.ended || self.owners[owner.0].steps.iter().any(|s| s == name) {
            return;
        }
        self.owners[owner.0].steps.push(name.to_owned());
        let step_name = name.to_owned();
        self.emit(owner, |subagent_run_id| Body::StepStarted { step_name, subagent_run_id });
    }

    /// A step ends; ignored if none of this name is open.
    pub(crate) fn finish_step(&mut self, owner: OwnerId, name: &str) {
        let steps = &mut self.owners[owner.0].steps;
        let Some(at) = steps.iter().position(|step| step == name) else { return };
        let step_name = steps.remove(at);
        self.emit(owner, |subagent_run_id| Body::StepFinished { step_name, subagent_run_id });
    }

    /// Adds an owner: a sub-agent's invocation. `announce` = SUBAGENT_STARTED is sent for it.
    pub(crate) fn add_owner(
        &mut self,
        tag: Option<SubagentRunId>,
        announce: Option<Announcement>,
    ) -> OwnerId {
        let owner = OwnerId(self.owners.len());
        let announced = announce.is_some();
        if let (Some(a), Some(id), false) = (announce, tag.clone(), self.ended()) {
            self.start_run();
            self.flush_call_ends(a.parent);
            self.out.push(Event::new(Body::SubagentStarted {
                subagent_run_id: id,
                name: a.name,
                description: None,
                parent_subagent_run_id: self.tag(a.parent),
                parent_tool_call_id: a.call.map(|call| self.calls[call.0].wire.clone()),
                parent_message_id: a.call.and_then(|call| self.calls[call.0].parent.clone()),
            }));
        }
        self.owners.push(Owner::child(tag, announced));
        owner
    }

    /// The sub-agent's id that tags the owner's events.
    pub(crate) fn tag(&self, owner: OwnerId) -> Option<SubagentRunId> {
        self.owners[owner.0].tag.clone()
    }

    /// Closes text, reasoning, calls and steps of one owner, in this order.
    pub(crate) fn close_items(&mut self, owner: OwnerId) {
        self.close_texts(owner);
        self.close_reasoning(owner);
        self.close_calls(owner);
        for step_name in std::mem::take(&mut self.owners[owner.0].steps).into_iter().rev() {
            let subagent_run_id = self.tag(owner);
            self.out.push(Event::new(Body::StepFinished { step_name, subagent_run_id }));
        }
    }
}

/// What `SUBAGENT_STARTED` says beside the id.
pub(crate) struct Announcement {
    pub(crate) name: String,
    pub(crate) parent: OwnerId,
    pub(crate) call: Option<CallIndex>,
}

/// An event, with its metadata if there are any.
pub(crate) fn with_metadata(body: Body, metadata: Object) -> Event {
    Event { metadata: (!metadata.is_empty()).then_some(metadata), ..Event::new(body) }
}

/// The calls in the thread's messages, those that only a tool message names too.
fn known_calls(messages: &[Message]) -> HashMap<ToolCallId, KnownCall> {
    let mut known: HashMap<ToolCallId, KnownCall> = HashMap::new();
    for message in messages {
        let tag = message.base().subagent_run_id.clone();
        match message {
            Message::Assistant { tool_calls, .. } => {
                for call in tool_calls {
                    let answered = known.get(&call.id).is_some_and(|before| before.answered);
                    let (tag, tool) = (tag.clone(), call.function.name.clone());
                    known.insert(call.id.clone(), KnownCall { tag, tool, answered });
                }
            }
            Message::Tool { tool_call_id, .. } => {
                let unnamed = || KnownCall { tag, tool: String::new(), answered: true };
                known.entry(tool_call_id.clone()).or_insert_with(unnamed).answered = true;
            }
            _ => {}
        }
    }
    known
}
