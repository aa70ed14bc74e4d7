//! The checker, rule by rule: what it finds, and that it finds nothing in good streams.

mod bytes;
mod calls;
mod items;
mod lifecycle;
mod state;
mod subagents;

use serde_json::{Value, json};

use super::*;

/// Shorthand for one event: the type, then its members as JSON text without braces.
fn event(kind: &str, members: &str) -> Value {
    let comma = if members.is_empty() { "" } else { "," };
    serde_json::from_str(&format!("{{\"type\":\"{kind}\"{comma}{members}}}")).unwrap()
}

/// Index and rule of each finding.
type Rules = [(usize, &'static str)];

const RUN: &str = r#""threadId":"t","runId":"r""#;

fn started() -> Value {
    event("RUN_STARTED", &format!(r#"{RUN},"protocolVersion":"1.0""#))
}

fn finished() -> Value {
    event("RUN_FINISHED", RUN)
}

/// A whole run around some events, given as one `TYPE members` per line.
fn run(lines: &str) -> Vec<Value> {
    let mut events = vec![started()];
    events.extend(lines_of(lines));
    events.push(finished());
    events
}

fn lines_of(lines: &str) -> Vec<Value> {
    let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let (kind, members) = line.split_once(' ').unwrap_or((line, ""));
            event(kind, members)
        })
        .collect()
}

fn input() -> Value {
    json!({
        "threadId": "t", "runId": "r", "protocolVersion": "1.0",
        "messages": [
            {"id": "u", "role": "user", "content": "hi"},
            {"id": "a", "role": "assistant", "toolCalls": [
                {"id": "old", "type": "function", "function": {"name": "f", "arguments": ""}},
                {"id": "done", "type": "function", "function": {"name": "f", "arguments": ""}},
            ]},
            {"id": "x", "role": "tool", "toolCallId": "done", "content": ""},
        ],
        "tools": [{"name": "ui", "description": ""}],
        "state": {"n": 1},
    })
}

fn found(events: &[Value], context: &VerifyInput) -> Vec<(usize, &'static str)> {
    check_events(events, context).iter().map(|v| (v.index, v.rule)).collect()
}

/// Checks many runs with one context.
fn each(context: &VerifyInput, cases: &[(&str, &[(usize, &'static str)])]) {
    for (lines, expected) in cases {
        assert_eq!(found(&run(lines), context), *expected, "{lines}");
    }
}

fn known() -> VerifyInput {
    VerifyInput::from(input())
}

#[test]
fn a_good_run_has_no_findings() {
    let events = run(r#"
        STEP_STARTED "stepName":"s"
        REASONING_START "messageId":"span"
        REASONING_MESSAGE_START "messageId":"span","role":"reasoning"
        REASONING_MESSAGE_CONTENT "messageId":"span","delta":"hm"
        REASONING_MESSAGE_END "messageId":"span"
        REASONING_ENCRYPTED_VALUE "subtype":"message","entityId":"span","encryptedValue":"e"
        REASONING_END "messageId":"span"
        TEXT_MESSAGE_START "messageId":"m1","role":"assistant"
        TEXT_MESSAGE_CONTENT "messageId":"m1","delta":""
        TEXT_MESSAGE_END "messageId":"m1","metadata":{"k":null}
        TOOL_CALL_START "toolCallId":"c1","toolCallName":"f","parentMessageId":"m1"
        TOOL_CALL_START "toolCallId":"c2","toolCallName":"f","parentMessageId":"m1"
        TOOL_CALL_ARGS "toolCallId":"c1","delta":"{}"
        TOOL_CALL_END "toolCallId":"c2"
        TOOL_CALL_END "toolCallId":"c1"
        TOOL_CALL_RESULT "messageId":"r1","toolCallId":"c1","content":""
        TOOL_CALL_RESULT "messageId":"r2","toolCallId":"c2","content":[{"type":"text","text":""}]
        TOOL_CALL_RESULT "messageId":"r3","toolCallId":"old","content":"late"
        STATE_DELTA "delta":[{"op":"replace","path":"/n","value":null,"extra":1}]
        STATE_SNAPSHOT "snapshot":null
        ACTIVITY_SNAPSHOT "messageId":"p","activityType":"PLAN","content":{}
        ACTIVITY_DELTA "messageId":"p","activityType":"PLAN","patch":[{"op":"add","path":"/a","value":1}]
        SUBAGENT_STARTED "subagentRunId":"s1","name":"n","parentToolCallId":"c1"
        SUBAGENT_STARTED "subagentRunId":"s2","name":"n","parentSubagentRunId":"s1"
        STEP_STARTED "stepName":"s","subagentRunId":"s1"
        TEXT_MESSAGE_START "messageId":"m2","subagentRunId":"s1"
        TEXT_MESSAGE_CONTENT "messageId":"m2","delta":"x"
        TEXT_MESSAGE_END "messageId":"m2","subagentRunId":"s1"
        TOOL_CALL_START "toolCallId":"c3","toolCallName":"f","parentMessageId":"m2","subagentRunId":"s1"
        TOOL_CALL_END "toolCallId":"c3","subagentRunId":"s1"
        TOOL_CALL_RESULT "messageId":"r4","toolCallId":"c3","content":"","subagentRunId":"s1"
        STEP_FINISHED "stepName":"s","subagentRunId":"s1"
        SUBAGENT_FINISHED "subagentRunId":"s2","outcome":{"type":"success"}
        SUBAGENT_ERROR "subagentRunId":"s1","message":"m"
        STEP_FINISHED "stepName":"s"
        CUSTOM "name":"com.example.x","value":null
        RAW "event":null,"source":"s"
        MESSAGES_SNAPSHOT "messages":[{"id":"u","role":"user","content":"hi"},{"id":"m1","role":"assistant"}]
    "#);
    assert_eq!(check_events(&events, &known()), []);
    assert_eq!(check_events(&events, &VerifyInput::default()), []);
}
