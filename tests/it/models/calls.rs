//! Tool calls: from a model's fragments to what runs, and whose it is to run it.

use serde_json::{Value, json};

use super::{Setup, events, frontend, posts, raised, result, tools, with};
use crate::support::{
    expected, input,
    model::{
        Answer, Endpoint,
        openai::{self, arguments, call, calls, finish, text},
    },
    server::TestServer,
};

/// What a run gives whose model answers so first and then says `done`; all calls are of `add`.
async fn run(first: Answer) -> (Vec<Value>, Endpoint, Endpoint) {
    let model = Endpoint::answers([first, openai::says(&["done"])]).await;
    let tools = tools().await;
    let setup = Setup::new(&model).tool(posts(&tools, "add")).tool(posts(&tools, "sub"));
    let server = setup.one_by_one().serve().await;
    (server.run("/agui/a", &input("t", "r")).await, model, tools)
}

#[tokio::test]
async fn empty_text_opens_no_message_beside_a_call() {
    let (events, ..) = run(openai::answer([
        openai::delta(json!({"role": "assistant", "content": ""})),
        openai::delta(json!({"content": null, "tool_calls": [{
            "index": 0, "id": "c1", "function": {"name": "add", "arguments": "{}"},
        }]})),
        finish("tool_calls"),
    ]))
    .await;
    let expected = events::whole([
        events::call("id-1", "c1", "add", &["{}"]),
        events::result("id-2", "c1", "/add {}"),
        events::text("id-3", &["done"]),
    ]);
    assert_eq!(events, expected);
}

#[tokio::test]
async fn empty_text_inside_a_message_is_nothing_and_spaces_are_kept() {
    let deltas = ["a", "", " \n ", "", "b"].map(text);
    let (events, ..) = run(openai::answer(deltas.into_iter().chain([finish("stop")]))).await;
    assert_eq!(events, events::whole([events::text("id-1", &["a", " \n ", "b"])]));
}

