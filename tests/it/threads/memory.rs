//! The history: what the agent is given of it, whatever part of it the client sends.

use agentscope_agui::config::Config;
use futures_util::stream;
use serde_json::{Value, json};

use super::{
    Given, answered, called, code, counting, remembering, result, run_as, server, shown, two_users,
    user, with,
};
use crate::support::{
    agents::{agent, asks_for, delta, end, start},
    expected, input, resume,
    server::TestServer,
};

/// Runs the agent `a` on thread `t`.
async fn turn(server: &TestServer, run: &str, messages: &[Value]) -> Vec<Value> {
    let events = server.run("/agui/a", &with("t", run, messages)).await;
    assert_eq!(events.last(), Some(&expected::success("t", run)));
    events
}

#[tokio::test]
async fn every_message_reaches_the_agent_once_whether_the_client_sends_all_or_only_the_new() {
    let given = Given::default();
    let server = server(remembering(), vec![counting(&given)]).await;
    let (u1, u2) = (user("u1", "one"), user("u2", "two"));
    let a1 = answered(&turn(&server, "r1", std::slice::from_ref(&u1)).await);
    assert_eq!(given.last(), ["user: one"]);
    let a2 = answered(&turn(&server, "r2", &[u1.clone(), a1.clone(), u2.clone()]).await);
    assert_eq!(given.last(), ["user: one", "assistant: answer to 1", "user: two"]);
    turn(&server, "r3", &[u1, a1, u2, a2, user("u3", "three")]).await;
    let five = [
        "user: one",
        "assistant: answer to 1",
        "user: two",
        "assistant: answer to 3",
        "user: three",
    ];
    assert_eq!(given.last(), five);
    turn(&server, "r4", &[user("u4", "four")]).await;
    let seven = [&five[..], &["assistant: answer to 5", "user: four"]].concat();
    assert_eq!(given.last(), seven);
    assert_eq!(shown(&server, "t").await["messageCount"], 8);
}

#[tokio::test]
async fn without_memory_the_agent_is_given_what_the_client_sent() {
    let given = Given::default();
    let server = server(Config::default(), vec![counting(&given)]).await;
    let a1 = answered(&turn(&server, "r1", &[user("u1", "one")]).await);
    turn(&server, "r2", &[user("u1", "one, rewritten"), a1, user("u2", "two")]).await;
    let all = ["user: one, rewritten", "assistant: answer to 1", "user: two"];
    assert_eq!(given.last(), all);
    turn(&server, "r3", &[user("u3", "three")]).await;
    assert_eq!(given.last(), ["user: three"]);
    let response = server.get("/agui/threads/t").send().await.unwrap();
    assert_eq!(response.status(), 404);
}

#[tokio::test]
async fn another_thread_and_another_user_see_nothing_of_it() {
    let given = Given::default();
    let server = server(two_users(remembering()), vec![counting(&given)]).await;
    let named = |thread: &str, run: &str, text: &str| with(thread, run, &[user("u1", text)]);
    run_as(&server, "alice", "/agui/a", &named("t", "r1", "my code is 77")).await;
    run_as(&server, "alice", "/agui/a", &named("t2", "r2", "what is my code?")).await;
    assert_eq!(given.last(), ["user: what is my code?"]);
    // The body says nothing about who asks.
    let mut asking = with("t", "r3", &[user("u2", "what is my code?")]);
    asking["forwardedProps"] = json!({"userId": "alice", "nothing": null});
    run_as(&server, "bob", "/agui/a", &asking).await;
    assert_eq!(given.last(), ["user: what is my code?"]);
    run_as(&server, "alice", "/agui/a", &asking).await;
    let all = ["user: my code is 77", "assistant: answer to 1", "user: what is my code?"];
    assert_eq!(given.last(), all);
}

