//! What ends or keeps up a run from outside: silence, the time limit, a client that leaves, a
//! server that stops.

use std::{
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};

use agentscope_agui::{agents::registry::Registered, config::Config};
use futures_util::{StreamExt, stream};
use serde_json::Value;
use tokio::sync::{Notify, oneshot};

use super::support::{
    agents::{agent, delta, end, says_its_id, start, then_silent},
    expected, input,
    server::{TestServer, events},
    sse::{Frame, Reader},
};

const TIMED_OUT: (&str, &str) = ("TIMEOUT_ERROR", "The run took longer than this server allows.");

#[tokio::test]
async fn silence_is_filled_with_comments_and_the_terminal_event_is_the_last_frame() {
    let mut config = Config::default();
    config.agui.heartbeat_interval = Some(Duration::from_millis(5));
    let gate = Arc::new(Notify::new());
    let wait = Arc::clone(&gate);
    let agent = agent("a", move |_request| {
        let wait = Arc::clone(&wait);
        let late = stream::once(async move { wait.notified().await }).map(|()| Ok(delta("late")));
        late.chain(stream::iter([Ok(end())]))
    });
    let server = TestServer::with(config, vec![agent]).await;
    let mut reader = Reader::new(server.start("/agui/a", &input("t", "r")).await);
    // The agent says nothing until three comments are there, so RUN_STARTED comes behind them.
    for _ in 0..3 {
        assert_eq!(reader.next().await, Some(Frame::Comment("keep-alive".to_owned())));
    }
    gate.notify_one();
    let mut frames = Vec::new();
    while let Some(frame) = reader.next().await {
        frames.push(frame);
    }
    assert_eq!(frames.last(), Some(&Frame::Event(expected::success("t", "r"))));
    frames.retain(|frame| matches!(frame, Frame::Event(_)));
    let mut expected = vec![expected::started("t", "r")];
    expected.extend(expected::text("id-1", &["late"]));
    expected.push(expected::success("t", "r"));
    assert_eq!(frames, expected.into_iter().map(Frame::Event).collect::<Vec<_>>());
}

fn limited(mut agent: Registered, limit: Duration) -> Registered {
    agent.run_timeout = Some(limit);
    agent
}

