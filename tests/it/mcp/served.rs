//! MCP tools behind the whole server: from the configuration to the events of a front end.

use agentscope_agui::agents::registry::Registry;

use super::{
    everything::{OverHttp, PROGRAM},
    raw::{exists, process},
    server::{ERAS, Era, Ours, schema},
    *,
};
use crate::support::{
    config, expected, input,
    log::Captured,
    model::{Answer, Endpoint, openai},
    resume,
    server::{TestServer, unique},
};

/// The configuration of an agent `a` with the tools of the server `s`.
fn yaml(model: &Endpoint, server: Value) -> String {
    let mock = json!({
        "provider": "openai", "base-url": model.url(), "api-key": "k", "model": "m",
        "max-retries": 0,
    });
    let agent = json!({
        "type": "react", "model": "mock", "sys-prompt": "Be brief.", "tools": [{"mcp": "s"}],
    });
    let agentscope = json!({
        "models": {"mock": mock}, "mcp-servers": {"s": server}, "agents": {"a": agent},
    });
    json!({"agentscope": agentscope}).to_string()
}

async fn serve(model: &Endpoint, server: Value) -> TestServer {
    TestServer::of_yaml_built(&yaml(model, server), |builder| builder.sources(unique())).await
}

fn path(inside: &str) -> String {
    format!("{}/{inside}", env!("CARGO_MANIFEST_DIR"))
}

fn raw_server() -> Value {
    json!({"command": "python3", "args": [path("tests/it/mcp/raw.py")], "timeout": "2m"})
}

fn url(config: &McpServerConfig) -> Value {
    let McpTransport::Http { url, .. } = &config.transport else { panic!("{config:?}") };
    json!({"url": url, "timeout": "2m"})
}

fn ours_at(ours: &Ours) -> Value {
    json!({"url": format!("http://{}/mcp", ours.address), "timeout": "2m"})
}

