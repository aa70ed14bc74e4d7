//! The real runs, driven without a server: the clients, the agents, the clock.
//!
//! Time stands still unless a step moves it, and nothing waits for anything: a step is over when
//! no task has anything to do.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use agentscope_agui::{
    agents::RuntimeContext,
    config::{OnUnanswered, ThreadsConfig},
    runs::{
        AgentId, Principal, RunRequest, RunService, RunServiceSetup, Sources,
        ledger::{Cancelled, Deleted},
    },
    store::{Thread, ThreadKey},
};
use agui_adapter::{
    options::AdapterOptions,
    outbound::{Clock, IdSource},
};
use agui_protocol::{Event, RunAgentInput};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc::Receiver};

use super::{
    agent::{ARGUMENTS, FRONT, Part, Player},
    model::{Answer, Entry, Found, Reply, Request, TTL_MS, Told},
    schedule::{Plan, Settings, Verdict},
};

const RUN_TIMEOUT: Duration = Duration::from_secs(60);

/// The arguments that a call is executed with.
pub(super) fn arguments(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Edited => r#"{"disk":"b"}"#,
        _ => ARGUMENTS,
    }
}

struct Time(Arc<AtomicI64>);

impl Clock for Time {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Counts over all runs: ids of one thread never repeat.
struct Ids(Arc<AtomicI64>);

impl IdSource for Ids {
    fn next_id(&mut self) -> String {
        format!("id-{}", self.0.fetch_add(1, Ordering::SeqCst))
    }
}

pub(super) struct World {
    service: RunService,
    player: Player,
    options: Arc<AdapterOptions>,
    time: Arc<AtomicI64>,
    runs: usize,
    /// Per thread, its run.
    live: Vec<Option<Live>>,
}

struct Live {
    released: Arc<Notify>,
    /// `None` = its client has left.
    events: Option<Receiver<Vec<Event>>>,
}

/// What is at rest of a thread.
#[derive(Debug, Default, PartialEq)]
pub(super) struct AtRest {
    pub(super) is_known: bool,
    pub(super) is_running: bool,
    pub(super) open: Vec<String>,
    pub(super) settled: BTreeSet<String>,
    /// The agent, if anything is open or settled.
    pub(super) asker: Option<String>,
    pub(super) unraised: bool,
}

impl World {
    pub(super) fn new(settings: Settings, threads: usize, now_ms: i64) -> Self {
        let time = Arc::new(AtomicI64::new(now_ms));
        let (clock, ids) = (Arc::clone(&time), Arc::new(AtomicI64::new(0)));
        let sources = Sources::new(
            move || Box::new(Ids(Arc::clone(&ids))),
            move || Box::new(Time(Arc::clone(&clock))),
        );
        let config = ThreadsConfig {
            server_side_memory: settings.memory,
            session_timeout: None,
            on_unanswered_interrupts: if settings.cancels_unanswered {
                OnUnanswered::Cancel
            } else {
                OnUnanswered::Reject
            },
            interrupt_on_disconnect: settings.stops_without_client,
            ..ThreadsConfig::default()
        };
        let setup = RunServiceSetup { sources, ..RunServiceSetup::default() };
        let ttl = Duration::from_millis(TTL_MS as u64);
        let options = AdapterOptions {
            interrupt_ttl: settings.expires.then_some(ttl),
            ..AdapterOptions::default()
        };
        Self {
            service: RunService::new(100, config, setup),
            player: Player::default(),
            options: Arc::new(options),
            time,
            runs: 0,
            live: (0..threads).map(|_| None).collect(),
        }
    }

    pub(super) fn pass(&self, ms: i64) {
        self.time.fetch_add(ms, Ordering::SeqCst);
    }

    /// Calls executed so far, with their arguments.
    pub(super) fn executed(&self) -> Vec<(String, String)> {
        self.player.executed()
    }

    /// Asks for a run and reads as far as it goes.
    pub(super) async fn run(
        &mut self,
        slot: usize,
        request: &Request,
        plan: Plan,
        calls: Vec<String>,
    ) -> Reply {
        self.runs += 1;
        let run = format!("r{}", self.runs);
        let released = Arc::new(Notify::new());
        let part = Part { plan, calls, released: Arc::clone(&released) };
        self.player.cast(&run, part);
        let request = self.request(slot, &run, request);
        let mut events = self.service.start(request).unwrap().events();
        settle().await;
        let (read, is_over) = read(&mut events);
        if !is_over {
            self.live[slot] = Some(Live { released, events: Some(events) });
        }
        let ignored = read.iter().find(|event| event["type"] == "RUN_STARTED");
        let ignored = ignored.map(|started| &started["metadata"]["agentscope.ignoredResume"]);
        Reply {
            ignored: ignored.map_or_else(Vec::new, strings),
            told: is_over.then(|| told(read.last().unwrap())),
        }
    }

    fn request(&self, slot: usize, run: &str, request: &Request) -> RunRequest {
        let ThreadKey { principal, thread } = key(slot);
        let message =
            request.message.iter().map(|id| json!({"id": id, "role": "user", "content": "go"}));
        let input = json!({
            "threadId": thread, "runId": run, "protocolVersion": "1.0",
            "messages": message.collect::<Vec<_>>(),
            "tools": [{"name": FRONT, "description": "Runs at the client."}],
            "resume": request.entries.iter().map(entry).collect::<Vec<_>>(),
        });
        let input = Arc::new(RunAgentInput::from_value(input).unwrap().input);
        RunRequest {
            agent: Arc::new(self.player.clone()),
            agent_id: AgentId::new(agent(request.agent)),
            options: Arc::clone(&self.options),
            principal,
            context: Arc::new(RuntimeContext::new(Default::default(), Arc::clone(&input))),
            input,
            run_timeout: Some(RUN_TIMEOUT),
            accept_client_system_messages: false,
            request_id: run.into(),
        }
    }

