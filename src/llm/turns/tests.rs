//! Turns, and the conversations and streams that the tests of the wires are made of.

use std::sync::Arc;

use agui_adapter::model::{
    Block, Msg, Role,
    event::{Call, Object, ResultState},
    msg::{MediaKind, MediaSource},
};
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::llm::{FunctionSpec, ModelError, ModelEvent, wire::Decoder};

pub(in crate::llm) fn msg(role: Role, content: impl Into<Vec<Block>>) -> Arc<Msg> {
    let (id, name) = ("m".to_owned(), String::new());
    Arc::new(Msg { id, name, role, content: content.into(), metadata: Object::new() })
}

pub(in crate::llm) fn user(text: &str) -> Arc<Msg> {
    msg(Role::User, [said(text)])
}

pub(in crate::llm) fn assistant(content: impl Into<Vec<Block>>) -> Arc<Msg> {
    msg(Role::Assistant, content)
}

pub(in crate::llm) fn tool(id: &str, text: &str, state: ResultState) -> Arc<Msg> {
    msg(Role::Tool, [result(id, [said(text)], state)])
}

pub(in crate::llm) fn said(text: &str) -> Block {
    Block::Text { text: text.to_owned() }
}

pub(in crate::llm) fn thought(text: &str, encrypted: Option<&str>) -> Block {
    Block::Thinking { thinking: text.to_owned(), encrypted: encrypted.map(str::to_owned) }
}

pub(in crate::llm) fn call(id: &str, name: &str, arguments: &str) -> Block {
    signed_call(id, name, arguments, None)
}

pub(in crate::llm) fn signed_call(
    id: &str,
    name: &str,
    arguments: &str,
    encrypted: Option<&str>,
) -> Block {
    let call = Call {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        ..Call::default()
    };
    Block::ToolUse { call, encrypted: encrypted.map(str::to_owned) }
}

pub(in crate::llm) fn result(id: &str, output: impl Into<Vec<Block>>, state: ResultState) -> Block {
    let (call_id, name) = (id.to_owned(), String::new());
    Block::ToolResult { call_id, name, output: output.into(), state, metadata: Object::new() }
}

pub(in crate::llm) fn inline(kind: MediaKind, media_type: &str, data: &str) -> Block {
    let (media_type, data) = (media_type.to_owned(), data.to_owned());
    media(kind, MediaSource::Base64 { media_type, data })
}

pub(in crate::llm) fn linked(kind: MediaKind, media_type: Option<&str>, url: &str) -> Block {
    let (media_type, url) = (media_type.map(str::to_owned), url.to_owned());
    media(kind, MediaSource::Url { media_type, url })
}

fn media(kind: MediaKind, source: MediaSource) -> Block {
    Block::Media { kind, source, name: None, metadata: None }
}

pub(in crate::llm) fn function(name: &str, description: &str, parameters: Value) -> FunctionSpec {
    let (name, description) = (name.to_owned(), description.to_owned());
    FunctionSpec { name, description, parameters: Arc::new(parameters) }
}

/// Feeds a recorded stream, and its end.
pub(in crate::llm) fn read(
    mut decoder: Box<dyn Decoder + Send>,
    stream: &str,
) -> (Vec<ModelEvent>, Result<(), ModelError>) {
    let mut out = Vec::new();
    for event in stream.split("\n\n").filter(|event| !event.trim().is_empty()) {
        let field = |name: &str| event.lines().find_map(|line| line.trim().strip_prefix(name));
        let data = field("data: ").unwrap();
        if let Err(error) = decoder.on_event(field("event: "), data, &mut out) {
            return (out, Err(error));
        }
    }
    let end = decoder.on_end(&mut out);
    (out, end)
}

/// What an agent keeps of an answer.
pub(in crate::llm) fn kept(events: &[ModelEvent]) -> Vec<Block> {
    let (mut blocks, mut thinking) = (Vec::new(), String::new());
    for event in events {
        match event {
            ModelEvent::Text(text) => blocks.push(said(text)),
            ModelEvent::Thinking(text) => thinking.push_str(text),
            ModelEvent::ThinkingEnd { encrypted } => {
                blocks.push(thought(&std::mem::take(&mut thinking), encrypted.as_deref()));
            }
            ModelEvent::CallStart { id, name, .. } => blocks.push(call(id, name, "")),
            ModelEvent::CallDelta { delta, .. } => {
                if let Some(Block::ToolUse { call, .. }) = blocks.last_mut() {
                    call.arguments.push_str(delta);
                }
            }
            ModelEvent::CallEnd { encrypted: signature, .. } => {
                if let Some(Block::ToolUse { encrypted, .. }) = blocks.last_mut() {
                    encrypted.clone_from(signature);
                }
            }
            _ => {}
        }
    }
    blocks
}

