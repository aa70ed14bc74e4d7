//! The rules about the order of events.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    Log, VerifyInput, Violation,
    chunks::{self, Lane},
    items::{Family, Items},
    thread::{Call, Origin, Thread},
};

/// Checks the order of the events of one response.
pub(super) fn check(events: &[Value], context: &VerifyInput) -> Vec<Violation> {
    let mut sequence = Sequence {
        context,
        log: Log::default(),
        thread: Thread::new(context),
        run: Run::default(),
        phase: Phase::Before,
        thread_id: None,
        run_ids: Vec::new(),
    };
    for event in events {
        sequence.event(event);
        sequence.log.index += 1;
    }
    sequence.stream_end();
    sequence.log.found
}

/// A string member of an event.
pub(super) fn text<'a>(event: &'a Value, name: &str) -> Option<&'a str> {
    event.get(name)?.as_str()
}

/// Where the stream is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Before,
    Running,
    Finished,
    Failed,
}

/// One invocation of a sub-agent.
pub(super) struct Subagent {
    pub(super) id: String,
    pub(super) open: bool,
}

/// What is known of the current run.
#[derive(Default)]
pub(super) struct Run {
    pub(super) thread_id: Option<String>,
    pub(super) run_id: Option<String>,
    pub(super) items: Items,
    pub(super) lanes: Vec<Lane>,
    /// Whether there was any chunk yet.
    pub(super) chunked: bool,
    /// Open steps: owner and name.
    pub(super) steps: Vec<(Option<String>, String)>,
    pub(super) subagents: Vec<Subagent>,
    /// Whether a sub-agent was suspended, and the interrupts that it named.
    pub(super) suspended: Option<Vec<String>>,
    /// The calls started in this run, in call order.
    pub(super) calls: Vec<String>,
    /// The calls answered in this run.
    pub(super) answered: HashSet<String>,
}

pub(super) struct Sequence<'a> {
    pub(super) context: &'a VerifyInput,
    pub(super) log: Log,
    pub(super) thread: Thread,
    pub(super) run: Run,
    phase: Phase,
    /// The thread of the stream's first run.
    thread_id: Option<String>,
    run_ids: Vec<String>,
}

