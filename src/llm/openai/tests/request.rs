//! Requests, compared whole.

use agui_adapter::model::{
    Block, Msg, Role,
    event::{Call, Object, ResultState},
    msg::{MediaKind, MediaSource},
};

use super::*;
use crate::llm::openai::reasoning::seal;

fn said(text: &str) -> Block {
    Block::Text { text: text.to_owned() }
}

fn msg(role: Role, content: Vec<Block>) -> Arc<Msg> {
    let (id, name, metadata) = (String::new(), String::new(), Object::new());
    Arc::new(Msg { id, name, role, content, metadata })
}

fn user(text: &str) -> Arc<Msg> {
    msg(Role::User, vec![said(text)])
}

fn thought(thinking: &str, encrypted: Option<&str>) -> Block {
    Block::Thinking { thinking: thinking.to_owned(), encrypted: encrypted.map(str::to_owned) }
}

fn call(id: &str, name: &str, arguments: &str, encrypted: Option<String>) -> Block {
    let call = Call {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        input: None,
        suggested_rules: Vec::new(),
    };
    Block::ToolUse { call, encrypted }
}

fn result(id: &str, output: Vec<Block>) -> Block {
    Block::ToolResult {
        call_id: id.to_owned(),
        name: "f".to_owned(),
        output,
        state: ResultState::Success,
        metadata: Object::new(),
    }
}

fn media(kind: MediaKind, source: MediaSource, name: Option<&str>) -> Block {
    Block::Media { kind, source, name: name.map(str::to_owned), metadata: None }
}

fn data(media_type: &str, data: &str) -> MediaSource {
    MediaSource::Base64 { media_type: media_type.to_owned(), data: data.to_owned() }
}

fn url(url: &str) -> MediaSource {
    MediaSource::Url { media_type: None, url: url.to_owned() }
}

fn body(config: &ModelConfig, request: ModelRequest) -> Value {
    serde_json::from_slice(&OpenAi::new(config).request(&request).body).unwrap()
}

/// The messages that a conversation becomes.
fn told(messages: Vec<Arc<Msg>>) -> Value {
    let request = ModelRequest { messages, ..ModelRequest::default() };
    body(&config(), request)["messages"].take()
}

#[test]
fn a_request_is_what_the_provider_wants() {
    let schema = json!({"type": "object", "properties": {"q": {"type": "string"}}});
    let request = ModelRequest {
        system: "Be kind.".to_owned(),
        messages: vec![user("Hi")],
        tools: vec![spec("search", schema.clone()), spec("docs.search", json!({}))].into(),
        ..ModelRequest::default()
    };
    let wire = OpenAi::new(&config());
    let told = wire.request(&request);
    assert_eq!(told.path, "/chat/completions");
    let key = &told.headers[AUTHORIZATION];
    assert_eq!((key.as_bytes(), key.is_sensitive()), (&b"Bearer sk-test"[..], true));
    let function = |name: &str, parameters: Value| {
        json!({"type": "function",
        "function": {"name": name, "description": "Finds.", "parameters": parameters}})
    };
    let expected = json!({
        "model": "qwen-plus",
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "Hi"},
        ],
        "tools": [
            function("search", schema),
            function("docs_search_a7e557a3", json!({"type": "object", "properties": {}})),
        ],
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    assert_eq!(serde_json::from_slice::<Value>(&told.body).unwrap(), expected);
}

#[test]
fn without_a_key_there_is_no_authorization() {
    let config = ModelConfig { api_key: None, ..config() };
    assert!(OpenAi::new(&config).request(&ModelRequest::default()).headers.is_empty());
}

#[test]
fn tools_that_may_not_be_called_are_still_told_of() {
    let request = ModelRequest {
        tools: vec![spec("f", json!({}))].into(),
        tool_choice: ToolChoice::None,
        ..ModelRequest::default()
    };
    let told = body(&config(), request);
    assert_eq!(told["tool_choice"], "none");
    assert_eq!(told["tools"].as_array().map(Vec::len), Some(1));
    let none = ModelRequest { tool_choice: ToolChoice::None, ..ModelRequest::default() };
    assert_eq!(body(&config(), none).get("tool_choice"), None);
}

#[test]
fn parameters_go_over_our_own_members() {
    let with = |parameters: Value| {
        let parameters = parameters.as_object().cloned().unwrap();
        let tools = vec![spec("f", json!({}))].into();
        body(
            &ModelConfig { parameters, ..config() },
            ModelRequest { tools, ..ModelRequest::default() },
        )
    };
    let told = with(json!({"temperature": 0.1, "stream_options": null, "model": "other",
        "tools": [{"type": "web_search"}]}));
    assert_eq!(told["temperature"], 0.1);
    assert_eq!(told["model"], "other");
    assert_eq!(told.get("stream_options"), None);
    assert_eq!(told["tools"][1], json!({"type": "web_search"}));
    let whole = with(json!({"stream": false}));
    assert_eq!((&whole["stream"], whole.get("stream_options")), (&json!(false), None));
    let replaced = with(json!({"stream_options": {"x": 1}}));
    assert_eq!(replaced["stream_options"], json!({"x": 1}));
}

