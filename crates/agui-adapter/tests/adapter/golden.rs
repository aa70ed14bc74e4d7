//! Every captured stream, line by line, to the exact AG-UI events.
//!
//! `UPDATE_GOLDEN=1 cargo test -p agui-adapter --test adapter golden` writes the expectations anew; read
//! the difference before you commit it.

use std::{fs, path::Path};

use super::support::{Converted, convert_lines, data_dir, input};
use agui_adapter::options::{AdapterOptions, Peer, SubagentEvents};
use agui_adapter::outbound::StreamEnd;

fn options() -> AdapterOptions {
    AdapterOptions { enable_reasoning: true, emit_token_usage: true, ..AdapterOptions::default() }
}

fn lines(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).expect("capture");
    text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
}

fn check(name: &str, converted: &Converted) {
    let path = data_dir().join("golden").join(format!("{name}.jsonl"));
    let actual = converted.to_lines();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().expect("parent")).expect("folder");
        fs::write(&path, &actual).expect("write");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(actual, expected, "{name}: the events differ from {}", path.display());
}

#[test]
fn every_capture_gives_its_exact_events() {
    let mut seen = 0;
    for folder in ["service", "library", "java"] {
        let mut files: Vec<_> = fs::read_dir(data_dir().join("captures").join(folder))
            .expect("captures")
            .map(|entry| entry.expect("entry").path())
            .filter(|path| path.extension().is_some_and(|ext| ext == "jsonl"))
            .collect();
        files.sort();
        for path in files {
            let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("name");
            let converted = convert_lines(
                &lines(&path),
                input("{}"),
                Peer::Current,
                options(),
                StreamEnd::Completed,
            );
            check(&format!("{folder}/{stem}"), &converted);
            assert_eq!(converted.violations(&input("{}")), [], "{folder}/{stem}");
            seen += 1;
        }
    }
    assert!(seen >= 60, "only {seen} captures were found");
}

/// The list of wire forms is no run: its end comes second. Here it comes last, and the calls that
/// are asked about come before their results.
#[test]
fn every_event_type_inside_one_run() {
    let mut lines = lines(&data_dir().join("captures/java/all_event_wire_forms.jsonl"));
    let end = lines.remove(1);
    assert!(end.contains("AGENT_END"));
    lines.push(end);
    let converted =
        convert_lines(&lines, input("{}"), Peer::Current, options(), StreamEnd::Completed);
    check("java/all_event_wire_forms.in_one_run", &converted);
}

#[test]
fn children_in_every_mode() {
    let path = data_dir().join("captures/java/subagent_forwarded.jsonl");
    for (name, peer, mode) in [
        ("auto-legacy", Peer::Legacy, SubagentEvents::Auto),
        ("custom", Peer::Current, SubagentEvents::Custom),
        ("native", Peer::Current, SubagentEvents::Native),
    ] {
        let options = AdapterOptions { subagent_events: mode, ..options() };
        let converted =
            convert_lines(&lines(&path), input("{}"), peer, options, StreamEnd::Completed);
        check(&format!("java/subagent_forwarded.{name}"), &converted);
    }
}

#[test]
fn a_legacy_peer_gets_every_capture_downgraded() {
    for name in ["service/confirm_approve", "service/max_iters", "java/external_execution"] {
        let path = data_dir().join("captures").join(format!("{name}.jsonl"));
        let converted = convert_lines(
            &lines(&path),
            input("{}"),
            Peer::Legacy,
            options(),
            StreamEnd::Completed,
        );
        check(&format!("{name}.legacy"), &converted);
    }
}
