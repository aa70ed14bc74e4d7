//! What is wrong with a script is said when the server starts, with file and line.

use agui_adapter::{model::AgentEventType, options::EnricherSpec};
use serde_json::json;

use super::*;
use crate::agents::{
    registry::{AgentFactory, BuildError},
    scripted::ScriptedFactory,
};

fn faults(lines: &[&str]) -> Vec<String> {
    let config = config(vec![turn(When::default(), lines)]);
    let errors = ScriptedAgent::compile("demo", &config).unwrap_err();
    errors.iter().map(BuildError::to_string).collect()
}

fn fault(line: &str) -> String {
    let faults = faults(&[line]);
    assert_eq!(faults.len(), 1, "{faults:?}");
    let prefix = "demo/test.jsonl:1: agentscope.agents.demo: ";
    faults[0].strip_prefix(prefix).unwrap().to_owned()
}

#[test]
fn every_bad_line_is_reported_with_its_place() {
    assert_eq!(
        faults(&["nonsense", r#"{"@":"end"}"#, "[]", r#"{"a":1}"#]),
        [
            "demo/test.jsonl:1: agentscope.agents.demo: not JSON, column 2: expected ident",
            "demo/test.jsonl:3: agentscope.agents.demo: a line of a script is a JSON object",
            "demo/test.jsonl:4: agentscope.agents.demo: neither an agent event (`type`) nor a \
             directive (`@`)",
        ]
    );
}

#[test]
fn bad_directives_say_what_would_be_right() {
    let cases = [
        (
            r#"{"@":"slep","ms":1}"#,
            "unknown variant `slep`, expected one of `sleep`, `fail`, `panic`, `end`, `state`, \
             `activity`, `ask`, `park`, `keep`, `repeat`, `hang`",
        ),
        (r#"{"@":"sleep"}"#, "missing field `ms`"),
        (r#"{"@":"sleep","ms":1,"s":1}"#, "unknown field `s`, expected `ms`"),
        (r#"{"@":"sleep","ms":-1}"#, "invalid value: integer `-1`, expected u64"),
        (r#"{"@":"hang","ms":1}"#, "unknown field `ms`, there are no fields"),
        (r#"{"@":"fail"}"#, "missing field `message`"),
        (r#"{"@":"state"}"#, "a state line has exactly one of `set` and `patch`"),
        (
            r#"{"@":"state","set":1,"patch":[]}"#,
            "a state line has exactly one of `set` and `patch`",
        ),
        (
            r#"{"@":"state","patch":[{"op":"put","path":"/a"}]}"#,
            "`patch` is no list of JSON Patch operations: unknown variant `put`, expected one of \
             `add`, `remove`, `replace`, `move`, `copy`, `test`",
        ),
        (r#"{"@":"activity","id":"a"}"#, "missing field `type`"),
        (
            r#"{"@":"activity","id":"a","type":"PLAN"}"#,
            "an activity line has exactly one of `content` and `patch`",
        ),
        (r#"{"@":"ask","id":"q1"}"#, "missing field `message`"),
        (
            r#"{"@":"repeat","times":2,"line":{"@":"slep"}}"#,
            "unknown variant `slep`, expected one of `sleep`, `fail`, `panic`, `end`, `state`, \
             `activity`, `ask`, `park`, `keep`, `repeat`, `hang`",
        ),
    ];
    for (line, expected) in cases {
        assert_eq!(fault(line), expected, "{line}");
    }
}

#[test]
fn bad_events_name_the_field() {
    assert_eq!(
        fault(r#"{"type":"TEXT_BLOCK_DELTA","replyId":"r","blockId":"b"}"#),
        "agent event TEXT_BLOCK_DELTA lacks `delta`"
    );
}

#[test]
fn bad_placeholders_are_named() {
    let known = "known: ${threadId}, ${runId}, ${lastUserText}, ${n}, ${resume.<id>}, \
                 ${args.<toolCallId>}, ${context.<key>}, ${state.<pointer>}, ${parked.<pointer>}, \
                 ${kept.<pointer>}";
    let cases = [
        ("${user}", format!("unknown placeholder `${{user}}`; {known}")),
        ("${user.name}", format!("unknown placeholder `${{user.name}}`; {known}")),
        ("${resume.}", "placeholder `${resume.}` names nothing after the dot".to_owned()),
        (
            "${state.count}",
            "placeholder `${state.count}`: a JSON pointer begins with `/`, as in \
             `${state./count}`"
                .to_owned(),
        ),
        ("a ${n", "`${` without `}`; a literal `${` is written `$${`".to_owned()),
    ];
    for (text, expected) in cases {
        let event = json!({"type": "TEXT_BLOCK_DELTA", "replyId": "r", "delta": text});
        assert_eq!(fault(&event.to_string()), expected);
        let custom = json!({"type": "CUSTOM", "name": "c", "value": [{"deep": text}]});
        assert_eq!(fault(&custom.to_string()), expected);
        let fail = json!({"@": "fail", "message": text});
        assert_eq!(fault(&fail.to_string()), expected);
    }
}

#[test]
fn an_agent_without_turns_is_refused() {
    let errors = ScriptedAgent::compile("demo", &config(Vec::new())).unwrap_err();
    assert_eq!(
        errors,
        [BuildError::at("agentscope.agents.demo", "a scripted agent has `turns` or a `script`")]
    );
}

#[tokio::test]
async fn the_wire_form_is_kept_only_for_the_raw_event_enricher() {
    let line = r#"{"type":"CUSTOM","name":"c","value":"${n}","type":"CUSTOM"}"#;
    let mut config = config(vec![turn(When::default(), &[line])]);
    let plain = ScriptedAgent::compile("demo", &config).unwrap();
    assert_eq!(played(&plain, request()).await[0].as_ref().unwrap().raw, None);
    config.adapter.enrichers = vec![EnricherSpec::RawEvent];
    let kept = ScriptedAgent::compile("demo", &config).unwrap();
    let raw = played(&kept, request()).await[0].as_ref().unwrap().raw.clone();
    assert_eq!(raw.as_deref(), Some(&json!({"type": "CUSTOM", "name": "c", "value": ""})));
}

#[test]
fn capabilities_are_read_off_the_scripts() {
    let lines = [
        r#"{"type":"AGENT_START","source":"main/helper","name":"helper"}"#,
        r#"{"type":"TOOL_CALL_START","toolCallId":"a","toolCallName":"f"}"#,
        r#"{"type":"TOOL_CALL_START","toolCallId":"b","toolCallName":"f"}"#,
        r#"{"@":"repeat","times":2,"line":{"@":"state","set":{"n":"${n}"}}}"#,
        r#"{"type":"REQUIRE_USER_CONFIRM","toolCalls":[{"id":"a","name":"f","input":{}}]}"#,
        r#"{"type":"THINKING_BLOCK_DELTA","replyId":"r","blockId":"b","delta":"hm"}"#,
    ];
    let mut config = config(vec![turn(When::default(), &lines)]);
    config.description = "Shows much.".to_owned();
    let built = ScriptedFactory.build("demo", &config).unwrap();
    let expected = json!({
        "identity": {"name": "demo", "type": "scripted", "description": "Shows much."},
        "transport": {"streaming": true},
        "tools": {"supported": true, "parallelCalls": true},
        "state": {"snapshots": true, "deltas": true},
        "multiAgent": {"supported": true, "delegation": true, "subagents": [{"name": "helper"}]},
        // The thinking stays inside: the agent has no `enable-reasoning`.
        "reasoning": {"supported": false, "streaming": false},
        "multimodal": {"output": {"image": false, "audio": false}},
        "humanInTheLoop": {
            "supported": true, "approvals": true, "interrupts": true, "approveWithEdits": true,
        },
    });
    assert_eq!(serde_json::to_value(&built.capabilities).unwrap(), expected);
    config.adapter.enable_reasoning = true;
    let built = ScriptedFactory.build("demo", &config).unwrap();
    let capabilities = serde_json::to_value(&built.capabilities).unwrap();
    assert_eq!(capabilities["reasoning"], json!({"supported": true, "streaming": true}));
}

#[tokio::test]
async fn unknown_types_are_kept_for_raw() {
    let agent = agent(&[r#"{"type":"NEWER","replyId":"${runId}"}"#]);
    let event = played(&agent, request()).await.remove(0).unwrap();
    assert_eq!(event.event_type(), AgentEventType::Unknown);
    assert_eq!(event.raw.as_deref(), Some(&json!({"type": "NEWER", "replyId": "r1"})));
}
