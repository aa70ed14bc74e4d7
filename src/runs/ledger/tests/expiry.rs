//! Interrupts whose time is over.

use super::*;

/// `a` asked for two calls; `c1` expires after a second, `c2` never.
fn world() -> World {
    let world = World::new(REJECT);
    world.asked(&open());
    world
}

fn open() -> [OpenInterrupt; 2] {
    [expiring("c1", 1000), ask("c2")]
}

#[test]
fn an_expired_interrupt_is_not_resolved_from_its_time_on() {
    let world = world();
    let entries = [approve("i-c1"), approve("i-c2")];
    world.at(1000);
    let before = world.thread();
    let refused = world.refused("a", &input("r2", &said("u1"), &entries));
    assert_eq!(refused, Refusal::Expired { expired: ids(&["i-c1"]), open: open().to_vec() });
    assert_eq!(world.thread(), before);
    world.at(999);
    assert_eq!(world.resumed("r2", &entries).begun().entries, entries);
}

#[test]
fn an_expired_interrupt_may_be_cancelled() {
    let world = world();
    world.at(1000);
    let entries = [cancel("i-c1"), approve("i-c2")];
    assert_eq!(world.resumed("r2", &entries).begun().entries, entries);
}

#[test]
fn an_expired_interrupt_without_an_entry_is_cancelled() {
    let world = world();
    world.at(1000);
    let ticket = world.resumed("r2", &[approve("i-c2")]);
    assert_eq!(ticket.begun().entries, [cancel("i-c1"), approve("i-c2")]);
    leave(ticket, &success(), &["u1"]);
    assert_eq!(world.thread().unwrap().answered, ids(&["i-c1", "i-c2"]));
}

#[test]
fn a_run_without_resume_goes_on_when_everything_has_expired() {
    let world = World::new(REJECT);
    world.asked(&[expiring("c1", 1000), expiring("c2", 2000)]);
    world.at(1999);
    let missing = Refusal::Uncovered {
        missing: ids(&["i-c2"]),
        duplicate: Vec::new(),
        open: vec![expiring("c1", 1000), expiring("c2", 2000)],
    };
    assert_eq!(world.refused("a", &input("r2", &said("u2"), &[])), missing);
    world.at(2000);
    let ticket = world.run("a", &input("r2", &said("u2"), &[]));
    assert_eq!(ticket.begun().entries, [cancel("i-c1"), cancel("i-c2")]);
}

#[test]
fn what_is_missing_or_doubled_is_said_before_what_has_expired() {
    let world = world();
    world.at(1000);
    let missing = world.refused("a", &input("r2", &said("u1"), &[approve("i-c1")]));
    let expected = |missing: &[&str], duplicate: &[&str]| Refusal::Uncovered {
        missing: ids(missing),
        duplicate: ids(duplicate),
        open: open().to_vec(),
    };
    assert_eq!(missing, expected(&["i-c2"], &[]));
    // Two entries are two, whatever the time.
    let entries = [approve("i-c1"), cancel("i-c1"), approve("i-c2")];
    let doubled = world.refused("a", &input("r2", &said("u1"), &entries));
    assert_eq!(doubled, expected(&[], &["i-c1"]));
}

#[test]
fn another_agent_may_have_a_thread_on_which_everything_has_expired() {
    let world = World::new(REJECT);
    world.asked(&[expiring("c1", 1000)]);
    let other = Refusal::OtherAgent { agent: agent("a"), open: vec![expiring("c1", 1000)] };
    world.at(999);
    assert_eq!(world.refused("b", &input("r2", &said("u2"), &[])), other);
    world.at(1000);
    assert_eq!(world.refused("b", &input("r2", &said("u2"), &[cancel("i-c1")])), other);
    let ticket = world.run("b", &input("r2", &said("u2"), &[]));
    assert_eq!((ticket.claimed(), ticket.begun().entries.len()), (None, 0));
}
