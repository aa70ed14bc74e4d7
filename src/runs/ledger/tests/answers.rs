//! Which entries a resume must have, and what becomes of those that answer nothing.

use agui_adapter::resume::InterruptKind;

use super::*;

/// `a` asked for both calls.
fn two_asked(policy: Policy) -> World {
    let world = World::new(policy);
    world.asked(&[ask("c1"), ask("c2")]);
    world
}

fn uncovered(missing: &[&str], duplicate: &[&str], open: &[OpenInterrupt]) -> Refusal {
    Refusal::Uncovered { missing: ids(missing), duplicate: ids(duplicate), open: open.to_vec() }
}

#[test]
fn a_resume_answers_every_open_interrupt_exactly_once_or_the_thread_stays_as_it_is() {
    let world = two_asked(REJECT);
    let open = [ask("c1"), ask("c2")];
    let before = world.thread();
    let (one, two) = (approve("i-c1"), approve("i-c2"));
    let cases: [(&[ResumeEntry], &[&str], &[&str]); 6] = [
        (&[], &["i-c1", "i-c2"], &[]),
        (std::slice::from_ref(&one), &["i-c2"], &[]),
        (&[two.clone(), approve("ghost")], &["i-c1"], &[]),
        (&[one.clone(), two.clone(), one.clone()], &[], &["i-c1"]),
        (&[two.clone(), cancel("i-c2")], &["i-c1"], &["i-c2"]),
        (
            &[one.clone(), one.clone(), one.clone(), two.clone(), two.clone()],
            &[],
            &["i-c1", "i-c2"],
        ),
    ];
    world.at(1);
    for (entries, missing, duplicate) in cases {
        let refused = world.refused("a", &input("r2", &said("u2"), entries));
        assert_eq!(refused, uncovered(missing, duplicate, &open), "{entries:?}");
        assert_eq!(world.thread(), before, "{entries:?}");
    }
    let ticket = world.resumed("r3", &[two.clone(), one.clone()]);
    // The order is that of the asks.
    assert_eq!(ticket.begun().entries, [one, two]);
}

#[test]
fn entries_that_nobody_asked_for_are_named_once_and_do_not_answer() {
    let world = World::new(REJECT);
    let entries = [approve("ghost"), cancel("other"), approve("ghost")];
    let ticket = world.run("a", &input("r1", &said("u1"), &entries));
    assert_eq!(ticket.begun().never_raised, ids(&["ghost", "other"]));
    assert_eq!(ticket.begun().already_answered, []);
    assert_eq!(ticket.begun().entries, []);
    leave(ticket, &interrupted(&[ask("c1")]), &["u1"]);
    let ticket = world.resumed("r2", &[approve("ghost"), approve("i-c1")]);
    assert_eq!(ticket.begun().never_raised, ids(&["ghost"]));
    assert_eq!(ticket.begun().entries, [approve("i-c1")]);
}

/// `a` asked for `c1`, was answered, and its run ended so.
fn answered(end: &RunEnd) -> World {
    let world = World::new(REJECT);
    world.asked(&[ask("c1")]);
    leave(world.resumed("r2", &[approve("i-c1")]), end, &["u1"]);
    world
}

#[test]
fn an_answered_entry_beside_something_new_is_ignored_and_the_run_goes_on() {
    let user = |id: &str| json!({"id": id, "role": "user", "content": "go on"});
    let tool = |id: &str, call: &str| json!({"id": id, "role": "tool", "toolCallId": call, "content": "x"});
    let new = [
        json!([{"id": "u1", "role": "user", "content": "wipe it"}, user("u2")]),
        json!([user("u2")]),
        json!([tool("t1", "other")]),
    ];
    for messages in new {
        let world = answered(&success());
        let ticket = world.run("b", &input("r3", &messages, &[approve("i-c1"), approve("ghost")]));
        assert_eq!(ticket.begun().already_answered, ids(&["i-c1"]), "{messages}");
        assert_eq!(ticket.begun().never_raised, ids(&["ghost"]), "{messages}");
        assert_eq!((ticket.begun().entries.len(), ticket.claimed()), (0, None), "{messages}");
    }
    // An entry that nobody asked for makes a run of it as well.
    let world = answered(&success());
    let ticket = world.run("a", &input("r3", &said("u1"), &[approve("i-c1"), approve("ghost")]));
    assert_eq!(ticket.begun().already_answered, ids(&["i-c1"]));
}

