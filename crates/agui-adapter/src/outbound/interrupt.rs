//! Permission asks, suspended calls and questions -> the run's interrupts; answers to them.

use agui_protocol::{Interrupt, InterruptId, SubagentRunId, ToolCallId};
use serde_json::{Value, json};

use super::{
    context::{StreamContext, object},
    owed::{Owed, owed_by},
    tool::ResultContent,
};
use crate::{
    model::{
        AgentEvent, AgentEventKind,
        event::{Call, Confirmation, ExternalResult, Object, ResultState},
        msg::Block,
    },
    options::{FrontendToolOutcome, ToolMergeMode},
    resume::{Decision, InterruptKind, OpenInterrupt, StoredCall},
    sequencer::OwnerId,
};

/// What waits for an answer, and which answers the client is owed.
#[derive(Default)]
pub(super) struct Asks {
    open: Vec<Ask>,
    questions: Vec<Question>,
    pub(super) owed: Vec<Owed>,
}

/// A call that waits for somebody outside.
#[derive(Clone)]
struct Ask {
    owner: OwnerId,
    source: Option<String>,
    reply: String,
    call: Call,
    external: bool,
    text: Option<String>,
}

#[derive(Clone)]
struct Question {
    owner: OwnerId,
    source: Option<String>,
    id: String,
    message: String,
    schema: Option<Object>,
}

impl Asks {
    pub(super) fn new(answered: &[Decision]) -> Self {
        let owed = answered.iter().filter_map(owed_by).collect();
        Self { owed, ..Self::default() }
    }

    /// A result ended as running: the call waits.
    pub(super) fn suspended(
        &mut self,
        owner: OwnerId,
        reply: &str,
        call: &str,
        text: Option<String>,
    ) {
        let ask = self.external(owner, call);
        if ask.text.is_none() {
            ask.text = text;
        }
        if ask.reply.is_empty() {
            reply.clone_into(&mut ask.reply);
        }
    }

