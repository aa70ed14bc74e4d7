//! `check`: everything that `serve` looks at before it binds its port.

use super::{ConfigArguments, Failure, configured::Configured, print, print_aside};
use crate::config::AuthConfig;

pub(super) fn run(arguments: &ConfigArguments) -> Result<(), Failure> {
    let configured = Configured::load(arguments)?;
    for warning in &configured.warnings {
        print_aside(&format!("warning: {warning}"));
    }
    print(&format!("{}\n", summary(&configured)))
}

/// What would be served, in one line.
fn summary(configured: &Configured) -> String {
    let Configured { config, agents, origin, .. } = configured;
    let ids: Vec<&str> = agents.iter().map(|agent| agent.info.id.as_str()).collect();
    let default = agents.default_agent().map(|agent| agent.info.id.as_str());
    let auth = match &config.server.auth {
        AuthConfig::None => "none".to_owned(),
        AuthConfig::TrustedHeader { header } => format!("trusted-header {header}"),
    };
    let server = &config.server;
    let host =
        if server.host.contains(':') { format!("[{}]", server.host) } else { server.host.clone() };
    let port = match server.port {
        0 => "<a free port>".to_owned(),
        port => port.to_string(),
    };
    format!(
        "{origin} is valid: {} {} ({}) at http://{host}:{port}{}, default {}, auth {auth}",
        ids.len(),
        if ids.len() == 1 { "agent" } else { "agents" },
        ids.join(", "),
        config.agui.path_prefix,
        default.unwrap_or("none"),
    )
}
