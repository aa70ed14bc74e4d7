//! Records: put, loaded, changed by many at once.

use std::sync::Arc;

use agentscope_agui::store::{Next, Page, Principal, RunOwner, Store, Thread, ThreadKey};
use futures_util::FutureExt;
use tokio::{sync::Barrier, task::JoinSet};

use super::records::{active, idle, key, key_of, load, put, remove, whole};

pub(super) async fn nothing_is_known_that_was_not_put<S: Store>(make: impl AsyncFn() -> S) {
    let store = make().await;
    let mut seen = Vec::new();
    let mut change = |thread: Option<&Thread>, _| {
        seen.push(thread.cloned());
        Next::Keep
    };
    store.update(&key("t"), &mut change).await.unwrap();
    assert_eq!(seen.last(), Some(&None));
    assert_eq!(load(&store, &key("t")).await, None);
    let page = Page { limit: 10, ..Page::default() };
    assert_eq!(store.list(&Principal::anonymous(), &page).await, Ok(Vec::new()));
    store.at_rest(&key("t")).await;
    remove(&store, &key("t")).await;
    assert_eq!(load(&store, &key("t")).await, None);
}

pub(super) async fn what_was_put_is_loaded_whole<S: Store>(make: impl AsyncFn() -> S) {
    let store = make().await;
    for thread in [whole(), Thread::default(), idle(1)] {
        put(&store, &key("t"), thread.clone()).await;
        assert_eq!(load(&store, &key("t")).await, Some(thread.clone()));
        let mut seen = None;
        let mut change = |thread: Option<&Thread>, _| {
            seen = thread.cloned();
            Next::Keep
        };
        store.update(&key("t"), &mut change).await.unwrap();
        assert_eq!(seen, Some(thread));
    }
}

pub(super) async fn what_is_kept_stays_and_what_is_removed_is_gone<S: Store>(
    make: impl AsyncFn() -> S,
) {
    let store = make().await;
    let page = Page { limit: 10, ..Page::default() };
    put(&store, &key("t"), idle(1)).await;
    store.update(&key("t"), &mut |_, _| Next::Keep).await.unwrap();
    assert_eq!(load(&store, &key("t")).await, Some(idle(1)));
    remove(&store, &key("t")).await;
    assert_eq!(load(&store, &key("t")).await, None);
    assert_eq!(store.list(&Principal::anonymous(), &page).await, Ok(Vec::new()));
    put(&store, &key("t"), idle(2)).await;
    assert_eq!(load(&store, &key("t")).await, Some(idle(2)));
    assert_eq!(store.list(&Principal::anonymous(), &page).await.unwrap().len(), 1);
}

/// Has the thread if nobody has it.
async fn begin(store: &impl Store, key: &ThreadKey, owner: RunOwner) -> bool {
    let mut won = false;
    let mut change = |thread: Option<&Thread>, _| {
        won = thread.is_none_or(|thread| thread.active.is_none());
        if won { Next::Put(Box::new(active(1, owner))) } else { Next::Keep }
    };
    store.update(key, &mut change).await.unwrap();
    won
}

pub(super) async fn one_of_many_that_begin_at_once_wins<S: Store>(make: impl AsyncFn() -> S) {
    let store = Arc::new(make().await);
    for round in 0..50 {
        // On a thread that nobody knows, and on one that is known.
        if round % 2 == 1 {
            put(&*store, &key(&round.to_string()), idle(1)).await;
        }
        let barrier = Arc::new(Barrier::new(64));
        let mut tasks = JoinSet::new();
        for _ in 0..64 {
            let (store, barrier) = (Arc::clone(&store), Arc::clone(&barrier));
            tasks.spawn(async move {
                let owner = RunOwner::fresh();
                barrier.wait().await;
                begin(&*store, &key(&round.to_string()), owner).await.then_some(owner)
            });
        }
        let winners: Vec<RunOwner> = tasks.join_all().await.into_iter().flatten().collect();
        let [winner] = winners[..] else { panic!("{} winners", winners.len()) };
        assert_eq!(load(&*store, &key(&round.to_string())).await, Some(active(1, winner)));
    }
}

