//! Cancelling by call: a run is told to stop, open interrupts are given up.

use std::time::Duration;

use agentscope_agui::config::Config;
use agui_adapter::model::{AgentEvent, AgentEventKind, event::EndReason};
use serde_json::{Value, json};

use super::{
    Given, all, approve, counting, key, remembering, request, server, service, shown, told, user,
    with,
};
use crate::support::{
    agents::{agent, asks_for, delta, plays, start, then_silent},
    expected, input, resume,
    server::TestServer,
    sse::Reader,
};

async fn cancel(server: &TestServer, thread: &str) -> (u16, String) {
    let request = server.post(&format!("/agui/threads/{thread}/cancel"));
    let response = request.header("X-Request-Id", "q").send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

fn cancelled(run: &str, reason: &str) -> Value {
    json!({
        "type": "RUN_FINISHED", "threadId": "t", "runId": run, "outcome": {"type": "cancelled"},
        "metadata": {"agentscope.reason": reason},
    })
}

#[tokio::test]
async fn a_run_that_is_cancelled_stops_in_order_and_its_words_are_kept() {
    let (agent, mut tell) = told("a");
    let given = Given::default();
    let mut counting = counting(&given);
    counting.info.id = "b".to_owned();
    let server = server(remembering(), vec![agent, counting]).await;
    let mut reader = Reader::new(server.start("/agui/a", &input("t", "r1")).await);
    tell.say([start(), delta("I be")]);
    for _ in 0..3 {
        reader.event().await.unwrap();
    }
    assert_eq!(cancel(&server, "t").await, (202, String::new()));
    tell.asked_to_stop().await;
    // Asked twice is asked once; the run is still there until it has said its last words.
    assert_eq!(cancel(&server, "t").await, (202, String::new()));
    assert_eq!(shown(&server, "t").await["status"], "running");
    let stopped = AgentEventKind::AgentEnd { reply: None, reason: EndReason::Interrupted };
    tell.say([delta("gin"), AgentEvent::local(stopped)]);
    let rest = [
        json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "id-1", "delta": "gin"}),
        json!({"type": "TEXT_MESSAGE_END", "messageId": "id-1"}),
        cancelled("r1", "interrupted"),
    ];
    assert_eq!(reader.rest().await, rest);
    server.run("/agui/b", &with("t", "r2", &[user("u2", "go on")])).await;
    assert_eq!(given.last(), ["user: hello", "assistant: I begin", "user: go on"]);
}

#[tokio::test]
async fn an_agent_that_just_ends_when_it_is_asked_to_stop_was_cancelled() {
    let (agent, mut tell) = told("a");
    let server = server(Config::default(), vec![agent]).await;
    let mut reader = Reader::new(server.start("/agui/a", &input("t", "r1")).await);
    tell.say([start()]);
    reader.event().await.unwrap();
    assert_eq!(cancel(&server, "t").await.0, 202);
    tell.asked_to_stop().await;
    drop(tell);
    assert_eq!(reader.rest().await, [cancelled("r1", "cancelled")]);
}