#[tokio::test]
async fn a_call_in_one_chunk_has_its_arguments() {
    let whole = json!({"tool_calls": [{
        "index": 0, "id": "c1", "type": "function",
        "function": {"name": "add", "arguments": r#"{"q":"x"}"#},
    }]});
    let mut at_once = openai::delta(whole.clone());
    at_once["choices"][0]["finish_reason"] = "tool_calls".into();
    let apart = openai::answer([openai::delta(whole), finish("tool_calls")]);
    for first in [apart, openai::answer([at_once])] {
        let (events, _, tools) = run(first).await;
        let expected = events::whole([
            events::call("id-1", "c1", "add", &[r#"{"q":"x"}"#]),
            events::result("id-2", "c1", r#"/add {"q":"x"}"#),
            events::text("id-3", &["done"]),
        ]);
        assert_eq!(events, expected);
        assert_eq!(tools.bodies(), [json!({"q": "x"})]);
    }
}

#[tokio::test]
async fn a_call_without_arguments_runs_with_none() {
    let (events, _, tools) = run(openai::asks("c1", "add", "")).await;
    let expected = events::whole([
        events::call("id-1", "c1", "add", &[]),
        events::result("id-2", "c1", "/add {}"),
        events::text("id-3", &["done"]),
    ]);
    assert_eq!(events, expected);
    assert_eq!(tools.bodies(), [json!({})]);
}

#[tokio::test]
async fn calls_one_after_the_other_keep_their_arguments_apart() {
    let (events, model, tools) = run(openai::answer([
        call(0, "c1", "add", r#"{"a""#),
        arguments(0, ":1}"),
        call(1, "c2", "sub", ""),
        arguments(1, r#"{"a":2}"#),
        finish("tool_calls"),
    ]))
    .await;
    let expected = events::whole([
        vec![
            events::call_start("id-1", "c1", "add"),
            events::args("c1", r#"{"a""#),
            events::args("c1", ":1}"),
            events::call_start("id-1", "c2", "sub"),
            events::args("c2", r#"{"a":2}"#),
            events::call_end("c1"),
            events::call_end("c2"),
        ],
        events::result("id-2", "c1", r#"/add {"a":1}"#),
        events::result("id-3", "c2", r#"/sub {"a":2}"#),
        events::text("id-4", &["done"]),
    ]);
    assert_eq!(events, expected);
    assert_eq!(tools.requests().len(), 2);
    assert_eq!(
        openai::lines(&model.bodies()[1])[2..],
        [
            r#"assistant: add({"a":1}) as c1 | sub({"a":2}) as c2"#,
            r#"tool c1: /add {"a":1}"#,
            r#"tool c2: /sub {"a":2}"#,
        ]
    );
    assert_eq!(model.requests().len(), 2);
}

/// A run in which the model calls a tool of the front end.
async fn paints(setup: impl Fn(Setup) -> Setup) -> (TestServer, Endpoint) {
    let answer = openai::asks("c1", "paint", r#"{"c":"red"}"#);
    let model = Endpoint::answers([answer, openai::says(&["painted"])]).await;
    (setup(Setup::new(&model)).serve().await, model)
}

/// The input of such a run.
fn able(mut input: Value) -> Value {
    input["tools"] = json!([frontend("paint")]);
    input
}

#[tokio::test]
async fn a_call_of_the_front_end_is_left_to_it() {
    let (server, model) = paints(|setup| setup.agui("server-side-memory", true)).await;
    let painting = events::call("id-1", "c1", "paint", &[r#"{"c":"red"}"#]);
    let waits =
        || events::run(events::started("t", "r"), [painting.clone()], events::pending(&["c1"]));
    assert_eq!(server.run("/agui/a", &able(input("t", "r"))).await, waits());
    assert_eq!(model.requests().len(), 1);
    assert_eq!(
        model.bodies()[0]["tools"],
        json!([{"type": "function", "function": frontend("paint")}])
    );
    // Nobody has answered it in what the server keeps either.
    let shown = server.run("/agui/a/connect", &with("t", "c", &[])).await;
    let messages = shown[1]["messages"].as_array().unwrap();
    let roles: Vec<_> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant"]);
    // The front end answers, and the model goes on.
    let answer = able(with("t", "r2", &[result("x1", "c1", "ok")]));
    let events = server.run_but(&["TOOL-14"], "/agui/a", &answer).await;
    assert_eq!(
        events,
        events::run(
            events::started("t", "r2"),
            [events::text("id-2", &["painted"])],
            events::success("t", "r2"),
        )
    );
    assert_eq!(
        openai::lines(&model.bodies()[1]),
        [
            "system: Be brief.",
            "user: hello",
            r#"assistant: paint({"c":"red"}) as c1"#,
            "tool c1: ok",
        ]
    );
}

#[tokio::test]
async fn an_old_front_end_is_told_no_outcome() {
    let (server, _model) = paints(|setup| setup).await;
    let mut input = able(input("t", "r"));
    input.as_object_mut().unwrap().shift_remove("protocolVersion");
    let mut end = events::success("t", "r");
    end.as_object_mut().unwrap().shift_remove("outcome");
    let mut started = events::started("t", "r");
    started.as_object_mut().unwrap().shift_remove("protocolVersion");
    let events = server.run("/agui/a", &input).await;
    let painting = events::call("id-1", "c1", "paint", &[r#"{"c":"red"}"#]);
    assert_eq!(events[1..], events::run(started, [painting], end)[1..]);
}

#[tokio::test]
async fn only_on_demand_a_call_of_the_front_end_is_an_interrupt() {
    let (server, model) = paints(|setup| setup.agui("frontend-tool-outcome", "interrupt")).await;
    let events = server.run_but(&["INT-24"], "/agui/a", &able(input("t", "r"))).await;
    assert_eq!(raised(&events).len(), 1);
    let interrupt = &events.last().unwrap()["outcome"]["interrupts"][0];
    assert_eq!(interrupt["toolCallId"], "c1");
    assert_eq!(interrupt["reason"], "tool_call");
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test]
async fn a_call_that_somebody_else_executes_is_an_interrupt_and_its_answer_goes_to_the_model() {
    let parameters = json!({"type": "object"});
    let external = json!({"external": {
        "name": "print", "description": "Prints.", "parameters": parameters,
    }});
    let answers = [openai::asks("c1", "print", r#"{"a":1}"#), openai::says(&["printed"])];
    let model = Endpoint::answers(answers).await;
    let server = Setup::new(&model).tool(external).serve().await;
    let events = server.run("/agui/a", &input("t", "r")).await;
    let mut end = events.last().unwrap().clone();
    let interrupt = &mut end["outcome"]["interrupts"][0];
    let (id, reply) = (interrupt["id"].take(), interrupt["metadata"]["replyId"].take());
    assert_eq!(id, json!(format!("{}:c1", reply.as_str().unwrap())));
    let mut expected = events::success("t", "r");
    expected["outcome"] = json!({"type": "interrupt", "interrupts": [{
        "id": null, "reason": "tool_call", "toolCallId": "c1",
        "message": "Run print and answer with its result",
        "metadata": {
            "agentscope.interruptKind": "external_execution", "toolName": "print",
            "toolInput": {"a": 1}, "toolContent": r#"{"a":1}"#, "replyId": null,
        },
    }]});
    assert_eq!(end, expected);
    let called = events::call("id-1", "c1", "print", &[r#"{"a":1}"#]);
    assert_eq!(events[..4], events::run(events::started("t", "r"), [called], end)[..4]);

    let entries = json!([{"interruptId": id, "status": "resolved", "payload": {"pages": 2}}]);
    let mut resume = with("t", "r2", &[]);
    resume["resume"] = entries;
    let events = server.run("/agui/a", &resume).await;
    assert_eq!(
        events,
        events::run(
            events::started("t", "r2"),
            [events::result("id-2", "c1", r#"{"pages":2}"#), events::text("id-3", &["printed"])],
            events::success("t", "r2"),
        )
    );
    assert_eq!(
        openai::lines(&model.bodies()[1]),
        [
            "system: Be brief.",
            "user: hello",
            r#"assistant: print({"a":1}) as c1"#,
            r#"tool c1: {"pages":2}"#,
        ]
    );
}

#[tokio::test]
async fn arguments_that_are_no_json_run_nothing_and_the_model_is_told() {
    let cut = "The call was not run: the answer reached its length limit before the arguments were \
               complete. Call again with shorter arguments.";
    let cases = [
        (r#"{"city": "Os"#, "length", cut),
        // The tool takes none, but nobody knows whether that was meant.
        ("", "length", cut),
        (
            "not json",
            "tool_calls",
            "The arguments are not valid JSON: expected ident at line 1 column 2",
        ),
    ];
    for (sent, reason, fault) in cases {
        let (events, model, tools) =
            run(openai::answer([call(0, "c1", "add", sent), finish(reason)])).await;
        let sent: Vec<&str> = Some(sent).filter(|sent| !sent.is_empty()).into_iter().collect();
        let expected = events::whole([
            events::call("id-1", "c1", "add", &sent),
            events::failed_result("id-2", "c1", fault),
            events::text("id-3", &["done"]),
        ]);
        assert_eq!(events, expected);
        assert_eq!(tools.requests().len(), 0);
        assert_eq!(openai::lines(&model.bodies()[1])[3], format!("tool c1: {fault}"));
    }
}

#[tokio::test]
async fn a_tool_that_nobody_has_is_an_error_that_the_model_reads() {
    let (events, ..) = run(openai::asks("c1", "nope", "{}")).await;
    assert_eq!(events.last(), Some(&expected::success("t", "r")));
    assert_eq!(events[4]["metadata"], json!({"agentscope.state": "error"}));
    assert_eq!(events[4]["toolCallId"], "c1");
}

#[tokio::test]
async fn two_calls_without_ids_are_told_apart() {
    let nameless = |index, arguments: &str| {
        calls(json!([{"index": index, "function": {"name": "add", "arguments": arguments}}]))
    };
    let chunks = [nameless(0, r#"{"n":1}"#), nameless(1, r#"{"n":2}"#), finish("tool_calls")];
    let (events, model, _) = run(openai::answer(chunks)).await;
    let starts = events.iter().filter(|event| event["type"] == "TOOL_CALL_START");
    let ids: Vec<_> = starts.map(|start| start["toolCallId"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 2);
    assert!(ids[0] != ids[1] && !ids.contains(&""), "{ids:?}");
    let results = events.iter().filter(|event| event["type"] == "TOOL_CALL_RESULT");
    let results: Vec<_> =
        results.map(|one| (one["toolCallId"].as_str().unwrap(), &one["content"])).collect();
    assert_eq!(results, [(ids[0], &json!(r#"/add {"n":1}"#)), (ids[1], &json!(r#"/add {"n":2}"#))]);
    // The model is told them apart as well, each behind the id that it has in the conversation.
    let messages = &model.bodies()[1]["messages"];
    let told = |at: usize| messages[2]["tool_calls"][at]["id"].clone();
    assert_eq!((&messages[3]["tool_call_id"], &messages[4]["tool_call_id"]), (&told(0), &told(1)));
    assert_ne!(told(0), told(1));
}
