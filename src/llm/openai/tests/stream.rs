//! What the chunks of an answer mean.

use agui_adapter::model::{event::ModelUsage, msg::MediaSource};

use super::*;
use crate::llm::{FinishReason, ModelError};

/// What an answer means, and how it failed.
fn read_with(
    wire: &OpenAi,
    tools: Vec<FunctionSpec>,
    frames: &[Value],
    done: bool,
) -> (Vec<ModelEvent>, Result<(), ModelError>) {
    let request = ModelRequest { tools: tools.into(), ..ModelRequest::default() };
    let mut decoder = wire.decoder(&request);
    let mut out = Vec::new();
    for frame in frames {
        let text = frame.as_str().map_or_else(|| frame.to_string(), str::to_owned);
        if let Err(error) = decoder.on_event(None, &text, &mut out) {
            return (out, Err(error));
        }
    }
    let end =
        if done { decoder.on_event(None, "[DONE]", &mut out) } else { decoder.on_end(&mut out) };
    (out, end)
}

/// The events of an answer that ends with `[DONE]`.
fn read(frames: &[Value]) -> Vec<ModelEvent> {
    let (events, end) = read_with(&OpenAi::new(&config()), Vec::new(), frames, true);
    assert_eq!(end, Ok(()));
    events
}

/// The failure of an answer, and the events before it.
fn failed(frames: &[Value], done: bool) -> (Vec<ModelEvent>, ModelErrorKind, String) {
    let (events, end) = read_with(&OpenAi::new(&config()), Vec::new(), frames, done);
    let error = end.unwrap_err();
    (events, error.kind, error.cause)
}

fn delta(delta: Value) -> Value {
    json!({"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]})
}

fn calls(pieces: Value) -> Value {
    delta(json!({"tool_calls": pieces}))
}

fn end(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn text(text: &str) -> ModelEvent {
    ModelEvent::Text(text.to_owned())
}

fn thinking(text: &str) -> ModelEvent {
    ModelEvent::Thinking(text.to_owned())
}

fn start(index: usize, id: &str, name: &str) -> ModelEvent {
    ModelEvent::CallStart { index, id: id.to_owned(), name: name.to_owned() }
}

fn args(index: usize, delta: &str) -> ModelEvent {
    ModelEvent::CallDelta { index, delta: delta.to_owned() }
}

fn call_end(index: usize) -> ModelEvent {
    ModelEvent::CallEnd { index, encrypted: None }
}

fn finish(reason: FinishReason) -> ModelEvent {
    ModelEvent::Finish(reason)
}

/// Two interleaved calls of two fragments each, as every provider says it that keeps index.
fn two_calls() -> Vec<ModelEvent> {
    vec![
        start(0, "a", "f"),
        args(0, "{\"x\""),
        start(1, "b", "g"),
        args(1, "{\"y\""),
        args(0, ":1}"),
        args(1, ":2}"),
        call_end(0),
        call_end(1),
        finish(FinishReason::ToolCalls),
    ]
}

/// The first piece of a call and a further one; `None` = the member is not there.
fn interleaved(id: Option<Value>, name: Option<Value>) -> Vec<Value> {
    let first = |index: u64, id: &str, name: &str, arguments: &str| {
        calls(json!([{"index": index, "id": id, "type": "function",
            "function": {"name": name, "arguments": arguments}}]))
    };
    let further = |index: u64, own_id: &str, own_name: &str, arguments: &str| {
        let mut piece = json!({"index": index, "function": {"arguments": arguments}});
        let own =
            |value: &Value, own: &str| if value == "own" { own.into() } else { value.clone() };
        if let Some(id) = &id {
            piece["id"] = own(id, own_id);
        }
        if let Some(name) = &name {
            piece["function"]["name"] = own(name, own_name);
        }
        calls(json!([piece]))
    };
    vec![
        delta(json!({"role": "assistant", "content": null})),
        first(0, "a", "f", "{\"x\""),
        first(1, "b", "g", "{\"y\""),
        further(0, "a", "f", ":1}"),
        further(1, "b", "g", ":2}"),
        end("tool_calls"),
    ]
}

#[test]
fn text_comes_as_it_forms_and_nothing_empty_does() {
    let events = read(&[
        delta(json!({"role": "assistant", "content": ""})),
        delta(json!({"content": "Hel"})),
        delta(json!({"content": ""})),
        delta(json!({"content": " "})),
        delta(json!({"content": null})),
        delta(json!({"content": "lo"})),
        end("stop"),
    ]);
    assert_eq!(events, [text("Hel"), text(" "), text("lo"), finish(FinishReason::Stop)]);
}

#[test]
fn fragments_find_their_call_whatever_they_repeat() {
    let own = || Some(json!("own"));
    for (id, name) in [
        (None, None),
        (Some(json!("")), Some(json!(""))),
        (Some(Value::Null), Some(Value::Null)),
        (own(), own()),
        (own(), None),
        (None, own()),
        // An id of its own for each piece.
        (Some(json!("another")), None),
    ] {
        let frames = interleaved(id.clone(), name.clone());
        assert_eq!(read(&frames), two_calls(), "{id:?} {name:?}");
    }
}

#[test]
fn an_index_may_be_a_string_or_skip_numbers() {
    let frames = interleaved(None, None).into_iter().map(|frame| {
        let text = frame.to_string();
        let odd = text.replace("[{\"index\":1,", "[{\"index\":\"7\",");
        serde_json::from_str(&odd).unwrap()
    });
    assert_eq!(read(&frames.collect::<Vec<Value>>()), two_calls());
}

#[test]
fn whole_calls_come_in_one_chunk_even_with_the_end() {
    let whole = json!({"choices": [{"delta": {"tool_calls": [
        {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\":1}"}},
        {"index": 1, "id": "b", "function": {"name": "g", "arguments": ""}},
    ]}, "finish_reason": "tool_calls"}]});
    let expected = [
        start(0, "a", "f"),
        args(0, "{\"x\":1}"),
        start(1, "b", "g"),
        call_end(0),
        call_end(1),
        finish(FinishReason::ToolCalls),
    ];
    assert_eq!(read(&[whole]), expected);
}

#[test]
fn a_new_id_under_a_used_index_is_another_call() {
    let expected = [
        start(0, "a", "f"),
        args(0, "{\"x\":1}"),
        start(1, "b", "g"),
        args(1, "{\"y\""),
        args(1, ":2}"),
        call_end(0),
        call_end(1),
        finish(FinishReason::ToolCalls),
    ];
    let frames = [
        calls(
            json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\":1}"}}]),
        ),
        calls(json!([{"index": 0, "id": "b", "function": {"name": "g", "arguments": "{\"y\""}}])),
        calls(json!([{"index": 0, "function": {"arguments": ":2}"}}])),
        end("tool_calls"),
    ];
    assert_eq!(read(&frames), expected);
}

