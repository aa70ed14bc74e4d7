//! A client that comes to a run under way: what is open is opened again, and the rest comes live.

use std::sync::Arc;

use agentscope_agui::{
    config::Config,
    store::{
        Change, Listed, MemoryLimits, MemoryStore, Page, Principal, RunOwner, Store, StoreError,
        Thread, ThreadKey,
    },
};
use agui_adapter::{
    model::{AgentEvent, AgentEventKind},
    options::AdapterOptions,
};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::{Hand, calls, code, gives, remembering, server, told, user, with};
use crate::support::{
    agents::{delta, end, plays, says_its_id, start},
    expected, input,
    server::{TestServer, counted},
    sse::Reader,
};

/// What a client is told that joined the run `r1`.
fn joined(thread: &str, run: &str) -> Value {
    let mut started = expected::started(thread, run);
    started["metadata"] = json!({"agentscope.joinedRunId": "r1"});
    started
}

fn snapshot(messages: &[Value]) -> Value {
    json!({"type": "MESSAGES_SNAPSHOT", "messages": messages})
}

fn content(id: &str, delta: &str) -> Value {
    json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": delta})
}

/// Reads that many events.
async fn read(reader: &mut Reader, count: usize) -> Vec<Value> {
    let mut events = Vec::new();
    while events.len() < count {
        events.push(reader.event().await.unwrap());
    }
    events
}

/// Begins the run `r1` of thread `t`.
async fn begin(server: &TestServer) -> Reader {
    Reader::new(server.start("/agui/a", &input("t", "r1")).await)
}

/// Comes to thread `t` with nothing.
async fn join(server: &TestServer, run: &str) -> Reader {
    Reader::new(server.start("/agui/a/connect", &with("t", run, &[])).await)
}

/// The end of a text of the joined run, as the request `run` sees it.
fn rest_of_text(text: &str, run: &str) -> Vec<Value> {
    vec![
        content("id-1", text),
        json!({"type": "TEXT_MESSAGE_END", "messageId": "id-1"}),
        expected::success("t", run),
    ]
}

#[tokio::test]
async fn who_joins_in_the_middle_of_a_text_gets_it_opened_again_and_then_the_rest() {
    let (agent, tell) = told("a");
    let server = server(Config::default(), vec![agent]).await;
    let mut first = begin(&server).await;
    tell.say([start(), delta("Hel")]);
    read(&mut first, 3).await;
    let mut second = join(&server, "c1").await;
    let head = [
        joined("t", "c1"),
        snapshot(&[
            user("u1", "hello"),
            json!({"id": "id-1", "role": "assistant", "content": "Hel"}),
        ]),
        json!({"type": "TEXT_MESSAGE_START", "messageId": "id-1", "role": "assistant"}),
    ];
    assert_eq!(read(&mut second, 3).await, head);
    tell.say([delta("lo"), end()]);
    assert_eq!(first.rest().await, rest_of_text("lo", "r1"));
    assert_eq!(second.rest().await, rest_of_text("lo", "c1"));
}

#[tokio::test]
async fn who_joins_before_the_first_word_gets_all_of_it() {
    let (agent, tell) = told("a");
    let server = server(Config::default(), vec![agent]).await;
    let mut first = begin(&server).await;
    let mut second = join(&server, "c1").await;
    let head = [joined("t", "c1"), snapshot(&[user("u1", "hello")])];
    assert_eq!(read(&mut second, 2).await, head);
    // The first batch has nothing for who joined, and is no end.
    tell.say([start()]);
    assert_eq!(read(&mut first, 1).await, [expected::started("t", "r1")]);
    tell.say([delta("hi"), end()]);
    let text = expected::text("id-1", &["hi"]);
    let whole = [text.clone(), vec![expected::success("t", "r1")]];
    assert_eq!(first.rest().await, whole.concat());
    assert_eq!(second.rest().await, [text, vec![expected::success("t", "c1")]].concat());
}

