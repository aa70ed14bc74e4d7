//! `interrupt-ttl`: questions that cannot be answered any more.

use std::{sync::Arc, time::Duration};

use agentscope_agui::{agents::registry::Registered, config::Config};
use agui_adapter::options::AdapterOptions;
use serde_json::json;

use super::{Given, Hand, approve, asking, contract, remembering, said, timed, user, with};
use crate::support::{expected, input, resume, server::TestServer};

/// What it asks can be answered for a minute.
fn hurrying(given: &Given) -> Registered {
    let mut agent = asking(given, &["c1", "c2"]);
    let ttl = Some(Duration::from_secs(60));
    agent.options = Arc::new(AdapterOptions { interrupt_ttl: ttl, ..AdapterOptions::default() });
    agent
}

async fn asked(config: Config, given: &Given, hand: &Hand) -> (TestServer, serde_json::Value) {
    let server = timed(config, hand, vec![hurrying(given)]).await;
    let events = server.run("/agui/asking", &input("t", "r1")).await;
    let open = events.last().unwrap()["outcome"]["interrupts"].clone();
    (server, open)
}

fn both(status: &str) -> serde_json::Value {
    json!(
        ["reply:c1", "reply:c2"].map(|id| {
            json!({"interruptId": id, "status": status, "payload": {"approved": true}})
        })
    )
}

#[tokio::test]
async fn an_interrupt_says_how_long_it_can_be_answered_and_is_until_then() {
    let hand = Hand::default();
    let (server, open) = asked(Config::default(), &Given::default(), &hand).await;
    assert_eq!(open[0]["expiresAt"], "2023-11-14T22:14:20.000Z");
    assert_eq!(open[1]["expiresAt"], "2023-11-14T22:14:20.000Z");
    hand.forward(59_999);
    let events = server.run("/agui/asking", &resume("t", "r2", &both("resolved"))).await;
    assert_eq!(said(&events), r#"run c1 {"disk":"a"}; run c2 {"disk":"a"}"#);
}

#[tokio::test]
async fn an_answer_that_comes_too_late_is_refused_and_a_cancellation_is_not() {
    let hand = Hand::default();
    let given = Given::default();
    let (server, open) = asked(Config::default(), &given, &hand).await;
    hand.forward(60_000);
    let events = server.run("/agui/asking", &resume("t", "r2", &both("resolved"))).await;
    let message = "These interrupts have expired and can only be cancelled: reply:c1, reply:c2.";
    let mut error = contract(message, &open);
    error["timestamp"] = json!(super::NOW_MS + 60_000);
    assert_eq!(events, [expected::started("t", "r2"), error.clone()]);
    // One of them is as bad as both.
    let one = json!([approve("reply:c1")]);
    let events = server.run("/agui/asking", &resume("t", "r3", &one)).await;
    error["message"] = json!("These interrupts have expired and can only be cancelled: reply:c1.");
    assert_eq!(events, [expected::started("t", "r3"), error]);
    assert_eq!(given.runs(), 1);
    let events = server.run("/agui/asking", &resume("t", "r4", &both("cancelled"))).await;
    assert_eq!(events.last(), Some(&expected::success("t", "r4")));
    assert_eq!(said(&events), "do not run c1; do not run c2");
}

#[tokio::test]
async fn a_client_that_hides_what_expired_goes_on_and_the_calls_are_denied() {
    let hand = Hand::default();
    let given = Given::default();
    let (server, _open) = asked(remembering(), &given, &hand).await;
    hand.forward(60_000);
    let turn = with("t", "r2", &[user("u2", "so?")]);
    // The calls are in the history that the server keeps.
    let events = server.run_but(&["TOOL-14"], "/agui/asking", &turn).await;
    let result = |id: &str, call: &str| {
        json!({
            "type": "TOOL_CALL_RESULT", "messageId": id, "toolCallId": call, "role": "tool",
            "content": "Permission denied by user",
            "metadata": {"agentscope.state": "denied"},
        })
    };
    let results: Vec<_> =
        events.iter().filter(|event| event["type"] == "TOOL_CALL_RESULT").cloned().collect();
    assert_eq!(results.len(), 2);
    let ids: Vec<&str> = results.iter().map(|one| one["messageId"].as_str().unwrap()).collect();
    assert_eq!(results, [result(ids[0], "c1"), result(ids[1], "c2")]);
    assert_eq!(said(&events), "do not run c1; do not run c2");
    assert_eq!(events.last(), Some(&expected::success("t", "r2")));
    // The answer comes after all: it runs nothing, and the client is told how it ended.
    let late = with("t", "r3", &[user("u3", "now!")]);
    let mut late_answer = late.clone();
    late_answer["resume"] = both("resolved");
    let events = server.run("/agui/asking", &late_answer).await;
    assert_eq!(events[0], super::ignoring("t", "r3", &["reply:c1", "reply:c2"]));
}
