//! Chat completions as their many providers stream them.

use serde_json::{Value, json};

use super::{
    Setup,
    events::{self, args, call_end, call_start},
    posts, tools,
};
use crate::support::{
    input,
    model::{
        Answer, Endpoint, Frame, Framing,
        openai::{self, arguments, call, calls, finish, text},
    },
};

/// The arguments of the calls A and B in their fragments.
const A: [&str; 5] = [r#"{"#, r#""a""#, r#":"#, r#"1"#, r#"}"#];
const B: [&str; 5] = [r#"{"b"#, r#"":"#, r#""#, r#"2"#, r#"}"#];

/// What a run that calls `add` as A and `sub` as B gives, when the model's chunks are these.
async fn two_calls(chunks: Vec<Value>) -> (Vec<Value>, Vec<Value>) {
    let (model, tools) = (
        Endpoint::answers([
            openai::answer(chunks.into_iter().chain([finish("tool_calls")])),
            openai::says(&["done"]),
        ])
        .await,
        tools().await,
    );
    let setup = Setup::new(&model).tool(posts(&tools, "add")).tool(posts(&tools, "sub"));
    let events = setup.one_by_one().serve().await.run("/agui/a", &input("t", "r")).await;
    let mut executed: Vec<_> =
        tools.requests().iter().map(|one| json!([one.path, one.text])).collect();
    executed.sort_by_key(Value::to_string);
    assert_eq!(executed, [json!(["/add", r#"{"a":1}"#]), json!(["/sub", r#"{"b":2}"#])]);
    (events, model.bodies())
}

/// The events behind the calls.
fn results() -> Vec<Vec<Value>> {
    vec![
        events::result("id-2", "A", r#"/add {"a":1}"#),
        events::result("id-3", "B", r#"/sub {"b":2}"#),
        events::text("id-4", &["done"]),
    ]
}

/// The calls with their fragments one by one and in turn.
fn interleaved() -> Vec<Vec<Value>> {
    let mut deltas = vec![call_start("id-1", "A", "add"), args("A", A[0])];
    deltas.extend([call_start("id-1", "B", "sub"), args("B", B[0])]);
    for (a, b) in A.iter().zip(B).skip(1) {
        deltas.push(args("A", a));
        deltas.extend((!b.is_empty()).then(|| args("B", b)));
    }
    deltas.extend([call_end("A"), call_end("B")]);
    let mut all = vec![deltas];
    all.extend(results());
    all
}

/// The chunks of it: the first ones as always, the later ones as `later` has them.
fn fragments(later: impl Fn(usize, &str, &str, &str) -> Value) -> Vec<Value> {
    let mut chunks = vec![call(0, "A", "add", A[0]), call(1, "B", "sub", B[0])];
    for (a, b) in A.iter().zip(B).skip(1) {
        chunks.extend([later(0, "A", "add", a), later(1, "B", "sub", b)]);
    }
    chunks
}

#[tokio::test]
async fn fragments_that_name_their_call_by_its_index_alone_find_it() {
    let (events, requests) = two_calls(fragments(|index, _, _, text| arguments(index, text))).await;
    assert_eq!(events, events::whole(interleaved()));
    let function = |id: &str, name: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    let tool = |name: &str| {
        json!({"type": "function", "function": {
            "name": name, "description": format!("Does {name}."),
            "parameters": {"type": "object", "properties": {}},
        }})
    };
    let mut request = json!({
        "model": "m", "stream": true, "stream_options": {"include_usage": true},
        "messages": [
            {"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"},
        ],
        "tools": [tool("add"), tool("sub")],
    });
    assert_eq!(requests[0], request);
    request["messages"].as_array_mut().unwrap().extend([
        json!({"role": "assistant", "content": null, "tool_calls": [
            function("A", "add", r#"{"a":1}"#), function("B", "sub", r#"{"b":2}"#),
        ]}),
        json!({"role": "tool", "tool_call_id": "A", "content": r#"/add {"a":1}"#}),
        json!({"role": "tool", "tool_call_id": "B", "content": r#"/sub {"b":2}"#}),
    ]);
    assert_eq!(requests[1], request);
    assert_eq!(requests.len(), 2);
}

#[tokio::test]
async fn empty_ids_and_names_in_later_fragments_are_none() {
    let empty = |index, _: &str, _: &str, text: &str| call(index, "", "", text);
    assert_eq!(two_calls(fragments(empty)).await.0, events::whole(interleaved()));
}

#[tokio::test]
async fn nulls_in_later_fragments_are_none() {
    let nulls = |index: usize, _: &str, _: &str, text: &str| {
        calls(json!([{
            "index": index, "id": null, "type": null,
            "function": {"name": null, "arguments": text},
        }]))
    };
    assert_eq!(two_calls(fragments(nulls)).await.0, events::whole(interleaved()));
}

#[tokio::test]
async fn an_id_and_a_name_that_repeat_are_the_same_call() {
    assert_eq!(two_calls(fragments(call)).await.0, events::whole(interleaved()));
}

/// The calls one after the other, each in one piece.
fn whole_calls() -> Vec<Vec<Value>> {
    let mut all = vec![vec![
        call_start("id-1", "A", "add"),
        args("A", r#"{"a":1}"#),
        call_start("id-1", "B", "sub"),
        args("B", r#"{"b":2}"#),
        call_end("A"),
        call_end("B"),
    ]];
    all.extend(results());
    all
}

fn whole_call(index: Option<usize>, id: &str, name: &str, arguments: &str) -> Value {
    let mut call = json!({
        "id": id, "type": "function", "function": {"name": name, "arguments": arguments},
    });
    if let Some(index) = index {
        call["index"] = index.into();
    }
    call
}

#[tokio::test]
async fn whole_calls_in_one_chunk_are_two() {
    let both = calls(json!([
        whole_call(Some(0), "A", "add", r#"{"a":1}"#),
        whole_call(Some(1), "B", "sub", r#"{"b":2}"#),
    ]));
    assert_eq!(two_calls(vec![both]).await.0, events::whole(whole_calls()));
}

#[tokio::test]
async fn whole_calls_with_one_index_and_two_ids_are_two() {
    for index in [Some(0), None] {
        let chunks = vec![
            calls(json!([whole_call(index, "A", "add", r#"{"a":1}"#)])),
            calls(json!([whole_call(index, "B", "sub", r#"{"b":2}"#)])),
        ];
        assert_eq!(two_calls(chunks).await.0, events::whole(whole_calls()));
    }
}

#[tokio::test]
async fn fragments_that_nothing_ties_to_a_call_go_to_the_last_one_and_nothing_runs_with_them() {
    let nameless = |text: &str| calls(json!([{"function": {"arguments": text}}]));
    let chunks = [
        calls(json!([whole_call(None, "A", "add", r#"{"a":"#)])),
        calls(json!([whole_call(None, "B", "sub", r#"{"b":"#)])),
        nameless("1}"),
        nameless("2}"),
        finish("tool_calls"),
    ];
    let model = Endpoint::answers([openai::answer(chunks), openai::says(&["done"])]).await;
    let tools = tools().await;
    let setup = Setup::new(&model).tool(posts(&tools, "add")).tool(posts(&tools, "sub"));
    let events = setup.one_by_one().serve().await.run("/agui/a", &input("t", "r")).await;
    let faults = [
        "The arguments are not valid JSON: EOF while parsing a value at line 1 column 5",
        "The arguments are not valid JSON: trailing characters at line 1 column 8",
    ];
    assert_eq!(
        events,
        events::whole([
            vec![
                call_start("id-1", "A", "add"),
                args("A", r#"{"a":"#),
                call_start("id-1", "B", "sub"),
                args("B", r#"{"b":"#),
                args("B", "1}"),
                args("B", "2}"),
                call_end("A"),
                call_end("B"),
            ],
            events::failed_result("id-2", "A", faults[0]),
            events::failed_result("id-3", "B", faults[1]),
            events::text("id-4", &["done"]),
        ])
    );
    assert_eq!(tools.requests().len(), 0);
}

#[tokio::test]
async fn thinking_comes_in_either_field() {
    for field in [openai::reasoning_content, openai::reasoning] {
        let answer = openai::answer([field("let "), field("me"), text("yes"), finish("stop")]);
        let model = Endpoint::answers([answer]).await;
        let server = Setup::new(&model).agui("enable-reasoning", true).serve().await;
        assert_eq!(
            server.run("/agui/a", &input("t", "r")).await,
            events::whole([
                events::thinking("id-1", &["let ", "me"], None),
                events::text("id-2", &["yes"]),
            ])
        );
    }
}

/// The events of a run whose model gives this answer.
async fn run(answer: Answer) -> Vec<Value> {
    let model = Endpoint::answers([answer]).await;
    Setup::new(&model).serve().await.run("/agui/a", &input("t", "r")).await
}

fn model_error() -> Value {
    events::error("MODEL_ERROR", "The model failed.")
}

#[tokio::test]
async fn a_refused_key_is_an_auth_error() {
    let refused = openai::failure(401, &json!({"message": "no", "code": "invalid_api_key"}));
    let error = events::error("MODEL_AUTH_ERROR", "The model refused the server's credentials.");
    assert_eq!(run(refused).await, events::failed([], error));
}

#[tokio::test]
async fn too_many_requests_are_told_and_tried_again_when_the_model_says() {
    let limited = || openai::failure(429, &json!({"message": "slow", "code": 1302}));
    let error = events::error("MODEL_RATE_LIMITED", "The model takes no more requests for now.");
    assert_eq!(run(limited().header("Retry-After", "7")).await, events::failed([], error));

    let model =
        Endpoint::answers([limited().header("Retry-After", "0"), openai::says(&["hi"])]).await;
    let server = Setup::new(&model).model("max-retries", 1).serve().await;
    let events = server.run("/agui/a", &input("t", "r")).await;
    assert_eq!(events, events::whole([events::text("id-1", &["hi"])]));
    assert_eq!(model.bodies()[0], model.bodies()[1]);
}

#[tokio::test]
async fn a_code_that_is_a_number_keeps_its_status() {
    let answer = openai::failure(403, &json!({"message": "no", "code": 403}));
    let error = events::error("MODEL_AUTH_ERROR", "The model refused the server's credentials.");
    assert_eq!(run(answer).await, events::failed([], error));
}

/// A run that said `half` before its model failed.
fn broken_off() -> Vec<Value> {
    events::failed([events::text("id-1", &["half"])], model_error())
}

#[tokio::test]
async fn a_line_that_is_no_json_ends_the_run() {
    let frames = [text("half").into(), Frame::raw(r#"{"choices":[{"del"#), text("more").into()];
    assert_eq!(run(Answer::events(frames)).await, broken_off());
}

#[tokio::test]
async fn an_error_in_the_stream_ends_the_run() {
    let error = json!({"error": {"message": "overloaded", "code": 500}});
    let frames = [text("half"), error, text("more"), finish("stop")];
    assert_eq!(run(openai::answer(frames)).await, broken_off());
}

#[tokio::test]
async fn an_answer_that_is_cut_is_an_error() {
    assert_eq!(run(Answer::events([text("half")]).cut()).await, broken_off());
}

#[tokio::test]
async fn an_answer_without_done_is_whole_if_it_finished() {
    let finished = Answer::events([text("whole"), finish("stop")]);
    assert_eq!(run(finished).await, events::whole([events::text("id-1", &["whole"])]));
    assert_eq!(run(Answer::events([text("half")])).await, broken_off());
}

#[tokio::test]
async fn every_spelling_of_events_says_the_same() {
    let frames = || [text("a\n"), text("b"), finish("stop")].map(Frame::from);
    let done = || frames().into_iter().chain([Frame::raw("[DONE]")]);
    let expected = events::whole([events::text("id-1", &["a\n", "b"])]);
    for framing in [Framing::Lf, Framing::CrLf, Framing::Tight, Framing::Talkative] {
        assert_eq!(run(Answer::framed(framing, done())).await, expected, "{framing:?}");
        assert_eq!(run(Answer::framed(framing, done()).bytewise()).await, expected, "{framing:?}");
    }
}
