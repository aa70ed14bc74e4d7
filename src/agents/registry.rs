//! Which agents are served: by id, with what the routes tell about them and the switches that
//! hold for them.
//!
//! Built once at start-up and read only afterwards. What an agent does is its own folder's
//! business; which id a request means is the server's.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use agui_adapter::options::AdapterOptions;
use agui_protocol::capabilities::AgentCapabilities;

use super::{
    Agent,
    command::CommandFactory,
    directory::{Agents, Directory},
    react::{ReactFactory, Supplies},
    scripted::ScriptedFactory,
};
use crate::{
    config::{AgentConfig, AgentKind, Config, place},
    process::Missing,
    tools::mcp::{McpServers, program_faults},
};

/// The capabilities document of an agent, in AG-UI's shape.
pub type Capabilities = AgentCapabilities;

pub use crate::config::agents::RESERVED_IDS;

/// What the routes tell about an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentInfo {
    /// Id, as in the path.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// Description for people.
    pub description: String,
    /// What it can do; only what holds is declared (CAP-3).
    pub capabilities: Capabilities,
}

/// An agent together with all that belongs to it.
#[derive(Clone)]
pub struct Registered {
    /// What the routes tell.
    pub info: AgentInfo,
    /// The agent.
    pub agent: Arc<dyn Agent>,
    /// Adapter switches for its runs.
    pub options: Arc<AdapterOptions>,
    /// Longest run; `None` = no limit.
    pub run_timeout: Option<Duration>,
    /// Whether client system and developer messages reach it.
    pub accept_client_system_messages: bool,
}

impl fmt::Debug for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registered").field("info", &self.info).finish_non_exhaustive()
    }
}

/// What a factory makes of an agent's configuration.
#[derive(Clone)]
pub struct Built {
    /// The agent.
    pub agent: Arc<dyn Agent>,
    /// What it can do.
    pub capabilities: Capabilities,
}

/// Makes the agents of one `type`.
///
/// Registered on the [`RegistryBuilder`]; a user's factory takes the place of the built-in one.
/// Everything that can be checked before the first request is checked here, and all faults are
/// reported at once.
///
/// ```
/// use std::sync::Arc;
///
/// use agentscope_agui::{
///     agents::{
///         Agent, AgentRequest, AgentStream,
///         registry::{AgentFactory, BuildError, Built, Registry},
///     },
///     config::{AgentConfig, Config},
/// };
///
/// struct Silent;
///
/// impl Agent for Silent {
///     fn run(&self, _request: AgentRequest) -> AgentStream {
///         Box::pin(futures_util::stream::empty())
///     }
/// }
///
/// struct SilentFactory;
///
/// impl AgentFactory for SilentFactory {
///     fn build(&self, _id: &str, _config: &AgentConfig) -> Result<Built, Vec<BuildError>> {
///         Ok(Built { agent: Arc::new(Silent), capabilities: Default::default() })
///     }
/// }
///
/// let registry = Registry::builder()
///     .factory("scripted", Arc::new(SilentFactory))
///     .build(&Config::default());
/// assert!(registry.is_ok());
/// ```
pub trait AgentFactory: Send + Sync + 'static {
    /// Makes the agent `id`.
    ///
    /// # Errors
    ///
    /// Every fault of the configuration that this factory can see.
    fn build(&self, id: &str, config: &AgentConfig) -> Result<Built, Vec<BuildError>>;
}

/// A fault that keeps an agent from being built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct BuildError {
    /// Key path in the configuration, e.g. `agentscope.agents.demo`.
    pub path: String,
    /// What is wrong, and what would be right.
    pub message: String,
    /// The file in which the fault stands, if it is not the configuration itself.
    pub file: Option<PathBuf>,
    /// The line in that file.
    pub line: Option<usize>,
}

impl BuildError {
    /// A fault of the configuration itself.
    pub fn at(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into(), file: None, line: None }
    }

    /// The same fault, with the file and line in which it stands.
    #[must_use]
    pub fn in_file(mut self, file: impl Into<PathBuf>, line: usize) -> Self {
        self.file = Some(file.into());
        self.line = Some(line);
        self
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}:", file.display())?;
            if let Some(line) = self.line {
                write!(f, "{line}:")?;
            }
            f.write_str(" ")?;
        }
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// All agents that are served.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    agents: Arc<Agents>,
    default_id: Option<String>,
    mcp: Arc<McpServers>,
}

