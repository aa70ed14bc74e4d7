//! Requests that are refused before a run starts: status, headers and the whole problem document.

use agentscope_agui::config::Config;
use reqwest::{Body, RequestBuilder, Response};
use serde_json::{Value, json};

use super::support::{
    agents::{agent, says_its_id, start, then_silent},
    expected, input,
    server::TestServer,
    sse::Reader,
};

/// Sends the request under the id `req-1` and gives status and problem.
async fn refused(request: RequestBuilder) -> (Response, u16) {
    let response = request.header("X-Request-Id", "req-1").send().await.unwrap();
    let status = response.status().as_u16();
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    assert_eq!(response.headers()["x-request-id"], "req-1");
    (response, status)
}

async fn problem(request: RequestBuilder) -> Value {
    let (response, status) = refused(request).await;
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["status"], status);
    body
}

fn document(status: u16, title: &str, detail: &str) -> Value {
    json!({
        "type": "about:blank", "title": title, "status": status, "detail": detail,
        "instance": "req-1",
    })
}

async fn server() -> TestServer {
    TestServer::of(vec![says_its_id("a"), says_its_id("b")]).await
}

fn json_body(server: &TestServer, body: impl Into<Body>) -> RequestBuilder {
    server.post("/agui/a").header("Content-Type", "application/json").body(body)
}

#[tokio::test]
async fn what_is_not_json_is_a_400_with_line_and_column() {
    let server = server().await;
    let cases = [
        ("", "EOF while parsing a value", 1, 0),
        ("{\"threadId\":\n  secret}", "expected value", 2, 3),
        ("{\"threadId\": \"t\"} trailing", "trailing characters", 1, 19),
    ];
    for (body, message, line, column) in cases {
        let detail = format!("The body is not JSON: {message} at line {line}, column {column}.");
        let expected = document(400, "Bad Request", &detail);
        assert_eq!(problem(json_body(&server, body)).await, expected, "{body}");
    }
    let nested = "[".repeat(10_000) + &"]".repeat(10_000);
    let whole =
        format!("{{\"threadId\":\"t\",\"runId\":\"r\",\"messages\":[],\"state\":{nested}}}");
    let body = problem(json_body(&server, whole)).await;
    assert_eq!(body["status"], 400);
    assert_eq!(body["title"], "Bad Request");
    let not_utf8 = problem(json_body(&server, vec![b'"', 0xff, b'"'])).await;
    assert_eq!(not_utf8["status"], 400);
    // The server is unharmed.
    assert_eq!(server.run("/agui/a", &input("t", "r")).await.len(), 5);
}

#[tokio::test]
async fn what_is_no_run_input_is_a_422_with_a_pointer() {
    let server = server().await;
    let change = |pointer: &str, value: Value| {
        let mut input = input("t", "r");
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let parent = input.pointer_mut(parent).unwrap();
        parent.as_object_mut().unwrap().insert(name.to_owned(), value);
        input
    };
    let without = |name: &str| {
        let mut input = input("t", "r");
        input.as_object_mut().unwrap().remove(name);
        input
    };
    let cases = [
        (json!([]), "", "expected an object, found a list"),
        (without("threadId"), "/threadId", "missing; expected a string"),
        (without("runId"), "/runId", "missing; expected a string"),
        (without("messages"), "/messages", "missing; expected a list of messages"),
        (change("/threadId", json!(7)), "/threadId", "expected a string, found a number"),
        (change("/threadId", json!("x".repeat(1025))), "/threadId", "an id has 1 to 1024 bytes"),
        (change("/threadId", json!("")), "/threadId", "an id has 1 to 1024 bytes"),
        (change("/runId", json!("x".repeat(1025))), "/runId", "an id has 1 to 1024 bytes"),
        (
            change("/parentRunId", json!("x".repeat(1025))),
            "/parentRunId",
            "an id has 1 to 1024 bytes",
        ),
        (
            change("/protocolVersion", json!(1)),
            "/protocolVersion",
            "expected a string, found a number",
        ),
        (
            change("/messages/0/content", json!(null)),
            "/messages/0/content",
            "expected a string or a list of content parts, found null",
        ),
        (
            change("/tools", json!([{"name": "secret"}])),
            "/tools/0/description",
            "missing; expected a string",
        ),
        (
            change("/resume", json!([{"interruptId": "i", "status": "secret"}])),
            "/resume/0/status",
            "expected \"resolved\" or \"cancelled\", found another string",
        ),
    ];
    for (input, pointer, detail) in cases {
        let mut expected = document(422, "Unprocessable Entity", detail);
        expected["pointer"] = pointer.into();
        assert_eq!(problem(server.post("/agui/a").json(&input)).await, expected, "{input}");
    }
}

