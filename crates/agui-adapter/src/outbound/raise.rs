//! What is open at the end of a run -> its interrupts.

use std::collections::{HashMap, HashSet};

use agui_protocol::{Interrupt, InterruptId};
use serde_json::{Value, json};

use super::{
    context::{StreamContext, object},
    interrupt::{Ask, Question},
};
use crate::{
    model::{event::Object, wire::parse_object},
    options::FrontendToolOutcome,
    resume::{InterruptKind, OpenInterrupt, StoredCall, Suspended},
    sequencer::OwnerId,
};

impl StreamContext {
    /// Whether the run ends with the questions that are open: calls that the client runs itself
    /// come first, since a client cannot answer both at once.
    pub(super) fn raises_interrupts(&self) -> bool {
        let pending = self.options.frontend_tool_outcome == FrontendToolOutcome::Pending
            && self
                .sequencer
                .unanswered_tools()
                .any(|(owner, tool)| self.is_frontend_tool(owner, tool));
        let asked = self.asks.open.iter().any(|ask| self.is_pending_at_client(ask));
        self.asks.any_open() && !pending && !asked
    }

    /// The interrupts of everything that waits, in the order in which it was asked, without the
    /// calls that simply stay pending at the client.
    pub(super) fn collect_interrupts(&self) -> Vec<OpenInterrupt> {
        let asks = self.asks.open.iter().filter(|ask| !self.is_pending_at_client(ask));
        let questions = &self.asks.questions;
        let mut raised: Vec<_> = asks.map(|ask| self.call_interrupt(ask)).collect();
        raised.extend(questions.iter().map(|question| self.question_interrupt(question)));
        make_unique(&mut raised, &self.asks.taken);
        raised
    }

    /// The ids of the interrupts that each owner raised.
    pub(super) fn interrupt_ids_by_owner(&self) -> HashMap<OwnerId, Vec<InterruptId>> {
        let asks = self.asks.open.iter().filter(|ask| !self.is_pending_at_client(ask));
        let asks = asks.map(|ask| (ask.owner, self.call_interrupt_id(ask)));
        let questions = self.asks.questions.iter();
        let questions = questions.map(|asked| (asked.owner, self.question_interrupt_id(asked)));
        let mut ids: HashMap<_, Vec<_>> = HashMap::new();
        for (owner, id) in asks.chain(questions) {
            ids.entry(owner).or_default().push(id);
        }
        ids
    }

    /// The owners of what is asked.
    pub(super) fn asking(&self) -> impl Iterator<Item = OwnerId> {
        let questions = self.asks.questions.iter().map(|question| question.owner);
        self.asks.open.iter().map(|ask| ask.owner).chain(questions)
    }

    /// A tool of the client asks its user itself, if it has to.
    fn is_frontend_ask(&self, ask: &Ask) -> bool {
        self.is_frontend_tool(ask.owner, self.ask_name(ask))
    }

    fn is_pending_at_client(&self, ask: &Ask) -> bool {
        self.options.frontend_tool_outcome == FrontendToolOutcome::Pending
            && self.is_frontend_ask(ask)
    }

    /// The tool, as the client saw the call; the ask's own word where there was no call.
    fn ask_name<'a>(&'a self, ask: &'a Ask) -> &'a str {
        self.streamed_call(ask).map_or(&ask.call.name, |(name, _)| name)
    }

    /// Tool and argument text of the call that an ask is about, as the agent streamed them.
    fn streamed_call(&self, ask: &Ask) -> Option<(&str, &str)> {
        if let Some(call) = self.custom_call(ask.owner, &ask.call.id) {
            return Some((&call.name, &call.arguments));
        }
        let index = self.sequencer.call_of(ask.owner, &ask.call.id)?;
        Some((self.sequencer.call_name(index), self.sequencer.arguments(index)))
    }

    /// `<replyId>:<toolCallId>`, or the call's id alone where the wire gave no reply.
    fn call_interrupt_id(&self, ask: &Ask) -> InterruptId {
        let call = &ask.wire;
        if ask.reply.is_empty() {
            return self.unused(call.as_str().to_owned());
        }
        self.unused(format!("{}:{}", escape(&ask.reply), escape(call.as_str())))
    }

    fn question_interrupt_id(&self, question: &Question) -> InterruptId {
        let (run, id) = (escape(self.sequencer.run_id().as_str()), escape(&question.id));
        self.unused(match self.child_id(question.owner) {
            Some(child) => format!("{run}:{}:{id}", escape(child.as_str())),
            None => format!("{run}:{id}"),
        })
    }

    /// An agent may use the ids of its replies and calls again where nobody knows the history: an
    /// answer that comes late must not answer another question than the one that was seen.
    fn unused(&self, id: String) -> InterruptId {
        first_unused(&id, |id| !self.asks.taken.contains(id))
    }

