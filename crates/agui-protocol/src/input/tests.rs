//! The parser of run inputs, rule by rule.

use serde_json::{Value, json};

use super::*;
use crate::{Content, ContentPart, PartSource};

fn base() -> Value {
    json!({"threadId": "t", "runId": "r", "messages": []})
}

fn with(key: &str, value: Value) -> Value {
    let mut input = base();
    input[key] = value;
    input
}

fn with_message(message: Value) -> Value {
    with("messages", json!([message]))
}

fn parse(value: Value) -> Parsed {
    RunAgentInput::from_value(value).unwrap()
}

fn invalid(value: Value) -> (String, String) {
    match RunAgentInput::from_value(value).unwrap_err() {
        InputError::Invalid { pointer, message } => (pointer, message),
        other => panic!("not Invalid: {other:?}"),
    }
}

#[test]
fn refused_inputs_name_the_place_and_what_would_be_right() {
    let part = |part: Value| with_message(json!({"id": "m", "role": "user", "content": [part]}));
    let call =
        |call: Value| with_message(json!({"id": "m", "role": "assistant", "toolCalls": [call]}));
    let cases = [
        (json!([1]), "", "expected an object, found a list"),
        (json!({"runId": "r", "messages": []}), "/threadId", "missing; expected a string"),
        (with("threadId", json!(7)), "/threadId", "expected a string, found a number"),
        (with("runId", json!(null)), "/runId", "expected a string, found null"),
        (with("messages", json!({})), "/messages", "expected a list, found an object"),
        (
            json!({"threadId": "t", "runId": "r"}),
            "/messages",
            "missing; expected a list of messages",
        ),
        (
            with("protocolVersion", json!(1.0)),
            "/protocolVersion",
            "expected a string, found a number",
        ),
        (with("parentRunId", json!(null)), "/parentRunId", "expected a string, found null"),
        (with("tools", json!(null)), "/tools", "expected a list, found null"),
        (
            with("tools", json!([{"name": "a"}])),
            "/tools/0/description",
            "missing; expected a string",
        ),
        (
            with("tools", json!([{"name": "a", "description": "", "metadata": null}])),
            "/tools/0/metadata",
            "expected an object, found null",
        ),
        (
            with("context", json!([{"description": "d", "value": {}}])),
            "/context/0/value",
            "expected a string, found an object",
        ),
        (
            with("resume", json!([{"interruptId": "i", "status": "maybe"}])),
            "/resume/0/status",
            "expected \"resolved\" or \"cancelled\", found another string",
        ),
        (
            with("resume", json!([{"status": "resolved"}])),
            "/resume/0/interruptId",
            "missing; expected a string",
        ),
        (with_message(json!("hi")), "/messages/0", "expected an object, found a string"),
        (
            with_message(json!({"id": "m", "content": ""})),
            "/messages/0/role",
            "missing; expected a string",
        ),
        (
            with_message(json!({"role": "user", "content": ""})),
            "/messages/0/id",
            "missing; expected a string",
        ),
        (
            with_message(json!({"id": "m", "role": "user", "content": null})),
            "/messages/0/content",
            "expected a string or a list of content parts, found null",
        ),
        (
            with_message(json!({"id": "m", "role": "assistant", "content": null})),
            "/messages/0/content",
            "expected a string, found null",
        ),
        (
            with_message(json!({"id": "m", "role": "assistant", "content": []})),
            "/messages/0/content",
            "expected a string, found a list",
        ),
        (
            with_message(json!({"id": "m", "role": "tool", "content": ""})),
            "/messages/0/toolCallId",
            "missing; expected a string",
        ),
        (
            with_message(json!({"id": "m", "role": "user", "content": "", "subagentRunId": null})),
            "/messages/0/subagentRunId",
            "expected a string, found null",
        ),
        (
            with_message(
                json!({"id": "m", "role": "activity", "activityType": "P", "content": "x"}),
            ),
            "/messages/0/content",
            "expected an object, found a string",
        ),
        (part(json!({"type": "text"})), "/messages/0/content/0/text", "missing; expected a string"),
        (
            part(json!({"type": "text", "text": "", "metadata": null})),
            "/messages/0/content/0/metadata",
            "expected any JSON but null, found null",
        ),
        (
            part(json!({"type": "image"})),
            "/messages/0/content/0/source",
            "missing; expected an object with the part's source",
        ),
        (
            part(json!({"type": "image", "source": {"type": "data", "value": ""}})),
            "/messages/0/content/0/source/mimeType",
            "missing; expected a string",
        ),
        (
            call(json!({"id": "c", "function": {"name": "f", "arguments": "{}"}})),
            "/messages/0/toolCalls/0/type",
            "missing; expected a string",
        ),
        (
            call(json!({"id": "c", "type": "f", "function": {"name": "f", "arguments": "{}"}})),
            "/messages/0/toolCalls/0/type",
            "expected \"function\", found another string",
        ),
        (
            call(
                json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": {}}}),
            ),
            "/messages/0/toolCalls/0/function/arguments",
            "expected a string, found an object",
        ),
    ];
    for (input, pointer, message) in cases {
        assert_eq!(invalid(input.clone()), (pointer.to_owned(), message.to_owned()), "{input}");
    }
}