pub(super) async fn no_change_of_many_is_lost<S: Store>(make: impl AsyncFn() -> S) {
    let store = Arc::new(make().await);
    let mut tasks = JoinSet::new();
    for at in 0..64 {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let id = format!("{at:02}");
            let mut change = |thread: Option<&Thread>, _| {
                let mut thread = thread.cloned().unwrap_or_default();
                thread.answered.push_back(id.as_str().into());
                Next::Put(Box::new(thread))
            };
            store.update(&key("t"), &mut change).await.unwrap();
        });
    }
    tasks.join_all().await;
    let thread = load(&*store, &key("t")).await.unwrap();
    let mut ids: Vec<_> = thread.answered.iter().map(|id| id.as_str().to_owned()).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..64).map(|at| format!("{at:02}")).collect::<Vec<_>>());
}

pub(super) async fn changes_of_other_threads_do_not_disturb<S: Store>(make: impl AsyncFn() -> S) {
    let store = Arc::new(make().await);
    let mut tasks = JoinSet::new();
    for at in 0..64 {
        let store = Arc::clone(&store);
        tasks.spawn(async move {
            let key = key(&at.to_string());
            for updated in 1..=10 {
                put(&*store, &key, idle(updated)).await;
                assert_eq!(load(&*store, &key).await, Some(idle(updated)));
            }
            remove(&*store, &key).await;
            assert_eq!(load(&*store, &key).await, None);
        });
    }
    tasks.join_all().await;
}

/// Keys that differ, although parts of them put together may not.
fn awkward_keys() -> Vec<ThreadKey> {
    let (anonymous, named) = (Principal::anonymous(), Principal::named);
    vec![
        key_of(&anonymous, "t"),
        key_of(&named(""), "t"),
        key_of(&named("ann"), "t"),
        key_of(&named("Ann"), "t"),
        key_of(&named("ann:t"), "u"),
        key_of(&named("ann"), "t:u"),
        key_of(&named("ann/"), "t"),
        key_of(&named("ann"), "/t"),
        key_of(&named("ann\0"), "t"),
        key_of(&named("ann"), "\0t"),
        key_of(&named("*"), "*"),
        key_of(&named("é"), "{t}"),
        key_of(&named("e\u{301}"), "{t}"),
        key_of(&named("ann"), &"x".repeat(4096)),
        key_of(&named("ann"), ""),
    ]
}

pub(super) async fn principals_never_meet<S: Store>(make: impl AsyncFn() -> S) {
    let store = make().await;
    let keys = awkward_keys();
    for (at, key) in (0..).zip(&keys) {
        assert_eq!(load(&store, key).await, None, "{key:?}");
        put(&store, key, idle(at)).await;
    }
    for (at, key) in (0..).zip(&keys) {
        assert_eq!(load(&store, key).await, Some(idle(at)), "{key:?}");
    }
    let owner = RunOwner::fresh();
    assert!(begin(&store, &keys[0], owner).await);
    for key in &keys[1..] {
        store.at_rest(key).now_or_never().expect("no run");
    }
    remove(&store, &keys[2]).await;
    let left = keys.iter().map(|key| load(&store, key));
    let left = futures_util::future::join_all(left).await;
    let gone: Vec<_> = (0..keys.len()).filter(|at| left[*at].is_none()).collect();
    assert_eq!(gone, [2]);
}

pub(super) async fn time_does_not_go_back<S: Store>(make: impl AsyncFn() -> S) {
    let store = make().await;
    let mut times = Vec::new();
    for _ in 0..10 {
        let mut time = 0;
        let mut change = |_: Option<&Thread>, now| {
            time = now;
            Next::Keep
        };
        store.update(&key("t"), &mut change).await.unwrap();
        times.push(time);
    }
    assert!(times.is_sorted() && times[0] > 0, "{times:?}");
}
