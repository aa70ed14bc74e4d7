//! The store in memory: the suite, and the bounds that only it has.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use agentscope_agui::{
    config::OnUnanswered,
    runs::ledger::{Beginning, Ended, Ledger, Policy, Ticket},
    store::{AgentId, LastAnswer, MemoryLimits, MemoryStore, RunOwner, Store, Thread},
};
use agui_adapter::{
    history::Stored,
    outbound::{Clock, EndOutcome, RunEnd},
};
use agui_protocol::{InterruptId, RunAgentInput, RunOutcome};
use futures_util::FutureExt;
use serde_json::json;

use super::{
    every_store,
    records::{active, idle, key, load, parked, put, saying},
};
use crate::support::{log::Captured, server::NOW_MS};

struct Time(Arc<AtomicI64>);

impl Clock for Time {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

fn store(limits: MemoryLimits) -> (MemoryStore, Arc<AtomicI64>) {
    let time = Arc::new(AtomicI64::new(NOW_MS));
    (MemoryStore::new(limits, Box::new(Time(Arc::clone(&time)))), time)
}

fn for_ever() -> MemoryLimits {
    MemoryLimits { idle_for: None, ..MemoryLimits::default() }
}

mod suite {
    use super::*;

    every_store!(async || store(for_ever()).0);
}

async fn kept(store: &MemoryStore, threads: &[&str]) -> Vec<String> {
    let mut kept = Vec::new();
    for thread in threads {
        if load(store, &key(thread)).await.is_some() {
            kept.push((*thread).to_owned());
        }
    }
    kept
}

#[tokio::test]
async fn beyond_the_bound_the_thread_unused_for_longest_goes_but_none_with_a_run_or_interrupts() {
    let (store, _) = store(MemoryLimits { idle: 2, ..for_ever() });
    put(&store, &key("active"), active(1, RunOwner::fresh())).await;
    put(&store, &key("parked"), parked(1, 10)).await;
    for thread in ["a", "b"] {
        put(&store, &key(thread), idle(1)).await;
    }
    put(&store, &key("a"), idle(2)).await;
    put(&store, &key("c"), idle(3)).await;
    let all = ["active", "parked", "a", "b", "c"];
    assert_eq!(kept(&store, &all).await, ["active", "parked", "a", "c"]);
    assert_eq!((store.len(), store.is_empty()), (4, false));
    // From now on they are like all others.
    put(&store, &key("active"), idle(4)).await;
    put(&store, &key("parked"), idle(5)).await;
    assert_eq!(kept(&store, &all).await, ["active", "parked"]);
}

#[tokio::test]
async fn a_thread_unused_for_too_long_goes_but_none_with_a_run_or_interrupts() {
    let (store, time) =
        store(MemoryLimits { idle_for: Some(Duration::from_secs(60)), ..for_ever() });
    put(&store, &key("active"), active(NOW_MS, RunOwner::fresh())).await;
    put(&store, &key("parked"), parked(NOW_MS, 10)).await;
    put(&store, &key("a"), idle(NOW_MS)).await;
    put(&store, &key("b"), idle(NOW_MS + 1)).await;
    let all = ["active", "parked", "a", "b"];
    time.store(NOW_MS + 59_999, Ordering::SeqCst);
    assert_eq!(kept(&store, &all).await, all);
    // That somebody looked at it is no use.
    time.store(NOW_MS + 60_000, Ordering::SeqCst);
    assert_eq!(kept(&store, &all).await, ["active", "parked", "b"]);
    time.store(NOW_MS + 60_001, Ordering::SeqCst);
    assert_eq!(kept(&store, &all).await, ["active", "parked"]);
    time.store(i64::MAX, Ordering::SeqCst);
    assert_eq!(kept(&store, &all).await, ["active", "parked"]);
    assert_eq!(store.len(), 2);
}

/// The line that a dropped thread leaves, and its fields.
fn dropped_line(log: &Captured) -> Vec<String> {
    let text = log.text();
    let lines = text.lines().filter_map(|line| line.split_once(" WARN "));
    lines.filter_map(|(_, line)| Some(line.split_once(": ")?.1.to_owned())).collect()
}

#[tokio::test]
async fn beyond_their_number_the_oldest_parked_thread_goes_with_a_line_in_the_log() {
    let log = Captured::start();
    let (store, _) = store(MemoryLimits { parked: 2, ..for_ever() });
    put(&store, &key("idle"), idle(1)).await;
    for thread in ["a", "b"] {
        put(&store, &key(thread), parked(1, 10)).await;
    }
    assert_eq!(dropped_line(&log), Vec::<String>::new());
    put(&store, &key("c"), parked(1, 10)).await;
    assert_eq!(kept(&store, &["idle", "a", "b", "c"]).await, ["idle", "b", "c"]);
    let line = "too many parked threads: the oldest was dropped with its open interrupts \
                thread.id=\"a\" interrupts=1";
    assert_eq!(dropped_line(&log), [line]);
}

#[tokio::test]
async fn beyond_their_bytes_the_oldest_parked_threads_go() {
    let (store, _) = store(MemoryLimits { parked_bytes: 100_000, ..for_ever() });
    for thread in ["a", "b", "c"] {
        put(&store, &key(thread), parked(1, 30_000)).await;
    }
    assert_eq!(kept(&store, &["a", "b", "c"]).await, ["a", "b", "c"]);
    // Histories of threads on which nothing waits do not count.
    put(&store, &key("idle"), saying(1, 200_000)).await;
    put(&store, &key("d"), parked(1, 60_000)).await;
    assert_eq!(kept(&store, &["a", "b", "c", "d", "idle"]).await, ["c", "d", "idle"]);
    // What is no longer parked gives its bytes back.
    for _ in 0..100 {
        put(&store, &key("e"), parked(1, 5000)).await;
        put(&store, &key("e"), active(1, RunOwner::fresh())).await;
    }
    assert_eq!(kept(&store, &["c", "d"]).await, ["c", "d"]);
}

#[tokio::test]
async fn beyond_their_bytes_the_threads_unused_for_longest_go() {
    let (store, _) = store(MemoryLimits { idle_bytes: 100_000, ..for_ever() });
    for thread in ["a", "b", "c"] {
        put(&store, &key(thread), saying(1, 30_000)).await;
    }
    put(&store, &key("parked"), parked(1, 200_000)).await;
    assert_eq!(kept(&store, &["a", "b", "c", "parked"]).await, ["a", "b", "c", "parked"]);
    put(&store, &key("a"), saying(1, 30_000)).await;
    put(&store, &key("d"), saying(1, 30_000)).await;
    assert_eq!(kept(&store, &["a", "b", "c", "d", "parked"]).await, ["a", "c", "d", "parked"]);
    // Ids count like words.
    let mut ids = idle(1);
    let known = (0..100).map(|at| format!("{at}{}", "x".repeat(500)).into()).collect();
    let (calls, messages) = Default::default();
    ids.last_answer = Some(LastAnswer { known: Arc::new(known), calls, messages });
    put(&store, &key("ids"), ids).await;
    assert_eq!(kept(&store, &["a", "c", "d", "ids"]).await, ["d", "ids"]);
}

/// A ledger over this store, with memory.
fn ledger(store: &Arc<MemoryStore>) -> Ledger {
    let policy = Policy { on_unanswered: OnUnanswered::Reject, keep_history: true };
    Ledger::new(Arc::clone(store) as Arc<dyn Store>, policy)
}

async fn begin(ledger: &Ledger, thread: &str, resume: &[InterruptId]) -> Ticket {
    let resume: Vec<_> = resume
        .iter()
        .map(|id| json!({"interruptId": id, "status": "resolved", "payload": {"approved": true}}))
        .collect();
    let input = json!({
        "threadId": thread, "runId": "r", "resume": resume,
        "messages": [{"id": "u1", "role": "user", "content": "hello"}],
    });
    let input = RunAgentInput::from_value(input).unwrap().input;
    match ledger.begin(key(thread), &AgentId::new("a"), &input).await {
        Ok(Beginning::Run(ticket)) => *ticket,
        other => panic!("no run: {other:?}"),
    }
}

/// The run ends with this history; with the interrupt of a parked thread, if it asks.
async fn end(ticket: Ticket, bytes: usize, asks: bool) {
    let Thread { messages, parked, .. } = parked(0, bytes);
    let open = if asks { parked.unwrap().open } else { Vec::new() };
    let end = RunEnd {
        outcome: if asks { EndOutcome::Interrupted } else { EndOutcome::Success },
        finished: Some(RunOutcome::Success { pending_tool_call_ids: Vec::new() }),
        open,
        deferred: Vec::new(),
        state: None,
        parked: None,
        kept: None,
    };
    let messages: Vec<Stored> = Vec::clone(&messages);
    ticket
        .end(&Ended {
            end: &end,
            messages: messages.into(),
            state: None,
            decisions: &[],
            settled: &[],
        })
        .await
        .unwrap();
}

#[tokio::test]
async fn the_answer_to_a_dropped_thread_is_one_that_nobody_asked_for() {
    let store = Arc::new(store(MemoryLimits { parked: 1, ..for_ever() }).0);
    let ledger = ledger(&store);
    for thread in ["old", "new"] {
        end(begin(&ledger, thread, &[]).await, 10, true).await;
    }
    let ids = [InterruptId::from("i1")];
    let ticket = begin(&ledger, "old", &ids).await;
    assert_eq!((ticket.claimed(), &*ticket.begun().never_raised), (None, &ids[..]));
    drop(ticket);
    let ticket = begin(&ledger, "new", &ids).await;
    assert_eq!(ticket.claimed().map(|parked| parked.open.len()), Some(1));
}

#[tokio::test]
async fn memory_does_not_grow_with_the_number_of_threads() {
    let limits = MemoryLimits { idle: 100, parked: 50, parked_bytes: 2_000_000, ..for_ever() };
    let store = Arc::new(store(limits).0);
    let ledger = ledger(&store);
    let mut records: Vec<Weak<Thread>> = Vec::new();
    let active = begin(&ledger, "active", &[]).await;
    for at in 0..5000 {
        let thread = format!("t{at}");
        end(begin(&ledger, &thread, &[]).await, 50_000, at % 10 == 0).await;
        records.push(Arc::downgrade(&store.load(&key(&thread)).await.unwrap().unwrap()));
    }
    // Two million bytes hold 39 parked threads of 50,000 and a little.
    let alive = |asks: bool| {
        let of_kind = (0..).zip(&records).filter(|(at, _)| (at % 10 == 0) == asks);
        of_kind.filter(|(_, record)| record.strong_count() > 0).count()
    };
    assert_eq!((alive(false), alive(true), store.len()), (100, 39, 140));
    let debug = format!("{store:?}");
    assert!(debug.contains(", parked: 39, parked_bytes: "), "{debug}");
    assert!(debug.starts_with("MemoryStore { threads: 140, idle_bytes: "), "{debug}");
    // The run that lasted all the time has its thread still.
    let input =
        RunAgentInput::from_value(json!({"threadId": "active", "runId": "r", "messages": []}));
    let busy = ledger.begin(key("active"), &AgentId::new("a"), &input.unwrap().input).await;
    assert_eq!(busy.unwrap_err(), agentscope_agui::runs::ledger::Refusal::Busy);
    drop(active);
    // Everything is counted back to nothing.
    for at in 0..5000 {
        let forgotten = ledger.delete(&key(&format!("t{at}"))).now_or_never();
        forgotten.expect("at once").unwrap();
    }
    ledger.delete(&key("active")).await.unwrap();
    let nothing = "MemoryStore { threads: 0, idle_bytes: 0, parked: 0, parked_bytes: 0, .. }";
    assert_eq!((store.is_empty(), format!("{store:?}").as_str()), (true, nothing));
}
