//! The official AG-UI client, in its current release and two older ones, against the real server.
//!
//! What an application would see is compared with `tests/frontends/httpagent/expected`. Run with
//! `UPDATE_EXPECTED=1` to write those files, and read the difference before committing it. How the
//! bytes look is not tested here; other tests do that without Node.

mod agentscope;
mod driver;
mod golden;
mod joined;
mod model;
mod react;
mod record;
pub(crate) mod server;
mod threads;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};

use driver::{CLIENTS, Job, Record};
use server::Server;

#[tokio::test]
async fn every_demo_agent_plays_through_the_official_clients() {
    let server = Server::start(&root().join("config/agentscope.yaml"));
    let conversations = conversations();

    let talked_to: BTreeSet<String> = conversations.iter().map(|c| c.agent.clone()).collect();
    assert_eq!(talked_to, server.agent_ids().await, "every demo agent needs a conversation");

    assert_eq!(talked_to, agents_of_readme(), "README.md describes every demo agent");

    let jobs = conversations
        .iter()
        .flat_map(|conversation| {
            CLIENTS
                .iter()
                .filter(|client| conversation.is_for(client))
                .map(|client| conversation.job(client, &server.run_url(&conversation.agent)))
        })
        .collect();
    judge("demos", &driver::drive(jobs), &server);
}

#[test]
fn every_capture_plays_through_the_official_clients() {
    let captures = captures();
    let config = tempfile::tempdir().expect("a temporary folder");
    let server = Server::start(&write_capture_config(config.path(), &captures, &json!({})));
    let jobs = capture_jobs(&captures, &server);
    judge("captures", &driver::drive(jobs), &server);
}

#[test]
fn every_capture_is_accepted_with_all_optional_events_on() {
    let captures = captures();
    let config = tempfile::tempdir().expect("a temporary folder");
    let switches = json!({
        "enable-reasoning": true,
        "emit-step-events": true,
        "emit-token-usage": true,
        "base-event-properties-enricher-enabled": true,
    });
    let server = Server::start(&write_capture_config(config.path(), &captures, &switches));
    let records = driver::drive(capture_jobs(&captures, &server));
    report(records.iter().flat_map(complaints).collect(), &server.log());
}