#[test]
fn answered_entries_with_nothing_new_repeat_the_recorded_end_and_change_nothing() {
    let old = [
        json!([]),
        json!([
            {"id": "u1", "role": "user", "content": "wipe it"},
            {"id": "m9", "role": "assistant", "content": "done"},
            {"id": "s9", "role": "system", "content": "be brief"},
            {"id": "t9", "role": "tool", "toolCallId": "c1", "content": "approved"},
        ]),
    ];
    let ends = [(success(), succeeded()), (cancelled(), RunOutcome::Cancelled)];
    for (end, outcome) in ends {
        for messages in &old {
            let world = answered(&end);
            world.at(9);
            let before = world.thread();
            for entries in [vec![approve("i-c1")], vec![cancel("i-c1"), cancel("i-c1")]] {
                let repeat = world.repeated("a", &input("r3", messages, &entries));
                assert_eq!(repeat.thread.outcome.as_ref(), Some(&outcome));
                let thread = before.clone().unwrap();
                // Without memory the client gets what was kept for it.
                let kept = Arc::clone(&thread.last_answer.as_ref().unwrap().messages);
                let expected = Repeat {
                    thread: Thread { messages: kept, ..thread },
                    answered: ids(&["i-c1"]),
                };
                assert_eq!(repeat, expected, "{messages}");
                assert_eq!(world.thread(), before, "{messages}");
            }
        }
    }
}

#[test]
fn other_words_at_the_end_are_new_under_an_id_that_is_in_use() {
    let world = answered(&success());
    let words = json!([{"id": "u1", "role": "user", "content": "and now?"}]);
    let ticket = world.run("a", &input("r3", &words, &[approve("i-c1")]));
    assert_eq!(ticket.begun().already_answered, ids(&["i-c1"]));
}

#[test]
fn a_repeated_answer_tells_what_the_answering_run_asked_next() {
    let world = answered(&interrupted(&[ask("c2")]));
    let again = input("r3", &said("u1"), &[approve("i-c1")]);
    let repeat = world.repeated("a", &again);
    assert_eq!(repeat.thread.outcome, Some(interrupts(&[ask("c2")])));
    assert_eq!(repeat.thread.parked, Some(parked(&[ask("c2")], &[])));
    // With something new it is a run, which has to answer what is open.
    let more = input("r3", &said("u2"), &[approve("i-c1")]);
    assert_eq!(world.refused("a", &more), uncovered(&["i-c2"], &[], &[ask("c2")]));
    // Both answers at once: only what is open counts.
    let ticket = world.resumed("r4", &[approve("i-c1"), approve("i-c2")]);
    assert_eq!(ticket.begun().already_answered, ids(&["i-c1"]));
    assert_eq!(ticket.begun().entries, [approve("i-c2")]);
}

#[test]
fn the_end_that_is_repeated_is_the_one_of_the_last_run() {
    let world = answered(&success());
    leave(world.run("a", &input("r3", &said("u2"), &[])), &cancelled(), &["u2"]);
    let repeat = world.repeated("a", &input("r4", &said("u1"), &[approve("i-c1")]));
    assert_eq!(repeat.thread.outcome, Some(RunOutcome::Cancelled));
    // A failure is no end that can be told again.
    leave(world.run("a", &input("r5", &said("u3"), &[])), &failed(), &["u3"]);
    let repeat = world.repeated("a", &input("r6", &said("u1"), &[approve("i-c1")]));
    assert_eq!(repeat.thread.outcome, Some(RunOutcome::Cancelled));
}