impl Registry {
    /// A builder without agents of its own and with the built-in factories.
    pub fn builder() -> RegistryBuilder {
        RegistryBuilder::default()
    }

    /// The agents that the configuration declares.
    ///
    /// # Errors
    ///
    /// Every fault of every agent.
    pub fn from_config(config: &Config) -> Result<Self, Vec<BuildError>> {
        Self::builder().build(config)
    }

    /// The agent of this id.
    pub fn get(&self, id: &str) -> Option<&Registered> {
        self.agents.get(id)
    }

    /// The agent for requests that name none: `default-agent-id`, else the agent `default`, else
    /// the only agent there is.
    pub fn default_agent(&self) -> Option<&Registered> {
        self.default_id.as_deref().and_then(|id| self.get(id))
    }

    /// The MCP servers that agents have tools of; whoever serves the agents starts them.
    pub fn mcp_servers(&self) -> &Arc<McpServers> {
        &self.mcp
    }

    /// All agents, by id.
    pub fn iter(&self) -> impl Iterator<Item = &Registered> {
        self.agents.values()
    }
}

/// Gathers factories and ready-made agents, then builds the [`Registry`].
pub struct RegistryBuilder {
    factories: BTreeMap<String, Arc<dyn AgentFactory>>,
    inserted: Vec<Registered>,
    directory: Directory,
}

impl Default for RegistryBuilder {
    fn default() -> Self {
        let mut factories: BTreeMap<String, Arc<dyn AgentFactory>> = BTreeMap::new();
        factories.insert("scripted".to_owned(), Arc::new(ScriptedFactory));
        factories.insert("command".to_owned(), Arc::new(CommandFactory));
        Self { factories, inserted: Vec::new(), directory: Directory::default() }
    }
}

impl RegistryBuilder {
    /// Uses `factory` for every agent whose `type` is `kind`.
    #[must_use]
    pub fn factory(mut self, kind: impl Into<String>, factory: Arc<dyn AgentFactory>) -> Self {
        self.factories.insert(kind.into(), factory);
        self
    }

    /// The agents that this builder will have built, for a factory whose agents delegate to others.
    pub fn directory(&self) -> Directory {
        self.directory.clone()
    }

    /// Adds a ready-made agent beside those of the configuration.
    #[must_use]
    pub fn insert(mut self, agent: Registered) -> Self {
        self.inserted.push(agent);
        self
    }

    /// Builds the agents of `config` and adds the inserted ones.
    ///
    /// # Errors
    ///
    /// Every fault of every agent, ids that cannot be served, and a `default-agent-id` that names
    /// no agent.
    pub fn build(self, config: &Config) -> Result<Registry, Vec<BuildError>> {
        let Self { mut factories, inserted, directory } = self;
        let mut errors = Vec::new();
        let mut mcp = Arc::default();
        if uses_models(config) {
            match Supplies::of(config, &inserted, directory.clone()) {
                Ok((supplies, servers)) => {
                    let react = || Arc::new(ReactFactory::new(supplies)) as Arc<dyn AgentFactory>;
                    factories.entry(REACT.to_owned()).or_insert_with(react);
                    mcp = servers;
                }
                Err(fault) => return Err(vec![fault]),
            }
        }
        let mut agents = BTreeMap::new();
        for (id, agent) in &config.agents {
            match build_one(&factories, id, agent, config) {
                Ok(registered) => {
                    agents.insert(id.clone(), registered);
                }
                Err(faults) => errors.extend(faults),
            }
        }
        for registered in inserted {
            let id = registered.info.id.clone();
            if config.agents.contains_key(&id) || agents.contains_key(&id) {
                errors.push(BuildError::at(agent_path(&id), "this agent id is used twice"));
            } else {
                agents.insert(id, registered);
            }
        }
        errors.extend(missing_programs(config));
        errors.extend(agents.keys().filter_map(|id| id_fault(id)));
        // An agent that could not be built is known all the same: one fault gives one error.
        let known: BTreeSet<&str> =
            config.agents.keys().chain(agents.keys()).map(String::as_str).collect();
        let named = config.agui.default_agent_id.as_deref();
        errors.extend(named.filter(|id| !known.contains(id)).map(|id| no_such_default(id, &known)));
        if !errors.is_empty() {
            return Err(errors);
        }
        let default_id = default_id(config.agui.default_agent_id.as_deref(), &agents);
        let agents = Arc::new(agents);
        directory.fill(&agents);
        Ok(Registry { agents, default_id, mcp })
    }
}

