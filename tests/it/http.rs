//! The server over real HTTP: bad requests, routing, CORS, streams, isolation, interrupts.

use std::time::Duration;

use futures_util::{StreamExt, future::join_all};
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
const HANG: &[&str] =
    &[r#"{"type":"TEXT_BLOCK_DELTA","replyId":"R","blockId":"B","delta":"x"}"#, r#"{"@":"hang"}"#];

fn echo() -> String {
    scripted(&[("a", ECHO), ("b", ECHO), ("hang", HANG)])
}

/// Status, and the problem without its instance, which must be the request id.
async fn problem(answer: reqwest::Response) -> (u16, Value) {
    let status = answer.status().as_u16();
    assert_eq!(answer.headers()["content-type"], "application/problem+json");
    assert_eq!(answer.headers()["access-control-allow-origin"], "*");
    let id = answer.headers()["x-request-id"].to_str().expect("text").to_owned();
    let mut body: Value = answer.json().await.expect("JSON");
    assert_eq!(body["instance"], id.as_str());
    body.as_object_mut().expect("an object").remove("instance");
    (status, body)
}

fn expected(status: u16, title: &str, detail: &str, pointer: Option<&str>) -> (u16, Value) {
    let mut body = json!({"type":"about:blank","title":title,"status":status,"detail":detail});
    if let Some(pointer) = pointer {
        body["pointer"] = pointer.into();
    }
    (status, body)
}

async fn post_raw(server: &TestServer, path: &str, body: impl Into<reqwest::Body>) -> (u16, Value) {
    let request = client().post(server.url(path)).header("content-type", "application/json");
    let request = request.header("origin", "http://localhost:3000").body(body);
    problem(request.send().await.expect("an answer")).await
}

#[tokio::test]
async fn bad_bodies_are_refused_with_their_place_and_without_their_content() {
    let server = TestServer::start(&echo()).await;
    let (status, body) = post_raw(&server, "/agui/a", "{\"threadId\": SECRET").await;
    assert_eq!((status, &body["title"]), (400, &json!("Bad Request")));
    let detail = body["detail"].as_str().expect("text");
    assert!(detail.contains("line 1, column 1") && !detail.contains("SECRET"), "{detail}");
    let (status, body) = post_raw(&server, "/agui/a", "[".repeat(10_000)).await;
    assert_eq!((status, body["title"].as_str()), (400, Some("Bad Request")));
    assert_eq!(
        post_raw(&server, "/agui/a", r#"{"threadId":7,"runId":"r","messages":[]}"#).await,
        expected(
            422,
            "Unprocessable Entity",
            "expected a string, found a number",
            Some("/threadId")
        )
    );
    let (status, body) = post_raw(&server, "/agui/a", r#"{"threadId":"t","messages":[]}"#).await;
    assert_eq!((status, &body["pointer"]), (422, &json!("/runId")));
    let maybe = r#"{"threadId":"t","runId":"r","messages":[],
        "resume":[{"interruptId":"i","status":"maybe"}]}"#;
    let (status, body) = post_raw(&server, "/agui/a", maybe).await;
    assert_eq!((status, &body["pointer"]), (422, &json!("/resume/0/status")));
    let events = server.run("/agui/a", &input("t", "r", "still there")).await;
    assert_eq!(events[0]["type"], "RUN_STARTED");
    server.stop().await;
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_before_it_is_read() {
    let server = TestServer::start(&echo()).await;
    let detail = "The body is longer than the 16777216 bytes that this server takes.";
    let whole = reqwest::Body::from(vec![b' '; (16 << 20) + 1]);
    let refused = expected(413, "Payload Too Large", detail, None);
    assert_eq!(post_raw(&server, "/agui/a", whole).await, refused);
    let six = "x".repeat(6 << 20);
    let events = server.run("/agui/a", &input("t", "r", &six)).await;
    assert_eq!(events.last().expect("an end")["type"], "RUN_FINISHED");
    server.stop().await;
}

#[tokio::test]
async fn agents_are_found_by_path_then_header_then_forwarded_props_then_default() {
    let server = TestServer::start(&format!("{}  agui: {{default-agent-id: a}}\n", echo())).await;
    let unknown = expected(404, "Not Found", "There is no agent of this id.", None);
    assert_eq!(problem(server.post("/agui/nope", &input("t", "r", "x")).await).await, unknown);
    assert_eq!(problem(server.post("/agui/run/nope", &input("t", "r", "x")).await).await, unknown);
    let with_header = |path: &str, id: &str| {
        let request = client().post(server.url(path)).header("X-Agent-Id", id);
        request.json(&input("t", "r", "x")).send()
    };
    let refused = with_header("/agui", "nope").await.expect("an answer");
    assert_eq!(problem(refused).await, unknown);
    assert_eq!(with_header("/agui/b", "nope").await.expect("an answer").status(), 200);
    let mut forwarded = input("t", "r", "x");
    forwarded["forwardedProps"] = json!({"agentId": "nope"});
    assert_eq!(problem(server.post("/agui/run", &forwarded).await).await, unknown);
    assert_eq!(with_header("/agui", "b").await.expect("an answer").status(), 200);
    assert_eq!(server.post("/agui", &input("t", "r", "x")).await.status(), 200);
    server.stop().await;
}

#[tokio::test]
async fn wrong_methods_types_and_paths_are_problems_that_a_page_can_read() {
    let server = TestServer::start(&echo()).await;
    let get = client().get(server.url("/agui/a")).header("origin", "http://x").send();
    let answer = get.await.expect("an answer");
    assert_eq!(answer.headers()["allow"], "POST");
    let detail = "This path does not take this method; see the header Allow.";
    assert_eq!(problem(answer).await, expected(405, "Method Not Allowed", detail, None));
    let form = client().post(server.url("/agui/a")).body("x=1").send();
    let detail = "The body must be JSON: send the header `Content-Type: application/json`.";
    let refused = expected(415, "Unsupported Media Type", detail, None);
    assert_eq!(problem(form.await.expect("an answer")).await, refused);
    let nowhere = client().get(server.url("/nowhere")).send().await.expect("an answer");
    let refused = expected(404, "Not Found", "There is nothing at this path.", None);
    assert_eq!(problem(nowhere).await, refused);
    server.stop().await;
}

#[tokio::test]
async fn a_preflight_allows_what_front_ends_send_and_foreign_origins_get_nothing() {
    let yaml = format!("{}  agui: {{cors-allowed-origins: [\"http://ok.example\"]}}\n", echo());
    let server = TestServer::start(&yaml).await;
    let preflight = |origin: &'static str| {
        client()
            .request(reqwest::Method::OPTIONS, server.url("/agui/a"))
            .header("origin", origin)
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "authorization,content-type,x-agent-id")
            .send()
    };
    let answer = preflight("http://ok.example").await.expect("an answer");
    assert_eq!(answer.headers()["access-control-allow-origin"], "http://ok.example");
    assert_eq!(
        answer.headers()["access-control-allow-headers"],
        "authorization,content-type,x-agent-id"
    );
    let vary = answer.headers().get_all("vary").iter().filter_map(|value| value.to_str().ok());
    assert!(vary.collect::<Vec<_>>().join(",").contains("origin"));
    let answer = preflight("http://evil.example").await.expect("an answer");
    assert!(!answer.headers().contains_key("access-control-allow-origin"));
    server.stop().await;
}

#[tokio::test]
async fn a_stream_has_its_headers_line_feeds_only_and_ends_with_its_end() {
    let server = TestServer::start(&echo()).await;
    let answer = server.post("/agui/a", &input("t9", "r9", "x")).await;
    let header = |name: &str| answer.headers()[name].to_str().expect("text").to_owned();
    assert_eq!(header("content-type"), "text/event-stream");
    assert_eq!(header("cache-control"), "no-cache, no-transform");
    assert_eq!(header("x-accel-buffering"), "no");
    assert!(!answer.headers().contains_key("content-length"));
    let body = answer.bytes().await.expect("a body");
    assert!(!body.contains(&b'\r'));
    let types: Vec<Value> = events(&body).iter().map(|event| event["type"].clone()).collect();
    assert_eq!(
        types,
        [
            "RUN_STARTED",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "TOOL_CALL_START",
            "TOOL_CALL_ARGS",
            "TOOL_CALL_END",
            "TOOL_CALL_RESULT",
            "RUN_FINISHED"
        ]
    );
    server.stop().await;
}

#[tokio::test]
async fn silence_is_filled_with_comments_and_a_run_has_its_limit() {
    let yaml = format!("{}  agui: {{heartbeat-interval: 20ms, run-timeout: 300ms}}\n", echo());
    let server = TestServer::start(&yaml).await;
    let body = server.post("/agui/hang", &input("t", "r", "x")).await.text().await.expect("a body");
    let comments = body.split("\n\n").filter(|frame| *frame == ": keep-alive").count();
    assert!(comments >= 1, "{body}");
    let mut all = events(body.as_bytes());
    let mut last = all.pop().expect("an end");
    assert!(last.as_object_mut().expect("object").remove("timestamp").is_some());
    let message = "The run took longer than this server allows.";
    assert_eq!(last, json!({"type":"RUN_ERROR","message":message,"code":"TIMEOUT_ERROR"}));
    assert_eq!(all.pop().expect("a closer")["type"], "TEXT_MESSAGE_END");
    assert!(body.trim_end().ends_with('}'), "nothing follows the end");
    server.stop().await;
}

#[tokio::test]
async fn threads_of_one_agent_never_mix() {
    let server = TestServer::start(&echo()).await;
    let runs = (0..50).map(|n| {
        let server = &server;
        async move {
            let thread = format!("thread-{n}");
            let events = server.run("/agui/a", &input(&thread, "r", "x")).await;
            assert_eq!(events[2]["delta"], format!("{thread} "));
            assert_eq!(events[5]["delta"], thread);
            assert_eq!(events[7]["content"], thread);
        }
    });
    join_all(runs).await;
    server.stop().await;
}

#[tokio::test]
async fn a_second_run_on_a_busy_thread_is_refused_and_a_client_that_leaves_frees_it() {
    let server = TestServer::start(&echo()).await;
    let first = server.post("/agui/hang", &input("t1", "r1", "x")).await;
    let mut first = first.bytes_stream();
    let chunk = first.next().await.expect("a chunk").expect("bytes");
    assert_eq!(events(&chunk)[0]["runId"], "r1");
    let busy = server.run("/agui/a", &input("t1", "r2", "x")).await;
    let codes: Vec<&Value> = busy.iter().map(|event| &event["code"]).collect();
    assert_eq!(codes, [&Value::Null, &json!("THREAD_BUSY")]);
    let other = server.run("/agui/a", &input("t2", "r3", "x")).await;
    assert_eq!(other.last().expect("an end")["type"], "RUN_FINISHED");
    drop(first);
    // The server notices the closed connection by itself; until then the thread is busy.
    let freed = async {
        loop {
            let events = server.run("/agui/a", &input("t1", "r4", "x")).await;
            if events.last().expect("an end")["type"] == "RUN_FINISHED" {
                break;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), freed).await.expect("the thread is free again");
    server.stop().await;
}

#[tokio::test]
async fn a_panic_in_an_agent_ends_its_run_only() {
    let panics: &[&str] = &[r#"{"type":"AGENT_START","replyId":"R"}"#, r#"{"@":"panic"}"#];
    let server = TestServer::start(&scripted(&[("p", panics), ("a", ECHO)])).await;
    let mut events = server.run("/agui/p", &input("t", "r", "x")).await;
    let mut last = events.pop().expect("an end");
    last.as_object_mut().expect("object").remove("timestamp");
    let message = "The run failed because of an internal error.";
    assert_eq!(last, json!({"type":"RUN_ERROR","message":message,"code":"INTERNAL_ERROR"}));
    let events = server.run("/agui/a", &input("t", "r2", "x")).await;
    assert_eq!(events.last().expect("an end")["type"], "RUN_FINISHED");
    server.stop().await;
}

#[tokio::test]
async fn a_server_that_stops_ends_open_runs_with_an_error() {
    let server = TestServer::start(&echo()).await;
    let answer = server.post("/agui/hang", &input("t", "r", "x")).await;
    let (body, ()) = tokio::join!(answer.bytes(), server.stop());
    let last = events(&body.expect("a whole body")).pop().expect("an end");
    assert_eq!(
        (&last["type"], &last["code"]),
        (&json!("RUN_ERROR"), &json!("SERVER_SHUTTING_DOWN"))
    );
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

#[tokio::test]
async fn the_built_in_resolvers_can_be_extended_in_rust() {
    use agentscope_agui::{
        agents::RuntimeContext,
        server::{ContextRequest, ResolveError, RuntimeContextResolver},
    };
    struct Tenant;
    impl RuntimeContextResolver for Tenant {
        fn resolve(&self, request: &ContextRequest<'_>) -> Result<RuntimeContext, ResolveError> {
            let seen = format!(
                "{}-{}-{}",
                request.method(),
                request.path_agent_id.unwrap_or("none"),
                request.query("q").unwrap_or_default()
            );
            let spoofed = ("sessionId".to_owned(), "other".into());
            Ok(RuntimeContext::from_iter([("tenant".to_owned(), seen.into()), spoofed]))
        }
    }
    let server =
        TestServer::start_with(&echo(), |b| b.resolver(0, std::sync::Arc::new(Tenant))).await;
    let events = server.run("/agui/a?q=7", &input("t", "r", "x")).await;
    assert_eq!(events[2]["delta"], "t POST-a-7");
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
