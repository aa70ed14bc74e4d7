//! Approved calls are executed once, whatever fails behind them.

use serde_json::{Value, json};

use super::{Setup, code, events, posts, raised, tools, with};
use crate::support::{
    input,
    model::{Answer, Endpoint, openai},
    server::TestServer,
};

/// A model that calls `wipe`, which asks first, and then gives these answers.
async fn asking(then: impl IntoIterator<Item = Answer>) -> (TestServer, Endpoint, Endpoint) {
    let first = openai::asks("c1", "wipe", r#"{"disk":"a"}"#);
    let model = Endpoint::answers([first].into_iter().chain(then)).await;
    let tools = tools().await;
    let setup = Setup::new(&model).tool(posts(&tools, "wipe"));
    let server = setup.agent("permission", json!({"ask": ["wipe"]})).serve().await;
    (server, model, tools)
}

/// Runs to the ask and gives the interrupt's id.
async fn ask(server: &TestServer) -> String {
    let events = server.run("/agui/a", &input("t", "r1")).await;
    let called = events::call("id-1", "c1", "wipe", &[r#"{"disk":"a"}"#]);
    let end = events.last().unwrap().clone();
    assert_eq!(events, events::run(events::started("t", "r1"), [called], end));
    let [id] = raised(&events)[..] else { panic!("{events:?}") };
    id.to_owned()
}

fn answer(run: &str, id: &str, payload: Value) -> Value {
    let mut input = with("t", run, &[]);
    input["resume"] = json!([{"interruptId": id, "status": "resolved", "payload": payload}]);
    input
}

#[tokio::test]
async fn a_failure_behind_an_approved_call_does_not_execute_it_again() {
    let broken = openai::failure(500, &json!({"message": "no"}));
    let (server, model, tools) = asking([broken, openai::says(&["wiped"])]).await;
    let id = ask(&server).await;
    let done = || events::result("id-2", "c1", r#"/wipe {"disk":"a"}"#);
    let failed = server.run("/agui/a", &answer("r2", &id, json!({"approved": true}))).await;
    let error = events::error("MODEL_ERROR", "The model failed.");
    assert_eq!(failed, events::run(events::started("t", "r2"), [done()], error));
    assert_eq!(tools.bodies(), [json!({"disk": "a"})]);

    // The front end still has the interrupt and answers it again.
    let again = server.run("/agui/a", &answer("r3", &id, json!({"approved": true}))).await;
    assert_eq!(again[0], events::started("t", "r3"));
    assert_eq!(again.last(), Some(&events::success("t", "r3")));
    assert_eq!(super::said(&again), "wiped");
    assert_eq!(tools.requests().len(), 1);
    let conversation = [
        "system: Be brief.",
        "user: hello",
        r#"assistant: wipe({"disk":"a"}) as c1"#,
        r#"tool c1: /wipe {"disk":"a"}"#,
    ];
    assert_eq!(openai::lines(&model.bodies()[1]), conversation);
    assert_eq!(openai::lines(&model.bodies()[2]), conversation);
}

#[tokio::test]
async fn what_failed_before_the_call_leaves_the_interrupt_open() {
    let (server, _model, tools) = asking([openai::says(&["wiped"])]).await;
    let id = ask(&server).await;
    // Arguments that the tool's schema refuses: nothing ran.
    let edited = json!({"approved": true, "editedArgs": [1]});
    let refused = server.run("/agui/a", &answer("r2", &id, edited)).await;
    assert_eq!(code(&refused), "INVALID_INPUT_ERROR");
    assert_eq!(tools.requests().len(), 0);
    let events = server.run("/agui/a", &answer("r3", &id, json!({"approved": true}))).await;
    assert_eq!(
        events,
        events::run(
            events::started("t", "r3"),
            [
                events::result("id-2", "c1", r#"/wipe {"disk":"a"}"#),
                events::text("id-3", &["wiped"]),
            ],
            events::success("t", "r3"),
        )
    );
    assert_eq!(tools.requests().len(), 1);
}

#[tokio::test]
async fn edited_arguments_are_what_runs_and_what_the_model_reads() {
    let (server, model, tools) = asking([openai::says(&["wiped"])]).await;
    let id = ask(&server).await;
    let edited = json!({"approved": true, "editedArgs": {"disk": "b"}});
    let events = server.run("/agui/a", &answer("r2", &id, edited)).await;
    assert_eq!(events[1], events::result("id-2", "c1", r#"/wipe {"disk":"b"}"#)[0]);
    assert_eq!(tools.bodies(), [json!({"disk": "b"})]);
    assert_eq!(openai::lines(&model.bodies()[1])[3], r#"tool c1: /wipe {"disk":"b"}"#);
}

#[tokio::test]
async fn a_denial_is_a_result_with_its_reason_and_nothing_runs() {
    let (server, model, tools) = asking([openai::says(&["then not"])]).await;
    let id = ask(&server).await;
    let denied = json!({"approved": false, "reason": "not on a Friday"});
    let events = server.run("/agui/a", &answer("r2", &id, denied)).await;
    assert_eq!(events[1]["type"], "TOOL_CALL_RESULT");
    assert_eq!(events[1]["metadata"], json!({"agentscope.state": "denied"}));
    assert_eq!(super::said(&events), "then not");
    assert_eq!(tools.requests().len(), 0);
    let told = openai::lines(&model.bodies()[1]).pop().unwrap();
    assert!(told.starts_with("tool c1: ") && told.contains("not on a Friday"), "{told}");
}