#[test]
fn whole_calls_without_ids_are_told_apart_by_their_arguments() {
    let whole =
        |name: &str| json!({"index": 0, "id": "", "function": {"name": name, "arguments": "{}"}});
    let expected = [
        start(0, "", "f"),
        args(0, "{}"),
        start(1, "", "f"),
        args(1, "{}"),
        call_end(0),
        call_end(1),
        finish(FinishReason::ToolCalls),
    ];
    assert_eq!(
        read(&[calls(json!([whole("f")])), calls(json!([whole("f")])), end("stop")]),
        expected
    );
    let bare = json!({"function": {"name": "f", "arguments": {}}});
    assert_eq!(read(&[calls(json!([bare.clone(), bare])), end("tool_calls")]), expected);
}

#[test]
fn without_an_index_an_id_leads_to_the_call_else_the_last_one_goes_on() {
    let piece = |id: Option<&str>, name: Option<&str>, arguments: &str| {
        let mut piece = json!({"function": {"arguments": arguments}});
        id.inspect(|id| piece["id"] = (*id).into());
        name.inspect(|name| piece["function"]["name"] = (*name).into());
        calls(json!([piece]))
    };
    let by_id = [
        piece(Some("a"), Some("f"), "{"),
        piece(Some("b"), Some("g"), "["),
        piece(Some("a"), None, "}"),
        piece(Some("b"), None, "]"),
        end("tool_calls"),
    ];
    let expected = |deltas: [ModelEvent; 2]| {
        let mut events = vec![start(0, "a", "f"), args(0, "{"), start(1, "b", "g"), args(1, "[")];
        events.extend(deltas);
        events.extend([call_end(0), call_end(1), finish(FinishReason::ToolCalls)]);
        events
    };
    assert_eq!(read(&by_id), expected([args(0, "}"), args(1, "]")]));
    let by_place = [
        piece(Some("a"), Some("f"), "{"),
        piece(Some("b"), Some("g"), "["),
        piece(None, None, "}"),
        piece(None, None, "]"),
        end("tool_calls"),
    ];
    assert_eq!(read(&by_place), expected([args(1, "}"), args(1, "]")]));
}