#[tokio::test]
async fn an_older_peer_is_told_of_it_as_an_error() {
    let (agent, mut tell) = told("a");
    let server = server(Config::default(), vec![agent]).await;
    let mut old = input("t", "r1");
    old.as_object_mut().unwrap().remove("protocolVersion");
    let mut reader = Reader::new(server.start("/agui/a", &old).await);
    tell.say([start()]);
    reader.event().await.unwrap();
    assert_eq!(cancel(&server, "t").await.0, 202);
    tell.asked_to_stop().await;
    drop(tell);
    let rest = reader.rest().await;
    assert_eq!(
        (rest.len(), &rest[0]["type"], &rest[0]["code"]),
        (1, &json!("RUN_ERROR"), &json!("CANCELLED"))
    );
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_does_not_listen_is_ended_when_its_time_is_over() {
    let deaf = agent("a", |_request| then_silent(vec![start(), delta("I go on")]));
    let service = service(&Config::default());
    let handle = service.start(request(&deaf, &input("t", "r1"))).unwrap();
    let mut batches = handle.events();
    batches.recv().await.unwrap();
    let began = tokio::time::Instant::now();
    service.ledger().cancel(&key("t")).await.unwrap();
    let mut events = Vec::new();
    while let Some(batch) = batches.recv().await {
        events.extend(batch.iter().map(|event| json!(event)));
    }
    assert_eq!(began.elapsed(), Duration::from_secs(5));
    let rest =
        [json!({"type": "TEXT_MESSAGE_END", "messageId": "id-1"}), cancelled("r1", "cancelled")];
    assert_eq!(events, rest);
    service.stop();
    service.stopped().await;
}

#[tokio::test(start_paused = true)]
async fn a_deletion_waits_for_the_last_words_of_a_run() {
    let deaf = agent("a", |_request| then_silent(vec![start()]));
    let service = service(&remembering());
    let handle = service.start(request(&deaf, &input("t", "r1"))).unwrap();
    let (events, deleted) = tokio::join!(all(handle), async {
        // Behind the beginning of the run.
        tokio::task::yield_now().await;
        service.ledger().delete(&key("t")).await.unwrap()
    });
    assert_eq!(events, [expected::started("t", "r1"), cancelled("r1", "cancelled")]);
    assert_eq!(deleted, agentscope_agui::runs::ledger::Deleted::Gone);
    assert_eq!(service.ledger().store().load(&key("t")).await, Ok(None));
}

#[tokio::test]
async fn open_interrupts_are_given_up_and_the_thread_goes_on() {
    let given = Given::default();
    let mut asks = vec![start()];
    asks.extend(asks_for("c1"));
    let server = server(remembering(), vec![counting(&given), plays("asking", asks)]).await;
    server.run("/agui/asking", &input("t", "r1")).await;
    assert_eq!(cancel(&server, "t").await, (200, String::new()));
    assert_eq!(cancel(&server, "t").await.0, 404);
    assert_eq!(shown(&server, "t").await["status"], "idle");
    // Whoever comes is told how it ended.
    let mut finished = cancelled("c", "");
    finished.as_object_mut().unwrap().remove("metadata");
    let shown = server.run("/agui/a/connect", &with("t", "c", &[])).await;
    assert_eq!(shown.last(), Some(&finished));

    // An answer that comes too late runs nothing.
    let mut late = resume("t", "r2", &json!([approve("reply:c1")]));
    late["messages"] = json!([user("u2", "next")]);
    let answer = server.run("/agui/a", &late).await;
    let mut started = expected::started("t", "r2");
    started["metadata"] = json!({"agentscope.ignoredResume": ["reply:c1"]});
    assert_eq!(answer[0], started);
    assert_eq!(answer.last(), Some(&expected::success("t", "r2")));
    let repaired = [
        "user: hello",
        r#"assistant: wipe({"disk":"a"}) as c1"#,
        "tool: c1 interrupted: The call was interrupted before it gave a result.",
        "user: next",
    ];
    assert_eq!(given.last(), repaired);
    server.run("/agui/a", &with("t", "r3", &[user("u3", "more")])).await;
    assert_eq!(given.last().len(), 6);
}

#[tokio::test]
async fn without_memory_nothing_is_left_of_interrupts_that_were_given_up_but_their_names() {
    let given = Given::default();
    let mut asks = vec![start()];
    asks.extend(asks_for("c1"));
    let server = server(Config::default(), vec![counting(&given), plays("asking", asks)]).await;
    server.run("/agui/asking", &input("t", "r1")).await;
    assert_eq!(cancel(&server, "t").await.0, 200);
    assert_eq!(shown(&server, "t").await["messageCount"], 0);
    let mut late = resume("t", "r2", &json!([approve("reply:c1")]));
    late["messages"] = json!([user("u2", "next")]);
    let answer = server.run("/agui/a", &late).await;
    assert_eq!(answer[0]["metadata"], json!({"agentscope.ignoredResume": ["reply:c1"]}));
    assert_eq!(given.last(), ["user: next"]);
}

#[tokio::test]
async fn a_thread_without_run_and_interrupts_has_nothing_to_cancel() {
    let server = server(remembering(), vec![counting(&Given::default())]).await;
    let problem = json!({
        "type": "about:blank", "title": "Not Found", "status": 404, "instance": "q",
        "detail": "This thread has neither a run nor open interrupts.",
    });
    let (status, body) = cancel(&server, "unknown").await;
    assert_eq!((status, serde_json::from_str::<Value>(&body).unwrap()), (404, problem.clone()));
    server.run("/agui/a", &input("t", "r1")).await;
    let (status, body) = cancel(&server, "t").await;
    assert_eq!((status, serde_json::from_str::<Value>(&body).unwrap()), (404, problem));
}