#[test]
fn bodies_that_are_no_json_say_where() {
    let deep = "[".repeat(200);
    let cases: [(&[u8], &str); 5] = [
        (b"", "the body is not JSON: EOF while parsing a value at line 1 column 0"),
        (b"{\"a\":\n secret}", "the body is not JSON: expected value at line 2 column 2"),
        (
            b"{\"a\":\"\\ud800\"}",
            "the body is not JSON: unexpected end of hex escape at line 1 column 13",
        ),
        (
            b"{\"a\":\"\xff\"}",
            "the body is not JSON: invalid unicode code point at line 1 column 7",
        ),
        (deep.as_bytes(), "the body is not JSON: recursion limit exceeded at line 1 column 128"),
    ];
    for (body, message) in cases {
        assert_eq!(RunAgentInput::from_slice(body).unwrap_err().to_string(), message);
    }
}

#[test]
fn unknown_members_and_union_members_are_dropped_with_a_warning() {
    let parsed = parse(json!({
        "threadId": "t", "runId": "r", "a/b~": 1,
        "tools": [{"name": "n", "description": "d", "strict": true}],
        "messages": [
            {"id": "1", "role": "narrator", "content": 7},
            {"id": "2", "role": "user", "content": [
                {"type": "hologram"},
                {"type": "image", "source": {"type": "s3", "value": "x"}},
                {"type": "text", "text": "kept", "lang": "en"},
            ]},
            {"id": "3", "role": "reasoning", "content": "", "encryptedValue": "e",
             "encryptedValueType": "x.y"},
            {"id": "4", "role": "activity", "activityType": "P", "content": {}, "encryptedValue": 1},
        ],
    }));
    let warnings: Vec<String> = parsed.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "/messages/0: message with an unknown role, ignored",
            "/messages/1/content/0: content part of an unknown type, ignored",
            "/messages/1/content/1: content part with a source of an unknown type, ignored",
            "/messages/1/content/2/lang: unknown member, ignored",
            "/messages/2/encryptedValueType: unknown member, ignored",
            "/messages/3/encryptedValue: unknown member, ignored",
            "/tools/0/strict: unknown member, ignored",
            "/a~1b~0: unknown member, ignored",
        ]
    );
    assert_eq!(parsed.input.messages.len(), 3);
    let Message::User { content, .. } = &parsed.input.messages[0] else { panic!() };
    assert_eq!(*content, Content::Parts(vec![ContentPart::plain("kept")]));
    assert_eq!(parsed.input.messages[1].base().encrypted_value.as_deref(), Some("e"));
}