/// The `type` of agents with a model.
const REACT: &str = "react";

/// Whether anything outside is needed. Without, no client is made: that takes its time.
fn uses_models(config: &Config) -> bool {
    let is_react = |agent: &AgentConfig| matches!(agent.kind, AgentKind::React(_));
    !config.mcp_servers.is_empty() || config.agents.values().any(is_react)
}

/// MCP servers whose program is not there; an optional one may come later.
fn missing_programs(config: &Config) -> impl Iterator<Item = BuildError> {
    let needed = config.mcp_servers.iter().filter(|(_, server)| !server.optional);
    needed.flat_map(|(name, server)| {
        let path = place::join("agentscope.mcp-servers", name);
        let at = move |fault: Missing| BuildError::at(place::join(&path, fault.key), fault.message);
        program_faults(server).into_iter().map(at)
    })
}

fn build_one(
    factories: &BTreeMap<String, Arc<dyn AgentFactory>>,
    id: &str,
    agent: &AgentConfig,
    config: &Config,
) -> Result<Registered, Vec<BuildError>> {
    let kind = agent.kind.name();
    let Some(factory) = factories.get(kind) else {
        let message = format!("no factory for agents of type `{kind}`");
        return Err(vec![BuildError::at(agent_path(id), message)]);
    };
    let Built { agent: built, mut capabilities } = factory.build(id, agent)?;
    if let Some(state) = &mut capabilities.state {
        // Kept by the server, whatever the agent is.
        state.persistent_state = Some(config.agui.threads.server_side_memory);
    }
    let name = if agent.name.is_empty() { id } else { &agent.name };
    Ok(Registered {
        info: AgentInfo {
            id: id.to_owned(),
            name: name.to_owned(),
            description: agent.description.clone(),
            capabilities,
        },
        agent: built,
        options: Arc::new(agent.adapter.clone()),
        run_timeout: agent.run_timeout,
        accept_client_system_messages: agent.accept_client_system_messages,
    })
}

/// Key path of an agent, for messages.
pub(crate) fn agent_path(id: &str) -> String {
    place::join("agentscope.agents", id)
}

fn id_fault(id: &str) -> Option<BuildError> {
    crate::config::agents::id_fault(id).map(|message| BuildError::at(agent_path(id), message))
}

fn no_such_default(id: &str, known: &BTreeSet<&str>) -> BuildError {
    let known: Vec<&str> = known.iter().copied().collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    let message = format!("there is no agent `{id}`; agents: {known}");
    BuildError::at("agentscope.agui.default-agent-id", message)
}

