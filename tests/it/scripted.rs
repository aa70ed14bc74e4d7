//! Scripted agents through the whole server: placeholders, approvals.

use serde_json::{Value, json};

use super::support::{
    expected::{started, success, text},
    input,
    log::Captured,
    resume, script,
    server::{TestServer, events},
};

#[tokio::test]
async fn runtime_context_reaches_the_agent() {
    let delta = r#"{"type":"TEXT_BLOCK_DELTA","replyId":"R","blockId":"B","delta":"${threadId} ${context.tenant}"}"#;
    let context = "  agui: {runtime-context: {tenant: {header: X-Tenant-Id}}}\n";
    let end = r#"{"type":"AGENT_END","replyId":"R"}"#;
    let server = TestServer::of_yaml(&(script(&[delta, end]) + context)).await;
    let request = server.post("/agui/a").header("x-tenant-id", "acme").json(&input("t", "r"));
    let found = events(request.send().await.unwrap()).await;
    let mut expected = vec![started("t", "r")];
    expected.extend(text("id-1", &["t acme"]));
    expected.push(success("t", "r"));
    assert_eq!(found, expected);
}

const APPROVAL: &str = r#"agentscope:
  agents:
    a:
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
            - '{"type":"REQUIRE_USER_CONFIRM","replyId":"R1","toolCalls":[{"type":"tool_use","id":"c1","name":"delete","input":{"path":"/a"}}]}'
            - '{"type":"AGENT_END","replyId":"R1"}'
"#;

/// Asks on the thread and answers with `payload`.
async fn answered(server: &TestServer, thread: &str, payload: &Value) -> Vec<Value> {
    let asked = server.run("/agui/a", &input(thread, "r1")).await;
    assert_eq!(asked.last().unwrap()["outcome"]["interrupts"][0]["id"], "R1:c1");
    let entries = json!([{"interruptId": "R1:c1", "status": "resolved", "payload": payload}]);
    server.run("/agui/a", &resume(thread, "r2", &entries)).await
}

fn result(content: &str) -> Value {
    json!({
        "type": "TOOL_CALL_RESULT", "messageId": "id-1", "toolCallId": "c1",
        "content": content, "role": "tool",
    })
}

#[tokio::test]
async fn an_approved_call_runs_with_the_edited_arguments() {
    let server = TestServer::of_yaml(APPROVAL).await;
    let payload = json!({"approved": true, "editedArgs": {"path": "/c"}});
    let found = answered(&server, "t", &payload).await;
    let ran = result(r#"ran {"path":"/c"}"#);
    assert_eq!(found, [started("t", "r2"), ran, success("t", "r2")]);
}

#[tokio::test]
async fn only_the_boolean_true_approves() {
    let server = TestServer::of_yaml(APPROVAL).await;
    let mut denied = result("Permission denied by user");
    denied["metadata"] = json!({"agentscope.state": "denied"});
    let payloads = [json!({"approved":"true"}), json!({"approved":1}), json!({}), json!(true)];
    for (n, payload) in payloads.iter().enumerate() {
        let thread = format!("t{n}");
        let found = answered(&server, &thread, payload).await;
        let expected = [started(&thread, "r2"), denied.clone(), success(&thread, "r2")];
        assert_eq!(found, expected, "{payload}");
    }
}

#[tokio::test]
async fn a_line_that_is_skipped_however_often_is_one_warning_of_the_run() {
    let misfit = r#"{"@":"state","patch":[{"op":"remove","path":"/x"}]}"#;
    let often = format!(r#"{{"@":"repeat","times":50,"line":{misfit}}}"#);
    let log = Captured::at(tracing::Level::WARN);
    let lines = [r#"{"type":"AGENT_START"}"#, &often, misfit, r#"{"type":"AGENT_END"}"#];
    let server = TestServer::of_yaml(&script(&lines)).await;
    for run in ["r1", "r2"] {
        let events = server.run("/agui/a", &input("t", run)).await;
        assert_eq!(events, [started("t", run), success("t", run)]);
    }
    let text = log.text();
    let warned: Vec<&str> = text
        .lines()
        .filter_map(|line| Some(line.split_once("a line of the script was skipped ")?.1))
        .collect();
    let line = |n| format!("script.line={n} fault=\"a patch that does not apply was left out\"");
    assert_eq!(warned, [line(2), line(3), line(2), line(3)]);
}
