//! How runs begin and end.

use super::*;

#[test]
fn lifecycle() {
    let none = VerifyInput::default();
    let error = || event("RUN_ERROR", r#""message":"m","code":"C""#);
    let custom = || event("CUSTOM", r#""name":"n","value":1"#);
    let other = |id: &str| {
        event("RUN_STARTED", &format!(r#""threadId":"t","runId":"{id}","protocolVersion":"1.1""#))
    };
    let ended = |id: &str| event("RUN_FINISHED", &format!(r#""threadId":"t","runId":"{id}""#));
    let cases: [(Vec<Value>, &Rules); 17] = [
        (vec![], &[(0, "LIFE-25")]),
        (vec![started()], &[(1, "LIFE-25")]),
        (vec![error()], &[]),
        (vec![started(), error()], &[]),
        (vec![started(), finished(), error()], &[]),
        (vec![started(), finished(), error(), error()], &[(3, "LIFE-3")]),
        (vec![custom(), started(), finished()], &[(0, "LIFE-1"), (1, "LIFE-5")]),
        (vec![started(), started(), finished()], &[(1, "LIFE-5"), (1, "LIFE-9")]),
        (vec![started(), error(), finished()], &[(2, "LIFE-3")]),
        (vec![started(), finished(), custom()], &[(2, "LIFE-4")]),
        (vec![started(), finished(), finished()], &[(2, "LIFE-4")]),
        (vec![other("q"), ended("q"), started(), finished()], &[]),
        (vec![started(), error(), other("q"), ended("q")], &[]),
        (vec![started(), ended("q")], &[(1, "LIFE-8")]),
        (
            vec![
                started(),
                finished(),
                event("RUN_STARTED", r#""threadId":"z","runId":"q","protocolVersion":"1.0""#),
                event("RUN_FINISHED", r#""threadId":"z","runId":"q""#),
            ],
            &[(2, "LIFE-8")],
        ),
        (vec![event("RUN_STARTED", RUN), finished()], &[(0, "VER-1")]),
        (
            vec![event("RUN_STARTED", &format!(r#"{RUN},"protocolVersion":"1.0.0""#)), finished()],
            &[(0, "VER-2")],
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