#[test]
fn instructions_at_the_beginning_are_one_message() {
    let request = ModelRequest {
        system: "One.".to_owned(),
        messages: vec![
            msg(Role::System, vec![said("Two.")]),
            user("Hi"),
            msg(Role::System, vec![said("Three.")]),
        ],
        ..ModelRequest::default()
    };
    let expected = json!([
        {"role": "system", "content": "One.\n\nTwo."},
        {"role": "user", "content": "Hi"},
        {"role": "system", "content": "Three."},
    ]);
    assert_eq!(body(&config(), request)["messages"], expected);
}

#[test]
fn parts_of_a_user_keep_their_order_and_their_form() {
    let content = vec![
        said("what is this"),
        media(MediaKind::Image, data("image/jpeg", "/9j/"), None),
        media(MediaKind::Image, url("http://127.0.0.1:9/x.png"), None),
        media(MediaKind::Audio, data("audio/mpeg", "SUQz"), None),
        media(MediaKind::Audio, url("https://example.invalid/a.ogg"), Some("a.ogg")),
        media(MediaKind::Video, url("https://example.invalid/v.mp4"), None),
        media(MediaKind::Document, data("application/pdf", "JVBERi0="), Some("a.pdf")),
        Block::Hint { text: "Be brief.".to_owned() },
    ];
    let image = |url: &str| json!({"type": "image_url", "image_url": {"url": url}});
    let text = |text: &str| json!({"type": "text", "text": text});
    let expected = json!([{"role": "user", "content": [
        text("what is this"),
        image("data:image/jpeg;base64,/9j/"),
        image("http://127.0.0.1:9/x.png"),
        {"type": "input_audio", "input_audio": {"data": "SUQz", "format": "mp3"}},
        text("[audio a.ogg: https://example.invalid/a.ogg]"),
        {"type": "video_url", "video_url": {"url": "https://example.invalid/v.mp4"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}},
        text("Be brief."),
    ]}]);
    assert_eq!(told(vec![msg(Role::User, content)]), expected);
    let texts = vec![said("a"), said("b")];
    assert_eq!(told(vec![msg(Role::User, texts)]), json!([{"role": "user", "content": "a\nb"}]));
}

#[test]
fn a_model_without_eyes_gets_no_pictures() {
    let picture = || media(MediaKind::Image, data("image/png", "iVBO"), None);
    let request = ModelRequest {
        messages: vec![
            msg(Role::User, vec![said("Look:"), picture()]),
            msg(Role::Assistant, vec![call("a", "f", "", None)]),
            msg(Role::Tool, vec![result("a", vec![picture()])]),
        ],
        ..ModelRequest::default()
    };
    let told = body(&ModelConfig { vision: false, ..config() }, request);
    let call = json!({"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let expected = json!([
        {"role": "user", "content": "Look:\n[image left out]"},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "[image left out]"},
    ]);
    assert_eq!(told["messages"], expected);
}

#[test]
fn calls_keep_their_text_and_results_follow() {
    let arguments = "{ \"q\" : 1.0 }";
    let messages = vec![
        user("Hi"),
        msg(
            Role::Assistant,
            vec![
                said("I look."),
                call("a", "docs.search", arguments, None),
                call("b", "f", "", None),
            ],
        ),
        msg(Role::Tool, vec![result("a", vec![said("one"), said("two")])]),
        msg(Role::Tool, vec![result("b", vec![])]),
        msg(Role::Assistant, vec![said("Done.")]),
    ];
    let function = |id: &str, name: &str, arguments: &str| {
        json!({"id": id, "type": "function",
        "function": {"name": name, "arguments": arguments}})
    };
    let expected = json!([
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "I look.", "tool_calls": [
            function("a", "docs_search_a7e557a3", arguments), function("b", "f", "{}"),
        ]},
        {"role": "tool", "tool_call_id": "a", "content": "one\ntwo"},
        {"role": "tool", "tool_call_id": "b", "content": ""},
        {"role": "assistant", "content": "Done."},
    ]);
    assert_eq!(told(messages), expected);
}

#[test]
fn arguments_that_are_no_object_do_not_lock_the_conversation() {
    for text in ["{\"x", "not json", "[1]", "{} {}", "\"{}\"", "null"] {
        let told = told(vec![msg(Role::Assistant, vec![call("a", "f", text, None)])]);
        assert_eq!(told[0]["tool_calls"][0]["function"]["arguments"], "{}", "{text}");
    }
    let call = Call {
        id: "a".to_owned(),
        name: "f".to_owned(),
        input: Some(Object::from_iter([("x".to_owned(), json!(1))])),
        ..Call::default()
    };
    let block = Block::ToolUse { call, encrypted: None };
    let told = told(vec![msg(Role::Assistant, vec![block])]);
    assert_eq!(told[0]["tool_calls"][0]["function"]["arguments"], "{\"x\":1}");
}

