//! Configuration: data and checks only. Opens no socket and starts nothing.

mod adapter;
pub mod agents;
pub mod agui;
mod check;
pub mod command;
pub mod diagnostic;
mod embedded;
mod env;
mod expand;
mod json_schema;
mod keys;
pub mod load;
pub mod place;
mod scalar;
mod schema;
pub mod server;
mod tree;
mod yaml;

use std::collections::BTreeMap;

use agui_adapter::options::{FrontendToolOutcome, SubagentEvents};

pub use agents::{AgentConfig, AgentKind, ResumeCondition, ScriptedConfig, Turn, When};
pub use agui::{AguiConfig, ContextSource};
pub use command::CommandConfig;
pub use diagnostic::{ConfigError, ConfigErrors};
pub use json_schema::json_schema;
pub use load::{Environment, Loaded, Origin, Source, load};
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
        warnings
    }
}
