//! What the names in the configuration of react agents stand for.

use std::{collections::BTreeMap, sync::Arc};

use agui_protocol::capabilities::SubagentInfo;

use crate::{
    agents::{
        directory::Directory,
        registry::{BuildError, Registered},
    },
    config::Config,
    http_client::{self, Redirects},
    llm::{self, ChatModel},
    tools::{ToolSource, mcp::McpServers},
};

/// A model, and whether it takes images.
#[derive(Clone)]
pub struct Model {
    /// The model.
    pub model: Arc<dyn ChatModel>,
    /// Whether it takes images.
    pub vision: bool,
}

/// What react agents are made of, by the names in the configuration.
#[derive(Clone)]
pub struct Supplies {
    /// The models.
    pub models: BTreeMap<String, Model>,
    /// The MCP servers.
    pub sources: BTreeMap<String, Arc<dyn ToolSource>>,
    /// The agents, as they are declared.
    pub agents: BTreeMap<String, SubagentInfo>,
    /// The agents, once all are built.
    pub directory: Directory,
    /// For tools that are HTTP requests.
    pub client: reqwest::Client,
}

impl Supplies {
    /// What the configuration declares, and the agents that stand beside it. Nothing is connected
    /// to.
    ///
    /// # Errors
    ///
    /// When `ca-files` cannot be used.
    pub fn of(
        config: &Config,
        beside: &[Registered],
        directory: Directory,
    ) -> Result<(Self, Arc<McpServers>), BuildError> {
        let client = |redirects| {
            let client = http_client::build(&config.ca_files, redirects);
            client.map_err(|error| BuildError::at("agentscope.ca-files", error.to_string()))
        };
        // A key goes to whom it belongs and nowhere else.
        let (to_models, to_tools) = (client(Redirects::None)?, client(Redirects::SameHost)?);
        let servers = Arc::new(McpServers::new(&config.mcp_servers, to_tools.clone()));
        let models = config.models.iter().map(|(name, model)| {
            let connected = llm::connect(model, to_models.clone());
            (name.clone(), Model { model: connected, vision: model.vision })
        });
        let names = config.mcp_servers.keys();
        let sources = names.filter_map(|name| Some((name.clone(), servers.get(name)?)));
        let declared = config.agents.iter().map(|(id, agent)| {
            let name = if agent.name.is_empty() { id } else { &agent.name };
            (id.clone(), info(name, &agent.description))
        });
        let inserted = beside.iter().map(|agent| &agent.info);
        let inserted =
            inserted.map(|agent| (agent.id.clone(), info(&agent.name, &agent.description)));
        let supplies = Self {
            models: models.collect(),
            sources: sources.collect(),
            agents: declared.chain(inserted).collect(),
            directory,
            client: to_tools,
        };
        Ok((supplies, servers))
    }
}

fn info(name: &str, description: &str) -> SubagentInfo {
    let description = Some(description.to_owned()).filter(|text| !text.is_empty());
    SubagentInfo { name: name.to_owned(), description }
}
