//! Expected records: what is kept of a record, and its comparison with the committed file.
//!
//! Ids that the server or a client makes up differ from run to run and are replaced by labels in
//! the order in which they appear; everything else is compared as it is.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde_json::{Map, Value, json};

use super::driver::{Record, Run};

/// Text longer than this is kept as its beginning, its length and a hash.
const LONGEST_TEXT: usize = 400;

/// What is compared of one conversation.
pub(super) struct Entry {
    /// Names the file.
    name: String,
    /// Names the entry in the file.
    key: String,
    kept: Value,
}

impl Entry {
    /// Of a conversation between one client and one agent.
    pub(super) fn new(record: &Record) -> Self {
        Self::keyed(record, record.client.clone())
    }

    /// The same, with another name in the file.
    pub(super) fn keyed(record: &Record, key: String) -> Self {
        Self { name: record.name.clone(), key, kept: kept(record) }
    }

    /// Of anything else; ids below `kept` are replaced by labels. In which order a client has the
    /// members of a message depends on how it came by it.
    pub(super) fn labelled(name: &str, key: String, thread: &str, mut kept: Value) -> Self {
        kept.sort_all_objects();
        Labels::new(thread).apply(&mut kept, None);
        Self { name: name.to_owned(), key, kept }
    }
}

/// Compares entries with the files of `folder` and says what differs; with `UPDATE_EXPECTED=1`
/// writes the files instead.
pub(super) fn compare(folder: &Path, entries: Vec<Entry>) -> Vec<String> {
    let update = std::env::var_os("UPDATE_EXPECTED").is_some_and(|value| value == "1");
    let files = files(entries);
    if update {
        fs::create_dir_all(folder).expect("the folder is made");
    }
    let mut faults = Vec::new();
    for stale in present(folder).iter().filter(|name| !files.contains_key(*name)) {
        if update {
            fs::remove_file(folder.join(stale)).expect("a stale file is removed");
        } else {
            faults.push(format!("{stale}: no conversation has this name"));
        }
    }
    for (name, actual) in &files {
        let path = folder.join(name);
        if update {
            fs::write(&path, actual).expect("the file is written");
            continue;
        }
        match fs::read_to_string(&path) {
            Ok(expected) if expected == *actual => {}
            Ok(expected) => faults.push(format!("{name}: {}", first_difference(&expected, actual))),
            Err(_) => faults.push(format!("{name}: missing; UPDATE_EXPECTED=1 writes it")),
        }
    }
    faults
}

fn present(folder: &Path) -> BTreeSet<String> {
    let Ok(entries) = fs::read_dir(folder) else { return BTreeSet::new() };
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into()).collect()
}

/// File name to content. An entry that equals another one only names it.
fn files(all: Vec<Entry>) -> BTreeMap<String, String> {
    let mut files: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for Entry { name, key, kept } in all {
        let entries = files.entry(format!("{name}.json")).or_default();
        let twin = entries.iter().find(|(_, other)| **other == kept).map(|(key, _)| key);
        let kept = twin.map_or(kept, |twin| json!(format!("as {twin}")));
        entries.insert(key, kept);
    }
    let text = |(name, entries)| {
        let text = serde_json::to_string_pretty(&entries).expect("JSON");
        (name, format!("{text}\n"))
    };
    files.into_iter().map(text).collect()
}

/// What is compared of a record.
fn kept(record: &Record) -> Value {
    let aborted = record.runs.iter().any(|run| run.aborted);
    let mut kept = json!({
        "messages": record.messages,
        "state": record.state,
        "runs": record.runs.iter().map(kept_run).collect::<Vec<_>>(),
    });
    if aborted {
        // How much arrives before the connection is closed is a matter of time.
        kept["messages"] = json!("not compared");
    }
    if !record.warnings.is_empty() {
        kept["warnings"] = json!(record.warnings);
    }
    Labels::new(&record.thread_id).apply(&mut kept, None);
    kept
}

fn kept_run(run: &Run) -> Value {
    if run.aborted {
        return json!({"aborted": true, "error": run.error});
    }
    let mut outcome = run.outcome.clone();
    if let Some(interrupts) = outcome.as_object_mut().and_then(|o| o.shift_remove("interrupts")) {
        assert_eq!(interrupts, run.pending_interrupts, "the client keeps what the outcome says");
    }
    let mut kept = json!({"events": event_lines(&run.events), "outcome": outcome});
    for (key, value) in [
        ("error", &run.error),
        ("interrupts", &run.pending_interrupts),
        ("pendingToolCalls", &run.pending_tool_calls),
    ] {
        if !value.is_null() && *value != json!([]) {
            kept[key] = value.clone();
        }
    }
    kept
}