#[test]
fn an_interrupt_that_is_raised_again_under_its_id_is_answered_and_not_repeated() {
    let world = answered(&interrupted(&[ask("c1")]));
    let ticket = world.resumed("r3", &[approve("i-c1")]);
    assert_eq!(ticket.begun().entries, [approve("i-c1")]);
    assert_eq!(ticket.begun().already_answered, []);
    leave(ticket, &success(), &["u1"]);
    world.repeated("a", &input("r4", &said("u1"), &[approve("i-c1")]));
}

#[test]
fn a_run_that_failed_has_answered_nothing() {
    let world = answered(&failed());
    let ticket = world.resumed("r3", &[approve("i-c1")]);
    assert_eq!(ticket.begun().entries, [approve("i-c1")]);
    assert_eq!(ticket.begun().already_answered, []);
}

#[test]
fn only_the_last_64_answered_interrupts_are_remembered() {
    let world = World::new(REJECT);
    for at in 0..66 {
        let call = format!("c{at}");
        world.asked(&[ask(&call)]);
        leave(world.resumed("r2", &[approve(&format!("i-{call}"))]), &success(), &["u1"]);
    }
    let remembered: Vec<String> = (2..66).map(|at| format!("i-c{at}")).collect();
    let answered = world.thread().unwrap().answered;
    assert_eq!(answered.iter().map(InterruptId::as_str).collect::<Vec<_>>(), remembered);
    let entries = [approve("i-c1"), approve("i-c2"), approve("i-c65")];
    let ticket = world.run("a", &input("r3", &said("u2"), &entries));
    assert_eq!(ticket.begun().never_raised, ids(&["i-c1"]));
    assert_eq!(ticket.begun().already_answered, ids(&["i-c2", "i-c65"]));
}

#[test]
fn unanswered_interrupts_are_cancelled_if_the_policy_says_so_and_there_is_no_resume() {
    let world = two_asked(CANCEL);
    let partial = input("r2", &said("u2"), &[approve("i-c1")]);
    let open = [ask("c1"), ask("c2")];
    assert_eq!(world.refused("a", &partial), uncovered(&["i-c2"], &[], &open));
    let unknown = input("r2", &said("u2"), &[approve("ghost")]);
    assert_eq!(world.refused("a", &unknown), uncovered(&["i-c1", "i-c2"], &[], &open));
    let ticket = world.run("a", &input("r3", &said("u2"), &[]));
    assert_eq!(ticket.begun().entries, [cancel("i-c1"), cancel("i-c2")]);
    assert_eq!(ticket.claimed(), Some(&parked(&open, &[])));
    leave(ticket, &success(), &["u1", "u2"]);
    assert_eq!(world.thread().unwrap().answered, ids(&["i-c1", "i-c2"]));
}

#[test]
fn a_resume_reaches_no_other_agent_than_the_one_that_asked() {
    let entries = [approve("i-c1"), approve("i-c2")];
    let other = Refusal::OtherAgent { agent: agent("a"), open: vec![ask("c1"), ask("c2")] };
    for policy in [REJECT, CANCEL] {
        let world = two_asked(policy);
        let before = world.thread();
        assert_eq!(world.refused("b", &input("r2", &said("u2"), &entries)), other);
        assert_eq!(world.thread(), before);
    }
    let world = two_asked(REJECT);
    assert_eq!(world.refused("b", &input("r2", &said("u2"), &[])), other);
}

