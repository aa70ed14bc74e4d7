//! Exactly once: a call whose result is there is not executed again, though the run that executed
//! it failed.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use agentscope_agui::{
    agents::{AgentError, registry::Registered},
    config::Config,
};
use agui_adapter::{
    model::AgentEvent,
    options::{AdapterOptions, Droppable, EnricherSpec},
    resume::StoredResult,
};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

use super::{
    approve, at_rest, code, gives, raised, remembering, result, said, server, user, verdicts,
};
use crate::support::{
    agents::{agent, asks_for, delta, end, start},
    expected, input, resume,
    server::TestServer,
    sse::Reader,
};

/// How the first run that executes something ends.
#[derive(Clone, Copy, PartialEq)]
enum Then {
    Fails,
    Hangs,
}

/// Asks for two calls. Resumed, it executes what is approved and not done yet: in run `r2` only
/// the first, after which it comes to its end; else all, and says what it was told.
fn executing(executed: &Arc<AtomicUsize>, then: Then) -> Registered {
    let executed = Arc::clone(executed);
    agent("asking", move |request| {
        let mut items = vec![Ok(start())];
        let first = request.run_id.as_str() == "r2";
        let open = request.decisions.iter().filter(|decision| !decision.settled);
        let calls = open.filter_map(|decision| decision.open.call.clone());
        for call in calls.take(if first { 1 } else { 2 }) {
            executed.fetch_add(1, Ordering::Relaxed);
            items.extend(
                gives(&call.id, "wipe", &format!("{} is done", call.id)).into_iter().map(Ok),
            );
        }
        if request.decisions.is_empty() {
            items.extend(asks_for("c1").into_iter().chain(asks_for("c2")).map(Ok));
        } else if !first {
            items.extend([Ok(delta(&verdicts(&request))), Ok(end())]);
        } else if then == Then::Fails {
            items.push(Err(AgentError {
                code: "MODEL_UNAVAILABLE",
                message: "The model cannot be reached.".to_owned(),
                cause: None,
            }));
        }
        let hangs = first && then == Then::Hangs;
        stream::iter(items).chain(stream::pending().take(usize::from(hangs)))
    })
}

fn both(run: &str) -> Value {
    resume("t", run, &json!([approve("reply:c1"), approve("reply:c2")]))
}

async fn asked(server: &TestServer) {
    let events = server.run("/agui/asking", &input("t", "r1")).await;
    assert_eq!(raised(&events), ["reply:c1", "reply:c2"]);
}

/// The results of a run: call and text.
fn results(events: &[Value]) -> Vec<(&str, &str)> {
    let results = events.iter().filter(|event| event["type"] == "TOOL_CALL_RESULT");
    results
        .map(|one| (one["toolCallId"].as_str().unwrap(), one["content"].as_str().unwrap()))
        .collect()
}

const TOLD: &str = r#"did run c1 {"disk":"a"}; run c2 {"disk":"a"}"#;

#[tokio::test]
async fn a_retry_executes_only_what_has_no_result_and_sends_the_result_that_the_client_lacks() {
    for config in [remembering(), Config::default()] {
        let executed = Arc::default();
        let server = server(config, vec![executing(&executed, Then::Fails)]).await;
        asked(&server).await;
        let failed = server.run("/agui/asking", &both("r2")).await;
        assert_eq!(results(&failed), [("c1", "c1 is done")]);
        assert_eq!(code(&failed), "MODEL_UNAVAILABLE");

        let retried = server.run("/agui/asking", &both("r3")).await;
        assert_eq!(results(&retried), [("c1", "c1 is done"), ("c2", "c2 is done")]);
        assert_eq!(said(&retried), TOLD);
        assert_eq!(retried.last(), Some(&expected::success("t", "r3")));
        assert_eq!(executed.load(Ordering::Relaxed), 2);
    }
}

