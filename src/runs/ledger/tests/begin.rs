//! Who may begin, and what a run finds.

use futures_util::{FutureExt, future};

use super::{
    super::{Begun, kept},
    *,
};
use crate::store::{ActiveRun, Claim, Next};

#[test]
fn a_run_on_a_thread_that_nobody_knows_finds_nothing_and_has_the_thread() {
    let world = World::new(REJECT);
    world.at(5);
    let ticket = world.run("a", &input("r1", &said("u1"), &[]));
    assert_eq!(*ticket.begun(), Begun::default());
    assert_eq!((ticket.claimed(), ticket.to_raise()), (None, None));
    assert_eq!((ticket.key(), ticket.renew_every()), (&key(), None));
    let active = ActiveRun {
        owner: ticket.owner,
        run_id: "r1".into(),
        agent: agent("a"),
        claim: None,
        cancel: false,
        lease_ends_ms: None,
    };
    let thread = Thread {
        agent: Some(agent("a")),
        active: Some(active),
        name: "wipe it".to_owned(),
        created_ms: NOW + 5,
        updated_ms: NOW + 5,
        ..Thread::default()
    };
    assert_eq!(world.thread(), Some(thread));
}

#[test]
fn a_thread_with_a_run_takes_no_other_one_until_that_ends() {
    let world = World::new(REJECT);
    let ticket = world.run("a", &input("r1", &said("u1"), &[]));
    let before = world.thread();
    for (agent, run) in [("a", "r1"), ("a", "r2"), ("b", "r3")] {
        assert_eq!(world.refused(agent, &input(run, &said("u2"), &[])), Refusal::Busy);
    }
    assert_eq!(world.thread(), before);
    leave(ticket, &success(), &[]);
    // The same run id once more is another execution.
    drop(world.run("a", &input("r1", &said("u1"), &[])));
}

#[test]
fn a_repeated_answer_is_busy_while_the_run_lasts_that_took_it() {
    let world = World::new(REJECT);
    world.asked(&[ask("c1")]);
    let _answering = world.resumed("r2", &[approve("i-c1")]);
    let again = input("r3", &said("u1"), &[approve("i-c1")]);
    assert_eq!(world.refused("a", &again), Refusal::Busy);
}

#[test]
fn threads_and_principals_have_runs_of_their_own() {
    let world = World::new(REJECT);
    let _first = world.run("a", &input("r1", &said("u1"), &[]));
    let (ann, bob) = (Principal::named("ann"), Principal::named("bob"));
    let keys = [
        key_of(&Principal::anonymous(), "t2"),
        key_of(&ann, "t"),
        key_of(&bob, "t"),
        key_of(&Principal::named(""), "t"),
    ];
    let mut tickets = Vec::new();
    for other in keys {
        let request = input("r1", &said("u1"), &[]);
        let Ok(Beginning::Run(ticket)) = now(world.ledger.begin(other, &agent("a"), &request))
        else {
            panic!("no run");
        };
        tickets.push(ticket);
    }
    assert_eq!(world.refused("a", &input("r2", &said("u1"), &[])), Refusal::Busy);
}

#[test]
fn an_answer_claims_what_was_parked_and_all_messages_that_are_known() {
    let world = World::new(REJECT);
    let mut end = interrupted(&[ask("c1")]);
    end.parked = Some(Arc::new(json!({"step": 3})));
    let ticket = world.run("a", &input("r1", &said("u1"), &[]));
    let messages = vec![stored("u1"), stored("m1")];
    let state = Some(Arc::new(json!({"x": 1})));
    let ended = Ended {
        end: &end,
        messages: Arc::new(messages.clone()),
        state: state.clone(),
        decisions: &[],
        settled: &[],
    };
    now(ticket.end(&ended)).unwrap();
    let expected =
        Parked { state: Some(Arc::new(json!({"step": 3}))), ..parked(&[ask("c1")], &[]) };
    assert_eq!(world.parked(), Some(expected.clone()));

    world.at(7);
    let sent = json!([
        {"id": "u1", "role": "user", "content": "wipe it"},
        {"id": "u2", "role": "user", "content": "now"},
    ]);
    let ticket = world.run("a", &input("r2", &sent, &[approve("i-c1")]));
    let begun = Begun {
        parked: Some(expected.clone()),
        entries: vec![approve("i-c1")],
        messages: Arc::new(messages),
        state,
        kept: None,
        already_answered: Vec::new(),
        never_raised: Vec::new(),
        taken: ids(&["i-c1"]).into_iter().collect(),
    };
    assert_eq!(*ticket.begun(), begun);
    assert_eq!((ticket.claimed(), ticket.to_raise()), (Some(&expected), None));
    let thread = world.thread().unwrap();
    assert_eq!((thread.created_ms, thread.updated_ms), (NOW, NOW + 7));
    assert_eq!(thread.parked, None);
    let known = ["u1", "m1", "u2"].map(agui_protocol::MessageId::from);
    let claim = Claim { parked: expected, known: Arc::new(known.into()) };
    assert_eq!(thread.active.unwrap().claim, Some(claim));
}

