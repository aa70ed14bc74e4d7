//! Tool calls and their results.

use super::*;

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
