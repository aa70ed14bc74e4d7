//! What went in must come out: once, in its order, in the right kind of event, under the right
//! owner, and nothing of one item inside another.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use agui_adapter::model::{AgentEvent, AgentEventKind as Kind, event::ResultState};
use serde_json::Value;

use super::runs::{Run, is_custom};

/// A block, or a call, of one source.
type Key = (String, String, String);

/// What the agent said before its end.
#[derive(Default)]
struct Said {
    /// Tokens that have to come out, by item, in order.
    owed: BTreeMap<Key, Vec<String>>,
    /// Tokens that must not come out.
    hidden: Vec<String>,
    item: HashMap<String, Key>,
}

impl Said {
    fn owe(&mut self, key: Key, token: &str) {
        if !token.is_empty() {
            self.item.insert(token.to_owned(), key.clone());
            self.owed.entry(key).or_default().push(token.to_owned());
        }
    }
}

fn source(event: &AgentEvent) -> String {
    event.source.as_deref().unwrap_or_default().to_owned()
}

fn said(run: &Run) -> Said {
    let mut said = Said::default();
    let (mut started, mut results) =
        (HashSet::new(), HashMap::<(String, String), Vec<String>>::new());
    // Calls of the client's own tool, which only the client may answer.
    let mut clients = HashSet::new();
    // A call has one result; a second one is left out.
    let mut settled: HashSet<(String, String)> = HashSet::new();
    // Answered by more than its own agent's results: by which of them first is not told apart.
    let contested = contested(run);
    for event in &run.events[..run.end_at] {
        let from = source(event);
        let child = !from.is_empty();
        match &event.kind {
            Kind::TextBlockDelta { reply, block, delta } => {
                said.owe((from, format!("text {reply}"), block.clone()), delta);
            }
            Kind::ThinkingBlockDelta { reply, block, delta } => {
                if run.options.enable_reasoning {
                    said.owe((from, format!("thinking {reply}"), block.clone()), delta);
                } else {
                    said.hidden.push(delta.clone());
                }
            }
            // Another invocation of a child knows nothing of the calls of the one before.
            Kind::AgentStart { .. } | Kind::AgentEnd { .. } if child => {
                started.retain(|(of, _)| *of != from);
                results.retain(|(of, _), _| *of != from);
            }
            Kind::ToolCallStart { call, name, .. } => {
                if name == "pick" {
                    clients.insert(call.clone());
                }
                settled.remove(&(from.clone(), call.clone()));
                started.insert((from, call.clone()));
            }
            Kind::ToolCallDelta { call, delta } => {
                // Calls that an earlier run made are not sent again, nor are their arguments.
                let again = run
                    .answered
                    .iter()
                    .any(|d| d.open.call.as_ref().is_some_and(|stored| stored.id == *call));
                let shown = run.options.emit_tool_call_args && !again && !(child && is_custom(run));
                if shown && started.contains(&(from.clone(), call.clone())) {
                    said.owe((from, "call".into(), call.clone()), delta);
                }
            }
            Kind::RequireUserConfirm { calls, .. }
            | Kind::RequireExternalExecution { calls, .. } => {
                let named = calls.iter().filter(|call| call.name == "pick");
                clients.extend(named.map(|call| call.id.clone()));
            }
            Kind::ToolResultTextDelta { call, delta } => {
                results.entry((from, call.clone())).or_default().push(delta.clone());
            }
            Kind::ToolResultEnd { call, state, .. } => {
                let tokens = results.remove(&(from.clone(), call.clone())).unwrap_or_default();
                if *state == ResultState::Running {
                    continue;
                }
                let first = settled.insert((from.clone(), call.clone()));
                if first && !clients.contains(call) && !contested.contains(call) {
                    for token in tokens {
                        said.owe((from.clone(), "result".into(), call.clone()), &token);
                    }
                }
            }
            Kind::Custom { value, .. } if !(child && is_custom(run)) => {
                said.owe(
                    (from, "custom".into(), String::new()),
                    value.as_str().unwrap_or_default(),
                );
            }
            _ => {}
        }
    }
    said
}

