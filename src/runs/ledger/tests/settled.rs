//! Calls that have their result although the run that was told to execute them did not end well:
//! never executed again, and never asked again.

use super::*;

fn both() -> [ResumeEntry; 2] {
    [approve("i-c1"), approve("i-c2")]
}

fn open() -> [OpenInterrupt; 2] {
    [ask("c1"), ask("c2")]
}

/// `a` asked for two calls, both were approved, and the run failed after the result of `c1`.
fn half_finished(policy: Policy) -> World {
    let world = World::new(policy);
    world.asked(&open());
    let ticket = world.resumed("r2", &both());
    let messages = vec![stored("u1"), Stored::seen(result("c1"))];
    leave_with(ticket, &failed(), messages, &decisions(&both(), &open()));
    world
}

#[test]
fn a_run_that_failed_after_a_result_leaves_open_only_what_has_none() {
    let world = half_finished(REJECT);
    let thread = world.thread().unwrap();
    assert_eq!(thread.parked, Some(parked(&[ask("c2")], &[done("c1")])));
    assert_eq!(*thread.messages, [stored("u1"), Stored::seen(result("c1"))]);
    assert_eq!((thread.answered.len(), thread.last_answer), (0, None));
}

#[test]
fn a_denied_call_and_an_external_one_are_settled_by_their_results_too() {
    let world = World::new(REJECT);
    let open = [ask("c1"), OpenInterrupt { kind: InterruptKind::ExternalExecution, ..ask("c2") }];
    world.asked(&open);
    let entries = [cancel("i-c1"), approve("i-c2")];
    let decided = decisions(&entries, &open);
    let messages = vec![stored("u1"), Stored::seen(result("c1")), Stored::seen(result("c2"))];
    leave_with(world.resumed("r2", &entries), &failed(), messages, &decided);
    let settled = decided.into_iter().map(|one| Decision { settled: true, ..one });
    assert_eq!(world.parked(), Some(parked(&[], &settled.collect::<Vec<_>>())));
}

#[test]
fn a_question_has_no_result_and_stays_open() {
    let question = OpenInterrupt { call: None, kind: InterruptKind::InputRequired, ..ask("q") };
    let world = World::new(REJECT);
    world.asked(std::slice::from_ref(&question));
    let entries = [approve("i-q")];
    let decided = decisions(&entries, std::slice::from_ref(&question));
    leave_with(world.resumed("r2", &entries), &failed(), vec![Stored::seen(result("q"))], &decided);
    assert_eq!(world.parked(), Some(parked(&[question], &[])));
}

#[test]
fn a_retry_needs_the_answers_that_are_open_and_may_have_the_others() {
    for entries in [vec![approve("i-c2")], both().to_vec(), vec![approve("i-c2"), cancel("i-c1")]] {
        let world = half_finished(REJECT);
        let ticket = world.resumed("r3", &entries);
        let begun = ticket.begun();
        assert_eq!(begun.parked, Some(parked(&[ask("c2")], &[done("c1")])));
        assert_eq!(begun.entries, [approve("i-c2")]);
        assert_eq!((&*begun.already_answered, &*begun.never_raised), (&[][..], &[][..]));
        leave(ticket, &success(), &["u1"]);
        let thread = world.thread().unwrap();
        assert_eq!(thread.answered, ids(&["i-c2", "i-c1"]));
        assert_eq!(thread.last_answer.unwrap().calls, ["c1".into(), "c2".into()].into());
    }
    let world = half_finished(REJECT);
    let missing = Refusal::Uncovered {
        missing: ids(&["i-c2"]),
        duplicate: Vec::new(),
        open: vec![ask("c2")],
    };
    assert_eq!(world.refused("a", &input("r3", &said("u1"), &[approve("i-c1")])), missing);
}

#[test]
fn with_everything_settled_a_run_goes_on_without_a_resume_and_any_agent_may_have_the_thread() {
    let world = half_finished(REJECT);
    let entries = [approve("i-c2")];
    let ticket = world.resumed("r3", &entries);
    let messages = vec![Stored::seen(result("c1")), Stored::seen(result("c2"))];
    leave_with(ticket, &failed(), messages, &decisions(&entries, &[ask("c2")]));
    let settled = parked(&[], &[done("c1"), done("c2")]);
    assert_eq!(world.parked(), Some(settled.clone()));
    for resume in [vec![], both().to_vec()] {
        let ticket = world.run("a", &input("r4", &said("u2"), &resume));
        assert_eq!((ticket.claimed(), ticket.begun().entries.len()), (Some(&settled), 0));
        drop(ticket);
    }
    let ticket = world.run("b", &input("r5", &said("u2"), &[]));
    assert_eq!((ticket.claimed(), ticket.to_raise()), (None, None));
}

#[test]
fn a_result_is_stored_while_the_run_lasts() {
    let world = World::new(REJECT);
    world.asked(&open());
    let ticket = world.resumed("r2", &both());
    now(ticket.settler().settle(&[(done("c1"), Some(result("c1")))])).unwrap();
    let thread = world.thread().unwrap();
    assert_eq!(*thread.messages, [stored("u1"), Stored::seen(result("c1"))]);
    let claim = thread.active.unwrap().claim.unwrap();
    assert_eq!(claim.parked, parked(&[ask("c2")], &[done("c1")]));
    // Once is enough.
    let before = world.thread();
    now(ticket.settler().settle(&[(done("c1"), Some(result("c1")))])).unwrap();
    assert_eq!(world.thread(), before);
    // Given up now, the run leaves the same as if it had failed.
    drop(ticket);
    let thread = world.thread().unwrap();
    assert_eq!(thread.parked, Some(parked(&[ask("c2")], &[done("c1")])));
    assert_eq!(*thread.messages, [stored("u1"), Stored::seen(result("c1"))]);
}

#[test]
fn a_result_stored_before_the_end_is_settled_once_at_the_end() {
    let world = World::new(REJECT);
    world.asked(&open());
    let ticket = world.resumed("r2", &both());
    now(ticket.settler().settle(&[(done("c1"), Some(result("c1")))])).unwrap();
    let messages = vec![stored("u1"), Stored::seen(result("c1")), Stored::seen(result("c2"))];
    leave_with(ticket, &failed(), messages, &decisions(&both(), &open()));
    assert_eq!(world.parked(), Some(parked(&[], &[done("c1"), done("c2")])));
}

#[test]
fn results_of_calls_that_the_run_did_not_claim_are_not_stored() {
    let world = World::new(MEMORY);
    let fresh = world.run("a", &input("r1", &said("u1"), &[]));
    let before = world.thread();
    now(fresh.settler().settle(&[(done("c1"), Some(result("c1")))])).unwrap();
    assert_eq!(world.thread(), before);
    leave(fresh, &interrupted(&open()), &["u1"]);
    let claiming = world.resumed("r2", &both());
    let before = world.thread();
    now(claiming.settler().settle(&[(done("c9"), Some(result("c9")))])).unwrap();
    assert_eq!(world.thread(), before);
}
