//! The result of an approved call is stored before anybody sees it, and the call is executed once
//! whatever happens next.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use agentscope_agui::{
    agents::{Agent, RuntimeContext},
    config::ThreadsConfig,
    runs::{AgentId, Principal, RunRequest, RunService, RunServiceSetup},
    store::{
        Change, Listed, MemoryLimits, MemoryStore, Page, RunOwner, Store, StoreError, Thread,
        ThreadKey,
    },
};
use agui_adapter::{
    model::{AgentEvent, AgentEventKind, event::ResultState},
    outbound::Clock,
    resume::Verdict,
};
use agui_protocol::{Event, RunAgentInput};
use async_stream::stream;
use futures_util::{FutureExt, future::BoxFuture};
use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore, mpsc::Receiver};

use super::support::{
    agents::{agent, asks_for, end, start},
    input, resume,
    server::{NOW_MS, counted},
};

/// A store whose changes need a permit each, and which may be away.
struct Held {
    memory: MemoryStore,
    permits: Semaphore,
    /// Closed: changes are made, but whoever made them does not hear of it.
    answers: Semaphore,
    is_away: AtomicBool,
}

struct Stopped;

impl Clock for Stopped {
    fn now_ms(&self) -> i64 {
        NOW_MS
    }
}

impl Held {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            memory: MemoryStore::new(MemoryLimits::default(), Box::new(Stopped)),
            permits: Semaphore::new(0),
            answers: Semaphore::new(1),
            is_away: AtomicBool::new(false),
        })
    }
}

impl Store for Held {
    fn update<'a>(
        &'a self,
        key: &'a ThreadKey,
        change: &'a mut Change<'_>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        async move {
            self.permits.acquire().await.unwrap().forget();
            if self.is_away.load(Ordering::SeqCst) {
                return Err(StoreError("away".to_owned()));
            }
            let changed = self.memory.update(key, change).await;
            drop(self.answers.acquire().await.unwrap());
            changed
        }
        .boxed()
    }

    fn load<'a>(
        &'a self,
        key: &'a ThreadKey,
    ) -> BoxFuture<'a, Result<Option<Arc<Thread>>, StoreError>> {
        self.memory.load(key)
    }

    fn list<'a>(
        &'a self,
        principal: &'a Principal,
        page: &'a Page,
    ) -> BoxFuture<'a, Result<Vec<Listed>, StoreError>> {
        self.memory.list(principal, page)
    }

    fn cancelled(&self, key: &ThreadKey, owner: RunOwner) -> BoxFuture<'static, ()> {
        self.memory.cancelled(key, owner)
    }

    fn at_rest(&self, key: &ThreadKey) -> BoxFuture<'static, ()> {
        self.memory.at_rest(key)
    }

    fn lease(&self) -> Option<Duration> {
        None
    }
}

struct World {
    store: Arc<Held>,
    service: RunService,
    agent: Arc<dyn Agent>,
    executed: Arc<AtomicUsize>,
    released: Arc<Notify>,
}

impl World {
    /// Its agent asks for a call; approved, it executes that and waits before it ends.
    fn new() -> Self {
        Self::whose_call_is(None)
    }

    /// The same, the call being that of an agent below.
    fn whose_call_is(source: Option<&'static str>) -> Self {
        let store = Held::new();
        let setup = RunServiceSetup {
            store: Some(Arc::clone(&store) as Arc<dyn Store>),
            sources: counted(),
            ..RunServiceSetup::default()
        };
        let (executed, released) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let (counts, waits) = (Arc::clone(&executed), Arc::clone(&released));
        let asking = agent("a", move |request| {
            let (counts, waits) = (Arc::clone(&counts), Arc::clone(&waits));
            stream! {
                yield Ok(start());
                if request.decisions.is_empty() {
                    for event in asks_for("c1") {
                        yield Ok(of(source, event));
                    }
                    return;
                }
                let open = request.decisions.iter().filter(|decision| !decision.settled);
                for decision in open {
                    assert!(matches!(decision.verdict, Verdict::Approved { .. }));
                    counts.fetch_add(1, Ordering::SeqCst);
                    for event in result() {
                        yield Ok(of(source, event));
                    }
                }
                waits.notified().await;
                yield Ok(end());
            }
        });
        let service = RunService::new(10, ThreadsConfig::default(), setup);
        Self { store, service, agent: asking.agent, executed, released }
    }

