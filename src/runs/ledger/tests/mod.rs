//! The rules of the ledger, one test per rule, over a memory store whose clock the test sets.

mod answers;
mod begin;
mod control;
mod end;
mod expiry;
mod kept;
mod lease;
mod settled;

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use agui_adapter::{
    history::Stored,
    outbound::{Clock, EndOutcome, RunEnd},
    resume::{Decision, InterruptKind, OpenInterrupt, StoredCall, decide},
};
use agui_protocol::{Interrupt, InterruptId, Message, ResumeEntry, RunAgentInput, RunOutcome};
use futures_util::{FutureExt, future::BoxFuture};
use serde_json::{Value, json};

use super::{Beginning, Ended, Ledger, Policy, Refusal, Repeat, Ticket};
use crate::{
    config::OnUnanswered,
    store::{
        AgentId, Change, Listed, MemoryLimits, MemoryStore, Page, Parked, Principal, RunOwner,
        Store, StoreError, Thread, ThreadKey,
    },
};

/// The time at which every test begins.
const NOW: i64 = 1_000_000;

/// For how long a claim holds in the tests with leases.
const LEASE: i64 = 10_000;

const REJECT: Policy = Policy { on_unanswered: OnUnanswered::Reject, keep_history: false };
const CANCEL: Policy = Policy { on_unanswered: OnUnanswered::Cancel, keep_history: false };
const MEMORY: Policy = Policy { on_unanswered: OnUnanswered::Reject, keep_history: true };

struct Time(Arc<AtomicI64>);

impl Clock for Time {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// The memory store of several replicas: runs can get lost.
struct Leased(MemoryStore);

impl Store for Leased {
    fn update<'a>(
        &'a self,
        key: &'a ThreadKey,
        change: &'a mut Change<'_>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.0.update(key, change)
    }

    fn load<'a>(
        &'a self,
        key: &'a ThreadKey,
    ) -> BoxFuture<'a, Result<Option<Arc<Thread>>, StoreError>> {
        self.0.load(key)
    }

    fn list<'a>(
        &'a self,
        principal: &'a Principal,
        page: &'a Page,
    ) -> BoxFuture<'a, Result<Vec<Listed>, StoreError>> {
        self.0.list(principal, page)
    }

    fn cancelled(&self, key: &ThreadKey, owner: RunOwner) -> BoxFuture<'static, ()> {
        self.0.cancelled(key, owner)
    }

    fn at_rest(&self, key: &ThreadKey) -> BoxFuture<'static, ()> {
        self.0.at_rest(key)
    }

    fn lease(&self) -> Option<Duration> {
        Some(Duration::from_millis(LEASE as u64))
    }
}

/// A ledger, and the clock of its store.
struct World {
    ledger: Ledger,
    time: Arc<AtomicI64>,
}

impl World {
    fn new(policy: Policy) -> Self {
        Self::over(policy, |store| Arc::new(store))
    }

    fn leased(policy: Policy) -> Self {
        Self::over(policy, |store| Arc::new(Leased(store)))
    }

    fn over(policy: Policy, store: impl FnOnce(MemoryStore) -> Arc<dyn Store>) -> Self {
        let time = Arc::new(AtomicI64::new(NOW));
        let limits = MemoryLimits { idle_for: None, ..MemoryLimits::default() };
        let store = store(MemoryStore::new(limits, Box::new(Time(Arc::clone(&time)))));
        Self { ledger: Ledger::new(store, policy), time }
    }

    /// So many milliseconds after the beginning of the test.
    fn at(&self, after: i64) {
        self.time.store(NOW + after, Ordering::SeqCst);
    }

    fn begin(&self, whose: &str, input: &RunAgentInput) -> Result<Beginning, Refusal> {
        now(self.ledger.begin(key(), &agent(whose), input))
    }

    fn run(&self, whose: &str, input: &RunAgentInput) -> Ticket {
        match self.begin(whose, input) {
            Ok(Beginning::Run(ticket)) => *ticket,
            other => panic!("no run: {other:?}"),
        }
    }

    fn repeated(&self, whose: &str, input: &RunAgentInput) -> Repeat {
        match self.begin(whose, input) {
            Ok(Beginning::Repeat(repeat)) => *repeat,
            other => panic!("no repeat: {other:?}"),
        }
    }

    fn refused(&self, whose: &str, input: &RunAgentInput) -> Refusal {
        match self.begin(whose, input) {
            Err(refusal) => refusal,
            Ok(other) => panic!("not refused: {other:?}"),
        }
    }

    /// The record of the thread.
    fn thread(&self) -> Option<Thread> {
        now(self.ledger.store().load(&key())).unwrap().map(|thread| Thread::clone(&thread))
    }

    fn parked(&self) -> Option<Parked> {
        self.thread().and_then(|thread| thread.parked)
    }

    /// A run of `a` that said nothing but these asks.
    fn asked(&self, open: &[OpenInterrupt]) {
        let ticket = self.run("a", &input("r1", &said("u1"), &[]));
        leave(ticket, &interrupted(open), &["u1"]);
    }

    /// The run claims both answers and is told their decisions.
    fn resumed(&self, run: &str, entries: &[ResumeEntry]) -> Ticket {
        self.run("a", &input(run, &said("u1"), entries))
    }
}

/// What a memory store does is done at once.
fn now<F: Future>(future: F) -> F::Output {
    future.now_or_never().expect("a memory store never waits")
}