#[test]
fn another_agent_may_have_the_thread_if_the_policy_gives_up_what_is_open() {
    let world = two_asked(CANCEL);
    let ticket = world.run("b", &input("r2", &said("u2"), &[]));
    assert_eq!((ticket.claimed(), ticket.begun().entries.len()), (None, 0));
    assert_eq!(*ticket.begun().messages, [stored("u1")]);
    drop(ticket);
    // Given up at once, the thread still knows that they were given up.
    let thread = world.thread().unwrap();
    assert_eq!((thread.parked, thread.active), (None, None));
    assert_eq!(Vec::from(thread.answered), ids(&["i-c1", "i-c2"]));

    let world = two_asked(CANCEL);
    let ticket = world.run("b", &input("r2", &said("u2"), &[]));
    leave(ticket, &success(), &["u1", "u2"]);
    assert_eq!(world.parked(), None);
    // Their late answers call no agent; with new words they run nothing of what was asked.
    let late = input("r3", &said("u1"), &[approve("i-c1"), approve("i-c2")]);
    assert_eq!(world.repeated("a", &late).answered, ids(&["i-c1", "i-c2"]));
    let ticket = world.run("a", &input("r3", &said("u2"), &[approve("i-c1"), approve("i-c2")]));
    assert_eq!((ticket.claimed(), ticket.begun().entries.len()), (None, 0));
}

#[test]
fn a_frontend_call_may_be_answered_by_a_message_and_no_other_call() {
    let frontend = |call: &str| OpenInterrupt { kind: InterruptKind::FrontendTool, ..ask(call) };
    let answer = json!([
        {"id": "u1", "role": "user", "content": "wipe it"},
        {"id": "t1", "role": "tool", "toolCallId": "c1", "content": "blue"},
    ]);
    let world = World::new(REJECT);
    world.asked(&[frontend("c1"), frontend("c2")]);
    let open = [frontend("c1"), frontend("c2")];
    let refused = world.refused("a", &input("r2", &answer, &[]));
    assert_eq!(refused, uncovered(&["i-c2"], &[], &open));
    let ticket = world.run("a", &input("r2", &answer, &[approve("i-c2")]));
    assert_eq!(ticket.begun().entries, [approve("i-c2")]);
    drop(ticket);
    // Both ways at once: the entry counts.
    let ticket = world.run("a", &input("r2", &answer, &[approve("i-c1"), approve("i-c2")]));
    assert_eq!(ticket.begun().entries, [approve("i-c1"), approve("i-c2")]);

    for kind in [InterruptKind::PermissionConfirm, InterruptKind::ExternalExecution] {
        let world = World::new(REJECT);
        let open = [OpenInterrupt { kind, ..ask("c1") }];
        world.asked(&open);
        let refused = world.refused("a", &input("r2", &answer, &[]));
        assert_eq!(refused, uncovered(&["i-c1"], &[], &open));
    }
}

#[test]
fn a_run_knows_which_interrupts_there_were_so_that_no_id_is_used_again() {
    let taken = |ticket: &Ticket| {
        let mut taken: Vec<_> = ticket.begun().taken.iter().map(InterruptId::as_str).collect();
        taken.sort_unstable();
        taken.join(" ")
    };
    let world = World::new(CANCEL);
    world.asked(&[ask("c1"), ask("c2")]);
    let ticket = world.resumed("r2", &[approve("i-c1"), approve("i-c2")]);
    assert_eq!(taken(&ticket), "i-c1 i-c2");
    leave(ticket, &interrupted(&[ask("c3")]), &["u1"]);
    // Those that another agent gives up are among them.
    let ticket = world.run("b", &input("r3", &said("u2"), &[]));
    assert_eq!(taken(&ticket), "i-c1 i-c2 i-c3");
}

#[test]
fn as_many_answers_as_were_given_at_once_are_repeated() {
    let world = World::new(REJECT);
    let calls: Vec<String> = (0..100).map(|at| format!("c{at}")).collect();
    let open: Vec<OpenInterrupt> = calls.iter().map(|call| ask(call)).collect();
    let entries: Vec<ResumeEntry> =
        calls.iter().map(|call| approve(&format!("i-{call}"))).collect();
    world.asked(&open);
    leave(world.resumed("r2", &entries), &success(), &["u1"]);
    let repeat = world.repeated("a", &input("r3", &said("u1"), &entries));
    assert_eq!(repeat.answered.len(), 100);
}