    /// The client of the thread's run leaves.
    pub(super) async fn leave(&mut self, slot: usize) {
        if let Some(live) = &mut self.live[slot] {
            live.events = None;
        }
        settle().await;
    }

    pub(super) async fn release(&mut self, slot: usize) -> Option<Told> {
        if let Some(live) = &self.live[slot] {
            live.released.notify_one();
        }
        settle().await;
        self.ended(slot)
    }

    /// Every run takes too long.
    pub(super) async fn time_out(&mut self) {
        tokio::time::advance(RUN_TIMEOUT + Duration::from_secs(1)).await;
        settle().await;
    }

    pub(super) async fn cancel(&mut self, slot: usize) -> Found {
        let found = self.service.ledger().cancel(&key(slot)).await.unwrap();
        settle().await;
        match found {
            Cancelled::Run => Found::Run,
            Cancelled::Interrupts => Found::Interrupts,
            Cancelled::Nothing => Found::Nothing,
            Cancelled::Unknown => Found::Unknown,
        }
    }

    pub(super) async fn delete(&mut self, slot: usize) -> Deleted {
        let deleted = self.service.ledger().delete(&key(slot)).await.unwrap();
        settle().await;
        deleted
    }

    /// What the client of a thread's run was told at its end; `None` = there is no such run, or
    /// nobody to tell.
    pub(super) fn ended(&mut self, slot: usize) -> Option<Told> {
        let mut events = self.live[slot].take()?.events?;
        let (read, is_over) = read(&mut events);
        assert!(is_over, "the stream has no end: {read:?}");
        Some(told(read.last().unwrap()))
    }

    pub(super) async fn at_rest(&self, slot: usize) -> AtRest {
        let thread = self.service.ledger().store().load(&key(slot)).await.unwrap();
        let Some(thread) = thread else { return AtRest::default() };
        let Thread { active, parked, .. } = &*thread;
        let mut at_rest =
            AtRest { is_known: true, is_running: active.is_some(), ..AtRest::default() };
        if let Some(parked) = parked {
            let id =
                |open: &agui_adapter::resume::OpenInterrupt| open.interrupt.id.as_str().to_owned();
            at_rest.open = parked.open.iter().map(id).collect();
            at_rest.settled = parked.settled.iter().map(|one| id(&one.open)).collect();
            at_rest.asker = Some(parked.agent.as_str().to_owned());
            at_rest.unraised = !parked.raised;
        }
        at_rest
    }

    /// Waits until no task is left.
    pub(super) async fn stopped(self) {
        self.service.stop();
        self.service.stopped().await;
    }
}

pub(super) fn agent(at: usize) -> String {
    format!("agent-{at}")
}

fn key(slot: usize) -> ThreadKey {
    let principal = Principal::named(["ann", "bob"][slot % 2]);
    ThreadKey { principal, thread: format!("t{}", slot / 2).as_str().into() }
}

fn entry(entry: &Entry) -> Value {
    let resolved = |payload: Value| json!({"status": "resolved", "payload": payload});
    let mut value = match entry.answer {
        Answer::Given(Verdict::Yes) => resolved(json!({"approved": true})),
        Answer::Given(Verdict::Edited) => {
            resolved(json!({"approved": true, "editedArgs": {"disk": "b"}}))
        }
        Answer::Given(Verdict::No) => resolved(json!({"approved": false, "reason": "no"})),
        Answer::Given(Verdict::Cancelled) => json!({"status": "cancelled"}),
        Answer::Nonsense => resolved(json!({"approved": true, "editedArgs": "x"})),
    };
    value["interruptId"] = entry.id.as_str().into();
    value
}

/// Lets every task do what it can.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// What there is to read, and whether that is all.
fn read(events: &mut Receiver<Vec<Event>>) -> (Vec<Value>, bool) {
    let mut read = Vec::new();
    while let Ok(batch) = events.try_recv() {
        read.extend(batch.iter().map(|event| serde_json::to_value(event).unwrap()));
    }
    let is_over = events.is_closed() && events.is_empty();
    (read, is_over)
}

fn strings(value: &Value) -> Vec<String> {
    let strings = value.as_array().into_iter().flatten();
    strings.map(|one| one.as_str().unwrap().to_owned()).collect()
}

fn told(last: &Value) -> Told {
    let interrupts = |list: &Value| {
        let list = list.as_array().into_iter().flatten();
        list.map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    };
    let outcome = &last["outcome"];
    match (last["type"].as_str(), outcome["type"].as_str()) {
        (Some("RUN_FINISHED"), Some("success")) => Told::Success,
        (Some("RUN_FINISHED"), Some("cancelled")) => Told::Cancelled,
        (Some("RUN_FINISHED"), Some("interrupt")) => {
            Told::Interrupt(interrupts(&outcome["interrupts"]))
        }
        (Some("RUN_ERROR"), None) => {
            let code = last["code"].as_str().unwrap().to_owned();
            Told::Error(code, interrupts(&last["metadata"]["agentscope.openInterrupts"]))
        }
        _ => panic!("no end: {last}"),
    }
}
