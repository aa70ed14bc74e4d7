//! Configuration: data and checks only. Opens no socket and starts nothing.

pub mod agents;
pub mod agui;
pub mod server;

use std::collections::BTreeMap;

pub use agents::{AgentConfig, AgentKind, ScriptedConfig, Turn, When};
pub use agui::AguiConfig;
pub use server::ServerConfig;

/// The whole configuration, checked.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Key `server`.
    pub server: ServerConfig,
    /// Key `agentscope.agui`.
    pub agui: AguiConfig,
    /// Key `agentscope.agents`, by agent id.
    pub agents: BTreeMap<String, AgentConfig>,
}
