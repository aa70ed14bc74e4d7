//! Key `server`.

use std::time::Duration;

use super::tree::Block;

/// Where and how the server listens.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Address to bind; default 127.0.0.1.
    pub host: String,
    /// Port to bind; 0 picks a free one; default 8080.
    pub port: u16,
    /// Longest request body in bytes; default 16 MiB.
    pub request_body_limit: usize,
    /// Runs at once; beyond it requests are answered with 429; default 10000.
    pub max_concurrent_runs: usize,
    /// How long runs may go on when the server is told to end; zero = not at all; default 25 s,
    /// since orchestrators kill 30 s after they ask.
    pub shutdown_grace: Duration,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: 8080,
            request_body_limit: 16 << 20,
            max_concurrent_runs: 10_000,
            shutdown_grace: Duration::from_secs(25),
        }
    }
}

/// Reads the section.
pub(super) fn read(block: &Block<'_>) -> ServerConfig {
    let default = ServerConfig::default();
    ServerConfig {
        host: block.text("host").map_or(default.host, str::to_owned),
        port: block.integer("port").unwrap_or(default.port),
        request_body_limit: block
            .integer("request-body-limit")
            .unwrap_or(default.request_body_limit),
        max_concurrent_runs: block
            .integer("max-concurrent-runs")
            .unwrap_or(default.max_concurrent_runs),
        shutdown_grace: block
            .duration("shutdown-grace")
            .map_or(default.shutdown_grace, Option::unwrap_or_default),
    }
}
