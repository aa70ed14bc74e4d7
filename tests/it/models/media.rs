//! Pictures and sound on their way to a model.

use serde_json::{Value, json};

use super::{Setup, with};
use crate::support::model::{Endpoint, dialect::Dialect};

/// A picture of one point.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEA";

/// The conversation that a model is given for these messages.
async fn sent(dialect: Dialect, messages: &[Value]) -> Value {
    let model = Endpoint::answers([dialect.says(&["ok"])]).await;
    let server = Setup::at(dialect, &model.url()).agent("sys-prompt", "").serve().await;
    let events = server.run("/agui/a", &with("t", "r", messages)).await;
    assert_eq!(events.last().unwrap()["type"], "RUN_FINISHED", "{events:?}");
    let body = model.request(0).await.body.clone();
    body[if dialect == Dialect::Gemini { "contents" } else { "messages" }].clone()
}

fn says(parts: Value) -> Value {
    json!({"id": "u1", "role": "user", "content": parts})
}

fn data(kind: &str, value: &str, media_type: &str) -> Value {
    json!({"type": kind, "source": {"type": "data", "value": value, "mimeType": media_type}})
}

fn url(kind: &str, url: &str, media_type: &str) -> Value {
    json!({"type": kind, "source": {"type": "url", "value": url, "mimeType": media_type}})
}

#[tokio::test]
async fn pictures_keep_their_place_among_the_words() {
    let messages = [says(json!([
        {"type": "text", "text": "what is this"},
        data("image", PNG, "image/png"),
        url("image", "http://127.0.0.1:9/x.png", "image/png"),
        {"type": "text", "text": "and why"},
    ]))];
    assert_eq!(
        sent(Dialect::OpenAi, &messages).await,
        json!([{"role": "user", "content": [
            {"type": "text", "text": "what is this"},
            {"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{PNG}")}},
            {"type": "image_url", "image_url": {"url": "http://127.0.0.1:9/x.png"}},
            {"type": "text", "text": "and why"},
        ]}])
    );
    let base64 = json!({"type": "base64", "media_type": "image/png", "data": PNG});
    assert_eq!(
        sent(Dialect::Anthropic, &messages).await,
        json!([{"role": "user", "content": [
            {"type": "text", "text": "what is this"},
            {"type": "image", "source": base64},
            {"type": "image", "source": {"type": "url", "url": "http://127.0.0.1:9/x.png"}},
            {"type": "text", "text": "and why"},
        ]}])
    );
    let file = json!({"mimeType": "image/png", "fileUri": "http://127.0.0.1:9/x.png"});
    assert_eq!(
        sent(Dialect::Gemini, &messages).await,
        json!([{"role": "user", "parts": [
            {"text": "what is this"},
            {"inlineData": {"mimeType": "image/png", "data": PNG}},
            {"fileData": file},
            {"text": "and why"},
        ]}])
    );
}

#[tokio::test]
async fn one_part_of_text_is_the_text() {
    let messages = [says(json!([{"type": "text", "text": "hi"}]))];
    let plain = [json!({"id": "u1", "role": "user", "content": "hi"})];
    for dialect in Dialect::ALL {
        assert_eq!(sent(dialect, &messages).await, sent(dialect, &plain).await);
    }
    let expected = json!([{"role": "user", "content": "hi"}]);
    assert_eq!(sent(Dialect::OpenAi, &plain).await, expected);
}

#[tokio::test]
async fn sound_has_the_form_of_the_wire() {
    let messages = [says(json!([
        {"type": "text", "text": "what says it"}, data("audio", WAV, "audio/wav"),
    ]))];
    assert_eq!(
        sent(Dialect::OpenAi, &messages).await,
        json!([{"role": "user", "content": [
            {"type": "text", "text": "what says it"},
            {"type": "input_audio", "input_audio": {"data": WAV, "format": "wav"}},
        ]}])
    );
    assert_eq!(
        sent(Dialect::Gemini, &messages).await,
        json!([{"role": "user", "parts": [
            {"text": "what says it"},
            {"inlineData": {"mimeType": "audio/wav", "data": WAV}},
        ]}])
    );
}

#[tokio::test]
async fn answers_and_results_in_parts_have_the_form_of_the_wire() {
    let mut call = super::called("a1", "c1", "look", "{}");
    call["content"] = json!("I look");
    let messages = [
        json!({"id": "u1", "role": "user", "content": "hi"}),
        call,
        json!({"id": "x1", "role": "tool", "toolCallId": "c1", "content": [
            {"type": "text", "text": "a cat"}, {"type": "text", "text": "asleep"},
        ]}),
        json!({"id": "u2", "role": "user", "content": "go on"}),
    ];
    let function = json!({"name": "look", "arguments": "{}"});
    assert_eq!(
        sent(Dialect::OpenAi, &messages).await,
        json!([
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "I look", "tool_calls": [
                {"id": "c1", "type": "function", "function": function},
            ]},
            {"role": "tool", "tool_call_id": "c1", "content": "a cat\nasleep"},
            {"role": "user", "content": "go on"},
        ])
    );
}

#[tokio::test]
async fn a_model_without_eyes_is_given_the_words() {
    let model = Endpoint::answers([Dialect::OpenAi.says(&["ok"])]).await;
    let setup = Setup::new(&model).agent("sys-prompt", "").model("vision", false);
    let parts = json!([{"type": "text", "text": "what is this"}, data("image", PNG, "image/png")]);
    setup.serve().await.run("/agui/a", &with("t", "r", &[says(parts)])).await;
    let told = "what is this\n[image left out]";
    assert_eq!(model.bodies()[0]["messages"], json!([{"role": "user", "content": told}]));
}
