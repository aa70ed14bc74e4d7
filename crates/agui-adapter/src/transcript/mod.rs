//! What a run adds to its thread: the messages that a client makes of the run's events, under the
//! ids that it sees.
//!
//! Fed with the events as the sequencer made them, before anything is hidden from the client or
//! cut for it. Follows the official client's rules for making messages of events. What is open at
//! the moment is in [`OpenItems`]; the thread's state is the adapter's ([`crate::outbound`]).

mod bound;
mod items;
mod onto;
mod open;

use std::collections::HashMap;

use agui_protocol::{
    Body, Content, Event, Message, MessageId, Object, PatchOperation, RunId, SubagentRunId,
    ThreadId, ToolCall, ToolCallId,
    event::{EncryptedSubtype, TextRole},
    message::{FunctionCall, MessageBase, ToolCallKind},
};
use serde_json::Value;

pub use bound::MAX_RECORDED;
pub use open::OpenItems;

use self::{bound::Bound, items::Entry};
use crate::{model::patch::apply_patch, truncate};

/// The messages of one run, complete up to the last event fed.
///
/// Adding a delta costs what the delta is long, whatever was recorded before. What is recorded is
/// bounded: see [`MAX_RECORDED`].
#[derive(Clone, Debug)]
pub struct Transcript {
    entries: Vec<Entry>,
    by_id: HashMap<MessageId, usize>,
    calls: HashMap<ToolCallId, CallPlace>,
    /// The entry that the last delta went to: the next one mostly goes there too.
    last: usize,
    bound: Bound,
}

/// Where a call is.
#[derive(Clone, Copy, Debug)]
struct CallPlace {
    entry: usize,
    at: usize,
    /// Its arguments were cut, so nothing more is added to them.
    cut: bool,
}

impl Transcript {
    /// Of a run that has said nothing; the ids are for the log.
    pub fn new(thread_id: ThreadId, run_id: RunId) -> Self {
        Self {
            entries: Vec::new(),
            by_id: HashMap::new(),
            calls: HashMap::new(),
            last: 0,
            bound: Bound::new(thread_id, run_id),
        }
    }

    /// Whether the run added no message.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The run's messages in the order in which a client has them that knows nothing else.
    /// Answers to calls of earlier runs stand where they came; [`Transcript::onto`] puts them
    /// behind their calls.
    pub fn messages(&self) -> impl Iterator<Item = &Message> {
        self.entries.iter().flat_map(|entry| std::iter::once(&entry.message).chain(&entry.answers))
    }

    /// Takes in one event. What adds nothing to messages, and what names a message or a call that
    /// this run did not begin, changes nothing.
    pub fn apply(&mut self, event: &Event) {
        if let Some(delta) = event.body.delta() {
            self.delta(event, delta);
        } else {
            self.other(event);
        }
        if self.bound.is_exceeded() {
            bound::shorten(self);
        }
    }

    fn delta(&mut self, event: &Event, delta: &str) {
        match &event.body {
            Body::ToolCallArgs { tool_call_id, .. } => self.arguments(tool_call_id, delta, event),
            Body::TextMessageContent { message_id, .. }
            | Body::ReasoningMessageContent { message_id, .. } => {
                self.text(message_id, delta, event);
            }
            _ => {}
        }
    }

    fn other(&mut self, event: &Event) {
        match &event.body {
            Body::TextMessageStart { message_id, role, name, subagent_run_id } => {
                let id = message_id.clone();
                let new = || text_message(id, *role, name.clone(), subagent_run_id.clone());
                self.begin(message_id, new, event);
            }
            Body::ReasoningMessageStart { message_id, subagent_run_id, .. } => {
                let (id, base) = (message_id.clone(), owned(subagent_run_id.clone()));
                let new = || Message::Reasoning { id, content: String::new(), base };
                self.begin(message_id, new, event);
            }
            Body::TextMessageEnd { message_id, .. }
            | Body::ReasoningMessageEnd { message_id, .. } => {
                if let Some(at) = self.find(message_id) {
                    self.entries[at].merge_metadata(event);
                }
            }
            Body::ToolCallStart { .. } => self.start_call(event),
            Body::ToolCallEnd { tool_call_id, .. } => {
                if let Some(call) = self.call_mut(tool_call_id) {
                    items::merge(&mut call.metadata, event.metadata.as_ref());
                }
            }
            Body::ToolCallResult { .. } => self.result(event),
            Body::ReasoningEncryptedValue { subtype, entity_id, encrypted_value, .. } => {
                self.encrypted(*subtype, entity_id, encrypted_value);
            }
            Body::ActivitySnapshot { .. } => self.activity(event),
            Body::ActivityDelta { message_id, activity_type, patch, .. } => {
                self.patch_activity(message_id, activity_type, patch, event);
            }
            _ => {}
        }
    }

