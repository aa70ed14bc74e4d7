//! Answers that come twice: nothing is executed again, and the client is told how it ended.

use agentscope_agui::config::Config;
use agui_adapter::model::{AgentEvent, AgentEventKind, event::EndReason};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

use super::{
    Given, approve, asking, called, code, gives, ignoring, raised, remembering, result, said,
    server, user, verdicts,
};
use crate::support::{
    agents::{agent, asks_for, delta, end, start},
    expected, input, resume,
    server::TestServer,
    sse::Reader,
};

fn answer(run: &str) -> Value {
    resume("t", run, &json!([approve("reply:c1")]))
}

async fn asked(server: &TestServer) {
    let events = server.run("/agui/asking", &input("t", "r1")).await;
    assert_eq!(raised(&events), ["reply:c1"]);
}

#[tokio::test]
async fn a_repeated_answer_gets_the_history_and_the_outcome_and_calls_nobody() {
    let given = Given::default();
    let noted = given.clone();
    let agent = agent("asking", move |request| {
        noted.note(&request);
        let mut events = vec![start()];
        match request.decisions.is_empty() {
            true => events.extend(asks_for("c1")),
            false => {
                events.extend(gives("c1", "wipe", "wiped"));
                events.extend([delta(&verdicts(&request)), end()]);
            }
        }
        stream::iter(events.into_iter().map(Ok))
    });
    // Without memory what the run left is kept for this alone.
    for config in [remembering(), Config::default()] {
        let server = server(config, vec![agent.clone()]).await;
        given.0.lock().unwrap().clear();
        repeated_answers_are_told_the_end(&server).await;
        assert_eq!(given.runs(), 2);
    }
}

