//! Tools of MCP servers: real ones over stdio and over HTTP, the protocol's own makers' and ours.

mod everything;
mod faults;
mod raw;
mod served;
mod server;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use agentscope_agui::{
    config::{
        mcp_servers::{Elicitation, McpScope, McpServerConfig, McpTransport},
        models::Secret,
    },
    tools::{
        Tool, ToolAnswer, ToolCall, ToolContext, ToolEnd, ToolEvent, ToolStream, mcp::McpServers,
    },
};
use agui_adapter::model::{event::ResultState, msg::Block};
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Longer than any test takes; nothing is expected to wait for it.
const LONG: Duration = Duration::from_secs(120);

/// An MCP server `s` of this process.
struct Mcp {
    servers: McpServers,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Mcp {
    fn start(config: McpServerConfig) -> Self {
        // Refused where another test was faster.
        rustls::crypto::ring::default_provider().install_default().ok();
        let servers = BTreeMap::from([("s".to_owned(), config)]);
        let mcp = Self {
            servers: McpServers::new(&servers, reqwest::Client::new()),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        };
        mcp.servers.start(&mcp.tasks, mcp.stop.clone());
        mcp
    }

    async fn tools_of(&self, session: &str) -> Vec<Arc<dyn Tool>> {
        self.servers.get("s").unwrap().tools(session).await.unwrap()
    }

    async fn names(&self) -> Vec<String> {
        self.tools_of("").await.iter().map(|tool| tool.spec().name.clone()).collect()
    }

    async fn tool(&self, name: &str) -> Arc<dyn Tool> {
        let tools = self.tools_of("").await;
        tools.into_iter().find(|tool| tool.spec().name == name).unwrap()
    }

    async fn start_call(&self, name: &str, arguments: Value) -> ToolStream {
        self.tool(name).await.call(call(arguments))
    }

    /// All that a call says.
    async fn call(&self, name: &str, arguments: Value) -> Vec<ToolEvent> {
        self.start_call(name, arguments).await.collect().await
    }

    /// Ends it, and shows that nothing is left.
    async fn end(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

fn server(transport: McpTransport) -> McpServerConfig {
    McpServerConfig {
        transport,
        timeout: LONG,
        scope: McpScope::Server,
        optional: false,
        elicitation: Elicitation::Decline,
    }
}

fn stdio(command: &str, args: &[&str]) -> McpTransport {
    McpTransport::Stdio {
        command: command.into(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: BTreeMap::new(),
        cwd: PathBuf::from(env!("CARGO_MANIFEST_DIR")),
    }
}

fn http(url: String) -> McpTransport {
    McpTransport::Http { url, headers: BTreeMap::new() }
}

fn call(arguments: Value) -> ToolCall {
    ToolCall {
        id: "call".to_owned(),
        arguments: arguments.as_object().unwrap().clone(),
        state: Arc::new(json!({})),
        context: Arc::new(ToolContext {
            thread_id: "t".into(),
            run_id: "r".into(),
            request_id: "q".into(),
            runtime: Arc::default(),
        }),
        answer: None,
    }
}

fn text(text: &str) -> Block {
    Block::Text { text: text.to_owned() }
}

fn success(output: Vec<Block>) -> ToolEvent {
    ToolEvent::End(ToolEnd::Result { output, state: ResultState::Success })
}

fn error(what: &str) -> ToolEvent {
    ToolEvent::End(ToolEnd::text(what, ResultState::Error))
}

fn progress(progress: f64, total: f64) -> ToolEvent {
    ToolEvent::Progress { progress, total: Some(total), message: None }
}
