//! What agent events become, rule by rule. Every test states the whole stream, one event a line:
//! a short name, the ids, the content, then every other member as JSON.

use crate::support;

mod activities;
mod extensions;
mod interrupts;
mod legacy;
mod lifecycle;
mod reasoning;
mod regressions;
mod results;
mod resume;
mod script;
mod state;
mod subagents;
mod text;
mod tools;
mod usage;

use std::sync::Arc;

use agui_adapter::{
    model::wire::{DecodeOptions, decode},
    options::{AdapterOptions, Peer},
    outbound::{Extensions, RunEnd, RunSetup, StreamEnd},
    resume::Decision,
};
use agui_protocol::{
    Event, RunAgentInput,
    verify::{VerifyInput, check_events},
};
use serde_json::{Map, Value, json};
use support::{adapter, input};

/// A run to be played.
struct Run {
    input: RunAgentInput,
    peer: Peer,
    options: AdapterOptions,
    extensions: Extensions,
    answered: Vec<Decision>,
    stored_state: Option<Value>,
    end: StreamEnd,
    keep_raw: bool,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            input: input("{}"),
            peer: Peer::Current,
            options: AdapterOptions::default(),
            extensions: Extensions::default(),
            answered: Vec::new(),
            stored_state: None,
            end: StreamEnd::Completed,
            keep_raw: false,
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
        let lines = self.lines();
        assert_eq!(lines.first().map(String::as_str), Some("RUN t1 r1 1.0"));
        let actual: Vec<_> = lines.iter().skip(1).map(String::as_str).collect();
        assert!(actual == expected, "actual:\n{}\nexpected:\n{}", list(&actual), list(expected));
        self
    }
}

fn list(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("            {line:?},\n")).collect()
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

    /// Plays lines of agent events; what is there of them after the run's end must give nothing.
    #[track_caller]
    fn play(self, lines: &[String]) -> Played {
        let mut context = serde_json::to_value(&self.input).expect("json");
        if self.peer == Peer::Legacy {
            context.as_object_mut().expect("object").remove("protocolVersion");
        }
        let broken = self.options.emit_run_finished_after_error;
        let played = self.convert(lines);
        if !broken {
            check(&played.values(), context);
        }
        played
    }

    /// The same for a stream that the checker cannot know to be right.
    fn play_unchecked(self, lines: &[String]) -> Vec<String> {
        self.convert(lines).lines()
    }

    fn convert(self, lines: &[String]) -> Played {
        let Self { input, peer, options, extensions, answered, stored_state, end, keep_raw } = self;
        let mut setup = RunSetup::new(Arc::new(input), peer);
        setup.answered = answered;
        setup.stored_state = stored_state.map(Into::into);
        let mut adapter = adapter(setup, options, extensions);
        let (mut events, mut ended) = (Vec::new(), None);
        for line in lines {
            let event = decode(line, DecodeOptions { keep_raw }).expect(line);
            ended = ended.or(adapter.on_event(&event, &mut events));
        }
        let end = ended.unwrap_or_else(|| adapter.finish(end, &mut events));
        Played { events, end }
    }
}

/// The checker finds nothing but what the tests of options and of parked calls do on purpose.
#[track_caller]
fn check(events: &[Value], input: Value) {
    let found = check_events(events, &VerifyInput::from(input));
    let known = |rule: &str, message: &str| match rule {
        "TOOL-15" => message.ends_with("has no result"),
        "TOOL-14" => message.ends_with("which nobody made"),
        "INT-24" | "TOOL-16" | "TOOL-24" | "VER-13" => true,
        _ => false,
    };
    let faults: Vec<_> = found.iter().filter(|v| !known(v.rule, &v.message)).collect();
    assert!(faults.is_empty(), "{faults:#?}");
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

/// An event of the child `main/a` in the form for clients that know no sub-agents.
fn custom_line(name: &str, kind: &str, members: &Value) -> String {
    let mut value = json!({ "source": "main/a", "type": kind });
    for (key, member) in members.as_object().expect("object") {
        value[key] = member.clone();
    }
    format!("CUSTOM {}", json!({ "name": format!("subagent.{name}"), "value": value }))
}

/// The same of the child's first invocation.
fn child_line(name: &str, kind: &str, mut members: Value) -> String {
    let mut value = json!({ "subagentRunId": "id-1" });
    value.as_object_mut().expect("object").append(members.as_object_mut().expect("object"));
    custom_line(name, kind, &value)
}
