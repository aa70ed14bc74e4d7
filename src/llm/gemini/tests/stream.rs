use agui_adapter::model::{event::ModelUsage, msg::MediaSource};
use proptest::prelude::*;

use super::*;
use crate::llm::{FinishReason, ModelError, ModelEvent};

fn decoder() -> Box<dyn Decoder + Send> {
    let tools = [function("docs.search", "", json!({"type": "object"}))];
    let request = ModelRequest { tools: tools.into(), ..ModelRequest::default() };
    wire("gemini-2.5-flash", Value::Null).decoder(&request)
}

/// What a stream means that ends as it should.
fn events(stream: &str) -> Vec<ModelEvent> {
    let (events, end) = read(decoder(), stream);
    assert_eq!(end, Ok(()));
    events
}

fn broken(stream: &str) -> (Vec<ModelEvent>, ModelError) {
    let (events, end) = read(decoder(), stream);
    (events, end.unwrap_err())
}

fn said(text: &str) -> ModelEvent {
    ModelEvent::Text(text.to_owned())
}

fn thought(text: &str) -> ModelEvent {
    ModelEvent::Thinking(text.to_owned())
}

fn thinking_end(encrypted: Option<&str>) -> ModelEvent {
    ModelEvent::ThinkingEnd { encrypted: encrypted.map(str::to_owned) }
}

/// A whole call.
fn called(
    index: usize,
    id: &str,
    name: &str,
    arguments: &str,
    encrypted: Option<&str>,
) -> [ModelEvent; 3] {
    [
        ModelEvent::CallStart { index, id: id.to_owned(), name: name.to_owned() },
        ModelEvent::CallDelta { index, delta: arguments.to_owned() },
        ModelEvent::CallEnd { index, encrypted: encrypted.map(str::to_owned) },
    ]
}

fn finish(reason: FinishReason) -> ModelEvent {
    ModelEvent::Finish(reason)
}

#[test]
fn text_comes_as_it_forms_and_the_last_counts_count() {
    let stream = r#"data: {"candidates": [{"content": {"parts": [{"text": "Hel"}],"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 5,"totalTokenCount": 5},"modelVersion": "gemini-2.5-flash","responseId": "r"}

data: {"candidates": [{"content": {"parts": [{"text": ""},{"text": "lo\ud83d"}],"role": "model"},"finishReason": "STOP","index": 0}],"usageMetadata": {"promptTokenCount": 5,"candidatesTokenCount": 2,"totalTokenCount": 7}}

data: {"usageMetadata": {"promptTokenCount": 5,"candidatesTokenCount": 3,"totalTokenCount": 8}}

"#;
    let usage =
        ModelUsage { input: Some(5), output: Some(3), total: Some(8), ..ModelUsage::default() };
    let expected =
        [said("Hel"), said("lo\u{fffd}"), ModelEvent::Usage(usage), finish(FinishReason::Stop)];
    assert_eq!(events(stream), expected);
}

#[test]
fn counts_are_those_of_all_prompts_and_of_all_that_was_generated() {
    let stream = r#"data: {"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":100,"toolUsePromptTokenCount":20,"cachedContentTokenCount":64,"candidatesTokenCount":7,"thoughtsTokenCount":30,"totalTokenCount":157}}"#;
    let usage = ModelUsage {
        input: Some(120),
        output: Some(37),
        cache_read: Some(64),
        reasoning: Some(30),
        total: Some(157),
        ..ModelUsage::default()
    };
    assert_eq!(events(stream), [ModelEvent::Usage(usage), finish(FinishReason::Stop)]);
    let silent = r#"data: {"candidates":[{"finishReason":"STOP"}],"usageMetadata":{}}"#;
    assert_eq!(events(silent), [finish(FinishReason::Stop)]);
}

