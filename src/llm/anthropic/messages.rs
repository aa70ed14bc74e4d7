//! Turns as messages.

use std::collections::HashMap;

use agui_adapter::model::{
    Block,
    event::ResultState,
    msg::{MediaKind, MediaSource},
};
use serde_json::{Value, json};

use super::{
    super::{
        Artefact,
        media::stand_in,
        names,
        turns::{Conversation, Part, Side, Turn, arguments, failure_text},
    },
    REDACTED, SIGNATURE,
    blocks::{media_block, text_block},
};

/// Makes the messages of one request.
pub(super) struct Messages {
    vision: bool,
    /// How many pictures were left out.
    left_out: usize,
    /// Ids of the calls, by number.
    ids: Vec<String>,
}

impl Messages {
    /// For a model that sees images, or sees none.
    pub(super) fn new(vision: bool) -> Self {
        Self { vision, left_out: 0, ids: Vec::new() }
    }

    /// The messages, and how many pictures were left out of them; `unthought` = without thinking
    /// in the turn in progress.
    pub(super) fn of(
        mut self,
        conversation: &Conversation<'_>,
        unthought: bool,
    ) -> (Vec<Value>, usize) {
        self.ids = ids(conversation);
        let in_progress = conversation.in_progress();
        let mut messages: Vec<(Side, Vec<Value>)> = Vec::new();
        for (at, turn) in conversation.turns.iter().enumerate() {
            let content = self.content(turn, unthought && at >= in_progress);
            match messages.last_mut() {
                _ if content.is_empty() => {}
                Some((side, last)) if *side == turn.side => last.extend(content),
                _ => messages.push((turn.side, content)),
            }
        }
        if let Some((Side::Model, content)) = messages.last_mut() {
            trim_end(content);
        }
        let messages = messages.into_iter().map(|(side, content)| message(side, content));
        (messages.collect(), self.left_out)
    }

    fn content(&mut self, turn: &Turn<'_>, unthought: bool) -> Vec<Value> {
        let said = told(turn).into_iter().filter(|part| !(unthought && is_thinking(part)));
        said.filter_map(|part| self.block(turn.side, part)).collect()
    }

    fn block(&mut self, side: Side, part: &Part<'_>) -> Option<Value> {
        match part {
            Part::Text(text) => Some(text_block(text)),
            Part::Thinking { text, artefact } => thinking_block(text, artefact),
            // The API takes none from the model.
            Part::Media { kind, source, name } if side == Side::Model => {
                Some(text_block(&stand_in(*kind, source, *name)))
            }
            Part::Media { kind, source, name } => Some(self.media(*kind, source, *name)),
            Part::Call { number, call, .. } => Some(json!({
                "type": "tool_use",
                "id": self.ids.get(*number),
                "name": names::encode(&call.name),
                "input": arguments(call),
            })),
            Part::Result { number, output, state, .. } => {
                Some(self.result_block(*number, output, *state))
            }
        }
    }

    fn result_block(&mut self, number: usize, output: &[Block], state: ResultState) -> Value {
        let mut content: Vec<Value> =
            output.iter().filter_map(|block| self.output_block(block)).collect();
        let failed = failure_text(state);
        if let Some(text) = failed.filter(|_| content.is_empty()) {
            content.push(text_block(text));
        }
        let mut result = json!({"type": "tool_result", "tool_use_id": self.ids.get(number)});
        if let Value::Object(members) = &mut result {
            if !content.is_empty() {
                members.insert("content".to_owned(), Value::Array(content));
            }
            if failed.is_some() {
                members.insert("is_error".to_owned(), json!(true));
            }
        }
        result
    }

    fn output_block(&mut self, block: &Block) -> Option<Value> {
        match block {
            Block::Text { text } | Block::Hint { text } if text.trim().is_empty() => None,
            Block::Text { text } | Block::Hint { text } => Some(text_block(text)),
            Block::Media { kind, source, name, .. } => {
                Some(self.media(*kind, source, name.as_deref()))
            }
            Block::Thinking { .. } | Block::ToolUse { .. } | Block::ToolResult { .. } => None,
        }
    }

    fn media(&mut self, kind: MediaKind, source: &MediaSource, name: Option<&str>) -> Value {
        let block = media_block(kind, source, name);
        if self.vision || block.get("type") != Some(&json!("image")) {
            return block;
        }
        self.left_out += 1;
        text_block("[image left out]")
    }
}

/// The parts in the order in which the API takes them. Clients keep calls with the text before
/// them, so thinking that led to calls may come behind these; it goes before them again. No
/// message may end in thinking: what it led to was lost.
pub(super) fn told<'t, 'a>(turn: &'t Turn<'a>) -> Vec<&'t Part<'a>> {
    let is_call = |part: &Part<'_>| matches!(part, Part::Call { .. });
    let said = turn.parts.iter().rposition(|part| !is_call(part) && !is_thinking(part));
    let (said, led) = turn.parts.split_at(said.map_or(0, |at| at + 1));
    let mut told: Vec<&Part<'_>> = said.iter().collect();
    if led.iter().any(is_call) {
        let (thinking, calls): (Vec<_>, Vec<_>) = led.iter().partition(|part| is_thinking(part));
        told.extend(thinking.into_iter().chain(calls));
    }
    told
}

fn message(side: Side, content: Vec<Value>) -> Value {
    let role = match side {
        Side::User => "user",
        Side::Model => "assistant",
    };
    json!({"role": role, "content": content})
}

/// Whether a part is thinking that the API takes back.
pub(super) fn is_thinking(part: &Part<'_>) -> bool {
    match part {
        Part::Thinking { artefact, .. } => matches!(artefact.kind, SIGNATURE | REDACTED),
        _ => false,
    }
}

fn thinking_block(text: &str, artefact: &Artefact<'_>) -> Option<Value> {
    match artefact.kind {
        SIGNATURE => {
            Some(json!({"type": "thinking", "thinking": text, "signature": artefact.value}))
        }
        REDACTED => Some(json!({"type": "redacted_thinking", "data": artefact.value})),
        _ => None,
    }
}

/// The API refuses an unfinished answer that ends in white space.
fn trim_end(content: &mut [Value]) {
    let text = content.last_mut().and_then(|block| block.get_mut("text"));
    if let Some(Value::String(text)) = text {
        text.truncate(text.trim_end().len());
    }
}

/// Ids of the calls as the API takes them: of letters, digits, `_` and `-`, each once.
fn ids(conversation: &Conversation<'_>) -> Vec<String> {
    let parts = conversation.turns.iter().flat_map(|turn| &turn.parts);
    let calls = parts.filter_map(|part| match part {
        Part::Call { call, .. } => Some(call.id.as_str()),
        _ => None,
    });
    let mut used = Used::default();
    calls.map(|id| used.unused(plain(id))).collect()
}

fn plain(id: &str) -> String {
    if id.is_empty() {
        return "call".to_owned();
    }
    let taken = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    id.chars().map(|c| if taken(c) { c } else { '_' }).collect()
}

/// Ids that stand for calls, each with how often it was wanted.
#[derive(Default)]
struct Used(HashMap<String, usize>);

impl Used {
    /// The id, or the next one like it that stands for no call.
    fn unused(&mut self, id: String) -> String {
        let mut times = self.0.get(&id).copied().unwrap_or_default();
        let mut free = id.clone();
        while self.0.contains_key(&free) {
            times += 1;
            free = format!("{id}-{times}");
        }
        self.0.insert(id, times.max(1));
        self.0.entry(free.clone()).or_insert(1);
        free
    }
}