    fn external(&mut self, owner: OwnerId, call: &str) -> &mut Ask {
        let known = self.open.iter().position(|ask| ask.owner == owner && ask.call.id == call);
        let at = known.unwrap_or_else(|| {
            self.open.push(Ask {
                owner,
                source: None,
                reply: String::new(),
                call: Call { id: call.to_owned(), ..Call::default() },
                external: true,
                text: None,
            });
            self.open.len() - 1
        });
        let ask = &mut self.open[at];
        ask.external = true;
        ask
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

pub(super) fn convert(event: &AgentEvent, context: &mut StreamContext) {
    let owner = context.owner_of(event);
    match &event.kind {
        AgentEventKind::RequireUserConfirm { reply, calls } => {
            for call in calls {
                add_ask(event, owner, reply, call, false, context);
            }
        }
        AgentEventKind::RequireExternalExecution { reply, calls } => {
            for call in calls {
                add_ask(event, owner, reply, call, true, context);
            }
        }
        AgentEventKind::UserConfirmResult { results, .. } => confirmed(owner, results, context),
        AgentEventKind::ExternalExecutionResult { results, .. } => {
            executed(owner, results, context);
        }
        AgentEventKind::Question { id, message, schema } => {
            context.sequencer.flush_call_ends(owner);
            context.asks.questions.retain(|other| other.owner != owner || other.id != *id);
            context.asks.questions.push(Question {
                owner,
                source: event.source.as_deref().map(str::to_owned),
                id: id.clone(),
                message: message.clone(),
                schema: schema.clone(),
            });
        }
        _ => {}
    }
}

/// Records an ask; the client gets to see the call first, if the agent never announced it.
fn add_ask(
    event: &AgentEvent,
    owner: OwnerId,
    reply: &str,
    call: &Call,
    external: bool,
    context: &mut StreamContext,
) {
    if !context.is_custom_child(owner) {
        context.sequencer.ensure_call(owner, &call.id, &call.name, &call.arguments);
        context.sequencer.flush_call_ends(owner);
    }
    let owner = context.sequencer.owner_of_call(owner, &call.id);
    let source = event.source.as_deref().map(str::to_owned);
    let asks = &mut context.asks;
    if external {
        let ask = asks.external(owner, &call.id);
        ask.source = source;
        reply.clone_into(&mut ask.reply);
        ask.call = call.clone();
        return;
    }
    asks.open.retain(|ask| ask.owner != owner || ask.call.id != call.id);
    asks.open.push(Ask {
        owner,
        source,
        reply: reply.to_owned(),
        call: call.clone(),
        external,
        text: None,
    });
}

fn confirmed(owner: OwnerId, results: &[Confirmation], context: &mut StreamContext) {
    context.sequencer.flush_call_ends(owner);
    for result in results {
        let call = &result.call;
        context.asks.answered(owner, &call.id);
        if !result.confirmed && !call.id.is_empty() {
            context.owe(Owed::denial(&call.id, &call.name));
        }
    }
}

fn executed(owner: OwnerId, results: &[ExternalResult], context: &mut StreamContext) {
    context.sequencer.flush_call_ends(owner);
    for result in results {
        if result.state == ResultState::Running {
            let owner = context.sequencer.owner_of_call(owner, &result.call_id);
            context.asks.suspended(owner, "", &result.call_id, None);
            continue;
        }
        context.asks.answered(owner, &result.call_id);
        let owed = Owed {
            call: result.call_id.clone(),
            name: result.name.clone(),
            content: ResultContent::of_blocks(&result.output),
            state: result.state,
        };
        context.forget_owed(&result.call_id);
        context.owe(owed);
    }
}

impl StreamContext {
    /// Whether a tool is one that the client runs itself in this run.
    pub(super) fn is_frontend_tool(&self, name: &str) -> bool {
        self.options.tool_merge_mode != ToolMergeMode::AgentOnly
            && self.input.tools.iter().any(|tool| tool.name == name)
    }

    /// What an `AGENT_RESULT` says of calls that wait.
    pub(super) fn note_suspended(&mut self, event: &AgentEvent, owner: OwnerId, blocks: &[Block]) {
        for block in blocks {
            let Block::ToolResult { call_id, name, output, state, .. } = block else { continue };
            if *state != ResultState::Running {
                continue;
            }
            let text = ResultContent::of_blocks(output).into_content().text_content();
            self.asks.suspended(owner, "", call_id, (!text.is_empty()).then_some(text));
            let used = blocks.iter().find_map(|block| match block {
                Block::ToolUse { call, .. } if call.id == *call_id => Some(call.clone()),
                _ => None,
            });
            let ask = self.asks.external(owner, call_id);
            if ask.call.name.is_empty() {
                ask.call = used.unwrap_or_else(|| Call {
                    id: call_id.clone(),
                    name: name.clone(),
                    ..Call::default()
                });
                ask.source = event.source.as_deref().map(str::to_owned);
            }
            let call = ask.call.clone();
            self.sequencer.ensure_call(owner, &call.id, &call.name, &call.arguments);
        }
    }

    /// The interrupts of everything that waits, in the order in which it was asked; and, apart,
    /// those of the client's own tools.
    pub(super) fn collect_interrupts(&mut self) -> (Vec<OpenInterrupt>, Vec<OpenInterrupt>) {
        let (asks, questions) =
            (std::mem::take(&mut self.asks.open), std::mem::take(&mut self.asks.questions));
        let (mut raised, mut frontend) = (Vec::new(), Vec::new());
        for ask in asks {
            // A tool of the client asks its user itself, if it has to.
            let is_frontend = self.is_frontend_tool(self.ask_name(&ask));
            let open = self.call_interrupt(&ask, is_frontend);
            let list = if is_frontend { &mut frontend } else { &mut raised };
            // Two owners that wait for one call wait for one answer.
            if !list.iter().any(|other: &OpenInterrupt| other.interrupt.id == open.interrupt.id) {
                list.push(open);
            }
        }
        raised.extend(questions.iter().map(|question| self.question_interrupt(question)));
        if self.options.frontend_tool_outcome == FrontendToolOutcome::Interrupt {
            frontend.append(&mut raised);
            return (frontend, Vec::new());
        }
        (raised, frontend)
    }

    /// Whether the run would end with interrupts: something waits, and no call of the client's own
    /// tools has to be answered first.
    pub(super) fn will_interrupt(&self) -> bool {
        let pending = self.options.frontend_tool_outcome == FrontendToolOutcome::Pending;
        let frontend = |ask: &Ask| self.is_frontend_tool(self.ask_name(ask));
        self.asks.any_open() && !(pending && self.asks.open.iter().any(frontend))
    }

    /// The ids of the interrupts that one owner raised.
    pub(super) fn interrupt_ids_of(&self, owner: OwnerId) -> Vec<InterruptId> {
        let asks = self.asks.open.iter().filter(|ask| ask.owner == owner);
        let asks = asks.filter(|ask| !self.is_frontend_tool(self.ask_name(ask)));
        let questions = self.asks.questions.iter().filter(|question| question.owner == owner);
        asks.map(|ask| self.call_interrupt_id(ask))
            .chain(questions.map(|question| self.question_interrupt_id(question)))
            .collect()
    }

    /// The tool, as the client saw the call; the ask's own word where there was no call.
    fn ask_name<'a>(&'a self, ask: &'a Ask) -> &'a str {
        let index = self.sequencer.call_of(ask.owner, &ask.call.id);
        index.map_or(&ask.call.name, |index| self.sequencer.call_name(index))
    }

    fn ask_wire_id(&self, ask: &Ask) -> ToolCallId {
        self.sequencer.wire_id(ask.owner, &ask.call.id)
    }

    /// `<replyId>:<toolCallId>`, or the call's id alone where the wire gave no reply. The calls
    /// of a child that is shown as CUSTOM events are not unique by themselves.
    fn call_interrupt_id(&self, ask: &Ask) -> InterruptId {
        let call = self.ask_wire_id(ask);
        let child = self.child_id(ask.owner).filter(|_| self.is_custom_child(ask.owner));
        if ask.reply.is_empty() && child.is_none() {
            return InterruptId::from(call.as_str());
        }
        joined(&[Some(ask.reply.as_str()), child, Some(call.as_str())])
    }

    fn question_interrupt_id(&self, question: &Question) -> InterruptId {
        let run = self.sequencer.run_id().as_str();
        joined(&[Some(run), self.child_id(question.owner), Some(question.id.as_str())])
    }

    fn interrupt_owner(&self, owner: OwnerId) -> Option<SubagentRunId> {
        self.sequencer.tag(owner)
    }

    fn stored_call(&self, ask: &Ask) -> StoredCall {
        let wire_id = self.ask_wire_id(ask).as_str().to_owned();
        let streamed = || {
            let index = self.sequencer.call_of(ask.owner, &ask.call.id)?;
            Some(self.sequencer.arguments(index).to_owned())
        };
        let arguments = match ask.call.arguments.as_str() {
            "" => streamed().unwrap_or_default(),
            text => text.to_owned(),
        };
        let input = ask.call.input.clone().or_else(|| serde_json::from_str(&arguments).ok());
        StoredCall {
            id: ask.call.id.clone(),
            wire_id,
            name: self.ask_name(ask).to_owned(),
            arguments,
            input,
        }
    }

    fn call_interrupt(&self, ask: &Ask, is_frontend: bool) -> OpenInterrupt {
        let call = self.stored_call(ask);
        let kind = match (is_frontend, ask.external) {
            (true, _) => InterruptKind::FrontendTool,
            (false, true) => InterruptKind::ExternalExecution,
            (false, false) => InterruptKind::PermissionConfirm,
        };
        let message = match (&ask.text, ask.external) {
            (Some(text), _) => text.clone(),
            (None, true) => format!("Run {} and answer with its result", call.name),
            (None, false) => format!("Approve running {}?", call.name),
        };
        let interrupt = Interrupt {
            subagent_run_id: self.interrupt_owner(ask.owner),
            id: self.call_interrupt_id(ask),
            reason: "tool_call".to_owned(),
            message: Some(message),
            tool_call_id: Some(self.ask_wire_id(ask)),
            response_schema: (!ask.external).then(approval_schema),
            expires_at: None,
            metadata: Some(call_metadata(ask, &call, kind)),
        };
        OpenInterrupt {
            interrupt,
            kind,
            reply: ask.reply.clone(),
            source: ask.source.clone(),
            call: Some(call),
            question: None,
        }
    }

    fn question_interrupt(&self, question: &Question) -> OpenInterrupt {
        let interrupt = Interrupt {
            subagent_run_id: self.interrupt_owner(question.owner),
            id: self.question_interrupt_id(question),
            reason: "input_required".to_owned(),
            message: Some(question.message.clone()),
            tool_call_id: None,
            response_schema: question.schema.clone(),
            expires_at: None,
            metadata: Some(object([(
                "agentscope.interruptKind",
                Some(Value::from(kind_name(InterruptKind::InputRequired))),
            )])),
        };
        OpenInterrupt {
            interrupt,
            kind: InterruptKind::InputRequired,
            reply: String::new(),
            source: question.source.clone(),
            call: None,
            question: Some(question.id.clone()),
        }
    }
}

fn kind_name(kind: InterruptKind) -> &'static str {
    match kind {
        InterruptKind::PermissionConfirm => "permission_confirm",
        InterruptKind::ExternalExecution => "external_execution",
        InterruptKind::FrontendTool => "frontend_tool",
        InterruptKind::InputRequired => "input_required",
    }
}

fn call_metadata(ask: &Ask, call: &StoredCall, kind: InterruptKind) -> Object {
    let input = call.input.clone().filter(|input| !input.is_empty());
    let rules = &ask.call.suggested_rules;
    object([
        ("agentscope.interruptKind", Some(Value::from(kind_name(kind)))),
        ("toolName", Some(Value::from(call.name.as_str()))),
        ("toolInput", input.map(Value::Object)),
        ("toolContent", Some(Value::from(call.arguments.as_str()))),
        ("replyId", (!ask.reply.is_empty()).then(|| Value::from(ask.reply.as_str()))),
        ("agentscope.source", ask.source.as_deref().map(Value::from)),
        ("agentscope.suggestedRules", (!rules.is_empty()).then(|| Value::from(rules.clone()))),
    ])
}

/// What an approval looks like: the boolean decides, edited arguments replace all of them.
fn approval_schema() -> Object {
    let schema = json!({
        "type": "object",
        "properties": {
            "approved": { "type": "boolean" },
            "editedArgs": {
                "type": "object",
                "description": "Replaces all arguments of the call; nothing is merged.",
            },
            "reason": { "type": "string", "description": "Why the call was denied." },
        },
        "required": ["approved"],
    });
    match schema {
        Value::Object(schema) => schema,
        _ => Object::new(),
    }
}

fn joined(parts: &[Option<&str>]) -> InterruptId {
    let parts: Vec<String> = parts.iter().flatten().map(|part| escape(part)).collect();
    InterruptId::from(parts.join(":"))
}

/// Keeps `<a>:<b>` unambiguous.
fn escape(part: &str) -> String {
    part.replace('%', "%25").replace(':', "%3A")
}
