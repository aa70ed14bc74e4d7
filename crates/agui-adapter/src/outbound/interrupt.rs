//! Permission asks, suspended calls and questions, and the answers to them. How the run raises
//! what is still open at its end stands in [`super::raise`].

use std::collections::HashSet;

use agui_protocol::{InterruptId, Message, ToolCallId};

use super::{
    RunSetup,
    context::StreamContext,
    tool::{ResultContent, result_metadata, send_result},
};
use crate::{
    model::{
        AgentEvent, AgentEventKind,
        event::{Call, Confirmation, ExternalResult, Object, ResultState},
        msg::Block,
    },
    options::{SubagentEvents, ToolMergeMode},
    resume::{Decision, StoredCall, Verdict},
    sequencer::OwnerId,
};

/// What waits for an answer, and which answers the client is owed.
#[derive(Default)]
pub(super) struct Asks {
    pub(super) open: Vec<Ask>,
    pub(super) questions: Vec<Question>,
    owed: Vec<Owed>,
    /// Results that are sent again, since the client does not have them.
    again: Vec<Message>,
    /// Ids of interrupts that are not used again.
    pub(super) taken: HashSet<InterruptId>,
}

/// A call that waits for somebody outside.
pub(super) struct Ask {
    pub(super) owner: OwnerId,
    /// The client's id of the call; the agent may use its own id again for another call.
    pub(super) wire: ToolCallId,
    pub(super) reply: String,
    pub(super) call: Call,
    pub(super) external: bool,
    pub(super) text: Option<String>,
}

pub(super) struct Question {
    pub(super) owner: OwnerId,
    pub(super) id: String,
    pub(super) message: String,
    pub(super) schema: Option<Object>,
}

/// An answer that the client gets even if the agent sends no result for the call: Java sends
/// none for a call that the person denied, nor for one that was run outside.
struct Owed {
    /// Who said it in this run; the root for answers that the run came with.
    owner: OwnerId,
    /// The child that made the call.
    source: Option<String>,
    /// The client's id of a call of an earlier run.
    earlier: Option<ToolCallId>,
    call: String,
    name: String,
    content: ResultContent,
    state: ResultState,
}

impl Asks {
    pub(super) fn new(setup: &RunSetup) -> Self {
        let open = setup.answered.iter().filter(|decision| !decision.settled);
        let owed = open.filter_map(owed_by).collect();
        Self { owed, again: setup.owed.clone(), taken: setup.taken.clone(), ..Self::default() }
    }

    /// The call has its answer.
    pub(super) fn answered(&mut self, owner: OwnerId, call: &str) {
        let own = self.open.iter().any(|ask| ask.owner == owner && ask.call.id == call);
        self.open.retain(|ask| ask.call.id != call || (own && ask.owner != owner));
    }

    /// Whether anything waits.
    pub(super) fn any_open(&self) -> bool {
        !self.open.is_empty() || !self.questions.is_empty()
    }
}