#[tokio::test]
async fn unknown_agents_and_paths_are_a_404_that_lists_nothing() {
    let server = server().await;
    let unknown = document(404, "Not Found", "There is no agent of this id.");
    for path in ["/agui/nope", "/agui/run/nope", "/agui/%ff"] {
        assert_eq!(problem(server.post(path).json(&input("t", "r"))).await, unknown, "{path}");
    }
    assert_eq!(problem(server.get("/agui/nope/capabilities")).await, unknown);
    for name in [&b"nope"[..], b"caf\xe9"] {
        let named = server.post("/agui").header("X-Agent-Id", name).json(&input("t", "r"));
        assert_eq!(problem(named).await, unknown, "{name:?}");
    }
    let detail = "The request names no agent, and this server has no default one.";
    let nameless = problem(server.post("/agui").json(&input("t", "r"))).await;
    assert_eq!(nameless, document(404, "Not Found", detail));
    let nothing = document(404, "Not Found", "There is nothing at this path.");
    for path in ["/", "/nope", "/agui/a/b/c"] {
        assert_eq!(problem(server.get(path)).await, nothing, "{path}");
    }
}

#[tokio::test]
async fn a_wrong_method_is_a_405_that_names_the_right_ones() {
    let server = server().await;
    let detail = "This path does not take this method; see the header Allow.";
    let cases = [
        ("GET", "/agui", "POST"),
        ("DELETE", "/agui/run", "POST"),
        ("PUT", "/agui/a", "POST"),
        ("GET", "/agui/run/a", "POST"),
        ("POST", "/agui/agents", "GET,HEAD"),
        ("POST", "/agui/a/capabilities", "GET,HEAD"),
        ("POST", "/healthz", "GET,HEAD"),
    ];
    for (method, path, allow) in cases {
        let (response, status) = refused(server.request(method, path)).await;
        assert_eq!(status, 405, "{method} {path}");
        assert_eq!(response.headers()["allow"], allow, "{method} {path}");
        let body: Value = response.json().await.unwrap();
        assert_eq!(body, document(405, "Method Not Allowed", detail));
    }
}

#[tokio::test]
async fn other_content_types_are_a_415() {
    let server = server().await;
    let body = input("t", "r").to_string();
    let detail = "The body must be JSON: send the header `Content-Type: application/json`.";
    let expected = document(415, "Unsupported Media Type", detail);
    for sent in [None, Some("text/plain"), Some("application/x-www-form-urlencoded")] {
        let mut request = server.post("/agui/a").body(body.clone());
        if let Some(sent) = sent {
            request = request.header("Content-Type", sent);
        }
        assert_eq!(problem(request).await, expected, "{sent:?}");
    }
    let taken = ["application/json; charset=utf-8", "APPLICATION/JSON", "application/x.y+json"];
    for sent in taken {
        let request = server.post("/agui/a").header("Content-Type", sent).body(body.clone());
        assert_eq!(request.send().await.unwrap().status(), 200, "{sent}");
    }
}

#[tokio::test]
async fn a_compressed_body_is_a_415() {
    let server = server().await;
    let sent = |encoding| {
        json_body(&server, input("t", "r").to_string()).header("Content-Encoding", encoding)
    };
    let detail = "The body must not be compressed: send no `Content-Encoding`.";
    let expected = document(415, "Unsupported Media Type", detail);
    assert_eq!(problem(sent("gzip")).await, expected);
    assert_eq!(sent("identity").send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_body_over_the_limit_is_a_413_and_not_read_to_its_end() {
    let mut config = Config::default();
    config.server.request_body_limit = 1000;
    let server = TestServer::with(config, vec![says_its_id("a")]).await;
    let detail = "The body is longer than the 1000 bytes that this server takes.";
    let expected = document(413, "Payload Too Large", detail);
    assert_eq!(problem(json_body(&server, vec![b' '; 1001])).await, expected);
    // Without a declared length; the body would never end.
    let endless = futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b' '; 100]));
    assert_eq!(problem(json_body(&server, Body::wrap_stream(endless))).await, expected);
    let mut exact = input("t", "r").to_string();
    exact.push_str(&" ".repeat(1000 - exact.len()));
    assert_eq!(json_body(&server, exact).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn more_runs_than_allowed_are_a_429_until_one_ends() {
    let mut config = Config::default();
    config.server.max_concurrent_runs = 1;
    let hanging = agent("hanging", |_request| then_silent(vec![start()]));
    let server = TestServer::with(config, vec![hanging, says_its_id("a")]).await;
    let mut first = Reader::new(server.start("/agui/hanging", &input("t1", "r1")).await);
    assert_eq!(first.event().await.unwrap(), expected::started("t1", "r1"));
    let (response, status) = refused(server.post("/agui/a").json(&input("t2", "r2"))).await;
    assert_eq!(status, 429);
    assert_eq!(response.headers()["retry-after"], "1");
    let body: Value = response.json().await.unwrap();
    let detail = "Too many runs at once; try again soon.";
    assert_eq!(body, document(429, "Too Many Requests", detail));
    drop(first);
    // The slot is free as soon as the server has seen the client leave.
    loop {
        let request = server.post("/agui/a").json(&input("t2", "r2"));
        match request.send().await.unwrap().status().as_u16() {
            429 => tokio::task::yield_now().await,
            status => break assert_eq!(status, 200),
        }
    }
}