/// Calls that a resume, or an event about answers, answers too; and those of which a source that
/// never made them gives a result.
fn contested(run: &Run) -> HashSet<String> {
    let resumed = run.answered.iter().filter_map(|d| d.open.call.as_ref());
    let mut contested: HashSet<String> = resumed.map(|call| call.id.clone()).collect();
    let mut started = HashSet::new();
    for event in &run.events[..run.end_at] {
        let from = source(event);
        match &event.kind {
            Kind::ToolCallStart { call, .. } => {
                started.insert((from, call.clone()));
            }
            Kind::UserConfirmResult { results, .. } => {
                contested.extend(results.iter().map(|result| result.call.id.clone()));
            }
            Kind::ExternalExecutionResult { results, .. } => {
                contested.extend(results.iter().map(|result| result.call_id.clone()));
            }
            Kind::ToolResultEnd { call, .. } if !started.contains(&(from, call.clone())) => {
                contested.insert(call.clone());
            }
            _ => {}
        }
    }
    contested
}

/// The part of an event in which tokens stand, and the item of the client that they belong to.
fn content(event: &Value) -> Option<(String, String)> {
    let id = |name: &str| format!("{name} {}", event[name].as_str().unwrap_or_default());
    let kind = event["type"].as_str()?;
    Some(match kind {
        "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT" => {
            (event["delta"].as_str()?.to_owned(), format!("{kind} {}", id("messageId")))
        }
        "TOOL_CALL_ARGS" => (event["delta"].as_str()?.to_owned(), id("toolCallId")),
        "TOOL_CALL_RESULT" => (event["content"].to_string(), id("messageId")),
        "CUSTOM" if event["name"] != "agentscope.hint" => {
            (event["value"].to_string(), String::new())
        }
        _ => return None,
    })
}

/// `t12;`: a letter, digits, a semicolon.
fn tokens(text: &str) -> Vec<String> {
    let pieces = text.split_inclusive(';').filter_map(|piece| {
        let piece = piece.strip_suffix(';')?;
        let digits = piece.len() - piece.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let letter = piece.len().checked_sub(digits + 1)?;
        (digits > 0 && piece.is_char_boundary(letter))
            .then(|| format!("{};", piece.get(letter..).unwrap_or_default()))
    });
    pieces.collect()
}

fn kind_of(token: &str) -> &'static [&'static str] {
    match token.as_bytes().first() {
        Some(b't') => &["TEXT_MESSAGE_CONTENT", "CUSTOM"],
        Some(b'k') => &["REASONING_MESSAGE_CONTENT", "CUSTOM"],
        Some(b'g') => &["TOOL_CALL_ARGS", "CUSTOM"],
        Some(b'o') => &["TOOL_CALL_RESULT", "CUSTOM"],
        Some(b'u') => &["CUSTOM"],
        _ => &[],
    }
}

/// What is wrong, in words.
pub fn check(run: &Run, events: &[Value]) -> Vec<String> {
    let said = said(run);
    let mut wrong = Vec::new();
    let mut came: BTreeMap<Key, Vec<String>> = BTreeMap::new();
    let mut seen = HashSet::new();
    // Which items of the agent stand in an item of the client, and which sources under a tag.
    let mut mixed: BTreeMap<String, BTreeSet<Key>> = BTreeMap::new();
    let mut tags: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for event in events {
        let Some((text, item)) = content(event) else { continue };
        let kind = event["type"].as_str().unwrap_or_default();
        for token in tokens(&text) {
            if said.hidden.contains(&token) {
                wrong.push(format!("{token} is thinking, but came out"));
            }
            // The ends of a custom child's calls repeat nothing that came before.
            let Some(key) = said.item.get(&token) else { continue };
            if !seen.insert(token.clone()) {
                wrong.push(format!("{token} came twice"));
            }
            if !kind_of(&token).contains(&kind) {
                wrong.push(format!("{token} came in a {kind}"));
            }
            came.entry(key.clone()).or_default().push(token);
            if kind != "CUSTOM" {
                mixed.entry(item.clone()).or_default().insert(key.clone());
                let tag = event["subagentRunId"].as_str().unwrap_or_default();
                if key.1 != "result" {
                    tags.entry(tag.to_owned()).or_default().insert(key.0.clone());
                }
            }
        }
    }
    for (key, owed) in &said.owed {
        let came = came.get(key).map_or(&[][..], Vec::as_slice);
        if came != owed {
            wrong.push(format!("of {key:?} came {came:?} instead of {owed:?}"));
        }
    }
    wrong.extend(
        mixed.iter().filter(|(_, keys)| keys.len() > 1).map(|found| format!("mixed: {found:?}")),
    );
    wrong.extend(
        tags.iter().filter(|(_, of)| of.len() > 1).map(|found| format!("owners: {found:?}")),
    );
    wrong
}
