//! What becomes of a thread when its run ends.

use std::collections::BTreeMap;

use super::*;
use crate::store::LastAnswer;

#[test]
fn run_finished_makes_the_answer_of_a_claim_whatever_its_outcome() {
    for end in [success(), cancelled(), interrupted(&[ask("c9")])] {
        let world = World::new(REJECT);
        world.asked(&[ask("c1"), ask("c2")]);
        world.at(3);
        leave(world.resumed("r2", &[approve("i-c1"), cancel("i-c2")]), &end, &["u1", "m1"]);
        let thread = world.thread().unwrap();
        let last = LastAnswer {
            known: Arc::new(["u1".into()].into()),
            calls: ["c1".into(), "c2".into()].into(),
            messages: Arc::new(vec![stored("u1"), stored("m1")]),
        };
        let still = !end.open.is_empty();
        let expected = Thread {
            agent: Some(agent("a")),
            active: None,
            parked: still.then(|| parked(&[ask("c9")], &[])),
            answered: ids(&["i-c1", "i-c2"]).into(),
            last_answer: Some(last),
            outcome: end.finished.clone(),
            failure: None,
            messages: Arc::new(if still { vec![stored("u1"), stored("m1")] } else { Vec::new() }),
            state: None,
            kept: BTreeMap::new(),
            name: "wipe it".to_owned(),
            created_ms: NOW,
            updated_ms: NOW + 3,
        };
        assert_eq!(thread, expected);
    }
}

#[test]
fn a_run_that_answers_nothing_leaves_the_last_answer_as_it_was() {
    let world = World::new(REJECT);
    world.asked(&[ask("c1")]);
    leave(world.resumed("r2", &[approve("i-c1")]), &success(), &["u1"]);
    let before = world.thread().unwrap();
    leave(world.run("a", &input("r3", &said("u2"), &[])), &success(), &["u2"]);
    let after = world.thread().unwrap();
    assert_eq!((after.last_answer, after.answered), (before.last_answer, before.answered));
}

#[test]
fn interrupts_are_parked_with_what_the_agent_handed_over_and_with_their_history() {
    let world = World::new(REJECT);
    let mut end = interrupted(&[ask("c1"), ask("c2")]);
    end.parked = Some(Arc::new(json!({"step": 1})));
    let ticket = world.run("a", &input("r1", &said("u1"), &[]));
    let messages = vec![
        stored("u1"),
        Stored::unseen(message(json!({
            "id": "m1", "role": "assistant", "content": "may I?",
        }))),
    ];
    let state = Some(Arc::new(json!({"x": 1})));
    let ended = Ended {
        end: &end,
        messages: Arc::new(messages.clone()),
        state: state.clone(),
        decisions: &[],
        settled: &[],
    };
    now(ticket.end(&ended)).unwrap();
    let thread = world.thread().unwrap();
    let handed_over = Some(Arc::new(json!({"step": 1})));
    let expected = Parked { state: handed_over, ..parked(&[ask("c1"), ask("c2")], &[]) };
    assert_eq!(thread.parked, Some(expected));
    assert_eq!((&*thread.messages, &thread.state), (&messages, &state));
    assert_eq!(thread.outcome, Some(interrupts(&[ask("c1"), ask("c2")])));
    assert_eq!((thread.answered.len(), thread.last_answer), (0, None));
}

#[test]
fn a_run_that_failed_before_anything_leaves_everything_open() {
    let world = World::new(REJECT);
    world.asked(&[ask("c1"), ask("c2")]);
    let entries = [approve("i-c1"), approve("i-c2")];
    let decided = decisions(&entries, &[ask("c1"), ask("c2")]);
    let ticket = world.resumed("r2", &entries);
    leave_with(ticket, &failed(), vec![stored("u1"), stored("m1")], &decided);
    let thread = world.thread().unwrap();
    assert_eq!(thread.parked, Some(parked(&[ask("c1"), ask("c2")], &[])));
    assert_eq!(*thread.messages, [stored("u1"), stored("m1")]);
    assert_eq!((thread.answered.len(), thread.last_answer), (0, None));
    // What was told last is told still.
    assert_eq!(thread.outcome, Some(interrupts(&[ask("c1"), ask("c2")])));
}

#[test]
fn what_an_agent_parked_is_still_there_after_a_run_that_failed() {
    let world = World::new(REJECT);
    let mut end = interrupted(&[ask("c1")]);
    end.parked = Some(Arc::new(json!({"step": 1})));
    leave(world.run("a", &input("r1", &said("u1"), &[])), &end, &["u1"]);
    let before = world.parked();
    let mut end = failed();
    end.parked = Some(Arc::new(json!({"step": 2})));
    leave(world.resumed("r2", &[approve("i-c1")]), &end, &["u1"]);
    assert_eq!(world.parked(), before);
}

#[test]
fn a_fresh_run_that_failed_leaves_nothing_open() {
    let world = World::new(REJECT);
    let mut end = failed();
    // Asks of a run that failed were never raised.
    end.open = vec![ask("c1")];
    leave(world.run("a", &input("r1", &said("u1"), &[])), &end, &["u1"]);
    assert_eq!(world.thread(), None);
}

