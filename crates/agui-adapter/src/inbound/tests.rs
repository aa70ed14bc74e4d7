use serde_json::{Value, json};

use super::*;
use crate::model::event::{Call, ResultState};
use crate::model::msg::{MediaKind, MediaSource};
use crate::model::{Block, Role};

fn input(messages: Value) -> Vec<Message> {
    serde_json::from_value(messages).unwrap()
}

fn convert(messages: Value) -> Inbound {
    to_msgs(&input(messages), &InboundOptions::default())
}

fn contents(inbound: Inbound) -> Vec<(Role, Vec<Block>)> {
    inbound.msgs.into_iter().map(|msg| (msg.role, msg.content)).collect()
}

fn ids(inbound: &Inbound) -> Vec<&str> {
    inbound.msgs.iter().map(|msg| msg.id.as_str()).collect()
}

fn text(text: &str) -> Block {
    Block::Text { text: text.into() }
}

fn calling(id: &str, calls: &[&str]) -> Value {
    let calls: Vec<Value> = calls
        .iter()
        .map(|call| json!({"id": call, "type": "function", "function": {"name": "f", "arguments": "{}"}}))
        .collect();
    json!({"id": id, "role": "assistant", "toolCalls": calls})
}

fn answering(id: &str, call: &str) -> Value {
    json!({"id": id, "role": "tool", "toolCallId": call, "content": id})
}

fn said(id: &str) -> Value {
    json!({"id": id, "role": "user", "content": id})
}

#[test]
fn roles_and_texts() {
    let inbound = convert(json!([
        {"id": "u1", "role": "user", "name": "ann", "content": "hi"},
        {"id": "a1", "role": "assistant", "content": "hello"},
        {"id": "u2", "role": "user", "content": ""},
        {"id": "p1", "role": "activity", "activityType": "PLAN", "content": {}},
    ]));
    assert_eq!(ids(&inbound), ["u1", "a1", "u2"]);
    assert_eq!(inbound.msgs[0].name, "ann");
    assert_eq!((inbound.dropped_system, &inbound.notes[..]), (0, &[][..]));
    assert_eq!(
        contents(inbound),
        [
            (Role::User, vec![text("hi")]),
            (Role::Assistant, vec![text("hello")]),
            (Role::User, vec![]),
        ]
    );
}

#[test]
fn media_of_every_kind_reach_the_agent_and_files_are_skipped() {
    let inbound = convert(json!([{"id": "u1", "role": "user", "content": [
        {"type": "text", "text": "see"},
        {"type": "image", "source": {"type": "data", "value": "AA==", "mimeType": "image/png"}},
        {"type": "audio", "source": {"type": "url", "value": "https://example.com/a"}},
        {"type": "video", "source": {"type": "url", "value": "https://example.com/v", "mimeType": "video/mp4"}},
        {"type": "image", "source": {"type": "file", "value": "file-1", "provider": "p"}},
        {"type": "document", "source": {"type": "data", "value": "BB==", "mimeType": "application/pdf"}, "metadata": {"filename": "a.pdf"}},
    ]}]));
    assert_eq!(inbound.notes, [InboundNote::FileSkipped { message: "u1".into() }]);
    let media = |kind, source| Block::Media { kind, source, name: None, metadata: None };
    assert_eq!(
        contents(inbound),
        [(
            Role::User,
            vec![
                text("see"),
                media(
                    MediaKind::Image,
                    MediaSource::Base64 { media_type: "image/png".into(), data: "AA==".into() }
                ),
                media(
                    MediaKind::Audio,
                    MediaSource::Url { media_type: None, url: "https://example.com/a".into() }
                ),
                media(
                    MediaKind::Video,
                    MediaSource::Url {
                        media_type: Some("video/mp4".into()),
                        url: "https://example.com/v".into()
                    }
                ),
                Block::Media {
                    kind: MediaKind::Document,
                    source: MediaSource::Base64 {
                        media_type: "application/pdf".into(),
                        data: "BB==".into()
                    },
                    name: Some("a.pdf".into()),
                    metadata: Some(json!({"filename": "a.pdf"})),
                },
            ]
        )]
    );
}

