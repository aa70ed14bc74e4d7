//! Agents that hand tasks to other agents.

use serde_json::{Value, json};

use super::{Setup, events, posts, tools, with};
use crate::support::{
    input,
    model::{
        Answer, Endpoint, Gate,
        openai::{self, asks, call, finish, says, usage},
    },
    server::TestServer,
    sse::Reader,
};

/// A model for all agents: asked with an agent's instructions and what was said since, a line for
/// each message.
async fn model(answer: impl Fn(&str, &[&str]) -> Answer + Send + Sync + 'static) -> Endpoint {
    Endpoint::with(move |request| {
        let lines = openai::lines(&request.body);
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let (system, said) = lines.split_first().unwrap();
        answer(system.strip_prefix("system: ").unwrap(), said)
    })
    .await
}

impl Setup {
    /// An agent that is a sub-agent of another one; its instructions are its id.
    pub(super) fn child(mut self, of: &str, id: &str) -> Self {
        let agents = &mut self.0["agentscope"]["agents"];
        let named =
            json!({"type": "react", "model": "mock", "sys-prompt": id, "name": id.to_uppercase()});
        agents[id] = named;
        agents[of]["subagents"] = json!([id]);
        self
    }

    /// A key of an agent.
    pub(super) fn of(mut self, agent: &str, key: &str, value: Value) -> Self {
        self.0["agentscope"]["agents"][agent][key] = value;
        self
    }
}

fn task(text: &str) -> String {
    json!({ "task": text }).to_string()
}

/// Hands two tasks to `r` in one answer.
fn delegates_two() -> Answer {
    let (one, two) = (task("one"), task("two"));
    openai::answer([call(0, "c1", "r", &one), call(1, "c2", "r", &two), finish("tool_calls")])
}

fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

/// The invocations of a run: the delegating call, the id, the parent's id.
fn started(events: &[Value]) -> Vec<(Option<&str>, &str, Option<&str>)> {
    let started = of_type(events, "SUBAGENT_STARTED").into_iter().map(|event| {
        let id = event["subagentRunId"].as_str().unwrap();
        (event["parentToolCallId"].as_str(), id, event["parentSubagentRunId"].as_str())
    });
    let mut started: Vec<_> = started.collect();
    started.sort_unstable();
    started
}

/// What an invocation said.
fn said_by(events: &[Value], id: &str) -> String {
    let texts = of_type(events, "TEXT_MESSAGE_CONTENT").into_iter();
    let own = texts.filter(|event| event["subagentRunId"] == id);
    own.map(|event| event["delta"].as_str().unwrap()).collect()
}

/// The results of a run, by call: whose, what it says, its state.
fn results(events: &[Value]) -> Vec<(&str, Option<&str>, &str, Option<&str>)> {
    let results = of_type(events, "TOOL_CALL_RESULT").into_iter().map(|event| {
        (
            event["toolCallId"].as_str().unwrap(),
            event["subagentRunId"].as_str(),
            event["content"].as_str().unwrap(),
            event["metadata"]["agentscope.state"].as_str(),
        )
    });
    let mut results: Vec<_> = results.collect();
    results.sort_unstable();
    results
}

/// The interrupts of a run: id, and the invocation that asked.
fn asked(events: &[Value]) -> Vec<(String, String)> {
    let last = events.last().unwrap();
    assert_eq!(last["outcome"]["type"], "interrupt", "{last}");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let interrupts = last["outcome"]["interrupts"].as_array().unwrap();
    interrupts.iter().map(|one| (text(&one["id"]), text(&one["subagentRunId"]))).collect()
}

fn answering(run: &str, answers: &[(&str, Value)]) -> Value {
    let mut input = with("t", run, &[]);
    let entry = |(id, payload): &(&str, Value)| json!({"interruptId": id, "status": "resolved", "payload": payload});
    input["resume"] = answers.iter().map(entry).collect();
    input
}

fn yes() -> Value {
    json!({"approved": true})
}

