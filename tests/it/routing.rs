//! Which agent a request reaches, and what the other paths answer.

use agentscope_agui::config::Config;
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::support::{agents::says_its_id, input, server::TestServer};

async fn abc(config: Config) -> TestServer {
    TestServer::with(config, ["a", "b", "c"].map(says_its_id).to_vec()).await
}

/// The agent that answered.
async fn reached(server: &TestServer, path: &str, header: Option<&str>, props: Value) -> String {
    let mut input = input("t", "r");
    input["forwardedProps"] = props;
    let mut request = server.post(path).json(&input);
    if let Some(header) = header {
        request = request.header("X-Agent-Id", header);
    }
    let response = request.send().await.unwrap();
    if response.status() != StatusCode::OK {
        return response.status().as_u16().to_string();
    }
    let events = super::support::server::events(response).await;
    let text = events.iter().find(|event| event["type"] == "TEXT_MESSAGE_CONTENT").unwrap();
    text["delta"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_path_wins_over_the_header_over_the_properties_over_the_default() {
    let mut config = Config::default();
    config.agui.default_agent_id = Some("c".to_owned());
    let server = abc(config).await;
    let props = || json!({"agentId": "b"});
    let cases = [
        ("/agui/a", Some("b"), props(), "a"),
        ("/agui/run/a", Some("b"), props(), "a"),
        ("/agui", Some("a"), props(), "a"),
        ("/agui/run", Some("a"), props(), "a"),
        ("/agui", None, props(), "b"),
        ("/agui/run", None, json!({"other": 1}), "c"),
        ("/agui", None, json!({}), "c"),
        ("/agui", Some(" "), json!({"agentId": 7}), "c"),
        ("/agui", Some("nope"), props(), "404"),
        ("/agui/nope", Some("a"), props(), "404"),
        ("/agui/run/nope", None, json!({}), "404"),
        ("/agui", None, json!({"agentId": "nope"}), "404"),
    ];
    for (path, header, props, expected) in cases {
        let case = format!("{path} {header:?} {props}");
        assert_eq!(reached(&server, path, header, props).await, expected, "{case}");
    }
}

#[tokio::test]
async fn without_a_default_several_agents_leave_a_nameless_request_nowhere_to_go() {
    let server = abc(Config::default()).await;
    assert_eq!(reached(&server, "/agui", None, json!({})).await, "404");
    let only = TestServer::of(vec![says_its_id("lonely")]).await;
    assert_eq!(reached(&only, "/agui", None, json!({})).await, "lonely");
    let agents = ["a", "default"].map(says_its_id).to_vec();
    let with_default = TestServer::of(agents).await;
    assert_eq!(reached(&with_default, "/agui", None, json!({})).await, "default");
}

#[tokio::test]
async fn path_routing_can_be_switched_off() {
    let mut config = Config::default();
    config.agui.enable_path_routing = false;
    let server = abc(config).await;
    assert_eq!(reached(&server, "/agui/a", None, json!({})).await, "404");
    assert_eq!(reached(&server, "/agui/run/a", None, json!({})).await, "404");
    assert_eq!(reached(&server, "/agui/run", Some("a"), json!({})).await, "a");
}

#[tokio::test]
async fn prefix_and_header_are_configurable() {
    let mut config = Config::default();
    config.agui.path_prefix = "/api/agents/v1".to_owned();
    config.agui.agent_id_header = "X-Bot".to_owned();
    let server = abc(config).await;
    let prefix = "/api/agents/v1";
    assert_eq!(reached(&server, &format!("{prefix}/b"), None, json!({})).await, "b");
    assert_eq!(reached(&server, "/agui/b", None, json!({})).await, "404");
    let input = input("t", "r");
    let request = server.post(prefix).header("x-bot", "c").json(&input);
    assert_eq!(request.send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn agents_and_their_capabilities_are_listed() {
    let mut agent = says_its_id("a");
    let capabilities = json!({"identity": {"name": "Agent a"}, "transport": {"streaming": true}});
    agent.info.capabilities = serde_json::from_value(capabilities.clone()).unwrap();
    let server = TestServer::of(vec![says_its_id("b"), agent]).await;
    let get = async |path: &str| -> Value {
        let response = server.get(path).send().await.unwrap();
        assert_eq!(response.headers()["content-type"], "application/json");
        response.json().await.unwrap()
    };
    assert_eq!(
        get("/agui/agents").await,
        json!({"agents": [
            {
                "id": "a", "name": "Agent a", "description": "Test agent a.",
                "capabilities": capabilities,
            },
            {"id": "b", "name": "Agent b", "description": "Test agent b.", "capabilities": {}},
        ]})
    );
    assert_eq!(get("/agui/a/capabilities").await, capabilities);
    let unknown = server.get("/agui/nope/capabilities").send().await.unwrap();
    assert_eq!(unknown.status(), 404);
}

#[tokio::test]
async fn health_is_told() {
    let server = TestServer::of(vec![says_its_id("a")]).await;
    for path in ["/healthz", "/readyz"] {
        assert_eq!(server.get(path).send().await.unwrap().status(), 200, "{path}");
    }
}