#[test]
fn calls_keep_their_text_and_results_know_their_tool() {
    let inbound = convert(json!([
        {"id": "a1", "role": "assistant", "content": "ok", "toolCalls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}, "encryptedValue": "e"},
            {"id": "c2", "type": "function", "function": {"name": "g", "arguments": "{broken"}},
            {"id": "c3", "type": "function", "function": {"name": "h", "arguments": "[1]"}},
        ]},
        {"id": "t1", "role": "tool", "toolCallId": "c1", "content": "one"},
        {"id": "t2", "role": "tool", "toolCallId": "c2", "content": "", "error": "no such file"},
        {"id": "t3", "role": "tool", "toolCallId": "c3", "content": [{"type": "text", "text": "three"}],
         "metadata": {"agentscope.state": "denied"}},
    ]));
    let call = |id: &str, name: &str, arguments: &str, input: Option<Value>| Call {
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
        input: input.and_then(|input| input.as_object().cloned()),
        suggested_rules: vec![],
    };
    let result = |call: &str, name: &str, output: &str, state| {
        let (call_id, name) = (call.into(), name.into());
        let output = vec![text(output)];
        let metadata = serde_json::Map::new();
        (Role::Tool, vec![Block::ToolResult { call_id, name, output, state, metadata }])
    };
    assert_eq!(inbound.notes, []);
    assert_eq!(
        contents(inbound),
        [
            (
                Role::Assistant,
                vec![
                    text("ok"),
                    Block::ToolUse {
                        call: call("c1", "f", "{\"a\": 1}", Some(json!({"a": 1}))),
                        encrypted: Some("e".into())
                    },
                    Block::ToolUse { call: call("c2", "g", "{broken", None), encrypted: None },
                    Block::ToolUse { call: call("c3", "h", "[1]", None), encrypted: None },
                ]
            ),
            result("c1", "f", "one", ResultState::Success),
            result("c2", "g", "no such file", ResultState::Error),
            result("c3", "h", "three", ResultState::Denied),
        ]
    );
}

#[test]
fn reasoning_is_thinking_of_the_assistant() {
    let inbound = convert(json!([
        {"id": "r1", "role": "reasoning", "content": "hm", "encryptedValue": "e"},
    ]));
    assert_eq!(
        contents(inbound),
        [(
            Role::Assistant,
            vec![Block::Thinking { thinking: "hm".into(), encrypted: Some("e".into()) }]
        )]
    );
}

#[test]
fn system_messages_need_to_be_accepted() {
    let input = input(json!([
        {"id": "s1", "role": "system", "content": "be nice"},
        {"id": "d1", "role": "developer", "content": "be brief"},
        {"id": "u1", "role": "user", "content": "hi"},
    ]));
    let dropped = to_msgs(&input, &InboundOptions::default());
    assert_eq!((ids(&dropped), dropped.dropped_system), (vec!["u1"], 2));
    let options =
        InboundOptions { accept_client_system_messages: true, ..InboundOptions::default() };
    let accepted = to_msgs(&input, &options);
    assert_eq!((ids(&accepted), accepted.dropped_system), (vec!["s1", "d1", "u1"], 0));
    assert_eq!(accepted.msgs[1].role, Role::System);
}

#[test]
fn messages_of_sub_agents_stay_out_of_the_agents_history() {
    let input = input(json!([
        {"id": "u1", "role": "user", "content": "hi"},
        {"id": "a1", "role": "assistant", "content": "child", "subagentRunId": "sub1"},
    ]));
    assert_eq!(ids(&to_msgs(&input, &InboundOptions::default())), ["u1"]);
    let options = InboundOptions { keep_subagent_messages: true, ..InboundOptions::default() };
    let kept = to_msgs(&input, &options);
    assert_eq!(ids(&kept), ["u1", "a1"]);
    assert_eq!(crate::kept::owner(&kept.msgs[1]), Some("sub1".into()));
}

