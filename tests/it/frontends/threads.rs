//! Threads as the official clients live with them: answers, repeated and late ones, reloads,
//! second tabs, cancelled runs.
//!
//! The scenarios are JavaScript (`threads/` beside the driver); each is played by both generations
//! of the client, and where it makes a difference by servers with and without memory. What the
//! scenario itself does not check is compared with `expected/threads`.

use std::{collections::BTreeMap, fs, path::Path};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    driver, expected,
    golden::{self, Entry},
    report, root,
    server::Server,
};

/// A current client and one from before AG-UI 1.0.
const CLIENTS: &[&str] = &["1.0.0", "0.0.59"];

/// Keeps histories, and runs go on when their client leaves.
const REMEMBERING: Kind = Kind {
    name: "remembering",
    variables: &[
        ("AGENTSCOPE_AGUI_SERVER_SIDE_MEMORY", "true"),
        ("AGENTSCOPE_AGUI_INTERRUPT_ON_DISCONNECT", "false"),
    ],
};

/// As it is without configuration.
const FORGETFUL: Kind = Kind { name: "forgetful", variables: &[] };

/// Its interrupts are over before anybody can answer.
const EXPIRING: Kind =
    Kind { name: "expiring", variables: &[("AGENTSCOPE_AGUI_INTERRUPT_TTL", "1")] };

/// Words instead of an answer give up what was asked.
const LENIENT: Kind =
    Kind { name: "lenient", variables: &[("AGENTSCOPE_AGUI_ON_UNANSWERED_INTERRUPTS", "cancel")] };

/// A server.
struct Kind {
    name: &'static str,
    variables: &'static [(&'static str, &'static str)],
}

/// What was seen in a scenario; the members are explained in `threads.mjs`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    name: String,
    client: String,
    thread_id: String,
    acts: Vec<Act>,
    pages: BTreeMap<String, Value>,
    seen: BTreeMap<String, Value>,
    failure: Option<String>,
    warnings: Vec<String>,
    logs: Vec<String>,
}

/// A run, as its page saw it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Act {
    page: String,
    does: String,
    events: Vec<Value>,
    outcome: Value,
    error: Value,
    pending_interrupts: Vec<Value>,
    rejected: Option<String>,
}

#[test]
fn answers_are_taken() {
    let scenarios = [
        "approve",
        "deny",
        "edit",
        "cancel",
        "several",
        "form",
        "form-declined",
        "one-after-the-other",
        "no-messages",
        "answered-twice-at-once",
        "frontend-tool",
        "frontend-tool-and-words",
    ];
    play("answering", &scenarios, &[REMEMBERING, FORGETFUL]);
}

#[test]
fn pages_come_to_a_thread() {
    let scenarios = [
        "reload-while-asked",
        "reload-while-running",
        "answers-again",
        "answers-again-while-asked",
        "answers-again-with-words",
    ];
    play("coming", &scenarios, &[REMEMBERING, FORGETFUL]);
}

#[test]
fn runs_go_on_without_their_page() {
    play("away", &["reload-then-answer", "away-while-running", "away-while-asked"], &[REMEMBERING]);
}

#[test]
fn what_is_not_answered_right_is_refused_and_stays_open() {
    let scenarios = ["partial", "lost", "bad-edit", "bad-form", "other-agent", "unknown", "busy"];
    play("refusing", &scenarios, &[REMEMBERING, FORGETFUL]);
}

#[test]
fn interrupts_expire() {
    let scenarios = ["expired", "expired-and-forgotten", "expired-and-reloaded"];
    play("expiring", &scenarios, &[EXPIRING]);
}

#[test]
fn words_give_up_what_was_asked() {
    play("lenient", &["given-up"], &[LENIENT]);
}

#[test]
fn runs_and_interrupts_are_cancelled() {
    let scenarios = ["cancel-while-running", "cancel-while-asked", "cancel-while-answering"];
    play("stopping", &scenarios, &[REMEMBERING, FORGETFUL]);
}

#[test]
fn runs_end_with_their_page() {
    play("cut", &["cut-off-while-answering", "closed-while-watched"], &[FORGETFUL]);
}

#[test]
fn a_double_click_executes_once() {
    play("clicking", &["double-click"], &[REMEMBERING]);
}

