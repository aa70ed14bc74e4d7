//! Models as the npm package `@copilotkit/aimock` has them: a second opinion on each wire, which
//! also refuses thinking that comes back without its signature.

use std::{path::Path, process::Stdio};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

use super::{Setup, events, posts, tools};
use crate::support::{
    model::{Endpoint, dialect::Dialect},
    saying,
    server::TestServer,
};

/// The running package; it ends when its stdin does.
struct Aimock {
    _child: Child,
    url: String,
}

impl Aimock {
    async fn start() -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/aimock");
        assert!(
            folder.join("node_modules").is_dir(),
            "aimock is not installed: run ./scripts/test, or `npm ci --ignore-scripts` in {}",
            folder.display(),
        );
        let mut child = Command::new("node")
            .arg("serve.mjs")
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("node (version 20 or newer) is installed");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let url = lines.next_line().await.unwrap().expect("the URL");
        Self { _child: child, url }
    }

    /// A server whose agent has the model of this wire and a tool.
    async fn serve(&self, dialect: Dialect, tools: &Endpoint) -> TestServer {
        let thinking = match dialect {
            Dialect::Anthropic => json!({"thinking": {"type": "enabled", "budget_tokens": 1024}}),
            Dialect::OpenAi | Dialect::Gemini => json!({}),
        };
        let setup = Setup::at(dialect, &self.url).model("model", model(dialect));
        let setup = setup.model("parameters", thinking).agui("enable-reasoning", true);
        setup.tool(posts(tools, "weather")).serve().await
    }
}

fn model(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::OpenAi => "gpt-5",
        Dialect::Anthropic => "claude-sonnet-4-5",
        Dialect::Gemini => "gemini-2.5-pro",
    }
}

/// The end of a run that cost this.
fn end(dialect: Dialect, input: u64, output: u64) -> Value {
    let usage = json!({
        "inputTokens": input, "outputTokens": output, "totalTokens": input + output,
    });
    let mut end = events::costing(events::success("t", "r"), usage);
    end["usage"][0]["model"] = model(dialect).into();
    end
}

/// The artefact of all thinking here.
fn signature(dialect: Dialect) -> Option<&'static str> {
    (dialect == Dialect::Anthropic).then_some("anthropic.signature:c2lnbmVk")
}

async fn run(server: &TestServer, text: &str) -> Vec<Value> {
    server.run("/agui/a", &saying("t", "r", text)).await
}

#[tokio::test]
async fn text_thinking_tools_and_usage_are_the_same_on_each_wire() {
    let (aimock, tools) = (Aimock::start().await, tools().await);
    for dialect in Dialect::ALL {
        let start = || events::started("t", "r");
        let server = aimock.serve(dialect, &tools).await;
        assert_eq!(
            run(&server, "hello").await,
            events::run(start(), [events::text("id-1", &["Hi th", "ere!"])], end(dialect, 7, 3)),
            "{dialect:?}"
        );
        let server = aimock.serve(dialect, &tools).await;
        assert_eq!(
            run(&server, "think").await,
            events::run(
                start(),
                [
                    events::thinking("id-1", &["Why i", "s it ", "so?"], signature(dialect)),
                    events::text("id-2", &["Becau", "se."]),
                ],
                end(dialect, 9, 6),
            ),
            "{dialect:?}"
        );
        let server = aimock.serve(dialect, &tools).await;
        // Gemini's arguments are always whole.
        let arguments = match dialect {
            Dialect::Gemini => vec![r#"{"city":"Oslo"}"#],
            Dialect::OpenAi | Dialect::Anthropic => vec![r#"{"cit"#, r#"y":"O"#, r#"slo"}"#],
        };
        assert_eq!(
            run(&server, "weather").await,
            events::run(
                start(),
                [
                    events::thinking("id-1", &["Look ", "it up", "."], signature(dialect)),
                    events::call("id-2", "call_1", "weather", &arguments),
                    events::result("id-3", "call_1", r#"/weather {"city":"Oslo"}"#),
                    events::text("id-4", &["It is", " cold", "."]),
                ],
                end(dialect, 50, 12),
            ),
            "{dialect:?}"
        );
    }
    assert_eq!(tools.requests().len(), 3);
}

#[tokio::test]
async fn a_refusal_has_its_code_on_each_wire() {
    let (aimock, tools) = (Aimock::start().await, tools().await);
    for dialect in Dialect::ALL {
        let server = aimock.serve(dialect, &tools).await;
        let message = "The model takes no more requests for now.";
        let error = events::error("MODEL_RATE_LIMITED", message);
        assert_eq!(run(&server, "refuse").await, events::failed([], error), "{dialect:?}");
    }
}
