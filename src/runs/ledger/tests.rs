//! The ledger's rules, one by one.

use agui_adapter::resume::InterruptKind;
use agui_protocol::{Interrupt, ResumeStatus};

use super::*;

fn key(thread: &str) -> ThreadKey {
    ThreadKey { principal: Principal::anonymous(), thread: thread.into() }
}

fn agent() -> AgentId {
    AgentId::new("a")
}

fn open(id: &str) -> OpenInterrupt {
    OpenInterrupt {
        interrupt: Interrupt {
            subagent_run_id: None,
            id: id.into(),
            reason: "input_required".to_owned(),
            message: None,
            tool_call_id: None,
            response_schema: None,
            expires_at: None,
            metadata: None,
        },
        kind: InterruptKind::InputRequired,
        reply: String::new(),
        source: None,
        call: None,
        question: None,
    }
}

fn answers(ids: &[&str]) -> Vec<ResumeEntry> {
    let entry = |id: &&str| ResumeEntry {
        interrupt_id: (*id).into(),
        status: ResumeStatus::Resolved,
        payload: None,
        metadata: None,
    };
    ids.iter().map(entry).collect()
}

fn ended(outcome: EndOutcome, asks: &[&str]) -> RunEnd {
    let open = asks.iter().map(|id| open(id)).collect();
    RunEnd { outcome, open, deferred: Vec::new(), state: None, parked: None }
}

fn ids(ids: &[&str]) -> Vec<InterruptId> {
    ids.iter().map(|id| InterruptId::from(*id)).collect()
}

/// A ledger whose thread `t` waits for an answer to each of `asks`.
fn parked(asks: &[&str]) -> Arc<Ledger> {
    let ledger = Ledger::new(10);
    let ticket = ledger.begin(key("t"), &agent(), &[]).unwrap();
    ticket.finish(&ended(EndOutcome::Interrupted, asks));
    ledger
}

#[test]
fn a_thread_has_one_run_and_principals_do_not_share_threads() {
    let ledger = Ledger::new(10);
    let first = ledger.begin(key("t"), &agent(), &[]).unwrap();
    assert_eq!(ledger.begin(key("t"), &agent(), &[]).unwrap_err(), Refusal::Busy);
    let alice = ThreadKey { principal: Principal::named("alice"), thread: "t".into() };
    let others = [ledger.begin(alice, &agent(), &[]), ledger.begin(key("t2"), &agent(), &[])];
    assert!(others.iter().all(Result::is_ok));
    drop(first);
    assert!(ledger.begin(key("t"), &agent(), &[]).is_ok());
}

