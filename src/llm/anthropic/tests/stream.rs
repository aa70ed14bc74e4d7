use agui_adapter::model::event::ModelUsage;
use proptest::prelude::*;

use super::*;
use crate::llm::{FinishReason, ModelError, ModelEvent};

fn decoder() -> Box<dyn Decoder + Send> {
    let tools = [function("docs.search", "", json!({"type": "object"}))];
    let request = ModelRequest { tools: tools.into(), ..ModelRequest::default() };
    wire(Value::Null).decoder(&request)
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

fn start(index: usize, id: &str, name: &str) -> ModelEvent {
    ModelEvent::CallStart { index, id: id.to_owned(), name: name.to_owned() }
}

fn delta(index: usize, delta: &str) -> ModelEvent {
    ModelEvent::CallDelta { index, delta: delta.to_owned() }
}

fn end(index: usize) -> ModelEvent {
    ModelEvent::CallEnd { index, encrypted: None }
}

fn usage(input: u64, output: u64) -> ModelEvent {
    let (input, output) = (Some(input), Some(output));
    ModelEvent::Usage(ModelUsage { input, output, ..ModelUsage::default() })
}

const START: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_01","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"output_tokens":1}}}

"#;

const STOP: &str = r#"event: message_stop
data: {"type":"message_stop"}

"#;

#[test]
fn text_comes_as_it_forms() {
    let stream = format!(
        r#"{START}event: content_block_start
data: {{"type":"content_block_start","index":0,"content_block":{{"type":"text","text":""}}}}

event: ping
data: {{"type":"ping"}}

event: content_block_delta
data: {{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"Hel"}}}}

event: content_block_delta
data: {{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":""}}}}

event: content_block_delta
data: {{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"lo\ud83d"}}}}

event: content_block_stop
data: {{"type":"content_block_stop","index":0}}

event: message_delta
data: {{"type":"message_delta","delta":{{"stop_reason":"end_turn","stop_sequence":null}},"usage":{{"output_tokens":15}}}}

{STOP}"#
    );
    let expected =
        [said("Hel"), said("lo\u{fffd}"), usage(25, 15), ModelEvent::Finish(FinishReason::Stop)];
    assert_eq!(events(&stream), expected);
}

#[test]
fn thinking_ends_with_its_signature_and_hidden_thinking_is_its_artefact() {
    let stream = format!(
        r#"{START}data: {{"type":"content_block_start","index":0,"content_block":{{"type":"thinking","thinking":"","signature":""}}}}

data: {{"type":"content_block_delta","index":0,"delta":{{"type":"thinking_delta","thinking":"Let me"}}}}

data: {{"type":"content_block_delta","index":0,"delta":{{"type":"thinking_delta","thinking":" see."}}}}

data: {{"type":"content_block_delta","index":0,"delta":{{"type":"signature_delta","signature":"EqQB:x/+=="}}}}

data: {{"type":"content_block_stop","index":0}}

data: {{"type":"content_block_start","index":1,"content_block":{{"type":"redacted_thinking","data":"EmwKAhgB=="}}}}

data: {{"type":"content_block_stop","index":1}}

data: {{"type":"content_block_start","index":2,"content_block":{{"type":"thinking","thinking":"","signature":""}}}}

data: {{"type":"content_block_delta","index":2,"delta":{{"type":"signature_delta","signature":"omitted"}}}}

data: {{"type":"content_block_stop","index":2}}

data: {{"type":"content_block_start","index":3,"content_block":{{"type":"text","text":"So."}}}}

data: {{"type":"content_block_stop","index":3}}

data: {{"type":"message_delta","delta":{{"stop_reason":"end_turn"}},"usage":{{"output_tokens":40}}}}

{STOP}"#
    );
    let expected = [
        thought("Let me"),
        thought(" see."),
        thinking_end(Some("anthropic.signature:EqQB:x/+==")),
        thinking_end(Some("anthropic.redacted:EmwKAhgB==")),
        thinking_end(Some("anthropic.signature:omitted")),
        said("So."),
        usage(25, 40),
        ModelEvent::Finish(FinishReason::Stop),
    ];
    assert_eq!(events(&stream), expected);
}

