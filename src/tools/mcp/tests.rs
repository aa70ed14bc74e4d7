//! The bounds of sessions, which are too wide to be met from outside.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use super::*;
use crate::config::mcp_servers::{Elicitation, McpScope, McpTransport};

/// A server with a process for each session, started.
fn server(limits: Limits) -> (Arc<Server>, TaskTracker) {
    // Refused where another test was faster.
    rustls::crypto::ring::default_provider().install_default().ok();
    let config = McpServerConfig {
        transport: McpTransport::Stdio {
            command: "python3".into(),
            args: vec!["tests/it/mcp/raw.py".to_owned()],
            env: BTreeMap::new(),
            cwd: PathBuf::from(env!("CARGO_MANIFEST_DIR")),
        },
        timeout: Duration::from_secs(120),
        scope: McpScope::Thread,
        optional: false,
        elicitation: Elicitation::Decline,
    };
    let setup = Setup { name: "s".into(), config, client: reqwest::Client::new(), limits };
    let (server, tasks) = (Arc::new(Server::new(setup)), TaskTracker::new());
    server.start(Hub { tasks: tasks.clone(), stop: CancellationToken::new() });
    (server, tasks)
}

/// A run of this session asks for its tools.
async fn asks(server: &Arc<Server>, session: &str) -> Result<usize, String> {
    let tools = Source(Arc::clone(server)).tools(session).await;
    tools.map(|tools| tools.len()).map_err(|error| error.cause)
}

fn sessions(server: &Server) -> Vec<String> {
    let mut sessions: Vec<String> = server.links().keys().map(ToString::to_string).collect();
    sessions.sort();
    sessions
}

#[tokio::test]
async fn a_session_that_nobody_uses_ends_and_comes_again_when_it_is_needed() {
    let idle = Duration::from_millis(100);
    let (server, tasks) = server(Limits { idle, sessions: 10 });
    tasks.close();
    for _time in 0..2 {
        assert_eq!(asks(&server, "a").await, Ok(8));
        // It ends by itself.
        tasks.wait().await;
        assert_eq!(sessions(&server), Vec::<String>::new());
    }
}

#[tokio::test]
async fn of_too_many_sessions_the_one_that_is_unused_longest_ends() {
    let (server, tasks) = server(Limits { sessions: 2, ..Limits::default() });
    for session in ["a", "b", "a", "c"] {
        assert_eq!(asks(&server, session).await, Ok(8));
    }
    assert_eq!(sessions(&server), ["a", "c"]);
    let used = (server.link("a").unwrap(), server.link("c").unwrap());
    assert_eq!(asks(&server, "d").await, Err("all of its sessions are in use".to_owned()));
    drop(used);
    for link in server.links().values() {
        link.stop.cancel();
    }
    tasks.close();
    tasks.wait().await;
    assert_eq!(sessions(&server), Vec::<String>::new());
}
