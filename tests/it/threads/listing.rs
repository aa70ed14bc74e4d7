//! The caller's threads: the list, one thread, forgetting one, and who may ask.

use agentscope_agui::config::Config;
use serde_json::{Value, json};

use super::{
    Given, Hand, USER, counting, remembering, run_as, said, server, shown, timed, told, two_users,
    user, with,
};
use crate::support::{
    agents::{asks_for, delta, end, plays, says_its_id, start},
    input, saying,
    server::{NOW_MS, TestServer},
    sse::Reader,
};

async fn listed(server: &TestServer, query: &str) -> Value {
    let response = server.get(&format!("/agui/threads{query}")).send().await.unwrap();
    assert_eq!(response.status(), 200, "{query}");
    response.json().await.unwrap()
}

fn ids(listed: &Value) -> Vec<&str> {
    let threads = listed["threads"].as_array().unwrap().iter();
    threads.map(|thread| thread["threadId"].as_str().unwrap()).collect()
}

/// Five threads, one a second, with two agents.
async fn five() -> TestServer {
    let hand = Hand::default();
    let server = timed(remembering(), &hand, vec![says_its_id("a"), says_its_id("b")]).await;
    for (thread, agent) in [("t1", "a"), ("t2", "b"), ("t3", "a"), ("t4", "b"), ("t5", "a")] {
        hand.forward(1000);
        let words = format!("  the words\n of {thread} ");
        server.run(&format!("/agui/{agent}"), &saying(thread, "r", &words)).await;
    }
    server
}

#[tokio::test]
async fn threads_are_listed_with_the_newest_first() {
    let hand = Hand::default();
    let server = timed(remembering(), &hand, vec![says_its_id("a"), says_its_id("b")]).await;
    assert_eq!(listed(&server, "").await, json!({"threads": []}));
    server.run("/agui/a", &saying("t1", "r1", "  tell me\n more ")).await;
    hand.forward(1000);
    server.run("/agui/a", &saying("t2", "r1", &"é".repeat(81))).await;
    hand.forward(1000);
    server.run("/agui/b", &with("t1", "r2", &[user("u2", "and more")])).await;
    let expected = json!({"threads": [
        {
            "threadId": "t1", "name": "tell me more", "agentId": "b", "status": "idle",
            "createdAt": NOW_MS, "updatedAt": NOW_MS + 2000,
        },
        {
            "threadId": "t2", "name": "é".repeat(80), "agentId": "a", "status": "idle",
            "createdAt": NOW_MS + 1000, "updatedAt": NOW_MS + 1000,
        },
    ]});
    assert_eq!(listed(&server, "").await, expected);
}

#[tokio::test]
async fn a_cursor_leads_to_the_next_page_and_the_last_page_has_none() {
    let server = five().await;
    let first = listed(&server, "?limit=2").await;
    assert_eq!(ids(&first), ["t5", "t4"]);
    let cursor = first["nextCursor"].as_str().unwrap();
    let second = listed(&server, &format!("?limit=2&cursor={cursor}")).await;
    assert_eq!(ids(&second), ["t3", "t2"]);
    let cursor = second["nextCursor"].as_str().unwrap();
    let third = listed(&server, &format!("?limit=2&cursor={cursor}")).await;
    assert_eq!(ids(&third), ["t1"]);
    assert_eq!(third.get("nextCursor"), None);
    // A page that is just full and the last one has none either.
    assert_eq!(listed(&server, "?limit=5").await.get("nextCursor"), None);
}

#[tokio::test]
async fn the_list_of_one_agent_holds_the_threads_whose_last_run_was_its_own() {
    let server = five().await;
    assert_eq!(ids(&listed(&server, "?agentId=b").await), ["t4", "t2"]);
    let page = listed(&server, "?agentId=a&limit=2").await;
    assert_eq!(ids(&page), ["t5", "t3"]);
    let cursor = page["nextCursor"].as_str().unwrap();
    let rest = listed(&server, &format!("?agentId=a&limit=2&cursor={cursor}")).await;
    assert_eq!(ids(&rest), ["t1"]);
    assert_eq!(listed(&server, "?agentId=nobody").await, json!({"threads": []}));
}

