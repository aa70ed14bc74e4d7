//! Many runs of many rounds at once, half of them left in the middle: nothing of them stays.

use futures_util::{StreamExt, stream};
use serde_json::Value;

use super::{Setup, events, posts, settled, tasks};
use crate::support::{
    input,
    model::{Answer, Endpoint, Request, openai},
    server::{TestServer, checked},
    sse::Reader,
};

const RUNS: usize = 200;
const ROUNDS: usize = 20;

/// Calls a tool as often as there are rounds, and then says that it is done.
fn another_round(request: &Request) -> Answer {
    let messages = request.body["messages"].as_array().unwrap();
    let rounds = messages.iter().filter(|message| message["role"] == "tool").count();
    if rounds == ROUNDS {
        return openai::says(&["done"]);
    }
    let (id, arguments) = (format!("c{rounds}"), format!(r#"{{"round":{rounds}}}"#));
    let (head, tail) = arguments.split_at(4);
    openai::answer([
        openai::call(0, &id, "add", head),
        openai::arguments(0, tail),
        openai::finish("tool_calls"),
    ])
}

/// One run; `Some` = its events, `None` = its client left after the third result.
async fn one(server: &TestServer, number: usize) -> Option<Vec<Value>> {
    let input = input(&format!("t{number}"), "r");
    let response = server.start("/agui/a", &input).await;
    if number.is_multiple_of(2) {
        return Some(checked(response, &input).await);
    }
    let (mut reader, mut results) = (Reader::new(response), 0);
    while results < 3 {
        let event = reader.event().await.unwrap();
        results += usize::from(event["type"] == "TOOL_CALL_RESULT");
    }
    None
}

/// All runs, so many at once.
async fn all(server: &TestServer) {
    let runs = stream::iter(0..RUNS).map(|number| one(server, number)).buffer_unordered(RUNS);
    let finished: Vec<_> = runs.filter_map(std::future::ready).collect().await;
    assert_eq!(finished.len(), RUNS / 2);
    for events in finished {
        let results = events.iter().filter(|event| event["type"] == "TOOL_CALL_RESULT");
        assert_eq!(results.count(), ROUNDS);
        assert_eq!(super::said(&events), "done");
        assert_eq!(events.last().unwrap()["outcome"], events::success("", "")["outcome"]);
    }
}

#[tokio::test]
async fn nothing_of_many_long_runs_stays() {
    let before = tasks();
    let (model, tools) = (Endpoint::with(another_round).await, super::tools().await);
    let setup = Setup::new(&model).tool(posts(&tools, "add")).agent("max-iters", ROUNDS + 1);
    let mut server = setup.serve().await;
    all(&server).await;
    server.tell_to_stop();
    server.stopped().await;
    // Whatever the server had open is closed behind its last run.
    model.connections(0).await;
    tools.connections(0).await;
    drop((model, tools));
    settled(before).await;
}
