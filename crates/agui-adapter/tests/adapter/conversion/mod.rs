//! What agent events become, rule by rule. Every test states the whole stream, one event a line:
//! a short name, the ids, the content, then every other member as JSON.

use crate::support;

mod activities;
mod child_asks;
mod extensions;
mod gathered;
mod interrupts;
mod legacy;
mod lifecycle;
mod local_children;
mod reasoning;
mod regressions;
mod results;
mod resume;
pub mod script;
mod state;
mod subagents;
mod text;
mod tools;
mod usage;

use std::sync::Arc;

use agui_adapter::{
    model::{
        AgentEvent,
        wire::{DecodeOptions, decode},
    },
    options::{AdapterOptions, Peer},
    outbound::{Extensions, RunEnd, RunSetup, StreamEnd},
    resume::Decision,
};
use agui_protocol::{
    Event, RunAgentInput,
    verify::{VerifyInput, Violation, check_events},
};
use serde_json::{Map, Value, json};
use support::{adapter, input};

/// The end of a run that went well.
const SUCCESS: &str = "FINISHED {\"outcome\":{\"type\":\"success\"}}";

/// An input that says that `paint` is a tool of the client.
const FRONTEND: &str = r#"{"tools":[{"name":"paint","description":"d"}]}"#;

/// A run to be played.
struct Run {
    input: RunAgentInput,
    peer: Peer,
    options: AdapterOptions,
    extensions: Extensions,
    answered: Vec<Decision>,
    /// Interrupts that the thread had before.
    taken: &'static [&'static str],
    started_metadata: Map<String, Value>,
    stored_state: Option<Value>,
    end: StreamEnd,
    keep_raw: bool,
    /// Rules that the run breaks on purpose.
    excused: &'static [&'static str],
}

impl Default for Run {
    fn default() -> Self {
        Self {
            input: input("{}"),
            peer: Peer::Current,
            options: AdapterOptions::default(),
            extensions: Extensions::default(),
            answered: Vec::new(),
            taken: &[],
            started_metadata: Map::new(),
            stored_state: None,
            end: StreamEnd::Completed,
            keep_raw: false,
            excused: &[],
        }
    }
}

/// What became of it.
struct Played {
    events: Vec<Event>,
    end: RunEnd,
}

impl Played {
    fn values(&self) -> Vec<Value> {
        self.events.iter().map(|event| serde_json::to_value(event).expect("json")).collect()
    }

    fn lines(&self) -> Vec<String> {
        self.values().into_iter().map(line).collect()
    }

    /// Compares with the expected lines, without the RUN_STARTED that every stream begins with.
    #[track_caller]
    fn gives(&self, expected: &[&str]) -> &Self {
        self.gives_all(&[&["RUN t1 r1 1.0"], expected].concat())
    }

    /// The same, RUN_STARTED included.
    #[track_caller]
    fn gives_all(&self, expected: &[&str]) -> &Self {
        let lines = self.lines();
        let actual: Vec<_> = lines.iter().map(String::as_str).collect();
        assert!(actual == expected, "actual:\n{}\nexpected:\n{}", list(&actual), list(expected));
        self
    }

    fn open_ids(&self) -> Vec<&str> {
        self.end.open.iter().map(|open| open.interrupt.id.as_str()).collect()
    }
}

fn list(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("            {line:?},\n")).collect()
}

/// The message of a client that holds a call.
fn made(call: &str, tool: &str) -> Value {
    json!({ "id": format!("made-{call}"), "role": "assistant", "toolCalls": [
        { "id": call, "type": "function", "function": { "name": tool, "arguments": "{}" } }] })
}

impl Run {
    fn with_input(json: &str) -> Self {
        Self { input: input(json), ..Self::default() }
    }

    fn with(change: impl FnOnce(&mut AdapterOptions)) -> Self {
        let mut run = Self::default();
        change(&mut run.options);
        run
    }

    /// The client's messages hold calls of earlier runs: the id, the tool, and the answer if there
    /// is one.
    fn knowing(mut self, calls: &[(&str, &str, Option<&str>)]) -> Self {
        let mut messages = vec![json!({ "id": "u1", "role": "user", "content": "hi" })];
        for (call, tool, answer) in calls {
            messages.push(made(call, tool));
            messages.extend(answer.map(|answer| {
                json!({ "id": format!("answered-{call}"), "role": "tool", "toolCallId": call,
                    "content": answer })
            }));
        }
        self.input.messages = input(&json!({ "messages": messages }).to_string()).messages;
        self
    }

    /// Plays lines of agent events; what is there of them after the run's end must give nothing.
    #[track_caller]
    fn play(self, lines: &[String]) -> Played {
        let events: Vec<_> = lines.iter().map(|line| read(line, self.keep_raw)).collect();
        self.play_events(&events)
    }

