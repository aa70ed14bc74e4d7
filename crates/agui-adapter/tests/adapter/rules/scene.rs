//! A run to convert, and short words for its events.

use std::{panic::Location, sync::Arc};

use agui_adapter::{
    model::{
        AgentEvent, AgentEventKind as Kind, Block, Msg, Origin, Role,
        event::{Call, EndReason, Failure, ResultState, StateChange},
    },
    options::{AdapterOptions, Peer, SubagentEvents},
    outbound::{Extensions, RunEnd, RunSetup, StreamEnd},
    resume::{Decision, OpenInterrupt, decide},
};
use agui_protocol::{
    ResumeEntry,
    verify::{VerifyInput, check_events},
};
use serde_json::{Map, Value, json};

use crate::support::{adapter, input};

pub struct Scene {
    pub input: Value,
    pub options: AdapterOptions,
    pub peer: Peer,
    pub setup: fn(&mut RunSetup),
    pub answered: Vec<Decision>,
    pub extensions: Extensions,
    pub stream_end: StreamEnd,
    pub events: Vec<AgentEvent>,
    /// Rules that the agent of the scene breaks itself.
    pub excused: &'static [&'static str],
}

pub fn scene<const N: usize>(events: [AgentEvent; N]) -> Scene {
    Scene {
        input: json!({
            "threadId": "t1", "runId": "r1", "protocolVersion": "1.0",
            "messages": [{ "id": "u1", "role": "user", "content": "hi" }],
        }),
        options: AdapterOptions::default(),
        peer: Peer::Current,
        setup: |_| {},
        answered: Vec::new(),
        extensions: Extensions::default(),
        stream_end: StreamEnd::Completed,
        events: events.into(),
        excused: &[],
    }
}

impl Scene {
    pub fn with(mut self, change: impl FnOnce(&mut AdapterOptions)) -> Self {
        change(&mut self.options);
        self
    }

    pub fn reasoning(self) -> Self {
        self.with(|options| options.enable_reasoning = true)
    }

    pub fn children(self, mode: SubagentEvents) -> Self {
        self.with(|options| options.subagent_events = mode)
    }

    pub fn legacy(mut self) -> Self {
        self.peer = Peer::Legacy;
        self.input.as_object_mut().expect("object").remove("protocolVersion");
        self
    }

    pub fn input(mut self, name: &str, value: Value) -> Self {
        self.input[name] = value;
        self
    }

    /// `pick` is a tool of the client.
    pub fn frontend_tool(self) -> Self {
        self.input("tools", json!([{ "name": "pick", "description": "", "parameters": {} }]))
    }

    pub fn excuse(mut self, rules: &'static [&'static str]) -> Self {
        self.excused = rules;
        self
    }

    pub fn ends(mut self, end: StreamEnd) -> Self {
        self.stream_end = end;
        self
    }

    pub fn setup(mut self, setup: fn(&mut RunSetup)) -> Self {
        self.setup = setup;
        self
    }

    /// Goes on from a run that ended with these interrupts.
    pub fn resumes(mut self, open: &[OpenInterrupt], entries: Value) -> Self {
        let entries: Vec<ResumeEntry> = serde_json::from_value(entries).expect("entries");
        self.answered = decide(&entries, open).expect("answers that can be taken");
        self.input["resume"] = json!(entries);
        self.input["runId"] = json!("r2");
        self
    }

    pub fn run(&self) -> (Vec<Value>, RunEnd) {
        let mut json = self.input.clone();
        if self.peer == Peer::Legacy {
            json["protocolVersion"] = Value::Null;
        }
        let mut setup = RunSetup::new(Arc::new(input(&json.to_string())), self.peer);
        setup.answered.clone_from(&self.answered);
        (self.setup)(&mut setup);
        let mut adapter = adapter(setup, self.options.clone(), self.extensions.clone());
        let (mut out, mut ended) = (Vec::new(), None);
        for event in &self.events {
            let end = adapter.on_event(event, &mut out);
            ended = ended.or(end);
        }
        let end = ended.unwrap_or_else(|| adapter.finish(self.stream_end.clone(), &mut out));
        let values = out.iter().map(|event| serde_json::to_value(event).expect("json")).collect();
        (values, end)
    }

    /// The events are exactly these, and keep the rules.
    #[track_caller]
    pub fn gives(&self, expected: &str) -> RunEnd {
        let (values, end) = self.run();
        let found: Vec<_> = check_events(&values, &VerifyInput::from(self.input.clone()).lenient())
            .into_iter()
            .filter(|found| !self.excused.contains(&found.rule))
            .map(|found| found.to_string())
            .collect();
        let lines: Vec<String> = values.iter().map(line).collect();
        let expected: Vec<&str> =
            expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let at = Location::caller();
        assert_eq!(found, Vec::<String>::new(), "\n{}", lines.join("\n"));
        assert!(
            lines == expected,
            "@@{}:{}\n{}\n@@\nexpected\n{}",
            at.file(),
            at.line(),
            lines.join("\n"),
            expected.join("\n"),
        );
        end
    }
}

