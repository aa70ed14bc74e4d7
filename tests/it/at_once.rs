//! Requests for one thread that meet: one of them has it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use agentscope_agui::{
    agents::{AgentRequest, registry::Registered},
    config::Config,
};
use agui_adapter::{
    model::{AgentEvent, AgentEventKind, event::ResultState},
    resume::Verdict,
};
use async_stream::stream;
use serde_json::{Value, json};
use tokio::{
    sync::{Barrier, Notify},
    task::JoinSet,
};

use super::{
    support::{
        agents::{agent, asks_for, delta, end, says_its_id, start},
        expected, input, resume,
        server::{TestServer, checked},
        sse::Reader,
    },
    threads::server,
};

const ROUNDS: usize = 200;

/// Executions of approved calls, by thread.
type Executed = Arc<Mutex<HashMap<String, usize>>>;

/// Asks for a call, executes it when it was approved, and counts that.
fn wiping(executed: &Executed) -> Registered {
    let executed = Arc::clone(executed);
    agent("a", move |request: AgentRequest| {
        let executed = Arc::clone(&executed);
        stream! {
            yield Ok(start());
            if request.decisions.is_empty() {
                for event in asks_for("c1") {
                    yield Ok(event);
                }
                return;
            }
            for decision in request.decisions.iter().filter(|decision| !decision.settled) {
                let Verdict::Approved { call, .. } = &decision.verdict else { continue };
                tokio::task::yield_now().await;
                let thread = request.thread_id.as_str().to_owned();
                *executed.lock().unwrap().entry(thread).or_default() += 1;
                for event in result(&call.id) {
                    yield Ok(event);
                }
            }
            yield Ok(end());
        }
    })
}

fn result(call: &str) -> [AgentEvent; 3] {
    let (reply, call) = ("reply".to_owned(), call.to_owned());
    [
        AgentEventKind::ToolResultStart {
            reply: reply.clone(),
            call: call.clone(),
            name: "wipe".to_owned(),
        },
        AgentEventKind::ToolResultTextDelta { call: call.clone(), delta: "wiped".to_owned() },
        AgentEventKind::ToolResultEnd { reply, call, state: ResultState::Success },
    ]
    .map(AgentEvent::local)
}

/// Sends both at the same instant and gives what came of them.
async fn both(server: &Arc<TestServer>, path: &'static str, inputs: [Value; 2]) -> [Vec<Value>; 2] {
    let barrier = Arc::new(Barrier::new(2));
    let mut clicks = JoinSet::new();
    for (at, input) in inputs.into_iter().enumerate() {
        let (server, barrier) = (Arc::clone(server), Arc::clone(&barrier));
        clicks.spawn(async move {
            barrier.wait().await;
            (at, without_ids(server.run(path, &input).await))
        });
    }
    let mut answers = clicks.join_all().await;
    answers.sort_by_key(|(at, _)| *at);
    let [(_, one), (_, other)] = <[_; 2]>::try_from(answers).unwrap();
    [one, other]
}

/// Which ids messages get depends on who comes first.
fn without_ids(mut events: Vec<Value>) -> Vec<Value> {
    for event in &mut events {
        let event = event.as_object_mut().unwrap();
        event.shift_remove("messageId");
        for message in
            event.get_mut("messages").into_iter().flat_map(|all| all.as_array_mut().unwrap())
        {
            message.as_object_mut().unwrap().shift_remove("id");
        }
    }
    events
}

fn busy(thread: &str, run: &str) -> Vec<Value> {
    let message = "This thread has a run already; wait for its end before starting another one.";
    vec![expected::started(thread, run), expected::error("THREAD_BUSY", message)]
}

/// The run that executes the call.
fn answered(thread: &str, run: &str) -> Vec<Value> {
    let result = json!({
        "type": "TOOL_CALL_RESULT", "toolCallId": "c1", "content": "wiped", "role": "tool",
    });
    vec![expected::started(thread, run), result, expected::success(thread, run)]
}

