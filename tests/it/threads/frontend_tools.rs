//! Calls that the client or somebody else outside executes.

use std::sync::Arc;

use agentscope_agui::{agents::registry::Registered, config::Config};
use agui_adapter::{
    model::{AgentEvent, AgentEventKind, event::Call},
    options::{AdapterOptions, FrontendToolOutcome},
};
use futures_util::stream;
use serde_json::{Value, json};

use super::{
    Given, called, calls, code, raised, remembering, result, said, server, shown, user, verdicts,
    with,
};
use crate::support::{
    agents::{agent, asks_for, delta, end, start},
    expected, input, resume,
};

/// Asks somebody outside to execute a call of `paint`.
fn hands_out(call: &str) -> Vec<AgentEvent> {
    let arguments = r#"{"color":"?"}"#;
    let asked = Call {
        id: call.to_owned(),
        name: "paint".to_owned(),
        arguments: arguments.to_owned(),
        input: serde_json::from_str(arguments).ok(),
        suggested_rules: Vec::new(),
    };
    let reply = "reply".to_owned();
    let mut events = calls(call, "paint", arguments);
    let kind = AgentEventKind::RequireExternalExecution { reply, calls: vec![asked] };
    events.push(AgentEvent::local(kind));
    events
}

/// Hands out `c1` and, if `asks`, asks for `c2`. In any other run than `r1` it says what it was
/// told.
fn painting(given: &Given, asks: bool) -> Registered {
    let given = given.clone();
    agent("a", move |request| {
        given.note(&request);
        let mut events = vec![start()];
        if request.run_id.as_str() == "r1" {
            events.extend(hands_out("c1"));
            if asks {
                events.extend(asks_for("c2"));
            }
        } else {
            events.push(delta(&format!("told: {}", verdicts(&request))));
        }
        events.push(end());
        stream::iter(events.into_iter().map(Ok))
    })
}

/// With the tool `paint` of the client.
fn able(mut input: Value) -> Value {
    input["tools"] = json!([{"name": "paint", "description": "Paints.", "parameters": {}}]);
    input
}

fn interrupting(mut agent: Registered) -> Registered {
    let frontend_tool_outcome = FrontendToolOutcome::Interrupt;
    agent.options = Arc::new(AdapterOptions { frontend_tool_outcome, ..AdapterOptions::default() });
    agent
}

/// With `frontend-tool-outcome: interrupt` an interrupt may be about a tool of the client.
const ON_PURPOSE: &[&str] = &["INT-24"];
/// What is asked beside a call of the client waits for the next run.
const DEFERRED: &[&str] = &["TOOL-15"];

fn pending(run: &str) -> Value {
    let mut finished = expected::success("t", run);
    finished["outcome"]["pendingToolCallIds"] = json!(["c1"]);
    finished
}

fn answer(payload: &Value) -> Value {
    json!([{"interruptId": "reply:c1", "status": "resolved", "payload": payload}])
}

