use agui_protocol::{PartSource, message::MediaPart};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::inbound::{InboundOptions, to_msgs};
use crate::model::msg::MediaKind;

fn msg(role: Role, content: Vec<Block>) -> Msg {
    Msg { id: "m1".into(), name: String::new(), role, content, metadata: Object::new() }
}

fn out(msg: &Msg, include_reasoning: bool) -> Vec<Value> {
    to_messages(msg, include_reasoning, &mut numbered_id)
        .iter()
        .map(|message| serde_json::to_value(message).unwrap())
        .collect()
}

fn text(text: &str) -> Block {
    Block::Text { text: text.into() }
}

fn call(id: &str, arguments: &str) -> Block {
    let call =
        Call { id: id.into(), name: "f".into(), arguments: arguments.into(), ..Call::default() };
    Block::ToolUse { call, encrypted: None }
}

fn result(id: &str, output: Vec<Block>, state: ResultState) -> Block {
    let metadata = Object::new();
    Block::ToolResult { call_id: id.into(), name: "f".into(), output, state, metadata }
}

fn png() -> Block {
    let source = MediaSource::Base64 { media_type: "image/png".into(), data: "AA==".into() };
    Block::Media { kind: MediaKind::Image, source, name: Some("a.png".into()), metadata: None }
}

#[test]
fn a_message_with_everything_becomes_several_in_order() {
    let thinking = Block::Thinking { thinking: "hm".into(), encrypted: Some("e".into()) };
    let all = msg(
        Role::Assistant,
        vec![
            Block::Hint { text: "for the model".into() },
            thinking,
            text("one"),
            text("two"),
            call("c1", "{\"a\":1}"),
            result("c1", vec![text("r"), png()], ResultState::Success),
            png(),
            text("done"),
        ],
    );
    let rest = |ids: [&str; 4]| {
        [
            json!({"role": "assistant", "id": ids[0], "content": "one\ntwo", "toolCalls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}},
            ]}),
            json!({"role": "tool", "id": ids[1], "toolCallId": "c1", "content": [
                {"type": "text", "text": "r"},
                {"type": "image", "source": {"type": "data", "value": "AA==", "mimeType": "image/png"},
                 "metadata": {"filename": "a.png"}},
            ]}),
            json!({"role": "activity", "id": ids[2], "activityType": "agentscope.media",
                "content": {"mediaType": "image/png", "name": "a.png", "data": "AA=="}}),
            json!({"role": "assistant", "id": ids[3], "content": "done"}),
        ]
    };
    assert_eq!(out(&all, false), rest(["m1", "m1-1", "m1-2", "m1-3"]));
    let reasoning =
        json!({"role": "reasoning", "id": "m1", "content": "hm", "encryptedValue": "e"});
    assert_eq!(
        out(&all, true),
        [vec![reasoning], rest(["m1-1", "m1-2", "m1-3", "m1-4"]).to_vec()].concat()
    );
}

#[test]
fn results_say_how_they_went() {
    let tool = |state| out(&msg(Role::Tool, vec![result("c1", vec![text("r")], state)]), false);
    let with = |state: &str| {
        json!({"role": "tool", "id": "m1", "toolCallId": "c1", "content": "r",
               "metadata": {"agentscope.state": state}})
    };
    assert_eq!(
        tool(ResultState::Success),
        [json!({"role": "tool", "id": "m1", "toolCallId": "c1", "content": "r"})]
    );
    assert_eq!(tool(ResultState::Denied), [with("denied")]);
    assert_eq!(tool(ResultState::Interrupted), [with("interrupted")]);
    let mut failed = with("error");
    failed["error"] = json!("r");
    assert_eq!(tool(ResultState::Error), [failed]);
    assert_eq!(tool(ResultState::Running), Vec::<Value>::new());
}

#[test]
fn several_results_of_one_message_become_several_messages() {
    let both = msg(
        Role::Tool,
        vec![
            result("c1", vec![], ResultState::Success),
            result("c2", vec![text("2")], ResultState::Success),
        ],
    );
    assert_eq!(
        out(&both, false),
        [
            json!({"role": "tool", "id": "m1", "toolCallId": "c1", "content": ""}),
            json!({"role": "tool", "id": "m1-1", "toolCallId": "c2", "content": "2"}),
        ]
    );
}

#[test]
fn media_of_the_assistant_name_a_type_as_they_do_when_they_stream() {
    let source = MediaSource::Url { media_type: None, url: "https://example.invalid/a".into() };
    let media = Block::Media { kind: MediaKind::Document, source, name: None, metadata: None };
    assert_eq!(
        out(&msg(Role::Assistant, vec![media]), false),
        [json!({"role": "activity", "id": "m1", "activityType": "agentscope.media", "content": {
            "mediaType": "application/octet-stream", "url": "https://example.invalid/a"}})]
    );
}

#[test]
fn media_of_a_person_are_parts_and_unknown_types_are_named() {
    let source = MediaSource::Base64 { media_type: String::new(), data: "AA==".into() };
    let media = Block::Media { kind: MediaKind::Document, source, name: None, metadata: None };
    assert_eq!(
        out(&msg(Role::User, vec![text("see"), media]), false),
        [json!({"role": "user", "id": "m1", "content": [
            {"type": "text", "text": "see"},
            {"type": "document", "source":
                {"type": "data", "value": "AA==", "mimeType": "application/octet-stream"}},
        ]})]
    );
}

