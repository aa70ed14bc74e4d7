//! The record of every captured stream against what the official client 1.0.0 held at the end of
//! it (`tests/frontends/httpagent/expected`).

use std::{collections::BTreeMap, fs, path::PathBuf};

use super::*;

/// Ids as the expected files label them: `m1` a message, `c1` a call, `s1` a sub-agent.
#[derive(Default)]
struct Labels(BTreeMap<(char, String), String>);

impl Labels {
    fn label(&mut self, kind: char, id: &mut Value) {
        let Some(text) = id.as_str() else { return };
        let next = self.0.keys().filter(|(other, _)| *other == kind).count() + 1;
        let label =
            self.0.entry((kind, text.to_owned())).or_insert_with(|| format!("{kind}{next}"));
        *id = json!(label);
    }

    /// In the order in which the official client writes its members.
    fn message(&mut self, message: &mut Value) {
        self.label('m', &mut message["id"]);
        let members = message.as_object_mut().expect("a message");
        if let Some(call) = members.get_mut("toolCallId") {
            self.label('c', call);
        }
        if let Some(owner) = members.get_mut("subagentRunId") {
            self.label('s', owner);
        }
        for call in members.get_mut("toolCalls").and_then(Value::as_array_mut).into_iter().flatten()
        {
            self.label('c', &mut call["id"]);
        }
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every capture that says something: its name and its lines.
fn captures() -> Vec<(String, Vec<String>)> {
    let mut captures = Vec::new();
    for set in ["java", "library", "service"] {
        let folder = root().join("crates/agui-adapter/tests/captures").join(set);
        for entry in fs::read_dir(folder).expect("captures") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|extension| extension == "jsonl") {
                let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
                let text = fs::read_to_string(&path).expect("a capture");
                let lines = text.lines().filter(|line| !line.trim().is_empty());
                captures.push((format!("{set}.{name}"), lines.map(str::to_owned).collect()));
            }
        }
    }
    captures.retain(|(_, lines): &(String, Vec<String>)| !lines.is_empty());
    captures
}

#[test]
fn the_record_of_every_capture_is_what_the_official_client_has() {
    let captures = captures();
    assert_eq!(captures.len(), 60);
    let folder = root().join("tests/frontends/httpagent/expected/captures");
    for (name, lines) in captures {
        let expected = fs::read_to_string(folder.join(format!("{name}.json")));
        let expected: Value = serde_json::from_str(&expected.expect(&name)).expect("JSON");
        compare(&name, &lines, &expected["1.0.0"]["messages"]);
    }
}

#[track_caller]
fn compare(name: &str, lines: &[String], expected: &Value) {
    let input = r#"{"messages":[{"id":"user-1","role":"user","content":"Hello"}]}"#;
    let mut run = Playing::new(support::input(input), AdapterOptions::default());
    for line in lines {
        run.feed(&read(line));
    }
    run.finish(StreamEnd::Completed);
    let mut messages = messages_json(&run.thread());
    let mut labels = Labels::default();
    messages.iter_mut().for_each(|message| labels.message(message));
    let mut expected = expected.clone();
    let expected = expected.as_array_mut().expect("messages");
    // Long texts are not kept whole there.
    for (got, expected) in messages.iter_mut().zip(expected.iter_mut()) {
        if expected.to_string().contains("FNV-1a") {
            (got["content"], expected["content"]) = (Value::Null, Value::Null);
        }
    }
    assert_eq!(&messages, expected, "{name}");
}

#[test]
fn every_capture_can_be_joined_at_every_place() {
    let options = AdapterOptions { enable_reasoning: true, ..AdapterOptions::default() };
    for (name, lines) in captures() {
        joined::at_every_place(&name, &lines, &options);
    }
}