#[tokio::test]
async fn a_query_that_cannot_be_meant_is_refused_with_what_would_be_right() {
    let server = TestServer::of(vec![says_its_id("a")]).await;
    let keys = "The query is wrong: the query takes `limit`, `cursor` and `agentId`, each once.";
    let limit = "The query is wrong: `limit` is between 1 and 200.";
    let cursor = "The query is wrong: `cursor` is none that this server gave.";
    let cases = [
        ("?limit=0", limit),
        ("?limit=201", limit),
        ("?limit=ten", keys),
        ("?limit=-1", keys),
        ("?limit=1&limit=2", keys),
        ("?page=2", keys),
        ("?cursor=", cursor),
        ("?cursor=17", cursor),
        ("?cursor=17.zz", cursor),
    ];
    for (query, detail) in cases {
        let request = server.get(&format!("/agui/threads{query}")).header("X-Request-Id", "q");
        let response = request.send().await.unwrap();
        assert_eq!(response.headers()["content-type"], "application/problem+json", "{query}");
        let problem: Value = response.json().await.unwrap();
        let expected = json!({
            "type": "about:blank", "title": "Bad Request", "status": 400, "detail": detail,
            "instance": "q",
        });
        assert_eq!(problem, expected, "{query}");
    }
    for query in ["?limit=1", "?limit=200", "?agentId="] {
        assert_eq!(listed(&server, query).await, json!({"threads": []}));
    }
}

#[tokio::test]
async fn a_thread_tells_its_status_its_run_and_what_is_open() {
    let (telling, tell) = told("telling");
    let mut asks = vec![start()];
    asks.extend(asks_for("c1"));
    let asking = plays("asking", asks);
    let server = server(remembering(), vec![telling, asking]).await;
    let mut reader = Reader::new(server.start("/agui/telling", &input("t/1 ä", "r1")).await);
    tell.say([start(), delta("hi")]);
    reader.event().await.unwrap();
    let path = "t%2F1%20%C3%A4";
    let mut thread = json!({
        "threadId": "t/1 ä", "name": "hello", "agentId": "telling", "status": "running",
        "activeRunId": "r1", "createdAt": NOW_MS, "updatedAt": NOW_MS,
        "openInterrupts": [], "messageCount": 0,
    });
    assert_eq!(shown(&server, path).await, thread);
    tell.say([end()]);
    reader.rest().await;
    thread["status"] = json!("idle");
    thread["messageCount"] = json!(2);
    thread.as_object_mut().unwrap().remove("activeRunId");
    assert_eq!(shown(&server, path).await, thread);

    let asked = server.run("/agui/asking", &with("t/1 ä", "r2", &[user("u2", "wipe")])).await;
    thread["status"] = json!("interrupted");
    thread["agentId"] = json!("asking");
    thread["messageCount"] = json!(4);
    thread["openInterrupts"] = asked.last().unwrap()["outcome"]["interrupts"].clone();
    assert_eq!(thread["openInterrupts"][0]["id"], "reply:c1");
    assert_eq!(shown(&server, path).await, thread);
    assert_eq!(server.get("/agui/threads/other").send().await.unwrap().status(), 404);
}