#[test]
fn calls_come_with_their_arguments_as_they_form() {
    let stream = format!(
        r#"{START}data: {{"type":"content_block_start","index":0,"content_block":{{"type":"text","text":""}}}}

data: {{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"I look."}}}}

data: {{"type":"content_block_stop","index":0}}

data: {{"type":"content_block_start","index":1,"content_block":{{"type":"tool_use","id":"toolu_1","name":"get_weather","input":{{}}}}}}

data: {{"type":"content_block_delta","index":1,"delta":{{"type":"input_json_delta","partial_json":""}}}}

data: {{"type":"content_block_delta","index":1,"delta":{{"type":"input_json_delta","partial_json":"{{\"city\":"}}}}

data: {{"type":"content_block_delta","index":1,"delta":{{"type":"input_json_delta","partial_json":" \"Oslo\"}}"}}}}

data: {{"type":"content_block_stop","index":1}}

data: {{"type":"content_block_start","index":2,"content_block":{{"type":"tool_use","id":"toolu_2","name":"docs_search_a7e557a3","input":{{"q":"rain","n":1}}}}}}

data: {{"type":"content_block_stop","index":2}}

data: {{"type":"content_block_start","index":3,"content_block":{{"type":"tool_use","id":"toolu_3","name":"now","input":{{}}}}}}

data: {{"type":"content_block_stop","index":3}}

data: {{"type":"message_delta","delta":{{"stop_reason":"tool_use"}},"usage":{{"output_tokens":89}}}}

