//! A server in this process, on a free port, with scripted agents of a test's own.

pub mod log;

use std::{net::SocketAddr, path::PathBuf};

use agentscope_agui::{
    agents::registry::Registry,
    config::{self, Environment, Source},
    server::Server,
};
use serde_json::{Value, json};
use tokio::{sync::oneshot, task::JoinHandle};

pub struct TestServer {
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    done: JoinHandle<()>,
}

impl TestServer {
    /// Serves a configuration; its port is replaced by a free one.
    pub async fn start(yaml: &str) -> Self {
        let (config, agents) = load(yaml);
        Self::serve(Server::bind(config, agents).await.expect("a free port"))
    }

    #[expect(clippy::disallowed_methods, reason = "a test waits for its own task")]
    fn serve(bound: agentscope_agui::server::Bound) -> Self {
        let address = bound.local_addr();
        let (stop, stopped) = oneshot::channel::<()>();
        let done = tokio::spawn(async move {
            let stopped = async move {
                // A dropped sender stops the server as well.
                stopped.await.unwrap_or(());
            };
            bound.serve(stopped).await.expect("serving");
        });
        Self { address, stop: Some(stop), done }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub async fn post(&self, path: &str, body: &Value) -> reqwest::Response {
        client().post(self.url(path)).json(body).send().await.expect("an answer")
    }

    /// Runs an agent to its end and gives its events, checked.
    pub async fn run(&self, path: &str, body: &Value) -> Vec<Value> {
        let answer = self.post(path, body).await;
        assert_eq!(answer.status(), 200);
        let bytes = answer.bytes().await.expect("a whole body");
        let input = agui_protocol::verify::VerifyInput::from(body.clone());
        let mut found = agui_protocol::verify::check_body(&bytes, &input);
        // A resume without messages answers calls that the checker has not seen.
        let bare = body["messages"].as_array().is_some_and(Vec::is_empty);
        found.retain(|fault| fault.rule != "TOOL-15" && !(bare && fault.rule == "TOOL-14"));
        assert_eq!(found, [], "{}", String::from_utf8_lossy(&bytes));
        events(&bytes)
    }

    pub async fn stop(mut self) {
        if let Some(stop) = self.stop.take() {
            stop.send(()).expect("a server");
        }
        self.done.await.expect("a clean end");
    }
}

fn load(yaml: &str) -> (config::Config, Registry) {
    let text = format!("server: {{port: 0}}\n{yaml}");
    let source = Source::Text { name: PathBuf::from("test.yaml"), text };
    let loaded = config::load(source, &Environment::default());
    let config = loaded.unwrap_or_else(|errors| panic!("{errors}")).config;
    let agents = Registry::from_config(&config).expect("agents");
    (config, agents)
}

pub fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().expect("a client")
}

/// The events of a whole body.
pub fn events(body: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(body).expect("UTF-8");
    text.split("\n\n")
        .filter_map(|frame| frame.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).expect("JSON"))
        .collect()
}

pub fn input(thread: &str, run: &str, text: &str) -> Value {
    json!({
        "threadId": thread, "runId": run, "protocolVersion": "1.0",
        "messages": [{"id": format!("u-{run}"), "role": "user", "content": text}],
    })
}

/// A configuration with one scripted agent per entry: id and script lines.
pub fn scripted(agents: &[(&str, &[&str])]) -> String {
    let mut yaml = "agentscope:\n  agents:\n".to_owned();
    for (id, lines) in agents {
        yaml.push_str(&format!(
            "    {id}:\n      type: scripted\n      turns:\n        - events:\n"
        ));
        for line in *lines {
            yaml.push_str(&format!("            - '{line}'\n"));
        }
    }
    yaml
}
