//! Runs side by side: of one agent, on one thread, and of users who know each other's thread.

use serde_json::{Value, json};

use super::{Setup, USER, code, events, frontend, posts, raised, said, tools, user, with};
use crate::support::{
    input,
    model::{Answer, Endpoint, Gate, Request, openai},
    saying,
    server::{TestServer, checked},
    sse::Reader,
};

/// What the person said last.
fn last(request: &Request) -> String {
    let messages = request.body["messages"].as_array().unwrap();
    messages.last().unwrap()["content"].as_str().unwrap().to_owned()
}

/// A model that answers `slow` when the gate opens and everything else at once.
async fn slow_at_times(gate: &Gate) -> Endpoint {
    let gate = gate.clone();
    Endpoint::with(move |request| match last(request).as_str() {
        "slow" => openai::says(&["at last"]).held_until(&gate),
        _ => openai::says(&["quick"]),
    })
    .await
}

/// Names of the tools in a request.
fn offered(body: &Value) -> Vec<&str> {
    let tools = body["tools"].as_array().into_iter().flatten();
    tools.map(|tool| tool["function"]["name"].as_str().unwrap()).collect()
}

fn able(mut input: Value, tools: &[&str]) -> Value {
    input["tools"] = tools.iter().map(|name| frontend(name)).collect();
    input
}

#[tokio::test]
async fn tools_of_a_request_are_offered_in_its_run_alone() {
    let (gate, tools) = (Gate::default(), tools().await);
    let cases = [
        ("MERGE_FRONTEND_PRIORITY", [vec!["add", "only_a"], vec!["add", "only_b"], vec!["add"]]),
        ("FRONTEND_ONLY", [vec!["only_a"], vec!["only_b"], vec![]]),
        ("AGENT_ONLY", [vec!["add"], vec!["add"], vec!["add"]]),
    ];
    for (mode, [a, b, none]) in cases {
        let model = slow_at_times(&gate).await;
        let setup = Setup::new(&model).tool(posts(&tools, "add"));
        let server = setup.agui("default-tool-merge-mode", mode).serve().await;
        let first = able(saying("t1", "r1", "slow"), &["only_a"]);
        let mut reader = Reader::new(server.start("/agui/a", &first).await);
        assert_eq!(reader.event().await, Some(events::started("t1", "r1")));
        model.request(0).await;
        for (at, (thread, tools)) in [("t2", &["only_b"][..]), ("t3", &[])].iter().enumerate() {
            let events = server.run("/agui/a", &able(input(thread, "r"), tools)).await;
            assert_eq!(said(&events), "quick");
            model.request(at + 1).await;
        }
        // The first one's client leaves.
        drop(reader);
        model.request(0).await.fate().await;
        server.run("/agui/a", &input("t4", "r")).await;
        let bodies = model.bodies();
        let seen: Vec<_> = bodies.iter().map(offered).collect();
        assert_eq!(seen, [a, b, none.clone(), none], "{mode}");
    }
}

#[tokio::test]
async fn context_of_a_request_is_in_its_own_instructions_alone() {
    let gate = Gate::default();
    let echo = gate.clone();
    let model = Endpoint::with(move |request| {
        openai::says(&[request.body["messages"][0]["content"].as_str().unwrap()]).held_until(&echo)
    })
    .await;
    let server = Setup::new(&model).serve().await;
    let mut started = Vec::new();
    for n in 0..5 {
        let mut input = input(&format!("t{n}"), "r");
        input["context"] = json!([{"description": "who", "value": format!("user-{n}")}]);
        started.push((server.start("/agui/a", &input).await, input));
    }
    // All of them are under way at once.
    model.request(4).await;
    gate.open();
    for (n, (response, input)) in started.into_iter().enumerate() {
        let expected = format!("Be brief.\n\nContext from the application:\n- who: user-{n}");
        assert_eq!(said(&checked(response, &input).await), expected);
    }
    assert_eq!(said(&server.run("/agui/a", &input("t", "r")).await), "Be brief.");
}

#[tokio::test]
async fn a_thread_has_one_run_at_a_time_and_other_threads_do_not_wait() {
    let gate = Gate::default();
    let model = slow_at_times(&gate).await;
    let server = Setup::new(&model).agui("server-side-memory", true).serve().await;
    let first = with("t", "r1", &[user("u1", "slow")]);
    let response = server.start("/agui/a", &first).await;
    model.request(0).await;
    let refused = server.run("/agui/a", &with("t", "r2", &[user("u2", "two")])).await;
    assert_eq!(code(&refused), "THREAD_BUSY");
    assert_eq!(said(&server.run("/agui/a", &input("t2", "r")).await), "quick");
    gate.open();
    assert_eq!(said(&checked(response, &first).await), "at last");
    let third = server.run("/agui/a", &with("t", "r3", &[user("u3", "three")])).await;
    assert_eq!(said(&third), "quick");
    assert_eq!(model.requests().len(), 3);
    assert_eq!(
        openai::lines(&model.bodies()[2]),
        ["system: Be brief.", "user: slow", "assistant: at last", "user: three"]
    );
}