{STOP}"#
    );
    let expected = [
        said("I look."),
        start(0, "toolu_1", "get_weather"),
        delta(0, r#"{"city":"#),
        delta(0, r#" "Oslo"}"#),
        end(0),
        start(1, "toolu_2", "docs.search"),
        delta(1, r#"{"q":"rain","n":1}"#),
        end(1),
        start(2, "toolu_3", "now"),
        end(2),
        usage(25, 89),
        ModelEvent::Finish(FinishReason::ToolCalls),
    ];
    assert_eq!(events(&stream), expected);
}

#[test]
fn what_runs_at_the_providers_and_what_is_to_come_is_passed_over() {
    let stream = format!(
        r#"{START}data: {{"type":"content_block_start","index":0,"content_block":{{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{{}}}}}}

data: {{"type":"content_block_delta","index":0,"delta":{{"type":"input_json_delta","partial_json":"{{\"query\":\"x\"}}"}}}}

data: {{"type":"content_block_stop","index":0}}

data: {{"type":"content_block_start","index":1,"content_block":{{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}}}}

data: {{"type":"content_block_stop","index":1}}

data: {{"type":"content_block_start","index":2,"content_block":{{"type":"text","text":""}}}}

data: {{"type":"content_block_delta","index":2,"delta":{{"type":"citations_delta","citation":{{}}}}}}

data: {{"type":"content_block_delta","index":2,"delta":{{"type":"text_delta","text":"Found."}}}}

data: {{"type":"content_block_stop","index":2}}

event: content_block_shimmer
data: {{"type":"content_block_shimmer","index":2}}

data: {{"type":"message_delta","delta":{{"stop_reason":"pause_turn"}}}}

{STOP}"#
    );
    let paused = FinishReason::Other("pause_turn".to_owned());
    let expected = [said("Found."), usage(25, 1), ModelEvent::Finish(paused)];
    assert_eq!(events(&stream), expected);
}

#[test]
fn input_counts_the_cache_and_zeros_said_twice_take_nothing_back() {
    let counts = |start: Value, delta: Value| {
        let start = json!({"type": "message_start", "message": {"usage": start}});
        let reason = json!({"stop_reason": "end_turn"});
        let delta = json!({"type": "message_delta", "delta": reason, "usage": delta});
        match &events(&format!("data: {start}\n\ndata: {delta}\n\n{STOP}"))[..] {
            [ModelEvent::Usage(usage), ModelEvent::Finish(FinishReason::Stop)] => {
                Some((usage.input, usage.output, usage.cache_read, usage.cache_write))
            }
            [ModelEvent::Finish(FinishReason::Stop)] => None,
            other => panic!("{other:?}"),
        }
    };
    let cached = json!({
        "input_tokens": 10, "cache_read_input_tokens": 300, "cache_creation_input_tokens": 40,
        "output_tokens": 1,
    });
    let all = Some((Some(350), Some(7), Some(300), Some(40)));
    assert_eq!(counts(cached.clone(), json!({"output_tokens": 7})), all);
    let repeated = json!({"input_tokens": 0, "cache_read_input_tokens": 300, "output_tokens": 7});
    assert_eq!(counts(cached, repeated), all);
    let late = counts(
        json!({"input_tokens": 0, "output_tokens": 0}),
        json!({"input_tokens": 9, "output_tokens": 7}),
    );
    assert_eq!(late, Some((Some(9), Some(7), None, None)));
    let silent = counts(json!({"output_tokens": 7}), Value::Null);
    assert_eq!(silent, Some((None, Some(7), None, None)));
    assert_eq!(counts(Value::Null, Value::Null), None);
}

#[test]
fn every_reason_to_stop_has_its_meaning() {
    for (word, reason) in [
        ("end_turn", FinishReason::Stop),
        ("stop_sequence", FinishReason::Stop),
        ("tool_use", FinishReason::ToolCalls),
        ("max_tokens", FinishReason::Length),
        ("model_context_window_exceeded", FinishReason::Length),
        ("refusal", FinishReason::ContentFilter),
        ("tired", FinishReason::Other("tired".to_owned())),
    ] {
        let delta = json!({"type": "message_delta", "delta": {"stop_reason": word}});
        let stream = format!("data: {delta}\n\n{STOP}");
        assert_eq!(events(&stream), [ModelEvent::Finish(reason)], "{word}");
    }
}

const OPEN_CALL: &str = r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}

"#;

#[test]
fn an_answer_without_its_last_event_is_whole_once_it_said_why_it_stops() {
    let delta = r#"data: {"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":5}}"#;
    let expected =
        [start(0, "t", "f"), usage(25, 5), end(0), ModelEvent::Finish(FinishReason::Length)];
    assert_eq!(events(&format!("{START}{OPEN_CALL}{delta}")), expected);
}

#[test]
fn an_answer_that_breaks_off_is_a_failure() {
    let cause = "the answer is a stream that ends before the answer does".to_owned();
    let error = ModelError { kind: ModelErrorKind::Other, cause };
    assert_eq!(broken(&format!("{START}{OPEN_CALL}")), (vec![start(0, "t", "f")], error.clone()));
    assert_eq!(broken(""), (vec![], error));
}

#[test]
fn an_error_in_the_stream_ends_it_by_its_kind_without_its_words() {
    for (name, message, kind) in [
        ("overloaded_error", "Overloaded", ModelErrorKind::Unavailable),
        ("rate_limit_error", "slow", ModelErrorKind::RateLimited { retry_after: None }),
        ("authentication_error", "key sk-1", ModelErrorKind::Auth),
        ("permission_error", "no", ModelErrorKind::Auth),
        ("invalid_request_error", "prompt is too long: 3 > 2", ModelErrorKind::ContextExceeded),
        ("invalid_request_error", "text: secret", ModelErrorKind::Other),
        ("api_error", "Internal server error", ModelErrorKind::Other),
    ] {
        let error = json!({"type": "error", "error": {"type": name, "message": message}});
        let expected =
            ModelError { kind, cause: format!("the answer holds an error, type {name}") };
        let stream = format!("{START}event: error\ndata: {error}\n\n{STOP}");
        assert_eq!(broken(&stream), (vec![], expected));
    }
}

#[test]
fn an_error_without_its_frame_is_one() {
    let cause = "the answer holds an error, type overloaded_error".to_owned();
    let error = ModelError { kind: ModelErrorKind::Unavailable, cause };
    let bare = json!({"error": {"type": "overloaded_error", "message": "x"}});
    assert_eq!(broken(&format!("{START}data: {bare}")), (vec![], error.clone()));
    assert_eq!(broken(&format!("event: error\ndata: {bare}")), (vec![], error));
}

#[test]
fn thinking_ends_at_the_latest_where_another_block_begins() {
    let start = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let stream = [
        start(0, json!({"type": "thinking", "thinking": "hm"})),
        start(1, json!({"type": "thinking", "thinking": ""})),
        start(2, json!({"type": "text", "text": "So."})),
        start(2, json!({"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}})),
        json!({"type": "message_stop"}),
    ];
    let stream: String = stream.iter().map(|data| format!("data: {data}\n\n")).collect();
    let expected = [
        thought("hm"),
        thinking_end(None),
        said("So."),
        self::start(0, "t", "f"),
        delta(0, r#"{"a":1}"#),
        end(0),
        ModelEvent::Finish(FinishReason::ToolCalls),
    ];
    assert_eq!(events(&stream), expected);
}

#[test]
fn data_that_is_no_json_ends_the_answer() {
    let cause = "the answer is data that is not JSON".to_owned();
    let error = ModelError { kind: ModelErrorKind::Other, cause };
    assert_eq!(broken(&format!("{START}data: {{\"type\"\n\n{STOP}")), (vec![], error));
}

#[test]
fn nothing_is_read_behind_the_end() {
    let (events, end) = read(decoder(), &format!("{STOP}{STOP}data: no json\n\n"));
    assert_eq!((events, end), (vec![ModelEvent::Finish(FinishReason::Stop)], Ok(())));
}

proptest! {
    #[test]
    fn whatever_comes_is_read_in_peace_and_in_order(stream in any_stream(&[
        "type", "index", "delta", "content_block", "usage", "message", "text", "thinking",
        "signature", "data", "id", "name", "input", "partial_json", "stop_reason", "input_tokens",
        "output_tokens", "cache_read_input_tokens", "error", "message_start", "content_block_start",
        "content_block_delta", "content_block_stop", "message_delta", "message_stop", "ping",
        "redacted_thinking", "tool_use", "text_delta", "thinking_delta", "signature_delta",
        "input_json_delta", "end_turn",
    ])) {
        in_order(decoder(), &stream);
    }

    #[test]
    fn blocks_in_any_order_are_read_in_order(stream in prop::collection::vec(any_block_event(), 0..20)) {
        in_order(decoder(), &stream);
    }
}

/// An event as the API has them, where none belongs.
fn any_block_event() -> impl Strategy<Value = Value> {
    let block =
        prop::sample::select(vec!["text", "thinking", "redacted_thinking", "tool_use", "x"]);
    let delta = prop::sample::select(vec![
        "text_delta",
        "thinking_delta",
        "signature_delta",
        "input_json_delta",
        "x",
    ]);
    let start = |(index, kind, text): (u64, &str, String)| {
        json!({"type": "content_block_start", "index": index, "content_block": {
            "type": kind, "text": text, "thinking": text, "data": text, "input": {"a": text},
            "name": text,
        }})
    };
    let go_on = |(index, kind, text): (u64, &str, String)| {
        json!({"type": "content_block_delta", "index": index, "delta": {
            "type": kind, "text": text, "thinking": text, "signature": text, "partial_json": text,
        }})
    };
    prop_oneof![
        (0_u64..3, block, "a{0,1}").prop_map(start),
        (0_u64..3, delta, "a{0,1}").prop_map(go_on),
        (0_u64..3).prop_map(|index| json!({"type": "content_block_stop", "index": index})),
        Just(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})),
    ]
}