#[tokio::test]
async fn two_children_of_one_agent_work_at_once_and_each_belongs_to_its_call() {
    let gate = Gate::default();
    let waits = gate.clone();
    let model = model(move |agent, said| match (agent, said) {
        ("Be brief.", [_]) => delegates_two(),
        ("Be brief.", _) => openai::answer([
            openai::text("Both."),
            finish("stop"),
            usage(json!({"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6})),
        ]),
        // The first ends after the second.
        ("r", ["user: one"]) => says(&["found one"]).held_until(&waits),
        ("r", ["user: two"]) => openai::answer([
            openai::text("found two"),
            finish("stop"),
            usage(json!({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12})),
        ]),
        other => panic!("{other:?}"),
    })
    .await;
    let server = Setup::new(&model).child("a", "r").serve().await;
    let mut reader = Reader::new(server.start("/agui/a", &input("t", "r1")).await);
    let mut got = Vec::new();
    while let Some(event) = reader.event().await {
        if event["type"] == "SUBAGENT_FINISHED" {
            gate.open();
        }
        got.push(event);
    }
    let [(Some("c1"), one, None), (Some("c2"), two, None)] = started(&got)[..] else {
        panic!("{got:#?}")
    };
    assert_eq!((said_by(&got, one), said_by(&got, two)), ("found one".into(), "found two".into()));
    let finished = of_type(&got, "SUBAGENT_FINISHED");
    let finished: Vec<_> =
        finished.iter().map(|event| event["subagentRunId"].as_str().unwrap()).collect();
    assert_eq!(finished, [two, one]);
    assert_eq!(results(&got), [("c1", None, "found one", None), ("c2", None, "found two", None)]);
    let usage = json!({"inputTokens": 15, "outputTokens": 3, "totalTokens": 18});
    assert_eq!(got.last(), Some(&events::costing(events::success("t", "r1"), usage)));
    // The parent's model reads the results in the order of its calls.
    let asked = openai::lines(model.bodies().last().unwrap());
    assert_eq!(
        asked[2..],
        [
            r#"assistant: r({"task":"one"}) as c1 | r({"task":"two"}) as c2"#,
            "tool c1: found one",
            "tool c2: found two",
        ]
    );
}

#[tokio::test]
async fn a_child_has_children_down_to_the_limit() {
    let model = model(|agent, said| match (agent, said.last().copied().unwrap()) {
        ("Be brief.", "user: hello") => asks("c1", "r", &task("look")),
        ("r", "user: look") => asks("c1", "d", &task("dig")),
        ("d", "user: dig") => says(&["dug"]),
        ("r", _) => says(&["looked"]),
        _ => says(&["done"]),
    })
    .await;
    let setup = || Setup::new(&model).child("a", "r").child("r", "d").child("d", "a2");
    let server = setup().agent("max-subagent-depth", 2).serve().await;
    let got = server.run("/agui/a", &input("t", "r1")).await;
    let [(Some(_), r, None), (Some(_), d, Some(parent))] = &{
        let mut started = started(&got);
        started.sort_unstable_by_key(|(.., parent)| *parent);
        started
    }[..] else {
        panic!("{got:#?}")
    };
    assert_eq!((parent, said_by(&got, d), said_by(&got, r)), (r, "dug".into(), "looked".into()));
    // The tools that each was offered: `d` none of its own any more.
    let offered = |agent: &str| {
        let bodies = model.bodies();
        let of_agent = bodies.iter().find(|body| body["messages"][0]["content"] == agent).unwrap();
        let tools = of_agent["tools"].as_array().cloned().unwrap_or_default();
        tools.iter().map(|tool| tool["function"]["name"].clone()).collect::<Vec<_>>()
    };
    assert_eq!((offered("Be brief."), offered("r")), (vec![json!("r")], vec![json!("d")]));
    assert_eq!(offered("d"), Vec::<Value>::new());
}

/// `r` has the tool `wipe` that asks first.
async fn wiping(model: &Endpoint, child: &str) -> (Setup, Endpoint) {
    let tools = tools().await;
    let setup = Setup::new(model).child("a", "r").child("r", "d");
    let setup = setup.of(child, "tools", json!([posts(&tools, "wipe")]));
    (setup.of(child, "permission", json!({"ask": ["wipe"]})), tools)
}

/// Both children call `wipe` under the same id, with their task as the argument.
async fn both_ask() -> (TestServer, Endpoint, Endpoint, Vec<Value>) {
    let model = model(|agent, said| match (agent, said) {
        ("Be brief.", [_]) => delegates_two(),
        ("Be brief.", _) => says(&["Both."]),
        ("r", ["user: one"]) => asks("k", "wipe", r#"{"disk":"one"}"#),
        ("r", ["user: two"]) => asks("k", "wipe", r#"{"disk":"two"}"#),
        ("r", said) => says(&[said.last().unwrap()]),
        other => panic!("{other:?}"),
    })
    .await;
    let (setup, tools) = wiping(&model, "r").await;
    let server = setup.serve().await;
    let got = server.run("/agui/a", &input("t", "r1")).await;
    (server, model, tools, got)
}

#[tokio::test]
async fn two_invocations_of_one_agent_ask_and_each_gets_its_own_answer() {
    let (server, _model, tools, first) = both_ask().await;
    let before = started(&first);
    let [(Some("c1"), one, None), (Some("c2"), two, None)] = before[..] else {
        panic!("{first:#?}")
    };
    let asked = asked(&first);
    let of = |child: &str| asked.iter().find(|(_, asker)| asker == child).unwrap().0.as_str();
    assert_eq!((asked.len(), tools.bodies().len()), (2, 0));
    let no = json!({"approved": false, "reason": "not that one"});
    let edited = json!({"approved": true, "editedArgs": {"disk": "other"}});
    let resume = answering("r2", &[(of(one), no), (of(two), edited)]);
    let got = server.run("/agui/a", &resume).await;
    // Nothing of the calls is announced again, the invocations go on under their ids.
    let ids: Vec<&str> = started(&got).iter().map(|(_, id, _)| *id).collect();
    let mut expected = [one, two];
    expected.sort_unstable();
    assert_eq!(ids, expected);
    assert_eq!(tools.bodies(), [json!({"disk": "other"})]);
    assert_eq!(
        (said_by(&got, one), said_by(&got, two)),
        (
            "tool k: Permission denied by user: not that one".into(),
            r#"tool k: /wipe {"disk":"other"}"#.into()
        )
    );
    let results = results(&got);
    let of_call = |call: &str| results.iter().find(|result| result.0 == call).unwrap().2;
    assert_eq!(of_call("c1"), "tool k: Permission denied by user: not that one");
    assert_eq!(of_call("c2"), r#"tool k: /wipe {"disk":"other"}"#);
    assert_eq!(results.len(), 4);
    assert_eq!(got.last(), Some(&events::success("t", "r2")));
}

#[tokio::test]
async fn a_childs_approved_call_runs_once_though_the_run_failed_behind_it() {
    let failed = std::sync::atomic::AtomicBool::new(false);
    let model = model(move |agent, said| match (agent, said) {
        ("Be brief.", [_]) => asks("c1", "r", &task("one")),
        ("Be brief.", _) if !failed.swap(true, std::sync::atomic::Ordering::SeqCst) => {
            openai::failure(500, &json!({"message": "no"}))
        }
        ("Be brief.", _) => says(&["Done."]),
        ("r", ["user: one"]) => asks("k", "wipe", r#"{"disk":"one"}"#),
        ("r", said) => says(&[said.last().unwrap()]),
        other => panic!("{other:?}"),
    })
    .await;
    let (setup, tools) = wiping(&model, "r").await;
    let server = setup.serve().await;
    let first = server.run("/agui/a", &input("t", "r1")).await;
    let asked = asked(&first);
    let resume = |run| answering(run, &[(&asked[0].0, yes())]);
    let broken = server.run("/agui/a", &resume("r2")).await;
    assert_eq!(super::code(&broken), "MODEL_ERROR");
    let got = server.run("/agui/a", &resume("r3")).await;
    assert_eq!(got.last(), Some(&events::success("t", "r3")));
    assert_eq!(tools.bodies(), [json!({"disk": "one"})]);
    // The child had done its task, and its parent knows it.
    let told = results(&broken).into_iter().find(|result| result.0 == "c1");
    assert_eq!(told, Some(("c1", None, r#"tool k: /wipe {"disk":"one"}"#, None)));
    let last = openai::lines(model.bodies().last().unwrap());
    assert_eq!(last.last().unwrap(), r#"tool c1: tool k: /wipe {"disk":"one"}"#);
}

#[tokio::test]
async fn an_ask_two_levels_down_suspends_all_above_it_and_goes_on_there() {
    let model = model(|agent, said| match (agent, said) {
        ("Be brief.", [_]) => asks("c1", "r", &task("look")),
        ("Be brief.", _) => says(&["Done."]),
        ("r", [_]) => asks("c1", "d", &task("dig")),
        ("d", [_]) => asks("c1", "wipe", r#"{"disk":"x"}"#),
        (_, said) => says(&[said.last().unwrap()]),
    })
    .await;
    let (setup, tools) = wiping(&model, "d").await;
    let server = setup.serve().await;
    let first = server.run("/agui/a", &input("t", "r1")).await;
    let asked = asked(&first);
    let mut before: Vec<&str> = started(&first).iter().map(|(_, id, _)| *id).collect();
    let ended: Vec<&Value> = of_type(&first, "SUBAGENT_FINISHED");
    let outcomes: Vec<&Value> = ended.iter().map(|event| &event["outcome"]).collect();
    assert_eq!(
        outcomes,
        [
            &json!({"type": "suspended", "interruptIds": [asked[0].0]}),
            &json!({"type": "suspended"}),
        ]
    );
    let got = server.run("/agui/a", &answering("r2", &[(&asked[0].0, yes())])).await;
    let mut after: Vec<&str> = started(&got).iter().map(|(_, id, _)| *id).collect();
    before.sort_unstable();
    after.sort_unstable();
    assert_eq!(before, after);
    assert_eq!(tools.bodies(), [json!({"disk": "x"})]);
    assert_eq!(got.last(), Some(&events::success("t", "r2")));
    let last = openai::lines(model.bodies().last().unwrap());
    assert_eq!(last.last().unwrap(), r#"tool c1: tool c1: tool c1: /wipe {"disk":"x"}"#);
}

#[tokio::test]
async fn rules_that_a_person_accepts_for_a_child_hold_for_the_thread() {
    let (server, _model, tools, first) = both_ask().await;
    let interrupts = first.last().unwrap()["outcome"]["interrupts"].clone();
    let answers: Vec<(&str, Value)> = interrupts
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let rules = &one["metadata"]["agentscope.suggestedRules"];
            (one["id"].as_str().unwrap(), json!({"approved": true, "rules": rules}))
        })
        .collect();
    server.run("/agui/a", &answering("r2", &answers)).await;
    assert_eq!(tools.bodies().len(), 2);
    // The next run asks nobody; without memory on the server the history begins anew.
    let got = server.run("/agui/a", &input("t", "r3")).await;
    assert_eq!(got.last(), Some(&events::success("t", "r3")));
    assert_eq!(tools.bodies().len(), 4);
}

#[tokio::test]
async fn a_child_that_fails_is_a_result_of_its_parent() {
    let model = model(|agent, said| match (agent, said) {
        ("Be brief.", [_]) => asks("c1", "r", &task("one")),
        ("Be brief.", said) => says(&[said.last().unwrap()]),
        ("r", _) => openai::failure(401, &json!({"message": "secret"})),
        other => panic!("{other:?}"),
    })
    .await;
    let server = Setup::new(&model).child("a", "r").serve().await;
    let got = server.run("/agui/a", &input("t", "r1")).await;
    let errors = of_type(&got, "SUBAGENT_ERROR");
    assert_eq!((errors.len(), &errors[0]["code"]), (1, &json!("MODEL_AUTH_ERROR")));
    assert_eq!(results(&got), [("c1", None, "The sub-agent failed.", Some("error"))]);
    assert_eq!(super::said(&got), "tool c1: The sub-agent failed.");
    assert_eq!(got.last(), Some(&events::success("t", "r1")));
}

#[tokio::test]
async fn a_run_that_is_cancelled_stops_its_children() {
    let model = model(|agent, said| match (agent, said) {
        ("Be brief.", [_]) => asks("c1", "r", &task("one")),
        ("r", _) => Answer::never(),
        other => panic!("{other:?}"),
    })
    .await;
    let server = Setup::new(&model).child("a", "r").serve().await;
    let mut reader = Reader::new(server.start("/agui/a", &input("t", "r1")).await);
    let childs = model.request(1).await;
    assert_eq!(server.post("/agui/threads/t/cancel").send().await.unwrap().status(), 202);
    let mut got = Vec::new();
    while let Some(event) = reader.event().await {
        got.push(event);
    }
    assert_eq!(got.last().unwrap()["outcome"], json!({"type": "cancelled"}));
    assert_eq!(of_type(&got, "SUBAGENT_STARTED").len(), 1);
    let ended = of_type(&got, "SUBAGENT_ERROR").len() + of_type(&got, "SUBAGENT_FINISHED").len();
    assert_eq!(ended, 1);
    assert_eq!(childs.fate().await, crate::support::model::Fate::Left);
}
