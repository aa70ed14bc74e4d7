//! Who is told that a run shall stop, and when a thread is at rest.
//!
//! A store may take its time with a signal, so that none came is only looked at after another one
//! that was sent later has come.

use agentscope_agui::store::{RunOwner, Store};
use futures_util::FutureExt;

use super::records::{active, idle, key, put, remove, stopping};

pub(super) async fn a_run_is_told_to_stop_and_no_other_one<S: Store>(make: impl AsyncFn() -> S) {
    let store = make().await;
    let (run, other) = (RunOwner::fresh(), RunOwner::fresh());
    put(&store, &key("t"), active(1, run)).await;
    put(&store, &key("u"), active(1, other)).await;
    let (told, mut other_told) =
        (store.cancelled(&key("t"), run), store.cancelled(&key("u"), other));
    let mut stranger = store.cancelled(&key("t"), other);
    put(&store, &key("t"), stopping(2, run)).await;
    told.await;
    // Who asks later is told as well.
    store.cancelled(&key("t"), run).await;
    assert_eq!((&mut other_told).now_or_never(), None);
    assert_eq!((&mut stranger).now_or_never(), None);
}

pub(super) async fn a_run_that_is_renewed_is_told_still<S: Store>(make: impl AsyncFn() -> S) {
    let store = make().await;
    let run = RunOwner::fresh();
    put(&store, &key("t"), active(1, run)).await;
    let mut told = store.cancelled(&key("t"), run);
    let mut renewed = active(2, run);
    renewed.active.as_mut().unwrap().lease_ends_ms = Some(i64::MAX);
    put(&store, &key("t"), renewed).await;
    assert_eq!((&mut told).now_or_never(), None);
    put(&store, &key("t"), stopping(3, run)).await;
    told.await;
}

pub(super) async fn nobody_tells_a_run_that_is_over<S: Store>(make: impl AsyncFn() -> S) {
    let store = make().await;
    let (over, successor) = (RunOwner::fresh(), RunOwner::fresh());
    put(&store, &key("t"), active(1, over)).await;
    let mut told = store.cancelled(&key("t"), over);
    put(&store, &key("t"), idle(2)).await;
    put(&store, &key("t"), active(3, successor)).await;
    let successor_told = store.cancelled(&key("t"), successor);
    put(&store, &key("t"), stopping(4, successor)).await;
    successor_told.await;
    assert_eq!((&mut told).now_or_never(), None);
    let mut late = store.cancelled(&key("t"), over);
    let mut unknown = store.cancelled(&key("nobody"), over);
    assert_eq!(((&mut late).now_or_never(), (&mut unknown).now_or_never()), (None, None));
    // Of the successor of one that was told to stop nothing is wanted.
    put(&store, &key("t"), idle(5)).await;
    let third = RunOwner::fresh();
    put(&store, &key("t"), active(6, third)).await;
    let mut third_told = store.cancelled(&key("t"), third);
    assert_eq!((&mut third_told).now_or_never(), None);
}

pub(super) async fn a_thread_is_at_rest_when_its_run_is_over<S: Store>(make: impl AsyncFn() -> S) {
    let store = make().await;
    let (run, other) = (RunOwner::fresh(), RunOwner::fresh());
    put(&store, &key("t"), active(1, run)).await;
    put(&store, &key("u"), active(1, other)).await;
    let (mut at_rest, mut other_at_rest) = (store.at_rest(&key("t")), store.at_rest(&key("u")));
    put(&store, &key("t"), stopping(2, run)).await;
    store.cancelled(&key("t"), run).await;
    assert_eq!((&mut at_rest).now_or_never(), None);
    put(&store, &key("t"), idle(3)).await;
    at_rest.await;
    store.at_rest(&key("t")).await;
    assert_eq!((&mut other_at_rest).now_or_never(), None);
}

pub(super) async fn a_thread_that_is_forgotten_is_at_rest<S: Store>(make: impl AsyncFn() -> S) {
    let store = make().await;
    let run = RunOwner::fresh();
    put(&store, &key("t"), active(1, run)).await;
    let at_rest = store.at_rest(&key("t"));
    let mut told = store.cancelled(&key("t"), run);
    remove(&store, &key("t")).await;
    at_rest.await;
    store.at_rest(&key("t")).await;
    assert_eq!((&mut told).now_or_never(), None);
}
