//! Builds react agents: every name in their configuration becomes what it names.

use std::sync::{Arc, OnceLock};

use agui_protocol::capabilities::SubagentInfo;

use super::{
    Parts, ReactAgent, Source, capabilities,
    notices::Notices,
    prompt::Prompt,
    supplies::{Model, Supplies},
    toolkit::{BUILTIN_SOURCE, HTTP_SOURCE},
};
use crate::{
    agents::registry::{AgentFactory, BuildError, Built, agent_path},
    config::{
        AgentConfig, AgentKind, ReactConfig,
        react::{Builtin, Declared, HttpToolConfig, ToolConfig},
    },
    tools::{Tool, builtin::builtin, http::http_tool},
};

/// Builds react agents.
#[derive(Clone)]
pub struct ReactFactory(Supplies);

impl ReactFactory {
    /// Of these supplies.
    pub fn new(supplies: Supplies) -> Self {
        Self(supplies)
    }
}

impl AgentFactory for ReactFactory {
    fn build(&self, id: &str, config: &AgentConfig) -> Result<Built, Vec<BuildError>> {
        let path = agent_path(id);
        let AgentKind::React(react) = &config.kind else {
            let message = format!("an agent of type `{}` has no model", config.kind.name());
            return Err(vec![BuildError::at(path, message)]);
        };
        let mut faults = Faults { path, faults: Vec::new() };
        let model = self.model(react, &mut faults);
        let prompt = prompt(react, &mut faults);
        let tools = self.tools(react, &mut faults);
        let subagents = self.subagents(react, &mut faults);
        let (Some(Model { model, vision }), true) = (model, faults.faults.is_empty()) else {
            return Err(faults.faults);
        };
        let capabilities = capabilities::derive(id, config, react, &tools, subagents, vision);
        let name = if config.name.is_empty() { id } else { &config.name };
        let agent = ReactAgent(Arc::new(Parts {
            name: name.to_owned(),
            prompt,
            model,
            max_iters: react.max_iters,
            tools: tools.own,
            sources: tools.sources,
            external: tools.external,
            subagents: react.subagents.clone(),
            directory: self.0.directory.clone(),
            max_subagent_depth: react.max_subagent_depth,
            tool_timeout: react.tool_timeout,
            parallel_tool_calls: react.parallel_tool_calls,
            permission: react.permission.clone(),
            mode: config.adapter.tool_merge_mode,
            history_limit: config.history_limit,
            tells_state: react.tools.contains(&ToolConfig::Builtin(Builtin::UpdateState)),
            whole: OnceLock::new(),
            leaf: OnceLock::new(),
            notices: Notices::default(),
        }));
        Ok(Built { agent: Arc::new(agent), capabilities })
    }
}

/// The tools that the configuration lists.
#[derive(Default)]
pub(super) struct Tools {
    pub(super) own: Vec<(Arc<str>, Arc<dyn Tool>)>,
    pub(super) sources: Vec<Source>,
    pub(super) external: Vec<Declared>,
}

/// The faults of an agent.
struct Faults {
    path: String,
    faults: Vec<BuildError>,
}

impl Faults {
    fn add(&mut self, key: &str, message: impl Into<String>) {
        self.faults.push(BuildError::at(format!("{}.{key}", self.path), message));
    }
}

fn prompt(react: &ReactConfig, faults: &mut Faults) -> Prompt {
    Prompt::parse(&react.sys_prompt).unwrap_or_else(|unknown| {
        for name in unknown {
            faults.add(
                "sys-prompt",
                format!(
                    "there is no placeholder `{name}`; placeholders: threadId, runId, context.<key>"
                ),
            );
        }
        Prompt::default()
    })
}

impl ReactFactory {
    fn model(&self, react: &ReactConfig, faults: &mut Faults) -> Option<Model> {
        let model = self.0.models.get(&react.model);
        if model.is_none() {
            faults.add("model", no_such("model", &react.model, self.0.models.keys()));
        }
        model.cloned()
    }

    fn tools(&self, react: &ReactConfig, faults: &mut Faults) -> Tools {
        let mut tools = Tools::default();
        for (at, config) in react.tools.iter().enumerate() {
            match config {
                ToolConfig::Mcp { server, include, exclude } => {
                    let Some(source) = self.0.sources.get(server) else {
                        let message = no_such("MCP server", server, self.0.sources.keys());
                        faults.add(&format!("tools[{at}].mcp"), message);
                        continue;
                    };
                    tools.sources.push(Source {
                        source: Arc::clone(source),
                        include: include.clone(),
                        exclude: exclude.clone(),
                    });
                }
                ToolConfig::Builtin(kind) => {
                    tools.own.push((BUILTIN_SOURCE.into(), builtin(*kind)));
                }
                ToolConfig::External(declared) => tools.external.push(declared.clone()),
                ToolConfig::Http(http) => match self.http(http) {
                    Ok(tool) => tools.own.push((HTTP_SOURCE.into(), tool)),
                    Err(fault) => faults.add(&format!("tools[{at}].http"), fault),
                },
            }
        }
        tools
    }

    fn http(&self, config: &HttpToolConfig) -> Result<Arc<dyn Tool>, String> {
        http_tool(config, self.0.client.clone())
    }

    fn subagents(&self, react: &ReactConfig, faults: &mut Faults) -> Vec<SubagentInfo> {
        let mut known = Vec::new();
        for (at, id) in react.subagents.iter().enumerate() {
            match self.0.agents.get(id) {
                Some(info) => known.push(info.clone()),
                None => {
                    let message = no_such("agent", id, self.0.agents.keys());
                    faults.add(&format!("subagents[{at}]"), message);
                }
            }
        }
        known
    }
}

fn no_such<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a String>) -> String {
    let known: Vec<&str> = known.map(String::as_str).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    format!("there is no {what} `{name}`; there are: {known}")
}
