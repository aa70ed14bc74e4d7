//! A client that leaves: its run stops or goes on, and its thread is never stuck.

use std::sync::{Arc, Mutex, mpsc};

use agentscope_agui::{
    agents::registry::Registered,
    config::Config,
    store::{MemoryLimits, MemoryStore, Store},
};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{
    Given, Hand, all, at_rest, calls, code, counting, gives, idle, remembering, request, said,
    server, service, shown, told, user, with,
};
use crate::support::{
    agents::{agent, delta, end, says_its_id, start, then_silent},
    expected, input,
    server::{TestServer, counted},
    sse::Reader,
};

fn going_on() -> Config {
    let mut config = remembering();
    config.agui.threads.interrupt_on_disconnect = false;
    config
}

/// Begins a run of agent `a` on thread `t` and reads its first event.
async fn begin(server: &TestServer, run: &str) -> Reader {
    let mut reader = Reader::new(server.start("/agui/a", &input("t", run)).await);
    assert_eq!(reader.event().await, Some(expected::started("t", run)));
    reader
}

#[tokio::test]
async fn the_run_stops_with_its_client_and_what_it_said_is_kept() {
    let (agent, mut tell) = told("a");
    let given = Given::default();
    let mut counting = counting(&given);
    counting.info.id = "b".to_owned();
    let server = server(remembering(), vec![agent, counting]).await;
    tell.say([start(), delta("I be"), delta("gin")]);
    let mut reader = begin(&server, "r1").await;
    for _ in 0..3 {
        reader.event().await.unwrap();
    }
    drop(reader);
    tell.asked_to_stop().await;
    tell.dropped().await;
    at_rest(&server).await;
    server.run("/agui/b", &with("t", "r2", &[user("u2", "go on")])).await;
    assert_eq!(given.last(), ["user: hello", "assistant: I begin", "user: go on"]);
}

#[tokio::test]
async fn the_run_goes_on_without_its_client_and_its_answer_is_in_the_history() {
    let (agent, tell) = told("a");
    let given = Given::default();
    let mut counting = counting(&given);
    counting.info.id = "b".to_owned();
    let server = server(going_on(), vec![agent, counting]).await;
    tell.say([start(), delta("I be")]);
    drop(begin(&server, "r1").await);
    // Nobody else gets the thread meanwhile.
    let refused = server.run("/agui/b", &input("t", "r2")).await;
    assert_eq!(code(&refused), "THREAD_BUSY");
    // Far more than could wait for a reader.
    for _ in 0..2000 {
        tell.say([delta(&"x".repeat(1000))]);
    }
    tell.say([delta(" done"), end()]);
    at_rest(&server).await;

    let shown = server.run("/agui/b/connect", &with("t", "c", &[])).await;
    assert_eq!(shown.last(), Some(&expected::success("t", "c")));
    let text = shown[1]["messages"][1]["content"].as_str().unwrap();
    assert_eq!(text, format!("I be{} done", "x".repeat(2_000_000)));
    // A client that sends everything it knows of has not seen it: it is not cut.
    let turn = with("t", "r3", &[user("u1", "hello"), user("u2", "go on")]);
    server.run("/agui/b", &turn).await;
    assert_eq!(given.last().len(), 3);
    assert_eq!(given.last()[2], "user: go on");
}

#[tokio::test(start_paused = true)]
async fn what_no_client_has_seen_stays_until_one_has() {
    let (first, tell) = told("a");
    let given = Given::default();
    let counting = counting(&given);
    let service = service(&going_on());
    let run = async |agent: &Registered, input: Value| {
        all(service.start(request(agent, &input)).unwrap()).await
    };
    let mut batches = service.start(request(&first, &input("t", "r1"))).unwrap().events();
    tell.say([start(), delta("seen.")]);
    tell.say(calls("c1", "look", "{}"));
    tell.say(gives("c1", "look", "a cat"));
    batches.recv().await.unwrap();
    idle().await;
    drop(batches);
    idle().await;
    tell.say([delta("unseen"), end()]);
    idle().await;
    let turn = [user("u1", "hello"), user("u2", "two")];
    let told = ["user: hello", "assistant: unseen", "user: two"];
    run(&counting, with("t", "r2", &turn)).await;
    assert_eq!(given.last(), told);
    // The client still does not know it: it stays, whatever the client does.
    run(&counting, with("t", "r3", &turn)).await;
    assert_eq!(given.last(), told);
    // Now it does, and goes back to its first question.
    let shown = all(service.connect(request(&counting, &with("t", "c", &[])))).await;
    let known: Vec<Value> = shown[1]["messages"].as_array().unwrap().clone();
    assert_eq!(known.len(), 4);
    run(&counting, with("t", "r4", &[&known[..], &[user("u3", "three")]].concat())).await;
    run(&counting, with("t", "r5", &[user("u1", "hello")])).await;
    assert_eq!(given.last(), ["user: hello"]);
}