    fn find(&self, id: &MessageId) -> Option<usize> {
        let last = self.entries.get(self.last).filter(|entry| entry.message.id() == id);
        last.map_or_else(|| self.by_id.get(id).copied(), |_| Some(self.last))
    }

    fn push(&mut self, message: Message) -> usize {
        let at = self.entries.len();
        self.bound.message();
        self.by_id.entry(message.id().clone()).or_insert(at);
        self.entries.push(Entry::new(message));
        self.last = at;
        at
    }

    /// A streamed message begins, or goes on.
    fn begin(&mut self, id: &MessageId, new: impl FnOnce() -> Message, event: &Event) {
        let at = self.find(id).unwrap_or_else(|| self.push(new()));
        self.last = at;
        self.entries[at].merge_metadata(event);
    }

    fn text(&mut self, id: &MessageId, delta: &str, event: &Event) {
        let Some(at) = self.find(id) else { return };
        self.last = at;
        let entry = &mut self.entries[at];
        if entry.append(delta) {
            self.bound.add(delta.len());
        }
        entry.merge_metadata(event);
    }

    fn call_mut(&mut self, id: &ToolCallId) -> Option<&mut ToolCall> {
        let place = self.calls.get(id)?;
        self.entries[place.entry].calls_mut()?.get_mut(place.at)
    }

    /// A start of a call that is there already, which goes on, changes its name at most.
    fn start_call(&mut self, event: &Event) {
        let Body::ToolCallStart { tool_call_id, tool_call_name, parent_message_id, .. } =
            &event.body
        else {
            return;
        };
        if let Some(call) = self.call_mut(tool_call_id) {
            call.function.name.clone_from(tool_call_name);
            items::merge(&mut call.metadata, event.metadata.as_ref());
            return;
        }
        let entry = self.carrier(parent_message_id.as_ref(), tool_call_id, &event.body);
        let Some(calls) = self.entries[entry].calls_mut() else { return };
        let place = CallPlace { entry, at: calls.len(), cut: false };
        calls.push(ToolCall {
            id: tool_call_id.clone(),
            kind: ToolCallKind::Function,
            function: FunctionCall { name: tool_call_name.clone(), arguments: String::new() },
            encrypted_value: None,
            metadata: event.metadata.clone(),
        });
        self.calls.insert(tool_call_id.clone(), place);
        self.bound.message();
    }

    /// The assistant message that a call hangs on: the one named, else a new one under that id,
    /// or under the call's where there is none or something else has it (C5 to C7).
    fn carrier(&mut self, parent: Option<&MessageId>, call: &ToolCallId, body: &Body) -> usize {
        let known = parent.and_then(|id| self.find(id));
        if let Some(at) = known.filter(|at| self.entries[*at].is_assistant()) {
            return at;
        }
        let free = parent.filter(|_| known.is_none());
        let id = free.cloned().unwrap_or_else(|| MessageId::from(call.as_str()));
        let Body::ToolCallStart { subagent_run_id, .. } = body else { return self.last };
        self.push(Message::Assistant {
            id,
            name: None,
            content: None,
            tool_calls: Vec::new(),
            base: owned(subagent_run_id.clone()),
        })
    }

    fn arguments(&mut self, id: &ToolCallId, delta: &str, event: &Event) {
        let Some(place) = self.calls.get(id).copied() else { return };
        let calls = self.entries[place.entry].calls_mut();
        let Some(call) = calls.and_then(|calls| calls.get_mut(place.at)) else { return };
        if place.cut {
            bound::note_more(&mut call.metadata, delta.len());
        } else {
            call.function.arguments.push_str(delta);
            self.bound.add(delta.len());
        }
        items::merge(&mut call.metadata, event.metadata.as_ref());
    }

