//! A second opinion on the order of events, written against JSON so that it shares no code with
//! the gate.

use std::collections::{BTreeMap, BTreeSet};

use agui_protocol::Event;
use serde_json::Value;

#[derive(Default)]
struct Seen {
    open: BTreeMap<(&'static str, String), String>,
    messages: BTreeMap<String, String>,
    activities: BTreeMap<String, String>,
    calls: BTreeMap<String, String>,
    active: BTreeSet<String>,
    over: BTreeSet<String>,
}

/// The first rule that the stream of one run breaks.
pub(super) fn check(events: &[Event]) -> Result<(), String> {
    let mut seen = Seen::default();
    let last = events.len().saturating_sub(1);
    for (index, event) in events.iter().enumerate() {
        let event = serde_json::to_value(event).map_err(|error| error.to_string())?;
        let fail = |rule: &str| Err(format!("{rule} at {index}: {event}"));
        let kind = event["type"].as_str().unwrap_or_default();
        if (index == 0) != (kind == "RUN_STARTED") {
            return fail("RUN_STARTED is the first event and no other");
        }
        if (index == last) != matches!(kind, "RUN_FINISHED" | "RUN_ERROR") {
            return fail("one end, at the end");
        }
        if let Err(rule) = step(&mut seen, kind, &event) {
            return fail(rule);
        }
    }
    if events.len() < 2 { Err("no end".to_owned()) } else { Ok(()) }
}

fn step(seen: &mut Seen, kind: &str, event: &Value) -> Result<(), &'static str> {
    let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
    let owner = text("subagentRunId");
    match kind {
        "TEXT_MESSAGE_START" => {
            open(seen, "text", text("messageId"), &owner)?;
            same(seen.messages.entry(text("messageId")).or_insert(owner.clone()), &owner)
        }
        "TEXT_MESSAGE_CONTENT" => goes_on(seen, "text", text("messageId"), &owner),
        "TEXT_MESSAGE_END" => close(seen, "text", text("messageId"), &owner),
        "REASONING_START" => open(seen, "span", text("messageId"), &owner),
        "REASONING_END" => close(seen, "span", text("messageId"), &owner),
        "REASONING_MESSAGE_START" => open(seen, "reasoning", text("messageId"), &owner),
        "REASONING_MESSAGE_CONTENT" => goes_on(seen, "reasoning", text("messageId"), &owner),
        "REASONING_MESSAGE_END" => close(seen, "reasoning", text("messageId"), &owner),
        "TOOL_CALL_START" => {
            open(seen, "call", text("toolCallId"), &owner)?;
            if let Some(parent) = seen.messages.get(&text("parentMessageId")) {
                same(parent, &owner)?;
            }
            same(seen.calls.entry(text("toolCallId")).or_insert(owner.clone()), &owner)
        }
        "TOOL_CALL_ARGS" => goes_on(seen, "call", text("toolCallId"), &owner),
        "TOOL_CALL_END" => close(seen, "call", text("toolCallId"), &owner),
        "TOOL_CALL_RESULT" => match seen.calls.get(&text("toolCallId")) {
            Some(opener) => same(opener, &owner),
            None => Ok(()),
        },
        "STEP_STARTED" => open(seen, "step", format!("{owner}/{}", text("stepName")), &owner),
        "STEP_FINISHED" => close(seen, "step", format!("{owner}/{}", text("stepName")), &owner),
        "ACTIVITY_SNAPSHOT" => {
            let known = seen.activities.get(&text("messageId"));
            if let (Some(known), Some(false)) = (known, event["replace"].as_bool()) {
                same(known, &owner)?;
            }
            seen.activities.insert(text("messageId"), owner);
            Ok(())
        }
        "ACTIVITY_DELTA" => {
            let known = seen.activities.get(&text("messageId"));
            same(known.ok_or("delta of an activity never set")?, &owner)
        }
        "SUBAGENT_STARTED" => {
            let parent = text("parentSubagentRunId");
            let known = seen.active.contains(&parent) || seen.over.contains(&parent);
            if !parent.is_empty() && !known {
                return Err("parent never announced");
            }
            if seen.over.contains(&owner) || !seen.active.insert(owner) {
                return Err("one id per invocation");
            }
            Ok(())
        }
        "SUBAGENT_FINISHED" | "SUBAGENT_ERROR" => {
            if seen.open.values().any(|of| *of == owner) {
                return Err("something of the sub-agent is open");
            }
            if !seen.active.remove(&owner) {
                return Err("not running");
            }
            seen.over.insert(owner);
            Ok(())
        }
        "RUN_FINISHED" if !seen.open.is_empty() || !seen.active.is_empty() => {
            Err("something is open")
        }
        kind if kind.ends_with("_CHUNK") => Err("no chunks"),
        _ => Ok(()),
    }
}

fn same(opener: &str, owner: &str) -> Result<(), &'static str> {
    if opener == owner { Ok(()) } else { Err("another owner") }
}

fn open(seen: &mut Seen, kind: &'static str, id: String, owner: &str) -> Result<(), &'static str> {
    match seen.open.insert((kind, id), owner.to_owned()) {
        Some(_) => Err("already open"),
        None => Ok(()),
    }
}

fn goes_on(seen: &Seen, kind: &'static str, id: String, owner: &str) -> Result<(), &'static str> {
    same(seen.open.get(&(kind, id)).ok_or("not open")?, owner)
}

fn close(seen: &mut Seen, kind: &'static str, id: String, owner: &str) -> Result<(), &'static str> {
    same(&seen.open.remove(&(kind, id)).ok_or("not open")?, owner)
}
