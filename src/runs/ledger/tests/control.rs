//! Asking a run to stop, giving up what is open, forgetting a thread.

use agui_protocol::ToolCallId;
use futures_util::future;

use super::{
    super::{Cancelled, Deleted},
    *,
};

fn cancelled_thread(world: &World) -> Cancelled {
    now(world.ledger.cancel(&key())).unwrap()
}

#[test]
fn a_thread_that_nobody_knows_or_on_which_nothing_waits_has_nothing_to_cancel() {
    let world = World::new(MEMORY);
    assert_eq!(cancelled_thread(&world), Cancelled::Unknown);
    leave(world.run("a", &input("r1", &said("u1"), &[])), &success(), &["u1"]);
    let before = world.thread();
    world.at(1);
    assert_eq!(cancelled_thread(&world), Cancelled::Nothing);
    assert_eq!(world.thread(), before);
}

#[test]
fn a_run_is_told_to_stop_and_keeps_its_thread_until_it_has() {
    let world = World::new(REJECT);
    world.asked(&[ask("c1")]);
    let ticket = world.resumed("r2", &[approve("i-c1")]);
    let told = ticket.cancelled();
    let mut told = std::pin::pin!(told);
    assert_eq!(told.as_mut().now_or_never(), None);
    for _ in 0..2 {
        assert_eq!(cancelled_thread(&world), Cancelled::Run);
    }
    assert_eq!(told.now_or_never(), Some(()));
    assert_eq!(ticket.cancelled().now_or_never(), Some(()));
    assert_eq!(world.refused("a", &input("r3", &said("u1"), &[])), Refusal::Busy);
    leave(ticket, &cancelled(), &["u1"]);
    assert_eq!(world.thread().unwrap().answered, ids(&["i-c1"]));
    // Its successor is not told.
    let next = world.run("a", &input("r3", &said("u2"), &[]));
    assert_eq!(next.cancelled().now_or_never(), None);
}

#[test]
fn open_interrupts_are_given_up_and_nobody_can_answer_them_any_more() {
    for policy in [REJECT, MEMORY] {
        let world = World::new(policy);
        world.asked(&[ask("c1"), ask("c2")]);
        world.at(6);
        assert_eq!(cancelled_thread(&world), Cancelled::Interrupts);
        let thread = world.thread().unwrap();
        assert_eq!((thread.parked, thread.answered), (None, ids(&["i-c1", "i-c2"]).into()));
        assert_eq!((thread.outcome, thread.updated_ms), (Some(RunOutcome::Cancelled), NOW + 6));
        let history = if policy.keep_history { vec![stored("u1")] } else { Vec::new() };
        assert_eq!(*thread.messages, history);
        assert_eq!(cancelled_thread(&world), Cancelled::Nothing);
        let late = input("r2", &said("u2"), &[approve("i-c1"), approve("i-c2")]);
        let ticket = world.run("a", &late);
        assert_eq!(ticket.begun().already_answered, ids(&["i-c1", "i-c2"]));
        assert_eq!((ticket.claimed(), ticket.begun().entries.len()), (None, 0));
    }
}

#[test]
fn who_answers_what_was_given_up_is_told_so_without_a_run() {
    let world = World::new(REJECT);
    world.asked(&[ask("c1"), ask("c2")]);
    cancelled_thread(&world);
    let late = input("r2", &said("u1"), &[approve("i-c1"), approve("i-c2")]);
    let repeat = world.repeated("a", &late);
    assert_eq!(repeat.answered, ids(&["i-c1", "i-c2"]));
    assert_eq!(repeat.thread.outcome, Some(RunOutcome::Cancelled));
    let last = world.thread().unwrap().last_answer.unwrap();
    assert_eq!(last.calls, ["c1", "c2"].map(ToolCallId::from).into());
}

#[test]
fn asks_that_were_not_raised_yet_and_settled_calls_are_given_up_too() {
    let world = World::new(REJECT);
    let mut end = success();
    end.deferred = vec![ask("c1")];
    leave(world.run("a", &input("r1", &said("u1"), &[])), &end, &["u1"]);
    assert_eq!(cancelled_thread(&world), Cancelled::Interrupts);
    assert_eq!(world.parked(), None);

    let world = World::new(REJECT);
    world.asked(&[ask("c1")]);
    let entries = [approve("i-c1")];
    let messages = vec![Stored::seen(result("c1"))];
    let ticket = world.resumed("r2", &entries);
    leave_with(ticket, &failed(), messages, &decisions(&entries, &[ask("c1")]));
    assert_eq!(world.parked(), Some(parked(&[], &[done("c1")])));
    assert_eq!(cancelled_thread(&world), Cancelled::Interrupts);
    let thread = world.thread().unwrap();
    assert_eq!((thread.parked, thread.answered), (None, ids(&["i-c1"]).into()));
}

#[tokio::test(start_paused = true)]
async fn a_thread_at_rest_is_forgotten_with_all_that_waits_on_it() {
    let world = World::new(MEMORY);
    assert_eq!(world.ledger.delete(&key()).await, Ok(Deleted::Unknown));
    leave(world.run("a", &input("r1", &said("u1"), &[])), &success(), &["u1"]);
    assert_eq!(world.ledger.delete(&key()).await, Ok(Deleted::Gone));
    assert_eq!(world.thread(), None);
    world.asked(&[ask("c1")]);
    assert_eq!(world.ledger.delete(&key()).await, Ok(Deleted::Gone));
    assert_eq!(world.thread(), None);
    // The late answer answers nothing.
    let ticket = world.resumed("r2", &[approve("i-c1")]);
    assert_eq!(ticket.begun().never_raised, ids(&["i-c1"]));
    assert_eq!(ticket.claimed(), None);
}

#[tokio::test(start_paused = true)]
async fn a_thread_with_a_run_is_forgotten_when_that_has_ended() {
    for policy in [REJECT, MEMORY] {
        let world = World::new(policy);
        let ticket = world.run("a", &input("r1", &said("u1"), &[]));
        let key = key();
        let deleting = world.ledger.delete(&key);
        let ending = async {
            ticket.cancelled().await;
            leave(ticket, &cancelled(), &["u1"]);
        };
        let both = future::join(deleting, ending);
        let both = tokio::time::timeout(Duration::from_secs(60), both).await;
        assert_eq!(both, Ok((Ok(Deleted::Gone), ())));
        assert_eq!(world.thread(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_does_not_stop_keeps_its_thread() {
    let world = World::new(MEMORY);
    world.asked(&[ask("c1")]);
    let ticket = world.resumed("r2", &[approve("i-c1")]);
    let began = tokio::time::Instant::now();
    assert_eq!(world.ledger.delete(&key()).await, Ok(Deleted::StillRunning));
    assert_eq!(began.elapsed(), Duration::from_secs(10));
    leave(ticket, &failed(), &["u1"]);
    assert_eq!(world.parked(), Some(parked(&[ask("c1")], &[])));
}