/// Any JSON that is made of these words.
pub(in crate::llm) fn any_stream(
    words: &[&'static str],
) -> impl Strategy<Value = Vec<Value>> + use<> {
    let word = prop::sample::select(words.to_vec());
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (0_u64..3).prop_map(Value::from),
        Just(Value::from("")),
        word.clone().prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(4, 32, 6, move |inner| {
        let members = prop::collection::vec((word.clone(), inner.clone()), 0..6);
        let object = members.prop_map(|members| {
            Value::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
        });
        prop_oneof![2 => object, 1 => prop::collection::vec(inner, 0..3).prop_map(Value::Array)]
    });
    prop::collection::vec(value, 0..12)
}

/// Checks what holds for every answer: nothing is empty, calls begin before they go on and go on
/// before they end, and the end is the end.
pub(in crate::llm) fn in_order(mut decoder: Box<dyn Decoder + Send>, stream: &[Value]) {
    let mut events = Vec::new();
    let read =
        stream.iter().try_for_each(|data| decoder.on_event(None, &data.to_string(), &mut events));
    let whole = read.and_then(|()| decoder.on_end(&mut events)).is_ok();
    let mut calls: Vec<bool> = Vec::new();
    for (at, event) in events.iter().enumerate() {
        match event {
            ModelEvent::Text(text) | ModelEvent::Thinking(text) => assert_ne!(text, ""),
            ModelEvent::CallStart { index, .. } => {
                assert_eq!(*index, calls.len());
                calls.push(true);
            }
            ModelEvent::CallDelta { index, delta } => {
                assert!(calls[*index], "a delta behind the end of its call");
                assert_ne!(delta, "");
            }
            ModelEvent::CallEnd { index, .. } => {
                assert!(std::mem::take(&mut calls[*index]), "a call that ends twice");
            }
            ModelEvent::Finish(_) => assert_eq!(at, events.len() - 1),
            ModelEvent::ThinkingEnd { .. } | ModelEvent::Media(_) | ModelEvent::Usage(_) => {}
        }
    }
    assert_eq!(matches!(events.last(), Some(ModelEvent::Finish(_))), whole);
}

fn turns(messages: &[Arc<Msg>]) -> Vec<(Side, Vec<String>)> {
    let conversation = Conversation::of(messages, "anthropic");
    conversation
        .turns
        .iter()
        .map(|turn| (turn.side, turn.parts.iter().map(short).collect()))
        .collect()
}

fn short(part: &Part<'_>) -> String {
    match part {
        Part::Text(text) => (*text).to_owned(),
        Part::Thinking { text, artefact } => format!("thinking {text} {}", artefact.value),
        Part::Media { kind, .. } => format!("{kind:?}"),
        Part::Call { number, call, .. } => format!("call {number} {}", call.id),
        Part::Result { number, output, .. } => match output {
            [Block::Text { text }] => format!("result {number} {text}"),
            _ => format!("result {number}"),
        },
    }
}

fn expected(turns: &[(Side, &[&str])]) -> Vec<(Side, Vec<String>)> {
    let strings = |parts: &[&str]| parts.iter().map(|part| (*part).to_owned()).collect();
    turns.iter().map(|(side, parts)| (*side, strings(parts))).collect()
}

use Side::{Model, User};

#[test]
fn neighbours_of_one_side_are_one_turn() {
    let messages = [
        user("a"),
        user("b"),
        assistant([thought("hm", Some("anthropic.signature:s"))]),
        assistant([said("c")]),
        assistant([call("1", "f", "{}")]),
        tool("1", "r", ResultState::Success),
        user("d"),
    ];
    let expected = expected(&[
        (User, &["a", "b"]),
        (Model, &["thinking hm s", "c", "call 0 1"]),
        (User, &["result 0 r", "d"]),
    ]);
    assert_eq!(turns(&messages), expected);
}

#[test]
fn what_cannot_be_said_leaves_no_turn_behind() {
    let messages = [
        user("a"),
        assistant([thought("hm", None), thought("hm", Some("openai.encrypted:x")), said(" \n")]),
        user("b"),
    ];
    assert_eq!(turns(&messages), expected(&[(User, &["a", "b"])]));
}

#[test]
fn the_user_opens_every_conversation() {
    assert_eq!(turns(&[]), expected(&[(User, &[OPENING])]));
    let greeting = [assistant([said("Hello!")]), user("a")];
    assert_eq!(
        turns(&greeting),
        expected(&[(User, &[OPENING]), (Model, &["Hello!"]), (User, &["a"])])
    );
}

#[test]
fn results_stand_behind_their_calls_in_the_order_of_these() {
    let messages = [
        user("a"),
        assistant([call("1", "f", ""), call("2", "g", "")]),
        user("hurry"),
        tool("2", "second", ResultState::Success),
        tool("1", "first", ResultState::Success),
        tool("gone", "lost", ResultState::Success),
        // As Python keeps it: results inside the message of the assistant.
        assistant([
            call("1", "f", ""),
            result("1", [said("again")], ResultState::Success),
            said("b"),
        ]),
    ];
    let expected = expected(&[
        (User, &["a"]),
        (Model, &["call 0 1", "call 1 2"]),
        (User, &["result 0 first", "result 1 second", "hurry"]),
        (Model, &["call 2 1"]),
        (User, &["result 2 again"]),
        (Model, &["b"]),
    ]);
    assert_eq!(turns(&messages), expected);
}

#[test]
fn hints_are_said_to_the_model_and_instructions_are_no_turns() {
    let hint = Block::Hint { text: "look".to_owned() };
    let messages = [msg(Role::System, [said("Be kind.")]), user("a"), assistant([said("b"), hint])];
    assert_eq!(turns(&messages), expected(&[(User, &["a"]), (Model, &["b"]), (User, &["look"])]));
    let conversation = Conversation::of(&messages, "x");
    assert_eq!(conversation.system("You help."), "You help.\n\nBe kind.");
    assert_eq!(conversation.system(" "), "Be kind.");
}

#[test]
fn the_turn_in_progress_begins_behind_the_persons_last_words() {
    let at = |messages: &[Arc<Msg>]| Conversation::of(messages, "x").in_progress();
    let round = [assistant([call("1", "f", "")]), tool("1", "r", ResultState::Success)];
    let [asks, answers] = round;
    assert_eq!(at(&[]), 1);
    assert_eq!(at(&[user("a")]), 1);
    assert_eq!(at(&[user("a"), asks.clone(), answers.clone()]), 1);
    assert_eq!(at(&[user("a"), asks.clone(), answers.clone(), user("b")]), 3);
    assert_eq!(at(&[user("a"), asks.clone(), answers.clone(), asks, answers]), 1);
}
