//! What a run begins with: the thread's history brought together with the input, the answers to
//! what was open, the state.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    sync::Arc,
};

use agui_adapter::{
    history::{Incoming, Keep, Stored, reconcile},
    inbound::{Inbound, InboundOptions, for_agent},
    model::{Msg, event::Object},
    outbound::IdSource,
    resume::{AnswerError, Decision, StoredCall, Verdict},
    transcript::Transcript,
};
use agui_protocol::{InterruptId, Message, MessageId, RunAgentInput, ToolCallId};
use serde_json::{Value, json};

use super::{
    answers::decisions,
    ledger::{Begun, Policy},
    service::RunRequest,
};

/// Everything that is known before the agent is called.
pub(super) struct Opening {
    /// The thread's messages; `None` = those of the input.
    pub(super) history: Option<Arc<Vec<Message>>>,
    /// The same for the agent.
    pub(super) messages: Vec<Msg>,
    /// The answers; those that an earlier run settled come first.
    pub(super) decisions: Vec<Decision>,
    /// Results of settled calls that the client does not have.
    pub(super) owed: Vec<Message>,
    /// Ids of interrupts that are not used again.
    pub(super) taken: HashSet<InterruptId>,
    /// The state as stored.
    pub(super) stored_state: Option<Arc<Value>>,
    /// What RUN_STARTED tells of the input.
    pub(super) started_metadata: Object,
    /// How many system and developer messages of the client the agent does not get.
    pub(super) dropped_system: usize,
    /// What else happened to the messages; ids and numbers only.
    pub(super) notes: Vec<String>,
    /// Messages of the history that no client has seen.
    unseen: HashSet<MessageId>,
}

impl Opening {
    /// Brings the thread as the run found it together with what the request says.
    ///
    /// # Errors
    ///
    /// When an answer cannot be taken; then nothing may run.
    pub(super) fn new(
        request: &RunRequest,
        begun: &Begun,
        policy: Policy,
        ids: &mut dyn IdSource,
    ) -> Result<Self, AnswerError> {
        let decisions = decisions(begun)?;
        let pending = pending_calls(&decisions);
        let mut opening = Self::refused(begun.started_metadata());
        opening.owed = owed(&decisions, &begun.messages, &request.input.messages);
        opening.taken.clone_from(&begun.taken);
        opening.stored_state.clone_from(&begun.state);
        if policy.keep_history || !begun.messages.is_empty() {
            opening.merge(&request.input, begun, &decisions, &pending, ids);
        }
        let options = InboundOptions {
            accept_client_system_messages: request.accept_client_system_messages,
            answered_calls: pending,
            ..InboundOptions::default()
        };
        let Inbound { msgs, dropped_system, notes } =
            for_agent(opening.history(&request.input), &options);
        opening.messages = msgs;
        opening.decisions = decisions;
        opening.notes.extend(notes.iter().map(ToString::to_string));
        opening.dropped_system = dropped_system;
        if dropped_system > 0 {
            let key = "agentscope.droppedMessages".to_owned();
            opening.started_metadata.insert(key, json!(dropped_system));
        }
        Ok(opening)
    }

    /// Of a run that calls no agent.
    pub(super) fn refused(started_metadata: Object) -> Self {
        Self {
            history: None,
            messages: Vec::new(),
            decisions: Vec::new(),
            owed: Vec::new(),
            taken: HashSet::new(),
            stored_state: None,
            started_metadata,
            dropped_system: 0,
            notes: Vec::new(),
            unseen: HashSet::new(),
        }
    }

    fn merge(
        &mut self,
        input: &RunAgentInput,
        begun: &Begun,
        decisions: &[Decision],
        pending: &HashSet<ToolCallId>,
        ids: &mut dyn IdSource,
    ) {
        let keep = if begun.parked.is_some() { Keep::Everything } else { Keep::UpToInput };
        let believed = self.believed(input, begun);
        let incoming = Incoming { messages: &believed, answered_calls: pending };
        let mut mint = || MessageId::from(ids.next_id());
        let merged = reconcile(Vec::clone(&begun.messages), keep, &incoming, &mut mint);
        self.notes.extend(merged.notes.iter().map(ToString::to_string));
        let unseen = merged.history.iter().filter(|stored| stored.unseen);
        self.unseen = unseen.map(|stored| stored.message.id().clone()).collect();
        let runs = approved(decisions);
        let messages = merged.history.into_iter().map(|stored| as_run(stored.message, &runs));
        self.history = Some(Arc::new(messages.collect()));
    }

