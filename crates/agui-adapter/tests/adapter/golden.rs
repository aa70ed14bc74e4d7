//! Every captured stream, line by line, to the exact AG-UI events.
//!
//! `UPDATE_GOLDEN=1 cargo test -p agui-adapter --test adapter golden` writes the expectations anew; read
//! the difference before you commit it.

use std::{collections::BTreeSet, fs, path::PathBuf, sync::Arc};

use agui_adapter::{
    model::wire::{DecodeOptions, decode},
    options::{AdapterOptions, Peer, SubagentEvents},
    outbound::{Extensions, RunSetup, StreamEnd},
};
use agui_protocol::{
    Event, RunAgentInput,
    verify::{VerifyInput, check_events},
};
use serde_json::{Value, json};

use super::support::{adapter, input};

const FOLDERS: [&str; 3] = ["service", "library", "java"];

fn options() -> AdapterOptions {
    AdapterOptions { enable_reasoning: true, emit_token_usage: true, ..AdapterOptions::default() }
}

fn data_dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests")
}

fn lines(capture: &str) -> Vec<String> {
    let path = data_dir().join("captures").join(format!("{capture}.jsonl"));
    let text = fs::read_to_string(path).expect("capture");
    text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
}

/// The streams of a folder of `captures` or of `golden`, as `<folder>/<name>`.
fn streams(of: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for folder in FOLDERS {
        for entry in fs::read_dir(data_dir().join(of).join(folder)).expect("folder") {
            let name = entry.expect("entry").file_name().into_string().expect("name");
            found.extend(name.strip_suffix(".jsonl").map(|name| format!("{folder}/{name}")));
        }
    }
    found
}

/// The input of a client of 1.0, or of one before it.
fn input_of(peer: Peer) -> RunAgentInput {
    let mut input = input("{}");
    if peer == Peer::Legacy {
        input.protocol_version = None;
    }
    input
}

fn convert(
    lines: &[String],
    input: RunAgentInput,
    peer: Peer,
    options: AdapterOptions,
) -> Vec<Event> {
    let setup = RunSetup::new(Arc::new(input), peer);
    let mut adapter = adapter(setup, options, Extensions::default());
    let (mut events, mut ended) = (Vec::new(), false);
    for line in lines {
        let event = decode(line, DecodeOptions { keep_raw: false }).expect("an agent event");
        ended |= adapter.on_event(&event, &mut events).is_some();
    }
    if !ended {
        adapter.finish(StreamEnd::Completed, &mut events);
    }
    events
}

/// Lines as a whole stream give what the golden file of this name says, and keep every rule.
#[track_caller]
fn check(name: &str, lines: &[String], peer: Peer, mode: SubagentEvents) {
    let options = AdapterOptions { subagent_events: mode, ..options() };
    let events = convert(lines, input_of(peer), peer, options);
    let line = |event: &Event| serde_json::to_string(event).expect("json") + "\n";
    let actual: String = events.iter().map(line).collect();
    let path = data_dir().join("golden").join(format!("{name}.jsonl"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().expect("parent")).expect("folder");
        fs::write(&path, &actual).expect("write");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(actual, expected, "{name}: the events differ from {}", path.display());
    let values: Vec<Value> = events.iter().map(|event| json!(event)).collect();
    let found = check_events(&values, &VerifyInput::from(json!(input_of(peer))));
    assert_eq!(found, [], "{name}");
}

#[test]
fn every_capture_gives_its_exact_events() {
    let captures = streams("captures");
    assert_eq!(captures.len(), 61);
    for name in captures {
        check(&name, &lines(&name), Peer::Current, SubagentEvents::Auto);
    }
}

const IN_ONE_RUN: &str = "java/all_event_wire_forms.in_one_run";

/// The list of wire forms is no run: its end comes second. Here it comes last, and the calls that
/// are asked about come before their results.
#[test]
fn every_event_type_inside_one_run() {
    let mut lines = lines("java/all_event_wire_forms");
    let end = lines.remove(1);
    assert!(end.contains("AGENT_END"));
    lines.push(end);
    check(IN_ONE_RUN, &lines, Peer::Current, SubagentEvents::Auto);
}

const CHILDREN: &str = "java/subagent_forwarded";
const MODES: [(&str, Peer, SubagentEvents); 3] = [
    ("auto-legacy", Peer::Legacy, SubagentEvents::Auto),
    ("custom", Peer::Current, SubagentEvents::Custom),
    ("native", Peer::Current, SubagentEvents::Native),
];

#[test]
fn children_in_every_mode() {
    for (name, peer, mode) in MODES {
        check(&format!("{CHILDREN}.{name}"), &lines(CHILDREN), peer, mode);
    }
}

const LEGACY: [&str; 3] =
    ["service/confirm_approve", "service/max_iters", "java/external_execution"];

#[test]
fn a_legacy_peer_gets_its_own_form_of_an_ask_a_limit_and_a_suspended_call() {
    for name in LEGACY {
        check(&format!("{name}.legacy"), &lines(name), Peer::Legacy, SubagentEvents::Auto);
    }
}

/// One that is not belongs to a capture or a mode that is gone.
#[test]
fn every_golden_file_is_compared_with_something() {
    let mut compared = streams("captures");
    compared.insert(IN_ONE_RUN.to_owned());
    compared.extend(MODES.map(|(name, ..)| format!("{CHILDREN}.{name}")));
    compared.extend(LEGACY.map(|name| format!("{name}.legacy")));
    assert_eq!(streams("golden"), compared);
}