fn default_id(configured: Option<&str>, agents: &Agents) -> Option<String> {
    let only = || match agents.len() {
        1 => agents.keys().next(),
        _ => None,
    };
    match configured {
        Some(id) => Some(id.to_owned()),
        None => agents.get_key_value("default").map(|(id, _)| id).or_else(only).cloned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        agents::{AgentRequest, AgentStream},
        config::{ScriptedConfig, Turn},
    };

    struct Silent;

    impl Agent for Silent {
        fn run(&self, _request: AgentRequest) -> AgentStream {
            Box::pin(futures_util::stream::empty())
        }
    }

    fn scripted(turns: Vec<Turn>) -> AgentConfig {
        AgentConfig {
            name: String::new(),
            description: "Shows things.".to_owned(),
            adapter: AdapterOptions::default(),
            run_timeout: Some(Duration::from_secs(1)),
            accept_client_system_messages: false,
            history_limit: 200,
            kind: AgentKind::Scripted(ScriptedConfig { turns }),
        }
    }

    fn config(ids: &[&str]) -> Config {
        let agent = || scripted(vec![Turn::default()]);
        let agents = ids.iter().map(|id| ((*id).to_owned(), agent())).collect();
        Config { agents, ..Config::default() }
    }

    fn custom(id: &str) -> Registered {
        Registered {
            info: AgentInfo {
                id: id.to_owned(),
                name: id.to_owned(),
                description: String::new(),
                capabilities: Capabilities::default(),
            },
            agent: Arc::new(Silent),
            options: Arc::default(),
            run_timeout: None,
            accept_client_system_messages: false,
        }
    }

    fn default_of(config: &Config) -> Option<String> {
        let registry = Registry::from_config(config).unwrap();
        registry.default_agent().map(|agent| agent.info.id.clone())
    }

    #[test]
    fn agents_are_found_by_id_and_listed_in_order() {
        let registry = Registry::builder().insert(custom("m")).build(&config(&["z", "a"])).unwrap();
        let ids: Vec<&str> = registry.iter().map(|agent| agent.info.id.as_str()).collect();
        assert_eq!(ids, ["a", "m", "z"]);
        let agent = registry.get("a").unwrap();
        assert_eq!(
            (agent.info.name.as_str(), agent.info.description.as_str()),
            ("a", "Shows things.")
        );
        assert_eq!(agent.run_timeout, Some(Duration::from_secs(1)));
        assert!(registry.get("b").is_none());
    }

    #[test]
    fn the_default_is_the_configured_one_else_default_else_the_only_one() {
        assert_eq!(default_of(&config(&["a", "default"])).as_deref(), Some("default"));
        assert_eq!(default_of(&config(&["a"])).as_deref(), Some("a"));
        assert_eq!(default_of(&config(&["a", "b"])), None);
        assert_eq!(default_of(&config(&[])), None);
        let mut configured = config(&["a", "default"]);
        configured.agui.default_agent_id = Some("a".to_owned());
        assert_eq!(default_of(&configured).as_deref(), Some("a"));
    }

    #[test]
    fn all_faults_are_reported_at_once() {
        let mut config = config(&["a", "run", "with space"]);
        config.agents.insert("empty".to_owned(), scripted(Vec::new()));
        config.agui.default_agent_id = Some("nobody".to_owned());
        let errors = Registry::builder().insert(custom("a")).build(&config).unwrap_err();
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "agentscope.agents.empty: a scripted agent has `turns` or a `script`",
                "agentscope.agents.a: this agent id is used twice",
                "agentscope.agents.run: `run` is kept for a route of the server and cannot be an agent id",
                "agentscope.agents.\"with space\": an agent id has 1 to 64 characters out of A-Z, \
                 a-z, 0-9, `.`, `_` and `-`",
                "agentscope.agui.default-agent-id: there is no agent `nobody`; agents: a, empty, \
                 run, with space",
            ]
        );
    }

    #[test]
    fn state_persists_with_memory_on_the_server() {
        let persists = |memory| {
            let mut config = config(&["a"]);
            config.agui.threads.server_side_memory = memory;
            let registry = Registry::from_config(&config).unwrap();
            let state = registry.get("a").unwrap().info.capabilities.state.clone();
            state.unwrap().persistent_state
        };
        assert_eq!((persists(false), persists(true)), (Some(false), Some(true)));
    }

    #[test]
    fn the_directory_knows_all_agents_once_they_are_built_and_as_long_as_they_are_served() {
        let builder = Registry::builder().insert(custom("m"));
        let directory = builder.directory();
        let id = |id| directory.get(id).map(|agent| agent.info.id);
        assert_eq!(id("m"), None);
        let registry = builder.build(&config(&["a"])).unwrap();
        let served = registry.clone();
        drop(registry);
        assert_eq!((id("a"), id("m"), id("x")), (Some("a".into()), Some("m".into()), None));
        drop(served);
        assert_eq!(id("a"), None);
    }

    fn custom_only() -> Capabilities {
        serde_json::from_value(json!({"custom": {}})).unwrap()
    }

    #[test]
    fn a_factory_takes_the_place_of_the_built_in_one() {
        struct Factory;
        impl AgentFactory for Factory {
            fn build(&self, _id: &str, _config: &AgentConfig) -> Result<Built, Vec<BuildError>> {
                Ok(Built { agent: Arc::new(Silent), capabilities: custom_only() })
            }
        }
        let builder = Registry::builder().factory("scripted", Arc::new(Factory));
        let registry = builder.build(&config(&["a"])).unwrap();
        assert_eq!(registry.get("a").unwrap().info.capabilities, custom_only());
    }
}
