//! An agent of `type: react`: model, prompt, tools, permissions, sub-agents.

mod permission;
mod prompt;
mod subagents;
mod tools;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde_json::Value;

pub(super) use permission::warnings;
pub(super) use subagents::check as check_subagents;

use super::{
    McpServerConfig, ModelConfig,
    adapter::missing,
    check::no_such,
    models::Secret,
    tree::{Block, Faults},
};

/// `type: react`.
#[derive(Clone, Debug, PartialEq)]
pub struct ReactConfig {
    /// Instructions.
    pub sys_prompt: String,
    /// Name of the model in `agentscope.models`.
    pub model: String,
    /// Model calls of one reply at most, the summarising one not counted; default 10.
    pub max_iters: u32,
    /// Where its tools come from.
    pub tools: Vec<ToolConfig>,
    /// Longest call of a tool; `None` = no limit; default 2 minutes.
    pub tool_timeout: Option<Duration>,
    /// Whether the tools of one answer run at once; default true.
    pub parallel_tool_calls: bool,
    /// Who may call what.
    pub permission: PermissionConfig,
    /// Ids of the agents that are offered as tools.
    pub subagents: Vec<String>,
    /// How deep sub-agents may nest below this agent; default 3.
    pub max_subagent_depth: u32,
}

impl Default for ReactConfig {
    fn default() -> Self {
        Self {
            sys_prompt: String::new(),
            model: String::new(),
            max_iters: 10,
            tools: Vec::new(),
            tool_timeout: Some(Duration::from_secs(120)),
            parallel_tool_calls: true,
            permission: PermissionConfig::default(),
            subagents: Vec::new(),
            max_subagent_depth: 3,
        }
    }
}

/// Where tools come from that are no MCP server's, as permission rules name it.
pub const OTHER_SOURCES: [&str; 4] = ["builtin", "external", "http", "subagent"];

/// What an agent may name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shared<'a> {
    /// The models.
    pub(super) models: &'a BTreeMap<String, ModelConfig>,
    /// The MCP servers.
    pub(super) servers: &'a BTreeMap<String, McpServerConfig>,
}

/// Reads the keys of the type.
pub(super) fn read(entry: &Block<'_>, shared: Shared<'_>, faults: &mut Faults<'_>) -> ReactConfig {
    let default = ReactConfig::default();
    let tools = tools::read(entry, shared.servers, faults);
    let subagents = subagents::read(entry, &tools, faults);
    ReactConfig {
        sys_prompt: prompt::read(entry, faults),
        model: model(entry, shared.models, faults),
        max_iters: entry.integer("max-iters").unwrap_or(default.max_iters),
        tool_timeout: entry.duration("tool-timeout").unwrap_or(default.tool_timeout),
        parallel_tool_calls: entry
            .boolean("parallel-tool-calls")
            .unwrap_or(default.parallel_tool_calls),
        permission: permission::read(entry, &tools, &subagents, faults),
        max_subagent_depth: entry
            .integer("max-subagent-depth")
            .unwrap_or(default.max_subagent_depth),
        tools,
        subagents,
    }
}

fn model(
    entry: &Block<'_>,
    models: &BTreeMap<String, ModelConfig>,
    faults: &mut Faults<'_>,
) -> String {
    let Some(name) = entry.text("model") else {
        missing(entry, "model", faults);
        return String::new();
    };
    if !models.contains_key(name) {
        let known = models.keys().map(String::as_str);
        let message = no_such("model", "models", name, &entry.at("model"), known);
        faults.value(&entry.at("model"), message);
    }
    name.to_owned()
}

/// One entry of `tools`.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolConfig {
    /// Tools of an MCP server.
    Mcp {
        /// Its name in `agentscope.mcp-servers`.
        server: String,
        /// Only these; empty = all.
        include: Vec<String>,
        /// All but these.
        exclude: Vec<String>,
    },
    /// One of the server's own.
    Builtin(Builtin),
    /// A tool that somebody else executes.
    External(Declared),
    /// A tool that is an HTTP request.
    Http(HttpToolConfig),
}

/// The server's own tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Builtin {
    /// `get_current_time`
    GetCurrentTime,
    /// `calculate`
    Calculate,
    /// `update_state`
    UpdateState,
    /// `update_plan`
    UpdatePlan,
    /// `ask_user`
    AskUser,
}

impl Builtin {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::GetCurrentTime, Self::Calculate, Self::UpdateState, Self::UpdatePlan, Self::AskUser];

    /// Name of the tool.
    pub fn name(self) -> &'static str {
        match self {
            Self::GetCurrentTime => "get_current_time",
            Self::Calculate => "calculate",
            Self::UpdateState => "update_state",
            Self::UpdatePlan => "update_plan",
            Self::AskUser => "ask_user",
        }
    }
}

/// What a tool is, as declared in the configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Declared {
    /// Name.
    pub name: String,
    /// For the model.
    pub description: String,
    /// JSON Schema of the arguments, an object.
    pub parameters: Arc<Value>,
}

/// A tool that is an HTTP request.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpToolConfig {
    /// What it is.
    pub declared: Declared,
    /// `GET`, `POST`, `PUT`, `PATCH` or `DELETE`; default GET.
    pub method: String,
    /// With `{parameter}` where an argument goes, escaped for the place it stands in; arguments
    /// that the URL does not name are query parameters, or the JSON body of methods that have one.
    pub url: String,
    /// Headers of every request.
    pub headers: BTreeMap<String, Secret>,
    /// Longest time of the whole request; `None` = the agent's `tool-timeout`.
    pub timeout: Option<Duration>,
    /// Longest response body in bytes; default 1 MiB.
    pub response_limit: usize,
}

/// Key `permission`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PermissionConfig {
    /// What becomes of calls that no rule decides.
    pub mode: PermissionMode,
    /// Tools that run: `tool` or `source:tool`.
    pub allow: Vec<String>,
    /// Tools that ask first.
    pub ask: Vec<String>,
    /// Tools that do not run.
    pub deny: Vec<String>,
}

/// AgentScope's permission modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PermissionMode {
    /// Runs, unless the tool is destructive.
    #[default]
    Default,
    /// As default; tools may let edits pass.
    AcceptEdits,
    /// Only what changes nothing.
    Explore,
    /// Everything runs.
    Bypass,
    /// What would ask is denied.
    DontAsk,
}