    fn start(&self, input: Value) -> Receiver<Vec<Event>> {
        self.service.start(self.request(input)).unwrap().events()
    }

    fn request(&self, input: Value) -> RunRequest {
        let input = Arc::new(RunAgentInput::from_value(input).unwrap().input);
        RunRequest {
            agent: Arc::clone(&self.agent),
            agent_id: AgentId::new("a"),
            options: Arc::default(),
            principal: Principal::anonymous(),
            context: Arc::new(RuntimeContext::new(Default::default(), Arc::clone(&input))),
            input,
            run_timeout: None,
            accept_client_system_messages: false,
            request_id: "q".into(),
        }
    }

    fn permit(&self, changes: usize) {
        self.store.permits.add_permits(changes);
    }

    fn is_away(&self, is_away: bool) {
        self.store.is_away.store(is_away, Ordering::SeqCst);
    }

    /// The client was asked and has approved.
    async fn approved(&self, run: &str) -> Receiver<Vec<Event>> {
        let entry = json!([{
            "interruptId": "reply:c1", "status": "resolved", "payload": {"approved": true},
        }]);
        let events = self.start(resume("t", run, &entry));
        settle().await;
        events
    }

    async fn asked(&self) {
        self.permit(2);
        let mut events = self.start(input("t", "r1"));
        settle().await;
        assert_eq!(kinds(&mut events).last(), Some(&"RUN_FINISHED".to_owned()));
    }

    /// The settled and the open interrupts of the thread, of its run if it has one.
    async fn settled_and_open(&self) -> (usize, usize) {
        let key = ThreadKey { principal: Principal::anonymous(), thread: "t".into() };
        let thread = self.store.load(&key).await.unwrap().unwrap();
        let claim = thread.active.as_ref().and_then(|run| run.claim.as_ref());
        let parked = claim.map(|claim| &claim.parked).or(thread.parked.as_ref()).unwrap();
        (parked.settled.len(), parked.open.len())
    }

    fn executed(&self) -> usize {
        self.executed.load(Ordering::SeqCst)
    }
}

fn of(source: Option<&str>, mut event: AgentEvent) -> AgentEvent {
    event.source = source.map(Into::into);
    event
}