/// The one that comes after its end.
fn told_again(thread: &str, run: &str) -> Vec<Value> {
    let mut started = expected::started(thread, run);
    started["metadata"] = json!({"agentscope.ignoredResume": ["reply:c1"]});
    let call = json!({
        "id": "c1", "type": "function", "function": {"name": "wipe", "arguments": "{\"disk\":\"a\"}"},
    });
    let messages = json!([
        {"role": "user", "content": "hello"},
        {"role": "assistant", "toolCalls": [call]},
        {"role": "tool", "toolCallId": "c1", "content": "wiped"},
    ]);
    let snapshot = json!({"type": "MESSAGES_SNAPSHOT", "messages": messages});
    vec![started, snapshot, expected::success(thread, run)]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_double_click_executes_an_approved_call_once() {
    let executed = Executed::default();
    let server = Arc::new(server(Config::default(), vec![wiping(&executed)]).await);
    let entries = json!([{
        "interruptId": "reply:c1", "status": "resolved", "payload": {"approved": true},
    }]);
    for round in 0..ROUNDS {
        let thread = format!("t{round}");
        server.run("/agui/a", &input(&thread, "r1")).await;
        // A second click makes a run of its own; a request that is sent again is the same one.
        let runs = if round % 2 == 0 { ["r2", "r3"] } else { ["r2", "r2"] };
        let clicks = runs.map(|run| resume(&thread, run, &entries));
        let answers = both(&server, "/agui/a", clicks).await;
        let won = |at: usize| answers[at] == answered(&thread, runs[at]);
        assert!(won(0) != won(1), "{answers:?}");
        let lost = usize::from(won(0));
        let refused = busy(&thread, runs[lost]);
        if answers[lost] != refused {
            assert_eq!(answers[lost], told_again(&thread, runs[lost]));
        }
        assert_eq!(executed.lock().unwrap().get(&thread), Some(&1));
    }
    assert_eq!(executed.lock().unwrap().len(), ROUNDS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_runs_at_once_one_has_the_thread_and_the_next_one_finds_it_free() {
    // Whoever begins waits until the other one was refused.
    let refused = Arc::new(Notify::new());
    let wait = Arc::clone(&refused);
    let mut waiting = agent("waiting", move |_request| {
        let wait = Arc::clone(&wait);
        stream! {
            yield Ok(start());
            wait.notified().await;
            yield Ok(delta("done"));
            yield Ok(end());
        }
    });
    // Should nobody be refused, the runs end nevertheless.
    waiting.run_timeout = Some(Duration::from_secs(60));
    let server = Arc::new(TestServer::of(vec![waiting, says_its_id("b")]).await);
    for round in 0..50 {
        let thread = format!("t{round}");
        let mut clicks = JoinSet::new();
        let barrier = Arc::new(Barrier::new(2));
        for run in ["r1", "r2"] {
            let (server, barrier, refused) =
                (Arc::clone(&server), Arc::clone(&barrier), Arc::clone(&refused));
            let input = input(&thread, run);
            clicks.spawn(async move {
                barrier.wait().await;
                let events = server.run("/agui/waiting", &input).await;
                if events.last().unwrap()["type"] == "RUN_ERROR" {
                    refused.notify_one();
                }
                (run, events)
            });
        }
        let mut answers = clicks.join_all().await;
        answers.sort_by_key(|(_, events)| events.len());
        let [(lost, refusal), (won, events)] = &answers[..] else { panic!("two answers") };
        assert_eq!(*refusal, busy(&thread, lost));
        let mut expected = vec![expected::started(&thread, won)];
        expected.extend(expected::text("id-1", &["done"]));
        expected.push(expected::success(&thread, won));
        assert_eq!(*events, expected);
        let next = server.run("/agui/b", &input(&thread, "r3")).await;
        assert_eq!(next.last(), Some(&expected::success(&thread, "r3")));
    }
}

#[tokio::test]
async fn a_request_sent_again_is_another_run_whatever_event_it_has_seen() {
    let released = Arc::new(Notify::new());
    let wait = Arc::clone(&released);
    let waiting = agent("a", move |_request| {
        let wait = Arc::clone(&wait);
        stream! {
            yield Ok(start());
            wait.notified().await;
            yield Ok(delta("done"));
            yield Ok(end());
        }
    });
    let server = TestServer::of(vec![waiting]).await;
    let body = input("t", "r1");
    let again = async || {
        let request = server.post("/agui/a").header("Last-Event-ID", "7").json(&body);
        request.send().await.unwrap()
    };
    let mut first = Reader::new(server.start("/agui/a", &body).await);
    assert_eq!(first.event().await, Some(expected::started("t", "r1")));
    assert_eq!(checked(again().await, &body).await, busy("t", "r1"));
    released.notify_one();
    let mut expected = vec![expected::started("t", "r1")];
    expected.extend(expected::text("id-1", &["done"]));
    expected.push(expected::success("t", "r1"));
    assert_eq!(first.rest().await, expected[1..]);
    // Now it is a new execution, from its first event on.
    released.notify_one();
    assert_eq!(checked(again().await, &body).await, expected);
}
