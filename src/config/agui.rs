//! Key `agentscope.agui`.

use std::{collections::BTreeMap, time::Duration};

use agui_adapter::options::AdapterOptions;

/// The AG-UI surface.
#[derive(Clone, Debug)]
pub struct AguiConfig {
    /// Prefix of all routes; default `/agui`.
    pub path_prefix: String,
    /// Whether CORS headers are sent; default true.
    pub cors_enabled: bool,
    /// Origins allowed; default `["*"]`.
    pub cors_allowed_origins: Vec<String>,
    /// Whether browsers may send credentials; default false.
    pub cors_allow_credentials: bool,
    /// Longest run; `None` = no limit; default 10 minutes.
    pub run_timeout: Option<Duration>,
    /// A comment line after this long a silence; `None` = off; default 15 s.
    pub heartbeat_interval: Option<Duration>,
    /// Agent for requests that name none; `None` = unset.
    pub default_agent_id: Option<String>,
    /// Whether the agent may stand in the path; default true.
    pub enable_path_routing: bool,
    /// Header that names the agent; default `X-Agent-Id`.
    pub agent_id_header: String,
    /// Whether client system and developer messages reach the agent; default false.
    pub accept_client_system_messages: bool,
    /// Runtime context values, by key.
    pub runtime_context: BTreeMap<String, ContextSource>,
    /// Adapter switches.
    pub adapter: AdapterOptions,
}

/// Where a runtime context value comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum ContextSource {
    /// A request header.
    Header(String),
    /// A query parameter.
    Query(String),
    /// The authenticated principal's name.
    Principal,
    /// A constant.
    Value(serde_json::Value),
}

impl Default for AguiConfig {
    fn default() -> Self {
        Self {
            path_prefix: "/agui".to_owned(),
            cors_enabled: true,
            cors_allowed_origins: vec!["*".to_owned()],
            cors_allow_credentials: false,
            run_timeout: Some(Duration::from_secs(600)),
            heartbeat_interval: Some(Duration::from_secs(15)),
            default_agent_id: None,
            enable_path_routing: true,
            agent_id_header: "X-Agent-Id".to_owned(),
            accept_client_system_messages: false,
            runtime_context: BTreeMap::new(),
            adapter: AdapterOptions::default(),
        }
    }
}
