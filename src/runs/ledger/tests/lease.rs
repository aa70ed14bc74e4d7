//! Runs that get lost: what their leases leave to others, and what they do when they come back.

use super::*;

fn lease_ends(world: &World) -> Option<i64> {
    world.thread().unwrap().active.unwrap().lease_ends_ms
}

#[test]
fn a_run_has_its_thread_for_a_lease_and_for_another_one_when_it_renews() {
    let world = World::leased(REJECT);
    let ticket = world.run("a", &input("r1", &said("u1"), &[]));
    assert_eq!(ticket.renew_every(), Some(Duration::from_millis(LEASE as u64 / 2)));
    assert_eq!(lease_ends(&world), Some(NOW + LEASE));
    world.at(LEASE - 1);
    now(ticket.renew()).unwrap();
    assert_eq!(lease_ends(&world), Some(NOW + LEASE - 1 + LEASE));
    world.at(2 * LEASE - 2);
    assert_eq!(world.refused("a", &input("r2", &said("u1"), &[])), Refusal::Busy);
    world.at(2 * LEASE - 1);
    drop(world.run("a", &input("r2", &said("u1"), &[])));
}

#[test]
fn without_leases_a_run_has_its_thread_until_it_ends() {
    let world = World::new(REJECT);
    let ticket = world.run("a", &input("r1", &said("u1"), &[]));
    now(ticket.renew()).unwrap();
    assert_eq!(lease_ends(&world), None);
    world.at(i64::MAX / 2);
    assert_eq!(world.refused("a", &input("r2", &said("u1"), &[])), Refusal::Busy);
}

#[test]
fn a_lost_run_gives_back_what_it_claimed_but_for_what_it_settled() {
    let world = World::leased(REJECT);
    let open = [ask("c1"), ask("c2")];
    world.asked(&open);
    let entries = [approve("i-c1"), approve("i-c2")];
    let lost = world.resumed("r2", &entries);
    now(lost.settler().settle(&[(done("c1"), Some(result("c1")))])).unwrap();
    world.at(LEASE);
    let missing = Refusal::Uncovered {
        missing: ids(&["i-c2"]),
        duplicate: Vec::new(),
        open: vec![ask("c2")],
    };
    assert_eq!(world.refused("a", &input("r3", &said("u2"), &[])), missing);
    let ticket = world.resumed("r3", &entries);
    assert_eq!(ticket.claimed(), Some(&parked(&[ask("c2")], &[done("c1")])));
    assert_eq!(ticket.begun().entries, [approve("i-c2")]);
    assert_eq!(*ticket.begun().messages, [stored("u1"), Stored::seen(result("c1"))]);
    // What comes late from the lost run changes nothing.
    let before = world.thread();
    world.at(LEASE + 1);
    let gone = Err(StoreError("the thread is another run's by now".to_owned()));
    assert_eq!(now(lost.renew()), gone);
    assert_eq!(now(lost.settler().settle(&[(done("c2"), Some(result("c2")))])), gone);
    let (end, messages) = (interrupted(&[ask("c9")]), Arc::default());
    assert_eq!(
        now(lost.end(&Ended { end: &end, messages, state: None, decisions: &[], settled: &[] })),
        gone
    );
    assert_eq!(world.thread(), before);
    leave(ticket, &success(), &["u1"]);
    assert_eq!(world.thread().unwrap().answered, ids(&["i-c2", "i-c1"]));
}

#[test]
fn a_lost_run_that_is_given_up_late_does_not_free_the_thread_of_its_successor() {
    let world = World::leased(REJECT);
    world.asked(&[ask("c1")]);
    let lost = world.resumed("r2", &[approve("i-c1")]);
    world.at(LEASE);
    let _successor = world.resumed("r2", &[approve("i-c1")]);
    let before = world.thread();
    drop(lost);
    assert_eq!(world.thread(), before);
    assert_eq!(world.refused("a", &input("r3", &said("u1"), &[])), Refusal::Busy);
}

#[test]
fn a_run_that_comes_back_before_anybody_took_its_thread_ends_as_ever() {
    let world = World::leased(REJECT);
    world.asked(&[ask("c1")]);
    let late = world.resumed("r2", &[approve("i-c1")]);
    world.at(LEASE);
    leave(late, &success(), &["u1"]);
    let thread = world.thread().unwrap();
    assert_eq!((thread.parked, thread.active), (None, None));
    assert_eq!(thread.answered, ids(&["i-c1"]));
}

#[test]
fn the_interrupts_of_a_lost_run_can_be_given_up() {
    let world = World::leased(REJECT);
    world.asked(&[ask("c1")]);
    let lost = world.resumed("r2", &[approve("i-c1")]);
    assert_eq!(now(world.ledger.cancel(&key())), Ok(super::super::Cancelled::Run));
    world.at(LEASE);
    assert_eq!(now(world.ledger.cancel(&key())), Ok(super::super::Cancelled::Interrupts));
    let thread = world.thread();
    assert_eq!(thread.as_ref().unwrap().answered, ids(&["i-c1"]));
    assert_eq!(thread.as_ref().unwrap().active, None);
    leave(lost, &success(), &["u1"]);
    assert_eq!(world.thread(), thread);
}

#[test]
fn a_thread_whose_run_was_lost_can_be_deleted_at_once() {
    let world = World::leased(REJECT);
    let lost = world.run("a", &input("r1", &said("u1"), &[]));
    world.at(LEASE);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let deleted = runtime.block_on(world.ledger.delete(&key()));
    assert_eq!(deleted, Ok(super::super::Deleted::Gone));
    leave(lost, &interrupted(&[ask("c1")]), &["u1"]);
    assert_eq!(world.thread(), None);
}
