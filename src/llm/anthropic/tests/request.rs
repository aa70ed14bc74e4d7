use std::sync::Arc;

use agui_adapter::model::{
    Block, Msg, Role,
    event::ResultState,
    msg::MediaKind::{Audio, Document, Image},
};

use super::*;
use crate::llm::{FunctionSpec, ToolChoice};

const PNG: &str = "iVBORw0KGgoAAAANSUhEUg==";

fn request(messages: impl Into<Vec<Arc<Msg>>>) -> ModelRequest {
    ModelRequest { messages: messages.into(), ..ModelRequest::default() }
}

fn body(wire: &Anthropic, request: &ModelRequest) -> Value {
    serde_json::from_slice(&wire.request(request).body).unwrap()
}

fn messages(parameters: Value, messages: impl Into<Vec<Arc<Msg>>>) -> Value {
    body(&wire(parameters), &request(messages))["messages"].take()
}

fn weather() -> FunctionSpec {
    let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    function("get_weather", "Looks out of the window.", parameters)
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

#[test]
fn a_request_has_path_headers_and_what_the_api_requires() {
    let request = ModelRequest { system: "You help.".to_owned(), ..request([user("Hi")]) };
    let sent = wire(Value::Null).request(&request);
    assert_eq!(sent.path, "/messages");
    let mut headers: Vec<(&str, &str, bool)> = sent
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap(), value.is_sensitive()))
        .collect();
    headers.sort_unstable();
    assert_eq!(
        headers,
        [("anthropic-version", "2023-06-01", false), ("x-api-key", "sk-key", true)]
    );
    let body = String::from_utf8(sent.body).unwrap();
    assert_eq!(
        body,
        r#"{"model":"claude-sonnet-4-5","max_tokens":4096,"stream":true,"system":"You help.","messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}]}"#
    );
}

#[test]
fn without_a_key_no_key_is_sent() {
    let wire = Anthropic::new(&ModelConfig::default());
    assert!(!wire.request(&request([])).headers.contains_key("x-api-key"));
}

#[test]
fn tools_have_names_and_schemas_as_the_api_takes_them() {
    let combined = json!({"anyOf": [{"required": ["a"]}], "properties": {"a": {"type": "string"}}});
    let request = ModelRequest {
        tools: Arc::from([weather(), function("docs.search", "", combined)]),
        ..request([user("Hi")])
    };
    let body = body(&wire(Value::Null), &request);
    assert_eq!(
        body["tools"],
        json!([
            {
                "name": "get_weather",
                "description": "Looks out of the window.",
                "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
            },
            {
                "name": "docs_search_a7e557a3",
                "input_schema": {"type": "object", "properties": {"a": {"type": "string"}}},
            },
        ])
    );
    assert_eq!(body.get("tool_choice"), None);
}

#[test]
fn a_call_without_tools_keeps_the_tools_and_forbids_their_use() {
    let request = ModelRequest {
        tools: Arc::from([weather()]),
        tool_choice: ToolChoice::None,
        ..request([user("Hi")])
    };
    let body = body(&wire(json!({"tool_choice": {"type": "any"}})), &request);
    assert_eq!(body["tools"].as_array().unwrap().len(), 1);
    assert_eq!(body["tool_choice"], json!({"type": "none"}));
    let none = ModelRequest { tools: Arc::from([]), ..request };
    assert_eq!(self::body(&wire(Value::Null), &none).get("tool_choice"), None);
}

#[test]
fn calls_of_tools_that_are_gone_keep_their_names_declared() {
    let history = [
        user("Go"),
        assistant([call("1", "docs.search", ""), call("2", "f", ""), call("3", "f", "")]),
        tool("1", "x", ResultState::Success),
        tool("2", "x", ResultState::Success),
        tool("3", "x", ResultState::Success),
    ];
    let sent = body(&wire(Value::Null), &request(history.clone()));
    let gone = json!([
        {"name": "docs_search_a7e557a3", "input_schema": {"type": "object"}},
        {"name": "f", "input_schema": {"type": "object"}},
    ]);
    assert_eq!((&sent["tools"], &sent["tool_choice"]), (&gone, &json!({"type": "none"})));
    let parameters = json!({"tools": [{"type": "web_search_20250305", "name": "web_search"}]});
    let sent = body(&wire(parameters), &request(history));
    assert_eq!(sent["tools"].as_array().unwrap().len(), 3);
    assert_eq!(sent.get("tool_choice"), None);
}