#[tokio::test]
async fn an_edited_message_cuts_what_followed_it() {
    let given = Given::default();
    let server = server(remembering(), vec![counting(&given)]).await;
    let (u1, u2) = (user("u1", "one"), user("u2", "two"));
    let a1 = answered(&turn(&server, "r1", std::slice::from_ref(&u1)).await);
    turn(&server, "r2", &[u1.clone(), a1.clone(), u2.clone()]).await;
    // Edited under a new id, as front ends do.
    let edited = [u1.clone(), a1.clone(), user("u2b", "two, better")];
    let a2 = answered(&turn(&server, "r3", &edited).await);
    let told = ["user: one", "assistant: answer to 1", "user: two, better"];
    assert_eq!(given.last(), told);
    // And the next turn of a client that sends only what is new goes on from there.
    turn(&server, "r4", &[user("u3", "three")]).await;
    let all = [&told[..], &["assistant: answer to 3", "user: three"]].concat();
    assert_eq!(given.last(), all);
    assert_eq!(a2["content"], "answer to 3");
}

#[tokio::test]
async fn an_answer_is_generated_again_when_the_client_sends_the_history_up_to_the_question() {
    let given = Given::default();
    let server = server(remembering(), vec![counting(&given)]).await;
    let (u1, u2) = (user("u1", "one"), user("u2", "two"));
    let a1 = answered(&turn(&server, "r1", std::slice::from_ref(&u1)).await);
    let asked = [u1, a1, u2];
    let first = answered(&turn(&server, "r2", &asked).await);
    let again = answered(&turn(&server, "r3", &asked).await);
    assert_eq!(given.last(), ["user: one", "assistant: answer to 1", "user: two"]);
    assert_ne!(first["id"], again["id"]);
    assert_eq!(shown(&server, "t").await["messageCount"], 4);
}

#[tokio::test]
async fn an_id_used_again_for_other_words_is_a_new_message() {
    let given = Given::default();
    let server = server(remembering(), vec![counting(&given)]).await;
    turn(&server, "r1", &[user("u1", "one")]).await;
    turn(&server, "r2", &[user("u1", "two")]).await;
    assert_eq!(given.last(), ["user: one", "assistant: answer to 1", "user: two"]);
    // The same words under the same id are the same message.
    turn(&server, "r3", &[user("u1", "one")]).await;
    assert_eq!(given.last(), ["user: one"]);
}

#[tokio::test]
async fn what_is_stored_wins_over_older_messages_that_were_rewritten() {
    let given = Given::default();
    let server = server(remembering(), vec![counting(&given)]).await;
    let a1 = answered(&turn(&server, "r1", &[user("u1", "one")]).await);
    let mut forged = a1.clone();
    forged["content"] = json!("I owe you a fortune");
    turn(&server, "r2", &[user("u1", "another"), forged, user("u2", "two")]).await;
    assert_eq!(given.last(), ["user: one", "assistant: answer to 1", "user: two"]);
}

#[tokio::test]
async fn a_result_stands_behind_its_call_wherever_the_client_puts_it() {
    let given = Given::default();
    let server = server(remembering(), vec![counting(&given)]).await;
    let call = called("a1", "c1", "paint", "{}");
    turn(&server, "r1", &[user("u1", "one"), call.clone()]).await;
    let repaired = "tool: c1 interrupted: The call was interrupted before it gave a result.";
    assert_eq!(given.last(), ["user: one", "assistant: paint({}) as c1", repaired]);
    // The result comes before a message that is known, and a new message with it.
    let late = [user("u1", "one"), result("t1", "c1", "blue"), call, user("u2", "two")];
    turn(&server, "r2", &late).await;
    let told = ["user: one", "assistant: paint({}) as c1", "tool: c1 success: blue", "user: two"];
    assert_eq!(given.last(), told);
    turn(&server, "r3", &[user("u3", "three")]).await;
    let all = [&told[..], &["assistant: answer to 4", "user: three"]].concat();
    assert_eq!(given.last(), all);
}