#[test]
fn a_call_is_told_of_once_its_name_is_known() {
    let frames = [
        calls(json!([{"index": 0, "id": "a"}])),
        calls(json!([{"index": 0, "function": {"arguments": "{\"x\""}}])),
        calls(json!([{"index": 0, "function": {"name": "f", "arguments": ":"}}])),
        calls(json!([{"index": 0, "function": {"arguments": "1}"}}])),
        end("tool_calls"),
    ];
    let expected = [
        start(0, "a", "f"),
        args(0, "{\"x\":"),
        args(0, "1}"),
        call_end(0),
        finish(FinishReason::ToolCalls),
    ];
    assert_eq!(read(&frames), expected);
    let nameless =
        [calls(json!([{"index": 0, "id": "a", "function": {"arguments": "{}"}}])), end("stop")];
    let expected = [start(0, "a", ""), args(0, "{}"), call_end(0), finish(FinishReason::ToolCalls)];
    assert_eq!(read(&nameless), expected);
    let nothing =
        [calls(json!([{"index": 0, "function": {"name": "", "arguments": ""}}])), end("stop")];
    assert_eq!(read(&nothing), [finish(FinishReason::Stop)]);
}

#[test]
fn the_older_function_call_is_a_call() {
    let frames = [
        delta(json!({"function_call": {"name": "f", "arguments": ""}})),
        delta(json!({"function_call": {"arguments": "{}"}})),
        end("function_call"),
    ];
    let expected = [start(0, "", "f"), args(0, "{}"), call_end(0), finish(FinishReason::ToolCalls)];
    assert_eq!(read(&frames), expected);
}

#[test]
fn encoded_names_come_back_as_the_tools_are_called() {
    let tools = vec![spec("docs.search", json!({}))];
    let encoded = names::encode("docs.search").into_owned();
    let frames = [
        calls(json!([{"index": 0, "id": "a", "function": {"name": encoded, "arguments": "{}"}}])),
        end("tool_calls"),
    ];
    let (events, _) = read_with(&OpenAi::new(&config()), tools, &frames, true);
    assert_eq!(events.first(), Some(&start(0, "a", "docs.search")));
}

#[test]
fn reasoning_comes_from_either_field() {
    for (field, back) in [("reasoning_content", "reasoning_content"), ("reasoning", "reasoning")] {
        let wire = OpenAi::new(&config());
        let frames = [
            delta(json!({"role": "assistant", "content": "", field: ""})),
            delta(json!({"content": null, field: "Let me"})),
            delta(json!({field: " see", "content": ""})),
            delta(json!({"content": "Yes", field: null})),
            end("stop"),
        ];
        let (events, end) = read_with(&wire, Vec::new(), &frames, true);
        assert_eq!(end, Ok(()));
        let expected =
            [thinking("Let me"), thinking(" see"), text("Yes"), finish(FinishReason::Stop)];
        assert_eq!(events, expected);
        assert_eq!(wire.reasoning.name(), back);
    }
    let both = [delta(json!({"reasoning_content": "a", "reasoning": "a"})), end("stop")];
    assert_eq!(read(&both), [thinking("a"), finish(FinishReason::Stop)]);
}

#[test]
fn reasoning_details_are_put_together_and_go_out_when_the_thinking_ends() {
    let frames = [
        delta(json!({"reasoning": "One", "reasoning_details":
            [{"type": "reasoning.text", "text": "One", "index": 0, "format": "x", "signature": null}]})),
        delta(json!({"reasoning": " two", "reasoning_details":
            [{"type": "reasoning.text", "text": " two", "index": 0}]})),
        delta(json!({"reasoning_details":
            [{"type": "reasoning.text", "signature": "sig", "index": 0}]})),
        delta(json!({"content": "Hi"})),
        delta(json!({"reasoning_details": [{"type": "reasoning.encrypted", "data": "AA=="}]})),
        end("stop"),
    ];
    let first = r#"openai.reasoning_details:[{"type":"reasoning.text","text":"One two","index":0,"format":"x","signature":"sig"}]"#;
    let second = r#"openai.reasoning_details:[{"type":"reasoning.encrypted","data":"AA=="}]"#;
    let expected = [
        thinking("One"),
        thinking(" two"),
        ModelEvent::ThinkingEnd { encrypted: Some(first.to_owned()) },
        text("Hi"),
        ModelEvent::ThinkingEnd { encrypted: Some(second.to_owned()) },
        finish(FinishReason::Stop),
    ];
    assert_eq!(read(&frames), expected);
    let only = [
        delta(json!({"reasoning_details": [{"type": "reasoning.summary", "summary": "Sum"}]})),
        end("stop"),
    ];
    assert_eq!(read(&only).first(), Some(&thinking("Sum")));
}