    /// An answer goes behind its call and the answers that are there, not to the end (E5).
    fn result(&mut self, event: &Event) {
        let Body::ToolCallResult { message_id, tool_call_id, content, subagent_run_id, .. } =
            &event.body
        else {
            return;
        };
        let mut base = owned(subagent_run_id.clone());
        base.metadata.clone_from(&event.metadata);
        self.bound.message();
        self.bound.add(items::content_len(content));
        let message = Message::Tool {
            id: message_id.clone(),
            tool_call_id: tool_call_id.clone(),
            content: content.clone(),
            error: None,
            base,
        };
        match self.calls.get(tool_call_id) {
            Some(place) => self.entries[place.entry].answers.push(message),
            None => {
                self.push(message);
            }
        }
    }

    fn encrypted(&mut self, subtype: EncryptedSubtype, entity: &str, value: &str) {
        self.bound.add(value.len());
        match subtype {
            EncryptedSubtype::ToolCall => {
                if let Some(call) = self.call_mut(&ToolCallId::from(entity)) {
                    call.encrypted_value = Some(value.to_owned());
                }
            }
            EncryptedSubtype::Message => {
                let at = self.find(&MessageId::from(entity));
                if let Some(at) = at.filter(|at| !self.entries[*at].is_activity()) {
                    let base = self.entries[at].message.base_mut();
                    base.encrypted_value = Some(value.to_owned());
                }
            }
        }
    }

    /// The first snapshot makes the activity; later ones replace its content, type and owner, but
    /// keep its metadata, unless they say that they replace nothing (ACT-5).
    fn activity(&mut self, event: &Event) {
        let Body::ActivitySnapshot { message_id, activity_type, content, replace, subagent_run_id } =
            &event.body
        else {
            return;
        };
        self.bound.add(truncate::exact(content));
        let known = self.find(message_id);
        if known.is_some() && *replace == Some(false) {
            return;
        }
        let mut base = owned(subagent_run_id.clone());
        let before = known.map(|at| self.entries[at].message.base_mut().metadata.take());
        base.metadata = before.flatten();
        let (id, activity_type, content) =
            (message_id.clone(), activity_type.clone(), content.clone());
        let message = Message::Activity { id, activity_type, content, base };
        let at = match known {
            Some(at) => {
                self.entries[at] = Entry::new(message);
                at
            }
            None => self.push(message),
        };
        self.entries[at].merge_metadata(event);
    }

    fn patch_activity(
        &mut self,
        id: &MessageId,
        kind: &str,
        patch: &[PatchOperation],
        event: &Event,
    ) {
        let Some(at) = self.find(id) else { return };
        self.entries[at].merge_metadata(event);
        let Message::Activity { activity_type, content, .. } = &mut self.entries[at].message else {
            return;
        };
        // Longer than it makes the content mostly; what is there in truth is measured when the
        // bound seems to be reached.
        self.bound.add(truncate::exact(&patch));
        if patched(content, patch) {
            kind.clone_into(activity_type);
        }
    }
}

/// Applies a patch that leaves an object; `false` = it does not fit and nothing changed.
fn patched(content: &mut Object, patch: &[PatchOperation]) -> bool {
    let Ok(patch) = serde_json::to_value(patch) else { return false };
    let mut value = Value::Object(std::mem::take(content));
    // A patch of the whole takes it away, perhaps for something that is no object.
    let before = items::touches_root(&patch).then(|| value.clone());
    let applied = apply_patch(&mut value, &patch).is_ok();
    match value {
        Value::Object(members) => {
            *content = members;
            applied
        }
        _ => {
            if let Some(Value::Object(members)) = before {
                *content = members;
            }
            false
        }
    }
}

fn text_message(
    id: MessageId,
    role: Option<TextRole>,
    name: Option<String>,
    owner: Option<SubagentRunId>,
) -> Message {
    let (content, base) = (String::new(), owned(owner));
    match role.unwrap_or(TextRole::Assistant) {
        TextRole::Assistant => {
            Message::Assistant { id, name, content: Some(content), tool_calls: Vec::new(), base }
        }
        TextRole::User => Message::User { id, name, content: Content::Text(content), base },
        TextRole::System => Message::System { id, name, content, base },
        TextRole::Developer => Message::Developer { id, name, content, base },
    }
}

fn owned(subagent_run_id: Option<SubagentRunId>) -> MessageBase {
    MessageBase { subagent_run_id, ..MessageBase::default() }
}
