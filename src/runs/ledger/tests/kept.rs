//! What agents keep on a thread.

use super::*;

fn keeping(end: RunEnd, state: Value) -> RunEnd {
    RunEnd { kept: Some(Arc::new(state)), ..end }
}

/// What the agent's next run finds; it ends without a word.
fn found(world: &World, whose: &str) -> Option<Value> {
    let ticket = world.run(whose, &input("r9", &said("u9"), &[]));
    let kept = ticket.begun().kept.as_deref().cloned();
    leave(ticket, &success(), &[]);
    kept
}

fn run(world: &World, whose: &str, end: &RunEnd) {
    leave(world.run(whose, &input("r1", &said("u1"), &[])), end, &["u1"]);
}

#[test]
fn what_an_agent_kept_is_there_in_all_of_its_later_runs_with_and_without_memory() {
    for policy in [REJECT, MEMORY] {
        let world = World::new(policy);
        assert_eq!(found(&world, "a"), None);
        run(&world, "a", &keeping(success(), json!({"rules": [1]})));
        for _ in 0..2 {
            assert_eq!(found(&world, "a"), Some(json!({"rules": [1]})));
        }
        run(&world, "a", &keeping(cancelled(), json!({"rules": [2]})));
        assert_eq!(found(&world, "a"), Some(json!({"rules": [2]})));
    }
}

#[test]
fn agents_keep_things_apart() {
    let world = World::new(REJECT);
    run(&world, "a", &keeping(success(), json!("a")));
    assert_eq!(found(&world, "b"), None);
    run(&world, "b", &keeping(success(), json!("b")));
    assert_eq!((found(&world, "a"), found(&world, "b")), (Some(json!("a")), Some(json!("b"))));
}

#[test]
fn null_keeps_nothing_any_more_and_a_record_with_nothing_else_is_forgotten() {
    let world = World::new(REJECT);
    run(&world, "a", &keeping(success(), json!("a")));
    run(&world, "b", &keeping(success(), json!("b")));
    run(&world, "a", &keeping(success(), json!(null)));
    assert_eq!((found(&world, "a"), found(&world, "b")), (None, Some(json!("b"))));
    run(&world, "b", &keeping(success(), json!(null)));
    assert_eq!(world.thread(), None);
}

#[test]
fn a_run_that_did_not_finish_changes_nothing_of_what_is_kept() {
    let world = World::new(REJECT);
    run(&world, "a", &keeping(success(), json!("first")));
    run(&world, "a", &keeping(failed(), json!("second")));
    assert_eq!(found(&world, "a"), Some(json!("first")));
    now(world.run("a", &input("r2", &said("u1"), &[])).give_up());
    drop(world.run("a", &input("r3", &said("u1"), &[])));
    assert_eq!(found(&world, "a"), Some(json!("first")));
}

#[test]
fn what_is_kept_along_with_an_answer_counts_when_the_answer_does() {
    let world = World::new(REJECT);
    world.asked(&[ask("c1")]);
    let end = keeping(failed(), json!("rule"));
    leave(world.resumed("r2", &[approve("i-c1")]), &end, &["u1"]);
    let ticket = world.resumed("r3", &[approve("i-c1")]);
    assert_eq!(ticket.begun().kept, None);
    leave(ticket, &keeping(success(), json!("rule")), &["u1"]);
    assert_eq!(found(&world, "a"), Some(json!("rule")));
}

#[test]
fn a_run_that_only_raises_interrupts_leaves_what_is_kept() {
    let world = World::new(REJECT);
    let mut end = keeping(success(), json!("a"));
    end.deferred = vec![ask("c1")];
    run(&world, "a", &end);
    let ticket = world.run("b", &input("r2", &said("u2"), &[]));
    assert_eq!(ticket.begun().kept, None);
    leave(ticket, &interrupted(&[ask("c1")]), &["u1"]);
    leave(world.resumed("r3", &[approve("i-c1")]), &success(), &["u1"]);
    assert_eq!(found(&world, "a"), Some(json!("a")));
}

#[test]
fn interrupts_that_are_given_up_leave_what_is_kept() {
    let world = World::new(CANCEL);
    run(&world, "a", &keeping(interrupted(&[ask("c1")]), json!("a")));
    run(&world, "b", &success());
    assert_eq!(found(&world, "a"), Some(json!("a")));
}
