//! Sub-agents, and whose an item is.

use super::*;

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