/// The types of the events, with their name where they have one; equal neighbours are counted.
pub(super) fn event_lines(events: &[Value]) -> Vec<String> {
    let mut lines: Vec<(String, usize)> = Vec::new();
    for event in events {
        let mut line = event["type"].as_str().unwrap_or("?").to_owned();
        let named = ["name", "stepName", "toolCallName", "activityType"];
        if let Some(name) = named.iter().find_map(|key| event[*key].as_str()) {
            line = format!("{line} {name}");
        }
        match lines.last_mut() {
            Some((last, count)) if *last == line => *count += 1,
            _ => lines.push((line, 1)),
        }
    }
    let counted = |(line, count)| if count == 1 { line } else { format!("{line} x{count}") };
    lines.into_iter().map(counted).collect()
}

/// Labels for made-up ids: `m1` a message, `c1` a tool call, `s1` a sub-agent, `i1` an interrupt.
pub(super) struct Labels {
    thread: String,
    labels: BTreeMap<(char, String), String>,
}

impl Labels {
    pub(super) fn new(thread: &str) -> Self {
        Self { thread: thread.to_owned(), labels: BTreeMap::new() }
    }

    /// Replaces ids below `value`; `id_kind` is what a member named `id` identifies there.
    pub(super) fn apply(&mut self, value: &mut Value, id_kind: Option<char>) {
        match value {
            Value::String(text) => *text = self.shortened(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.apply(item, id_kind)),
            Value::Object(members) => {
                for (key, member) in members {
                    self.apply_member(key, member, id_kind);
                }
            }
            _ => {}
        }
    }

    fn apply_member(&mut self, key: &str, member: &mut Value, id_kind: Option<char>) {
        let kind = match key {
            "id" => id_kind,
            "messageId" | "parentMessageId" => Some('m'),
            "toolCallId" | "parentToolCallId" | "pendingToolCallIds" => Some('c'),
            "subagentRunId" | "parentSubagentRunId" => Some('s'),
            _ => None,
        };
        match (kind, &mut *member) {
            (Some(kind), Value::String(id)) => *id = self.label(kind, id),
            (Some(kind), Value::Array(ids)) => {
                for id in ids {
                    let label = self.label(kind, id.as_str().unwrap_or_default());
                    *id = json!(label);
                }
            }
            _ => self.apply(
                member,
                match key {
                    "messages" => Some('m'),
                    "toolCalls" | "pendingToolCalls" => Some('c'),
                    "interrupts" => Some('i'),
                    _ => None,
                },
            ),
        }
    }

    fn label(&mut self, kind: char, id: &str) -> String {
        let next = self.labels.keys().filter(|(other, _)| *other == kind).count() + 1;
        let label = self.labels.entry((kind, id.to_owned()));
        label.or_insert_with(|| format!("{kind}{next}")).clone()
    }

    fn shortened(&self, text: &str) -> String {
        let text = text.replace(&self.thread, "<thread>");
        if text.len() <= LONGEST_TEXT {
            return text;
        }
        let start: String = text.chars().take(80).collect();
        format!("{start}… ({} bytes, FNV-1a {:016x})", text.len(), fnv1a(&text))
    }
}

/// A hash that stays the same over releases of the standard library.
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn first_difference(expected: &str, actual: &str) -> String {
    let (expected, actual): (Vec<_>, Vec<_>) =
        (expected.lines().collect(), actual.lines().collect());
    let at = (0..).find(|&at| expected.get(at) != actual.get(at)).unwrap_or_default();
    let shown = |lines: &[&str]| {
        let end = lines.len().min(at + 3);
        lines[at.min(end)..end].join("\n    ")
    };
    format!("line {}:\n  expected\n    {}\n  got\n    {}", at + 1, shown(&expected), shown(&actual))
}

#[test]
fn ids_are_labelled_by_kind_in_the_order_of_their_appearance() {
    let mut value = json!({
        "messages": [
            {"id": "x", "role": "user", "content": "id of t-1-r1"},
            {"id": "y", "role": "assistant", "toolCalls": [{"id": "x"}]},
            {"id": "z", "role": "tool", "toolCallId": "x"},
        ],
        "interrupts": [{"id": "r:x", "toolCallId": "x", "metadata": {"id": "kept"}}],
        "state": {"id": "kept"},
    });
    Labels::new("t-1").apply(&mut value, None);
    assert_eq!(
        value,
        json!({
            "messages": [
                {"id": "m1", "role": "user", "content": "id of <thread>-r1"},
                {"id": "m2", "role": "assistant", "toolCalls": [{"id": "c1"}]},
                {"id": "m3", "role": "tool", "toolCallId": "c1"},
            ],
            "interrupts": [{"id": "i1", "toolCallId": "c1", "metadata": {"id": "kept"}}],
            "state": {"id": "kept"},
        }),
    );
}

#[test]
fn equal_neighbours_are_counted() {
    let events = [
        json!({"type": "RUN_STARTED"}),
        json!({"type": "CUSTOM", "name": "a"}),
        json!({"type": "CUSTOM", "name": "a"}),
        json!({"type": "CUSTOM", "name": "b"}),
    ];
    assert_eq!(event_lines(&events), ["RUN_STARTED", "CUSTOM a x2", "CUSTOM b"]);
}