#[tokio::test]
async fn who_has_read_everything_gets_a_result_however_long() {
    let (agent, tell) = told("a");
    let server = server(Config::default(), vec![agent]).await;
    let first = begin(&server).await;
    let mut second = join(&server, "c1").await;
    read(&mut second, 2).await;
    let long = "x".repeat(5 << 20);
    tell.say([start()]);
    tell.say(calls("c1", "look", "{}"));
    tell.say(gives("c1", "look", &long));
    tell.say([end()]);
    let rest = second.rest().await;
    assert_eq!(rest.last(), Some(&expected::success("t", "c1")));
    let result = rest.iter().find(|event| event["type"] == "TOOL_CALL_RESULT").unwrap();
    assert_eq!(result["content"].as_str().map(str::len), Some(long.len()));
    drop(first);
}

#[tokio::test]
async fn what_an_agent_hides_is_hidden_whichever_agent_the_page_names() {
    let mut quiet = plays("quiet", {
        let mut events = vec![start()];
        events.extend(calls("c1", "look", r#"{"at":"it"}"#));
        events.extend(gives("c1", "look", "seen"));
        events.push(end());
        events
    });
    let options = AdapterOptions { emit_tool_call_args: false, ..AdapterOptions::default() };
    quiet.options = Arc::new(options);
    let server = server(remembering(), vec![quiet, says_its_id("other")]).await;
    server.run("/agui/quiet", &input("t", "r1")).await;
    for agent in ["quiet", "other"] {
        let shown = server.run(&format!("/agui/{agent}/connect"), &input("t", "c")).await;
        let call = &shown[1]["messages"][1]["toolCalls"][0]["function"];
        assert_eq!(*call, json!({"name": "look", "arguments": ""}), "{agent}");
    }
}

#[tokio::test]
async fn who_joins_in_the_middle_of_a_call_gets_its_arguments_so_far_and_then_the_rest() {
    let (agent, tell) = told("a");
    let server = server(Config::default(), vec![agent]).await;
    let mut first = begin(&server).await;
    let mut events = calls("c1", "look", r#"{"at":"#);
    let ended = events.pop().unwrap();
    tell.say([start()].into_iter().chain(events));
    read(&mut first, 3).await;
    let mut second = join(&server, "c1").await;
    let message = super::called("id-1", "c1", "look", r#"{"at":"#);
    let opened = json!({
        "type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "look",
        "parentMessageId": "id-1",
    });
    let head = [joined("t", "c1"), snapshot(&[user("u1", "hello"), message]), opened];
    assert_eq!(read(&mut second, 3).await, head);
    let more =
        AgentEventKind::ToolCallDelta { call: "c1".to_owned(), delta: r#""it"}"#.to_owned() };
    tell.say([AgentEvent::local(more), ended].into_iter().chain(gives("c1", "look", "a cat")));
    tell.say([end()]);
    let rest = |run: &str| {
        vec![
            json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": r#""it"}"#}),
            json!({"type": "TOOL_CALL_END", "toolCallId": "c1"}),
            json!({
                "type": "TOOL_CALL_RESULT", "messageId": "id-2", "toolCallId": "c1",
                "content": "a cat", "role": "tool",
            }),
            expected::success("t", run),
        ]
    };
    assert_eq!(first.rest().await, rest("r1"));
    assert_eq!(second.rest().await, rest("c1"));
}

#[tokio::test]
async fn who_joins_in_the_middle_of_reasoning_gets_its_span_opened_again() {
    let thinks = |text: &str| {
        AgentEvent::local(AgentEventKind::ThinkingBlockDelta {
            reply: "reply".to_owned(),
            block: "thinking".to_owned(),
            delta: text.to_owned(),
        })
    };
    let (mut agent, tell) = told("a");
    agent.options =
        Arc::new(AdapterOptions { enable_reasoning: true, ..AdapterOptions::default() });
    let server = server(Config::default(), vec![agent]).await;
    let mut first = begin(&server).await;
    tell.say([start(), thinks("Let me ")]);
    read(&mut first, 4).await;
    let mut second = join(&server, "c1").await;
    let head = [
        joined("t", "c1"),
        snapshot(&[
            user("u1", "hello"),
            json!({"id": "id-1", "role": "reasoning", "content": "Let me "}),
        ]),
        json!({"type": "REASONING_START", "messageId": "id-1"}),
        json!({"type": "REASONING_MESSAGE_START", "messageId": "id-1", "role": "reasoning"}),
    ];
    assert_eq!(read(&mut second, 4).await, head);
    tell.say([thinks("see."), delta("A cat."), end()]);
    let rest = |run: &str| {
        let mut events = vec![
            json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": "id-1", "delta": "see."}),
            json!({"type": "REASONING_MESSAGE_END", "messageId": "id-1"}),
            json!({"type": "REASONING_END", "messageId": "id-1"}),
        ];
        events.extend(expected::text("id-2", &["A cat."]));
        events.push(expected::success("t", run));
        events
    };
    assert_eq!(first.rest().await, rest("r1"));
    assert_eq!(second.rest().await, rest("c1"));
}

/// A store whose next change can be held up.
#[derive(Debug)]
struct Slow {
    inner: MemoryStore,
    /// A permit for each change that may be made.
    may: Semaphore,
    /// A permit for each change that was asked for.
    asked: Semaphore,
}

impl Store for Slow {
    fn update<'a>(
        &'a self,
        key: &'a ThreadKey,
        change: &'a mut Change<'_>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.asked.add_permits(1);
            self.may.acquire().await.unwrap().forget();
            self.inner.update(key, change).await
        })
    }

    fn load<'a>(
        &'a self,
        key: &'a ThreadKey,
    ) -> BoxFuture<'a, Result<Option<Arc<Thread>>, StoreError>> {
        self.inner.load(key)
    }

    fn list<'a>(
        &'a self,
        principal: &'a Principal,
        page: &'a Page,
    ) -> BoxFuture<'a, Result<Vec<Listed>, StoreError>> {
        self.inner.list(principal, page)
    }

    fn cancelled(&self, key: &ThreadKey, owner: RunOwner) -> BoxFuture<'static, ()> {
        self.inner.cancelled(key, owner)
    }

    fn at_rest(&self, key: &ThreadKey) -> BoxFuture<'static, ()> {
        self.inner.at_rest(key)
    }

    fn lease(&self) -> Option<std::time::Duration> {
        None
    }
}

