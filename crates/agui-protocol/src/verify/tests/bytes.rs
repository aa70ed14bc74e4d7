//! Single events, and the bytes around them.

use super::*;

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