#[test]
fn deferred_asks_are_raised_by_the_next_run_of_whatever_agent_and_belong_to_who_asked() {
    let world = World::new(REJECT);
    let mut end = success();
    end.deferred = vec![ask("c1")];
    end.parked = Some(Arc::new(json!({"step": 1})));
    leave(world.run("a", &input("r1", &said("u1"), &[])), &end, &["u1"]);
    let raised = Parked { state: Some(Arc::new(json!({"step": 1}))), ..parked(&[ask("c1")], &[]) };
    let deferred = Parked { raised: false, ..raised.clone() };
    assert_eq!(world.parked(), Some(deferred.clone()));

    // Given up or failed it is to be raised still.
    drop(world.run("b", &input("r2", &said("u2"), &[])));
    assert_eq!(world.parked(), Some(deferred.clone()));
    leave(world.run("b", &input("r2", &said("u2"), &[])), &failed(), &["u1"]);
    assert_eq!(world.parked(), Some(deferred.clone()));

    // The client cannot know the interrupt yet, but an entry for it is none for nothing.
    let ticket = world.run("b", &input("r3", &said("u2"), &[approve("i-c1")]));
    assert_eq!((ticket.claimed(), ticket.to_raise()), (None, Some(&deferred)));
    assert_eq!(ticket.begun().entries, []);
    leave(ticket, &interrupted(&[ask("c1")]), &["u1", "u2"]);
    let thread = world.thread().unwrap();
    assert_eq!(thread.parked, Some(raised));
    assert_eq!((thread.answered.len(), thread.last_answer), (0, None));
    assert_eq!(thread.outcome, Some(interrupts(&[ask("c1")])));
    drop(world.resumed("r4", &[approve("i-c1")]));
}

#[test]
fn unanswered_interrupts_are_not_given_up_before_they_were_raised() {
    let world = World::new(CANCEL);
    let mut end = success();
    end.deferred = vec![ask("c1")];
    leave(world.run("a", &input("r1", &said("u1"), &[])), &end, &["u1"]);
    let ticket = world.run("a", &input("r2", &said("u2"), &[]));
    assert_eq!(ticket.to_raise(), Some(&Parked { raised: false, ..parked(&[ask("c1")], &[]) }));
}

#[test]
fn a_run_that_is_given_up_opens_again_what_it_claimed() {
    for policy in [REJECT, MEMORY] {
        let world = World::new(policy);
        world.asked(&[ask("c1"), ask("c2")]);
        let before = world.thread().unwrap();
        world.at(4);
        drop(world.resumed("r2", &[approve("i-c1"), approve("i-c2")]));
        assert_eq!(world.thread(), Some(Thread { updated_ms: NOW + 4, ..before }));
    }
}

#[test]
fn a_fresh_run_that_is_given_up_leaves_what_was_remembered() {
    let world = World::new(REJECT);
    drop(world.run("a", &input("r1", &said("u1"), &[])));
    assert_eq!(world.thread(), None);
    let world = World::new(MEMORY);
    leave(world.run("a", &input("r1", &said("u1"), &[])), &success(), &["u1"]);
    drop(world.run("a", &input("r2", &said("u2"), &[])));
    let thread = world.thread().unwrap();
    assert_eq!((&*thread.messages, thread.active), (&vec![stored("u1")], None));
}

#[test]
fn history_and_state_stay_while_something_is_parked_and_with_memory_beyond_it() {
    let state = || Some(Arc::new(json!({"x": 1})));
    for (policy, kept) in [(REJECT, false), (MEMORY, true)] {
        let world = World::new(policy);
        let ticket = world.run("a", &input("r1", &said("u1"), &[]));
        let end = interrupted(&[ask("c1")]);
        let messages = vec![stored("u1")];
        now(ticket.end(&Ended {
            end: &end,
            messages: Arc::new(messages),
            state: state(),
            decisions: &[],
            settled: &[],
        }))
        .unwrap();
        let thread = world.thread().unwrap();
        assert_eq!((&*thread.messages, thread.state), (&vec![stored("u1")], state()));

        let ticket = world.resumed("r2", &[approve("i-c1")]);
        let messages = vec![stored("u1"), stored("m1")];
        let ended = Ended {
            end: &success(),
            messages: Arc::new(messages),
            state: state(),
            decisions: &[],
            settled: &[],
        };
        now(ticket.end(&ended)).unwrap();
        let thread = world.thread().unwrap();
        let expected = if kept { vec![stored("u1"), stored("m1")] } else { Vec::new() };
        assert_eq!((&*thread.messages, thread.state), (&expected, state().filter(|_| kept)));

        // A run that fails leaves a history too.
        let ticket = world.run("a", &input("r3", &said("u3"), &[]));
        let messages = vec![stored("u3")];
        now(ticket.end(&Ended {
            end: &failed(),
            messages: Arc::new(messages),
            state: None,
            decisions: &[],
            settled: &[],
        }))
        .unwrap();
        let expected = if kept { vec![stored("u3")] } else { Vec::new() };
        assert_eq!(*world.thread().unwrap().messages, expected);
    }
}

#[test]
fn what_ends_on_a_thread_that_was_forgotten_changes_nothing() {
    let world = World::new(MEMORY);
    let ticket = world.run("a", &input("r1", &said("u1"), &[]));
    let settler = ticket.settler();
    let forgotten =
        now(world.ledger.store().update(&key(), &mut |_, _| crate::store::Next::Remove));
    assert_eq!(forgotten, Ok(()));
    assert!(now(settler.settle(&[(done("c1"), Some(result("c1")))])).is_err());
    leave(ticket, &interrupted(&[ask("c1")]), &["u1"]);
    assert_eq!(world.thread(), None);
}