/// `restore.mjs` is what README.md prints, to the letter.
#[test]
fn the_lines_of_the_readme_restore_a_thread() {
    let lines = fs::read_to_string(driver::folder().join("restore.mjs")).expect("restore.mjs");
    let readme = fs::read_to_string(root().join("README.md")).expect("README.md");
    assert!(readme.contains(&format!("\n```js\n{lines}```\n")), "README.md prints:\n{lines}");

    let scenarios = ["restore-while-asked", "restore-while-running", "restore-at-rest"];
    play_with(&CLIENTS[..1], "restoring", &scenarios, &[REMEMBERING]);
}

/// Plays the scenarios on servers of these kinds and compares with the files of `group`.
fn play(group: &str, scenarios: &[&str], kinds: &[Kind]) {
    play_with(CLIENTS, group, scenarios, kinds);
}

fn play_with(clients: &[&str], group: &str, scenarios: &[&str], kinds: &[Kind]) {
    let gates = tempfile::tempdir().expect("a folder");
    let (mut faults, mut entries, mut log) = (Vec::new(), Vec::new(), String::new());
    for kind in kinds {
        let server = start(kind, gates.path());
        let jobs: Vec<Value> = scenarios
            .iter()
            .flat_map(|scenario| clients.iter().map(move |client| (scenario, client)))
            .map(|(scenario, client)| job(scenario, client, kind, &server, gates.path()))
            .collect();
        let records: Vec<Record> = driver::play("threads.mjs", &jobs, &[]);
        for record in &records {
            record.logs.iter().for_each(|line| println!("{}: {line}", record.thread_id));
            faults.extend(complaints(record));
            entries.push(entry(record, kind));
        }
        log.push_str(&server.log());
    }
    faults.extend(golden::compare(&expected("threads").join(group), entries));
    report(faults, &log);
}

fn start(kind: &Kind, gates: &Path) -> Server {
    let gates = gates.to_str().expect("a path of text");
    let variables: Vec<_> = kind.variables.iter().copied().chain([("GATES", gates)]).collect();
    Server::start_with(&driver::folder().join("threads/agentscope.yaml"), &variables)
}

fn job(scenario: &str, client: &str, kind: &Kind, server: &Server, gates: &Path) -> Value {
    json!({
        "name": scenario,
        "client": client,
        "threadId": format!("{scenario}-{}-{client}", kind.name),
        "url": server.prefix_url(),
        "gates": gates,
    })
}

/// What no scenario may show.
fn complaints(record: &Record) -> Vec<String> {
    let failed = record.failure.iter().map(|failure| format!("failed: {failure}"));
    let current = record.client == "1.0.0";
    let warnings = record.warnings.iter().filter(|_| current);
    let printed = warnings.map(|warning| format!("printed: {warning}"));
    failed.chain(printed).map(|fault| format!("{}: {fault}", record.thread_id)).collect()
}

fn entry(record: &Record, kind: &Kind) -> Entry {
    let kept = json!({
        "acts": record.acts.iter().map(kept).collect::<Vec<_>>(),
        "pages": record.pages,
        "seen": record.seen,
    });
    let key = format!("{} {}", record.client, kind.name);
    Entry::labelled(&record.name, key, &record.thread_id, kept)
}

/// What is compared of a run; interrupts by their ids only, the pages show them whole.
fn kept(act: &Act) -> Value {
    let started = act.events.first().map(|event| &event["metadata"]);
    let interrupts: Vec<Value> =
        act.pending_interrupts.iter().map(|open| json!({"id": open["id"]})).collect();
    let outcome = act.outcome.get("type").unwrap_or(&act.outcome);
    let members = [
        ("started", started.cloned().unwrap_or_default()),
        ("outcome", outcome.clone()),
        ("error", act.error.clone()),
        ("interrupts", json!(interrupts)),
        ("rejected", json!(act.rejected)),
    ];
    let mut kept = json!({
        "page": act.page,
        "does": act.does,
        "events": golden::event_lines(&act.events),
    });
    for (key, value) in members {
        if !value.is_null() && value != json!([]) {
            kept[key] = value;
        }
    }
    kept
}
