//! Tools of MCP servers, over stdio and over streamable HTTP.
//!
//! [`McpServers`] keeps the connections: made in the background, made again when they are lost.
//! A run asks a source for its tools and calls them; it never sees a connection. With
//! `scope: thread` each session has a process or a session of its own, made when it is first
//! needed and ended when nobody needs it any more.

mod call;
mod client;
mod connection;
mod content;
mod fault;
mod flight;
mod link;
mod listing;
mod process;
mod questions;
mod server;
mod tap;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, sync::Arc};

use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use self::process::program_faults;
use self::server::{Hub, Limits, Server, Setup, Source};
use super::ToolSource;
use crate::config::mcp_servers::McpServerConfig;

/// How an MCP server stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpStatus {
    /// Not connected yet.
    Starting,
    /// Connected; with `scope: thread`: a run that needs it starts it.
    Ready,
    /// Not connected, and tried again. The log says why.
    Failed,
}

impl McpStatus {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Failed => "failed",
        }
    }
}

/// All MCP servers of the configuration.
#[derive(Debug, Default)]
pub struct McpServers(BTreeMap<String, Arc<Server>>);

impl McpServers {
    /// Servers that are not connected to until they are [started](Self::start). `client` is the
    /// one for those over HTTP.
    pub fn new(servers: &BTreeMap<String, McpServerConfig>, client: reqwest::Client) -> Self {
        let server = |(name, config): (&String, &McpServerConfig)| {
            let setup = Setup {
                name: name.as_str().into(),
                config: config.clone(),
                client: client.clone(),
                limits: Limits::default(),
            };
            (name.clone(), Arc::new(Server::new(setup)))
        };
        Self(servers.iter().map(server).collect())
    }

    /// The tools of this server.
    pub fn get(&self, name: &str) -> Option<Arc<dyn ToolSource>> {
        let server = Arc::clone(self.0.get(name)?);
        Some(Arc::new(Source(server)))
    }

    /// Connects in the background, and lets runs connect, until `stop`. What is started then ends
    /// as tasks of `tasks`.
    pub fn start(&self, tasks: &TaskTracker, stop: CancellationToken) {
        for server in self.0.values() {
            server.start(Hub { tasks: tasks.clone(), stop: stop.clone() });
        }
    }

    /// How each server stands, by name.
    pub fn status(&self) -> BTreeMap<&str, McpStatus> {
        self.0.iter().map(|(name, server)| (name.as_str(), server.status())).collect()
    }
}