    fn stored_call(&self, ask: &Ask) -> StoredCall {
        let wire_id = ask.wire.as_str().to_owned();
        let arguments = match ask.call.arguments.as_str() {
            "" => self.streamed_call(ask).map_or("", |(_, arguments)| arguments),
            text => text,
        };
        let arguments = arguments.to_owned();
        let input = ask.call.input.clone().or_else(|| parse_object(&arguments));
        StoredCall {
            id: ask.call.id.clone(),
            wire_id,
            name: self.ask_name(ask).to_owned(),
            arguments,
            input,
        }
    }

    fn call_interrupt(&self, ask: &Ask) -> OpenInterrupt {
        let call = self.stored_call(ask);
        let kind = match (ask.external, self.is_frontend_ask(ask)) {
            (false, false) => InterruptKind::PermissionConfirm,
            (true, false) => InterruptKind::ExternalExecution,
            (_, true) => InterruptKind::FrontendTool,
        };
        let approves = kind == InterruptKind::PermissionConfirm;
        let message = match (&ask.text, approves) {
            (Some(text), _) => text.clone(),
            (None, false) => format!("Run {} and answer with its result", call.name),
            (None, true) => format!("Approve running {}?", call.name),
        };
        let interrupt = Interrupt {
            subagent_run_id: self.sequencer.tag(ask.owner),
            id: self.call_interrupt_id(ask),
            reason: "tool_call".to_owned(),
            message: Some(message),
            tool_call_id: Some(ask.wire.clone()),
            response_schema: approves.then(approval_schema),
            expires_at: None,
            metadata: Some(self.call_metadata(ask, &call, kind)),
        };
        OpenInterrupt {
            interrupt,
            kind,
            reply: ask.reply.clone(),
            source: self.source_of(ask.owner).map(str::to_owned),
            task: self.task_of(ask.owner).map(str::to_owned),
            above: self.suspended_above(ask.owner),
            call: Some(call),
            question: None,
            expires_ms: None,
        }
    }

    /// The invocations above an owner as a client knows them.
    fn suspended_above(&self, owner: OwnerId) -> Vec<Suspended> {
        let shown = self.above(owner).filter(|child| self.sequencer.tag(child.owner).is_some());
        let suspended = shown.map(|child| Suspended {
            source: child.source_text().to_owned(),
            task: child.task.clone(),
            id: child.id.clone(),
        });
        suspended.collect()
    }

    fn call_metadata(&self, ask: &Ask, call: &StoredCall, kind: InterruptKind) -> Object {
        let input = call.input.clone().filter(|input| !input.is_empty());
        let rules = &ask.call.suggested_rules;
        object([
            ("agentscope.interruptKind", serde_json::to_value(kind).ok()),
            ("toolName", Some(Value::from(call.name.as_str()))),
            ("toolInput", input.map(Value::Object)),
            ("toolContent", Some(Value::from(call.arguments.as_str()))),
            ("replyId", (!ask.reply.is_empty()).then(|| Value::from(ask.reply.as_str()))),
            ("agentscope.source", self.source_of(ask.owner).map(Value::from)),
            ("agentscope.suggestedRules", (!rules.is_empty()).then(|| Value::from(rules.clone()))),
        ])
    }

    fn question_interrupt(&self, question: &Question) -> OpenInterrupt {
        let interrupt = Interrupt {
            subagent_run_id: self.sequencer.tag(question.owner),
            id: self.question_interrupt_id(question),
            reason: "input_required".to_owned(),
            message: Some(question.message.clone()),
            tool_call_id: None,
            response_schema: question.schema.clone(),
            expires_at: None,
            metadata: Some(object([
                (
                    "agentscope.interruptKind",
                    serde_json::to_value(InterruptKind::InputRequired).ok(),
                ),
                ("agentscope.source", self.source_of(question.owner).map(Value::from)),
            ])),
        };
        OpenInterrupt {
            interrupt,
            kind: InterruptKind::InputRequired,
            reply: String::new(),
            source: self.source_of(question.owner).map(str::to_owned),
            task: self.task_of(question.owner).map(str::to_owned),
            above: self.suspended_above(question.owner),
            call: None,
            question: Some(question.id.clone()),
            expires_ms: None,
        }
    }
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

/// Keeps `<a>:<b>` unambiguous.
fn escape(part: &str) -> String {
    part.replace('%', "%25").replace(':', "%3A")
}

/// Calls of two children that are shown as CUSTOM events may have one id: clients answer by the
/// interrupt's id, so the second gets another (INT-2).
fn make_unique(raised: &mut [OpenInterrupt], taken: &HashSet<InterruptId>) {
    let mut own = HashSet::new();
    for open in raised {
        let id = open.interrupt.id.as_str();
        open.interrupt.id = first_unused(id, |id| !taken.contains(id) && own.insert(id.clone()));
    }
}

/// The id, or the first one made of it that is not used.
fn first_unused(id: &str, mut is_unused: impl FnMut(&InterruptId) -> bool) -> InterruptId {
    let mut unused = InterruptId::from(id);
    let mut count = 1;
    while !is_unused(&unused) {
        count += 1;
        unused = InterruptId::from(format!("{id}:{count}"));
    }
    unused
}