#[tokio::test]
async fn who_comes_while_a_run_records_its_end_waits_for_it_and_is_shown_all_of_it() {
    let inner = MemoryStore::new(MemoryLimits::default(), Box::new(Hand::default()));
    let store = Slow { inner, may: Semaphore::new(1), asked: Semaphore::new(0) };
    let store = Arc::new(store);
    let (agent, tell) = told("a");
    let server = TestServer::built(super::remembering(), vec![agent], |builder| {
        builder.sources(counted()).store(Arc::clone(&store) as Arc<dyn Store>)
    })
    .await;
    let mut first = begin(&server).await;
    tell.say([start(), delta("hi")]);
    read(&mut first, 3).await;
    store.asked.acquire().await.unwrap().forget();
    tell.say([end()]);
    // The run is over, but its end is not stored.
    store.asked.acquire().await.unwrap().forget();
    let second = join(&server, "c1").await;
    store.may.add_permits(1);
    let messages =
        [user("u1", "hello"), json!({"id": "id-1", "role": "assistant", "content": "hi"})];
    let whole = [expected::started("t", "c1"), snapshot(&messages), expected::success("t", "c1")];
    assert_eq!(second.rest().await, whole);
    let end = json!({"type": "TEXT_MESSAGE_END", "messageId": "id-1"});
    assert_eq!(first.rest().await, [end, expected::success("t", "r1")]);
}

