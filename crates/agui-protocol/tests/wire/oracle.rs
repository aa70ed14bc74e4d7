//! Holds this crate against the schemas of the official AG-UI package, run by Node.
//!
//! Two independent readings of the specification must agree on every line of the corpus; where
//! they do not, the line names the rule for which the difference is intended.

use std::{
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use agui_protocol::{Event, RunAgentInput, capabilities::AgentCapabilities, verify};
use proptest::{
    strategy::{Strategy, ValueTree},
    test_runner::TestRunner,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::samples;

/// What the official schemas say.
#[derive(Debug, Deserialize)]
struct Verdict {
    valid: bool,
    /// Members that the schemas do not name; only for valid values.
    #[serde(default)]
    unknown: Vec<String>,
    reason: Option<String>,
}

fn script() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/oracle");
    assert!(
        folder.join("node_modules/@ag-ui/core").is_dir(),
        "the packages of tests/oracle are not installed: run ./scripts/test, which installs them"
    );
    folder.join("validate.mjs")
}

fn ask(kind: &str, values: &[Value]) -> Vec<Verdict> {
    let mut node = Command::new("node")
        .arg(script())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = node.stdin.take().unwrap();
    let lines: Vec<String> =
        values.iter().map(|value| json!({"kind": kind, "value": value}).to_string()).collect();
    let writer = std::thread::spawn(move || {
        for line in lines {
            writeln!(stdin, "{line}").unwrap();
        }
    });
    let verdicts: Vec<Verdict> = BufReader::new(node.stdout.take().unwrap())
        .lines()
        .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
        .collect();
    writer.join().unwrap();
    assert!(node.wait().unwrap().success());
    assert_eq!(verdicts.len(), values.len());
    verdicts
}

fn assert_all_valid(kind: &str, values: &[Value]) {
    for (value, verdict) in values.iter().zip(ask(kind, values)) {
        assert!(verdict.valid, "{:?}: {value}", verdict.reason);
        assert_eq!(verdict.unknown, Vec::<String>::new(), "{value}");
    }
}

#[test]
fn events_are_accepted_and_refused_alike() {
    let cases = samples::corpus("events");
    let values: Vec<Value> = cases.iter().map(|case| case.value.clone()).collect();
    for (case, verdict) in cases.iter().zip(ask("event", &values)) {
        let ours = verify::check_schema(std::slice::from_ref(&case.value));
        assert_eq!(ours.is_empty(), case.good, "{}: {ours:?}", case.note);
        let theirs = verdict.valid && verdict.unknown.is_empty();
        assert_eq!(theirs, case.good ^ case.differs.is_some(), "{}: {verdict:?}", case.note);
    }
}

#[test]
fn inputs_are_accepted_and_refused_alike() {
    let cases = samples::corpus("inputs");
    let values: Vec<Value> = cases.iter().map(|case| case.value.clone()).collect();
    for (case, verdict) in cases.iter().zip(ask("input", &values)) {
        let ours = RunAgentInput::from_value(case.value.clone());
        assert_eq!(ours.is_ok(), case.good, "{}: {ours:?}", case.note);
        assert_eq!(verdict.valid, case.good ^ case.differs.is_some(), "{}: {verdict:?}", case.note);
        if let (Ok(parsed), true) = (ours, verdict.valid) {
            let dropped: Vec<String> = parsed.warnings.into_iter().map(|w| w.pointer).collect();
            assert_eq!(dropped, verdict.unknown, "{}", case.note);
        }
    }
}

#[test]
fn what_the_parser_gives_back_is_valid() {
    let cases = samples::corpus("inputs");
    let parsed: Vec<Value> = cases
        .into_iter()
        .filter_map(|case| RunAgentInput::from_value(case.value).ok())
        .map(|parsed| serde_json::to_value(parsed.input).unwrap())
        .collect();
    assert_all_valid("input", &parsed);
}

#[test]
fn every_event_that_the_types_write_is_valid() {
    let mut runner = TestRunner::deterministic();
    let written: Vec<Value> = samples::good_events()
        .iter()
        .cloned()
        .chain((0..400).map(|_| samples::any_event().new_tree(&mut runner).unwrap().current()))
        .map(|value| serde_json::to_value(serde_json::from_value::<Event>(value).unwrap()).unwrap())
        .collect();
    assert_all_valid("event", &written);
}

#[test]
fn capabilities_are_valid() {
    let full = json!({
        "identity": {"name": "n", "type": "t", "description": "d", "version": "1",
            "provider": "p", "documentationUrl": "u", "metadata": {"k": null}},
        "transport": {"streaming": true, "websocket": false, "httpBinary": false,
            "pushNotifications": false, "resumable": false},
        "tools": {"supported": true, "items": [{"name": "n", "description": "d"}],
            "parallelCalls": true, "clientProvided": true},
        "output": {"structuredOutput": false, "supportedMimeTypes": ["text/plain"]},
        "state": {"snapshots": true, "deltas": true, "memory": true, "persistentState": true},
        "multiAgent": {"supported": true, "delegation": true, "handoffs": false,
            "subagents": [{"name": "n"}, {"name": "m", "description": "d"}]},
        "reasoning": {"supported": true, "streaming": true, "encrypted": false},
        "multimodal": {
            "input": {"image": true, "audio": true, "video": true, "pdf": true, "file": true},
            "output": {"image": true, "audio": true}},
        "execution": {"codeExecution": false, "sandboxed": false, "maxIterations": 10,
            "maxExecutionTime": 600_000},
        "humanInTheLoop": {"supported": true, "approvals": true, "interventions": false,
            "feedback": false, "interrupts": true, "approveWithEdits": true},
        "custom": {"k": null},
    });
    let read: AgentCapabilities = serde_json::from_value(full.clone()).unwrap();
    let written = serde_json::to_value(read).unwrap();
    assert_eq!(written, full);
    assert_all_valid("capabilities", &[written, json!({})]);
}