#[test]
fn what_only_a_user_may_show_follows_the_results() {
    let picture = media(MediaKind::Image, data("image/png", "iVBO"), None);
    let hint = Block::Hint { text: "Hurry.".to_owned() };
    let messages = vec![
        msg(Role::Assistant, vec![hint, call("a", "f", "{}", None), call("b", "f", "{}", None)]),
        msg(Role::Tool, vec![result("a", vec![picture])]),
        msg(Role::Tool, vec![result("b", vec![said("ok")])]),
        msg(Role::Assistant, vec![said("Nice.")]),
    ];
    let function = |id: &str| {
        json!({"id": id, "type": "function",
        "function": {"name": "f", "arguments": "{}"}})
    };
    let expected = json!([
        {"role": "user", "content": "Hurry."},
        {"role": "assistant", "content": null, "tool_calls": [function("a"), function("b")]},
        {"role": "tool", "tool_call_id": "a", "content": "[The result is shown in the next message.]"},
        {"role": "tool", "tool_call_id": "b", "content": "ok"},
        {"role": "user", "content": [
            {"type": "text", "text": "[Result of f:]"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}},
        ]},
        {"role": "assistant", "content": "Nice."},
    ]);
    assert_eq!(told(messages), expected);
}

#[test]
fn one_message_may_hold_calls_and_results_in_turn() {
    let content = vec![
        call("a", "f", "{}", None),
        result("a", vec![said("1")]),
        said("And now"),
        call("b", "f", "{}", None),
        result("b", vec![said("2")]),
        said("Done."),
    ];
    let function = |id: &str| {
        json!({"id": id, "type": "function",
        "function": {"name": "f", "arguments": "{}"}})
    };
    let expected = json!([
        {"role": "assistant", "content": null, "tool_calls": [function("a")]},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "assistant", "content": "And now", "tool_calls": [function("b")]},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
        {"role": "assistant", "content": "Done."},
    ]);
    assert_eq!(told(vec![msg(Role::Assistant, content)]), expected);
}

#[test]
fn thinking_goes_back_within_a_turn_that_calls_tools() {
    let round = |thinking: Block| {
        vec![
            msg(Role::Assistant, vec![thinking, call("a", "f", "{}", None)]),
            msg(Role::Tool, vec![result("a", vec![said("1")])]),
        ]
    };
    let assistant = |extra: Option<(&str, Value)>| {
        let mut told = json!({"role": "assistant", "content": null});
        if let Some((name, value)) = extra {
            told[name] = value;
        }
        told["tool_calls"] = json!([{"id": "a", "type": "function",
            "function": {"name": "f", "arguments": "{}"}}]);
        told
    };
    let within = |thinking: Block| {
        let messages = [vec![user("Hi")], round(thinking)].concat();
        told(messages)[1].take()
    };
    let plain = || thought("Hm", None);
    assert_eq!(within(plain()), assistant(Some(("reasoning_content", json!("Hm")))));
    assert_eq!(within(thought("Hm", Some("anthropic.signature:x"))), assistant(None));
    let before = [vec![user("Hi")], round(plain()), vec![user("Go on")]].concat();
    assert_eq!(told(before)[1], assistant(None));
    let said_only = vec![user("Hi"), msg(Role::Assistant, vec![plain(), said("Yes")])];
    assert_eq!(told(said_only)[1], json!({"role": "assistant", "content": "Yes"}));
    let thought_only = vec![user("Hi"), msg(Role::Assistant, vec![plain()])];
    assert_eq!(told(thought_only), json!([{"role": "user", "content": "Hi"}]));
}

#[test]
fn thinking_goes_back_in_the_field_in_which_it_came() {
    let wire = OpenAi::new(&config());
    wire.reasoning.seen_short();
    let messages =
        vec![msg(Role::Assistant, vec![thought("Hm", None), call("a", "f", "{}", None)])];
    let told = wire.body(&ModelRequest { messages, ..ModelRequest::default() });
    assert_eq!(told["messages"][0]["reasoning"], "Hm");
    assert_eq!(told["messages"][0].get("reasoning_content"), None);
}

#[test]
fn artefacts_of_this_wire_go_back_as_they_came() {
    let details = json!([{"type": "reasoning.encrypted", "data": "AA=="}]);
    let extra = json!({"google": {"thought_signature": "c2ln"}});
    let sealed = seal("reasoning_details", &details);
    let messages = vec![
        msg(
            Role::Assistant,
            vec![
                thought("Hm", Some(&sealed)),
                said("So"),
                thought("", Some(&sealed)),
                call("a", "f", "{}", Some(seal("extra_content", &extra))),
            ],
        ),
        user("Go on"),
    ];
    let expected = json!({
        "role": "assistant", "content": "So",
        "reasoning_details": [details[0], details[0]],
        "tool_calls": [{"id": "a", "type": "function",
            "function": {"name": "f", "arguments": "{}"}, "extra_content": extra}],
    });
    assert_eq!(told(messages)[0], expected);
    let forged = vec![msg(
        Role::Assistant,
        vec![
            thought("Hm", Some("openai.reasoning_details:{not json")),
            call("a", "f", "{}", Some("openai.extra_content:nonsense".to_owned())),
        ],
    )];
    let call = json!({"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let expected = json!([{"role": "assistant", "content": null, "tool_calls": [call]}]);
    assert_eq!(told(forged), expected);
}