#[test]
fn parameters_go_over_our_own_members_and_a_null_takes_one_out() {
    let parameters = json!({
        "max_tokens": 100,
        "stream": null,
        "temperature": 0.5,
        "cache_control": {"type": "ephemeral"},
        "tools": [{"type": "web_search_20250305", "name": "web_search"}],
    });
    let request = ModelRequest { tools: Arc::from([weather()]), ..request([user("Hi")]) };
    assert_eq!(
        body(&wire(parameters), &request),
        json!({
            "model": "claude-sonnet-4-5",
            "max_tokens": 100,
            "messages": [{"role": "user", "content": [text("Hi")]}],
            "tools": [
                {
                    "name": "get_weather",
                    "description": "Looks out of the window.",
                    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
                },
                {"type": "web_search_20250305", "name": "web_search"},
            ],
            "temperature": 0.5,
            "cache_control": {"type": "ephemeral"},
        })
    );
}

#[test]
fn an_answer_has_room_beside_its_thinking() {
    let room = |parameters| body(&wire(parameters), &request([user("Hi")]))["max_tokens"].take();
    let budget = json!({"type": "enabled", "budget_tokens": 10_000});
    assert_eq!(room(json!({"thinking": budget})), 14_096);
    assert_eq!(room(json!({"thinking": budget, "max_tokens": 12_000})), 12_000);
    assert_eq!(room(json!({"thinking": {"type": "adaptive"}})), 20_480);
    assert_eq!(room(json!({"thinking": {"type": "disabled"}})), 4096);
}

