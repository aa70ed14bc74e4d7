//! The checker, rule by rule: what it finds, and that it finds nothing in good streams.

use serde_json::{Value, json};

use super::*;

/// Shorthand for one event: the type, then its members as JSON text without braces.
fn event(kind: &str, members: &str) -> Value {
    let comma = if members.is_empty() { "" } else { "," };
    serde_json::from_str(&format!("{{\"type\":\"{kind}\"{comma}{members}}}")).unwrap()
}

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

#[test]
fn lifecycle() {
    let none = VerifyInput::default();
    let error = || event("RUN_ERROR", r#""message":"m","code":"C""#);
    let custom = || event("CUSTOM", r#""name":"n","value":1"#);
    let other = |id: &str| {
        event("RUN_STARTED", &format!(r#""threadId":"t","runId":"{id}","protocolVersion":"1.1""#))
    };
    let ended = |id: &str| event("RUN_FINISHED", &format!(r#""threadId":"t","runId":"{id}""#));
    let cases: Vec<(Vec<Value>, Vec<(usize, &str)>)> = vec![
        (vec![], vec![(0, "LIFE-25")]),
        (vec![started()], vec![(1, "LIFE-25")]),
        (vec![error()], vec![]),
        (vec![started(), error()], vec![]),
        (vec![started(), finished(), error()], vec![]),
        (vec![started(), finished(), error(), error()], vec![(3, "LIFE-3")]),
        (vec![custom(), started(), finished()], vec![(0, "LIFE-1"), (1, "LIFE-5")]),
        (vec![started(), started(), finished()], vec![(1, "LIFE-5"), (1, "LIFE-9")]),
        (vec![started(), error(), finished()], vec![(2, "LIFE-3")]),
        (vec![started(), finished(), custom()], vec![(2, "LIFE-4")]),
        (vec![started(), finished(), finished()], vec![(2, "LIFE-4")]),
        (vec![other("q"), ended("q"), started(), finished()], vec![]),
        (vec![started(), error(), other("q"), ended("q")], vec![]),
        (vec![started(), ended("q")], vec![(1, "LIFE-8")]),
        (
            vec![
                started(),
                finished(),
                event("RUN_STARTED", r#""threadId":"z","runId":"q","protocolVersion":"1.0""#),
                event("RUN_FINISHED", r#""threadId":"z","runId":"q""#),
            ],
            vec![(2, "LIFE-8")],
        ),
        (vec![event("RUN_STARTED", RUN), finished()], vec![(0, "VER-1")]),
        (
            vec![event("RUN_STARTED", &format!(r#"{RUN},"protocolVersion":"1.0.0""#)), finished()],
            vec![(0, "VER-2")],
        ),
    ];
    for (events, expected) in cases {
        assert_eq!(found(&events, &none), expected, "{events:?}");
    }
    let mut asked = input();
    asked["parentRunId"] = json!("p");
    assert_eq!(found(&[started(), finished()], &asked.clone().into()), [(0, "IN-23")]);
    asked["threadId"] = json!("other");
    asked["runId"] = json!("other");
    assert_eq!(found(&[started(), finished()], &asked.into()), [(0, "LIFE-8"), (2, "IN-20")]);
}

#[test]
fn everything_opened_is_closed_before_the_run_finishes() {
    each(
        &VerifyInput::default(),
        &[
            (r#"TEXT_MESSAGE_START "messageId":"m""#, &[(2, "LIFE-6")]),
            (r#"REASONING_START "messageId":"m""#, &[(2, "LIFE-6")]),
            (r#"REASONING_MESSAGE_START "messageId":"m","role":"reasoning""#, &[(2, "LIFE-6")]),
            (
                r#"TOOL_CALL_START "toolCallId":"c","toolCallName":"f"
                   TOOL_CALL_RESULT "messageId":"x","toolCallId":"c","content":"""#,
                &[(2, "TOOL-13"), (3, "LIFE-6")],
            ),
            (r#"STEP_STARTED "stepName":"s""#, &[(2, "LIFE-6")]),
            (r#"SUBAGENT_STARTED "subagentRunId":"s","name":"n""#, &[(2, "LIFE-6")]),
        ],
    );
    let failed = [
        started(),
        event("STEP_STARTED", r#""stepName":"s""#),
        event("RUN_ERROR", r#""message":"m""#),
    ];
    assert_eq!(found(&failed, &VerifyInput::default()), []);
}

#[test]
fn starts_contents_and_ends() {
    each(
        &VerifyInput::default(),
        &[
            (r#"TEXT_MESSAGE_CONTENT "messageId":"m","delta":"x""#, &[(1, "TXT-1")]),
            (r#"TEXT_MESSAGE_END "messageId":"m""#, &[(1, "TXT-1")]),
            (
                r#"TEXT_MESSAGE_START "messageId":"m"
                   TEXT_MESSAGE_START "messageId":"m"
                   TEXT_MESSAGE_END "messageId":"m"
                   TEXT_MESSAGE_CONTENT "messageId":"m","delta":"x""#,
                &[(2, "TXT-2"), (4, "TXT-1")],
            ),
            (
                r#"TEXT_MESSAGE_START "messageId":"m"
                   TEXT_MESSAGE_END "messageId":"m"
                   TEXT_MESSAGE_START "messageId":"m"
                   TEXT_MESSAGE_END "messageId":"m""#,
                &[(3, "TXT-6")],
            ),
            (
                r#"REASONING_START "messageId":"s"
                   REASONING_START "messageId":"s"
                   REASONING_MESSAGE_CONTENT "messageId":"s","delta":""
                   REASONING_END "messageId":"s"
                   REASONING_END "messageId":"s""#,
                &[(2, "REAS-2"), (3, "REAS-3"), (5, "REAS-2")],
            ),
            (
                r#"TOOL_CALL_ARGS "toolCallId":"c","delta":""
                   TOOL_CALL_END "toolCallId":"c""#,
                &[(1, "TOOL-1"), (2, "TOOL-1")],
            ),
            (
                r#"STEP_FINISHED "stepName":"a"
                   STEP_STARTED "stepName":"a"
                   STEP_STARTED "stepName":"a"
                   STEP_FINISHED "stepName":"a","subagentRunId":"s"
                   STEP_FINISHED "stepName":"a""#,
                &[(1, "LIFE-28"), (3, "LIFE-28"), (4, "SUB-8")],
            ),
        ],
    );
}

#[test]
fn message_ids_are_unique_over_all_kinds() {
    each(
        &known(),
        &[
            (
                r#"TEXT_MESSAGE_START "messageId":"u"
                   TEXT_MESSAGE_END "messageId":"u""#,
                &[(1, "TXT-5")],
            ),
            (
                r#"TEXT_MESSAGE_START "messageId":"a"
                   TEXT_MESSAGE_END "messageId":"a""#,
                &[(1, "LIFE-27")],
            ),
            (
                r#"REASONING_MESSAGE_START "messageId":"m","role":"reasoning"
                   REASONING_MESSAGE_END "messageId":"m"
                   TEXT_MESSAGE_START "messageId":"m"
                   TEXT_MESSAGE_END "messageId":"m""#,
                &[(3, "TXT-5")],
            ),
            (
                r#"TOOL_CALL_RESULT "messageId":"x","toolCallId":"old","content":"""#,
                &[(1, "TOOL-7")],
            ),
            (
                r#"ACTIVITY_SNAPSHOT "messageId":"u","activityType":"P","content":{}"#,
                &[(1, "ACT-6")],
            ),
            (
                r#"MESSAGES_SNAPSHOT "messages":[{"id":"u","role":"user","content":""},{"id":"u","role":"system","content":""}]"#,
                &[(1, "TXT-5"), (1, "TXT-5")],
            ),
            (r#"MESSAGES_SNAPSHOT "messages":[]"#, &[(1, "SNAP-2")]),
            (
                r#"TEXT_MESSAGE_START "messageId":"m"
                   MESSAGES_SNAPSHOT "messages":[{"id":"u","role":"user","content":""}]
                   TEXT_MESSAGE_END "messageId":"m""#,
                &[(2, "SNAP-7")],
            ),
        ],
    );
}

#[test]
fn a_joined_run_may_reopen_what_a_snapshot_restated() {
    let events = run(r#"
        MESSAGES_SNAPSHOT "messages":[{"id":"u","role":"user","content":"hi"},{"id":"m","role":"assistant","content":"ab","toolCalls":[{"id":"c","type":"function","function":{"name":"ui","arguments":"{"}}]}]
        TEXT_MESSAGE_START "messageId":"m"
        TEXT_MESSAGE_CONTENT "messageId":"m","delta":"c"
        TEXT_MESSAGE_END "messageId":"m"
        TOOL_CALL_START "toolCallId":"c","toolCallName":"ui","parentMessageId":"m"
        TOOL_CALL_ARGS "toolCallId":"c","delta":"}"
        TOOL_CALL_END "toolCallId":"c"
    "#);
    assert_eq!(found(&events, &known().lenient()), [(8, "LIFE-16")]);
    assert_eq!(found(&events, &known()), [(2, "TXT-6"), (5, "TOOL-24"), (8, "LIFE-16")]);
}

#[test]
fn tool_calls() {
    each(
        &known(),
        &[
            (
                r#"TOOL_CALL_START "toolCallId":"old","toolCallName":"f"
                   TOOL_CALL_END "toolCallId":"old"
                   TOOL_CALL_RESULT "messageId":"y","toolCallId":"old","content":"""#,
                &[(1, "TOOL-14")],
            ),
            (
                r#"TOOL_CALL_START "toolCallId":"c","toolCallName":"f","parentMessageId":"u"
                   TOOL_CALL_END "toolCallId":"c"
                   TOOL_CALL_RESULT "messageId":"y","toolCallId":"c","content":""
                   TOOL_CALL_RESULT "messageId":"z","toolCallId":"c","content":"""#,
                &[(1, "TOOL-5"), (4, "TOOL-15")],
            ),
            (
                r#"TOOL_CALL_RESULT "messageId":"y","toolCallId":"done","content":"""#,
                &[(1, "TOOL-15")],
            ),
            (
                r#"TOOL_CALL_RESULT "messageId":"y","toolCallId":"no","content":"""#,
                &[(1, "TOOL-14")],
            ),
            (
                r#"TOOL_CALL_START "toolCallId":"c","toolCallName":"ui"
                   TOOL_CALL_END "toolCallId":"c"
                   TOOL_CALL_RESULT "messageId":"y","toolCallId":"c","content":"""#,
                &[(3, "TOOL-16")],
            ),
            (
                r#"TOOL_CALL_START "toolCallId":"c","toolCallName":"f"
                   TOOL_CALL_END "toolCallId":"c""#,
                &[(3, "TOOL-15"), (3, "LIFE-16")],
            ),
            (
                r#"REASONING_ENCRYPTED_VALUE "subtype":"tool-call","entityId":"no","encryptedValue":"""#,
                &[(1, "REAS-8")],
            ),
        ],
    );
}

#[test]
fn pending_calls_are_named_in_call_order() {
    let calls = r#"
        TOOL_CALL_START "toolCallId":"c2","toolCallName":"ui"
        TOOL_CALL_END "toolCallId":"c2"
        TOOL_CALL_START "toolCallId":"c1","toolCallName":"ui"
        TOOL_CALL_END "toolCallId":"c1"
    "#;
    let with = |outcome: &str| {
        let mut events = run(calls);
        events[5] = event("RUN_FINISHED", &format!(r#"{RUN},"outcome":{outcome}"#));
        found(&events, &known())
    };
    assert_eq!(with(r#"{"type":"success","pendingToolCallIds":["c2","c1"]}"#), []);
    assert_eq!(with(r#"{"type":"success","pendingToolCallIds":["c1","c2"]}"#), [(5, "LIFE-16")]);
    assert_eq!(with(r#"{"type":"success"}"#), [(5, "LIFE-16")]);
    assert_eq!(with(r#"{"type":"cancelled"}"#), []);
    let interrupt =
        r#"{"type":"interrupt","interrupts":[{"id":"i","reason":"tool_call","toolCallId":"c1"}]}"#;
    assert_eq!(with(interrupt), [(5, "INT-24")]);
}

#[test]
fn endings() {
    let end = |members: &str| {
        let events = [started(), event("RUN_FINISHED", &format!("{RUN},{members}"))];
        found(&events, &VerifyInput::default())
    };
    let interrupt = r#"{"id":"i","reason":"input_required"}"#;
    let cases: [(String, &[(usize, &str)]); 12] = [
        (format!(r#""outcome":{{"type":"interrupt","interrupts":[{interrupt}]}}"#), &[]),
        (
            format!(r#""outcome":{{"type":"interrupt","interrupts":[{interrupt},{interrupt}]}}"#),
            &[(1, "INT-2")],
        ),
        (r#""outcome":{"type":"interrupt","interrupts":[]}"#.into(), &[(1, "INT-1")]),
        (r#""outcome":{"type":"cancelled","pendingToolCallIds":[]}"#.into(), &[(1, "VER-11")]),
        (r#""outcome":{"type":"cancelled"},"result":1"#.into(), &[(1, "LIFE-14")]),
        (r#""outcome":{"type":"paused"}"#.into(), &[(1, "VER-11")]),
        (
            r#""usage":[{"inputTokens":1,"outputTokens":2,"totalTokens":3,"cachedInputTokens":1}]"#
                .into(),
            &[],
        ),
        (
            r#""usage":[{"inputTokens":1,"outputTokens":2,"totalTokens":4}]"#.into(),
            &[(1, "LIFE-18")],
        ),
        (
            r#""usage":[{"inputTokens":1,"cachedInputTokens":1,"cacheWriteInputTokens":1}]"#.into(),
            &[(1, "LIFE-18")],
        ),
        (r#""usage":[{"outputTokens":1,"reasoningTokens":2}]"#.into(), &[(1, "LIFE-18")]),
        (r#""usage":[{"model":"m"},{"model":"m"}]"#.into(), &[(1, "LIFE-18")]),
        (
            r#""usage":[{"inputTokens":-1},{"model":"m","outputTokens":1.5}]"#.into(),
            &[(1, "LIFE-20"), (1, "LIFE-20")],
        ),
    ];
    for (members, expected) in cases {
        assert_eq!(end(&members), expected, "{members}");
    }
}

#[test]
fn sub_agents_and_owners() {
    let s1 = r#"SUBAGENT_STARTED "subagentRunId":"s1","name":"n""#;
    let done = r#"SUBAGENT_FINISHED "subagentRunId":"s1""#;
    let cases: [(String, &[(usize, &str)]); 10] = [
        (format!("{s1}\n{done}\n{s1}\n{done}"), &[(3, "SUB-2")]),
        (done.to_owned(), &[(1, "SUB-3")]),
        (r#"SUBAGENT_STARTED "subagentRunId":"s1","name":"n","parentSubagentRunId":"no""#.to_owned() + "\n" + done, &[(1, "SUB-9")]),
        (
            format!("{s1}\nTEXT_MESSAGE_START \"messageId\":\"m\",\"subagentRunId\":\"s1\"\n{done}\nTEXT_MESSAGE_END \"messageId\":\"m\""),
            &[(3, "SUB-16")],
        ),
        (
            r#"TEXT_MESSAGE_START "messageId":"m"
               TEXT_MESSAGE_CONTENT "messageId":"m","delta":"","subagentRunId":"s"
               TEXT_MESSAGE_END "messageId":"m","subagentRunId":"s""#.to_owned(),
            &[(2, "SUB-6"), (3, "SUB-6")],
        ),
        (
            r#"TEXT_MESSAGE_START "messageId":"m"
               TEXT_MESSAGE_END "messageId":"m"
               TOOL_CALL_START "toolCallId":"c","toolCallName":"f","parentMessageId":"m","subagentRunId":"s"
               TOOL_CALL_END "toolCallId":"c"
               TOOL_CALL_RESULT "messageId":"y","toolCallId":"c","content":"","subagentRunId":"z""#.to_owned(),
            &[(3, "SUB-7"), (5, "SUB-1")],
        ),
        (
            r#"ACTIVITY_SNAPSHOT "messageId":"a","activityType":"P","content":{},"subagentRunId":"s"
               ACTIVITY_DELTA "messageId":"a","activityType":"P","patch":[],"subagentRunId":"z""#.to_owned(),
            &[(2, "ACT-7")],
        ),
        (format!("{s1}\n{done},\"outcome\":{{\"type\":\"suspended\"}}"), &[(3, "SUB-13")]),
        (format!("{s1}\n{done},\"outcome\":{{\"type\":\"success\",\"interruptIds\":[]}}"), &[(2, "VER-11")]),
        (format!("{s1}\n{done},\"result\":null"), &[(2, "SUB-14")]),
    ];
    for (lines, expected) in cases {
        assert_eq!(found(&run(&lines), &VerifyInput::default()), expected, "{lines}");
    }
}

#[test]
fn suspended_sub_agents_name_interrupts_of_the_run() {
    let mut events = run(r#"SUBAGENT_STARTED "subagentRunId":"s1","name":"n"
        SUBAGENT_FINISHED "subagentRunId":"s1","outcome":{"type":"suspended","interruptIds":["i","j"]}"#);
    events[3] = event(
        "RUN_FINISHED",
        &format!(
            r#"{RUN},"outcome":{{"type":"interrupt","interrupts":[{{"id":"i","reason":"x"}}]}}"#
        ),
    );
    assert_eq!(found(&events, &VerifyInput::default()), [(3, "SUB-13")]);
}

#[test]
fn state_and_activities() {
    each(
        &known(),
        &[
            (r#"STATE_DELTA "delta":[{"op":"replace","path":"/no","value":1}]"#, &[(1, "STATE-4")]),
            (r#"STATE_DELTA "delta":[{"op":"add","path":"/a/b","value":1}]"#, &[(1, "STATE-4")]),
            (r#"STATE_DELTA "delta":[{"op":"test","path":"/n","value":2}]"#, &[(1, "STATE-4")]),
            (
                r#"STATE_SNAPSHOT "snapshot":7
                   STATE_DELTA "delta":[{"op":"add","path":"/a","value":1}]"#,
                &[(2, "STATE-7"), (2, "STATE-4")],
            ),
            (
                r#"STATE_DELTA "delta":[{"op":"add","path":"/a","value":1},{"op":"remove","path":"/no"}]
                   STATE_DELTA "delta":[{"op":"remove","path":"/a"}]"#,
                &[(1, "STATE-4"), (2, "STATE-4")],
            ),
            (r#"ACTIVITY_DELTA "messageId":"p","activityType":"P","patch":[]"#, &[(1, "ACT-2")]),
            (
                r#"ACTIVITY_SNAPSHOT "messageId":"p","activityType":"P","content":{}
                   ACTIVITY_DELTA "messageId":"p","activityType":"Q","patch":[]
                   ACTIVITY_DELTA "messageId":"p","activityType":"P","patch":[{"op":"remove","path":"/no"}]
                   ACTIVITY_DELTA "messageId":"p","activityType":"P","patch":[{"op":"replace","path":"","value":1}]"#,
                &[(2, "ACT-3"), (3, "STATE-4"), (4, "ACT-4")],
            ),
        ],
    );
    // Without the input nobody knows what a delta builds on.
    let delta = run(r#"STATE_DELTA "delta":[{"op":"remove","path":"/n"}]"#);
    assert_eq!(found(&delta, &VerifyInput::default()), []);
}

#[test]
fn chunks_and_lanes() {
    each(
        &VerifyInput::default().lenient(),
        &[
            (
                r#"TEXT_MESSAGE_CHUNK "messageId":"m","delta":"a"
                   TEXT_MESSAGE_CHUNK "delta":"b","role":"assistant"
                   RAW "event":1
                   TEXT_MESSAGE_CHUNK "metadata":{}
                   TEXT_MESSAGE_CHUNK "messageId":"m2","delta":"a"
                   TEXT_MESSAGE_CHUNK "messageId":"m","delta":"a"
                   REASONING_MESSAGE_CHUNK "messageId":"m3","delta":"a"
                   TOOL_CALL_CHUNK "toolCallId":"c","toolCallName":"f","delta":"{"
                   TOOL_CALL_CHUNK "delta":"}""#,
                &[(10, "LIFE-16")],
            ),
            (r#"TEXT_MESSAGE_CHUNK "delta":"a""#, &[(1, "CHK-2")]),
            (r#"TOOL_CALL_CHUNK "toolCallId":"c","delta":"a""#, &[(1, "CHK-2")]),
            (
                r#"TEXT_MESSAGE_CHUNK "messageId":"m"
                   TEXT_MESSAGE_CHUNK "role":"user"
                   CUSTOM "name":"n","value":1
                   TEXT_MESSAGE_CHUNK "delta":"b""#,
                &[(2, "CHK-3"), (4, "CHK-6")],
            ),
            (
                r#"TEXT_MESSAGE_CHUNK "messageId":"m"
                   TEXT_MESSAGE_END "messageId":"m""#,
                &[(2, "CHK-1")],
            ),
            (
                r#"TEXT_MESSAGE_START "messageId":"m"
                   TEXT_MESSAGE_CHUNK "messageId":"m"
                   TEXT_MESSAGE_END "messageId":"m""#,
                &[(2, "CHK-1")],
            ),
            (
                r#"TEXT_MESSAGE_CHUNK "messageId":"m","subagentRunId":"s"
                   TEXT_MESSAGE_CHUNK "messageId":"n","subagentRunId":"z"
                   TEXT_MESSAGE_CHUNK "subagentRunId":"s"
                   TEXT_MESSAGE_CHUNK "delta":"?""#,
                &[(4, "CHK-7")],
            ),
        ],
    );
    each(&VerifyInput::default(), &[(r#"TEXT_MESSAGE_CHUNK "messageId":"m""#, &[(1, "CHK-9")])]);
}

#[test]
fn clients_older_than_1_0() {
    let mut old = input();
    old.as_object_mut().unwrap().remove("protocolVersion");
    each(
        &old.into(),
        &[
            (
                r#"SUBAGENT_STARTED "subagentRunId":"s","name":"n"
                   SUBAGENT_FINISHED "subagentRunId":"s"
                   TEXT_MESSAGE_START "messageId":"m"
                   TEXT_MESSAGE_CONTENT "messageId":"m","delta":""
                   TEXT_MESSAGE_END "messageId":"m"
                   TOOL_CALL_RESULT "messageId":"y","toolCallId":"old","content":[]"#,
                &[(1, "VER-13"), (2, "VER-13"), (4, "VER-13"), (6, "VER-13")],
            ),
            (
                r#"TOOL_CALL_START "toolCallId":"c","toolCallName":"ui"
                   TOOL_CALL_END "toolCallId":"c""#,
                &[],
            ),
        ],
    );
}

#[test]
fn schema() {
    let cases: [(&str, &str, &[&str]); 23] = [
        ("THINKING_START", "", &["REAS-7"]),
        ("NEW_EVENT", "", &["PASS-7"]),
        ("CUSTOM", r#""name":"n""#, &["PASS-2"]),
        ("RAW", r#""source":null"#, &["PASS-1", "SER-1"]),
        ("RAW", r#""event":1,"rawEvent":null,"timestamp":1.0"#, &["META-5", "META-4"]),
        ("RAW", r#""event":1,"timestamp":9007199254740992"#, &["META-5"]),
        ("RAW", r#""event":1,"metadata":null,"x":1"#, &["META-1", "VER-11"]),
        ("RAW", r#""event":1,"metadata":{"ag-ui":1}"#, &["META-2"]),
        ("RUN_ERROR", r#""message":null"#, &["LIFE-23"]),
        ("TEXT_MESSAGE_START", r#""messageId":7,"role":"tool""#, &["SER-5", "TXT-3"]),
        ("TEXT_MESSAGE_CONTENT", r#""messageId":"m","delta":null"#, &["TXT-4"]),
        ("TEXT_MESSAGE_END", r#""messageId":"m","threadId":"t""#, &["VER-11"]),
        (
            "TOOL_CALL_START",
            r#""toolCallId":"c","toolCallName":"f","parentMessageId":null"#,
            &["TOOL-6"],
        ),
        (
            "TOOL_CALL_RESULT",
            r#""messageId":"m","toolCallId":"c","content":null,"role":"user""#,
            &["TOOL-8", "TOOL-9"],
        ),
        (
            "TOOL_CALL_RESULT",
            r#""messageId":"m","toolCallId":"c","content":[{"type":"hologram"},{"type":"reasoning"},{"type":"image","source":{"type":"data","value":""}}]"#,
            &["TOOL-10", "TOOL-11", "TOOL-10"],
        ),
        ("STATE_SNAPSHOT", "", &["STATE-1"]),
        (
            "STATE_DELTA",
            r#""delta":[{"op":"add","path":"/a"},{"op":"x","path":""},{"op":"remove","path":"a"},{"op":"move","path":"/~2"}]"#,
            &["STATE-2", "STATE-3", "STATE-2", "STATE-2", "STATE-2"],
        ),
        (
            "MESSAGES_SNAPSHOT",
            r#""messages":[{"id":"m","role":"assistant","content":null,"subagentRunId":null}]"#,
            &["SNAP-6", "SNAP-5"],
        ),
        (
            "ACTIVITY_SNAPSHOT",
            r#""messageId":"m","content":[],"replace":null"#,
            &["ACT-3", "ACT-1", "ACT-5"],
        ),
        ("REASONING_MESSAGE_START", r#""messageId":"m""#, &["REAS-4"]),
        (
            "REASONING_ENCRYPTED_VALUE",
            r#""subtype":"other","entityId":"e","encryptedValue":"""#,
            &["REAS-9"],
        ),
        ("SUBAGENT_STARTED", r#""subagentRunId":"s""#, &["SUB-3"]),
        (
            "RUN_STARTED",
            r#""threadId":"t","runId":"r","input":{"threadId":"t","runId":"r","messages":[],"state":null}"#,
            &["SER-1"],
        ),
    ];
    for (kind, members, expected) in cases {
        let found = check_schema(&[event(kind, members)]);
        let rules: Vec<&str> = found.iter().map(|violation| violation.rule).collect();
        assert_eq!(rules, expected, "{kind} {members}: {found:?}");
    }
    let null =
        check_schema(&[json!({"type": "STEP_STARTED", "stepName": "s", "subagentRunId": null})]);
    assert_eq!(null[0].to_string(), "event 0: SUB-1: /subagentRunId: null for an optional member");
}

#[test]
fn framing() {
    let good = "data: {\"type\":\"RUN_ERROR\",\"message\":\"m\"}\n\n";
    let bad = |body: &str| -> Vec<(usize, &'static str)> {
        read_body(body.as_bytes()).1.iter().map(|v| (v.index, v.rule)).collect()
    };
    assert_eq!(
        check_body(format!(": keep-alive\n\n{good}: bye\n\n").as_bytes(), &VerifyInput::default()),
        []
    );
    assert_eq!(bad(""), [(0, "SSE-16")]);
    assert_eq!(
        bad(&good.replace('\n', "\r\n")),
        [(0, "SSE-6"), (0, "SSE-14"), (0, "SSE-7"), (0, "SSE-7")]
    );
    assert_eq!(bad(good.trim_end()), [(0, "SSE-14")]);
    assert_eq!(bad(&format!("{good}data: [DONE]\n\n")), [(1, "SSE-11")]);
    assert_eq!(bad("data: {}{}\n\n"), [(0, "SSE-5")]);
    assert_eq!(bad("data: [{}]\n\n"), [(0, "SSE-5")]);
    assert_eq!(bad("event: x\ndata: {}\n\n"), [(0, "SSE-9")]);
    assert_eq!(bad("data: {\ndata: }\n\n"), [(0, "SSE-8"), (0, "SSE-5")]);
    assert_eq!(bad("data: {\"a\":{\"b\":1,\"b\":2}}\n\n"), [(0, "SER-12")]);
    assert_eq!(bad("data: {}\n \ndata: {}\n\n"), [(0, "SSE-7"), (0, "SSE-8")]);
    assert_eq!(read_body(b"data: {\"a\":\"\xff\"}\n\n").1[0].rule, "SER-11");
    let (events, _) = read_body(b"data:{\"a\":[1,-1,1.5,null,true,\"x\"]}\n\n");
    assert_eq!(events, [json!({"a": [1, -1, 1.5, null, true, "x"]})]);
}