fn called(parent: &str, id: &str, name: &str, arguments: &str) -> Vec<Value> {
    vec![
        json!({
            "type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": name,
            "parentMessageId": parent,
        }),
        json!({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": arguments}),
        json!({"type": "TOOL_CALL_END", "toolCallId": id}),
    ]
}

fn result(message: &str, call: &str, content: &str) -> Value {
    json!({
        "type": "TOOL_CALL_RESULT", "messageId": message, "toolCallId": call, "role": "tool",
        "content": content,
    })
}

fn failed(message: &str, call: &str, content: &str) -> Value {
    let mut event = result(message, call, content);
    event["metadata"] = json!({"agentscope.state": "error"});
    event
}

fn told(call: &str, progress: f64, total: f64) -> Value {
    let value = json!({"toolCallId": call, "progress": progress, "total": total});
    json!({"type": "CUSTOM", "name": "mcp_progress", "value": value})
}

fn whole(run: &str, middle: impl IntoIterator<Item = Vec<Value>>) -> Vec<Value> {
    let middle = middle.into_iter().flatten();
    let events = [expected::started("t", run)].into_iter().chain(middle);
    events.chain([expected::success("t", run)]).collect()
}

/// The question with which a run ended.
fn question(events: &[Value]) -> (String, Value) {
    let outcome = &events.last().unwrap()["outcome"];
    assert_eq!(outcome["type"], "interrupt", "{events:?}");
    let [interrupt] = &outcome["interrupts"].as_array().unwrap()[..] else { panic!("{outcome}") };
    assert_eq!(interrupt["reason"], "input_required");
    assert_eq!(interrupt["message"], "Your name?");
    assert_eq!(interrupt.get("toolCallId"), None);
    (interrupt["id"].as_str().unwrap().to_owned(), interrupt["responseSchema"].clone())
}

async fn a_tool_of_everything(server: Value) {
    let name = "trigger-long-running-operation";
    let arguments = r#"{"duration":0.02,"steps":2}"#;
    let answers = [openai::asks("c1", name, arguments), openai::says(&["done"])];
    let model = Endpoint::answers(answers).await;
    let server = serve(&model, server).await;
    let done = "Long running operation completed. Duration: 0.02 seconds, Steps: 2.";
    assert_eq!(
        server.run("/agui/a", &input("t", "r")).await,
        whole(
            "r",
            [
                called("id-1", "c1", name, arguments),
                vec![told("c1", 1.0, 2.0), told("c1", 2.0, 2.0), result("id-2", "c1", done)],
                expected::text("id-3", &["done"]),
            ]
        )
    );
    let bodies = model.bodies();
    let offered = bodies[0]["tools"].as_array().unwrap();
    let names: Vec<&Value> = offered.iter().map(|tool| &tool["function"]["name"]).collect();
    assert_eq!(names, super::everything::TOOLS);
    assert_eq!(openai::lines(&bodies[1]).last(), Some(&format!("tool c1: {done}")));
    let ready: Value = server.get("/readyz").send().await.unwrap().json().await.unwrap();
    assert_eq!(ready, json!({"status": "ready", "mcpServers": {"s": "ready"}}));
}

#[tokio::test]
async fn a_tool_is_called_over_stdio_and_its_progress_is_shown() {
    let args = [path(PROGRAM), "stdio".to_owned()];
    a_tool_of_everything(json!({"command": "node", "args": args, "timeout": "2m"})).await;
}

#[tokio::test]
async fn a_tool_is_called_over_http_and_its_progress_is_shown() {
    let everything = OverHttp::start().await;
    a_tool_of_everything(url(&everything.config)).await;
}

#[tokio::test]
async fn without_its_server_a_run_fails_unless_it_can_do_without() {
    // Nobody listens on this port, which is reserved.
    let away = |optional: bool| {
        // A server that a run can do without is not waited for once it has failed.
        let timeout = if optional { "1h" } else { "100ms" };
        json!({"url": "http://127.0.0.1:1/mcp", "timeout": timeout, "optional": optional})
    };
    let model = Endpoint::answers([openai::says(&["alone"])]).await;
    let server = serve(&model, away(false)).await;
    let events = server.run("/agui/a", &input("t", "r")).await;
    let message = "Tools that the agent needs are not available.";
    assert_eq!(
        events,
        [expected::started("t", "r"), expected::error("TOOLS_UNAVAILABLE", message)]
    );
    assert_eq!(model.requests().len(), 0);
    let ready: Value = server.get("/readyz").send().await.unwrap().json().await.unwrap();
    assert_eq!(ready, json!({"status": "ready", "mcpServers": {"s": "failed"}}));
    let server = serve(&model, away(true)).await;
    let events = server.run("/agui/a", &input("t", "r")).await;
    assert_eq!(events, whole("r", [expected::text("id-1", &["alone"])]));
    assert_eq!(model.bodies()[0].get("tools"), None);
}

#[tokio::test]
async fn a_server_that_dies_in_the_middle_is_a_result_and_the_next_run_has_another() {
    let model = Endpoint::answers([
        openai::asks("c1", "die", "{}"),
        openai::says(&["oh"]),
        openai::asks("c2", "grow", "{}"),
        openai::says(&["good"]),
    ])
    .await;
    let server = serve(&model, raw_server()).await;
    let lost = "The tool `die` failed: the connection to its server was lost. Whether it did its \
                work is not known.";
    assert_eq!(
        server.run("/agui/a", &input("t", "r1")).await,
        whole(
            "r1",
            [
                called("id-1", "c1", "die", "{}"),
                vec![failed("id-2", "c1", lost)],
                expected::text("id-3", &["oh"]),
            ]
        )
    );
    assert_eq!(
        server.run("/agui/a", &input("t", "r2")).await,
        whole(
            "r2",
            [
                called("id-4", "c2", "grow", "{}"),
                vec![result("id-5", "c2", "grown")],
                expected::text("id-6", &["good"]),
            ]
        )
    );
}

#[tokio::test]
async fn a_tool_that_needs_input_asks_the_person_and_goes_on_with_the_answer() {
    let tools = [("ask", "first {\"q\":", "}"), ("elicit", "", "")];
    for (era, (tool, before, behind)) in ERAS.into_iter().zip(tools) {
        let ours = Ours::start(era).await;
        let mut server = ours_at(&ours);
        if era == Era::Old {
            server["elicitation"] = "wait".into();
        }
        for (entry, answer) in [
            (
                json!({"status": "resolved", "payload": {"name": "Ada"}}),
                r#"{"action":"accept","content":{"name":"Ada"}}"#,
            ),
            (json!({"status": "cancelled"}), r#"{"action":"decline"}"#),
        ] {
            let answers = [openai::asks("c1", tool, "{}"), openai::says(&["thanks"])];
            let model = Endpoint::answers(answers).await;
            let server = serve(&model, server.clone()).await;
            let events = server.run("/agui/a", &input("t", "r1")).await;
            let (id, form) = question(&events);
            assert_eq!(form, schema("name"));
            let (_end, rest) = events.split_last().unwrap();
            let start = [vec![expected::started("t", "r1")], called("id-1", "c1", tool, "{}")];
            assert_eq!(rest, start.concat());
            let mut entry = entry;
            entry["interruptId"] = id.as_str().into();
            let answered = resume("t", "r2", &json!([entry]));
            let answer = format!("{before}{answer}{behind}");
            assert_eq!(
                server.run("/agui/a", &answered).await,
                whole(
                    "r2",
                    [vec![result("id-2", "c1", &answer)], expected::text("id-3", &["thanks"]),]
                ),
                "{era:?}"
            );
        }
        ours.end().await;
    }
}

#[tokio::test]
async fn no_program_outlives_the_server() {
    let answers = [openai::asks("c1", "pid", "{}"), openai::says(&["done"])];
    let model = Endpoint::answers(answers).await;
    let mut server = serve(&model, raw_server()).await;
    let events = server.run("/agui/a", &input("t", "r")).await;
    assert_eq!(events[4]["type"], "TOOL_CALL_RESULT");
    let program = process(events[4]["content"].as_str().unwrap());
    assert!(exists(program));
    server.tell_to_stop();
    server.stopped().await;
    assert!(!exists(program));
}

#[tokio::test]
async fn a_client_that_leaves_cancels_the_call_at_the_server() {
    let ours = Ours::start(Era::New).await;
    let model = Endpoint::answers([openai::asks("c1", "wait", "{}")]).await;
    let server = serve(&model, ours_at(&ours)).await;
    let mut response = server.start("/agui/a", &input("t", "r")).await;
    let mut seen = String::new();
    while !seen.contains("mcp_progress") {
        seen.push_str(std::str::from_utf8(&response.chunk().await.unwrap().unwrap()).unwrap());
    }
    drop(response);
    ours.cancelled().await;
}

#[tokio::test]
async fn names_that_two_servers_share_are_logged_once() {
    let log = Captured::at(tracing::Level::WARN);
    let model = Endpoint::answers([openai::says(&["one"]), openai::says(&["two"])]).await;
    let mut yaml: Value = serde_json::from_str(&yaml(&model, raw_server())).unwrap();
    yaml["agentscope"]["mcp-servers"]["z"] = raw_server();
    yaml["agentscope"]["agents"]["a"]["tools"] = json!([{"mcp": "s"}, {"mcp": "z"}]);
    let server = TestServer::of_yaml_built(&yaml.to_string(), |b| b.sources(unique())).await;
    for run in ["r1", "r2"] {
        server.run("/agui/a", &input("t", run)).await;
    }
    assert_eq!(model.bodies()[1]["tools"][4]["function"]["name"], "s_pid");
    let log = log.text();
    let of_pid: Vec<&str> = log
        .lines()
        .filter_map(|line| line.split_once("several sources have a tool pid: "))
        .map(|(_, said)| said)
        .collect();
    assert_eq!(
        of_pid,
        ["that of s is called s_pid agent=\"a\"", "that of z is called z_pid agent=\"a\""]
    );
}

#[tokio::test]
async fn a_program_that_is_missing_is_a_fault_of_the_configuration_unless_it_is_optional() {
    let model = Endpoint::answers(Vec::<Answer>::new()).await;
    let faults = |optional: bool| {
        let server = json!({"command": "no-such-program-at-all", "optional": optional});
        let config = config::load(&yaml(&model, server), &[]).unwrap().config;
        let faults = Registry::from_config(&config).err().unwrap_or_default();
        faults.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        faults(false),
        [
            "agentscope.mcp-servers.s.command: the program `no-such-program-at-all` is missing: it is not \
          on the PATH and must be installed (the container image holds neither Python nor Node; \
          README.md shows how to add them)"
        ]
    );
    assert_eq!(faults(true), Vec::<String>::new());
}