#[tokio::test]
async fn a_client_that_has_the_result_is_not_sent_it_again() {
    let executed = Arc::default();
    let server = server(Config::default(), vec![executing(&executed, Then::Fails)]).await;
    asked(&server).await;
    let failed = server.run("/agui/asking", &both("r2")).await;
    let mut retry = both("r3");
    let id = failed[1]["messageId"].as_str().unwrap();
    retry["messages"] = json!([user("u1", "hello"), result(id, "c1", "c1 is done")]);
    let retried = server.run("/agui/asking", &retry).await;
    assert_eq!(results(&retried), [("c2", "c2 is done")]);
    assert_eq!(executed.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn only_what_is_open_still_needs_an_answer_and_what_is_done_takes_no_other() {
    let executed = Arc::default();
    let server = server(Config::default(), vec![executing(&executed, Then::Fails)]).await;
    asked(&server).await;
    server.run("/agui/asking", &both("r2")).await;
    // Too late to deny the first; the second can be.
    let deny = |id: &str| json!({"interruptId": id, "status": "resolved", "payload": {}});
    let none = server.run("/agui/asking", &resume("t", "r3", &json!([deny("reply:c1")]))).await;
    assert_eq!(code(&none), "AGUI_INTERRUPT_CONTRACT_ERROR");
    let open = none[1]["metadata"]["agentscope.openInterrupts"].as_array().unwrap();
    assert_eq!((open.len(), &open[0]["id"]), (1, &json!("reply:c2")));
    let entries = json!([deny("reply:c1"), approve("reply:c2")]);
    let retried = server.run("/agui/asking", &resume("t", "r4", &entries)).await;
    assert_eq!(said(&retried), TOLD);
    assert_eq!(executed.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_client_that_leaves_after_a_result_finds_it_when_it_comes_back() {
    for config in [remembering(), Config::default()] {
        let executed = Arc::default();
        let server = server(config, vec![executing(&executed, Then::Hangs)]).await;
        asked(&server).await;
        let mut reader = Reader::new(server.start("/agui/asking", &both("r2")).await);
        assert_eq!(reader.event().await.unwrap()["type"], "RUN_STARTED");
        assert_eq!(reader.event().await.unwrap()["type"], "TOOL_CALL_RESULT");
        drop(reader);
        at_rest(&server).await;
        let retried = server.run("/agui/asking", &both("r3")).await;
        assert_eq!(results(&retried), [("c1", "c1 is done"), ("c2", "c2 is done")]);
        assert_eq!(said(&retried), TOLD);
        assert_eq!(executed.load(Ordering::Relaxed), 2);
    }
}

/// The same event, said by a child.
fn of_child(event: AgentEvent) -> AgentEvent {
    AgentEvent { source: Some("main/child".into()), ..event }
}

/// A child asks; approved, it executes what has no result. Run `r2` fails then. What the child is
/// told of a result that was there is kept.
fn asking_child(executed: &Arc<AtomicUsize>, told: &Arc<Mutex<Vec<StoredResult>>>) -> Registered {
    let (executed, told) = (Arc::clone(executed), Arc::clone(told));
    agent("asking", move |request| {
        let mut items = vec![Ok(start()), Ok(of_child(start()))];
        if request.decisions.is_empty() {
            items.extend(asks_for("c1").into_iter().map(of_child).map(Ok));
            return stream::iter(items);
        }
        for decision in request.decisions {
            if decision.settled {
                told.lock().unwrap().extend(decision.result);
            } else {
                executed.fetch_add(1, Ordering::Relaxed);
                items.extend(gives("c1", "wipe", "done").into_iter().map(of_child).map(Ok));
            }
        }
        let fails = request.run_id.as_str() == "r2";
        let code = "MODEL_UNAVAILABLE";
        let failure = AgentError { code, message: "Nobody is there.".to_owned(), cause: None };
        items.push(if fails { Err(failure) } else { Ok(end()) });
        stream::iter(items)
    })
}

/// The same agent, of whose CUSTOM events clients see nothing.
fn without_custom(agent: Registered) -> Registered {
    let mut options = AdapterOptions::clone(&agent.options);
    options.enrichers.push(EnricherSpec::Drop { event: Droppable::Custom, name: None });
    Registered { options: Arc::new(options), ..agent }
}

#[tokio::test]
async fn a_call_of_a_child_is_executed_once_however_clients_are_told_of_it() {
    let old = |mut input: Value| {
        input.as_object_mut().unwrap().shift_remove("protocolVersion");
        input
    };
    let executed = Arc::default();
    let told = Arc::default();
    for hides in [false, true] {
        let agent = asking_child(&executed, &told);
        let agent = if hides { without_custom(agent) } else { agent };
        let server = server(Config::default(), vec![agent]).await;
        // Whoever asks, executes and tries again: an old client or a current one.
        for (round, of_old) in [[true; 3], [false, true, false], [true, false, true], [false; 3]]
            .into_iter()
            .enumerate()
        {
            let thread = format!("t{round}");
            let by = |at: usize, input: Value| if of_old[at] { old(input) } else { input };
            let asked = server.run("/agui/asking", &by(0, input(&thread, "r1"))).await;
            let ids = raised(&asked);
            assert_eq!(ids.len(), 1);
            let answer = |run: &str| resume(&thread, run, &json!([approve(ids[0])]));
            let failed = server.run("/agui/asking", &by(1, answer("r2"))).await;
            assert_eq!(code(&failed), "MODEL_UNAVAILABLE");
            server.run("/agui/asking", &by(2, answer("r3"))).await;
            assert_eq!(executed.swap(0, Ordering::Relaxed), 1, "{hides} {of_old:?}");
            // The child is told what came of it, which no message of the run says.
            let result = StoredResult { text: "done".to_owned(), state: "success".to_owned() };
            assert_eq!(std::mem::take(&mut *told.lock().unwrap()), [result]);
        }
    }
}
