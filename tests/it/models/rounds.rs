//! Rounds of tools: side by side, failing, hanging, and too many of them.

use serde_json::{Value, json};

use super::{Setup, events, posts, said, tools, user, with};
use crate::support::{
    input,
    model::{Answer, Endpoint, Fate, Gate, Refusing, openai},
    server::checked,
    sse::Reader,
};

/// Calls `one` and `two` in one answer, and then says `done`.
async fn two_calls() -> Endpoint {
    let calls = openai::answer([
        openai::call(0, "c1", "one", "{}"),
        openai::call(1, "c2", "two", "{}"),
        openai::finish("tool_calls"),
    ]);
    Endpoint::answers([calls, openai::says(&["done"])]).await
}

/// The events of these calls.
fn called() -> Vec<Value> {
    vec![
        events::call_start("id-1", "c1", "one"),
        events::args("c1", "{}"),
        events::call_start("id-1", "c2", "two"),
        events::args("c2", "{}"),
        events::call_end("c1"),
        events::call_end("c2"),
    ]
}

#[tokio::test]
async fn tools_of_one_answer_run_side_by_side_or_one_by_one() {
    for parallel in [true, false] {
        let gate = Gate::default();
        let held = gate.clone();
        let tools = Endpoint::with(move |request| {
            let answer = Answer::text(200, &request.path);
            if request.path == "/one" { answer.held_until(&held) } else { answer }
        })
        .await;
        let model = two_calls().await;
        let setup = Setup::new(&model).tool(posts(&tools, "one")).tool(posts(&tools, "two"));
        let server = setup.agent("parallel-tool-calls", parallel).serve().await;
        let mut reader = Reader::new(server.start("/agui/a", &input("t", "r")).await);
        let mut seen = Vec::new();
        // Side by side the second is told although the first has not answered.
        while seen.len() < if parallel { 8 } else { 7 } {
            seen.push(reader.event().await.unwrap());
        }
        tools.request(0).await;
        assert_eq!(tools.requests().len(), if parallel { 2 } else { 1 });
        gate.open();
        seen.extend(reader.rest().await);
        let (first, second) = if parallel {
            (("c2", "/two"), ("c1", "/one"))
        } else {
            (("c1", "/one"), ("c2", "/two"))
        };
        let expected = events::whole([
            called(),
            events::result("id-2", first.0, first.1),
            events::result("id-3", second.0, second.1),
            events::text("id-4", &["done"]),
        ]);
        assert_eq!(seen, expected, "{parallel}");
        // The model reads them in the order of its calls.
        let told = openai::lines(&model.bodies()[1]);
        assert_eq!(told[3..], ["tool c1: /one", "tool c2: /two"]);
    }
}

#[tokio::test]
async fn a_tool_that_fails_is_an_error_that_the_model_reads_and_tells_nobody_where_it_is() {
    let broken = Endpoint::with(|_| Answer::text(500, "no such city")).await;
    let refusing = Refusing::new();
    let away = json!({"http": {
        "name": "two", "description": "Does two.", "method": "POST",
        "url": format!("{}/two", refusing.url()), "parameters": {"type": "object"},
    }});
    let model = two_calls().await;
    let setup = Setup::new(&model).tool(posts(&broken, "one")).tool(away).one_by_one();
    let events = setup.serve().await.run("/agui/a", &input("t", "r")).await;
    let broken = "The service answered with status 500 Internal Server Error: no such city";
    let expected = events::whole([
        called(),
        events::failed_result("id-2", "c1", broken),
        events::failed_result("id-3", "c2", "The service could not be reached."),
        events::text("id-4", &["done"]),
    ]);
    assert_eq!(events, expected);
}

/// Calls `one` again and again, until it may call nothing.
async fn restless() -> Endpoint {
    Endpoint::with(|request| {
        if request.body["tool_choice"] == "none" || request.body["tools"].is_null() {
            return openai::says(&["so far"]);
        }
        let calls = request.body["messages"].as_array().unwrap().len();
        openai::asks(&format!("c{calls}"), "one", "{}")
    })
    .await
}

