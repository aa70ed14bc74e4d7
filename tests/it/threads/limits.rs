//! How much is remembered: bounded, and never at the cost of what runs or waits.

use agentscope_agui::config::Config;
use serde_json::{Value, json};

use super::{
    Given, Hand, approve, asking, counting, ignoring, raised, remembering, said, server, timed,
    told, user, with,
};
use crate::support::{
    agents::{delta, end, start},
    expected, input, resume,
    server::TestServer,
    sse::Reader,
};

async fn ids(server: &TestServer) -> Vec<String> {
    let response = server.get("/agui/threads").send().await.unwrap();
    let listed: Value = response.json().await.unwrap();
    let threads = listed["threads"].as_array().unwrap().iter();
    let mut ids: Vec<String> =
        threads.map(|one| one["threadId"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    ids
}

#[tokio::test]
async fn the_thread_unused_for_longest_goes_and_never_one_that_runs_or_waits() {
    let mut config = remembering();
    config.agui.threads.max_thread_sessions = 2;
    let given = Given::default();
    let (telling, tell) = told("telling");
    let agents = vec![counting(&given), telling, asking(&Given::default(), &["c1"])];
    let server = server(config, agents).await;
    let mut running = Reader::new(server.start("/agui/telling", &input("running", "r")).await);
    tell.say([start(), delta("hi")]);
    running.event().await.unwrap();
    assert_eq!(raised(&server.run("/agui/asking", &input("asked", "r")).await), ["reply:c1"]);
    for thread in ["t1", "t2", "t1", "t3"] {
        server.run("/agui/a", &with(thread, "r", &[user(&format!("u{thread}"), thread)])).await;
    }
    assert_eq!(ids(&server).await, ["asked", "running", "t1", "t3"]);
    // What was forgotten begins anew.
    server.run("/agui/a", &with("t2", "r", &[user("new", "who am I?")])).await;
    assert_eq!(given.last(), ["user: who am I?"]);
    let answered = resume("asked", "r2", &json!([approve("reply:c1")]));
    assert_eq!(said(&server.run("/agui/asking", &answered).await), r#"run c1 {"disk":"a"}"#);
    tell.say([end()]);
    assert_eq!(running.rest().await.last(), Some(&expected::success("running", "r")));
}

#[tokio::test]
async fn a_thread_is_forgotten_when_its_time_is_over_and_one_that_waits_is_not() {
    let hand = Hand::default();
    let given = Given::default();
    let agents = vec![counting(&given), asking(&Given::default(), &["c1"])];
    let server = timed(remembering(), &hand, agents).await;
    server.run("/agui/a", &with("t", "r1", &[user("u1", "one")])).await;
    server.run("/agui/asking", &input("asked", "r1")).await;
    hand.forward(30 * 60_000 - 1);
    assert_eq!(ids(&server).await, ["asked", "t"]);
    hand.forward(1);
    assert_eq!(ids(&server).await, ["asked"]);
    server.run("/agui/a", &with("t", "r2", &[user("u2", "two")])).await;
    assert_eq!(given.last(), ["user: two"]);
}

#[tokio::test]
async fn the_oldest_question_of_too_many_is_one_that_nobody_asked() {
    let mut config = Config::default();
    config.agui.threads.max_parked_threads = 2;
    let given = Given::default();
    let server = server(config, vec![asking(&given, &["c1"])]).await;
    for thread in ["t1", "t2", "t3"] {
        server.run("/agui/asking", &input(thread, "r1")).await;
    }
    let answer = |thread: &str| resume(thread, "r2", &json!([approve("reply:c1")]));
    let lost = server.run("/agui/asking", &answer("t1")).await;
    // The call does not run: the agent is asked anew, and asks again.
    assert_eq!(lost[0], ignoring("t1", "r2", &["reply:c1"]));
    assert_eq!(raised(&lost), ["reply:c1"]);
    let kept = server.run("/agui/asking", &answer("t3")).await;
    assert_eq!(said(&kept), r#"run c1 {"disk":"a"}"#);
}
