//! Runs `drive.mjs`: jobs in, records out. One Node process per client release, side by side.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

/// The releases that are driven, the current one first.
pub(super) const CLIENTS: [&str; 3] = ["1.0.0", "0.0.59", "0.0.57"];

/// One conversation of one client with one agent; the members are explained in `drive.mjs`.
pub(super) struct Job {
    client: String,
    value: Value,
}

impl Job {
    /// A conversation on a thread of its own.
    pub(super) fn new(name: &str, client: &str, url: &str, steps: Value) -> Self {
        let thread = format!("{name}-{client}");
        let value =
            json!({"name": name, "client": client, "url": url, "threadId": thread, "steps": steps});
        Self { client: client.to_owned(), value }
    }

    /// Sets an optional member.
    pub(super) fn set(&mut self, key: &str, value: Value) {
        self.value[key] = value;
    }
}

/// What the client saw; the members are explained in `drive.mjs`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Record {
    pub(super) name: String,
    pub(super) client: String,
    pub(super) thread_id: String,
    pub(super) runs: Vec<Run>,
    pub(super) messages: Value,
    pub(super) state: Value,
    pub(super) rejected: Option<String>,
    pub(super) warnings: Vec<String>,
}

/// One run of a conversation.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Run {
    pub(super) events: Vec<Value>,
    pub(super) outcome: Value,
    pub(super) error: Value,
    pub(super) pending_interrupts: Value,
    pub(super) pending_tool_calls: Value,
    pub(super) aborted: bool,
}

/// The folder of the driver and its data.
pub(super) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/frontends/httpagent")
}

/// Plays all jobs and returns their records, by client and in the order of the jobs.
pub(super) fn drive(jobs: Vec<Job>) -> Vec<Record> {
    drive_with(&jobs, &[])
}

/// The same for agents that take seconds of computing to begin with: few at once, and with all
/// the time they need.
pub(super) fn drive_slow_agents(jobs: Vec<Job>) -> Vec<Record> {
    drive_with(&jobs, &[("PARALLEL", "2"), ("RUN_TIMEOUT_MS", "600000")])
}

fn drive_with(jobs: &[Job], variables: &[(&str, &str)]) -> Vec<Record> {
    thread::scope(|scope| {
        let of = |client| jobs.iter().filter(move |job| job.client == client);
        let running: Vec<_> = CLIENTS
            .into_iter()
            .map(|client| of(client).map(|job| job.value.clone()).collect())
            .filter(|jobs: &Vec<Value>| !jobs.is_empty())
            .map(|jobs| scope.spawn(move || play("drive.mjs", &jobs, variables)))
            .collect();
        running.into_iter().flat_map(|thread| thread.join().expect("the driver ran")).collect()
    })
}

/// Gives the jobs to a script that plays them; one record per job, in their order.
pub(super) fn play<R: DeserializeOwned>(
    script: &str,
    jobs: &[Value],
    variables: &[(&str, &str)],
) -> Vec<R> {
    let mut node = node()
        .arg(script)
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("node (version 20 or newer) is installed");
    let input: String = jobs.iter().map(|job| format!("{job}\n")).collect();
    // The script reads all of its input before it writes, so this cannot block for ever.
    node.stdin.take().expect("piped").write_all(input.as_bytes()).expect("node reads the jobs");
    let output = node.wait_with_output().expect("node ends");
    assert!(output.status.success(), "node: {}", output.status);

    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let mut lines: Vec<&str> = text.lines().collect();
    let last: Value = serde_json::from_str(lines.pop().expect("a last line")).expect("JSON");
    assert_eq!(last, json!({"stray": []}), "complaints outside of any conversation");
    assert_eq!(lines.len(), jobs.len(), "one record per job");
    lines.iter().map(|line| serde_json::from_str(line).expect("a record")).collect()
}

/// Node in the folder of the clients.
pub(super) fn node() -> Command {
    let folder = folder();
    assert!(
        folder.join("node_modules").is_dir(),
        "the AG-UI clients are not installed: run ./scripts/test, or `npm ci --ignore-scripts` in {}",
        folder.display(),
    );
    let mut node = Command::new("node");
    node.current_dir(folder);
    node
}