#[test]
fn of_many_that_begin_at_once_one_wins() {
    let ledger = parked(&["i"]);
    for _ in 0..50 {
        let begun = std::thread::scope(|scope| {
            let begin = || ledger.begin(key("t"), &agent(), &answers(&["i"]));
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(begin)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(begun.iter().filter(|ticket| ticket.is_ok()).count(), 1);
    }
}

#[test]
fn every_open_interrupt_needs_exactly_one_entry() {
    let ledger = parked(&["i", "j"]);
    let cases: [(&[&str], &[&str], &[&str]); 4] = [
        (&[], &["i", "j"], &[]),
        (&["j"], &["i"], &[]),
        (&["i", "j", "i"], &[], &["i"]),
        (&["j", "j", "k"], &["i"], &["j"]),
    ];
    for (entries, missing, duplicate) in cases {
        let refusal = ledger.begin(key("t"), &agent(), &answers(entries)).unwrap_err();
        let parked =
            Arc::new(Parked { agent: agent(), open: vec![open("i"), open("j")], state: None });
        let (missing, duplicate) = (ids(missing), ids(duplicate));
        assert_eq!(refusal, Refusal::Uncovered { missing, duplicate, parked });
    }
    let ticket = ledger.begin(key("t"), &agent(), &answers(&["j", "k", "i"])).unwrap();
    assert_eq!(ticket.claimed(), [open("i"), open("j")]);
    assert_eq!(ticket.never_raised(), ids(&["k"]));
    assert_eq!(ticket.already_answered(), []);
}

#[test]
fn only_the_agent_that_asked_may_go_on() {
    let ledger = parked(&["i"]);
    for entries in [&["i"][..], &[]] {
        let refusal = ledger.begin(key("t"), &AgentId::new("b"), &answers(entries)).unwrap_err();
        let parked = Arc::new(Parked { agent: agent(), open: vec![open("i")], state: None });
        assert_eq!(refusal, Refusal::OtherAgent { parked });
    }
}

#[test]
fn only_a_finished_run_answers_what_it_claimed() {
    for outcome in [EndOutcome::Success, EndOutcome::Cancelled] {
        let ledger = parked(&["i"]);
        let ticket = ledger.begin(key("t"), &agent(), &answers(&["i"])).unwrap();
        ticket.finish(&ended(outcome, &[]));
        let ticket = ledger.begin(key("t"), &AgentId::new("b"), &answers(&["i", "k"])).unwrap();
        assert_eq!(ticket.claimed(), []);
        assert_eq!(ticket.already_answered(), ids(&["i"]));
        assert_eq!(ticket.never_raised(), ids(&["k"]));
    }
    let ledger = parked(&["i"]);
    for give_back in [
        |ticket: Ticket| ticket.finish(&ended(EndOutcome::Error("X".to_owned()), &[])),
        |ticket: Ticket| drop(ticket),
    ] {
        let ticket = ledger.begin(key("t"), &agent(), &answers(&["i"])).unwrap();
        assert_eq!(ticket.claimed(), [open("i")]);
        give_back(ticket);
    }
    assert!(ledger.begin(key("t"), &agent(), &answers(&["i"])).is_ok());
}

#[test]
fn what_the_agent_parked_goes_back_with_the_answers() {
    let ledger = Ledger::new(10);
    let ticket = ledger.begin(key("t"), &agent(), &[]).unwrap();
    let state = Some(Arc::new(Value::from("state")));
    ticket.finish(&RunEnd { parked: state.clone(), ..ended(EndOutcome::Interrupted, &["i"]) });
    let ticket = ledger.begin(key("t"), &agent(), &answers(&["i"])).unwrap();
    assert_eq!(ticket.parked(), state);
    ticket.finish(&ended(EndOutcome::Interrupted, &["j"]));
    let ticket = ledger.begin(key("t"), &agent(), &answers(&["j"])).unwrap();
    assert_eq!(ticket.parked(), None);
}

#[test]
fn a_resumed_run_may_ask_again() {
    let ledger = parked(&["i"]);
    let ticket = ledger.begin(key("t"), &agent(), &answers(&["i"])).unwrap();
    ticket.finish(&ended(EndOutcome::Interrupted, &["j"]));
    let ticket = ledger.begin(key("t"), &agent(), &answers(&["i", "j"])).unwrap();
    assert_eq!(ticket.claimed(), [open("j")]);
    assert_eq!(ticket.already_answered(), ids(&["i"]));
}

#[test]
fn the_longest_parked_thread_is_dropped_when_there_are_too_many() {
    let ledger = Ledger::new(2);
    for thread in ["t1", "t2", "t3"] {
        let ticket = ledger.begin(key(thread), &agent(), &[]).unwrap();
        ticket.finish(&ended(EndOutcome::Interrupted, &["i"]));
    }
    let ticket = ledger.begin(key("t1"), &agent(), &answers(&["i"])).unwrap();
    assert_eq!(ticket.never_raised(), ids(&["i"]));
    let ticket = ledger.begin(key("t2"), &agent(), &answers(&["i"])).unwrap();
    assert_eq!(ticket.claimed(), [open("i")]);
}

#[test]
fn threads_without_anything_to_remember_are_forgotten() {
    let ledger = Ledger::new(10);
    let ticket = ledger.begin(key("t"), &agent(), &[]).unwrap();
    ticket.finish(&ended(EndOutcome::Success, &[]));
    assert_eq!(ledger.lock().by_key.len(), 0);
}