async fn repeated_answers_are_told_the_end(server: &TestServer) {
    asked(server).await;
    let first = server.run("/agui/asking", &answer("r2")).await;
    let id = |event: &Value| event["messageId"].as_str().unwrap().to_owned();
    assert_eq!(first[1]["type"], "TOOL_CALL_RESULT");
    let messages = json!([
        user("u1", "hello"),
        called("id-1", "c1", "wipe", r#"{"disk":"a"}"#),
        result(&id(&first[1]), "c1", "wiped"),
        {"id": id(&first[2]), "role": "assistant", "content": r#"run c1 {"disk":"a"}"#},
    ]);
    let snapshot = json!({"type": "MESSAGES_SNAPSHOT", "messages": messages});
    for run in ["r3", "r4"] {
        let expected =
            [ignoring("t", run, &["reply:c1"]), snapshot.clone(), expected::success("t", run)];
        assert_eq!(server.run("/agui/asking", &answer(run)).await, expected);
    }
    // A tool message for the call is nothing new.
    let mut with_message = answer("r5");
    with_message["messages"] = json!([user("u1", "hello"), result("x", "c1", "approved")]);
    let events = server.run("/agui/asking", &with_message).await;
    let expected = [ignoring("t", "r5", &["reply:c1"]), snapshot, expected::success("t", "r5")];
    assert_eq!(events, expected);
    // Nor is a client that has no messages at all.
    let mut empty = answer("r6");
    empty["messages"] = json!([]);
    let events = server.run("/agui/asking", &empty).await;
    assert_eq!(events.last(), Some(&expected::success("t", "r6")));
}

#[tokio::test]
async fn a_new_message_beside_a_repeated_answer_is_a_new_run() {
    let given = Given::default();
    let server = server(remembering(), vec![asking(&given, &["c1"])]).await;
    asked(&server).await;
    server.run("/agui/asking", &answer("r2")).await;
    let mut next = answer("r3");
    next["messages"] = json!([user("u1", "hello"), user("u2", "again")]);
    let events = server.run("/agui/asking", &next).await;
    assert_eq!(events[0], ignoring("t", "r3", &["reply:c1"]));
    assert_eq!(given.runs(), 3);
}

#[tokio::test]
async fn without_memory_a_long_history_is_not_kept_for_that() {
    let given = Given::default();
    let server = server(Config::default(), vec![asking(&given, &["c1"])]).await;
    let mut long = input("t", "r1");
    long["messages"] = json!([user("u1", &"x".repeat(300 << 10))]);
    assert_eq!(raised(&server.run("/agui/asking", &long).await), ["reply:c1"]);
    server.run("/agui/asking", &answer("r2")).await;
    let expected = [ignoring("t", "r3", &["reply:c1"]), expected::success("t", "r3")];
    assert_eq!(server.run("/agui/asking", &answer("r3")).await, expected);
    assert_eq!(given.runs(), 2);
}

#[tokio::test]
async fn what_the_answering_run_asked_is_asked_again() {
    let asks_on = agent("asking", |request| {
        let mut events = vec![start()];
        match request.decisions.len() {
            0 => events.extend(asks_for("c1")),
            _ if request.run_id.as_str() == "r2" => {
                events.extend(gives("c1", "wipe", "wiped"));
                events.extend(asks_for("c2"));
            }
            _ => events.extend([delta(&verdicts(&request)), end()]),
        }
        stream::iter(events.into_iter().map(Ok))
    });
    let server = server(Config::default(), vec![asks_on]).await;
    asked(&server).await;
    let second = server.run("/agui/asking", &answer("r2")).await;
    assert_eq!(raised(&second), ["reply:c2"]);
    let repeated = server.run("/agui/asking", &answer("r3")).await;
    assert_eq!(repeated[0], ignoring("t", "r3", &["reply:c1"]));
    assert_eq!(repeated[1]["type"], "MESSAGES_SNAPSHOT");
    let mut finished = second.last().unwrap().clone();
    finished["runId"] = json!("r3");
    assert_eq!(repeated[2..], [finished]);
    // Both answers at once: the old one is ignored, the new one counts.
    let both = resume("t", "r4", &json!([approve("reply:c1"), approve("reply:c2")]));
    let events = server.run("/agui/asking", &both).await;
    assert_eq!(events[0], ignoring("t", "r4", &["reply:c1"]));
    assert_eq!(said(&events), r#"run c2 {"disk":"a"}"#);
}

#[tokio::test]
async fn an_answering_run_that_was_cancelled_has_answered() {
    let cancelled = agent("asking", |request| {
        let mut events = vec![start()];
        match request.decisions.is_empty() {
            true => events.extend(asks_for("c1")),
            false => events.push(AgentEvent::local(AgentEventKind::AgentEnd {
                reply: None,
                reason: EndReason::Interrupted,
            })),
        }
        stream::iter(events.into_iter().map(Ok))
    });
    let server = server(Config::default(), vec![cancelled]).await;
    asked(&server).await;
    let first = server.run("/agui/asking", &answer("r2")).await;
    assert_eq!(first.last().unwrap()["outcome"], json!({"type": "cancelled"}));
    let finished = json!({
        "type": "RUN_FINISHED", "threadId": "t", "runId": "r3", "outcome": {"type": "cancelled"},
    });
    let messages = json!([user("u1", "hello"), called("id-1", "c1", "wipe", r#"{"disk":"a"}"#)]);
    let snapshot = json!({"type": "MESSAGES_SNAPSHOT", "messages": messages});
    let expected = [ignoring("t", "r3", &["reply:c1"]), snapshot, finished];
    assert_eq!(server.run("/agui/asking", &answer("r3")).await, expected);
}

#[tokio::test]
async fn an_answer_that_comes_while_the_first_is_being_followed_finds_the_thread_busy() {
    let hanging = agent("asking", |request| {
        let mut events = vec![start()];
        let resumed = !request.decisions.is_empty();
        if !resumed {
            events.extend(asks_for("c1"));
        }
        let silence = stream::pending().take(usize::from(resumed));
        stream::iter(events.into_iter().map(Ok)).chain(silence)
    });
    let server = server(Config::default(), vec![hanging]).await;
    asked(&server).await;
    let mut reader = Reader::new(server.start("/agui/asking", &answer("r2")).await);
    assert_eq!(reader.event().await, Some(expected::started("t", "r2")));
    let second = server.run("/agui/asking", &answer("r3")).await;
    assert_eq!(code(&second), "THREAD_BUSY");
}