fn result() -> [AgentEvent; 3] {
    let (reply, call) = ("reply".to_owned(), "c1".to_owned());
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

/// Lets every task do what it can.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// The types of the events that have come.
fn kinds(events: &mut Receiver<Vec<Event>>) -> Vec<String> {
    let mut kinds = Vec::new();
    while let Ok(batch) = events.try_recv() {
        let types = batch.iter().map(|event| serde_json::to_value(event).unwrap()["type"].take());
        kinds.extend(types.map(|kind| kind.as_str().unwrap().to_owned()));
    }
    kinds
}

#[tokio::test(start_paused = true)]
async fn a_result_is_stored_before_anybody_sees_it() {
    let world = World::new();
    world.asked().await;
    // The run may begin, and that is all the store does.
    world.permit(1);
    let mut events = world.approved("r2").await;
    assert_eq!((world.executed(), kinds(&mut events)), (1, Vec::new()));
    assert_eq!(world.settled_and_open().await, (0, 1));
    world.permit(1);
    settle().await;
    assert_eq!(kinds(&mut events), ["RUN_STARTED", "TOOL_CALL_RESULT"]);
    assert_eq!(world.settled_and_open().await, (1, 0));
    // So is the end.
    world.released.notify_one();
    settle().await;
    assert_eq!(kinds(&mut events), Vec::<String>::new());
    world.permit(1);
    settle().await;
    assert_eq!(kinds(&mut events), ["RUN_FINISHED"]);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_before_the_result_is_stored_gets_it_with_the_retry() {
    let world = World::new();
    world.asked().await;
    world.permit(1);
    drop(world.approved("r2").await);
    world.permit(1);
    settle().await;
    assert_eq!(world.settled_and_open().await, (1, 0));
    world.permit(2);
    world.released.notify_one();
    let mut events = world.approved("r3").await;
    assert_eq!(kinds(&mut events), ["RUN_STARTED", "TOOL_CALL_RESULT", "RUN_FINISHED"]);
    assert_eq!(world.executed(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_childs_result_that_no_message_tells_is_stored_with_the_end_of_a_run_that_is_left() {
    let world = World::whose_call_is(Some("main/r"));
    let old = |mut input: Value| {
        input.as_object_mut().unwrap().remove("protocolVersion");
        input
    };
    world.permit(2);
    let mut events = world.start(old(input("t", "r1")));
    settle().await;
    let batch = events.try_recv().unwrap();
    let last = serde_json::to_value(batch.last().unwrap()).unwrap();
    let id = last["outcome"]["interrupts"][0]["id"].clone();
    let entry = json!([{"interruptId": id, "status": "resolved", "payload": {"approved": true}}]);
    // The run begins, and is left while its result is being stored.
    world.permit(1);
    let events = world.start(old(resume("t", "r2", &entry)));
    settle().await;
    assert_eq!((world.executed(), world.settled_and_open().await), (1, (0, 1)));
    drop(events);
    world.permit(1);
    settle().await;
    assert_eq!(world.settled_and_open().await, (1, 0));
    world.permit(2);
    world.released.notify_one();
    let _events = world.start(old(resume("t", "r3", &entry)));
    settle().await;
    assert_eq!(world.executed(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_stored_only_with_the_end_is_shown_only_then() {
    let world = World::new();
    world.asked().await;
    world.permit(1);
    let mut events = world.approved("r2").await;
    world.is_away(true);
    world.permit(1);
    settle().await;
    assert_eq!(kinds(&mut events), Vec::<String>::new());
    world.is_away(false);
    world.permit(1);
    settle().await;
    assert_eq!(kinds(&mut events), ["RUN_STARTED", "TOOL_CALL_RESULT", "RUN_ERROR"]);
    assert_eq!((world.executed(), world.settled_and_open().await), (1, (1, 0)));
    world.permit(2);
    world.released.notify_one();
    let mut events = world.approved("r3").await;
    assert_eq!(kinds(&mut events), ["RUN_STARTED", "TOOL_CALL_RESULT", "RUN_FINISHED"]);
    assert_eq!(world.executed(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_never_stored_is_never_shown() {
    let world = World::new();
    world.asked().await;
    world.permit(1);
    let mut events = world.approved("r2").await;
    world.is_away(true);
    world.permit(2);
    settle().await;
    assert_eq!(kinds(&mut events), ["RUN_STARTED", "RUN_ERROR"]);
    assert_eq!(world.settled_and_open().await, (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_comes_while_a_run_begins_joins_it() {
    let world = World::new();
    world.asked().await;
    world.permit(2);
    // The store has the run, and the run does not know yet.
    let held = world.store.answers.acquire().await.unwrap();
    let run = world.approved("r2").await;
    let mut joined = world.service.connect(world.request(input("t", "c"))).events();
    settle().await;
    assert_eq!(kinds(&mut joined), Vec::<String>::new());
    drop(held);
    settle().await;
    assert_eq!(kinds(&mut joined)[..2], ["RUN_STARTED", "MESSAGES_SNAPSHOT"]);
    world.permit(1);
    world.released.notify_one();
    settle().await;
    assert_eq!(kinds(&mut joined).last().unwrap(), "RUN_FINISHED");
    drop(run);
}
