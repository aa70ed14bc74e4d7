//! What comes out alike on every wire, and what the other two wires have of their own.

use serde_json::{Value, json};

use super::{Setup, events, posts, tools};
use crate::support::{
    input,
    model::{
        Answer, Endpoint, Refusing, anthropic,
        dialect::{Dialect, Piece, Usage},
        gemini,
    },
};

#[tokio::test]
async fn text_is_text() {
    for dialect in Dialect::ALL {
        let model = Endpoint::answers([dialect.says(&["hel", "lo"])]).await;
        let server = Setup::at(dialect, &model.url()).serve().await;
        assert_eq!(
            server.run("/agui/a", &input("t", "r")).await,
            events::whole([events::text("id-1", &["hel", "lo"])]),
            "{dialect:?}"
        );
    }
}

#[tokio::test]
async fn thinking_is_reasoning_where_it_is_on_and_nothing_where_not() {
    for dialect in Dialect::ALL {
        let answer = || dialect.answer(&[Piece::Thinking(&["a", "b"]), Piece::Text(&["c"])]);
        let model = Endpoint::answers([answer(), answer()]).await;
        let setup = || Setup::at(dialect, &model.url());
        let signature = (dialect == Dialect::Anthropic).then_some("anthropic.signature:signed");
        let server = setup().agui("enable-reasoning", true).serve().await;
        assert_eq!(
            server.run("/agui/a", &input("t", "r")).await,
            events::whole([
                events::thinking("id-1", &["a", "b"], signature),
                events::text("id-2", &["c"]),
            ]),
            "{dialect:?}"
        );
        let events = setup().serve().await.run("/agui/a", &input("t", "r")).await;
        assert_eq!(events, events::whole([events::text("id-1", &["c"])]), "{dialect:?}");
    }
}