/// Starts a run of this user.
async fn start_as(server: &TestServer, user: &str, input: &Value) -> reqwest::Response {
    let response = server.post("/agui/a").header(USER, user).json(input).send().await.unwrap();
    assert_eq!(response.status(), 200);
    response
}

async fn run_as(server: &TestServer, user: &str, input: &Value) -> Vec<Value> {
    checked(start_as(server, user, input).await, input).await
}

#[tokio::test]
async fn who_asks_is_told_by_the_proxy_and_by_nothing_in_the_body() {
    let model = Endpoint::with(openai::echo).await;
    let setup = Setup::new(&model).two_users().agui("server-side-memory", true);
    let server = setup.serve().await;
    run_as(&server, "ann", &with("T", "r1", &[user("u1", "my code is 77")])).await;
    let mut input = with("T", "r2", &[user("u2", "what is my code?")]);
    input["forwardedProps"] = json!({"userId": "ann", "nothing": null});
    let answer = said(&run_as(&server, "bob", &input).await);
    assert!(answer.contains("what is my code?") && !answer.contains("77"), "{answer}");
    let answer = said(&run_as(&server, "ann", &input).await);
    assert!(answer.contains("my code is 77"), "{answer}");

    let nobody = server.post("/agui/a").json(&input).send().await.unwrap();
    assert_eq!(nobody.status(), 401);
    assert_eq!(model.requests().len(), 3);
}

#[tokio::test]
async fn a_thread_of_one_name_is_another_one_for_each_user() {
    let gate = Gate::default();
    let held = gate.clone();
    let model = Endpoint::with(move |request| match last(request).as_str() {
        "slow" => openai::says(&["at last"]).held_until(&held),
        _ => openai::echo(request),
    })
    .await;
    let setup = Setup::new(&model).two_users().agui("server-side-memory", true);
    let server = setup.serve().await;
    let says = |run: &str, text: &str| with("default", run, &[user("u1", text)]);
    run_as(&server, "ann", &says("r1", "my code is 77")).await;
    let answer = said(&run_as(&server, "bob", &says("r1", "what is my code?")).await);
    assert!(answer.contains("what is my code?") && !answer.contains("77"), "{answer}");

    // A run of one is no run of the other.
    let slow = with("default", "r2", &[user("u2", "slow")]);
    let response = start_as(&server, "ann", &slow).await;
    model.request(2).await;
    let more = with("default", "r3", &[user("u3", "more")]);
    assert_eq!(code(&run_as(&server, "ann", &more).await), "THREAD_BUSY");
    assert_eq!(run_as(&server, "bob", &more).await.last(), Some(&events::success("default", "r3")));
    let cancel = async |user: &str| {
        let request = server.post("/agui/threads/default/cancel").header(USER, user);
        request.send().await.unwrap().status()
    };
    assert_eq!(cancel("eve").await, 404);
    gate.open();
    assert_eq!(said(&checked(response, &slow).await), "at last");
}

#[tokio::test]
async fn an_interrupt_is_answered_by_its_own_user_alone() {
    let tools = tools().await;
    let model = Endpoint::with(|request| {
        let messages = request.body["messages"].as_array().unwrap();
        match messages.last().unwrap()["role"].as_str() {
            Some("tool") => openai::says(&["wiped"]),
            _ => openai::asks("c1", "wipe", "{}"),
        }
    })
    .await;
    let setup = Setup::new(&model).two_users().tool(posts(&tools, "wipe"));
    let server = setup.agent("permission", json!({"ask": ["wipe"]})).serve().await;
    let asked = run_as(&server, "ann", &input("t", "r1")).await;
    let mut resume = with("t", "r2", &[]);
    resume["resume"] = json!([{
        "interruptId": raised(&asked)[0], "status": "resolved", "payload": {"approved": true},
    }]);
    // For bob there is no such interrupt, so nothing runs.
    let ignored = run_as(&server, "bob", &resume).await;
    assert_eq!(ignored[0]["metadata"], json!({"agentscope.ignoredResume": raised(&asked)}));
    assert_eq!(tools.requests().len(), 0);
    assert_eq!(said(&run_as(&server, "ann", &resume).await), "wiped");
    assert_eq!(tools.requests().len(), 1);
}

#[tokio::test]
async fn fifty_runs_of_one_agent_keep_to_themselves() {
    let gate = Gate::default();
    let held = gate.clone();
    let model = Endpoint::with(move |request| {
        let half = openai::text(&last(request));
        Answer::events([half]).wait(&held).and(openai::says(&[&last(request)]))
    })
    .await;
    let server = Setup::new(&model).serve().await;
    let mut started = Vec::new();
    for n in 0..50 {
        let input = saying(&format!("t{n}"), "r", &format!("mark-{n};"));
        started.push((server.start("/agui/a", &input).await, input));
    }
    model.request(49).await;
    gate.open();
    for (n, (response, input)) in started.into_iter().enumerate() {
        let events = checked(response, &input).await;
        assert_eq!(said(&events), format!("mark-{n};mark-{n};"));
        assert_eq!(events.last(), Some(&events::success(&format!("t{n}"), "r")));
    }
}
