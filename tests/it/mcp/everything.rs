//! `@modelcontextprotocol/server-everything`, which is not ours.

use super::*;

const PROGRAM: &str =
    "tests/mcp/node_modules/@modelcontextprotocol/server-everything/dist/index.js";

#[tokio::test]
async fn look() {
    let mcp = Mcp::start(server(stdio("node", &[PROGRAM, "stdio"])));
    for tool in mcp.tools_of("").await {
        eprintln!("{:?}", tool.spec());
    }
    eprintln!("{:?}", mcp.call("echo", json!({"message": "hi"})).await);
    eprintln!("{:?}", mcp.call("get-sum", json!({"a": 1, "b": 2})).await);
    eprintln!("{:?}", mcp.call("get-sum", json!({"a": 1, "b": "x"})).await);
    eprintln!("{:?}", mcp.call("get-tiny-image", json!({})).await);
    eprintln!(
        "{:?}",
        mcp.call("get-annotated-message", json!({"messageType": "error", "includeImage": false}))
            .await
    );
    eprintln!("{:?}", mcp.call("get-resource-links", json!({"count": 2})).await);
    eprintln!("{:?}", mcp.call("get-structured-content", json!({"location": "Chicago"})).await);
    eprintln!(
        "{:?}",
        mcp.call("trigger-long-running-operation", json!({"duration": 0.3, "steps": 3})).await
    );
    eprintln!("{:?}", mcp.call("trigger-elicitation-request", json!({})).await);
    mcp.end().await;
}
