//! Servers that are not what they should be: what the log says, and what it does not.

use agentscope_agui::tools::mcp::McpStatus;

use super::*;
use crate::support::{
    log::Captured,
    model::{Answer, Endpoint},
};

/// Why a server at this URL is not connected, as the log has it.
async fn cause(url: String) -> String {
    let log = Captured::start();
    let headers = BTreeMap::from([("authorization".to_owned(), Secret::new("Bearer secret"))]);
    let mcp = Mcp::start(server(McpTransport::Http { url, headers }));
    while mcp.servers.status()["s"] != McpStatus::Failed {
        tokio::task::yield_now().await;
    }
    mcp.end().await;
    let log = log.text();
    let ours: Vec<&str> = log.lines().filter(|line| line.contains("agentscope_agui")).collect();
    assert!(!ours.iter().any(|line| line.contains("secret")), "{ours:?}");
    let said = ours.iter().find_map(|line| line.split_once("an MCP server is not connected "));
    said.unwrap().1.to_owned()
}

fn is(cause: &str) -> String {
    format!("mcp.server=\"s\" cause=\"{cause}\"")
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_without_its_address() {
    let url = "http://127.0.0.1:1/mcp?key=secret".to_owned();
    let refused = std::io::Error::from(rustix::io::Errno::CONNREFUSED).to_string();
    assert_eq!(cause(url).await, is(&refused));
}

#[tokio::test]
async fn an_answer_that_is_none_is_told_without_its_words() {
    for (status, words, expected) in [
        (401, "secret", "HTTP 401 Unauthorized"),
        (403, "secret", "HTTP 403 Forbidden"),
        (404, "secret", "HTTP 404 Not Found"),
        (503, "secret", "HTTP 503"),
        (200, "<html>secret</html>", "its answer is neither JSON nor an event stream"),
    ] {
        let endpoint = Endpoint::with(move |_request| Answer::text(status, words)).await;
        let url = format!("{}/mcp?key=secret", endpoint.url());
        assert_eq!(cause(url).await, is(expected), "{status}");
    }
}