#[test]
fn a_round_of_tools_is_a_message_of_calls_and_one_of_results() {
    let history = [
        user("Weather in Oslo and Rome?"),
        assistant([said("I look."), call("a", "get_weather", r#"{"city":"Oslo"}"#)]),
        assistant([call("b", "docs.search", "")]),
        tool("a", "rain", ResultState::Success),
        tool("b", "no such page", ResultState::Error),
        user("And now?"),
    ];
    assert_eq!(
        messages(Value::Null, history),
        json!([
            {"role": "user", "content": [text("Weather in Oslo and Rome?")]},
            {"role": "assistant", "content": [
                text("I look."),
                {"type": "tool_use", "id": "a", "name": "get_weather", "input": {"city": "Oslo"}},
                {"type": "tool_use", "id": "b", "name": "docs_search_a7e557a3", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": [text("rain")]},
                {"type": "tool_result", "tool_use_id": "b", "content": [text("no such page")],
                 "is_error": true},
                text("And now?"),
            ]},
        ])
    );
}

#[test]
fn results_say_how_they_went_and_keep_their_media() {
    let history = [
        user("Go"),
        assistant(["1", "2", "3", "4", "5"].map(|id| call(id, "f", "{}"))),
        msg(
            Role::Tool,
            [
                result("1", [], ResultState::Success),
                result("2", [], ResultState::Error),
                result("3", [said(" ")], ResultState::Denied),
                result("4", [], ResultState::Interrupted),
                result(
                    "5",
                    [
                        said("seen"),
                        inline(Image, "image/jpeg", PNG),
                        inline(Audio, "audio/wav", "AA=="),
                    ],
                    ResultState::Success,
                ),
            ],
        ),
    ];
    let sent = messages(Value::Null, history);
    assert_eq!(
        sent[2]["content"],
        json!([
            {"type": "tool_result", "tool_use_id": "1"},
            {"type": "tool_result", "tool_use_id": "2", "content": [text("The call failed.")],
             "is_error": true},
            {"type": "tool_result", "tool_use_id": "3", "content": [text("The call was denied.")],
             "is_error": true},
            {"type": "tool_result", "tool_use_id": "4",
             "content": [text("The call was interrupted.")], "is_error": true},
            {"type": "tool_result", "tool_use_id": "5", "content": [
                text("seen"),
                {"type": "image",
                 "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                text("[audio (audio/wav)]"),
            ]},
        ])
    );
}

#[test]
fn media_are_blocks_of_the_api_or_words_that_stand_for_them() {
    let url = "https://example.invalid/x";
    let image = |source: Value| json!({"type": "image", "source": source});
    let document = |source: Value| json!({"type": "document", "source": source});
    let inline_source = |kind: &str, media_type: &str, data: &str| json!({"type": kind, "media_type": media_type, "data": data});
    let url_source = json!({"type": "url", "url": url});
    for (block, expected) in [
        (
            inline(Image, "image/jpg; x=y", "AAAA"),
            image(inline_source("base64", "image/jpeg", "AAAA")),
        ),
        (inline(Image, "", PNG), image(inline_source("base64", "image/png", PNG))),
        (
            linked(Image, None, "data:image/gif;base64,R0lGODlh"),
            image(inline_source("base64", "image/gif", "R0lGODlh")),
        ),
        (linked(Image, None, url), image(url_source.clone())),
        (linked(Image, Some("image/webp"), url), image(url_source.clone())),
        (
            inline(Document, "application/pdf", "JVBERi0xLjQ="),
            document(inline_source("base64", "application/pdf", "JVBERi0xLjQ=")),
        ),
        (linked(Document, None, url), document(url_source.clone())),
        (linked(Document, Some("application/pdf"), url), document(url_source)),
        (
            inline(Document, "text/csv; charset=utf-8", "YSxiCg=="),
            document(inline_source("text", "text/plain", "a,b\n")),
        ),
        (inline(Document, "text/plain", "not base64!"), text("[document (text/plain)]")),
        (inline(Image, "image/svg+xml", "PHN2Zz4="), text("[image (image/svg+xml)]")),
        (inline(Document, "application/zip", "UEsDBA=="), text("[document (application/zip)]")),
        (linked(Audio, None, url), text("[audio: https://example.invalid/x]")),
    ] {
        let sent = messages(Value::Null, [msg(Role::User, [block.clone()])]);
        assert_eq!(sent[0]["content"], json!([expected]), "{block:?}");
    }
}

#[test]
fn a_model_that_sees_nothing_gets_no_images_but_documents() {
    let blind = Anthropic { vision: false, ..wire(Value::Null) };
    let pdf = inline(Document, "application/pdf", "JVBERi0xLjQ=");
    let history = [
        msg(Role::User, [inline(Image, "image/png", PNG), pdf]),
        assistant([call("1", "f", "")]),
        msg(Role::Tool, [result("1", [inline(Image, "", PNG)], ResultState::Success)]),
    ];
    let sent = body(&blind, &request(history));
    let left_out = text("[image left out]");
    let source = json!({"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjQ="});
    assert_eq!(
        sent["messages"][0]["content"],
        json!([left_out, {"type": "document", "source": source}])
    );
    assert_eq!(
        sent["messages"][2]["content"],
        json!([{"type": "tool_result", "tool_use_id": "1", "content": [left_out]}])
    );
}

#[test]
fn what_the_model_drew_itself_is_told_in_words() {
    let history = [user("Draw"), assistant([inline(Image, "image/png", PNG)]), user("Nice")];
    assert_eq!(messages(Value::Null, history)[1]["content"], json!([text("[image (image/png)]")]));
}

#[test]
fn ids_of_calls_are_made_fit_and_unique() {
    let history = [
        user("Go"),
        assistant([call("functions.f:0", "f", "{}"), call("", "f", "{}"), call("x", "f", "{}")]),
        tool("functions.f:0", "1", ResultState::Success),
        tool("", "2", ResultState::Success),
        tool("x", "3", ResultState::Success),
        assistant([call("x", "f", "{}")]),
        tool("x", "4", ResultState::Success),
    ];
    let sent = messages(Value::Null, history);
    let ids = |at: usize, key: &str| -> Vec<String> {
        let blocks = sent[at]["content"].as_array().unwrap();
        blocks.iter().map(|block| block[key].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(1, "id"), ["functions_f_0", "call", "x"]);
    assert_eq!(ids(2, "tool_use_id"), ["functions_f_0", "call", "x"]);
    assert_eq!(ids(3, "id"), ["x-2"]);
    assert_eq!(ids(4, "tool_use_id"), ["x-2"]);
}

#[test]
fn arguments_that_are_no_object_become_an_empty_one() {
    let inputs = ["", "{", "not json", "[1]", "null", r#"{"z":1,"a":"\ud83d"}"#];
    let history = [user("Go"), assistant(inputs.map(|input| call("x", "f", input)))];
    let sent = messages(Value::Null, history);
    let sent: Vec<Value> =
        sent[1]["content"].as_array().unwrap().iter().map(|block| block["input"].clone()).collect();
    let mut expected = vec![json!({}); 5];
    expected.push(json!({"z": 1, "a": "\u{fffd}"}));
    assert_eq!(sent, expected);
}

#[test]
fn blank_text_is_never_sent_and_an_unfinished_answer_ends_in_no_white_space() {
    let history = [
        user("Go on"),
        assistant([said(""), said("Once upon \n"), said("  ")]),
        user(" "),
        assistant([said("a time \n")]),
    ];
    assert_eq!(
        messages(Value::Null, history),
        json!([
            {"role": "user", "content": [text("Go on")]},
            {"role": "assistant", "content": [text("Once upon \n"), text("a time")]},
        ])
    );
}

/// A history in which the model thought, called, and was answered.
fn thoughtful(thinking: Block) -> [Arc<Msg>; 4] {
    [
        user("Go"),
        assistant([thinking]),
        assistant([call("1", "f", "{}")]),
        tool("1", "done", ResultState::Success),
    ]
}

fn budget() -> Value {
    json!({"thinking": {"type": "enabled", "budget_tokens": 1024}})
}

#[test]
fn thinking_goes_back_unmodified_before_its_call() {
    let mut history =
        thoughtful(thought("I must.", Some("anthropic.signature:Sig/+==:x"))).to_vec();
    let hidden = [
        thought("", Some("anthropic.redacted:Data==")),
        thought("", Some("anthropic.signature:empty")),
        call("2", "f", "{}"),
    ];
    history.extend([assistant(hidden), tool("2", "done", ResultState::Success)]);
    let sent = body(&wire(budget()), &request(history));
    assert_eq!(
        sent["messages"][1]["content"],
        json!([
            {"type": "thinking", "thinking": "I must.", "signature": "Sig/+==:x"},
            {"type": "tool_use", "id": "1", "name": "f", "input": {}},
        ])
    );
    assert_eq!(
        sent["messages"][3]["content"],
        json!([
            {"type": "redacted_thinking", "data": "Data=="},
            {"type": "thinking", "thinking": "", "signature": "empty"},
            {"type": "tool_use", "id": "2", "name": "f", "input": {}},
        ])
    );
    assert_eq!(sent["thinking"], budget()["thinking"]);
}

#[test]
fn foreign_and_unsigned_thinking_is_left_out() {
    for encrypted in [None, Some("gemini.signature:x"), Some("Sig"), Some("anthropic.other:x")] {
        let sent = messages(Value::Null, thoughtful(thought("I must.", encrypted)));
        assert_eq!(
            sent[1]["content"],
            json!([{"type": "tool_use", "id": "1", "name": "f", "input": {}}]),
            "{encrypted:?}"
        );
    }
}

#[test]
fn thinking_is_off_where_the_turn_in_progress_lacks_its_own() {
    let thinking = |parameters, history: &[Arc<Msg>]| {
        body(&wire(parameters), &request(history)).get("thinking").cloned()
    };
    let lost = thoughtful(thought("I must.", None));
    assert_eq!(thinking(budget(), &lost), None);
    // The API insists on it in no other way of thinking,
    let adaptive = json!({"thinking": {"type": "adaptive"}});
    assert_eq!(thinking(adaptive.clone(), &lost), Some(adaptive["thinking"].clone()));
    // in no turn that is over,
    let over = [&lost[..], &[assistant([said("Done.")]), user("Again")]].concat();
    assert_eq!(thinking(budget(), &over), Some(budget()["thinking"].clone()));
    // and in no later answer of a turn that began with it.
    let signed = thoughtful(thought("I must.", Some("anthropic.signature:s")));
    let later = [assistant([call("2", "f", "{}")]), tool("2", "done", ResultState::Success)];
    let later = [&signed[..], &later].concat();
    assert_eq!(thinking(budget(), &later), Some(budget()["thinking"].clone()));
}

#[test]
fn without_thinking_the_turn_in_progress_has_none() {
    let lost =
        [user("Go"), assistant([call("0", "f", "{}")]), tool("0", "done", ResultState::Success)];
    let signed = thoughtful(thought("I must.", Some("anthropic.signature:s")));
    let mixed = [&lost[..], &signed[1..]].concat();
    let called = json!([{"type": "tool_use", "id": "1", "name": "f", "input": {}}]);
    assert_eq!(messages(budget(), mixed)[3]["content"], called);
    let disabled = json!({"thinking": {"type": "disabled"}});
    assert_eq!(messages(disabled, signed)[1]["content"], called);
}

#[test]
fn thinking_that_a_client_keeps_behind_its_calls_goes_before_them() {
    let history = [
        user("Go"),
        assistant([thought("a", Some("anthropic.signature:a")), said("I look.")]),
        assistant([call("1", "f", "{}"), call("2", "f", "{}")]),
        assistant([thought("b", Some("anthropic.signature:b"))]),
        tool("1", "done", ResultState::Success),
        tool("2", "done", ResultState::Success),
    ];
    assert_eq!(
        messages(budget(), history)[1]["content"],
        json!([
            {"type": "thinking", "thinking": "a", "signature": "a"},
            text("I look."),
            {"type": "thinking", "thinking": "b", "signature": "b"},
            {"type": "tool_use", "id": "1", "name": "f", "input": {}},
            {"type": "tool_use", "id": "2", "name": "f", "input": {}},
        ])
    );
}

#[test]
fn thinking_that_led_to_nothing_is_left_out() {
    let cut = thought("I mus", Some("anthropic.signature:s"));
    let history = [user("Go"), assistant([cut.clone()]), user("Well?")];
    assert_eq!(
        messages(Value::Null, history),
        json!([{"role": "user", "content": [text("Go"), text("Well?")]}])
    );
    let history = [user("Go"), assistant([said("So."), cut]), user("Well?")];
    assert_eq!(messages(Value::Null, history)[1]["content"], json!([text("So.")]));
}