#[test]
fn resume_wins_over_a_tool_message() {
    let input = input(json!([calling("a1", &["c1"]), answering("t1", "c1")]));
    let options =
        InboundOptions { answered_calls: ["c1".into()].into(), ..InboundOptions::default() };
    let inbound = to_msgs(&input, &options);
    assert_eq!(ids(&inbound), ["a1"]);
    assert_eq!(
        inbound.notes,
        [InboundNote::AnsweredByResume { message: "t1".into(), call: "c1".into() }]
    );
}

#[test]
fn answers_are_placed_behind_their_calls() {
    let inbound = convert(json!([
        answering("t1", "c1"),
        calling("a1", &["c1", "c2"]),
        said("u1"),
        answering("t2", "c2"),
        answering("t3", "c2"),
        answering("t4", "c9"),
        calling("a2", &["c3"]),
    ]));
    assert_eq!(ids(&inbound), ["a1", "t1", "t2", "u1", "a2"]);
    assert_eq!(
        inbound.notes,
        [
            InboundNote::ResultMoved { message: "t1".into(), call: "c1".into() },
            InboundNote::ResultMoved { message: "t2".into(), call: "c2".into() },
            InboundNote::DuplicateResult { message: "t3".into(), call: "c2".into() },
            InboundNote::OrphanResult { message: "t4".into(), call: "c9".into() },
            InboundNote::DanglingCall { message: "a2".into(), call: "c3".into() },
        ]
    );
}

#[test]
fn answers_to_calls_known_from_elsewhere_stay() {
    let input = input(json!([answering("t1", "c1"), said("u1"), answering("t2", "c1")]));
    let options = InboundOptions {
        known_calls: [("c1".into(), "lookup".to_owned())].into(),
        ..InboundOptions::default()
    };
    let inbound = to_msgs(&input, &options);
    assert_eq!(ids(&inbound), ["t1", "u1"]);
    assert_eq!(
        inbound.notes,
        [InboundNote::DuplicateResult { message: "t2".into(), call: "c1".into() }]
    );
    let Block::ToolResult { name, .. } = &inbound.msgs[0].content[0] else { panic!("a result") };
    assert_eq!(name, "lookup");
}

#[test]
fn parallel_calls_in_separate_messages_get_their_own_answers() {
    let inbound = convert(json!([
        calling("a1", &["c1"]),
        calling("a2", &["c2"]),
        answering("t1", "c1"),
        answering("t2", "c2"),
    ]));
    assert_eq!(ids(&inbound), ["a1", "t1", "a2", "t2"]);
}

#[test]
fn an_id_used_twice_is_answered_twice() {
    let inbound = convert(json!([
        calling("a1", &["c1"]),
        answering("t1", "c1"),
        calling("a2", &["c1"]),
        answering("t2", "c1"),
    ]));
    assert_eq!(ids(&inbound), ["a1", "t1", "a2", "t2"]);
    assert_eq!(inbound.notes, []);
}

#[test]
fn repair_answers_what_nobody_answered_but_leaves_the_pending() {
    let mut msgs = convert(json!([
        calling("a1", &["c1", "c2"]),
        answering("t2", "c2"),
        said("u1"),
        calling("a2", &["c3", "c4"]),
    ]))
    .msgs;
    let notes = repair(&mut msgs, &["c4".to_owned()].into());
    assert_eq!(
        notes,
        [
            InboundNote::DanglingCall { message: "a1".into(), call: "c1".into() },
            InboundNote::DanglingCall { message: "a2".into(), call: "c3".into() },
        ]
    );
    let ids: Vec<&str> = msgs.iter().map(|msg| msg.id.as_str()).collect();
    assert_eq!(ids, ["a1", "t2", "a1:c1:interrupted", "u1", "a2", "a2:c3:interrupted"]);
    assert_eq!(
        msgs[2].content,
        [Block::ToolResult {
            call_id: "c1".into(),
            name: "f".into(),
            output: vec![text(INTERRUPTED_RESULT)],
            state: ResultState::Interrupted,
            metadata: serde_json::Map::new(),
        }]
    );
    let before = msgs.clone();
    assert_eq!(repair(&mut msgs, &["c4".to_owned()].into()), []);
    assert_eq!(msgs, before);
}