#[test]
fn arguments_are_the_models_text() {
    let input = json!({"a": 1}).as_object().cloned();
    let parsed = Call { id: "c2".into(), name: "f".into(), input, ..Call::default() };
    let parsed = Block::ToolUse { call: parsed, encrypted: None };
    let messages = out(&msg(Role::Assistant, vec![call("c1", ""), parsed]), false);
    let arguments: Vec<&Value> = messages[0]["toolCalls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| &call["function"]["arguments"])
        .collect();
    assert_eq!(arguments, ["", "{\"a\":1}"]);
}

fn word() -> impl Strategy<Value = String> {
    "[a-zé\n\"]{0,6}"
}

fn optional_word() -> impl Strategy<Value = Option<String>> {
    proptest::option::of(word())
}

fn object() -> impl Strategy<Value = Option<Object>> {
    let entry = ("[a-c.]{1,3}", prop_oneof![Just(Value::Null), any::<i32>().prop_map(Value::from)]);
    proptest::option::of(
        proptest::collection::vec(entry, 0..3).prop_map(|entries| entries.into_iter().collect()),
    )
}

fn base() -> impl Strategy<Value = MessageBase> {
    (optional_word(), optional_word(), object(), proptest::option::of(0..4usize)).prop_map(
        |(encrypted_value, owner, metadata, state)| {
            let mut metadata = metadata;
            if let Some(state) = state {
                let state = ["success", "error", "interrupted", "denied"][state];
                metadata.get_or_insert_default().insert(STATE_KEY.into(), json!(state));
            }
            let subagent_run_id = owner.map(Into::into);
            MessageBase { encrypted_value, subagent_run_id, metadata }
        },
    )
}

fn source() -> impl Strategy<Value = PartSource> {
    prop_oneof![
        (word(), "[a-z]{1,5}/[a-z]{1,5}")
            .prop_map(|(value, mime_type)| PartSource::Data { value, mime_type }),
        (word(), optional_word())
            .prop_map(|(value, mime_type)| PartSource::Url { value, mime_type }),
        (word(), optional_word(), optional_word()).prop_map(|(value, provider, mime_type)| {
            PartSource::File { value, provider, mime_type }
        }),
    ]
}

fn part() -> impl Strategy<Value = ContentPart> {
    let metadata = || object().prop_map(|object| object.map(Value::Object));
    let media = (optional_word(), source(), metadata())
        .prop_map(|(id, source, metadata)| MediaPart { id, source, metadata });
    prop_oneof![
        (optional_word(), word(), metadata()).prop_map(|(id, text, metadata)| ContentPart::Text {
            id,
            text,
            metadata
        }),
        (media, 0..4u8).prop_map(|(media, kind)| match kind {
            0 => ContentPart::Image(media),
            1 => ContentPart::Audio(media),
            2 => ContentPart::Video(media),
            _ => ContentPart::Document(media),
        }),
    ]
}

fn content() -> impl Strategy<Value = Content> {
    prop_oneof![
        word().prop_map(Content::Text),
        proptest::collection::vec(part(), 0..4).prop_map(Content::Parts),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let id = || MessageId::from("m");
    let calls = proptest::collection::vec((word(), optional_word(), object()), 0..3);
    prop_oneof![
        (optional_word(), content(), base()).prop_map(move |(name, content, base)| Message::User {
            id: id(),
            name,
            content,
            base
        }),
        (optional_word(), optional_word(), calls, base()).prop_map(
            move |(name, content, calls, base)| {
                let calls = calls.into_iter().enumerate();
                let tool_calls = calls
                    .map(|(number, (arguments, encrypted_value, metadata))| ToolCall {
                        id: format!("c{number}").into(),
                        kind: ToolCallKind::Function,
                        function: FunctionCall { name: "f".into(), arguments },
                        encrypted_value,
                        metadata,
                    })
                    .collect();
                Message::Assistant { id: id(), name, content, tool_calls, base }
            }
        ),
        (content(), optional_word(), base()).prop_map(move |(content, error, base)| {
            Message::Tool { id: id(), tool_call_id: "known".into(), content, error, base }
        }),
        (optional_word(), word(), base()).prop_map(move |(name, content, base)| {
            Message::System { id: id(), name, content, base }
        }),
        (optional_word(), word(), base()).prop_map(move |(name, content, base)| {
            Message::Developer { id: id(), name, content, base }
        }),
        (word(), base()).prop_map(move |(content, base)| Message::Reasoning {
            id: id(),
            content,
            base
        }),
    ]
}

proptest! {
    #[test]
    fn a_clients_message_comes_back_as_it_was(message in message()) {
        let options = InboundOptions {
            accept_client_system_messages: true,
            keep_subagent_messages: true,
            known_calls: [("known".into(), "f".to_owned())].into(),
            ..InboundOptions::default()
        };
        let msgs = to_msgs(std::slice::from_ref(&message), &options).msgs;
        prop_assert_eq!(history(&msgs, true, &mut numbered_id), vec![message]);
    }
}