fn key() -> ThreadKey {
    key_of(&Principal::anonymous(), "t")
}

fn key_of(principal: &Principal, thread: &str) -> ThreadKey {
    ThreadKey { principal: principal.clone(), thread: thread.into() }
}

fn agent(id: &str) -> AgentId {
    AgentId::new(id)
}

fn ids(ids: &[&str]) -> Vec<InterruptId> {
    ids.iter().map(|id| InterruptId::from(*id)).collect()
}

fn input(run: &str, messages: &Value, resume: &[ResumeEntry]) -> RunAgentInput {
    let input = json!({
        "threadId": "t", "runId": run, "protocolVersion": "1.0", "messages": messages,
        "resume": resume,
    });
    RunAgentInput::from_value(input).unwrap().input
}

/// One user message.
fn said(id: &str) -> Value {
    json!([{"id": id, "role": "user", "content": "wipe it"}])
}

fn message(value: Value) -> Message {
    serde_json::from_value(value).unwrap()
}

/// A user message as the ledger keeps it.
fn stored(id: &str) -> Stored {
    Stored::seen(message(json!({"id": id, "role": "user", "content": "wipe it"})))
}

/// The result of a call.
fn result(call: &str) -> Message {
    message(json!({
        "id": format!("result-{call}"), "role": "tool", "toolCallId": call, "content": "done",
    }))
}

fn approve(id: &str) -> ResumeEntry {
    entry(id, "resolved")
}

fn cancel(id: &str) -> ResumeEntry {
    let mut entry = entry(id, "cancelled");
    entry.payload = None;
    entry
}

fn entry(id: &str, status: &str) -> ResumeEntry {
    let entry = json!({"interruptId": id, "status": status, "payload": {"approved": true}});
    serde_json::from_value(entry).unwrap()
}

/// A permission asked for a call; the interrupt is `i-<call>`.
fn ask(call: &str) -> OpenInterrupt {
    OpenInterrupt {
        interrupt: Interrupt {
            subagent_run_id: None,
            id: format!("i-{call}").as_str().into(),
            reason: "tool_call".to_owned(),
            message: None,
            tool_call_id: Some(call.into()),
            response_schema: None,
            expires_at: None,
            metadata: None,
        },
        kind: InterruptKind::PermissionConfirm,
        reply: "reply".to_owned(),
        source: None,
        task: None,
        above: Vec::new(),
        call: Some(StoredCall {
            id: call.to_owned(),
            wire_id: call.to_owned(),
            name: "wipe".to_owned(),
            arguments: "{}".to_owned(),
            input: None,
        }),
        question: None,
        expires_ms: None,
    }
}

/// The same that expires so many milliseconds after the beginning of the test.
fn expiring(call: &str, after: i64) -> OpenInterrupt {
    OpenInterrupt { expires_ms: Some(NOW + after), ..ask(call) }
}

/// What `a` has parked and the client knows.
fn parked(open: &[OpenInterrupt], settled: &[Decision]) -> Parked {
    Parked {
        agent: agent("a"),
        open: open.to_vec(),
        settled: settled.to_vec(),
        raised: true,
        state: None,
    }
}

fn decisions(entries: &[ResumeEntry], open: &[OpenInterrupt]) -> Vec<Decision> {
    decide(entries, open).unwrap()
}

/// The decision that a call may run, and that it did.
fn done(call: &str) -> Decision {
    let id = format!("i-{call}");
    let [decision] = <[Decision; 1]>::try_from(decisions(&[approve(&id)], &[ask(call)])).unwrap();
    Decision { settled: true, ..decision }
}

fn run_end(outcome: EndOutcome, finished: Option<RunOutcome>) -> RunEnd {
    let (open, deferred) = (Vec::new(), Vec::new());
    RunEnd { outcome, finished, open, deferred, state: None, parked: None, kept: None }
}

fn success() -> RunEnd {
    run_end(EndOutcome::Success, Some(succeeded()))
}

fn succeeded() -> RunOutcome {
    RunOutcome::Success { pending_tool_call_ids: Vec::new() }
}

fn cancelled() -> RunEnd {
    run_end(EndOutcome::Cancelled, Some(RunOutcome::Cancelled))
}

fn failed() -> RunEnd {
    run_end(EndOutcome::Error("MODEL_ERROR".to_owned()), None)
}

fn interrupted(open: &[OpenInterrupt]) -> RunEnd {
    let mut end = run_end(EndOutcome::Interrupted, Some(interrupts(open)));
    end.open = open.to_vec();
    end
}

fn interrupts(open: &[OpenInterrupt]) -> RunOutcome {
    RunOutcome::Interrupt { interrupts: open.iter().map(|open| open.interrupt.clone()).collect() }
}

/// Ends a run whose history is these user messages.
fn leave(ticket: Ticket, end: &RunEnd, history: &[&str]) {
    leave_with(ticket, end, history.iter().map(|id| stored(id)).collect(), &[]);
}

fn leave_with(ticket: Ticket, end: &RunEnd, messages: Vec<Stored>, decisions: &[Decision]) {
    // A run that lost its thread records nothing; what the thread is then is what tests look at.
    now(ticket.end(&Ended {
        end,
        messages: Arc::new(messages),
        state: None,
        decisions,
        settled: &[],
    }))
    .ok();
}