#[test]
fn repair_sees_answers_inside_an_assistants_message() {
    let call = Call { id: "c1".into(), name: "f".into(), ..Call::default() };
    let result = Block::ToolResult {
        call_id: "c1".into(),
        name: "f".into(),
        output: vec![],
        state: ResultState::Success,
        metadata: serde_json::Map::new(),
    };
    let mut msgs = vec![Msg {
        id: "m1".into(),
        name: String::new(),
        role: Role::Assistant,
        content: vec![Block::ToolUse { call, encrypted: None }, result, text("done")],
        metadata: serde_json::Map::new(),
    }];
    let before = msgs.clone();
    assert_eq!(repair(&mut msgs, &HashSet::new()), []);
    assert_eq!(msgs, before);
}

#[test]
fn notes_speak_of_ids_only() {
    let (message, call) = (MessageId::from("m"), ToolCallId::from("c"));
    let notes = [
        InboundNote::FileSkipped { message: message.clone() },
        InboundNote::AnsweredByResume { message: message.clone(), call: call.clone() },
        InboundNote::DuplicateResult { message: message.clone(), call: call.clone() },
        InboundNote::OrphanResult { message: message.clone(), call: call.clone() },
        InboundNote::ResultMoved { message: message.clone(), call: call.clone() },
        InboundNote::DanglingCall { message, call },
    ];
    assert_eq!(
        notes.map(|note| note.to_string()),
        [
            "a file part of message m was skipped",
            "tool message m was dropped: resume answers call c",
            "tool message m was dropped: call c has an answer",
            "tool message m was dropped: nobody made call c",
            "tool message m was moved to its call c",
            "call c of message m has no answer",
        ]
    );
}

#[test]
fn an_agent_gets_a_history_that_models_accept() {
    let messages = input(json!([
        said("u1"),
        calling("a1", &["c1", "c2", "c3"]),
        answering("t2", "c2"),
        answering("t9", "c9"),
        said("u2"),
    ]));
    let options = InboundOptions {
        answered_calls: HashSet::from(["c3".into()]),
        ..InboundOptions::default()
    };
    let inbound = for_agent(&messages, &options);
    assert_eq!(ids(&inbound), ["u1", "a1", "t2", "a1:c1:interrupted", "u2"]);
    let orphan = InboundNote::OrphanResult { message: "t9".into(), call: "c9".into() };
    let dangling = InboundNote::DanglingCall { message: "a1".into(), call: "c1".into() };
    assert_eq!(inbound.notes, [orphan, dangling]);
    // An answer to a call that is known from elsewhere stays.
    let known_calls = HashMap::from([("c9".into(), "f".to_owned())]);
    let inbound = for_agent(&messages, &InboundOptions { known_calls, ..options });
    assert_eq!(ids(&inbound), ["u1", "a1", "t2", "t9", "a1:c1:interrupted", "u2"]);
}

#[test]
fn a_call_id_that_repeats_many_times_costs_no_more_than_others() {
    const MANY: usize = 20_000;
    let messages = (0..MANY).map(|at| calling(&format!("a{at}"), &["c"]));
    let answers = (0..2 * MANY).map(|at| answering(&format!("t{at}"), "c"));
    let began = std::time::Instant::now();
    let inbound = convert(messages.chain(answers).collect());
    assert_eq!(inbound.msgs.len(), 2 * MANY);
    // The second answers: each call has one.
    let duplicate = |note: &&InboundNote| matches!(note, InboundNote::DuplicateResult { .. });
    assert_eq!(inbound.notes.iter().filter(duplicate).count(), MANY);
    // Some hundred milliseconds; minutes if every answer looked at every call.
    assert!(began.elapsed() < std::time::Duration::from_secs(20));
}