const PAINTED: [&str; 3] =
    ["user: hello", r#"assistant: paint({"color":"?"}) as c1"#, "tool: c1 success: blue"];

#[tokio::test]
async fn a_call_of_the_client_is_pending_and_its_result_comes_as_a_message() {
    for config in [remembering(), Config::default()] {
        let given = Given::default();
        let server = server(config, vec![painting(&given, false)]).await;
        let first = server.run("/agui/a", &able(input("t", "r1"))).await;
        assert_eq!(first.last(), Some(&pending("r1")));
        let call = called("id-1", "c1", "paint", r#"{"color":"?"}"#);
        // Result first, then the message, however the client orders them.
        let turn = [user("u1", "hello"), call, result("t1", "c1", "blue"), user("u2", "and red?")];
        let second = server.run("/agui/a", &able(with("t", "r2", &turn))).await;
        assert_eq!(given.last(), [&PAINTED[..], &["user: and red?"]].concat());
        assert_eq!(second.last(), Some(&expected::success("t", "r2")));
        let results = second.iter().filter(|event| event["type"] == "TOOL_CALL_RESULT");
        assert_eq!(results.count(), 0);
    }
}

#[tokio::test]
async fn a_client_that_sends_only_what_is_new_sends_the_result_alone() {
    let given = Given::default();
    let server = server(remembering(), vec![painting(&given, false)]).await;
    server.run("/agui/a", &able(input("t", "r1"))).await;
    server.run("/agui/a", &able(with("t", "r2", &[result("t1", "c1", "blue")]))).await;
    assert_eq!(given.last(), PAINTED);
}

#[tokio::test]
async fn an_older_peer_is_told_no_outcome_of_a_pending_call() {
    let server = server(Config::default(), vec![painting(&Given::default(), false)]).await;
    let mut old = able(input("t", "r1"));
    old.as_object_mut().unwrap().remove("protocolVersion");
    let mut finished = pending("r1");
    finished.as_object_mut().unwrap().remove("outcome");
    assert_eq!(server.run("/agui/a", &old).await.last(), Some(&finished));
}

#[tokio::test]
async fn a_call_that_somebody_outside_executes_is_an_interrupt_which_no_message_answers() {
    let given = Given::default();
    let server = server(remembering(), vec![painting(&given, false)]).await;
    // The client has no such tool.
    let first = server.run("/agui/a", &input("t", "r1")).await;
    assert_eq!(raised(&first), ["reply:c1"]);
    let message = with("t", "r2", &[result("t1", "c1", "blue")]);
    let refused = server.run("/agui/a", &message).await;
    assert_eq!(code(&refused), "AGUI_INTERRUPT_CONTRACT_ERROR");
    let second = server.run("/agui/a", &resume("t", "r3", &answer(&json!({"c": "blue"})))).await;
    assert_eq!(said(&second), r#"told: c1 gave {"c":"blue"}"#);
    let results: Vec<&Value> =
        second.iter().filter(|event| event["type"] == "TOOL_CALL_RESULT").collect();
    assert_eq!(results.len(), 1);
    assert_eq!(results[0]["content"], r#"{"c":"blue"}"#);
}

#[tokio::test]
async fn where_a_call_of_the_client_is_an_interrupt_a_resume_answers_it() {
    let given = Given::default();
    let server = server(remembering(), vec![interrupting(painting(&given, false))]).await;
    let first = server.run_but(ON_PURPOSE, "/agui/a", &able(input("t", "r1"))).await;
    assert_eq!(raised(&first), ["reply:c1"]);
    let second = server.run("/agui/a", &able(resume("t", "r2", &answer(&json!("blue"))))).await;
    assert_eq!(said(&second), "told: c1 gave blue");
    assert_eq!(second.last(), Some(&expected::success("t", "r2")));
}

#[tokio::test]
async fn where_a_call_of_the_client_is_an_interrupt_its_message_answers_it_too() {
    for config in [remembering(), Config::default()] {
        let given = Given::default();
        let server = server(config, vec![interrupting(painting(&given, false))]).await;
        server.run_but(ON_PURPOSE, "/agui/a", &able(input("t", "r1"))).await;
        let turn = able(with("t", "r2", &[result("t1", "c1", "blue")]));
        let second = server.run("/agui/a", &turn).await;
        assert_eq!(second.last(), Some(&expected::success("t", "r2")));
        assert_eq!(given.last(), PAINTED);
        // It is answered.
        let mut late = able(resume("t", "r3", &answer(&json!("red"))));
        late["messages"] = json!([user("u2", "next")]);
        let third = server.run("/agui/a", &late).await;
        assert_eq!(third[0], super::ignoring("t", "r3", &["reply:c1"]));
    }
}

#[tokio::test]
async fn of_a_resume_and_a_message_for_one_call_the_resume_counts() {
    let given = Given::default();
    let server = server(remembering(), vec![interrupting(painting(&given, false))]).await;
    server.run_but(ON_PURPOSE, "/agui/a", &able(input("t", "r1"))).await;
    let mut twice = able(resume("t", "r2", &answer(&json!("blue"))));
    twice["messages"] = json!([user("u1", "hello"), result("t1", "c1", "red")]);
    let second = server.run("/agui/a", &twice).await;
    assert_eq!(said(&second), "told: c1 gave blue");
    assert_eq!(given.last(), PAINTED[..2]);
}

#[tokio::test]
async fn what_is_asked_beside_a_call_of_the_client_is_raised_when_that_is_answered() {
    for config in [remembering(), Config::default()] {
        let given = Given::default();
        let server = server(config, vec![painting(&given, true)]).await;
        let first = server.run_but(DEFERRED, "/agui/a", &able(input("t", "r1"))).await;
        // What has no result is pending; the client executes what it can.
        let mut finished = pending("r1");
        finished["outcome"]["pendingToolCallIds"] = json!(["c1", "c2"]);
        assert_eq!(first.last(), Some(&finished));
        let thread = shown(&server, "t").await;
        assert_eq!((&thread["status"], &thread["openInterrupts"]), (&json!("idle"), &json!([])));

        let painted = able(with("t", "r2", &[result("t1", "c1", "blue")]));
        let second = server.run("/agui/a", &painted).await;
        assert_eq!(second[0], expected::started("t", "r2"));
        assert_eq!(second.len(), 2);
        assert_eq!(raised(&second), ["reply:c2"]);
        assert_eq!(given.runs(), 1);
        assert_eq!(shown(&server, "t").await["status"], "interrupted");

        let mut approved = able(resume("t", "r3", &json!([super::approve("reply:c2")])));
        approved["messages"] = json!([]);
        let third = server.run("/agui/a", &approved).await;
        assert_eq!(said(&third), r#"told: run c2 {"disk":"a"}"#);
        let told = [
            "user: hello",
            r#"assistant: paint({"color":"?"}) as c1 | wipe({"disk":"a"}) as c2"#,
            "tool: c1 success: blue",
        ];
        assert_eq!(given.last(), told);
    }
}
