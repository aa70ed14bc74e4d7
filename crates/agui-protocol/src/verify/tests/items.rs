//! Messages, reasoning and steps: their starts, contents, ends, ids and chunks.

use super::*;

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

/// What a client gets that joins a run: a snapshot with what is open, then its starts again.
const RESTATED: &str = r#"
    MESSAGES_SNAPSHOT "messages":[{"id":"u","role":"user","content":"hi"},{"id":"m","role":"assistant","content":"ab","toolCalls":[{"id":"c","type":"function","function":{"name":"ui","arguments":"{"}},{"id":"e","type":"function","function":{"name":"ui","arguments":"{}"}}]}]
    TEXT_MESSAGE_START "messageId":"m"
    TEXT_MESSAGE_CONTENT "messageId":"m","delta":"c"
    TEXT_MESSAGE_END "messageId":"m"
    TOOL_CALL_START "toolCallId":"c","toolCallName":"ui","parentMessageId":"m"
    TOOL_CALL_ARGS "toolCallId":"c","delta":"}"
    TOOL_CALL_END "toolCallId":"c"
"#;

fn ending(events: &str, pending: &str) -> Vec<Value> {
    let mut events = run(events);
    let outcome = format!(r#"{RUN},"outcome":{{"type":"success","pendingToolCallIds":{pending}}}"#);
    *events.last_mut().unwrap() = event("RUN_FINISHED", &outcome);
    events
}

#[test]
fn a_joined_run_may_reopen_what_a_snapshot_restated() {
    for context in [known(), known().lenient()] {
        assert_eq!(found(&run(RESTATED), &context), [(8, "LIFE-16")]);
        // The other call began and ended before the client came.
        for pending in [r#"["c"]"#, r#"["c","e"]"#, r#"["e","c"]"#] {
            assert_eq!(found(&ending(RESTATED, pending), &context), [], "{pending}");
        }
        for pending in [r#"["e"]"#, r#"["c","old"]"#, r#"["c","nobody's"]"#] {
            assert_eq!(found(&ending(RESTATED, pending), &context), [(8, "LIFE-16")], "{pending}");
        }
    }
}

#[test]
fn what_was_restated_is_reopened_once() {
    let again = r#"
        TEXT_MESSAGE_START "messageId":"m"
        TEXT_MESSAGE_END "messageId":"m"
        TOOL_CALL_START "toolCallId":"c","toolCallName":"ui","parentMessageId":"m"
        TOOL_CALL_END "toolCallId":"c"
    "#;
    let events = ending(&format!("{RESTATED}{again}"), r#"["c"]"#);
    assert_eq!(found(&events, &known()), [(8, "TXT-6"), (10, "TOOL-24")]);
    assert_eq!(found(&events, &known().lenient()), []);
    // A snapshot does not make what was streamed fit to be opened again.
    let streamed = r#"
        TEXT_MESSAGE_START "messageId":"m"
        TEXT_MESSAGE_END "messageId":"m"
        MESSAGES_SNAPSHOT "messages":[{"id":"u","role":"user","content":"hi"},{"id":"m","role":"assistant","content":""}]
        TEXT_MESSAGE_START "messageId":"m"
        TEXT_MESSAGE_END "messageId":"m"
    "#;
    assert_eq!(found(&run(streamed), &known()), [(4, "TXT-6")]);
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
