//! Who asks: taken from the header of the proxy, never from the body; what belongs to one user
//! is out of reach for another.

use agentscope_agui::config::{AuthConfig, Config};
use reqwest::RequestBuilder;
use serde_json::{Value, json};

use super::support::{
    agents::{agent, asks_for, delta, end, start, then_silent},
    expected, input,
    log::Captured,
    resume, saying,
    server::{TestServer, checked, events},
    sse::Reader,
};

const USER: &str = "X-User-Id";
const ORIGIN: &str = "http://localhost:3000";

fn trusting() -> Config {
    let mut config = Config::default();
    config.server.auth = AuthConfig::TrustedHeader { header: USER.parse().unwrap() };
    config.server.request_body_limit = 1000;
    config
}

/// A server that trusts the header: `asks` asks for approval and says who asked for it, `hangs`
/// never ends.
async fn server() -> TestServer {
    let asks = agent("asks", |request| {
        let resumed = !request.decisions.is_empty();
        let mut events = vec![start()];
        match resumed {
            true => events.extend([delta("done"), end()]),
            false => events.extend(asks_for("c1")),
        }
        futures_util::stream::iter(events.into_iter().map(Ok))
    });
    let hangs = agent("hangs", |_request| then_silent(vec![start()]));
    TestServer::with(trusting(), vec![asks, hangs]).await
}

/// The events of a run of this user.
async fn run_as(server: &TestServer, user: &str, path: &str, input: &Value) -> Vec<Value> {
    let response = server.post(path).header(USER, user).json(input).send().await.unwrap();
    assert_eq!(response.status(), 200);
    checked(response, input).await
}

/// A request of each kind that only known callers may send.
fn guarded(server: &TestServer) -> Vec<RequestBuilder> {
    let run = |path: &str| server.post(path).json(&input("t", "r"));
    vec![
        run("/agui/asks"),
        run("/agui/run/asks"),
        run("/agui"),
        run("/agui/run"),
        run("/agui/nobody"),
        server.post("/agui/asks").body("no JSON"),
        server.post("/agui/asks").header("Content-Type", "application/json").body("x".repeat(1001)),
        server.get("/agui/agents"),
        server.get("/agui/asks/capabilities"),
    ]
}

