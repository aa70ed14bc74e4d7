use std::sync::Arc;

use agui_adapter::model::{
    Msg, Role,
    event::ResultState,
    msg::MediaKind::{Audio, Document, Image, Video},
};

use super::*;
use crate::llm::{FunctionSpec, ToolChoice};

const PNG: &str = "iVBORw0KGgoAAAANSUhEUg==";

fn request(messages: impl Into<Vec<Arc<Msg>>>) -> ModelRequest {
    ModelRequest { messages: messages.into(), ..ModelRequest::default() }
}

fn body(wire: &Gemini, request: &ModelRequest) -> Value {
    serde_json::from_slice(&wire.request(request).body).unwrap()
}

fn contents(model: &str, messages: impl Into<Vec<Arc<Msg>>>) -> Value {
    body(&wire(model, Value::Null), &request(messages))["contents"].take()
}

fn weather() -> FunctionSpec {
    let parameters =
        json!({"type": "object", "properties": {"city": {"type": ["string", "null"]}}});
    function("get_weather", "Looks out of the window.", parameters)
}

#[test]
fn a_request_has_path_key_and_contents() {
    let request = ModelRequest { system: "You help.".to_owned(), ..request([user("Hi")]) };
    let sent = wire("gemini-2.5-flash", Value::Null).request(&request);
    assert_eq!(sent.path, "/models/gemini-2.5-flash:streamGenerateContent?alt=sse");
    assert_eq!(sent.headers.len(), 1);
    assert_eq!(sent.headers["x-goog-api-key"], "AIza-key");
    assert!(sent.headers["x-goog-api-key"].is_sensitive());
    assert_eq!(
        String::from_utf8(sent.body).unwrap(),
        r#"{"systemInstruction":{"parts":[{"text":"You help."}]},"contents":[{"role":"user","parts":[{"text":"Hi"}]}]}"#
    );
    assert!(Gemini::new(&ModelConfig::default()).request(&request).headers.is_empty());
}

#[test]
fn a_model_with_a_collection_of_its_own_keeps_it_and_nothing_leaves_the_path() {
    let path = |model| wire(model, Value::Null).path();
    assert_eq!(path("tunedModels/mine"), "/tunedModels/mine:streamGenerateContent?alt=sse");
    assert_eq!(path("models/gemini-x"), "/models/gemini-x:streamGenerateContent?alt=sse");
    assert_eq!(path("a b?c#d"), "/models/a%20b%3Fc%23d:streamGenerateContent?alt=sse");
}

#[test]
fn tools_are_declared_with_json_schema() {
    let request = ModelRequest {
        tools: Arc::from([weather(), function("docs.search", "", json!({}))]),
        ..request([user("Hi")])
    };
    let sent = body(&wire("gemini-2.5-flash", Value::Null), &request);
    assert_eq!(
        sent["tools"],
        json!([{"functionDeclarations": [
            {
                "name": "get_weather",
                "description": "Looks out of the window.",
                "parametersJsonSchema":
                    {"type": "object", "properties": {"city": {"type": ["string", "null"]}}},
            },
            {"name": "docs_search_a7e557a3", "parametersJsonSchema": {"type": "object"}},
        ]}])
    );
    assert_eq!(sent.get("toolConfig"), None);
}

#[test]
fn a_call_without_tools_keeps_the_tools_and_forbids_their_use() {
    let parameters = json!({"toolConfig": {
        "functionCallingConfig": {"mode": "ANY"}, "retrievalConfig": {"languageCode": "en"},
    }});
    let tools = Arc::from([weather()]);
    let none = ModelRequest { tools, tool_choice: ToolChoice::None, ..request([user("Hi")]) };
    let forbidden = json!({"mode": "NONE"});
    let sent = body(&wire("gemini-2.5-flash", parameters), &none);
    assert_eq!(sent["tools"][0]["functionDeclarations"].as_array().unwrap().len(), 1);
    assert_eq!(
        sent["toolConfig"],
        json!({"functionCallingConfig": forbidden, "retrievalConfig": {"languageCode": "en"}})
    );
    let sent = body(&wire("gemini-2.5-flash", Value::Null), &none);
    assert_eq!(sent["toolConfig"], json!({"functionCallingConfig": forbidden}));
    let none = ModelRequest { tools: Arc::from([]), ..none };
    assert_eq!(body(&wire("gemini-2.5-flash", Value::Null), &none).get("toolConfig"), None);
}

