//! What the tests share: the corpus files, and events made from them.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::Value;

/// One line of a corpus file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// What the case is about.
    pub(crate) note: String,
    /// Whether this crate accepts the value.
    pub(crate) good: bool,
    /// The rule for which the official schemas decide the other way; absent = they agree.
    pub(crate) differs: Option<String>,
    /// The input or event.
    pub(crate) value: Value,
}

/// Reads `tests/corpus/<name>.jsonl`.
pub(crate) fn corpus(name: &str) -> Vec<Case> {
    let path = format!("{}/tests/corpus/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

static GOOD_EVENTS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    corpus("events").into_iter().filter(|case| case.good).map(|case| case.value).collect()
});

/// The good events of the corpus: each type at least with all optional members and with none.
pub(crate) fn good_events() -> &'static [Value] {
    &GOOD_EVENTS
}

/// An event of any type with any of its optional members and any text in its strings.
pub(crate) fn any_event() -> impl Strategy<Value = Value> {
    let events = good_events();
    let texts =
        proptest::collection::vec(proptest::string::string_regex(r"(?s).{0,12}").unwrap(), 4);
    (proptest::sample::select(events), any::<u64>(), texts).prop_map(|(mut event, keep, texts)| {
        let required = required_members(event["type"].as_str().unwrap());
        let members = event.as_object_mut().unwrap();
        let mut bit = 0;
        members.retain(|name, _| {
            bit += 1;
            name == "type" || required.contains(name) || keep >> bit & 1 == 1
        });
        for (index, name) in ["messageId", "delta", "toolCallId", "message"].iter().enumerate() {
            if let Some(member) = members.get_mut(*name).filter(|member| member.is_string()) {
                *member = Value::String(texts[index].clone());
            }
        }
        event
    })
}

/// The members of the smallest good event of a type.
fn required_members(kind: &str) -> Vec<String> {
    let smallest = good_events()
        .iter()
        .filter(|event| event["type"] == kind)
        .min_by_key(|event| event.as_object().unwrap().len())
        .unwrap();
    smallest.as_object().unwrap().keys().cloned().collect()
}
