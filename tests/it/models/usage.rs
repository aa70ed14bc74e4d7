//! Tokens: each call of a model counts once, and what nobody counted is not told.

use serde_json::{Value, json};

use super::{Setup, events, posts, raised, tools, with};
use crate::support::{
    input,
    model::{
        Answer, Endpoint,
        openai::{self, call, finish, text, usage},
    },
};

fn counts(input: u64, output: u64) -> Value {
    json!({
        "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
    })
}

/// A whole answer that costs this.
fn costing(chunks: impl IntoIterator<Item = Value>, counts: Value) -> Answer {
    openai::answer(chunks.into_iter().chain([usage(counts)]))
}

#[tokio::test]
async fn usage_that_repeats_counts_once_and_calls_add_up() {
    let tools = tools().await;
    let mut early = call(0, "c1", "add", "{}");
    early["usage"] = counts(10, 1);
    let mut last = finish("tool_calls");
    last["usage"] = counts(10, 4);
    let mut null = text("done");
    null["usage"] = Value::Null;
    let model = Endpoint::answers([
        costing([early, last], counts(10, 4)),
        costing([null, finish("stop")], counts(20, 2)),
    ])
    .await;
    let server = Setup::new(&model).tool(posts(&tools, "add")).serve().await;
    let usage = json!({"inputTokens": 30, "outputTokens": 6, "totalTokens": 36});
    assert_eq!(
        server.run("/agui/a", &input("t", "r")).await,
        events::run(
            events::started("t", "r"),
            [
                events::call("id-1", "c1", "add", &["{}"]),
                events::result("id-2", "c1", "/add {}"),
                events::text("id-3", &["done"]),
            ],
            events::costing(events::success("t", "r"), usage),
        )
    );
}

#[tokio::test]
async fn parts_of_the_sums_are_told_where_the_model_tells_them() {
    let mut all = counts(10, 5);
    all["prompt_tokens_details"] = json!({"cached_tokens": 4});
    all["completion_tokens_details"] = json!({"reasoning_tokens": 3});
    let cases = [
        (None, None),
        (
            Some(counts(10, 5)),
            Some(json!({"inputTokens": 10, "outputTokens": 5, "totalTokens": 15})),
        ),
        (
            Some(all),
            Some(json!({
                "inputTokens": 10, "outputTokens": 5, "totalTokens": 15,
                "cachedInputTokens": 4, "reasoningTokens": 3,
            })),
        ),
    ];
    for (counts, told) in cases {
        let chunks = [text("x"), finish("stop")].into_iter().chain(counts.map(usage));
        let model = Endpoint::answers([openai::answer(chunks)]).await;
        let events = Setup::new(&model).serve().await.run("/agui/a", &input("t", "r")).await;
        let end = events::success("t", "r");
        let end = told.map_or(end.clone(), |told| events::costing(end, told));
        assert_eq!(
            events,
            events::run(events::started("t", "r"), [events::text("id-1", &["x"])], end)
        );
    }
}

#[tokio::test]
async fn a_run_behind_an_interrupt_tells_its_own_calls() {
    let tools = tools().await;
    let model = Endpoint::answers([
        costing([call(0, "c1", "wipe", "{}"), finish("tool_calls")], counts(10, 4)),
        costing([text("done"), finish("stop")], counts(20, 2)),
    ])
    .await;
    let setup = Setup::new(&model).tool(posts(&tools, "wipe"));
    let server = setup.agent("permission", json!({"ask": ["wipe"]})).serve().await;
    let asked = server.run("/agui/a", &input("t", "r")).await;
    let told = |events: &[Value]| events.last().unwrap()["usage"].clone();
    let first = json!({"model": "m", "inputTokens": 10, "outputTokens": 4, "totalTokens": 14});
    assert_eq!(told(&asked), json!([first]));
    let mut resume = with("t", "r2", &[]);
    let payload = json!({"approved": true});
    resume["resume"] =
        json!([{"interruptId": raised(&asked)[0], "status": "resolved", "payload": payload}]);
    let second = json!({"model": "m", "inputTokens": 20, "outputTokens": 2, "totalTokens": 22});
    assert_eq!(told(&server.run("/agui/a", &resume).await), json!([second]));
}

#[tokio::test]
async fn a_run_that_fails_tells_what_it_cost_so_far() {
    let tools = tools().await;
    let model = Endpoint::answers([
        costing([call(0, "c1", "add", "{}"), finish("tool_calls")], counts(10, 4)),
        openai::failure(500, &json!({"message": "no"})),
    ])
    .await;
    let server = Setup::new(&model).tool(posts(&tools, "add")).serve().await;
    let usage = json!({"inputTokens": 10, "outputTokens": 4, "totalTokens": 14});
    let error = events::costing(events::error("MODEL_ERROR", "The model failed."), usage);
    assert_eq!(server.run("/agui/a", &input("t", "r")).await.last(), Some(&error));
}