#[test]
fn a_thread_is_named_after_the_first_words_that_a_person_said() {
    let long = "x".repeat(79);
    let cases = [
        (json!([{"id": "1", "role": "user", "content": " two\n  words\t"}]), "two words"),
        (
            json!([
                {"id": "1", "role": "assistant", "content": "welcome"},
                {"id": "2", "role": "user", "content": "  "},
                {"id": "3", "role": "user", "content": "first"},
                {"id": "4", "role": "user", "content": "second"},
            ]),
            "first",
        ),
        (
            json!([{"id": "1", "role": "user", "content": format!("{long}éé")}]),
            &*format!("{long}é"),
        ),
        (json!([]), "later"),
    ];
    for (messages, name) in cases {
        let world = World::new(MEMORY);
        let ticket = world.run("a", &input("r1", &messages, &[]));
        leave(ticket, &success(), &["u1"]);
        let later = json!([{"id": "u9", "role": "user", "content": "later"}]);
        leave(world.run("a", &input("r2", &later, &[])), &success(), &["u1"]);
        assert_eq!(world.thread().unwrap().name, name);
    }
}

#[test]
fn a_run_that_leaves_nothing_behind_leaves_no_record() {
    let world = World::new(MEMORY);
    leave(world.run("a", &input("r1", &said("u1"), &[])), &success(), &[]);
    assert_eq!(world.thread(), None);
}

#[test]
fn a_record_is_kept_if_anything_of_it_is_worth_it() {
    let empty = Thread { agent: Some(agent("a")), name: "n".to_owned(), ..Thread::default() };
    assert!(matches!(kept(empty.clone()), Next::Remove));
    let worth = [
        Thread { parked: Some(parked(&[ask("c1")], &[])), ..empty.clone() },
        Thread { answered: ids(&["i-c1"]).into(), ..empty.clone() },
        Thread { messages: Arc::new(vec![stored("u1")]), ..empty.clone() },
        Thread { state: Some(Arc::new(json!({}))), ..empty },
    ];
    for thread in worth {
        let Next::Put(next) = kept(thread.clone()) else { panic!("lost: {thread:?}") };
        assert_eq!(*next, thread);
    }
}

/// A store that is away.
struct Away;

impl Store for Away {
    fn update<'a>(
        &'a self,
        _key: &'a ThreadKey,
        _change: &'a mut Change<'_>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        future::ready(Err(StoreError("gone".to_owned()))).boxed()
    }

    fn load<'a>(
        &'a self,
        _key: &'a ThreadKey,
    ) -> BoxFuture<'a, Result<Option<Arc<Thread>>, StoreError>> {
        future::ready(Err(StoreError("gone".to_owned()))).boxed()
    }

    fn list<'a>(
        &'a self,
        _principal: &'a Principal,
        _page: &'a Page,
    ) -> BoxFuture<'a, Result<Vec<Listed>, StoreError>> {
        future::ready(Err(StoreError("gone".to_owned()))).boxed()
    }

    fn cancelled(&self, _key: &ThreadKey, _owner: RunOwner) -> BoxFuture<'static, ()> {
        future::pending().boxed()
    }

    fn at_rest(&self, _key: &ThreadKey) -> BoxFuture<'static, ()> {
        future::ready(()).boxed()
    }

    fn lease(&self) -> Option<Duration> {
        None
    }
}

#[tokio::test]
async fn a_store_that_is_away_lets_nothing_begin() {
    let ledger = Ledger::new(Arc::new(Away), REJECT);
    let error = StoreError("gone".to_owned());
    let refused = ledger.begin(key(), &agent("a"), &input("r1", &said("u1"), &[])).await;
    assert_eq!(refused.unwrap_err(), Refusal::Store(error.clone()));
    assert_eq!(ledger.cancel(&key()).await, Err(error.clone()));
    assert_eq!(ledger.delete(&key()).await, Err(error));
}
