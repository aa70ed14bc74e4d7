//! `@modelcontextprotocol/server-everything`, which is not ours, over both transports.

use std::{
    net::{Ipv4Addr, TcpListener},
    process::Stdio,
};

use agui_adapter::model::msg::{MediaKind, MediaSource};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

use super::*;

pub(super) const PROGRAM: &str =
    "tests/mcp/node_modules/@modelcontextprotocol/server-everything/dist/index.js";

pub(super) const TOOLS: [&str; 14] = [
    "echo",
    "get-annotated-message",
    "get-env",
    "get-resource-links",
    "get-resource-reference",
    "get-structured-content",
    "get-sum",
    "get-tiny-image",
    "gzip-file-as-resource",
    "toggle-simulated-logging",
    "toggle-subscriber-updates",
    "trigger-long-running-operation",
    "trigger-elicitation-request",
    "simulate-research-query",
];

fn over_stdio() -> McpServerConfig {
    server(stdio("node", &[PROGRAM, "stdio"]))
}

/// The server over HTTP, until it is dropped.
pub(super) struct OverHttp {
    _program: Child,
    pub(super) config: McpServerConfig,
}

impl OverHttp {
    pub(super) async fn start() -> Self {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let mut program = Command::new("node")
            .args([PROGRAM, "streamableHttp"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env("PORT", port.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(program.stderr.take().unwrap()).lines();
        let line = lines.next_line().await.unwrap();
        let listening = format!("MCP Streamable HTTP Server listening on port {port}");
        assert_eq!(line, Some(listening));
        let config = server(http(format!("http://127.0.0.1:{port}/mcp")));
        Self { _program: program, config }
    }
}

/// What holds over both.
async fn answers_as_expected(mcp: &Mcp) {
    assert_eq!(mcp.names().await, TOOLS);
    assert_eq!(mcp.call("echo", json!({"message": "hi"})).await, [success(vec![text("Echo: hi")])]);
    assert_eq!(
        mcp.call("get-sum", json!({"a": 1, "b": 2})).await,
        [success(vec![text("The sum of 1 and 2 is 3.")])]
    );
    assert_eq!(
        mcp.call("get-sum", json!({"a": 1, "b": "x"})).await,
        [error(
            "MCP error -32602: Input validation error: Invalid arguments for tool get-sum: Invalid \
             input: expected number, received string at b"
        )]
    );
    assert_eq!(
        mcp.call("get-annotated-message", json!({"messageType": "error"})).await,
        [success(vec![text("Error: Operation failed")])]
    );
    assert_eq!(
        mcp.call("get-resource-links", json!({"count": 2})).await,
        [success(vec![
            text("Here are 2 resource links to resources available in this server:"),
            text(
                "Resource Blob Resource 1: demo://resource/dynamic/blob/1 (text/plain) - Resource \
                 1: plaintext resource"
            ),
            text(
                "Resource Text Resource 2: demo://resource/dynamic/text/2 (text/plain) - Resource \
                 2: plaintext resource"
            ),
        ])]
    );
    assert_eq!(
        mcp.call("get-structured-content", json!({"location": "Chicago"})).await,
        [success(vec![text(
            r#"{"temperature":36,"conditions":"Light rain / drizzle","humidity":82}"#
        )])]
    );
    assert_eq!(
        mcp.call("trigger-long-running-operation", json!({"duration": 0.03, "steps": 3})).await,
        [
            progress(1.0, 3.0),
            progress(2.0, 3.0),
            progress(3.0, 3.0),
            success(vec![text(
                "Long running operation completed. Duration: 0.03 seconds, Steps: 3."
            )]),
        ]
    );
    assert_eq!(
        mcp.call("trigger-elicitation-request", json!({})).await,
        [success(vec![
            text("❌ User declined to provide the requested information."),
            text("\nRaw result: {\n  \"action\": \"decline\"\n}"),
        ])]
    );
    the_image_stays_an_image(mcp).await;
    the_resource_is_a_file(mcp).await;
}

async fn the_image_stays_an_image(mcp: &Mcp) {
    let events = mcp.call("get-tiny-image", json!({})).await;
    let [ToolEvent::End(ToolEnd::Result { output, state: ResultState::Success })] = &events[..]
    else {
        panic!("{events:?}");
    };
    let [before, image, after] = &output[..] else { panic!("{output:?}") };
    assert_eq!(*before, text("Here's the image you requested:"));
    assert_eq!(*after, text("The image above is the MCP logo."));
    let Block::Media { kind: MediaKind::Image, source, name: None, metadata: None } = image else {
        panic!("{image:?}");
    };
    let MediaSource::Base64 { media_type, data } = source else { panic!("{source:?}") };
    assert_eq!((media_type.as_str(), data.len()), ("image/png", 5380));
    // A PNG begins like this.
    assert_eq!(data.get(..11), Some("iVBORw0KGgo"));
}

async fn the_resource_is_a_file(mcp: &Mcp) {
    let arguments = json!({"resourceType": "Blob", "resourceId": 1});
    let events = mcp.call("get-resource-reference", arguments).await;
    let [ToolEvent::End(ToolEnd::Result { output, state: ResultState::Success })] = &events[..]
    else {
        panic!("{events:?}");
    };
    let [before, resource, after] = &output[..] else { panic!("{output:?}") };
    assert_eq!(*before, text("Returning resource reference for Resource 1:"));
    let uri = "You can access this resource using the URI: demo://resource/dynamic/blob/1";
    assert_eq!(*after, text(uri));
    let Block::Media { kind: MediaKind::Document, source, name, metadata: None } = resource else {
        panic!("{resource:?}");
    };
    assert_eq!(name.as_deref(), Some("1"));
    let MediaSource::Base64 { media_type, data } = source else { panic!("{source:?}") };
    assert_eq!(media_type, "text/plain");
    // "Resource 1: This is a base64 blob"; the time stands behind it.
    assert_eq!(data.get(..44), Some("UmVzb3VyY2UgMTogVGhpcyBpcyBhIGJhc2U2NCBibG9i"));
}

/// A call that is dropped behind its first progress does not hinder the next one.
async fn a_call_can_be_dropped(mcp: &Mcp) {
    let arguments = json!({"duration": 600, "steps": 60_000});
    let mut long = mcp.start_call("trigger-long-running-operation", arguments).await;
    assert_eq!(long.next().await, Some(progress(1.0, 60_000.0)));
    drop(long);
    assert_eq!(
        mcp.call("echo", json!({"message": "still here"})).await,
        [success(vec![text("Echo: still here")])]
    );
}

#[tokio::test]
async fn all_of_it_over_stdio() {
    let mcp = Mcp::start(over_stdio());
    answers_as_expected(&mcp).await;
    a_call_can_be_dropped(&mcp).await;
    mcp.end().await;
}

#[tokio::test]
async fn all_of_it_over_http() {
    let server = OverHttp::start().await;
    let mcp = Mcp::start(server.config.clone());
    answers_as_expected(&mcp).await;
    a_call_can_be_dropped(&mcp).await;
    mcp.end().await;
}
