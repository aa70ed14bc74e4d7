//! Interrupts from one run to the next: raised, refused when not answered as they must be,
//! answered, and answered again.

use std::sync::Arc;

use agentscope_agui::{
    agents::{AgentError, registry::Registered},
    config::Config,
};
use agui_adapter::{
    enrich::{EnrichContext, EnrichError},
    model::{AgentEvent, AgentEventKind},
    outbound::Extensions,
    resume::Verdict,
};
use agui_protocol::Event;
use futures_util::stream;
use serde_json::{Value, json};

use super::support::{
    agents::{agent, asks_for, delta, end, says_its_id, start, then_silent},
    expected, input, resume,
    server::{TestServer, events},
    sse::Reader,
};

/// Asks for two calls; says what was decided when it is resumed.
fn asking() -> Registered {
    agent("asking", |request| {
        let decided = request.decisions.iter().map(|decision| match &decision.verdict {
            Verdict::Approved { call, .. } => format!("yes {} {};", call.id, call.arguments),
            Verdict::Denied { call, .. } => format!("no {};", call.id),
            other => format!("{other:?};"),
        });
        let decided: String = decided.collect();
        let mut events = vec![start()];
        if request.decisions.is_empty() {
            events.extend(asks_for("c1"));
            events.extend(asks_for("c2"));
        } else {
            events.extend([delta(&decided), end()]);
        }
        stream::iter(events.into_iter().map(Ok))
    })
}

/// The ids of the interrupts with which a run ended.
fn raised(events: &[Value]) -> Vec<String> {
    let last = events.last().unwrap();
    assert_eq!(last["outcome"]["type"], "interrupt", "{last}");
    let interrupts = last["outcome"]["interrupts"].as_array().unwrap();
    interrupts.iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
}

fn approve(id: &str) -> Value {
    json!({"interruptId": id, "status": "resolved", "payload": {"approved": true}})
}

/// What was said in the run.
fn said(events: &[Value]) -> String {
    events.iter().filter_map(|event| event["delta"].as_str()).collect()
}

fn code(events: &[Value]) -> &str {
    events.last().unwrap()["code"].as_str().unwrap()
}

