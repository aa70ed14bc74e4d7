//! Artefacts of thinking: opaque, shown where reasoning is, and given back as they came.

use serde_json::{Value, json};

use super::{Setup, answered, called, events, frontend, posts, result, tools, user, with};
use crate::support::{
    input,
    log::Captured,
    model::{Answer, Endpoint, anthropic, dialect::Dialect, gemini, openai},
};

const SIGNATURE: &str = "EqQBCgIYAhIM/+sig==";

/// An answer of Anthropic's that begins with signed thinking.
fn signed(more: Vec<crate::support::model::Frame>, reason: &str) -> Answer {
    let head = [anthropic::start(&Value::Null)];
    let frames = head.into_iter().chain(anthropic::thinking(0, &["hm"], SIGNATURE)).chain(more);
    anthropic::answer(frames.chain(anthropic::end(reason, &Value::Null)))
}

fn thought() -> Value {
    json!({"type": "thinking", "thinking": "hm", "signature": SIGNATURE})
}

#[tokio::test]
async fn a_signature_comes_back_to_its_provider_as_it_was() {
    let log = Captured::start();
    let answers =
        [signed(anthropic::text(1, &["yes"]), "end_turn"), Dialect::Anthropic.says(&["x"])];
    let model = Endpoint::answers(answers).await;
    let setup = Setup::at(Dialect::Anthropic, &model.url()).agui("enable-reasoning", true);
    let server = setup.serve().await;
    let sealed = format!("anthropic.signature:{SIGNATURE}");
    let events = server.run("/agui/a", &input("t", "r")).await;
    assert_eq!(
        events,
        events::whole([
            events::thinking("id-1", &["hm"], Some(&sealed)),
            events::text("id-2", &["yes"]),
        ])
    );
    let messages = [
        user("u1", "hello"),
        json!({"id": "id-1", "role": "reasoning", "content": "hm", "encryptedValue": sealed}),
        answered(&events),
        user("u2", "go on"),
    ];
    server.run("/agui/a", &with("t", "r2", &messages)).await;
    assert_eq!(
        model.bodies()[1]["messages"],
        json!([
            {"role": "user", "content": [{"type": "text", "text": "hello"}]},
            {"role": "assistant", "content": [thought(), {"type": "text", "text": "yes"}]},
            {"role": "user", "content": [{"type": "text", "text": "go on"}]},
        ])
    );
    assert!(!log.text().contains(SIGNATURE));
}

#[tokio::test]
async fn memory_gives_thinking_back_with_its_signature() {
    let answers =
        [signed(anthropic::text(1, &["yes"]), "end_turn"), Dialect::Anthropic.says(&["x"])];
    let model = Endpoint::answers(answers).await;
    let setup = Setup::at(Dialect::Anthropic, &model.url()).agui("server-side-memory", true);
    let server = setup.agui("enable-reasoning", true).serve().await;
    server.run("/agui/a", &input("t", "r")).await;
    server.run("/agui/a", &with("t", "r2", &[user("u2", "go on")])).await;
    let assistant = &model.bodies()[1]["messages"][1];
    assert_eq!(assistant["content"], json!([thought(), {"type": "text", "text": "yes"}]));
}

#[tokio::test]
async fn thinking_stands_before_the_calls_that_it_led_to() {
    let tools = tools().await;
    let call = anthropic::call(1, "c1", "add", &["{}"]);
    let answers = [signed(call, "tool_use"), Dialect::Anthropic.says(&["done"])];
    let model = Endpoint::answers(answers).await;
    let setup = Setup::at(Dialect::Anthropic, &model.url()).tool(posts(&tools, "add"));
    setup.serve().await.run("/agui/a", &input("t", "r")).await;
    let call = json!({"type": "tool_use", "id": "c1", "name": "add", "input": {}});
    assert_eq!(
        model.bodies()[1]["messages"][1],
        json!({"role": "assistant", "content": [thought(), call]})
    );
}

#[tokio::test]
async fn hidden_thinking_comes_back_whole() {
    let redacted = json!({"type": "redacted_thinking", "data": "opaque=="});
    let frames = [anthropic::start(&Value::Null)]
        .into_iter()
        .chain(anthropic::block(0, &redacted, &[]))
        .chain(anthropic::text(1, &["yes"]))
        .chain(anthropic::end("end_turn", &Value::Null));
    let answers = [anthropic::answer(frames), Dialect::Anthropic.says(&["x"])];
    let model = Endpoint::answers(answers).await;
    let setup = Setup::at(Dialect::Anthropic, &model.url()).agui("server-side-memory", true);
    let server = setup.agui("enable-reasoning", true).serve().await;
    server.run("/agui/a", &input("t", "r")).await;
    server.run("/agui/a", &with("t", "r2", &[user("u2", "go on")])).await;
    assert_eq!(
        model.bodies()[1]["messages"][1]["content"],
        json!([redacted, {"type": "text", "text": "yes"}])
    );
}

