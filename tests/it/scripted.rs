//! Scripted agents through the whole server, every stream checked: runtime context, approvals.

use serde_json::{Value, json};

use super::support::{TestServer, client, events, input, scripted};

const ECHO: &[&str] = &[
    r#"{"type":"AGENT_START","replyId":"R"}"#,
    r#"{"type":"TEXT_BLOCK_DELTA","replyId":"R","blockId":"B","delta":"${threadId} ${context.tenant}"}"#,
    r#"{"type":"TOOL_CALL_START","replyId":"R","toolCallId":"c1","toolCallName":"f"}"#,
    r#"{"type":"TOOL_CALL_DELTA","toolCallId":"c1","delta":"${threadId}"}"#,
    r#"{"type":"TOOL_RESULT_TEXT_DELTA","toolCallId":"c1","delta":"${threadId}"}"#,
    r#"{"type":"TOOL_RESULT_END","replyId":"R","toolCallId":"c1","state":"success"}"#,
    r#"{"type":"AGENT_END","replyId":"R"}"#,
];

fn echo() -> String {
    scripted(&[("a", ECHO)])
}

#[tokio::test]
async fn runtime_context_reaches_the_agent() {
    let yaml =
        format!("{}  agui: {{runtime-context: {{tenant: {{header: X-Tenant-Id}}}}}}\n", echo());
    let server = TestServer::start(&yaml).await;
    let request = client().post(server.url("/agui/a")).header("x-tenant-id", "acme");
    let answer = request.json(&input("t", "r", "x")).send().await.expect("an answer");
    let all = events(&answer.bytes().await.expect("a body"));
    assert_eq!(all[2]["delta"], "t acme");
    server.stop().await;
}

const APPROVAL: &str = r#"agentscope:
  agents:
    ask:
      type: scripted
      turns:
        - when: {resume: approved}
          events:
            - '{"type":"AGENT_START","replyId":"R2"}'
            - '{"type":"TOOL_RESULT_TEXT_DELTA","toolCallId":"c1","delta":"ran ${args.c1}"}'
            - '{"type":"TOOL_RESULT_END","replyId":"R2","toolCallId":"c1","state":"success"}'
            - '{"type":"AGENT_END","replyId":"R2"}'
        - when: {resume: any}
          events: ['{"type":"AGENT_START","replyId":"R3"}', '{"type":"AGENT_END","replyId":"R3"}']
        - when: {always: true}
          events:
            - '{"type":"AGENT_START","replyId":"R1"}'
            - '{"type":"REQUIRE_USER_CONFIRM","replyId":"R1","toolCalls":[{"type":"tool_use","id":"c1","name":"delete","input":{"path":"/a","force":true}},{"type":"tool_use","id":"c2","name":"delete","input":{"path":"/b"}}]}'
            - '{"type":"AGENT_END","replyId":"R1"}'
    other:
      type: scripted
      turns: [{events: ['{"type":"AGENT_START","replyId":"R"}', '{"type":"AGENT_END","replyId":"R"}']}]
"#;

fn resume(run: &str, entries: Value) -> Value {
    json!({"threadId":"t","runId":run,"protocolVersion":"1.0","messages":[],"resume":entries})
}

fn entry(id: &str, payload: Value) -> Value {
    json!({"interruptId": id, "status": "resolved", "payload": payload})
}

#[tokio::test]
async fn an_approval_is_asked_answered_and_executed_once() {
    let server = TestServer::start(APPROVAL).await;
    let asked = server.run("/agui/ask", &input("t", "r1", "x")).await;
    let outcome = &asked.last().expect("an end")["outcome"];
    let ids: Vec<&Value> =
        outcome["interrupts"].as_array().expect("a list").iter().map(|i| &i["id"]).collect();
    assert_eq!(ids, ["R1:c1", "R1:c2"]);

    let code = |events: &[Value]| events.last().expect("an end")["code"].clone();
    let yes = json!({"approved": true});
    let partial = resume("r2", json!([entry("R1:c1", yes.clone())]));
    let refused = server.run("/agui/ask", &partial).await;
    assert_eq!(code(&refused), "AGUI_INTERRUPT_CONTRACT_ERROR");
    let open = &refused.last().expect("an end")["metadata"]["agentscope.openInterrupts"];
    assert_eq!(open, &outcome["interrupts"]);
    let none = server.run("/agui/ask", &input("t", "r3", "x")).await;
    assert_eq!(code(&none), "AGUI_INTERRUPT_CONTRACT_ERROR");
    let other = server.run("/agui/other", &input("t", "r4", "x")).await;
    assert_eq!(code(&other), "AGUI_INTERRUPT_CONTRACT_ERROR");
    let bad = json!([
        entry("R1:c1", json!({"approved": true, "editedArgs": "x"})),
        entry("R1:c2", yes.clone())
    ]);
    assert_eq!(code(&server.run("/agui/ask", &resume("r5", bad)).await), "INVALID_INPUT_ERROR");

    let edited = json!({"approved": true, "editedArgs": {"path": "/c"}});
    let full = json!([entry("R1:c1", edited), entry("R1:c2", yes), entry("ghost", json!({}))]);
    let answer = server.run("/agui/ask", &resume("r6", full.clone())).await;
    assert_eq!(answer[0]["metadata"], json!({"agentscope.ignoredResume": ["ghost"]}));
    assert_eq!(answer[1]["toolCallId"], "c1");
    assert_eq!(answer[1]["content"], "ran {\"path\":\"/c\"}");

    let again = server.run("/agui/other", &resume("r7", full)).await;
    let ignored = json!({"agentscope.ignoredResume": ["R1:c1", "R1:c2", "ghost"]});
    assert_eq!(again[0]["metadata"], ignored);
    server.stop().await;
}

#[tokio::test]
async fn only_the_boolean_true_approves() {
    for payload in [json!({"approved":"true"}), json!({"approved":1}), json!({}), json!(true)] {
        let server = TestServer::start(APPROVAL).await;
        server.run("/agui/ask", &input("t", "r1", "x")).await;
        let entries = json!([entry("R1:c1", payload.clone()), entry("R1:c2", payload)]);
        let denied = server.run("/agui/ask", &resume("r2", entries)).await;
        let contents: Vec<&Value> =
            denied.iter().filter_map(|event| event.get("content")).collect();
        assert_eq!(contents, ["Permission denied by user", "Permission denied by user"]);
        server.stop().await;
    }
}