    /// The same for agents inside this process, which can say more than the wire.
    #[track_caller]
    fn play_events(self, events: &[AgentEvent]) -> Played {
        let mut context = json!(self.input);
        if self.peer == Peer::Legacy {
            context.as_object_mut().expect("object").remove("protocolVersion");
        }
        let excused = self.excused;
        let played = self.convert(events);
        let found = check_events(&played.values(), &VerifyInput::from(context));
        let is_fault = |found: &&Violation| !excused.contains(&found.rule) && !is_pending(found);
        let faults: Vec<_> = found.iter().filter(is_fault).collect();
        assert!(faults.is_empty(), "{faults:#?}");
        played
    }

    fn convert(self, events: &[AgentEvent]) -> Played {
        let mut setup = RunSetup::new(Arc::new(self.input), self.peer);
        setup.answered = self.answered;
        setup.taken = self.taken.iter().map(|id| (*id).into()).collect();
        setup.started_metadata = self.started_metadata;
        setup.stored_state = self.stored_state.map(Into::into);
        let mut adapter = adapter(setup, self.options, self.extensions);
        let (mut out, mut ended) = (Vec::new(), None);
        for event in events {
            ended = ended.or(adapter.on_event(event, &mut out));
        }
        let end = ended.unwrap_or_else(|| adapter.finish(self.end, &mut out));
        Played { events: out, end }
    }
}

/// A call that nobody executed has no result and is pending.
fn is_pending(found: &Violation) -> bool {
    found.rule == "TOOL-15" && found.message.ends_with("has no result")
}

#[track_caller]
fn read(line: &str, keep_raw: bool) -> AgentEvent {
    decode(line, DecodeOptions { keep_raw }).expect(line)
}

/// A line among events for [`Run::play_events`].
#[track_caller]
fn wire(line: String) -> AgentEvent {
    read(&line, false)
}

/// Plays lines with every default.
#[track_caller]
fn play(lines: &[String]) -> Played {
    Run::default().play(lines)
}

/// Short names, and the members that stand beside them in this order.
const SHORT: &[(&str, &str, &[&str])] = &[
    ("RUN_STARTED", "RUN", &["threadId", "runId", "protocolVersion"]),
    ("RUN_FINISHED", "FINISHED", &[]),
    ("RUN_ERROR", "ERROR", &["code", "message"]),
    ("TEXT_MESSAGE_START", "TEXT", &["messageId"]),
    ("TEXT_MESSAGE_CONTENT", "TEXT+", &["messageId", "delta"]),
    ("TEXT_MESSAGE_END", "TEXT.", &["messageId"]),
    ("REASONING_START", "SPAN", &["messageId"]),
    ("REASONING_END", "SPAN.", &["messageId"]),
    ("REASONING_MESSAGE_START", "THINK", &["messageId"]),
    ("REASONING_MESSAGE_CONTENT", "THINK+", &["messageId", "delta"]),
    ("REASONING_MESSAGE_END", "THINK.", &["messageId"]),
    ("TOOL_CALL_START", "CALL", &["toolCallId", "toolCallName", "parentMessageId"]),
    ("TOOL_CALL_ARGS", "CALL+", &["toolCallId", "delta"]),
    ("TOOL_CALL_END", "CALL.", &["toolCallId"]),
    ("TOOL_CALL_RESULT", "RESULT", &["messageId", "toolCallId", "content"]),
];

/// One event as a line; nothing of it is left out but what a name implies.
fn line(event: Value) -> String {
    let Value::Object(mut members) = event else { return event.to_string() };
    let kind = take(&mut members, "type").unwrap_or_default();
    let short = SHORT.iter().find(|(name, ..)| *name == kind);
    let (name, listed) =
        short.map_or((kind.as_str(), &[][..]), |(_, name, listed)| (*name, *listed));
    let mut line = name.to_owned();
    for member in listed {
        if let Some(text) = take(&mut members, member) {
            line = format!("{line} {text}");
        }
    }
    let implied = match name {
        "TEXT" => "assistant",
        "THINK" => "reasoning",
        "RESULT" => "tool",
        _ => "",
    };
    if members.get("role").is_some_and(|role| role == implied) {
        members.shift_remove("role");
    }
    if name == "RUN" {
        // Ids of boundary events are the input's; the end repeats them.
    } else if name == "FINISHED" {
        let ids = (take(&mut members, "threadId"), take(&mut members, "runId"));
        assert_eq!(ids, (Some("t1".to_owned()), Some("r1".to_owned())));
    } else if name == "ERROR" {
        assert_eq!(members.shift_remove("timestamp"), Some(Value::from(support::NOW)));
    }
    if let Some(owner) = take(&mut members, "subagentRunId") {
        line = format!("{line} @{owner}");
    }
    if !members.is_empty() {
        line = format!("{line} {}", Value::Object(members));
    }
    line
}

fn take(members: &mut Map<String, Value>, name: &str) -> Option<String> {
    match members.get(name)? {
        Value::String(_) => members.shift_remove(name)?.as_str().map(str::to_owned),
        _ => None,
    }
}

/// An event of the first invocation of the child `main/a` in the form for clients that know no sub-agents.
fn child_line(name: &str, kind: &str, members: Value) -> String {
    let mut typed = json!({ "type": kind });
    typed.as_object_mut().expect("object").extend(members.as_object().expect("object").clone());
    subagents::told(("main/a", Some("id-1")), name, typed)
}
