//! A client that comes to a thread at rest is shown what is stored, and no agent is called.

use std::sync::Arc;

use agentscope_agui::{
    agents::{AgentError, registry::Registered},
    config::Config,
};
use agui_adapter::{
    model::{AgentEvent, AgentEventKind, event::StateChange},
    options::AdapterOptions,
};
use futures_util::stream;
use serde_json::{Value, json};

use super::{
    Given, approve, calls, counting, gives, remembering, result, run_as, server, two_users, user,
    with,
};
use crate::support::{
    agents::{agent, asks_for, delta, end, plays, start},
    expected, input, resume,
};

/// Thinks, calls a tool, and answers with its result.
fn working(reasoning: bool) -> Registered {
    let thinks = AgentEvent::local(AgentEventKind::ThinkingBlockDelta {
        reply: "reply".to_owned(),
        block: "thinking".to_owned(),
        delta: "Let me look.".to_owned(),
    });
    let mut events = vec![start(), thinks, delta("I look.")];
    events.extend(calls("c1", "look", r#"{"at":"it"}"#));
    events.extend(gives("c1", "look", "a cat"));
    events.push(AgentEvent::local(AgentEventKind::State {
        change: StateChange::Set(json!({"seen": "cat"})),
    }));
    events.extend([delta("A cat."), end()]);
    let mut agent = plays("a", events);
    let options = AdapterOptions { enable_reasoning: reasoning, ..AdapterOptions::default() };
    agent.options = Arc::new(options);
    agent
}

fn messages_snapshot(messages: &[Value]) -> Value {
    json!({"type": "MESSAGES_SNAPSHOT", "messages": messages})
}

#[tokio::test]
async fn a_thread_of_which_nothing_is_stored_has_no_snapshot() {
    let given = Given::default();
    let server = server(remembering(), vec![counting(&given)]).await;
    let expected = [expected::started("t", "c"), expected::success("t", "c")];
    assert_eq!(server.run("/agui/a/connect", &input("t", "c")).await, expected);
    // The agent may stand elsewhere, as for a run; the only one is meant here.
    assert_eq!(server.run("/agui/connect", &input("t", "c")).await, expected);
    assert_eq!(given.runs(), 0);
    // Nor did that make a thread.
    assert_eq!(server.get("/agui/threads/t").send().await.unwrap().status(), 404);
}

#[tokio::test]
async fn a_history_is_shown_with_calls_and_results_and_state_and_reasoning_where_it_is_on() {
    for reasoning in [true, false] {
        let server = server(remembering(), vec![working(reasoning)]).await;
        let run = server.run("/agui/a", &input("t", "r1")).await;
        // The ids of the stream are those of the history.
        let id = |kind: &str, nth: usize| {
            let mut found = run.iter().filter(|event| event["type"] == kind);
            found.nth(nth).unwrap()["messageId"].clone()
        };
        let mut messages = vec![user("u1", "hello")];
        if reasoning {
            let id = id("REASONING_MESSAGE_START", 0);
            messages.push(json!({"id": id, "role": "reasoning", "content": "Let me look."}));
        }
        messages.push(json!({
            "id": id("TEXT_MESSAGE_START", 0), "role": "assistant", "content": "I look.",
            "toolCalls": [{
                "id": "c1", "type": "function",
                "function": {"name": "look", "arguments": r#"{"at":"it"}"#},
            }],
        }));
        let found = id("TOOL_CALL_RESULT", 0);
        messages.push(result(found.as_str().unwrap(), "c1", "a cat"));
        let last = id("TEXT_MESSAGE_START", 1);
        messages.push(json!({"id": last, "role": "assistant", "content": "A cat."}));
        let expected = [
            expected::started("t", "c"),
            messages_snapshot(&messages),
            json!({"type": "STATE_SNAPSHOT", "snapshot": {"seen": "cat"}}),
            expected::success("t", "c"),
        ];
        let shown = server.run("/agui/a/connect", &with("t", "c", &[])).await;
        assert_eq!(shown, expected);
    }
}

#[tokio::test]
async fn messages_that_only_the_client_has_are_kept_in_the_snapshot() {
    let server = server(remembering(), vec![counting(&Given::default())]).await;
    server.run("/agui/a", &with("t", "r1", &[user("u1", "one")])).await;
    let unsent = with("t", "c", &[user("u1", "one"), user("u2", "not sent yet")]);
    let expected = [
        expected::started("t", "c"),
        messages_snapshot(&[
            user("u1", "one"),
            json!({"id": "id-1", "role": "assistant", "content": "answer to 1"}),
            user("u2", "not sent yet"),
        ]),
        expected::success("t", "c"),
    ];
    assert_eq!(server.run("/agui/a/connect", &unsent).await, expected);
}

/// Asks, and says that it went on.
fn asking() -> Registered {
    agent("a", |request| {
        let mut events = vec![start()];
        match request.decisions.is_empty() {
            true => events.extend(asks_for("c1")),
            false => {
                events.extend(gives("c1", "wipe", "wiped"));
                events.extend([delta("done"), end()]);
            }
        }
        stream::iter(events.into_iter().map(Ok))
    })
}

#[tokio::test]
async fn open_interrupts_are_shown_again_under_the_same_ids_and_can_be_answered() {
    for config in [remembering(), Config::default()] {
        let server = server(config, vec![asking()]).await;
        let asked = server.run("/agui/a", &input("t", "r1")).await;
        let outcome = &asked.last().unwrap()["outcome"];
        assert_eq!(outcome["interrupts"][0]["id"], "reply:c1");
        let mut finished = expected::success("t", "c");
        finished["outcome"] = outcome.clone();
        let call = super::called("id-1", "c1", "wipe", r#"{"disk":"a"}"#);
        let expected = [
            expected::started("t", "c"),
            messages_snapshot(&[user("u1", "hello"), call]),
            finished,
        ];
        // A client after a reload knows the thread and nothing else.
        let shown = server.run("/agui/a/connect", &with("t", "c", &[])).await;
        assert_eq!(shown, expected);
        let id = shown[2]["outcome"]["interrupts"][0]["id"].as_str().unwrap();
        let mut answer = resume("t", "r2", &json!([approve(id)]));
        answer["messages"] = shown[1]["messages"].clone();
        let answered = server.run("/agui/a", &answer).await;
        assert_eq!(answered.last(), Some(&expected::success("t", "r2")));
    }
}

#[tokio::test]
async fn calls_that_wait_for_the_client_are_pending_until_they_are_answered() {
    let mut events = vec![start()];
    events.extend(calls("c1", "paint", "{}"));
    events.push(end());
    let painting = plays("painting", events);
    let server = server(remembering(), vec![painting, counting(&Given::default())]).await;
    let mut asked = input("t", "r1");
    asked["tools"] = json!([{"name": "paint", "description": "Paints.", "parameters": {}}]);
    let mut finished = expected::success("t", "r1");
    finished["outcome"]["pendingToolCallIds"] = json!(["c1"]);
    assert_eq!(server.run("/agui/painting", &asked).await.last(), Some(&finished));

    let call = super::called("id-1", "c1", "paint", "{}");
    finished["runId"] = json!("c");
    let expected = [
        expected::started("t", "c"),
        messages_snapshot(&[user("u1", "hello"), call.clone()]),
        finished,
    ];
    assert_eq!(server.run("/agui/a/connect", &with("t", "c", &[])).await, expected);
    // A client that comes with the result has answered it.
    let painted = with("t", "c", &[result("t1", "c1", "blue")]);
    let expected = [
        expected::started("t", "c"),
        messages_snapshot(&[user("u1", "hello"), call, result("t1", "c1", "blue")]),
        expected::success("t", "c"),
    ];
    assert_eq!(server.run("/agui/a/connect", &painted).await, expected);
}

#[tokio::test]
async fn a_peer_of_an_older_version_is_shown_the_thread_in_its_form() {
    let server = server(remembering(), vec![counting(&Given::default())]).await;
    server.run("/agui/a", &with("t", "r1", &[user("u1", "one")])).await;
    let mut old = with("t", "c", &[]);
    old.as_object_mut().unwrap().remove("protocolVersion");
    let mut finished = expected::success("t", "c");
    finished.as_object_mut().unwrap().remove("outcome");
    let shown = server.run("/agui/a/connect", &old).await;
    assert_eq!(shown.last(), Some(&finished));
    assert_eq!(shown.len(), 3);
}

#[tokio::test]
async fn another_user_is_shown_nothing_of_a_thread() {
    let server = server(two_users(remembering()), vec![asking()]).await;
    run_as(&server, "alice", "/agui/a", &input("t", "r1")).await;
    let shown = run_as(&server, "bob", "/agui/a/connect", &with("t", "c", &[])).await;
    assert_eq!(shown, [expected::started("t", "c"), expected::success("t", "c")]);
}

#[tokio::test]
async fn a_run_that_failed_is_told_of_until_one_ends_well() {
    let failing = agent("a", |request| {
        let fails = request.messages.len() == 1;
        let end = if fails { Err(fault()) } else { Ok(end()) };
        stream::iter([Ok(start()), Ok(delta("hm")), end])
    });
    let server = server(remembering(), vec![failing]).await;
    server.run("/agui/a", &input("t", "r1")).await;
    let shown = server.run("/agui/a/connect", &input("t", "c1")).await;
    let mut finished = expected::success("t", "c1");
    finished["metadata"] = json!({"agentscope.lastError": "MODEL_UNAVAILABLE"});
    assert_eq!(shown.last(), Some(&finished));
    server.run("/agui/a", &with("t", "r2", &[user("u2", "again")])).await;
    let shown = server.run("/agui/a/connect", &input("t", "c2")).await;
    assert_eq!(shown.last(), Some(&expected::success("t", "c2")));
}

fn fault() -> AgentError {
    AgentError { code: "MODEL_UNAVAILABLE", message: "Nobody is there.".to_owned(), cause: None }
}
