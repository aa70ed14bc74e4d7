//! The demo scripts of `config/demo`: all compile, all end, and every file is used.

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::AssertUnwindSafe,
    path::Path,
    time::Duration,
};

use agui_adapter::model::{AgentEventKind as Kind, event::EndReason};
use futures_util::FutureExt;

use super::*;

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/config"))
}

/// File name to compiled agent.
fn demos() -> BTreeMap<String, ScriptedAgent> {
    let mut demos = BTreeMap::new();
    for entry in std::fs::read_dir(folder().join("demo")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.to_owned())).collect();
        let turn = Turn { when: When::default(), lines, origin: path };
        let agent = ScriptedAgent::compile(&name, &config(vec![turn]))
            .unwrap_or_else(|errors| panic!("{errors:?}"));
        demos.insert(name, agent);
    }
    demos
}

/// How a script ends.
fn ending(events: &Played) -> String {
    let Some(last) = events.last() else { return "nothing".to_owned() };
    match last {
        Err(error) => format!("failure {}", error.code),
        Ok(event) => match &event.kind {
            Kind::AgentEnd { reason: EndReason::Completed | EndReason::Unstated, .. } => {
                "end".to_owned()
            }
            Kind::Question { .. } => "question".to_owned(),
            other => format!("{:?}", other.event_type()),
        },
    }
}

#[tokio::test(start_paused = true)]
async fn every_demo_plays_to_an_end() {
    for (name, agent) in demos() {
        let play = AssertUnwindSafe(played(&agent, saying("hi"))).catch_unwind();
        let outcome = tokio::time::timeout(Duration::from_secs(600), play).await;
        let ending = match outcome {
            Err(_) => "hang".to_owned(),
            Ok(Err(_)) => "panic".to_owned(),
            Ok(Ok(events)) => ending(&events),
        };
        let expected = match name.as_str() {
            "error.jsonl" => "failure INTERNAL_ERROR",
            "error-early.jsonl" => "TextBlockDelta",
            "error-panic.jsonl" => "panic",
            "form-ask.jsonl" => "question",
            "slow-hang.jsonl" => "hang",
            _ => "end",
        };
        assert_eq!(ending, expected, "{name}");
    }
}

#[test]
fn the_configuration_uses_every_demo_script_and_no_other() {
    let text = std::fs::read_to_string(folder().join("agentscope.yaml")).unwrap();
    let used: BTreeSet<String> = text
        .lines()
        .filter_map(|line| line.split_once("script: demo/"))
        .map(|(_, name)| name.trim_end_matches('}').to_owned())
        .collect();
    let present: BTreeSet<String> = demos().into_keys().collect();
    assert_eq!(used, present);
}

#[tokio::test(start_paused = true)]
async fn the_approval_demo_runs_with_the_edited_arguments() {
    let demos = demos();
    let request = AgentRequest {
        decisions: vec![approved("call_delete", r#"{"path":"drafts/old.pdf"}"#)],
        ..request()
    };
    let events = played(&demos["approval-approved.jsonl"], request).await;
    let results: Vec<String> = events
        .into_iter()
        .filter_map(|event| match event.unwrap().kind {
            Kind::ToolResultTextDelta { delta, .. } => Some(delta),
            _ => None,
        })
        .collect();
    assert_eq!(results, [r#"Deleted with {"path":"drafts/old.pdf"}"#]);
}