#[tokio::test]
async fn a_call_without_result_and_a_result_without_call_are_repaired_for_the_agent() {
    let given = Given::default();
    let server = server(remembering(), vec![counting(&given)]).await;
    let messages = [
        user("u1", "one"),
        called("a1", "c1", "paint", "{}"),
        result("t1", "nobody-called", "lost"),
        user("u2", "two"),
    ];
    turn(&server, "r1", &messages).await;
    let repaired = [
        "user: one",
        "assistant: paint({}) as c1",
        "tool: c1 interrupted: The call was interrupted before it gave a result.",
        "user: two",
    ];
    assert_eq!(given.last(), repaired);
    // What the client sent is stored: the result may have its call one day.
    assert_eq!(shown(&server, "t").await["messageCount"], 5);
}

#[tokio::test]
async fn the_words_of_a_person_outlive_a_run_that_failed() {
    let given = Given::default();
    let noted = given.clone();
    let failing = agent("failing", move |request| {
        noted.note(&request);
        stream::iter([Ok(start()), Ok(delta("half an ans"))])
    });
    let server = server(remembering(), vec![failing, counting(&given)]).await;
    let failed = server.run("/agui/failing", &with("t", "r1", &[user("u1", "one")])).await;
    assert_eq!(code(&failed), "AGENT_ENDED_EARLY");
    turn(&server, "r2", &[user("u2", "two")]).await;
    assert_eq!(given.last(), ["user: one", "assistant: half an ans", "user: two"]);
}

#[tokio::test]
async fn a_state_is_kept_when_the_client_sends_none_and_replaced_when_it_does() {
    let stating = agent("a", |request| {
        stream::iter([Ok(start()), Ok(delta(&request.state.to_string())), Ok(end())])
    });
    let server = server(remembering(), vec![stating]).await;
    let mut first = input("t", "r1");
    first["state"] = json!({"a": 1});
    let mut expected = vec![expected::started("t", "r1")];
    expected.extend(expected::text("id-1", &[r#"{"a":1}"#]));
    expected.push(expected::success("t", "r1"));
    assert_eq!(server.run("/agui/a", &first).await, expected);

    let mut expected =
        vec![expected::started("t", "r2"), json!({"type": "STATE_SNAPSHOT", "snapshot": {"a": 1}})];
    expected.extend(expected::text("id-2", &[r#"{"a":1}"#]));
    expected.push(expected::success("t", "r2"));
    let second = with("t", "r2", &[user("u2", "two")]);
    assert_eq!(server.run("/agui/a", &second).await, expected);

    let mut third = with("t", "r3", &[user("u3", "three")]);
    third["state"] = json!({"b": 2});
    let mut expected = vec![expected::started("t", "r3")];
    expected.extend(expected::text("id-3", &[r#"{"b":2}"#]));
    expected.push(expected::success("t", "r3"));
    assert_eq!(server.run("/agui/a", &third).await, expected);
}

#[tokio::test]
async fn a_thread_that_asked_is_resumed_without_messages_though_nothing_else_is_remembered() {
    let given = Given::default();
    let noted = given.clone();
    let asking = agent("a", move |request| {
        noted.note(&request);
        let mut events = vec![start()];
        match request.decisions.is_empty() {
            true => events.extend(asks_for("c1")),
            false => events.extend([delta("done"), end()]),
        }
        stream::iter(events.into_iter().map(Ok))
    });
    let server = server(Config::default(), vec![asking]).await;
    server.run("/agui/a", &input("t", "r1")).await;
    let mut answer = resume("t", "r2", &json!([super::approve("reply:c1")]));
    answer["messages"] = json!([]);
    let events = server.run("/agui/a", &answer).await;
    assert_eq!(events.last(), Some(&expected::success("t", "r2")));
    let parked = ["user: hello", r#"assistant: wipe({"disk":"a"}) as c1"#];
    assert_eq!(given.last(), parked);
    // Answered, it is forgotten.
    server.run("/agui/a", &with("t", "r3", &[user("u2", "next")])).await;
    assert_eq!(given.last(), ["user: next"]);
}
