//! The list of a principal's threads, page by page.

use agentscope_agui::store::{AgentId, Page, Position, Principal, Store, Thread};

use super::records::{active, idle, key, key_of, parked, put, remove};

fn page(limit: usize) -> Page {
    Page { limit, ..Page::default() }
}

/// Ids and times of a page of the anonymous principal, and the place of its last thread.
async fn read(store: &impl Store, page: &Page) -> (Vec<(String, i64)>, Option<Position>) {
    let listed = store.list(&Principal::anonymous(), page).await.unwrap();
    let place = listed.last().map(|listed| listed.position());
    let shown = listed
        .iter()
        .map(|listed| (listed.thread_id.as_str().to_owned(), listed.thread.updated_ms));
    (shown.collect(), place)
}

fn shown(threads: &[(&str, i64)]) -> Vec<(String, i64)> {
    threads.iter().map(|(id, time)| ((*id).to_owned(), *time)).collect()
}

pub(super) async fn the_thread_updated_last_comes_first<S: Store>(make: impl AsyncFn() -> S) {
    let store = make().await;
    let owner = agentscope_agui::store::RunOwner::fresh();
    put(&store, &key("b"), idle(20)).await;
    put(&store, &key("a"), active(20, owner)).await;
    put(&store, &key("c"), parked(30, 10)).await;
    put(&store, &key("d"), idle(10)).await;
    let (all, _) = read(&store, &page(10)).await;
    // At the same time, by the thread's name.
    assert_eq!(all, shown(&[("c", 30), ("a", 20), ("b", 20), ("d", 10)]));
    put(&store, &key("d"), idle(40)).await;
    remove(&store, &key("a")).await;
    let (all, _) = read(&store, &page(10)).await;
    assert_eq!(all, shown(&[("d", 40), ("c", 30), ("b", 20)]));
    let listed = store.list(&Principal::anonymous(), &page(1)).await.unwrap();
    assert_eq!(listed.iter().map(|one| Thread::clone(&one.thread)).collect::<Vec<_>>(), [idle(40)]);
}

pub(super) async fn pages_show_every_thread_once<S: Store>(make: impl AsyncFn() -> S) {
    let store = make().await;
    let mut expected = Vec::new();
    for at in 0..10 {
        // Pairs of threads of the same time.
        let (id, time) = (format!("t{at}"), 100 - at / 2);
        put(&store, &key(&id), idle(time)).await;
        expected.push((id, time));
    }
    for limit in [1, 3, 10, 11] {
        let (mut all, mut wanted) = (Vec::new(), page(limit));
        loop {
            let (some, place) = read(&store, &wanted).await;
            let Some(place) = place else { break };
            assert!(some.len() <= limit, "{some:?}");
            all.extend(some);
            wanted.after = Some(place);
        }
        assert_eq!(all, expected, "by {limit}");
    }
    assert_eq!(read(&store, &page(0)).await, (Vec::new(), None));
}

pub(super) async fn a_place_in_the_list_stays_while_threads_come_and_go<S: Store>(
    make: impl AsyncFn() -> S,
) {
    let store = make().await;
    for (id, time) in [("a", 50), ("b", 40), ("c", 30), ("d", 20), ("e", 10)] {
        put(&store, &key(id), idle(time)).await;
    }
    let (first, place) = read(&store, &page(2)).await;
    assert_eq!(first, shown(&[("a", 50), ("b", 40)]));
    // One comes, one that was shown moves, one that was not goes, and so does the place itself.
    put(&store, &key("new"), idle(60)).await;
    put(&store, &key("a"), idle(70)).await;
    remove(&store, &key("c")).await;
    remove(&store, &key("b")).await;
    let (second, place) = read(&store, &Page { after: place, ..page(1) }).await;
    assert_eq!(second, shown(&[("d", 20)]));
    let (third, place) = read(&store, &Page { after: place, ..page(2) }).await;
    assert_eq!(third, shown(&[("e", 10)]));
    assert_eq!(read(&store, &Page { after: place, ..page(2) }).await, (Vec::new(), None));
}

pub(super) async fn a_page_of_one_agent_is_full<S: Store>(make: impl AsyncFn() -> S) {
    let store = make().await;
    let agents = ["a", "b", "b", "a", "b", "a"];
    for (at, agent) in (0..).zip(agents) {
        let thread = Thread { agent: Some(AgentId::new(agent)), ..idle(100 - at) };
        put(&store, &key(&format!("t{at}")), thread).await;
    }
    put(&store, &key("none"), Thread { agent: None, ..idle(200) }).await;
    let of = |agent: &str| Page { agent: Some(AgentId::new(agent)), ..page(2) };
    let (first, place) = read(&store, &of("a")).await;
    assert_eq!(first, shown(&[("t0", 100), ("t3", 97)]));
    let (second, place) = read(&store, &Page { after: place, ..of("a") }).await;
    assert_eq!(second, shown(&[("t5", 95)]));
    assert_eq!(read(&store, &Page { after: place, ..of("a") }).await.0, []);
    assert_eq!(read(&store, &of("c")).await.0, []);
    // The agent of the last run counts.
    put(&store, &key("t0"), Thread { agent: Some(AgentId::new("c")), ..idle(300) }).await;
    assert_eq!(read(&store, &of("c")).await.0, shown(&[("t0", 300)]));
    assert_eq!(read(&store, &of("a")).await.0, shown(&[("t3", 97), ("t5", 95)]));
}

pub(super) async fn lists_of_principals_never_meet<S: Store>(make: impl AsyncFn() -> S) {
    let store = make().await;
    let principals = [
        Principal::anonymous(),
        Principal::named(""),
        Principal::named("ann"),
        Principal::named("ann2"),
        Principal::named("b"),
    ];
    for (at, principal) in (0..).zip(&principals) {
        put(&store, &key_of(principal, "same"), idle(10 + at)).await;
        put(&store, &key_of(principal, &format!("own{at}")), idle(20 + at)).await;
    }
    for (at, principal) in (0..).zip(&principals) {
        let listed = store.list(principal, &page(10)).await.unwrap();
        let own = format!("own{at}");
        let ids: Vec<_> = listed.iter().map(|listed| listed.thread_id.as_str()).collect();
        assert_eq!(ids, [own.as_str(), "same"], "{principal:?}");
        let times: Vec<_> = listed.iter().map(|listed| listed.thread.updated_ms).collect();
        assert_eq!(times, [20 + at, 10 + at], "{principal:?}");
    }
    // Neither does a place of one lead into another's.
    let after = Some(Position { updated_ms: 1000, thread: "".into() });
    let listed = store.list(&principals[2], &Page { after, ..page(10) }).await.unwrap();
    assert_eq!(listed.len(), 2);
    assert_eq!(store.list(&Principal::named("a"), &page(10)).await, Ok(Vec::new()));
}