#[tokio::test]
async fn an_approval_reaches_the_agent_that_asked() {
    let server = TestServer::of(vec![asking()]).await;
    let asked = server.run("/agui/asking", &input("t", "r1")).await;
    assert_eq!(raised(&asked), ["reply:c1", "reply:c2"]);
    let entries = json!([
        {"interruptId": "reply:c2", "status": "resolved", "payload": {"approved": false}},
        {
            "interruptId": "reply:c1", "status": "resolved",
            "payload": {"approved": true, "editedArgs": {"disk": "b"}},
        },
    ]);
    let answered = server.run("/agui/asking", &resume("t", "r2", &entries)).await;
    assert_eq!(answered[0], expected::started("t", "r2"));
    assert_eq!(answered.last(), Some(&expected::success("t", "r2")));
    let said: String = answered
        .iter()
        .filter(|event| event["type"] == "TEXT_MESSAGE_CONTENT")
        .filter_map(|event| event["delta"].as_str())
        .collect();
    assert_eq!(said, r#"yes c1 {"disk":"b"};no c2;"#);
}

#[tokio::test]
async fn what_does_not_answer_every_interrupt_once_is_refused_and_leaves_them_open() {
    let server = TestServer::of(vec![asking(), says_its_id("other")]).await;
    let asked = server.run("/agui/asking", &input("t", "r1")).await;
    let open = asked.last().unwrap()["outcome"]["interrupts"].clone();
    let all = json!([approve("reply:c1"), approve("reply:c2")]);
    let contract = |message: &str| {
        let mut error = expected::error("AGUI_INTERRUPT_CONTRACT_ERROR", message);
        error["metadata"] = json!({"agentscope.openInterrupts": open});
        error
    };
    let cases = [
        (
            "/agui/asking",
            json!([]),
            "Resume must answer every open interrupt exactly once: no entry for reply:c1, \
             reply:c2.",
        ),
        (
            "/agui/asking",
            json!([approve("reply:c1")]),
            "Resume must answer every open interrupt exactly once: no entry for reply:c2.",
        ),
        (
            "/agui/asking",
            json!([approve("reply:c1"), approve("reply:c2"), approve("reply:c1")]),
            "Resume must answer every open interrupt exactly once: more than one entry for \
             reply:c1.",
        ),
        (
            "/agui/other",
            all.clone(),
            "The open interrupts of this thread belong to the agent \"asking\"; send the resume \
             to it.",
        ),
    ];
    for (path, entries, message) in cases {
        let events = server.run(path, &resume("t", "r2", &entries)).await;
        assert_eq!(events, [expected::started("t", "r2"), contract(message)]);
    }
    let answered = server.run("/agui/asking", &resume("t", "r3", &all)).await;
    assert_eq!(answered.last(), Some(&expected::success("t", "r3")));
}

#[tokio::test]
async fn edited_arguments_that_are_no_object_run_nothing_and_leave_the_interrupts_open() {
    let server = TestServer::of(vec![asking()]).await;
    server.run("/agui/asking", &input("t", "r1")).await;
    let bad = json!([
        {
            "interruptId": "reply:c1", "status": "resolved",
            "payload": {"approved": true, "editedArgs": "secret"},
        },
        approve("reply:c2"),
    ]);
    let events = server.run("/agui/asking", &resume("t", "r2", &bad)).await;
    let message = "answer to interrupt reply:c1: `editedArgs` must be a JSON object";
    let expected = [expected::started("t", "r2"), expected::error("INVALID_INPUT_ERROR", message)];
    assert_eq!(events, expected);
    let good = json!([approve("reply:c1"), approve("reply:c2")]);
    let answered = server.run("/agui/asking", &resume("t", "r3", &good)).await;
    assert_eq!(answered.last(), Some(&expected::success("t", "r3")));
}

#[tokio::test]
async fn entries_for_nothing_open_are_named_and_ignored() {
    let server = TestServer::of(vec![asking(), says_its_id("other")]).await;
    let unknown = json!([approve("nobody-asked")]);
    let events = server.run("/agui/other", &resume("t", "r0", &unknown)).await;
    let mut started = expected::started("t", "r0");
    started["metadata"] = json!({"agentscope.ignoredResume": ["nobody-asked"]});
    assert_eq!(events[0], started);
    assert_eq!(events.last(), Some(&expected::success("t", "r0")));

    server.run("/agui/asking", &input("t", "r1")).await;
    let all = json!([approve("reply:c1"), approve("nobody-asked"), approve("reply:c2")]);
    let events = server.run("/agui/asking", &resume("t", "r2", &all)).await;
    let mut started = expected::started("t", "r2");
    started["metadata"] = json!({"agentscope.ignoredResume": ["nobody-asked"]});
    assert_eq!(events[0], started);

    // Answered once is answered; another agent may have the thread now.
    let mut late = resume("t", "r3", &json!([approve("reply:c1")]));
    late["messages"] = json!([{"id": "u2", "role": "user", "content": "go on"}]);
    let events = server.run("/agui/other", &late).await;
    let mut started = expected::started("t", "r3");
    started["metadata"] = json!({"agentscope.ignoredResume": ["reply:c1"]});
    assert_eq!(events[0], started);
    assert_eq!(said(&events), "other");
}

#[tokio::test]
async fn a_resumed_run_that_fails_leaves_the_interrupts_open() {
    let failing = agent("a", |request| {
        let resumed = !request.decisions.is_empty();
        let retry = request.run_id.as_str() == "retry";
        let mut items = vec![Ok(start())];
        match (resumed, retry) {
            (false, _) => items.extend(asks_for("c1").into_iter().map(Ok)),
            (true, true) => items.extend([Ok(delta("done")), Ok(end())]),
            (true, false) => items.push(Err(AgentError {
                code: "MODEL_UNAVAILABLE",
                message: "The model cannot be reached.".to_owned(),
                cause: None,
            })),
        }
        stream::iter(items)
    });
    let server = TestServer::of(vec![failing]).await;
    server.run("/agui/a", &input("t", "r1")).await;
    let entries = json!([approve("reply:c1")]);
    let failed = server.run("/agui/a", &resume("t", "r2", &entries)).await;
    assert_eq!(code(&failed), "MODEL_UNAVAILABLE");
    let without = server.run("/agui/a", &input("t", "r3")).await;
    assert_eq!(code(&without), "AGUI_INTERRUPT_CONTRACT_ERROR");
    let again = server.run("/agui/a", &resume("t", "retry", &entries)).await;
    assert_eq!(again.last(), Some(&expected::success("t", "retry")));
}

/// Asks for `c1` beside a call of the client's own tool; says how many messages it was given when
/// it is resumed.
fn asking_beside_a_frontend_call() -> Registered {
    agent("a", |request| {
        let mut events = vec![start()];
        if request.decisions.is_empty() {
            let (reply, call) = ("reply".to_owned(), "f1".to_owned());
            let name = "front".to_owned();
            events.push(AgentEvent::local(AgentEventKind::ToolCallStart { reply, call, name }));
            events.extend(asks_for("c1"));
        } else {
            events.extend([delta(&format!("{} messages", request.messages.len())), end()]);
        }
        stream::iter(events.into_iter().map(Ok))
    })
}

#[tokio::test]
async fn a_run_that_fails_to_raise_what_is_deferred_leaves_it_with_its_history() {
    let failing =
        |_: Option<&AgentEvent>, events: Vec<Event>, context: &EnrichContext<'_>| match context
            .run_id
            .as_str()
        {
            "fails" => Err(EnrichError::new("not this one")),
            _ => Ok(events),
        };
    let extensions = Extensions::default().enricher(0, Arc::new(failing));
    let agents = vec![asking_beside_a_frontend_call()];
    let built = TestServer::built(Config::default(), agents, |b| b.extensions(extensions));
    let server = built.await;
    let mut first = input("t", "r1");
    first["tools"] = json!([{"name": "front", "description": "Runs at the client."}]);
    // The call that is asked for later is pending as well, which the checker cannot know.
    let asked = events(server.start("/agui/a", &first).await).await;
    let pending = json!({"type": "success", "pendingToolCallIds": ["f1", "c1"]});
    assert_eq!(asked.last().unwrap()["outcome"], pending);
    let nothing = |run: &str| {
        let mut input = input("t", run);
        input["messages"] = json!([]);
        input
    };
    assert_eq!(code(&server.run("/agui/a", &nothing("fails")).await), "INTERNAL_ERROR");
    assert_eq!(raised(&server.run("/agui/a", &nothing("r2")).await), ["reply:c1"]);
    let mut answer = resume("t", "r3", &json!([approve("reply:c1")]));
    answer["messages"] = json!([]);
    assert_eq!(said(&server.run("/agui/a", &answer).await), "3 messages");
}

#[tokio::test]
async fn an_answer_that_comes_late_answers_no_other_question() {
    // The agent uses the ids of its replies and calls again, and this server knows no history.
    let asking = agent("asking", |request| {
        let mut events = vec![start()];
        match &request.decisions[..] {
            [] => events.extend(asks_for("c1")),
            decided => events.extend([delta(&format!("{} decided", decided.len())), end()]),
        }
        stream::iter(events.into_iter().map(Ok))
    });
    let server = TestServer::of(vec![asking]).await;
    let asked = server.run("/agui/asking", &input("t", "r1")).await;
    assert_eq!(raised(&asked), ["reply:c1"]);
    let first = resume("t", "r2", &json!([approve("reply:c1")]));
    assert_eq!(said(&server.run("/agui/asking", &first).await), "1 decided");
    let mut next = input("t", "r3");
    next["messages"] = json!([{"id": "u2", "role": "user", "content": "again"}]);
    let asked = server.run("/agui/asking", &next).await;
    assert_eq!(raised(&asked), ["reply:c1:2"]);
    // The first answer once more: it is told what is open, and nothing runs.
    let repeated = server.run("/agui/asking", &first).await;
    assert_eq!(repeated[0]["metadata"], json!({"agentscope.ignoredResume": ["reply:c1"]}));
    assert_eq!(raised(&repeated), ["reply:c1:2"]);
    let second = resume("t", "r4", &json!([approve("reply:c1:2")]));
    assert_eq!(said(&server.run("/agui/asking", &second).await), "1 decided");
}

#[tokio::test]
async fn a_second_run_of_a_busy_thread_is_refused_and_the_first_goes_on() {
    let hanging = agent("hanging", |_request| then_silent(vec![start()]));
    let server = TestServer::of(vec![hanging, says_its_id("a")]).await;
    let mut first = Reader::new(server.start("/agui/hanging", &input("t", "r1")).await);
    assert_eq!(first.event().await, Some(expected::started("t", "r1")));
    let message = "This thread has a run already; wait for its end before starting another one.";
    let expected = [expected::started("t", "r2"), expected::error("THREAD_BUSY", message)];
    assert_eq!(server.run("/agui/a", &input("t", "r2")).await, expected);
    let other = server.run("/agui/a", &input("t2", "r2")).await;
    assert_eq!(other.last(), Some(&expected::success("t2", "r2")));
}
