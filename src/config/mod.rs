//! Configuration: data and checks only. Opens no socket and starts nothing.

mod adapter;
pub mod agents;
pub mod agui;
mod check;
pub mod command;
pub mod diagnostic;
mod embedded;
mod endpoint;
mod env;
mod expand;
mod json_schema;
mod keys;
pub mod load;
pub mod mcp_servers;
pub mod models;
pub mod place;
pub mod react;
mod scalar;
mod schema;
pub mod server;
pub mod threads;
mod tree;
mod yaml;

use std::collections::BTreeMap;

use agui_adapter::options::{FrontendToolOutcome, SubagentEvents};

pub use agents::{AgentConfig, AgentKind, ResumeCondition, ScriptedConfig, Turn, When};
pub use agui::{AguiConfig, ContextSource};
pub use command::CommandConfig;
pub use diagnostic::{ConfigError, ConfigErrors};
pub use embedded::STARTER;
pub use json_schema::json_schema;
pub use load::{Environment, Loaded, Origin, Source, Survey, load, survey};
pub use mcp_servers::McpServerConfig;
pub use models::ModelConfig;
pub use react::ReactConfig;
pub use server::{AuthConfig, ServerConfig};
pub use threads::{OnUnanswered, ThreadsConfig};

/// The whole configuration, checked.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Key `server`.
    pub server: ServerConfig,
    /// Key `agentscope.agui`.
    pub agui: AguiConfig,
    /// Key `agentscope.ca-files`: certificate authorities that are trusted beside the system's.
    pub ca_files: Vec<std::path::PathBuf>,
    /// Key `agentscope.models`, by name.
    pub models: BTreeMap<String, ModelConfig>,
    /// Key `agentscope.mcp-servers`, by name.
    pub mcp_servers: BTreeMap<String, McpServerConfig>,
    /// Key `agentscope.agents`, by agent id.
    pub agents: BTreeMap<String, AgentConfig>,
}

impl Config {
    /// What works as configured but is likely to surprise.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let options = || {
            let agents = self.agents.values().map(|agent| &agent.adapter);
            std::iter::once(&self.agui.adapter).chain(agents)
        };
        if options().any(|options| options.emit_run_finished_after_error) {
            warnings.push(
                "emit-run-finished-after-error is on: current clients reject a RUN_FINISHED \
                 behind a RUN_ERROR"
                    .to_owned(),
            );
        }
        if options().any(|o| o.frontend_tool_outcome == FrontendToolOutcome::Interrupt) {
            warnings.push(
                "frontend-tool-outcome is interrupt: CopilotKit and assistant-ui stall on it"
                    .to_owned(),
            );
        }
        if options().any(|options| options.subagent_events == SubagentEvents::Custom) {
            warnings.push(
                "subagent-events is custom: current clients show attributed events better"
                    .to_owned(),
            );
        }
        warnings.extend(self.auth_warnings());
        for (id, agent) in &self.agents {
            if let AgentKind::React(react) = &agent.kind {
                warnings.extend(react::warnings(id, react));
            }
        }
        warnings
    }

    fn auth_warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.server.auth != AuthConfig::None {
            return warnings;
        }
        if !is_loopback(&self.server.host) {
            warnings.push(format!(
                "server.auth is none and the server listens on {}: whoever reaches it can use \
                 every agent, and all callers share their threads",
                self.server.host
            ));
        }
        let principals = self.agui.runtime_context.iter();
        for (key, _) in principals.filter(|(_, source)| **source == ContextSource::Principal) {
            warnings.push(format!(
                "runtime-context: {key} will never have a value: server.auth is none"
            ));
        }
        warnings
    }
}

/// Whether only this machine can reach the address. A name is looked up when it is bound, so only
/// the usual one counts.
fn is_loopback(host: &str) -> bool {
    let address = host.parse::<std::net::IpAddr>();
    address.map_or_else(|_name| host.eq_ignore_ascii_case("localhost"), |ip| ip.is_loopback())
}