#[tokio::test]
async fn the_signature_of_a_call_comes_back_with_the_call() {
    let tools = tools().await;
    let call = gemini::call("add", &json!({"n": 1}), Some(SIGNATURE));
    let answers =
        [gemini::answer([call, gemini::finish("STOP", None)]), Dialect::Gemini.says(&["done"])];
    let model = Endpoint::answers(answers).await;
    let setup = Setup::at(Dialect::Gemini, &model.url()).tool(posts(&tools, "add"));
    let server = setup.agui("enable-reasoning", true).serve().await;
    let events = server.run("/agui/a", &input("t", "r")).await;
    let start = events.iter().find(|event| event["type"] == "TOOL_CALL_START").unwrap();
    let artefacts: Vec<_> =
        events.iter().filter(|event| event["type"] == "REASONING_ENCRYPTED_VALUE").collect();
    assert_eq!(
        artefacts,
        [&json!({
            "type": "REASONING_ENCRYPTED_VALUE", "subtype": "tool-call",
            "entityId": start["toolCallId"], "encryptedValue": format!("gemini.signature:{SIGNATURE}"),
        })]
    );
    let function = json!({"id": start["toolCallId"], "name": "add", "args": {"n": 1}});
    assert_eq!(
        model.bodies()[1]["contents"][1],
        json!({"role": "model", "parts": [
            {"functionCall": function, "thoughtSignature": SIGNATURE},
        ]})
    );
}

#[tokio::test]
async fn an_artefact_of_another_provider_is_left_out() {
    let log = Captured::start();
    let model = Endpoint::answers([openai::says(&["x"])]).await;
    let server = Setup::new(&model).agui("enable-reasoning", true).serve().await;
    let sealed = format!("anthropic.signature:{SIGNATURE}");
    let messages = [
        user("u1", "hello"),
        json!({"id": "t1", "role": "reasoning", "content": "hm", "encryptedValue": sealed}),
        json!({"id": "a1", "role": "assistant", "content": "yes"}),
        user("u2", "go on"),
    ];
    let events = server.run("/agui/a", &with("t", "r", &messages)).await;
    assert_eq!(events.last(), Some(&events::success("t", "r")));
    assert!(!model.request(0).await.text.contains(SIGNATURE));
    assert!(!log.text().contains(SIGNATURE));
}

#[tokio::test]
async fn thinking_before_a_call_of_the_front_end_is_there_when_it_answers() {
    let call = anthropic::call(1, "c1", "paint", &["{}"]);
    let answers = [signed(call, "tool_use"), Dialect::Anthropic.says(&["done"])];
    let model = Endpoint::answers(answers).await;
    let setup = Setup::at(Dialect::Anthropic, &model.url()).agui("server-side-memory", true);
    let server = setup.agui("enable-reasoning", true).serve().await;
    let mut first = input("t", "r");
    first["tools"] = json!([frontend("paint")]);
    server.run("/agui/a", &first).await;
    let mut then = with("t", "r2", &[result("x1", "c1", "ok")]);
    then["tools"] = first["tools"].clone();
    server.run_but(&["TOOL-14"], "/agui/a", &then).await;
    let call = json!({"type": "tool_use", "id": "c1", "name": "paint", "input": {}});
    assert_eq!(
        model.bodies()[1]["messages"][1],
        json!({"role": "assistant", "content": [thought(), call]})
    );
}

/// The conversation of a client whose tool was called behind thinking that it may not see.
fn transcript(thread: &str) -> Value {
    let messages =
        [user("u1", "hello"), called("id-1", "c1", "paint", "{}"), result("x1", "c1", "ok")];
    let mut input = with(thread, "r2", &messages);
    input["tools"] = json!([frontend("paint")]);
    input
}

#[tokio::test]
async fn thinking_that_no_client_may_see_is_there_when_the_front_end_answers() {
    let thinking = json!({"type": "enabled", "budget_tokens": 1024});
    let call = json!({"type": "tool_use", "id": "c1", "name": "paint", "input": {}});
    for memory in [true, false] {
        let calls = anthropic::call(1, "c1", "paint", &["{}"]);
        let says = || Dialect::Anthropic.says(&["done"]);
        let model = Endpoint::answers([signed(calls, "tool_use"), says(), says()]).await;
        let setup = Setup::at(Dialect::Anthropic, &model.url()).agui("server-side-memory", memory);
        let server = setup.model("parameters", json!({"thinking": thinking})).serve().await;
        let mut input = input("t", "r");
        input["tools"] = json!([frontend("paint")]);
        let events = server.run("/agui/a", &input).await;
        let painting = events::call("id-1", "c1", "paint", &["{}"]);
        let pending = events::pending(&["c1"]);
        assert_eq!(events, events::run(events::started("t", "r"), [painting], pending));
        // The second thread never had that thinking, and the provider refuses thinking where the
        // turn did not begin with some.
        for (thread, content, thinks) in
            [("t", json!([thought(), call]), thinking.clone()), ("t2", json!([call]), Value::Null)]
        {
            let events = server.run("/agui/a", &transcript(thread)).await;
            assert_eq!(events.last(), Some(&events::success(thread, "r2")));
            let bodies = model.bodies();
            let body = bodies.last().unwrap();
            assert_eq!(body["thinking"], thinks, "{thread} {memory}");
            assert_eq!(body["messages"][1], json!({"role": "assistant", "content": content}));
        }
    }
}