#[tokio::test]
async fn a_caller_who_is_not_known_is_refused_before_anything_else_is_looked_at() {
    let server = server().await;
    let long = "x".repeat(1025);
    let cases: [(&[&[u8]], &str); 5] = [
        (&[], "the header that names the user is missing"),
        (&[b" \t"], "the header that names the user is blank"),
        (&[b"caf\xe9"], "the header that names the user is not UTF-8 text"),
        (&[b"alice", b"alice"], "the header that names the user stands twice"),
        (&[long.as_bytes()], "the name of the user is longer than 1024 bytes"),
    ];
    for (values, reason) in cases {
        for mut request in guarded(&server) {
            for value in values {
                request = request.header(USER, *value);
            }
            let request = request.header("Origin", ORIGIN).header("X-Request-Id", "req-1");
            let response = request.send().await.unwrap();
            assert_eq!(response.status(), 401, "{reason}");
            assert_eq!(response.headers()["content-type"], "application/problem+json");
            assert_eq!(response.headers()["access-control-allow-origin"], "*");
            assert_eq!(
                response.json::<Value>().await.unwrap(),
                json!({
                    "type": "about:blank", "title": "Unauthorized", "status": 401,
                    "detail": format!("The server does not know who asks: {reason}."),
                    "instance": "req-1",
                })
            );
        }
    }
    let longest = server.get("/agui/agents").header(USER, "x".repeat(1024));
    assert_eq!(longest.send().await.unwrap().status(), 200);
    let not_ascii = server.get("/agui/agents").header(USER, "Zoë".as_bytes());
    assert_eq!(not_ascii.send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn health_and_preflights_are_for_everybody() {
    let server = server().await;
    for path in ["/healthz", "/readyz"] {
        assert_eq!(server.get(path).send().await.unwrap().status(), 200, "{path}");
    }
    let preflight = server
        .request("OPTIONS", "/agui/asks")
        .header("Origin", ORIGIN)
        .header("Access-Control-Request-Method", "POST")
        .header("Access-Control-Request-Headers", "content-type,x-user-id");
    let response = preflight.send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["access-control-allow-headers"], "content-type,x-user-id");
    assert_eq!(server.get("/nowhere").send().await.unwrap().status(), 404);
}

/// Says who asks as far as it is told.
const ECHO: &str = "agentscope:\n  agui: {runtime-context: {user: {principal: true}}}\n  agents:\n    \
                    a: {type: scripted, turns: [{events: ['{\"type\":\"TEXT_BLOCK_DELTA\",\
                    \"blockId\":\"b\",\"delta\":\"<${context.user}>\"}', \
                    '{\"type\":\"AGENT_END\"}']}]}\n";

/// What the agent says to a run that claims to come from mallory in every way but the header.
async fn told(server: &TestServer, user: Option<&str>) -> String {
    let mut claims = input("t", "r");
    claims["forwardedProps"] = json!({"userId": "mallory", "principal": "mallory"});
    claims["context"] = json!([{"description": "user", "value": "mallory"}]);
    let mut request = server.post("/agui/a?user=mallory").json(&claims);
    request = request.header("X-User", "mallory");
    if let Some(user) = user {
        request = request.header(USER, user);
    }
    let events = events(request.send().await.unwrap()).await;
    events.iter().filter_map(|event| event["delta"].as_str()).collect()
}

#[tokio::test]
async fn the_runtime_context_knows_the_principal_and_nothing_else_claims_to_be_it() {
    let auth = "server: {auth: {type: trusted-header, header: x-USER-id}}\n";
    let trusting = TestServer::of_yaml(&format!("{auth}{ECHO}")).await;
    assert_eq!(told(&trusting, Some("alice")).await, "<alice>");
    let open = TestServer::of_yaml(ECHO).await;
    assert_eq!(told(&open, Some("alice")).await, "<>");
}

#[tokio::test]
async fn open_interrupts_of_one_user_are_neither_seen_nor_answered_by_another() {
    let server = server().await;
    let asked = run_as(&server, "alice", "/agui/asks", &input("t", "r1")).await;
    let open = &asked.last().unwrap()["outcome"]["interrupts"];
    assert_eq!(open[0]["id"], "reply:c1");

    // The same thread id is another thread: nothing is open there, so bob's answer answers
    // nothing, and his own run asks him.
    let answer = json!([
        {"interruptId": "reply:c1", "status": "resolved", "payload": {"approved": true}},
    ]);
    let mut forged = resume("t", "r2", &answer);
    forged["forwardedProps"] = json!({"userId": "alice"});
    let stolen = run_as(&server, "bob", "/agui/asks", &forged).await;
    let mut started = expected::started("t", "r2");
    started["metadata"] = json!({"agentscope.ignoredResume": ["reply:c1"]});
    assert_eq!(stolen[0], started);
    let said = stolen.iter().filter(|event| event["type"] == "TEXT_MESSAGE_CONTENT").count();
    assert_eq!(said, 0, "bob's answer reached the agent");

    // Alice's is still open, and a run of hers without an answer is refused.
    let refused = run_as(&server, "alice", "/agui/asks", &saying("t", "r3", "hello")).await;
    let error = refused.last().unwrap();
    assert_eq!(error["code"], "AGUI_INTERRUPT_CONTRACT_ERROR");
    assert_eq!(error["metadata"]["agentscope.openInterrupts"], *open);
    let mut answered = resume("t", "r4", &answer);
    answered["messages"] = json!([]);
    let answered = run_as(&server, "alice", "/agui/asks", &answered).await;
    assert_eq!(answered.last(), Some(&expected::success("t", "r4")));
}

#[tokio::test]
async fn a_busy_thread_of_one_user_is_free_for_another() {
    let server = server().await;
    let request = server.post("/agui/hangs").header(USER, "alice").json(&input("t", "r1"));
    let mut first = Reader::new(request.send().await.unwrap());
    assert_eq!(first.event().await, Some(expected::started("t", "r1")));
    let busy = run_as(&server, "alice", "/agui/asks", &input("t", "r2")).await;
    assert_eq!(busy.last().unwrap()["code"], "THREAD_BUSY");
    let free = run_as(&server, "bob", "/agui/asks", &input("t", "r2")).await;
    assert_eq!(free.last().unwrap()["outcome"]["type"], "interrupt");
}

#[tokio::test]
async fn the_log_of_a_run_does_not_name_the_user() {
    let log = Captured::start();
    let server = server().await;
    run_as(&server, "alice.liddell", "/agui/asks", &input("t", "r")).await;
    let refused = server.get("/agui/agents").header(USER, "alice.liddell").header(USER, "hare");
    assert_eq!(refused.send().await.unwrap().status(), 401);
    // The line of a run is written behind its last event.
    while server.runs.activity().tasks > 0 {
        tokio::task::yield_now().await;
    }
    let text = log.text();
    for line in ["run ended", "request refused"] {
        assert!(text.contains(line), "{text}");
    }
    for name in ["liddell", "hare"] {
        assert!(!text.contains(name), "{text}");
    }
}

/// What starting with this text is warned of.
fn warnings(text: &str) -> Vec<String> {
    super::support::config::load(text, &[]).unwrap().warnings
}

#[test]
fn a_server_open_to_other_machines_is_warned_of() {
    let open = |host: &str| {
        format!(
            "server.auth is none and the server listens on {host}: whoever reaches it can use \
             every agent, and all callers share their threads"
        )
    };
    for host in ["127.0.0.1", "127.1.2.3", "::1", "localhost", "LocalHost"] {
        assert_eq!(warnings(&format!("server: {{host: '{host}'}}\n")), [""; 0], "{host}");
    }
    for host in ["0.0.0.0", "::", "10.0.0.1", "agui.internal"] {
        assert_eq!(warnings(&format!("server: {{host: '{host}'}}\n")), [open(host)]);
    }
    let guarded = "server: {host: 0.0.0.0, auth: {type: trusted-header}}\n";
    assert_eq!(warnings(guarded), [""; 0]);
    assert_eq!(
        warnings(ECHO),
        ["runtime-context: user will never have a value: server.auth is none"]
    );
}