#[tokio::test]
async fn twenty_clients_that_leave_hanging_agents_leave_nothing_behind() {
    let store = MemoryStore::new(MemoryLimits::default(), Box::new(Hand::default()));
    let store = Arc::new(store);
    let hanging = agent("a", |_request| then_silent(vec![start()]));
    let server = TestServer::built(Config::default(), vec![hanging, says_its_id("b")], |builder| {
        builder.sources(counted()).store(Arc::clone(&store) as Arc<dyn Store>)
    })
    .await;
    for round in 0..20 {
        drop(begin(&server, &format!("hangs-{round}")).await);
        at_rest(&server).await;
        let run = format!("next-{round}");
        let next = server.run("/agui/b", &input("t", &run)).await;
        assert_eq!(next.last(), Some(&expected::success("t", &run)));
    }
    while server.runs.activity().tasks > 0 {
        tokio::task::yield_now().await;
    }
    assert!(store.is_empty());
}

/// An agent that holds its thread of the system until it is let go, then says more.
struct Stuck {
    /// Lets it get stuck: not before its client has what was said, since what waits to be sent may
    /// wait for the same thread of the system.
    go: Arc<Notify>,
    release: mpsc::Sender<()>,
    /// Gets a word when the agent is stuck.
    stuck: tokio::sync::mpsc::UnboundedReceiver<()>,
}

fn stuck() -> (Registered, Stuck) {
    let (release, held) = mpsc::channel::<()>();
    let held = Arc::new(Mutex::new(held));
    let (says, stuck) = tokio::sync::mpsc::unbounded_channel();
    let go = Arc::new(Notify::new());
    let told = Arc::clone(&go);
    let agent = agent("a", move |_request| {
        let (held, says, told) = (Arc::clone(&held), says.clone(), Arc::clone(&told));
        let late = stream::once(async move {
            told.notified().await;
            says.send(()).unwrap();
            held.lock().unwrap().recv().ok();
        });
        let late = late.flat_map(|()| stream::iter([Ok(delta("late")), Ok(end())]));
        stream::iter([Ok(start()), Ok(delta("early"))]).chain(late)
    });
    (agent, Stuck { go, release, stuck })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_run_that_lets_go_late_leaves_its_successor_alone() {
    let (stuck, mut old) = stuck();
    let (mut new, tell) = told("b");
    new.info.id = "b".to_owned();
    let server = server(remembering(), vec![stuck, new, says_its_id("c")]).await;
    let reader = begin(&server, "r1").await;
    old.go.notify_one();
    old.stuck.recv().await.unwrap();
    drop(reader);
    at_rest(&server).await;
    // The successor has the thread while the agent of the first run still hangs.
    let mut second =
        Reader::new(server.start("/agui/b", &with("t", "r2", &[user("u2", "two")])).await);
    tell.say([start(), delta("Hel")]);
    for _ in 0..3 {
        second.event().await.unwrap();
    }
    let under_way = server.runs.activity().tasks;
    old.release.send(()).unwrap();
    while server.runs.activity().tasks >= under_way {
        tokio::task::yield_now().await;
    }
    let refused = server.run("/agui/c", &input("t", "r3")).await;
    assert_eq!(code(&refused), "THREAD_BUSY");
    assert_eq!(shown(&server, "t").await["activeRunId"], "r2");
    tell.say([delta("lo"), end()]);
    let rest = [
        json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "id-2", "delta": "lo"}),
        json!({"type": "TEXT_MESSAGE_END", "messageId": "id-2"}),
        expected::success("t", "r2"),
    ];
    assert_eq!(second.rest().await, rest);
    let third = server.run("/agui/c", &with("t", "r4", &[user("u3", "three")])).await;
    assert_eq!(said(&third), "c");
    // What the first run said too late is nowhere.
    let shown = server.run("/agui/c/connect", &with("t", "c", &[])).await;
    let contents = shown[1]["messages"].as_array().unwrap().iter();
    let contents: Vec<&str> = contents.map(|one| one["content"].as_str().unwrap()).collect();
    assert_eq!(contents, ["hello", "early", "two", "Hello", "three", "c"]);
}

#[tokio::test]
async fn a_repeated_request_is_a_run_of_its_own_and_never_a_second_one_at_once() {
    let (agent, tell) = told("a");
    let server = server(Config::default(), vec![agent, says_its_id("b")]).await;
    tell.say([start()]);
    let reader = begin(&server, "r1").await;
    let again =
        |path: &str| server.post(path).header("Last-Event-ID", "7").json(&input("t", "r1")).send();
    // The same run, still under way.
    let refused = again("/agui/b").await.unwrap().text().await.unwrap();
    let message = "This thread has a run already; wait for its end before starting another one.";
    let expected = [expected::started("t", "r1"), expected::error("THREAD_BUSY", message)];
    // No frame names an id with which a stream could be asked for again.
    assert_eq!(frames(&refused), expected);
    tell.say([end()]);
    assert_eq!(reader.rest().await, [expected::success("t", "r1")]);
    // Over: it is executed anew.
    let repeated = again("/agui/b").await.unwrap().text().await.unwrap();
    assert_eq!(said(&frames(&repeated)), "b");
}

fn frames(body: &str) -> Vec<Value> {
    let frames = crate::support::sse::frames(body).into_iter();
    frames
        .map(|frame| match frame {
            crate::support::sse::Frame::Event(event) => event,
            crate::support::sse::Frame::Comment(text) => panic!("{text}"),
        })
        .collect()
}