#[tokio::test]
async fn at_the_limit_the_model_sums_up_without_tools_and_the_run_says_why_it_ended() {
    let (model, tools) = (restless().await, tools().await);
    let setup = Setup::new(&model).tool(posts(&tools, "one")).agent("max-iters", 2);
    let events = setup.serve().await.run("/agui/a", &input("t", "r")).await;
    let mut end = events::success("t", "r");
    end["outcome"] = json!({"type": "cancelled"});
    end["metadata"] = json!({"agentscope.reason": "max_iterations", "agentscope.maxIters": 2});
    let expected = events::run(
        events::started("t", "r"),
        [
            events::call("id-1", "c2", "one", &["{}"]),
            events::result("id-2", "c2", "/one {}"),
            events::call("id-3", "c4", "one", &["{}"]),
            events::result("id-4", "c4", "/one {}"),
            events::text("id-5", &["so far"]),
        ],
        end,
    );
    assert_eq!(events, expected);
    assert_eq!(model.requests().len(), 3);
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_call_of_the_tool() {
    let tools = Endpoint::with(|_| Answer::never()).await;
    let model = two_calls().await;
    let setup = Setup::new(&model).tool(posts(&tools, "one")).tool(posts(&tools, "two"));
    let server = setup.serve().await;
    let reader = Reader::new(server.start("/agui/a", &input("t", "r")).await);
    let (one, two) = (tools.request(0).await, tools.request(1).await);
    drop(reader);
    assert_eq!([one.fate().await, two.fate().await], [Fate::Left, Fate::Left]);
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test]
async fn the_next_turn_of_a_cancelled_run_is_told_that_its_calls_were_interrupted() {
    let tools = Endpoint::with(|_| Answer::never()).await;
    let model = two_calls().await;
    let setup = Setup::new(&model).tool(posts(&tools, "one")).tool(posts(&tools, "two"));
    let server = setup.agui("server-side-memory", true).serve().await;
    let input = with("t", "r", &[user("u1", "go")]);
    let response = server.start("/agui/a", &input).await;
    tools.request(1).await;
    let cancelled = server.post("/agui/threads/t/cancel").send().await.unwrap();
    assert_eq!(cancelled.status(), 202);
    let events = checked(response, &input).await;
    let last = events.last().unwrap();
    assert_eq!(last["outcome"], json!({"type": "cancelled"}));
    let events = server.run("/agui/a", &with("t", "r2", &[user("u2", "and now?")])).await;
    assert_eq!(said(&events), "done");
    assert_eq!(
        openai::lines(&model.bodies()[1]),
        [
            "system: Be brief.",
            "user: go",
            "assistant: one({}) as c1 | two({}) as c2",
            "tool c1: The call was interrupted before it gave a result.",
            "tool c2: The call was interrupted before it gave a result.",
            "user: and now?",
        ]
    );
}

#[tokio::test]
async fn a_run_that_takes_too_long_ends_with_its_connections() {
    let model = Endpoint::answers([Answer::never()]).await;
    let server = Setup::new(&model).agui("run-timeout", "100ms").serve().await;
    let events = server.run("/agui/a", &input("t", "r")).await;
    assert_eq!(events[1]["code"], "TIMEOUT_ERROR");
    assert_eq!(events.len(), 2);
    assert_eq!(model.request(0).await.fate().await, Fate::Left);
}

#[tokio::test]
async fn a_model_that_falls_silent_is_not_waited_for() {
    let (half, feed) = Answer::fed();
    feed.say([openai::text("half")]);
    let cases = [(Answer::never(), vec![]), (half, vec![events::text("id-1", &["half"])])];
    for (answer, middle) in cases {
        let model = Endpoint::answers([answer]).await;
        let server = Setup::new(&model).model("timeout", "200ms").serve().await;
        let error = events::error("MODEL_UNAVAILABLE", "The model cannot be reached.");
        assert_eq!(server.run("/agui/a", &input("t", "r")).await, events::failed(middle, error));
        assert_eq!(model.request(0).await.fate().await, Fate::Left);
    }
    drop(feed);
}

#[tokio::test]
async fn a_tool_that_takes_too_long_is_an_error_that_the_model_reads() {
    let tools = Endpoint::with(|_| Answer::never()).await;
    let model = Endpoint::answers([openai::asks("c1", "one", "{}"), openai::says(&["done"])]).await;
    let setup = Setup::new(&model).tool(posts(&tools, "one")).agent("tool-timeout", "100ms");
    let events = setup.serve().await.run("/agui/a", &input("t", "r")).await;
    assert_eq!(events[4]["metadata"], json!({"agentscope.state": "error"}));
    assert_eq!(said(&events), "done");
    assert_eq!(tools.request(0).await.fate().await, Fate::Left);
}