    /// The messages of the input, but for results of calls that go on with this run and are the
    /// server's to execute: it would be kept from that by whoever says that it did.
    fn believed<'a>(&mut self, input: &'a RunAgentInput, begun: &Begun) -> Cow<'a, [Message]> {
        let calls = calls_to_go_on_with(input, begun);
        let is_believed =
            |message: &Message| message.answered_call().is_none_or(|call| !calls.contains(call));
        let count = input.messages.iter().filter(|message| !is_believed(message)).count();
        if count == 0 {
            return Cow::Borrowed(&input.messages);
        }
        self.notes.push(format!("{count} tool messages answer calls of the server's own tools"));
        Cow::Owned(input.messages.iter().filter(|message| is_believed(message)).cloned().collect())
    }

    /// The thread's messages before the run.
    pub(super) fn history<'a>(&'a self, input: &'a RunAgentInput) -> &'a [Message] {
        self.history.as_ref().map_or(&input.messages, |history| history.as_slice())
    }

    /// The state with which the run begins (STATE-9).
    pub(super) fn state(&self, input: &RunAgentInput) -> Arc<Value> {
        let state = input.state.as_ref().or(self.stored_state.as_ref());
        state.map_or_else(|| Arc::new(Value::Object(Object::new())), Arc::clone)
    }

    /// The thread's messages after the run. `seen` = what the client had of the run when it
    /// left; `None` = it stayed.
    pub(super) fn with(
        &self,
        input: &RunAgentInput,
        transcript: Transcript,
        seen: Option<&HashSet<MessageId>>,
    ) -> Vec<Stored> {
        let history = self.history(input);
        let before: HashSet<&MessageId> = history.iter().map(Message::id).collect();
        let is_unseen = |id: &MessageId| match seen {
            _ if before.contains(id) => self.unseen.contains(id),
            Some(seen) => !seen.contains(id),
            None => false,
        };
        let history = self.without_sent_again(history, &transcript);
        let messages = transcript.onto(history).into_iter();
        messages.map(|message| Stored { unseen: is_unseen(message.id()), message }).collect()
    }

    /// The history, but for results that the run sent again under an id of its own.
    fn without_sent_again(&self, history: &[Message], transcript: &Transcript) -> Vec<Message> {
        let again: HashSet<&ToolCallId> = if self.owed.is_empty() {
            HashSet::new()
        } else {
            transcript.messages().filter_map(Message::answered_call).collect()
        };
        let sent_again =
            |message: &&Message| message.answered_call().is_some_and(|call| again.contains(call));
        history.iter().filter(|message| !sent_again(message)).cloned().collect()
    }
}

impl Begun {
    /// What RUN_STARTED tells of a resume.
    pub(super) fn started_metadata(&self) -> Object {
        let ignored = self.already_answered.iter().chain(&self.never_raised);
        let ignored: Vec<&str> = ignored.map(InterruptId::as_str).collect();
        let mut metadata = Object::new();
        if !ignored.is_empty() {
            metadata.insert("agentscope.ignoredResume".to_owned(), json!(ignored));
        }
        metadata
    }
}

/// The approved calls as they run, by the ids that the client knows.
fn approved(decisions: &[Decision]) -> HashMap<&str, &StoredCall> {
    let calls = decisions.iter().filter_map(|decision| match &decision.verdict {
        Verdict::Approved { call, .. } => Some((call.wire_id.as_str(), call)),
        _ => None,
    });
    calls.collect()
}

/// An approved call stands in the history with the arguments that it runs with, edited or not:
/// its result would not fit others.
fn as_run(mut message: Message, runs: &HashMap<&str, &StoredCall>) -> Message {
    let Message::Assistant { tool_calls, .. } = &mut message else { return message };
    for call in tool_calls {
        let stored = runs.get(call.id.as_str());
        if let Some(stored) = stored.filter(|stored| !stored.arguments.is_empty()) {
            call.function.arguments.clone_from(&stored.arguments);
        }
    }
    message
}

/// The stored calls that no stored message answers and that are of none of the client's tools, if
/// the run goes on with what was parked.
fn calls_to_go_on_with<'a>(input: &RunAgentInput, begun: &'a Begun) -> HashSet<&'a ToolCallId> {
    if !begun.parked.as_ref().is_some_and(|parked| parked.raised) {
        return HashSet::new();
    }
    let is_clients = |name: &str| input.tools.iter().any(|tool| tool.name == name);
    let stored = || begun.messages.iter().map(|stored| &stored.message);
    let calls = stored().flat_map(|message| match message {
        Message::Assistant { tool_calls, .. } => tool_calls.as_slice(),
        _ => &[],
    });
    let mut open: HashSet<&ToolCallId> =
        calls.filter(|call| !is_clients(&call.function.name)).map(|call| &call.id).collect();
    for answered in stored().filter_map(Message::answered_call) {
        open.remove(answered);
    }
    open
}

/// The calls that the decisions answer and that have no result yet.
fn pending_calls(decisions: &[Decision]) -> HashSet<ToolCallId> {
    let pending = decisions.iter().filter(|decision| !decision.settled);
    let calls = pending.filter_map(|decision| decision.open.call.as_ref());
    calls.map(|call| ToolCallId::from(call.wire_id.as_str())).collect()
}

/// Results of settled calls that the client does not have: it left before they came.
fn owed(decisions: &[Decision], stored: &[Stored], sent: &[Message]) -> Vec<Message> {
    let settled = decisions.iter().filter(|decision| decision.settled);
    let calls = settled.filter_map(|decision| decision.open.call.as_ref());
    let mut results: HashMap<&str, &Message> = HashMap::new();
    for Stored { message, .. } in stored {
        results.extend(message.answered_call().map(|call| (call.as_str(), message)));
    }
    let has: HashSet<&str> =
        sent.iter().filter_map(Message::answered_call).map(ToolCallId::as_str).collect();
    let missing = calls.filter(|call| !has.contains(call.wire_id.as_str()));
    missing.filter_map(|call| results.get(call.wire_id.as_str()).copied().cloned()).collect()
}