#[test]
fn parameters_configure_the_generation_unless_they_stand_beside_it() {
    let parameters = json!({
        "temperature": 0.5,
        "thinkingConfig": {"includeThoughts": true},
        "topK": null,
        "generationConfig": {"topK": 3, "seed": 1, "temperature": 1},
        "safetySettings": [{"category": "X", "threshold": "Y"}],
        "systemInstruction": null,
        "tools": [{"googleSearch": {}}],
    });
    let request = ModelRequest {
        system: "You help.".to_owned(),
        tools: Arc::from([function("f", "", json!({"type": "object"}))]),
        ..request([user("Hi")])
    };
    assert_eq!(
        body(&wire("gemini-2.5-flash", parameters), &request),
        json!({
            "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
            "tools": [
                {"functionDeclarations": [
                    {"name": "f", "parametersJsonSchema": {"type": "object"}},
                ]},
                {"googleSearch": {}},
            ],
            "generationConfig":
                {"seed": 1, "temperature": 0.5, "thinkingConfig": {"includeThoughts": true}},
            "safetySettings": [{"category": "X", "threshold": "Y"}],
        })
    );
}

#[test]
fn answers_stand_apart_in_the_order_and_under_the_names_of_their_calls() {
    let history = [
        user("Weather?"),
        assistant([said("I look."), call("a", "get_weather", r#"{"city":"Oslo"}"#)]),
        assistant([call("", "docs.search", "not json")]),
        tool("", "no such page", ResultState::Error),
        tool("a", "rain", ResultState::Success),
        user("And now?"),
        user("Well?"),
    ];
    assert_eq!(
        contents("gemini-2.5-flash", history),
        json!([
            {"role": "user", "parts": [{"text": "Weather?"}]},
            {"role": "model", "parts": [
                {"text": "I look."},
                {"functionCall": {"id": "a", "name": "get_weather", "args": {"city": "Oslo"}}},
                {"functionCall": {"name": "docs_search_a7e557a3", "args": {}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse":
                    {"id": "a", "name": "get_weather", "response": {"result": "rain"}}},
                {"functionResponse":
                    {"name": "docs_search_a7e557a3", "response": {"error": "no such page"}}},
            ]},
            {"role": "user", "parts": [{"text": "And now?"}, {"text": "Well?"}]},
        ])
    );
}

#[test]
fn media_of_answers_follow_behind_all_answers() {
    let image = inline(Image, "", PNG);
    let history = [
        user("Go"),
        assistant([call("1", "look", ""), call("2", "listen", ""), call("3", "fail", "")]),
        msg(
            Role::Tool,
            [
                result("1", [said("seen"), image], ResultState::Success),
                result("2", [inline(Audio, "audio/wav", "AA==")], ResultState::Success),
                result("3", [], ResultState::Denied),
            ],
        ),
        user("So?"),
    ];
    let answer = |id: &str, name: &str, response: Value| json!({"functionResponse": {"id": id, "name": name, "response": response}});
    let sent = contents("gemini-2.5-flash", history);
    assert_eq!(
        sent[2]["parts"],
        json!([
            answer("1", "look", json!({"result": "seen"})),
            answer("2", "listen", json!({"result": "The media follow."})),
            answer("3", "fail", json!({"error": "The call was denied."})),
        ])
    );
    assert_eq!(
        sent[3]["parts"],
        json!([
            {"text": "Media of the result of look:"},
            {"inlineData": {"mimeType": "image/png", "data": PNG}},
            {"text": "Media of the result of listen:"},
            {"inlineData": {"mimeType": "audio/wav", "data": "AA=="}},
            {"text": "So?"},
        ])
    );
}

#[test]
fn media_are_data_or_files_or_words_that_stand_for_them() {
    let url = "https://example.invalid/x";
    let data = |media_type: &str, data: &str| json!({"inlineData": {"mimeType": media_type, "data": data}});
    for (block, expected) in [
        (inline(Image, "image/jpg", "AAAA"), data("image/jpeg", "AAAA")),
        (inline(Image, "image/jpeg", PNG), data("image/png", PNG)),
        (linked(Video, None, "data:video/mp4;base64,AAAA"), data("video/mp4", "AAAA")),
        (inline(Document, "application/json", "e30="), data("text/plain", "e30=")),
        (linked(Video, None, url), json!({"fileData": {"fileUri": url}})),
        (
            linked(Document, Some("application/pdf"), url),
            json!({"fileData": {"mimeType": "application/pdf", "fileUri": url}}),
        ),
        (inline(Image, "image/gif", "R0lGODlh"), json!({"text": "[image (image/gif)]"})),
        (
            linked(Document, Some("application/zip"), url),
            json!({"text": "[document: https://example.invalid/x]"}),
        ),
    ] {
        let sent = contents("gemini-2.5-flash", [msg(Role::User, [block.clone()])]);
        assert_eq!(sent[0]["parts"], json!([expected]), "{block:?}");
    }
    let blind = Gemini { vision: false, ..wire("gemini-2.5-flash", Value::Null) };
    let media = [inline(Image, "", PNG), linked(Video, None, url), inline(Audio, "audio/wav", "A")];
    assert_eq!(
        body(&blind, &request([msg(Role::User, media)]))["contents"][0]["parts"],
        json!([{"text": "[image left out]"}, {"text": "[video left out]"}, data("audio/wav", "A")])
    );
}

#[test]
fn signatures_go_back_unmodified_on_their_parts_and_foreign_ones_do_not() {
    let history = [
        user("Go"),
        assistant([
            thought("hm", Some("gemini.signature:a/+==")),
            thought("foreign", Some("anthropic.signature:x")),
            thought("unsigned", None),
            said("I say"),
            thought("", Some("gemini.part-signature:b:c")),
            inline(Image, "image/png", PNG),
            thought("", Some("gemini.part-signature:d")),
            signed_call("1", "f", "{}", Some("gemini.signature:e")),
            signed_call("2", "f", "{}", Some("openai.encrypted:x")),
            thought("", Some("gemini.part-signature:f")),
        ]),
        tool("1", "x", ResultState::Success),
        tool("2", "x", ResultState::Success),
    ];
    assert_eq!(
        contents("gemini-2.5-flash", history)[1]["parts"],
        json!([
            {"text": "hm", "thought": true, "thoughtSignature": "a/+=="},
            {"text": "I say", "thoughtSignature": "b:c"},
            {"inlineData": {"mimeType": "image/png", "data": PNG}, "thoughtSignature": "d"},
            {"functionCall": {"id": "1", "name": "f", "args": {}}, "thoughtSignature": "e"},
            {"functionCall": {"id": "2", "name": "f", "args": {}}},
            {"text": "", "thoughtSignature": "f"},
        ])
    );
}

#[test]
fn the_signature_of_a_text_finds_it_across_its_calls() {
    let history = [
        user("Go"),
        assistant([said("I look."), call("1", "f", "{}")]),
        assistant([thought("", Some("gemini.part-signature:s"))]),
        tool("1", "x", ResultState::Success),
    ];
    assert_eq!(
        contents("gemini-2.5-flash", history)[1]["parts"],
        json!([
            {"text": "I look.", "thoughtSignature": "s"},
            {"functionCall": {"id": "1", "name": "f", "args": {}}},
        ])
    );
}

#[test]
fn models_that_insist_on_signatures_are_told_of_calls_that_have_none() {
    let history = [
        user("Earlier"),
        assistant([call("0", "f", "{}")]),
        tool("0", "x", ResultState::Success),
        user("Go"),
        assistant([call("1", "f", "{}"), call("2", "f", "{}")]),
        tool("1", "x", ResultState::Success),
        tool("2", "x", ResultState::Success),
        assistant([signed_call("3", "f", "{}", Some("gemini.signature:s"))]),
        tool("3", "x", ResultState::Success),
    ];
    let signatures = |model: &str| -> Vec<Value> {
        let sent = contents(model, history.clone());
        let parts = sent.as_array().unwrap().iter().flat_map(|it| it["parts"].as_array().unwrap());
        let calls = parts.filter(|part| part.get("functionCall").is_some());
        calls.map(|part| part["thoughtSignature"].clone()).collect()
    };
    let skip = "skip_thought_signature_validator";
    let insisting = json!([null, skip, null, "s"]);
    assert_eq!(json!(signatures("gemini-3-pro-preview")), insisting);
    assert_eq!(json!(signatures("publishers/google/models/gemini-3.5-flash")), insisting);
    for model in ["gemini-2.5-pro", "learnlm", "gemini-pro"] {
        assert_eq!(json!(signatures(model)), json!([null, null, null, "s"]), "{model}");
    }
}

#[test]
fn vertex_gets_calls_and_answers_without_ids() {
    let messages =
        [user("Hi"), assistant([call("a", "f", "{}")]), tool("a", "1", ResultState::Success)];
    let of = |base_url: &str| {
        let wire =
            Gemini::new(&ModelConfig { base_url: base_url.to_owned(), ..ModelConfig::default() });
        let body = body(&wire, &request(messages.clone()));
        let part = |at: usize, kind: &str| body["contents"][at]["parts"][0][kind].clone();
        [part(1, "functionCall"), part(2, "functionResponse")]
    };
    let response = json!({"result": "1"});
    assert_eq!(
        of("https://generativelanguage.googleapis.com/v1beta"),
        [
            json!({"id": "a", "name": "f", "args": {}}),
            json!({"id": "a", "name": "f", "response": response})
        ]
    );
    assert_eq!(
        of("https://europe-west1-aiplatform.googleapis.com/v1/projects/p"),
        [json!({"name": "f", "args": {}}), json!({"name": "f", "response": response})]
    );
}