#[test]
fn what_belongs_to_a_call_comes_at_its_end() {
    let extra = json!({"google": {"thought_signature": "c2ln"}});
    let frames = [
        calls(json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"},
            "extra_content": extra}])),
        end("tool_calls"),
    ];
    let sealed = r#"openai.extra_content:{"google":{"thought_signature":"c2ln"}}"#;
    let expected = [
        start(0, "a", "f"),
        args(0, "{}"),
        ModelEvent::CallEnd { index: 0, encrypted: Some(sealed.to_owned()) },
        finish(FinishReason::ToolCalls),
    ];
    assert_eq!(read(&frames), expected);
}

#[test]
fn parts_refusals_pictures_and_transcripts_are_said_as_well() {
    let frames = [
        delta(json!({"content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]},
            {"type": "text", "text": "So"},
        ]})),
        delta(json!({"refusal": "No."})),
        delta(json!({"audio": {"id": "x", "transcript": "spoken"}})),
        delta(json!({"images": [
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
        ]})),
        end("stop"),
    ];
    let picture =
        MediaSource::Base64 { media_type: "image/png".to_owned(), data: "iVBORw0KGgo=".to_owned() };
    let expected = [
        thinking("Hm"),
        text("So"),
        text("No."),
        text("spoken"),
        ModelEvent::Media(picture),
        finish(FinishReason::Stop),
    ];
    assert_eq!(read(&frames), expected);
}

#[test]
fn the_last_usage_counts_wherever_it_stands() {
    let usage = |output: u64| {
        json!({
            "prompt_tokens": 10, "completion_tokens": output, "total_tokens": 10 + output,
            "prompt_tokens_details": {"cached_tokens": 4},
            "completion_tokens_details": {"reasoning_tokens": 2},
        })
    };
    let expected = ModelUsage {
        input: Some(10),
        output: Some(5),
        cache_read: Some(4),
        reasoning: Some(2),
        total: Some(15),
        ..ModelUsage::default()
    };
    let expected = [text("Hi"), ModelEvent::Usage(expected), finish(FinishReason::Stop)];
    let hi = || delta(json!({"content": "Hi"}));
    let last = [hi(), end("stop"), json!({"choices": [], "usage": usage(5)})];
    assert_eq!(read(&last), expected);
    let mut beside = end("stop");
    beside["usage"] = usage(5);
    assert_eq!(read(&[hi(), beside]), expected);
    let mut first = hi();
    first["usage"] = usage(1);
    let twice = [
        first,
        end("stop"),
        json!({"choices": [], "usage": usage(5)}),
        json!({"choices": [], "usage": null}),
    ];
    assert_eq!(read(&twice), expected);
    let inside = json!({"choices": [{"delta": {}, "finish_reason": "stop", "usage": usage(5)}]});
    assert_eq!(read(&[hi(), inside]), expected);
    let groq = [hi(), end("stop"), json!({"choices": [], "x_groq": {"usage": usage(5)}})];
    assert_eq!(read(&groq), expected);
}

#[test]
fn what_nobody_counted_is_unknown() {
    let hi = || delta(json!({"content": "Hi"}));
    let none = [text("Hi"), finish(FinishReason::Stop)];
    assert_eq!(read(&[hi(), end("stop")]), none);
    assert_eq!(read(&[hi(), end("stop"), json!({"choices": [], "usage": {}})]), none);
    let some = [
        hi(),
        end("stop"),
        json!({"choices": [], "usage": {"prompt_tokens": 0, "completion_tokens": 3.0}}),
    ];
    let usage = ModelUsage { input: Some(0), output: Some(3), ..ModelUsage::default() };
    assert_eq!(read(&some), [text("Hi"), ModelEvent::Usage(usage), finish(FinishReason::Stop)]);
}