#[test]
fn the_driver_reports_what_the_client_complains_about() {
    let bodies = [
        // An unknown member is taken away with a warning.
        r#"{"type":"RUN_STARTED","threadId":"t","runId":"r","protocolVersion":"1.0"}
{"type":"TEXT_MESSAGE_START","messageId":"a","role":"assistant","surplus":1}
{"type":"TEXT_MESSAGE_END","messageId":"a"}
{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
        // A message that is still open at the end is an error.
        r#"{"type":"RUN_STARTED","threadId":"t","runId":"r","protocolVersion":"1.0"}
{"type":"TEXT_MESSAGE_START","messageId":"a","role":"assistant"}
{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
    ];
    let records: Vec<Record> = bodies
        .iter()
        .flat_map(|body| {
            let url = server::serve_once(body);
            let steps = json!([{"user": "hello"}]);
            driver::drive(vec![Job::new("faulty", "1.0.0", &url, steps)])
        })
        .collect();

    assert_eq!(records[0].rejected, None);
    assert_eq!(records[0].warnings.len(), 1, "{:?}", records[0].warnings);
    assert_eq!(
        records[1].rejected.as_deref(),
        Some("Error: Cannot send 'RUN_FINISHED' while text messages are still active: a"),
    );
}

/// What is said to one demo agent, from `conversations.json`.
struct Conversation {
    name: String,
    agent: String,
    /// Empty = all.
    clients: Vec<String>,
    value: Map<String, Value>,
}

impl Conversation {
    fn is_for(&self, client: &str) -> bool {
        self.clients.is_empty() || self.clients.iter().any(|c| c == client)
    }

    fn job(&self, client: &str, url: &str) -> Job {
        let mut job = Job::new(&self.name, client, url, self.value["steps"].clone());
        for key in ["headers", "state", "messages", "tools", "context", "forwardedProps"] {
            if let Some(value) = self.value.get(key) {
                job.set(key, value.clone());
            }
        }
        job
    }
}

fn conversations() -> Vec<Conversation> {
    let path = driver::folder().join("conversations.json");
    let text = fs::read_to_string(&path).expect("conversations.json");
    let list: Vec<Map<String, Value>> = serde_json::from_str(&text).expect("a list of objects");
    list.into_iter()
        .map(|value| {
            let text = |key: &str| value[key].as_str().expect("a string").to_owned();
            let clients = value.get("clients").cloned().unwrap_or_else(|| json!([]));
            Conversation {
                name: text("name"),
                agent: text("agent"),
                clients: serde_json::from_value(clients).expect("a list of versions"),
                value,
            }
        })
        .collect()
}

/// First column of the table under "Demo agents".
fn agents_of_readme() -> BTreeSet<String> {
    let readme = fs::read_to_string(root().join("README.md")).expect("README.md");
    let (_, section) = readme.split_once("## Demo agents").expect("the section");
    let (section, _) = section.split_once("\n## ").expect("another section");
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| row.split('`').next().unwrap_or_default().to_owned()).collect()
}

/// A recorded stream and the agent that plays it.
struct Capture {
    agent: String,
    script: PathBuf,
}

fn captures() -> Vec<Capture> {
    let folder = root().join("crates/agui-adapter/tests/captures");
    let mut captures = Vec::new();
    for set in ["java", "library", "service"] {
        for entry in fs::read_dir(folder.join(set)).expect("the folder of captures") {
            let script = entry.expect("an entry").path();
            // An empty recording has nothing to play.
            let is_empty = fs::metadata(&script).expect("a file").len() == 0;
            if is_empty || script.extension().is_none_or(|extension| extension != "jsonl") {
                continue;
            }
            let name = script.file_stem().expect("a name").to_string_lossy();
            captures.push(Capture { agent: format!("{set}.{name}"), script: script.clone() });
        }
    }
    captures.sort_by(|a, b| a.agent.cmp(&b.agent));
    captures
}

/// Writes a configuration with a scripted agent for each capture; JSON is YAML too.
fn write_capture_config(folder: &Path, captures: &[Capture], switches: &Value) -> PathBuf {
    let agents: Map<String, Value> = captures
        .iter()
        .map(|capture| {
            (capture.agent.clone(), json!({"type": "scripted", "script": capture.script}))
        })
        .collect();
    let config = json!({"agentscope": {"agui": switches, "agents": agents}});
    let path = folder.join("captures.yaml");
    fs::write(&path, config.to_string()).expect("the configuration is written");
    path
}

fn capture_jobs(captures: &[Capture], server: &Server) -> Vec<Job> {
    let steps = json!([{"user": "Hello"}]);
    captures
        .iter()
        .flat_map(|capture| {
            CLIENTS.iter().map(|client| {
                Job::new(&capture.agent, client, &server.run_url(&capture.agent), steps.clone())
            })
        })
        .collect()
}

/// What no conversation may show, whatever was said in it.
fn complaints(record: &Record) -> Vec<String> {
    let name = format!("{} with client {}", record.name, record.client);
    let rejected = record.rejected.iter().map(|error| format!("{name}: rejected: {error}"));
    let current = record.client == "1.0.0";
    let warnings = record.warnings.iter().filter(|_| current);
    rejected.chain(warnings.map(|warning| format!("{name}: printed: {warning}"))).collect()
}

/// Fails on complaints and on differences from the expected files of `group`.
fn judge(group: &str, records: &[Record], server: &Server) {
    let mut faults: Vec<String> = records.iter().flat_map(complaints).collect();
    let entries = records.iter().map(golden::Entry::new).collect();
    faults.extend(golden::compare(&expected(group), entries));
    report(faults, &server.log());
}

fn expected(group: &str) -> PathBuf {
    driver::folder().join("expected").join(group)
}

fn report(faults: Vec<String>, log: &str) {
    assert!(
        faults.is_empty(),
        "{} faults:\n{}\n--- the server's log\n{}",
        faults.len(),
        faults.join("\n"),
        log,
    );
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