fn owed_by(decision: &Decision) -> Option<Owed> {
    let owed = |call: &StoredCall, text: &str, state| Owed {
        owner: OwnerId::ROOT,
        source: decision.open.source.clone(),
        earlier: Some(ToolCallId::from(call.wire_id.as_str())),
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

pub(super) fn convert(event: &AgentEvent, context: &mut StreamContext) {
    let owner = context.owner_of(event);
    match &event.kind {
        AgentEventKind::RequireUserConfirm { reply, calls } => {
            for call in calls {
                add_ask(owner, reply, call, false, context);
            }
        }
        AgentEventKind::RequireExternalExecution { reply, calls } => {
            for call in calls {
                add_ask(owner, reply, call, true, context);
            }
        }
        AgentEventKind::UserConfirmResult { results, .. } => {
            confirmed(event, owner, results, context);
        }
        AgentEventKind::ExternalExecutionResult { results, .. } => {
            executed(event, owner, results, context);
        }
        AgentEventKind::Question { id, message, schema } => {
            context.sequencer.flush_call_ends(owner);
            let asks = &mut context.asks;
            asks.questions.retain(|asked| asked.owner != owner || asked.id != *id);
            asks.questions.push(Question {
                owner,
                id: id.clone(),
                message: message.clone(),
                schema: schema.clone(),
            });
        }
        _ => {}
    }
}

/// Records an ask; a later one for the same call takes its place.
fn add_ask(owner: OwnerId, reply: &str, call: &Call, external: bool, context: &mut StreamContext) {
    let ask = context.ask(owner, &call.id, &call.name, &call.arguments);
    reply.clone_into(&mut ask.reply);
    ask.call = call.clone();
    ask.external = external;
}

fn confirmed(
    event: &AgentEvent,
    owner: OwnerId,
    results: &[Confirmation],
    context: &mut StreamContext,
) {
    context.sequencer.flush_call_ends(owner);
    for result in results {
        let call = &result.call;
        context.asks.answered(owner, &call.id);
        if !result.confirmed
            && !call.id.is_empty()
            && !context.is_the_clients(owner, &call.id, &call.name)
        {
            context.owe(Owed {
                owner,
                source: event.source.as_deref().map(str::to_owned),
                earlier: None,
                call: call.id.clone(),
                name: call.name.clone(),
                content: ResultContent::text(&denial(None)),
                state: ResultState::Denied,
            });
        }
    }
}

fn executed(
    event: &AgentEvent,
    owner: OwnerId,
    results: &[ExternalResult],
    context: &mut StreamContext,
) {
    context.sequencer.flush_call_ends(owner);
    for result in results {
        if result.state == ResultState::Running {
            context.suspend(owner, "", &result.call_id, &result.name, None);
            continue;
        }
        context.asks.answered(owner, &result.call_id);
        if context.is_the_clients(owner, &result.call_id, &result.name) {
            continue;
        }
        let owed = Owed {
            owner,
            source: event.source.as_deref().map(str::to_owned),
            earlier: None,
            call: result.call_id.clone(),
            name: result.name.clone(),
            content: ResultContent::of_blocks(&result.output),
            state: result.state,
        };
        context.forget_owed(owner, &result.call_id);
        context.owe(owed);
    }
}

impl StreamContext {
    /// What is asked about a call. The client gets to see the call first, if the agent never
    /// announced it.
    fn ask(&mut self, owner: OwnerId, id: &str, name: &str, arguments: &str) -> &mut Ask {
        self.pay_owed();
        if !self.is_custom_child(owner) {
            self.sequencer.ensure_call(owner, id, name, arguments);
            self.sequencer.flush_call_ends(owner);
        }
        let wire = self.sequencer.wire_id(owner, id);
        let several = self.subagents == SubagentEvents::Custom;
        let asks = &mut self.asks.open;
        let same = |ask: &Ask| ask.wire == wire && (!several || ask.owner == owner);
        let at = asks.iter().position(same).unwrap_or_else(|| {
            asks.push(Ask {
                owner,
                wire,
                reply: String::new(),
                call: Call { id: id.to_owned(), name: name.to_owned(), ..Call::default() },
                external: true,
                text: None,
            });
            asks.len() - 1
        });
        &mut asks[at]
    }

    /// A result ended as running: the call waits.
    pub(super) fn suspend(
        &mut self,
        owner: OwnerId,
        reply: &str,
        call: &str,
        name: &str,
        text: Option<String>,
    ) {
        let ask = self.ask(owner, call, name, "");
        if ask.text.is_none() {
            ask.text = text;
        }
        if ask.reply.is_empty() {
            reply.clone_into(&mut ask.reply);
        }
    }

    fn owe(&mut self, owed: Owed) {
        let same = |other: &Owed| other.call == owed.call && other.source == owed.source;
        if !self.asks.owed.iter().any(same) {
            self.asks.owed.push(owed);
        }
    }

    /// The agent answered the call itself.
    pub(super) fn forget_owed(&mut self, owner: OwnerId, call: &str) {
        if self.asks.owed.is_empty() {
            return;
        }
        let source = self.source_of(owner).map(str::to_owned);
        let for_all = owner == OwnerId::ROOT && !self.sequencer.owns_call(owner, call);
        self.asks.owed.retain(|owed| owed.call != call || (owed.source != source && !for_all));
    }

    /// Sends the results that an earlier run settled and the client does not have.
    pub(super) fn send_again(&mut self) {
        for message in std::mem::take(&mut self.asks.again) {
            if let Message::Tool { tool_call_id, content, base, .. } = message {
                let metadata = base.metadata.unwrap_or_default();
                self.sequencer.earlier_result(&tool_call_id, content, metadata);
            }
        }
    }

    /// Sends the answers that the agent did not send: before anything that comes after them.
    pub(super) fn pay_owed(&mut self) {
        for owed in std::mem::take(&mut self.asks.owed) {
            if !self.answered_by_client(&owed) {
                self.pay(owed);
            }
        }
    }

    fn pay(&mut self, owed: Owed) {
        let Owed { owner, source, earlier, call, name, content, state } = owed;
        match (self.subagents, source, earlier) {
            (SubagentEvents::Custom, Some(source), _) => {
                self.send_owed_by_custom_child(&source, &call, &name, content, state);
            }
            (_, _, Some(wire)) => {
                let metadata = result_metadata(state, &content);
                let content = content.into_content();
                self.sequencer.earlier_result(&wire, content, metadata);
            }
            // The call may be another one by now.
            (_, _, None) if self.is_the_clients(owner, &call, &name) => {}
            (_, _, None) => send_result(owner, &call, &name, content, state, self),
        }
    }

    /// A tool of the client whose result the client already put into its messages.
    fn answered_by_client(&self, owed: &Owed) -> bool {
        let wire = match &owed.earlier {
            Some(wire) => wire.clone(),
            None => self.sequencer.wire_id(owed.owner, &owed.call),
        };
        self.is_frontend_tool(owed.owner, &owed.name)
            && has_tool_message(&self.input.messages, &wire)
    }

    /// Whether an owner's tool is one that the client runs itself in this run. Children inside this
    /// server are not offered any: theirs may have the same names.
    pub(super) fn is_frontend_tool(&self, owner: OwnerId, name: &str) -> bool {
        self.options.tool_merge_mode != ToolMergeMode::AgentOnly
            && !self.is_local_child(owner)
            && self.input.tools.iter().any(|tool| tool.name == name)
    }

    /// What an `AGENT_RESULT` says of calls that wait.
    pub(super) fn note_suspended(&mut self, owner: OwnerId, blocks: &[Block]) {
        for block in blocks {
            let Block::ToolResult { call_id, name, output, state, .. } = block else { continue };
            if *state != ResultState::Running {
                continue;
            }
            let text = ResultContent::of_blocks(output).into_content().text_content();
            let used = blocks.iter().find_map(|block| match block {
                Block::ToolUse { call, .. } if call.id == *call_id => Some(call),
                _ => None,
            });
            let arguments = used.map_or("", |call| call.arguments.as_str());
            let ask = self.ask(owner, call_id, name, arguments);
            if ask.text.is_none() {
                ask.text = (!text.is_empty()).then_some(text);
            }
            if let (Some(call), true) = (used, ask.call.arguments.is_empty()) {
                ask.call = call.clone();
            }
        }
    }
}

fn has_tool_message(messages: &[Message], call: &ToolCallId) -> bool {
    messages.iter().any(
        |message| matches!(message, Message::Tool { tool_call_id, .. } if tool_call_id == call),
    )
}