#[test]
fn every_reason_is_told() {
    for (reason, expected) in [
        ("stop", FinishReason::Stop),
        ("length", FinishReason::Length),
        ("content_filter", FinishReason::ContentFilter),
        ("tool_calls", FinishReason::ToolCalls),
        ("eos", FinishReason::Other("eos".to_owned())),
    ] {
        assert_eq!(read(&[end(reason)]), [finish(expected)], "{reason}");
    }
    let never = [
        json!({"choices": [{"delta": {"content": "a"}, "finish_reason": ""}]}),
        json!({"choices": [{"delta": {"content": "b"}, "finish_reason": "null"}]}),
    ];
    assert_eq!(read(&never), [text("a"), text("b"), finish(FinishReason::Stop)]);
}

#[test]
fn an_end_needs_a_reason_or_a_done() {
    let wire = OpenAi::new(&config());
    let (events, ended) =
        read_with(&wire, Vec::new(), &[delta(json!({"content": "a"})), end("stop")], false);
    assert_eq!((events, ended), (vec![text("a"), finish(FinishReason::Stop)], Ok(())));
    let cut = failed(&[delta(json!({"content": "a"}))], false);
    let cause = "the answer ends without a reason".to_owned();
    assert_eq!(cut, (vec![text("a")], ModelErrorKind::Other, cause));
    let empty = failed(&[], true);
    assert_eq!(empty, (vec![], ModelErrorKind::Other, "the answer is empty".to_owned()));
}

#[test]
fn a_failure_costs_what_it_cost() {
    let mut first = delta(json!({"content": "a"}));
    first["usage"] = json!({"prompt_tokens": 7});
    let usage = ModelUsage { input: Some(7), ..ModelUsage::default() };
    let (events, ..) = failed(&[first], false);
    assert_eq!(events, [text("a"), ModelEvent::Usage(usage)]);
}

#[test]
fn an_error_inside_of_the_answer_ends_it() {
    let limited = ModelErrorKind::RateLimited { retry_after: None };
    for (frame, kind, cause) in [
        (json!({"error": {"message": "secret", "code": 429}}), limited, ", code 429"),
        (
            json!({"error": {"message": "secret", "type": "server_error", "code": "boom"}}),
            ModelErrorKind::Other,
            ", type server_error, code boom",
        ),
        (json!({"error": "secret"}), ModelErrorKind::Other, ""),
        (
            json!({"choices": [], "error": {"code": 502, "message": "secret"}}),
            ModelErrorKind::Unavailable,
            ", code 502",
        ),
        (
            json!({"object": "error", "message": "maximum context length is 4", "code": 400}),
            ModelErrorKind::ContextExceeded,
            ", code 400",
        ),
        (
            json!({"code": "InvalidApiKey", "message": "secret", "request_id": "x"}),
            ModelErrorKind::Auth,
            ", code InvalidApiKey",
        ),
    ] {
        let read = failed(&[delta(json!({"content": "a"})), frame], true);
        let cause = format!("the answer holds an error{cause}");
        assert_eq!(read, (vec![text("a")], kind, cause));
    }
    let reason = failed(&[end("error")], true);
    let cause = "the answer ends with an error".to_owned();
    assert_eq!(reason, (vec![], ModelErrorKind::Other, cause));
    let null = [json!({"error": null, "choices": [{"delta": {"content": "a"}}]}), end("stop")];
    assert_eq!(read(&null), [text("a"), finish(FinishReason::Stop)]);
}

#[test]
fn an_event_named_error_is_one_in_whichever_form() {
    let wire = OpenAi::new(&config());
    for data in ["out of memory", r#"{"detail":"out of memory"}"#] {
        let mut decoder = wire.decoder(&ModelRequest::default());
        let error = decoder.on_event(Some("error"), data, &mut Vec::new()).unwrap_err();
        assert_eq!(error.cause, "the answer holds an error", "{data}");
    }
}

#[test]
fn a_line_that_is_no_json_ends_the_answer_and_is_not_quoted() {
    let (events, kind, cause) =
        failed(&[delta(json!({"content": "a"})), json!("{\"secret"), end("stop")], true);
    assert_eq!(events, [text("a")]);
    assert_eq!(kind, ModelErrorKind::Other);
    assert_eq!(cause, "a chunk is no JSON of a chat completion (column 8)");
}