#[test]
fn a_flood_of_unknown_members_gives_a_bounded_list() {
    let mut input = base();
    for n in 0..1000 {
        input[format!("{n}{}", "k".repeat(100))] = json!(n);
    }
    let warnings = parse(input).warnings;
    assert_eq!(warnings.len(), MAX_WARNINGS);
    assert_eq!(warnings[0].pointer, format!("/0{}…", "k".repeat(63)));
}

#[test]
fn nulls_of_older_clients_read_as_absent() {
    let parsed = parse(json!({
        "threadId": "", "runId": "", "protocolVersion": null, "state": null,
        "forwardedProps": null,
        "messages": [{"id": "m", "role": "tool", "toolCallId": "c", "content": [
            {"type": "audio", "source": {"type": "file", "value": "h"}, "metadata": null},
        ]}],
        "tools": [{"name": "n", "description": "d", "parameters": null}],
        "resume": [{"interruptId": "i", "status": "cancelled", "payload": null}],
    }));
    assert_eq!(parsed.warnings, []);
    assert_eq!(
        serde_json::to_value(&parsed.input).unwrap(),
        json!({
            "threadId": "", "runId": "",
            "messages": [{"role": "tool", "id": "m", "toolCallId": "c", "content": [
                {"type": "audio", "source": {"type": "file", "value": "h"}},
            ]}],
            "tools": [{"name": "n", "description": "d"}],
            "context": [],
            "resume": [{"interruptId": "i", "status": "cancelled"}],
        })
    );
}

#[test]
fn open_payloads_are_kept_as_they_are() {
    let body = br#"{"threadId":"t","runId":"r","messages":[],"state":[18446744073709551615,null],
        "forwardedProps":{"b":null,"a":-9223372036854775808},"threadId":"last",
        "tools":[{"name":"n","description":"d","parameters":true}]}"#;
    let input = RunAgentInput::from_slice(body).unwrap().input;
    assert_eq!(input.thread_id.as_str(), "last");
    assert_eq!(input.state.as_deref(), Some(&json!([u64::MAX, null])));
    assert_eq!(input.forwarded_props, Some(json!({"b": null, "a": i64::MIN})));
    assert_eq!(input.tools[0].parameters, Some(json!(true)));
}

#[test]
fn every_kind_of_message_is_read_whole() {
    let messages = json!([
        {"role": "user", "id": "1", "name": "n", "content": [
            {"type": "text", "id": "p", "text": "x", "metadata": [null]},
            {"type": "image", "source": {"type": "data", "value": "QQ==", "mimeType": "image/png"}},
            {"type": "video", "source": {"type": "url", "value": "u", "mimeType": "video/mp4"}},
            {"type": "document", "id": "d", "source": {"type": "file", "value": "h",
             "provider": "p", "mimeType": "m"}, "metadata": {"title": null}},
        ], "encryptedValue": "e", "subagentRunId": "s", "metadata": {"k": null}},
        {"role": "assistant", "id": "2", "name": "n", "content": "", "toolCalls": [
            {"id": "c", "type": "function", "function": {"name": "f", "arguments": "not json"},
             "encryptedValue": "e", "metadata": {}},
        ]},
        {"role": "tool", "id": "3", "toolCallId": "c", "content": "", "error": "failed"},
        {"role": "system", "id": "4", "name": "n", "content": "s"},
        {"role": "developer", "id": "5", "content": "d"},
        {"role": "reasoning", "id": "6", "content": "r", "encryptedValue": "e"},
        {"role": "activity", "id": "7", "activityType": "PLAN", "content": {"a": 1}},
    ]);
    let parsed = parse(with("messages", messages.clone()));
    assert_eq!(parsed.warnings, []);
    assert_eq!(serde_json::to_value(&parsed.input.messages).unwrap(), messages);
    let Message::User { content: Content::Parts(parts), .. } = &parsed.input.messages[0] else {
        panic!()
    };
    assert_eq!(
        parts[1].media().unwrap().source,
        PartSource::Data { value: "QQ==".to_owned(), mime_type: "image/png".to_owned() }
    );
}