impl Sequence<'_> {
    fn event(&mut self, event: &Value) {
        let Some(kind) = text(event, "type") else { return };
        if !self.allowed_now(kind) {
            return;
        }
        let owner = text(event, "subagentRunId");
        if let Some(family) = chunks::family(kind) {
            return self.chunk(event, family);
        }
        self.run.close_lanes(kind, owner);
        if self.context.is_legacy() {
            self.legacy(kind, event);
        }
        match kind {
            "RUN_STARTED" => self.run_started(event),
            "RUN_FINISHED" => {
                self.run_finished(event);
                self.phase = Phase::Finished;
            }
            "RUN_ERROR" => {
                self.usage(event);
                self.phase = Phase::Failed;
            }
            "STEP_STARTED" => self.step_started(event, owner),
            "STEP_FINISHED" => self.step_finished(event, owner),
            "TOOL_CALL_RESULT" => self.tool_call_result(event, owner),
            "STATE_SNAPSHOT" => self.thread.state_snapshot(&event["snapshot"]),
            "STATE_DELTA" => self.thread.state_delta(&event["delta"], &mut self.log),
            "MESSAGES_SNAPSHOT" => self.messages_snapshot(event),
            "REASONING_ENCRYPTED_VALUE" => self.encrypted_value(event),
            "SUBAGENT_STARTED" => self.subagent_started(event),
            "SUBAGENT_FINISHED" | "SUBAGENT_ERROR" => self.subagent_ended(event),
            _ => self.item_event(kind, event, owner),
        }
    }

    /// What may stand before, inside and after a run.
    fn allowed_now(&mut self, kind: &str) -> bool {
        match (self.phase, kind) {
            (Phase::Before, "RUN_STARTED" | "RUN_ERROR") => true,
            (Phase::Before, _) => {
                self.log.flag("LIFE-1", format!("{kind} before RUN_STARTED"));
                // One finding is enough: the rest is checked as if the run had started.
                self.phase = Phase::Running;
                true
            }
            (Phase::Running, "RUN_STARTED") => {
                self.log.flag("LIFE-5", "RUN_STARTED while a run is open");
                true
            }
            (Phase::Running, _) | (Phase::Finished, "RUN_STARTED" | "RUN_ERROR") => true,
            (Phase::Failed, "RUN_STARTED") => true,
            (Phase::Finished, _) => {
                self.log.flag("LIFE-4", format!("{kind} after RUN_FINISHED"));
                false
            }
            (Phase::Failed, _) => {
                self.log.flag("LIFE-3", format!("{kind} after RUN_ERROR"));
                false
            }
        }
    }

    fn run_started(&mut self, event: &Value) {
        self.phase = Phase::Running;
        let (thread_id, run_id) = (text(event, "threadId"), text(event, "runId"));
        self.run = Run {
            thread_id: thread_id.map(str::to_owned),
            run_id: run_id.map(str::to_owned),
            ..Run::default()
        };
        self.protocol_version(event);
        let first = self.thread_id.get_or_insert_with(|| thread_id.unwrap_or_default().to_owned());
        let expected = self.context.string("threadId").unwrap_or(first);
        if thread_id.is_some_and(|id| id != expected) {
            self.log.flag("LIFE-8", format!("the run's thread is not {expected}"));
        }
        if let Some(id) = run_id {
            if self.run_ids.iter().any(|known| known == id) {
                self.log.flag("LIFE-9", format!("run {id} starts a second time"));
            }
            self.run_ids.push(id.to_owned());
        }
        let parent = self.context.string("parentRunId");
        if parent.is_some()
            && run_id == self.context.string("runId")
            && text(event, "parentRunId") != parent
        {
            self.log.flag("IN-23", "the input's parentRunId is not repeated");
        }
        if let Some(messages) = event.get("input").and_then(|input| input.get("messages")) {
            self.thread.echo(messages);
        }
    }

    fn protocol_version(&mut self, event: &Value) {
        let Some(version) = text(event, "protocolVersion") else {
            return self.log.flag("VER-1", "RUN_STARTED without protocolVersion");
        };
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let good = version.split_once('.').is_some_and(|(a, b)| digits(a) && digits(b));
        if !good {
            self.log.flag("VER-2", format!("{version:?} is not MAJOR.MINOR"));
        }
    }

    /// What clients older than 1.0 fail on (VER-13).
    fn legacy(&mut self, kind: &str, event: &Value) {
        let what = match kind {
            "SUBAGENT_STARTED" | "SUBAGENT_FINISHED" | "SUBAGENT_ERROR" => kind,
            "RUN_FINISHED"
                if matches!(event["outcome"]["type"].as_str(), Some("success" | "cancelled")) =>
            {
                "an outcome other than interrupt"
            }
            "TOOL_CALL_RESULT" if event["content"].is_array() => "a tool result of parts",
            "TEXT_MESSAGE_CONTENT" if event["delta"] == "" => "an empty delta",
            _ => return,
        };
        self.log.flag("VER-13", format!("{what} for a client older than 1.0"));
    }

    fn step_started(&mut self, event: &Value, owner: Option<&str>) {
        let Some(name) = text(event, "stepName") else { return };
        let step = (owner.map(str::to_owned), name.to_owned());
        if self.run.steps.contains(&step) {
            self.log.flag("LIFE-28", format!("step {name} is open already"));
        } else {
            self.run.steps.push(step);
        }
    }

    fn step_finished(&mut self, event: &Value, owner: Option<&str>) {
        let Some(name) = text(event, "stepName") else { return };
        let steps = &mut self.run.steps;
        let own = steps.iter().position(|step| step.0.as_deref() == owner && step.1 == name);
        match own {
            Some(position) => {
                steps.remove(position);
            }
            None if steps.iter().any(|step| step.1 == name) => {
                self.log.flag("SUB-8", format!("step {name} is open under another owner"));
            }
            None => self.log.flag("LIFE-28", format!("step {name} is not open")),
        }
    }

    /// Start, content and end of messages, spans and calls; activities.
    fn item_event(&mut self, kind: &str, event: &Value, owner: Option<&str>) {
        let member = if kind.starts_with("TOOL_CALL_") { "toolCallId" } else { "messageId" };
        let Some(id) = text(event, member) else { return };
        let (items, log) = (&mut self.run.items, &mut self.log);
        match kind {
            "TEXT_MESSAGE_START" => self.start(event, Family::Text, id, owner),
            "REASONING_MESSAGE_START" => self.start(event, Family::Reasoning, id, owner),
            "REASONING_START" => self.start(event, Family::Span, id, owner),
            "TOOL_CALL_START" => self.start(event, Family::Call, id, owner),
            "TEXT_MESSAGE_CONTENT" => {
                items.go_on(Family::Text, id, owner, log);
            }
            "REASONING_MESSAGE_CONTENT" => {
                items.go_on(Family::Reasoning, id, owner, log);
            }
            "TOOL_CALL_ARGS" => {
                items.go_on(Family::Call, id, owner, log);
            }
            "TEXT_MESSAGE_END" => items.end(Family::Text, id, owner, log),
            "REASONING_MESSAGE_END" => items.end(Family::Reasoning, id, owner, log),
            "REASONING_END" => items.end(Family::Span, id, owner, log),
            "TOOL_CALL_END" => items.end(Family::Call, id, owner, log),
            "ACTIVITY_SNAPSHOT" => self.thread.activity_snapshot(id, owner, event, log),
            "ACTIVITY_DELTA" => self.thread.activity_delta(id, owner, event, log),
            _ => {}
        }
    }

    fn start(&mut self, event: &Value, family: Family, id: &str, owner: Option<&str>) {
        if self.run.items.start(family, id, owner, &mut self.log) {
            self.introduce(event, family, id, owner);
        }
    }

    /// Makes a starting item known to the thread.
    pub(super) fn introduce(
        &mut self,
        event: &Value,
        family: Family,
        id: &str,
        owner: Option<&str>,
    ) {
        let forbid = self.context.forbid_reopen;
        let role = match family {
            Family::Text => text(event, "role").unwrap_or("assistant"),
            Family::Reasoning => "reasoning",
            Family::Span => return,
            Family::Call => return self.call_started(event, id, owner),
        };
        self.thread.mint((role, id, owner), forbid, &mut self.log);
    }

    fn call_started(&mut self, event: &Value, id: &str, owner: Option<&str>) {
        let parent = text(event, "parentMessageId");
        let known = self.thread.calls.get(id);
        match known.map(|call| call.origin) {
            Some(Origin::Input) => {
                self.log.flag("TOOL-14", format!("call {id} of the input is streamed again"));
            }
            // A client that joins a run gets its open calls with the snapshot.
            Some(Origin::Snapshot) => {}
            Some(_) if self.context.forbid_reopen => {
                self.log.flag("TOOL-24", format!("call {id} starts a second time"));
            }
            Some(_) => {}
            None => self.thread.carry(id, parent, owner, &mut self.log),
        }
        let answered = known_answer(&self.thread, id);
        let name = text(event, "toolCallName").unwrap_or_default().to_owned();
        let owner = owner.map(str::to_owned);
        let call = Call { name, owner, origin: Origin::Stream, answered };
        self.thread.calls.insert(id.to_owned(), call);
        if !self.run.calls.iter().any(|call| call == id) {
            self.run.calls.push(id.to_owned());
        }
    }

    fn tool_call_result(&mut self, event: &Value, owner: Option<&str>) {
        if let Some(id) = text(event, "messageId") {
            self.thread.mint_whole(("tool", id, owner), "TOOL-7", &mut self.log);
        }
        let Some(id) = text(event, "toolCallId") else { return };
        if self.run.items.is_open(Family::Call, id) {
            self.log.flag("TOOL-13", format!("a result for call {id}, which is still open"));
        }
        self.run.answered.insert(id.to_owned());
        let Some(call) = self.thread.calls.get_mut(id) else {
            if self.context.input.is_some() {
                self.log.flag("TOOL-14", format!("a result for call {id}, which nobody made"));
            }
            return;
        };
        if call.answered {
            self.log.flag("TOOL-15", format!("a second result for call {id}"));
        }
        call.answered = true;
        if owner.is_some() && call.owner.as_deref() != owner {
            self.log.flag("SUB-1", format!("the result of call {id} has another owner"));
        }
        if self.context.is_frontend_tool(&call.name) {
            self.log.flag("TOOL-16", format!("a result for call {id} of a tool of the client"));
        }
    }

    fn messages_snapshot(&mut self, event: &Value) {
        let Some(messages) = event["messages"].as_array() else { return };
        for item in self
            .run
            .items
            .open
            .iter()
            .filter(|item| matches!(item.family, Family::Text | Family::Reasoning))
        {
            if !messages.iter().any(|message| message["id"] == item.id.as_str()) {
                self.log.flag("SNAP-7", format!("open message {} is not in the snapshot", item.id));
            }
        }
        self.thread.snapshot(messages, self.context, &mut self.log);
    }

    fn encrypted_value(&mut self, event: &Value) {
        let Some(entity) = text(event, "entityId") else { return };
        let known = match text(event, "subtype") {
            Some("tool-call") => self.thread.calls.contains_key(entity),
            Some("message") => self.thread.messages.contains_key(entity),
            _ => return,
        };
        if !known {
            self.log.flag("REAS-8", format!("an encrypted value for {entity}, which is unknown"));
        }
    }

    fn subagent_started(&mut self, event: &Value) {
        let subagents = &mut self.run.subagents;
        if let Some(parent) = text(event, "parentSubagentRunId")
            && !subagents.iter().any(|known| known.id == parent)
        {
            self.log.flag("SUB-9", format!("parent sub-agent {parent} was not announced"));
        }
        let Some(id) = text(event, "subagentRunId") else { return };
        if subagents.iter().any(|known| known.id == id) {
            self.log.flag("SUB-2", format!("sub-agent {id} was announced before"));
        }
        subagents.push(Subagent { id: id.to_owned(), open: true });
    }

    fn subagent_ended(&mut self, event: &Value) {
        let Some(id) = text(event, "subagentRunId") else { return };
        let open = self.run.subagents.iter_mut().find(|known| known.id == id && known.open);
        match open {
            Some(subagent) => subagent.open = false,
            None => self.log.flag("SUB-3", format!("sub-agent {id} is not open")),
        }
        for item in &self.run.items.open {
            if item.owner.as_deref() == Some(id) {
                let name = item.family.name();
                self.log.flag("SUB-16", format!("{name} {} of sub-agent {id} is open", item.id));
            }
        }
        for (_, name) in self.run.steps.iter().filter(|step| step.0.as_deref() == Some(id)) {
            self.log.flag("SUB-16", format!("step {name} of sub-agent {id} is open"));
        }
        let outcome = &event["outcome"];
        if outcome["type"] == "suspended" {
            let named = outcome["interruptIds"].as_array().into_iter().flatten();
            let named = named.filter_map(Value::as_str).map(str::to_owned);
            self.run.suspended.get_or_insert_default().extend(named);
        }
    }

    fn stream_end(&mut self) {
        match self.phase {
            Phase::Before => self.log.flag("LIFE-25", "a stream without events"),
            Phase::Running => self.log.flag("LIFE-25", "the stream ends without a terminal event"),
            Phase::Finished | Phase::Failed => {}
        }
        if let (Some(last), Some(asked)) = (self.run_ids.last(), self.context.string("runId"))
            && last != asked
        {
            self.log.flag("IN-20", format!("the stream's last run is not {asked}"));
        }
    }
}

fn known_answer(thread: &Thread, id: &str) -> bool {
    thread.calls.get(id).is_some_and(|call| call.answered)
}
