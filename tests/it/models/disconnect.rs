//! Clients that leave in the middle of a model's answer.

use agentscope_agui::{runs::Principal, store::ThreadKey};
use serde_json::json;

use super::{Setup, code, events, said, settled, tasks, user, with};
use crate::support::{
    model::{Answer, Endpoint, Fate, openai},
    server::{TestServer, checked},
    sse::Reader,
};

/// Begins a run on thread `t` and reads so many of its events.
async fn begin(server: &TestServer, run: &str, text: &str, events: usize) -> Reader {
    let input = with("t", run, &[user(&format!("u-{run}"), text)]);
    let mut reader = Reader::new(server.start("/agui/a", &input).await);
    for _ in 0..events {
        reader.event().await.unwrap();
    }
    reader
}

/// Resolves when the thread `t` has no run.
async fn at_rest(server: &TestServer) {
    let key = ThreadKey { principal: Principal::anonymous(), thread: "t".into() };
    server.runs.ledger().store().at_rest(&key).await;
}

#[tokio::test]
async fn the_connection_to_the_model_closes_with_the_clients() {
    let (answer, feed) = Answer::fed();
    let model = Endpoint::answers([answer, openai::says(&["again"])]).await;
    let server = Setup::new(&model).agui("server-side-memory", true).serve().await;
    feed.say([openai::text("half")]);
    let reader = begin(&server, "r1", "one", 3).await;
    drop(reader);
    assert_eq!(model.request(0).await.fate().await, Fate::Left);
    at_rest(&server).await;
    let events = server.run("/agui/a", &with("t", "r2", &[user("u2", "two")])).await;
    assert_eq!(said(&events), "again");
    assert_eq!(
        openai::lines(&model.bodies()[1]),
        ["system: Be brief.", "user: one", "assistant: half", "user: two"]
    );
    drop(feed);
}

#[tokio::test]
async fn a_run_that_goes_on_alone_reads_the_whole_answer_and_keeps_it() {
    let (answer, feed) = Answer::fed();
    let model = Endpoint::answers([answer, openai::says(&["again"])]).await;
    let setup = Setup::new(&model).agui("server-side-memory", true);
    let server = setup.agui("interrupt-on-disconnect", false).serve().await;
    feed.say([openai::text("ha")]);
    drop(begin(&server, "r1", "one", 3).await);
    let meanwhile = with("t", "r2", &[user("u2", "two")]);
    assert_eq!(code(&server.run("/agui/a", &meanwhile).await), "THREAD_BUSY");
    // Far more than could wait for a reader.
    for _ in 0..2000 {
        feed.say([openai::text(&"x".repeat(1000))]);
    }
    feed.say([openai::text("lf"), openai::finish("stop")]);
    drop(feed);
    assert_eq!(model.request(0).await.fate().await, Fate::Answered);
    at_rest(&server).await;
    let events = server.run("/agui/a", &with("t", "r3", &[user("u3", "three")])).await;
    assert_eq!(said(&events), "again");
    let told = openai::lines(&model.bodies()[1]);
    let answer = format!("assistant: ha{}lf", "x".repeat(2_000_000));
    assert_eq!(told, ["system: Be brief.", "user: one", &answer, "user: three"]);
}

#[tokio::test]
async fn a_model_that_hangs_holds_no_thread_whose_client_left() {
    let model = Endpoint::with(|request| match request.text.contains("hang") {
        true => Answer::never(),
        false => openai::says(&["here"]),
    })
    .await;
    let server = Setup::new(&model).serve().await;
    let mut after_first = None;
    for round in 0..20 {
        let reader = begin(&server, &format!("hangs-{round}"), "hang", 1).await;
        let request = model.request(2 * round).await;
        drop(reader);
        at_rest(&server).await;
        let run = format!("r-{round}");
        let events = server.run("/agui/a", &with("t", &run, &[user("u", "hello")])).await;
        assert_eq!(
            events,
            events::run(
                events::started("t", &run),
                [events::text(&format!("id-{}", round + 1), &["here"])],
                events::success("t", &run),
            )
        );
        assert_eq!(request.fate().await, Fate::Left);
        // One task for each round is the model's, which hangs on.
        settled(after_first.map_or(usize::MAX, |first: usize| first + round)).await;
        after_first.get_or_insert_with(tasks);
    }
    assert_eq!(model.requests().len(), 40);
    // What is left is one connection for the next request at most.
    drop(server);
    model.connections(0).await;
}

#[tokio::test]
async fn what_ends_late_leaves_the_next_run_alone() {
    let (answer, feed) = Answer::fed();
    let model = Endpoint::answers([Answer::never(), answer]).await;
    let server = Setup::new(&model).serve().await;
    let first = begin(&server, "A", "one", 1).await;
    let hanging = model.request(0).await;
    drop(first);
    at_rest(&server).await;
    let second = with("t", "B", &[user("u2", "two")]);
    let response = server.start("/agui/a", &second).await;
    model.request(1).await;
    // By now the first one's connection is gone as well.
    assert_eq!(hanging.fate().await, Fate::Left);
    let third = with("t", "C", &[user("u3", "three")]);
    assert_eq!(code(&server.run("/agui/a", &third).await), "THREAD_BUSY");
    feed.say([openai::text("two"), openai::finish("stop")]);
    drop(feed);
    let events = checked(response, &second).await;
    assert_eq!(said(&events), "two");
    assert_eq!(events.last(), Some(&events::success("t", "B")));
    assert_eq!(model.requests().len(), 2);
}

#[tokio::test]
async fn a_cancelled_run_says_so_and_closes_the_connection_to_the_model() {
    let (answer, feed) = Answer::fed();
    let model = Endpoint::answers([answer]).await;
    let server = Setup::new(&model).serve().await;
    feed.say([openai::text("half")]);
    let input = with("t", "r", &[user("u1", "one")]);
    let mut reader = Reader::new(server.start("/agui/a", &input).await);
    for _ in 0..3 {
        reader.event().await.unwrap();
    }
    let response = server.post("/agui/threads/t/cancel").send().await.unwrap();
    assert_eq!(response.status(), 202);
    let mut end = events::success("t", "r");
    end["outcome"] = json!({"type": "cancelled"});
    end["metadata"] = json!({"agentscope.reason": "interrupted"});
    let ended = json!({"type": "TEXT_MESSAGE_END", "messageId": "id-1"});
    assert_eq!(reader.rest().await, [ended, end]);
    assert_eq!(model.request(0).await.fate().await, Fate::Left);
    drop(feed);
}