#[test]
fn thoughts_are_thinking_and_signatures_are_artefacts() {
    let stream = r#"data: {"candidates":[{"content":{"parts":[{"text":"Let me","thought":true}]}}]}

data: {"candidates":[{"content":{"parts":[{"text":" see.","thought":true}]}}]}

data: {"candidates":[{"content":{"parts":[{"text":"Anew.","thought":true,"thoughtSignature":"A:/+=="}]}}]}

data: {"candidates":[{"content":{"parts":[{"text":"So","thoughtSignature":"B"}]}}]}

data: {"candidates":[{"content":{"parts":[{"text":" it is."}]}}]}

data: {"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"C"}]},"finishReason":"STOP"}]}

"#;
    let expected = [
        thought("Let me"),
        thought(" see."),
        thought("Anew."),
        thinking_end(Some("gemini.signature:A:/+==")),
        said("So"),
        said(" it is."),
        thinking_end(Some("gemini.part-signature:C")),
        finish(FinishReason::Stop),
    ];
    assert_eq!(events(stream), expected);
}

#[test]
fn thinking_ends_where_something_else_begins() {
    let stream = r#"data: {"candidates":[{"content":{"parts":[{"text":"hm","thought":true},{"text":"a"},{"text":"hm","thought":true},{"functionCall":{"name":"f","args":{}}},{"text":"hm","thought":true}]},"finishReason":"STOP"}]}"#;
    let mut expected =
        vec![thought("hm"), thinking_end(None), said("a"), thought("hm"), thinking_end(None)];
    expected.extend(called(0, "", "f", "{}", None));
    expected.extend([thought("hm"), thinking_end(None), finish(FinishReason::ToolCalls)]);
    assert_eq!(events(stream), expected);
}

#[test]
fn calls_come_whole_in_one_chunk_or_several() {
    let stream = r#"data: {"candidates":[{"content":{"parts":[{"text":"I look."},{"functionCall":{"name":"get_weather","args":{"city":"Oslo","days":[1,2]}},"thoughtSignature":"S/="},{"functionCall":{"name":"get_weather","args":{"city":"Rome"}}}]}}]}

data: {"candidates":[{"content":{"parts":[{"functionCall":{"id":"fc-1","name":"docs_search_a7e557a3","args":{}}},{"functionCall":{"name":"now"}}]}}]}

data: {"candidates":[{"content":{"parts":[]},"finishReason":"STOP"}]}

"#;
    let mut expected = vec![said("I look.")];
    let city = r#"{"city":"Oslo","days":[1,2]}"#;
    expected.extend(called(0, "", "get_weather", city, Some("gemini.signature:S/=")));
    expected.extend(called(1, "", "get_weather", r#"{"city":"Rome"}"#, None));
    expected.extend(called(2, "fc-1", "docs.search", "{}", None));
    let now = called(3, "", "now", "", None);
    expected.extend([now[0].clone(), now[2].clone(), finish(FinishReason::ToolCalls)]);
    assert_eq!(events(stream), expected);
}

#[test]
fn media_come_whole_and_what_ran_at_the_providers_is_passed_over() {
    let stream = r#"data: {"candidates":[{"content":{"parts":[{"executableCode":{"language":"PYTHON","code":"1"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK"}},{"inlineData":{"mimeType":"image/png","data":"draft"},"thought":true},{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="},"thoughtSignature":"S"},{"fileData":{"mimeType":"video/mp4","fileUri":"https://example.invalid/v"}},{"shimmer":1},7]},"finishReason":"STOP"}]}"#;
    let image =
        MediaSource::Base64 { media_type: "image/png".to_owned(), data: "iVBORw0KGgo=".to_owned() };
    let video = MediaSource::Url {
        media_type: Some("video/mp4".to_owned()),
        url: "https://example.invalid/v".to_owned(),
    };
    let expected = [
        ModelEvent::Media(image),
        thinking_end(Some("gemini.part-signature:S")),
        ModelEvent::Media(video),
        finish(FinishReason::Stop),
    ];
    assert_eq!(events(stream), expected);
}

#[test]
fn every_reason_to_stop_has_its_meaning() {
    let other = |word: &str| FinishReason::Other(word.to_owned());
    for (word, reason) in [
        ("STOP", FinishReason::Stop),
        ("MAX_TOKENS", FinishReason::Length),
        ("SAFETY", FinishReason::ContentFilter),
        ("RECITATION", FinishReason::ContentFilter),
        ("PROHIBITED_CONTENT", FinishReason::ContentFilter),
        ("SPII", FinishReason::ContentFilter),
        ("BLOCKLIST", FinishReason::ContentFilter),
        ("IMAGE_SAFETY", FinishReason::ContentFilter),
        ("MALFORMED_FUNCTION_CALL", other("MALFORMED_FUNCTION_CALL")),
        ("TIRED", other("TIRED")),
    ] {
        let chunk = json!({"candidates": [{"finishReason": word}]});
        assert_eq!(events(&format!("data: {chunk}")), [finish(reason)], "{word}");
    }
}

#[test]
fn a_prompt_that_is_blocked_is_an_answer_that_was_filtered() {
    let stream = r#"data: {"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":9}}"#;
    let usage = ModelUsage { input: Some(9), ..ModelUsage::default() };
    let expected = [ModelEvent::Usage(usage), finish(FinishReason::ContentFilter)];
    assert_eq!(events(stream), expected);
}

#[test]
fn an_answer_that_breaks_off_is_a_failure() {
    let stream = r#"data: {"candidates":[{"content":{"parts":[{"text":"Hel"}]}}]}"#;
    let cause = "the answer is a stream that ends before the answer does".to_owned();
    let error = ModelError { kind: ModelErrorKind::Other, cause };
    assert_eq!(broken(stream), (vec![said("Hel")], error.clone()));
    assert_eq!(broken(""), (vec![], error));
}

#[test]
fn an_error_in_the_stream_ends_it_by_its_kind_without_its_words() {
    for (error, kind, cause) in [
        (
            json!({"code": 503, "status": "UNAVAILABLE", "message": "The model is overloaded."}),
            ModelErrorKind::Unavailable,
            "the answer holds an error, type UNAVAILABLE, code 503",
        ),
        (
            json!({"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "q",
                   "details": [{"retryDelay": "2s"}]}),
            ModelErrorKind::RateLimited { retry_after: Some(std::time::Duration::from_secs(2)) },
            "the answer holds an error, type RESOURCE_EXHAUSTED, code 429",
        ),
        (
            json!({"code": 500, "status": "INTERNAL", "message": "secret"}),
            ModelErrorKind::Other,
            "the answer holds an error, type INTERNAL, code 500",
        ),
    ] {
        let stop = r#"data: {"candidates":[{"finishReason":"STOP"}]}"#;
        let chunk = json!({"error": error});
        let expected = ModelError { kind, cause: cause.to_owned() };
        assert_eq!(broken(&format!("{stop}\n\ndata: {chunk}\n\n")), (vec![], expected));
    }
}

#[test]
fn data_that_makes_no_sense_ends_the_answer() {
    let error = |cause: &str| {
        let cause = cause.to_owned();
        ModelError { kind: ModelErrorKind::Other, cause }
    };
    let no_json = error("the answer is data that is not JSON");
    assert_eq!(broken("data: {\"candidates\""), (vec![], no_json));
    let nameless =
        json!({"candidates": [{"content": {"parts": [{"functionCall": {"args": {}}}]}}]});
    let no_name = error("the answer is a function call without a name");
    assert_eq!(broken(&format!("data: {nameless}")), (vec![], no_name));
}

proptest! {
    #[test]
    fn whatever_comes_is_read_in_peace_and_in_order(stream in any_stream(&[
        "candidates", "content", "parts", "text", "thought", "thoughtSignature", "functionCall",
        "name", "args", "id", "inlineData", "fileData", "mimeType", "data", "fileUri", "STOP",
        "finishReason", "promptFeedback", "blockReason", "usageMetadata", "promptTokenCount",
        "candidatesTokenCount", "thoughtsTokenCount", "error", "code", "status", "details",
    ])) {
        in_order(decoder(), &stream);
    }

    #[test]
    fn parts_in_any_order_are_read_in_order(chunks in prop::collection::vec(any_chunk(), 0..8)) {
        in_order(decoder(), &chunks);
    }
}

/// A chunk as the API has them, of any parts.
fn any_chunk() -> impl Strategy<Value = Value> {
    let text = prop::sample::select(vec!["", "a"]);
    let signature = prop::sample::select(vec![Value::Null, json!(""), json!("s")]);
    let part =
        (0..5, text, any::<bool>(), signature).prop_map(|(kind, text, thought, signature)| {
            let mut part = match kind {
                0 => json!({"functionCall": {"name": "f", "args": {"a": text}}}),
                1 => json!({"functionCall": {"name": "f"}}),
                2 => json!({"inlineData": {"mimeType": text, "data": text}}),
                _ => json!({"text": text}),
            };
            part["thought"] = json!(thought);
            part["thoughtSignature"] = signature;
            part
        });
    let reason = prop::sample::select(vec![Value::Null, json!("STOP")]);
    (prop::collection::vec(part, 0..5), reason).prop_map(|(parts, reason)| {
        json!({"candidates": [{"content": {"parts": parts}, "finishReason": reason}]})
    })
}