pub fn line(event: &Value) -> String {
    let mut line = event["type"].as_str().expect("type").to_owned();
    for (name, value) in event.as_object().expect("object") {
        if matches!(name.as_str(), "type" | "threadId" | "runId" | "protocolVersion") {
            continue;
        }
        let value = match value {
            Value::String(text) if !text.contains(['\n', ' ', '"']) => text.clone(),
            other => other.to_string(),
        };
        line.push_str(&format!(" {name}={value}"));
    }
    line
}

fn local(kind: Kind) -> AgentEvent {
    AgentEvent::local(kind)
}

/// The same event from a child.
pub fn of(source: &str, event: AgentEvent) -> AgentEvent {
    event.from_source(source)
}

pub fn python(mut event: AgentEvent) -> AgentEvent {
    event.origin = Origin::Python;
    event
}

pub fn event(kind: Kind) -> AgentEvent {
    local(kind)
}

pub fn start() -> AgentEvent {
    local(Kind::AgentStart { reply: None, session: None, name: "helper".into() })
}

pub fn end() -> AgentEvent {
    end_with(EndReason::Unstated)
}

pub fn end_with(reason: EndReason) -> AgentEvent {
    local(Kind::AgentEnd { reply: None, reason })
}

pub fn failure(class: &str, message: &str) -> EndReason {
    EndReason::Failed(Failure { class: class.into(), message: message.into() })
}

pub fn result_message(reason: &str, text: &str) -> AgentEvent {
    let content = vec![Block::Text { text: text.into() }];
    result_blocks(reason, content)
}

pub fn result_blocks(reason: &str, content: Vec<Block>) -> AgentEvent {
    let result = Msg {
        id: "msg".into(),
        name: "helper".into(),
        role: Role::Assistant,
        content,
        metadata: Map::new(),
    };
    local(Kind::AgentResult { result, generate_reason: Some(reason.into()) })
}

pub fn model(reply: &str) -> AgentEvent {
    local(Kind::ModelCallStart { reply: reply.into(), model: None })
}

pub fn model_end(reply: &str) -> AgentEvent {
    local(Kind::ModelCallEnd { reply: reply.into(), usage: None })
}

pub fn text_start(reply: &str, block: &str) -> AgentEvent {
    local(Kind::TextBlockStart { reply: reply.into(), block: block.into() })
}

pub fn text(reply: &str, block: &str, delta: &str) -> AgentEvent {
    local(Kind::TextBlockDelta { reply: reply.into(), block: block.into(), delta: delta.into() })
}

pub fn text_end(reply: &str, block: &str) -> AgentEvent {
    local(Kind::TextBlockEnd { reply: reply.into(), block: block.into(), text: None })
}

pub fn think(reply: &str, block: &str, delta: &str) -> AgentEvent {
    let (reply, block) = (reply.into(), block.into());
    local(Kind::ThinkingBlockDelta { reply, block, delta: delta.into() })
}

pub fn think_end(reply: &str, block: &str) -> AgentEvent {
    let (reply, block) = (reply.into(), block.into());
    local(Kind::ThinkingBlockEnd { reply, block, encrypted: None })
}

pub fn call(reply: &str, call: &str, name: &str) -> AgentEvent {
    local(Kind::ToolCallStart { reply: reply.into(), call: call.into(), name: name.into() })
}

pub fn args(call: &str, delta: &str) -> AgentEvent {
    local(Kind::ToolCallDelta { call: call.into(), delta: delta.into() })
}

pub fn call_end(call: &str) -> AgentEvent {
    local(Kind::ToolCallEnd { call: call.into(), encrypted: None })
}

pub fn result_start(call: &str, name: &str) -> AgentEvent {
    let reply = "R".into();
    local(Kind::ToolResultStart { reply, call: call.into(), name: name.into() })
}

pub fn output(call: &str, delta: &str) -> AgentEvent {
    local(Kind::ToolResultTextDelta { call: call.into(), delta: delta.into() })
}

pub fn result_end(call: &str) -> AgentEvent {
    result_end_as(call, ResultState::Success)
}

pub fn result_end_as(call: &str, state: ResultState) -> AgentEvent {
    local(Kind::ToolResultEnd { reply: "R".into(), call: call.into(), state })
}

pub fn listed(id: &str, name: &str, arguments: &str) -> Call {
    Call {
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
        input: serde_json::from_str(arguments).ok(),
        suggested_rules: Vec::new(),
    }
}

pub fn ask(reply: &str, calls: &[Call]) -> AgentEvent {
    local(Kind::RequireUserConfirm { reply: reply.into(), calls: calls.to_vec() })
}

pub fn outside(reply: &str, calls: &[Call]) -> AgentEvent {
    local(Kind::RequireExternalExecution { reply: reply.into(), calls: calls.to_vec() })
}

pub fn custom(name: &str, value: Value) -> AgentEvent {
    local(Kind::Custom { name: name.into(), value })
}

pub fn state(value: Value) -> AgentEvent {
    local(Kind::State { change: StateChange::Set(value) })
}