#[tokio::test]
async fn the_limit_ends_a_silent_agent_and_a_talking_one() {
    let silent = limited(
        agent("silent", |_request| then_silent(vec![start(), delta("x")])),
        Duration::from_millis(50),
    );
    let talking = agent("talking", |_request| {
        let ticks = stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            Some((Ok(delta("x")), ()))
        });
        stream::iter([Ok(start())]).chain(ticks)
    });
    let talking = limited(talking, Duration::from_millis(50));
    let server = TestServer::of(vec![silent, talking]).await;
    let error = expected::error(TIMED_OUT.0, TIMED_OUT.1);
    let mut expected = vec![expected::started("t", "r")];
    expected.extend(expected::text("id-1", &["x"]));
    expected.push(error);
    assert_eq!(server.run("/agui/silent", &input("t", "r")).await, expected);
    // How many deltas it manages to send is a matter of luck.
    let mut events = server.run("/agui/talking", &input("t", "r")).await;
    events.dedup_by(|one, other| one == other);
    assert_eq!(events, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_limit_ends_an_agent_that_blocks_its_thread() {
    let (release, blocked) = mpsc::channel::<()>();
    let blocked = Arc::new(Mutex::new(blocked));
    let blocking = agent("blocking", move |_request| {
        let blocked = Arc::clone(&blocked);
        stream::iter([Ok(start()), Ok(delta("x"))]).chain(stream::poll_fn(move |_cx| {
            blocked.lock().unwrap().recv().ok();
            std::task::Poll::Ready(None)
        }))
    });
    // Long enough for another thread to poll the agent first.
    let blocking = limited(blocking, Duration::from_secs(2));
    let server = TestServer::of(vec![blocking, says_its_id("a")]).await;
    let mut expected = vec![expected::started("t", "r")];
    expected.extend(expected::text("id-1", &["x"]));
    expected.push(expected::error(TIMED_OUT.0, TIMED_OUT.1));
    // The body ends although the agent still holds its thread.
    assert_eq!(server.run("/agui/blocking", &input("t", "r")).await, expected);
    // So is the conversation free.
    let next = server.run("/agui/a", &input("t", "r2")).await;
    assert_eq!(next.last(), Some(&expected::success("t", "r2")));
    release.send(()).unwrap();
}

/// Says when it is dropped.
struct Sentinel(Option<oneshot::Sender<()>>);

impl Drop for Sentinel {
    fn drop(&mut self) {
        if let Some(sender) = self.0.take() {
            sender.send(()).ok();
        }
    }
}

#[tokio::test]
async fn a_client_that_leaves_stops_its_own_run_only() {
    let (dropped, was_dropped) = oneshot::channel();
    let sentinel = Mutex::new(Some(Sentinel(Some(dropped))));
    let gate = Arc::new(Notify::new());
    let wait = Arc::clone(&gate);
    let agent = agent("a", move |request| {
        let thread = request.thread_id.as_str().to_owned();
        let held = (thread == "t1").then(|| sentinel.lock().unwrap().take()).flatten();
        let wait = Arc::clone(&wait);
        let rest = stream::once(async move {
            let _held = held;
            wait.notified().await;
        });
        let first = stream::iter([Ok(start()), Ok(delta(&thread))]);
        let last = stream::iter([Ok(delta(" rest")), Ok(end())]);
        first.chain(rest.filter_map(|()| async { None })).chain(last)
    });
    let server = TestServer::of(vec![agent, says_its_id("b")]).await;
    let mut one = Reader::new(server.start("/agui/a", &input("t1", "r1")).await);
    let mut two = Reader::new(server.start("/agui/a", &input("t2", "r2")).await);
    assert_eq!(one.event().await, Some(expected::started("t1", "r1")));
    assert_eq!(two.event().await, Some(expected::started("t2", "r2")));
    drop(one);
    was_dropped.await.unwrap();
    // The thread is free, and the other run goes on.
    let next = server.run("/agui/b", &input("t1", "r3")).await;
    assert_eq!(next.last(), Some(&expected::success("t1", "r3")));
    gate.notify_one();
    let mut expected = expected::text("id-1", &["t2", " rest"]);
    expected.push(expected::success("t2", "r2"));
    assert_eq!(two.rest().await, expected);
}

#[tokio::test]
async fn a_server_that_stops_ends_its_streams_in_order() {
    let agent = agent("a", |_request| then_silent(vec![start(), delta("x")]));
    let mut server = TestServer::of(vec![agent]).await;
    let mut reader = Reader::new(server.start("/agui/a", &input("t", "r")).await);
    assert_eq!(reader.event().await, Some(expected::started("t", "r")));
    server.tell_to_stop();
    let message = "The run was stopped: the server is shutting down.";
    let mut expected = expected::text("id-1", &["x"]);
    expected.push(expected::error("SERVER_SHUTTING_DOWN", message));
    assert_eq!(reader.rest().await, expected);
    server.stopped().await;
}

#[tokio::test]
async fn a_server_that_drains_waits_for_its_runs() {
    let gate = Arc::new(Notify::new());
    let wait = Arc::clone(&gate);
    let agent = agent("a", move |_request| {
        let wait = Arc::clone(&wait);
        let late = stream::once(async move { wait.notified().await }).map(|()| Ok(end()));
        stream::iter([Ok(start())]).chain(late)
    });
    let mut server = TestServer::of(vec![agent]).await;
    let mut reader = Reader::new(server.start("/agui/a", &input("t", "r")).await);
    assert_eq!(reader.event().await, Some(expected::started("t", "r")));
    server.tell_to_drain();
    while server.get("/readyz").send().await.unwrap().status() != 503 {}
    let refused = server.post("/agui/a").json(&input("t2", "r")).send().await.unwrap();
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["retry-after"]),
        (503, &"1".parse().unwrap())
    );
    gate.notify_one();
    assert_eq!(reader.rest().await, [expected::success("t", "r")]);
    server.stopped().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_agent_that_blocks_its_thread_does_not_hold_up_the_end_of_the_server() {
    let (release, blocked) = mpsc::channel::<()>();
    let blocked = Arc::new(Mutex::new(blocked));
    let (blocks, does_block) = oneshot::channel();
    let blocks = Arc::new(Mutex::new(Some(blocks)));
    let blocking = agent("blocking", move |_request| {
        let (blocked, blocks) = (Arc::clone(&blocked), Arc::clone(&blocks));
        stream::iter([Ok(start())]).chain(stream::poll_fn(move |_cx| {
            let blocks = blocks.lock().unwrap().take();
            blocks.unwrap().send(()).unwrap();
            blocked.lock().unwrap().recv().ok();
            std::task::Poll::Ready(None)
        }))
    });
    let mut server = TestServer::of(vec![blocking]).await;
    let reader = Reader::new(server.start("/agui/blocking", &input("t", "r")).await);
    does_block.await.unwrap();
    server.tell_to_stop();
    let message = "The run was stopped: the server is shutting down.";
    let expected = [expected::started("t", "r"), expected::error("SERVER_SHUTTING_DOWN", message)];
    assert_eq!(reader.rest().await, expected);
    server.stopped().await;
    release.send(()).unwrap();
}

#[tokio::test]
async fn fifty_threads_at_once_never_mix() {
    let agent = agent("a", |request| {
        let thread = request.thread_id.as_str().to_owned();
        assert_eq!(*request.state, serde_json::json!({"of": thread}));
        // Gives way between any two events, so that the runs interleave.
        let texts = (0..20).map(move |n| Ok(delta(&format!("{thread}:{n} "))));
        let events = [Ok(start())].into_iter().chain(texts).chain([Ok(end())]);
        stream::iter(events.collect::<Vec<_>>()).then(|event| async {
            tokio::task::yield_now().await;
            event
        })
    });
    let server = TestServer::of(vec![agent]).await;
    let runs = (0..50).map(|n| {
        let (thread, run) = (format!("thread-{n}"), format!("run-{n}"));
        let mut input = input(&thread, &run);
        input["state"] = serde_json::json!({"of": thread});
        let request = server.post("/agui/a").json(&input);
        async move { (thread, run, events(request.send().await.unwrap()).await) }
    });
    for (thread, run, events) in futures_util::future::join_all(runs).await {
        let texts: Vec<String> = (0..20).map(|n| format!("{thread}:{n} ")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let mut expected: Vec<Value> = vec![expected::started(&thread, &run)];
        expected.extend(expected::text("id-1", &texts));
        expected.push(expected::success(&thread, &run));
        assert_eq!(events, expected);
    }
}
