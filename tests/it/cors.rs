//! CORS on every answer: a page can read refusals as well as streams.

use agentscope_agui::{
    agents::ContextValues,
    config::Config,
    server::{ContextRequest, ResolveError, RuntimeContextResolver},
};
use reqwest::{RequestBuilder, Response};
use std::sync::Arc;

use super::support::{agents::says_its_id, input, server::TestServer};

const ORIGIN: &str = "http://localhost:3000";

/// Breaks requests that ask for it.
struct Panics;

impl RuntimeContextResolver for Panics {
    fn resolve(&self, request: &ContextRequest<'_>) -> Result<ContextValues, ResolveError> {
        assert!(request.query("panic").is_none(), "on purpose");
        Ok(ContextValues::new())
    }
}

async fn server(change: impl FnOnce(&mut Config)) -> TestServer {
    let mut config = Config::default();
    config.server.request_body_limit = 1000;
    change(&mut config);
    let agents = vec![says_its_id("a")];
    TestServer::built(config, agents, |builder| builder.resolver(0, Arc::new(Panics))).await
}

/// A request of every kind with the status that answers it.
fn all_kinds(server: &TestServer) -> Vec<(RequestBuilder, u16)> {
    let json = |path: &str, body: &str| {
        let request = server.post(path).header("Content-Type", "application/json");
        request.body(body.to_owned())
    };
    vec![
        (server.post("/agui/a").json(&input("t", "r")), 200),
        (server.get("/agui/agents"), 200),
        (json("/agui/a", "{"), 400),
        (server.post("/agui/nope").json(&input("t", "r")), 404),
        (server.get("/nowhere"), 404),
        (server.get("/agui/a"), 405),
        (json("/agui/a", &" ".repeat(1001)), 413),
        (server.post("/agui/a").body("{}"), 415),
        (json("/agui/a", "{}"), 422),
        (server.post("/agui/a?panic=1").json(&input("t", "r")), 500),
    ]
}

fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response.headers().get(name).map(|value| value.to_str().unwrap())
}

#[tokio::test]
async fn any_origin_may_read_every_answer() {
    let server = server(|_config| ()).await;
    for (request, status) in all_kinds(&server) {
        let response = request.header("Origin", ORIGIN).send().await.unwrap();
        assert_eq!(response.status(), status);
        assert_eq!(header(&response, "access-control-allow-origin"), Some("*"), "{status}");
        assert_eq!(header(&response, "vary"), None, "{status}");
        let exposed = header(&response, "access-control-expose-headers");
        assert_eq!(exposed, Some("x-request-id,retry-after"), "{status}");
        if status >= 400 {
            assert_eq!(header(&response, "content-type"), Some("application/problem+json"));
        }
    }
}

#[tokio::test]
async fn a_named_origin_may_read_every_answer_and_others_none() {
    let server = server(|config| {
        config.agui.cors_allowed_origins = vec![ORIGIN.to_owned(), "https://b.example".to_owned()];
        config.agui.cors_allow_credentials = true;
    })
    .await;
    for (request, status) in all_kinds(&server) {
        let response = request.header("Origin", ORIGIN).send().await.unwrap();
        assert_eq!(response.status(), status);
        assert_eq!(header(&response, "access-control-allow-origin"), Some(ORIGIN), "{status}");
        assert_eq!(header(&response, "access-control-allow-credentials"), Some("true"));
        assert_eq!(header(&response, "vary"), Some("origin"), "{status}");
    }
    let stranger = server.get("/healthz").header("Origin", "https://evil.example");
    let response = stranger.send().await.unwrap();
    assert_eq!(header(&response, "access-control-allow-origin"), None);
    assert_eq!(header(&response, "vary"), Some("origin"));
}

#[tokio::test]
async fn a_preflight_allows_the_headers_that_front_ends_send() {
    let server = server(|_config| ()).await;
    let wanted = "content-type,authorization,x-agent-id,x-tenant-id";
    let preflight = server
        .request("OPTIONS", "/agui/a")
        .header("Origin", ORIGIN)
        .header("Access-Control-Request-Method", "POST")
        .header("Access-Control-Request-Headers", wanted);
    let response = preflight.send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(header(&response, "access-control-allow-origin"), Some("*"));
    assert_eq!(header(&response, "access-control-allow-headers"), Some(wanted));
    let methods = header(&response, "access-control-allow-methods").unwrap();
    assert!(methods.split(',').any(|method| method == "POST"), "{methods}");
}

#[tokio::test]
async fn switched_off_there_are_no_cors_headers() {
    let server = server(|config| config.agui.cors_enabled = false).await;
    for (request, status) in all_kinds(&server) {
        let response = request.header("Origin", ORIGIN).send().await.unwrap();
        assert_eq!(response.status(), status);
        assert_eq!(header(&response, "access-control-allow-origin"), None, "{status}");
    }
}