#[tokio::test]
async fn a_tool_is_called_and_its_result_goes_back_to_the_model() {
    for dialect in Dialect::ALL {
        let tools = tools().await;
        let usage = Usage { input: 10, cached: None, output: 3 };
        let first = dialect.answer(&[
            Piece::Text(&["wait"]),
            Piece::Call("c1", "add", r#"{"n":1}"#),
            Piece::Usage(usage),
        ]);
        let then = dialect.answer(&[Piece::Text(&["done"]), Piece::Usage(usage)]);
        let model = Endpoint::answers([first, then]).await;
        let server = Setup::at(dialect, &model.url()).tool(posts(&tools, "add")).serve().await;
        let events = server.run("/agui/a", &input("t", "r")).await;
        // Gemini has no ids, so the server gives the call one.
        let call = if dialect == Dialect::Gemini { id_of_call(&events) } else { "c1".to_owned() };
        let usage = json!({"inputTokens": 20, "outputTokens": 6, "totalTokens": 26});
        let expected = events::run(
            events::started("t", "r"),
            [
                events::text("id-1", &["wait"]),
                events::call("id-1", &call, "add", &[r#"{"n":1}"#]),
                events::result(result_message(&events), &call, r#"/add {"n":1}"#),
                events::text(last_message(&events), &["done"]),
            ],
            events::costing(events::success("t", "r"), usage),
        );
        assert_eq!(events, expected, "{dialect:?}");
        assert_eq!(
            conversation(dialect, &model.bodies()[1]),
            expected_conversation(dialect, &call),
            "{dialect:?}"
        );
        assert_eq!(tools.bodies(), [json!({"n": 1})]);
    }
}

fn id_of_call(events: &[Value]) -> String {
    let start = events.iter().find(|event| event["type"] == "TOOL_CALL_START").unwrap();
    start["toolCallId"].as_str().unwrap().to_owned()
}

fn result_message(events: &[Value]) -> &str {
    let result = events.iter().find(|event| event["type"] == "TOOL_CALL_RESULT").unwrap();
    result["messageId"].as_str().unwrap()
}

fn last_message(events: &[Value]) -> &str {
    let start = events.iter().rfind(|event| event["type"] == "TEXT_MESSAGE_START").unwrap();
    start["messageId"].as_str().unwrap()
}

/// What a request says of the conversation.
fn conversation(dialect: Dialect, body: &Value) -> Value {
    match dialect {
        Dialect::OpenAi | Dialect::Anthropic => body["messages"].clone(),
        Dialect::Gemini => body["contents"].clone(),
    }
}

fn expected_conversation(dialect: Dialect, call: &str) -> Value {
    let (arguments, result) = (json!({"n": 1}), r#"/add {"n":1}"#);
    match dialect {
        Dialect::OpenAi => json!([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "wait", "tool_calls": [{
                "id": "c1", "type": "function",
                "function": {"name": "add", "arguments": r#"{"n":1}"#},
            }]},
            {"role": "tool", "tool_call_id": "c1", "content": result},
        ]),
        Dialect::Anthropic => json!([
            {"role": "user", "content": [{"type": "text", "text": "hello"}]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "wait"},
                {"type": "tool_use", "id": "c1", "name": "add", "input": arguments},
            ]},
            {"role": "user", "content": [{
                "type": "tool_result", "tool_use_id": "c1",
                "content": [{"type": "text", "text": result}],
            }]},
        ]),
        Dialect::Gemini => json!([
            {"role": "user", "parts": [{"text": "hello"}]},
            {"role": "model", "parts": [
                {"text": "wait"}, {"functionCall": {"id": call, "name": "add", "args": arguments}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"id": call, "name": "add", "response": {"result": result}}},
            ]},
        ]),
    }
}

#[tokio::test]
async fn usage_is_counted_as_the_protocol_has_it() {
    for dialect in Dialect::ALL {
        for cached in [None, Some(4)] {
            let usage = Usage { input: 10, cached, output: 3 };
            let answer = dialect.answer(&[Piece::Text(&["x"]), Piece::Usage(usage)]);
            let model = Endpoint::answers([answer]).await;
            let server = Setup::at(dialect, &model.url()).serve().await;
            let mut usage = json!({"inputTokens": 10, "outputTokens": 3, "totalTokens": 13});
            if let Some(cached) = cached {
                usage["cachedInputTokens"] = cached.into();
            }
            let end = events::costing(events::success("t", "r"), usage);
            assert_eq!(
                server.run("/agui/a", &input("t", "r")).await.last(),
                Some(&end),
                "{dialect:?}"
            );
        }
    }
}

#[tokio::test]
async fn each_kind_of_failure_has_its_code() {
    let auth = ("MODEL_AUTH_ERROR", "The model refused the server's credentials.");
    let limited = ("MODEL_RATE_LIMITED", "The model takes no more requests for now.");
    let away = ("MODEL_UNAVAILABLE", "The model cannot be reached.");
    let other = ("MODEL_ERROR", "The model failed.");
    for dialect in Dialect::ALL {
        let cases =
            [(401, auth), (403, auth), (429, limited), (500, other), (503, away), (400, other)];
        for (status, (code, message)) in cases {
            let model = Endpoint::answers([dialect.failure(status, "no, sk-test")]).await;
            let server = Setup::at(dialect, &model.url()).serve().await;
            assert_eq!(
                server.run("/agui/a", &input("t", "r")).await,
                events::failed([], events::error(code, message)),
                "{dialect:?} {status}"
            );
        }
        let refusing = Refusing::new();
        let server = Setup::at(dialect, &refusing.url()).serve().await;
        assert_eq!(
            server.run("/agui/a", &input("t", "r")).await,
            events::failed([], events::error(away.0, away.1)),
            "{dialect:?}"
        );
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_an_error_behind_what_was_said() {
    for dialect in Dialect::ALL {
        let whole = || dialect.says(&["half", "more"]);
        // Inside of the frame that says `more`.
        let cut = whole().len_before("more");
        let answers = [whole().cut_after(cut), whole().ended_after(cut)];
        for answer in answers {
            let model = Endpoint::answers([answer]).await;
            let server = Setup::at(dialect, &model.url()).serve().await;
            let error = events::error("MODEL_ERROR", "The model failed.");
            assert_eq!(
                server.run("/agui/a", &input("t", "r")).await,
                events::failed([events::text("id-1", &["half"])], error),
                "{dialect:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_conversation_that_is_too_long_has_a_code_of_its_own() {
    let too_long = [
        (
            Dialect::OpenAi,
            json!({"error": {
                "message": "This model's maximum context length is 8192 tokens.",
                "type": "invalid_request_error", "code": "context_length_exceeded",
            }}),
        ),
        (
            Dialect::Anthropic,
            anthropic::error(
                "invalid_request_error",
                "prompt is too long: 201000 tokens > 200000 maximum",
            ),
        ),
        (
            Dialect::Gemini,
            gemini::error(
                400,
                "INVALID_ARGUMENT",
                "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).",
            ),
        ),
    ];
    for (dialect, body) in too_long {
        let model = Endpoint::answers([Answer::json(400, &body)]).await;
        let server = Setup::at(dialect, &model.url()).serve().await;
        let error =
            events::error("MODEL_CONTEXT_EXCEEDED", "The conversation is too long for the model.");
        assert_eq!(
            server.run("/agui/a", &input("t", "r")).await,
            events::failed([], error),
            "{dialect:?}"
        );
    }
}

#[tokio::test]
async fn requests_have_the_form_and_the_key_of_their_wire() {
    let of = async |dialect: Dialect| {
        let model = Endpoint::answers([dialect.says(&["x"])]).await;
        Setup::at(dialect, &model.url()).serve().await.run("/agui/a", &input("t", "r")).await;
        model.request(0).await
    };
    let openai = of(Dialect::OpenAi).await;
    assert_eq!(openai.path, "/v1/chat/completions");
    assert_eq!(openai.header("authorization"), Some("Bearer sk-test"));
    assert_eq!(
        openai.body,
        json!({
            "model": "m", "stream": true, "stream_options": {"include_usage": true},
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "hello"},
            ],
        })
    );
    let anthropic = of(Dialect::Anthropic).await;
    assert_eq!(anthropic.path, "/v1/messages");
    assert_eq!(anthropic.header("x-api-key"), Some("sk-test"));
    assert_eq!(anthropic.header("anthropic-version"), Some("2023-06-01"));
    let mut body = anthropic.body.clone();
    assert!(body["max_tokens"].take().as_u64().is_some_and(|tokens| tokens > 0));
    assert_eq!(
        body,
        json!({
            "model": "m", "stream": true, "max_tokens": null, "system": "Be brief.",
            "messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}],
        })
    );
    let gemini = of(Dialect::Gemini).await;
    assert_eq!(gemini.path, "/v1beta/models/m:streamGenerateContent?alt=sse");
    assert_eq!(gemini.header("x-goog-api-key"), Some("sk-test"));
    assert_eq!(
        gemini.body,
        json!({
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
            "contents": [{"role": "user", "parts": [{"text": "hello"}]}],
        })
    );
}

#[tokio::test]
async fn anthropic_streams_arguments_as_they_form_between_pings() {
    let tools = tools().await;
    let ping = || anthropic::event(json!({"type": "ping"}));
    let mut frames =
        vec![anthropic::start(&json!({"input_tokens": 5, "output_tokens": 1})), ping()];
    frames.extend(anthropic::call(0, "toolu_1", "add", &["", "{\"a\"", ": 1}"]));
    frames.push(ping());
    frames.extend(anthropic::call(1, "toolu_2", "add", &[]));
    frames.extend(anthropic::end("tool_use", &json!({"output_tokens": 9})));
    let answers = [anthropic::answer(frames), Dialect::Anthropic.says(&["done"])];
    let model = Endpoint::answers(answers).await;
    let setup = Setup::at(Dialect::Anthropic, &model.url()).tool(posts(&tools, "add")).one_by_one();
    let usage = json!({"inputTokens": 5, "outputTokens": 9, "totalTokens": 14});
    assert_eq!(
        setup.serve().await.run("/agui/a", &input("t", "r")).await,
        events::run(
            events::started("t", "r"),
            [
                vec![
                    events::call_start("id-1", "toolu_1", "add"),
                    events::args("toolu_1", "{\"a\""),
                    events::args("toolu_1", ": 1}"),
                    events::call_start("id-1", "toolu_2", "add"),
                    events::call_end("toolu_1"),
                    events::call_end("toolu_2"),
                ],
                events::result("id-2", "toolu_1", r#"/add {"a":1}"#),
                events::result("id-3", "toolu_2", "/add {}"),
                events::text("id-4", &["done"]),
            ],
            events::costing(events::success("t", "r"), usage),
        )
    );
}

#[tokio::test]
async fn an_error_in_the_stream_ends_the_run_with_its_own_kind() {
    let overloaded = [
        anthropic::event(anthropic::error("overloaded_error", "Overloaded")),
        anthropic::event(json!({"type": "message_stop"})),
    ];
    let frames = [anthropic::start(&Value::Null)].into_iter().chain(anthropic::text(0, &["half"]));
    let anthropic = anthropic::answer(frames.chain(overloaded));
    let frames = [gemini::text("half"), gemini::error(503, "UNAVAILABLE", "busy")];
    let gemini = gemini::answer(frames);
    for (dialect, answer) in [(Dialect::Anthropic, anthropic), (Dialect::Gemini, gemini)] {
        let model = Endpoint::answers([answer]).await;
        let server = Setup::at(dialect, &model.url()).serve().await;
        let error = events::error("MODEL_UNAVAILABLE", "The model cannot be reached.");
        assert_eq!(
            server.run("/agui/a", &input("t", "r")).await,
            events::failed([events::text("id-1", &["half"])], error),
            "{dialect:?}"
        );
    }
}

#[tokio::test]
async fn answers_may_come_byte_by_byte() {
    for dialect in Dialect::ALL {
        let answer = dialect.answer(&[
            Piece::Thinking(&["你", "好"]),
            Piece::Text(&["😀", "é"]),
            Piece::Call("c1", "paint", r#"{"c":"青"}"#),
        ]);
        let model = Endpoint::answers([answer.bytewise()]).await;
        let server = Setup::at(dialect, &model.url()).serve().await;
        let mut input = input("t", "r");
        input["tools"] = json!([super::frontend("paint")]);
        let events = server.run("/agui/a", &input).await;
        let call = id_of_call(&events);
        let expected = events::run(
            events::started("t", "r"),
            [
                events::text("id-1", &["😀", "é"]),
                events::call("id-1", &call, "paint", &[r#"{"c":"青"}"#]),
            ],
            events::pending(&[&call]),
        );
        assert_eq!(events, expected, "{dialect:?}");
    }
}