async fn delete(server: &TestServer, thread: &str) -> u16 {
    let request = server.request("DELETE", &format!("/agui/threads/{thread}"));
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn a_deleted_thread_is_forgotten() {
    let given = Given::default();
    let mut asks = vec![start()];
    asks.extend(asks_for("c1"));
    let server = server(remembering(), vec![counting(&given), plays("asking", asks)]).await;
    assert_eq!(delete(&server, "t").await, 404);
    server.run("/agui/a", &with("t", "r1", &[user("u1", "one")])).await;
    assert_eq!(delete(&server, "t").await, 204);
    assert_eq!(delete(&server, "t").await, 404);
    assert_eq!(listed(&server, "").await, json!({"threads": []}));
    server.run("/agui/a", &with("t", "r2", &[user("u2", "two")])).await;
    assert_eq!(given.last(), ["user: two"]);

    // With its open interrupts: the thread is a new one.
    server.run("/agui/asking", &with("t", "r3", &[user("u3", "wipe")])).await;
    assert_eq!(delete(&server, "t").await, 204);
    server.run("/agui/a", &with("t", "r4", &[user("u4", "four")])).await;
    assert_eq!(given.last(), ["user: four"]);
}

#[tokio::test]
async fn a_thread_with_a_run_is_deleted_when_the_run_has_stopped() {
    for config in [remembering(), Config::default()] {
        let (agent, mut tell) = told("a");
        let server = server(config, vec![agent, says_its_id("b")]).await;
        let mut reader = Reader::new(server.start("/agui/a", &input("t", "r1")).await);
        tell.say([start(), delta("hi")]);
        reader.event().await.unwrap();
        let ends = async {
            // The agent is asked to stop, and stops.
            let mut request = std::pin::pin!(delete(&server, "t"));
            tokio::select! {
                _early = &mut request => panic!("deleted under a run"),
                () = tell.asked_to_stop() => {}
            }
            assert_eq!(shown(&server, "t").await["status"], "running");
            drop(tell);
            request.await
        };
        assert_eq!(ends.await, 204);
        let rest = reader.rest().await;
        assert_eq!(rest.last().unwrap()["outcome"], json!({"type": "cancelled"}));
        assert_eq!(server.get("/agui/threads/t").send().await.unwrap().status(), 404);
        let next = server.run("/agui/b", &input("t", "r2")).await;
        assert_eq!(said(&next), "b");
    }
}

#[tokio::test]
async fn threads_of_other_users_are_neither_listed_nor_shown_nor_deleted_nor_cancelled() {
    let mut asks = vec![start()];
    asks.extend(asks_for("c1"));
    let server = server(two_users(remembering()), vec![plays("asking", asks)]).await;
    run_as(&server, "alice", "/agui/asking", &input("t", "r1")).await;
    let as_user = |method: &str, path: &str, user: &str| {
        let request = server.request(method, path).header(USER, user);
        async move { request.send().await.unwrap().status().as_u16() }
    };
    assert_eq!(as_user("GET", "/agui/threads/t", "bob").await, 404);
    assert_eq!(as_user("DELETE", "/agui/threads/t", "bob").await, 404);
    assert_eq!(as_user("POST", "/agui/threads/t/cancel", "bob").await, 404);
    let list = server.get("/agui/threads").header(USER, "bob").send().await.unwrap();
    assert_eq!(list.json::<Value>().await.unwrap(), json!({"threads": []}));
    assert_eq!(as_user("GET", "/agui/threads/t", "alice").await, 200);
    assert_eq!(as_user("POST", "/agui/threads/t/cancel", "alice").await, 200);
    assert_eq!(as_user("DELETE", "/agui/threads/t", "alice").await, 204);
}

/// The status of each request of a browser that only the user's own pages may send.
async fn from_page(server: &TestServer, origin: &str) -> [u16; 3] {
    let mut statuses = [0; 3];
    let requests =
        [("GET", "/agui/threads"), ("GET", "/agui/threads/t"), ("DELETE", "/agui/threads/t")];
    for (status, (method, path)) in statuses.iter_mut().zip(requests) {
        let request = server.request(method, path).header("Origin", origin).header(USER, "alice");
        *status = request.send().await.unwrap().status().as_u16();
    }
    statuses
}

#[tokio::test]
async fn without_authentication_pages_of_other_origins_may_not_see_threads() {
    let mut config = remembering();
    config.agui.cors_allowed_origins = vec!["*".to_owned()];
    let server = server(config, vec![says_its_id("a")]).await;
    server.run("/agui/a", &input("t", "r1")).await;
    for origin in ["https://evil.example", "null", "http://127.0.0.1:1", "*"] {
        assert_eq!(from_page(&server, origin).await, [403; 3], "{origin}");
    }
    let request = server.get("/agui/threads").header("Origin", "https://evil.example");
    let problem: Value =
        request.header("X-Request-Id", "q").send().await.unwrap().json().await.unwrap();
    let expected = json!({
        "type": "about:blank", "title": "Forbidden", "status": 403, "instance": "q",
        "detail":
            "Without authentication only origins that `cors-allowed-origins` names may see threads.",
    });
    assert_eq!(problem, expected);
    let own = format!("http://{}", server.address);
    assert_eq!(from_page(&server, &own).await, [200, 200, 204]);
    // What is not a browser says no origin.
    assert_eq!(listed(&server, "").await, json!({"threads": []}));
}

#[tokio::test]
async fn origins_that_are_named_may_see_threads() {
    let mut config = remembering();
    config.agui.cors_allowed_origins = vec!["*".to_owned(), "https://chat.example".to_owned()];
    let server = server(config, vec![says_its_id("a")]).await;
    server.run("/agui/a", &input("t", "r1")).await;
    assert_eq!(from_page(&server, "https://chat.example.evil.example").await, [403; 3]);
    assert_eq!(from_page(&server, "http://chat.example").await, [403; 3]);
    assert_eq!(from_page(&server, "https://chat.example").await, [200, 200, 204]);
}

#[tokio::test]
async fn with_authentication_the_origin_does_not_matter() {
    let server = server(two_users(remembering()), vec![says_its_id("a")]).await;
    run_as(&server, "alice", "/agui/a", &input("t", "r1")).await;
    assert_eq!(from_page(&server, "https://evil.example").await, [200, 200, 204]);
}