#[tokio::test]
async fn many_may_join_and_one_that_leaves_disturbs_nobody() {
    let (agent, tell) = told("a");
    let server = server(Config::default(), vec![agent]).await;
    let mut first = begin(&server).await;
    tell.say([start(), delta("Hel")]);
    read(&mut first, 3).await;
    let mut leaving = join(&server, "c0").await;
    read(&mut leaving, 3).await;
    let mut others = Vec::new();
    for run in ["c1", "c2", "c3"] {
        let mut reader = join(&server, run).await;
        read(&mut reader, 3).await;
        others.push((run, reader));
    }
    drop(leaving);
    tell.say([delta("lo")]);
    assert_eq!(read(&mut first, 1).await, [content("id-1", "lo")]);
    tell.say([end()]);
    for (run, reader) in others {
        assert_eq!(reader.rest().await, rest_of_text("lo", run));
    }
    assert_eq!(first.rest().await, rest_of_text("lo", "r1")[1..]);
}

#[tokio::test]
async fn the_run_stops_for_those_who_joined_when_the_client_that_began_it_leaves() {
    let (agent, tell) = told("a");
    let server = server(Config::default(), vec![agent]).await;
    let mut first = begin(&server).await;
    tell.say([start(), delta("Hel")]);
    read(&mut first, 3).await;
    let mut second = join(&server, "c1").await;
    read(&mut second, 3).await;
    drop(first);
    let message = "The run was stopped: the client that began it left.";
    let rest = [
        json!({"type": "TEXT_MESSAGE_END", "messageId": "id-1"}),
        expected::error("INTERRUPTED_ERROR", message),
    ];
    assert_eq!(second.rest().await, rest);
    tell.dropped().await;
}

#[tokio::test]
async fn the_run_goes_on_for_those_who_joined_where_a_disconnect_does_not_stop_it() {
    let mut config = Config::default();
    config.agui.threads.interrupt_on_disconnect = false;
    let (agent, tell) = told("a");
    let server = server(config, vec![agent]).await;
    let mut first = begin(&server).await;
    tell.say([start(), delta("Hel")]);
    read(&mut first, 3).await;
    let mut second = join(&server, "c1").await;
    read(&mut second, 3).await;
    drop(first);
    tell.say([delta("lo"), end()]);
    assert_eq!(second.rest().await, rest_of_text("lo", "c1"));
}

#[tokio::test]
async fn joining_takes_no_slot_and_leaves_the_thread_to_its_run() {
    let mut config = Config::default();
    config.server.max_concurrent_runs = 2;
    let (agent, tell) = told("a");
    let server = server(config, vec![agent]).await;
    let mut first = begin(&server).await;
    tell.say([start(), delta("Hel")]);
    read(&mut first, 3).await;
    let mut joiners = Vec::new();
    for run in ["c1", "c2", "c3"] {
        let mut reader = join(&server, run).await;
        read(&mut reader, 3).await;
        joiners.push(reader);
    }
    let refused = server.run("/agui/a", &input("t", "r2")).await;
    assert_eq!(code(&refused), "THREAD_BUSY");
    tell.say([end()]);
    assert_eq!(first.rest().await.last(), Some(&expected::success("t", "r1")));
}

#[tokio::test]
async fn an_older_peer_joins_in_its_own_form() {
    let (agent, tell) = told("a");
    let server = server(Config::default(), vec![agent]).await;
    let mut first = begin(&server).await;
    tell.say([start(), delta("Hel")]);
    read(&mut first, 3).await;
    let mut old = with("t", "c1", &[]);
    old.as_object_mut().unwrap().remove("protocolVersion");
    let mut second = Reader::new(server.start("/agui/a/connect", &old).await);
    read(&mut second, 3).await;
    tell.say([delta("lo"), end()]);
    let mut rest = rest_of_text("lo", "c1");
    rest[2].as_object_mut().unwrap().remove("outcome");
    assert_eq!(second.rest().await, rest);
    assert_eq!(first.rest().await, rest_of_text("lo", "r1"));
}
