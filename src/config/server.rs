//! Key `server`.

use std::{net::IpAddr, time::Duration};

use http::HeaderName;

use super::{
    adapter,
    agui::header,
    tree::{Block, Faults},
};

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
    /// How the server knows who asks; default [`AuthConfig::None`].
    pub auth: AuthConfig,
    /// How long runs may go on when the server is told to end; zero = not at all; default 25 s,
    /// since orchestrators kill 30 s after they ask.
    pub shutdown_grace: Duration,
}

/// Key `server.auth`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AuthConfig {
    /// Nobody is asked who they are: all callers are one.
    #[default]
    None,
    /// A proxy in front has established who asks and says so in a header. Whoever can reach the
    /// server without passing that proxy can be anybody.
    TrustedHeader {
        /// The header; default `X-User-Id`.
        header: HeaderName,
    },
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: 8080,
            request_body_limit: 16 << 20,
            max_concurrent_runs: 10_000,
            auth: AuthConfig::None,
            shutdown_grace: Duration::from_secs(25),
        }
    }
}

/// Reads the section.
pub(super) fn read(block: &Block<'_>, faults: &mut Faults<'_>) -> ServerConfig {
    let default = ServerConfig::default();
    ServerConfig {
        host: host(block, faults).unwrap_or(default.host),
        port: block.integer("port").unwrap_or(default.port),
        request_body_limit: block
            .integer("request-body-limit")
            .unwrap_or(default.request_body_limit),
        max_concurrent_runs: block
            .integer("max-concurrent-runs")
            .unwrap_or(default.max_concurrent_runs),
        auth: auth(block, faults),
        shutdown_grace: block
            .duration("shutdown-grace")
            .map_or(default.shutdown_grace, Option::unwrap_or_default),
    }
}

fn host(block: &Block<'_>, faults: &mut Faults<'_>) -> Option<String> {
    let host = block.text("host")?;
    let of_name = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
    let is_name = !host.is_empty() && host.chars().all(of_name);
    if !is_name && host.parse::<IpAddr>().is_err() {
        faults.value(
            &block.at("host"),
            "expected an address or a name of this machine such as `127.0.0.1`, `::` or \
             `localhost`; the port stands in server.port",
        );
        return None;
    }
    Some(host.to_owned())
}

/// A block without `type` is refused and not taken for `none`: who writes it wants callers told
/// apart.
fn auth(server: &Block<'_>, faults: &mut Faults<'_>) -> AuthConfig {
    let block = server.block("auth");
    match block.text("type") {
        Some("trusted-header") => AuthConfig::TrustedHeader {
            header: header(&block, "header", faults)
                .and_then(|name| name.parse().ok())
                .unwrap_or(USER_ID),
        },
        Some(_) => AuthConfig::None,
        None => {
            if server.has("auth") {
                adapter::missing(&block, "type", faults);
            }
            AuthConfig::None
        }
    }
}

/// The header that names the user unless another is configured.
const USER_ID: HeaderName = HeaderName::from_static("x-user-id");