#[test]
fn chunks_that_say_nothing_are_passed_over() {
    let frames = [
        json!({"choices": []}),
        json!({}),
        json!({"type": "ping"}),
        json!({"choices": [], "prompt_filter_results": [{"prompt_index": 0}]}),
        json!({"choices": null}),
        json!({"choices": [{"delta": null}]}),
        json!({"choices": [{"delta": {"content": "a"}}, {"delta": {"content": "other answer"}}]}),
        end("stop"),
    ];
    assert_eq!(read(&frames), [text("a"), finish(FinishReason::Stop)]);
}

#[test]
fn halves_of_a_pair_are_replaced() {
    let frames = [
        json!(r#"{"choices":[{"delta":{"content":"\ud83c"}}]}"#),
        json!(r#"{"choices":[{"delta":{"content":"\ud83d"}}]}"#),
        json!(r#"{"choices":[{"delta":{"content":"\ude00"}}]}"#),
        json!(r#"{"choices":[{"delta":{"content":"\ud83d\ude00 \u0000"}}]}"#),
        end("stop"),
    ];
    let expected = [
        text("\u{fffd}"),
        text("\u{fffd}"),
        text("\u{fffd}"),
        text("😀 \0"),
        finish(FinishReason::Stop),
    ];
    assert_eq!(read(&frames), expected);
}

#[test]
fn the_answer_of_a_server_that_does_not_stream_is_read_as_one_chunk() {
    let whole = json!({
        "object": "chat.completion",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": "Hi", "reasoning_content": "Hm",
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                {"id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}},
            ],
        }}],
        "usage": {"prompt_tokens": 1},
    });
    let wire = OpenAi::new(&config());
    let (events, end) = read_with(&wire, Vec::new(), &[whole], false);
    assert_eq!(end, Ok(()));
    let expected = [
        thinking("Hm"),
        text("Hi"),
        start(0, "a", "f"),
        args(0, "{}"),
        start(1, "b", "g"),
        args(1, "{}"),
        call_end(0),
        call_end(1),
        ModelEvent::Usage(ModelUsage { input: Some(1), ..ModelUsage::default() }),
        finish(FinishReason::ToolCalls),
    ];
    assert_eq!(events, expected);
}

#[test]
fn of_several_answers_one_is_read() {
    let piece = |index: u64, text: &str, reason: Value| json!({"index": index, "delta": {"content": text}, "finish_reason": reason});
    let apart = |piece: Value| json!({"choices": [piece]});
    let frames = [
        apart(piece(0, "a", Value::Null)),
        apart(piece(1, "x", Value::Null)),
        json!({"choices": [piece(1, "y", "length".into()), piece(0, "b", Value::Null)]}),
        apart(piece(0, "", "stop".into())),
    ];
    assert_eq!(read(&frames), [text("a"), text("b"), finish(FinishReason::Stop)]);
}

#[test]
fn a_whole_message_behind_its_pieces_is_not_said_again() {
    let whole = json!({"role": "assistant", "content": "ab", "tool_calls": [
        {"id": "c", "function": {"name": "f", "arguments": "{}"}}]});
    let last = json!({"index": 0, "message": whole, "delta": {}, "finish_reason": "stop"});
    let frames = [
        delta(json!({"content": "a"})),
        delta(json!({"content": "b"})),
        json!({"object": "chat.completion", "choices": [last.clone()]}),
    ];
    assert_eq!(read(&frames), [text("a"), text("b"), finish(FinishReason::Stop)]);
    // By itself it is the answer.
    let expected = [
        text("ab"),
        start(0, "c", "f"),
        args(0, "{}"),
        call_end(0),
        finish(FinishReason::ToolCalls),
    ];
    assert_eq!(read(&[json!({"choices": [last]})]), expected);
}

#[test]
fn a_reason_that_is_no_word_is_not_repeated() {
    let other = |word: &str| finish(FinishReason::Other(word.to_owned()));
    for (said, expected) in [("eos", "eos"), ("He said: no", "unknown"), ("sk-test-1", "unknown")] {
        assert_eq!(
            read(&[delta(json!({"content": "a"})), end(said)]),
            [text("a"), other(expected)]
        );
    }
}
