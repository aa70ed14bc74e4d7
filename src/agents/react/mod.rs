//! `type: react`: a model that calls tools until it is done.
//!
//! A reply is a loop of model calls ([`turn`]) and acting rounds ([`round`]). When something has
//! to be asked it parks ([`park`]), and goes on when the answers come ([`resume`]). Its events
//! stand in the order of AgentScope's.

mod call;
mod capabilities;
mod drive;
mod factory;
mod forms;
pub mod history;
mod keep;
mod notices;
mod park;
pub mod permission;
mod prompt;
mod reply;
mod resume;
mod round;
pub mod subagent;
mod supplies;
#[cfg(test)]
mod tests;
pub mod toolkit;
mod turn;

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use agui_adapter::options::ToolMergeMode;

pub use self::{
    factory::ReactFactory,
    supplies::{Model, Supplies},
};
use self::{
    notices::Notices,
    prompt::Prompt,
    toolkit::{OwnTools, SubagentTool},
};
use super::{Agent, AgentRequest, AgentStream, directory::Directory};
use crate::{
    config::react::{Declared, PermissionConfig},
    llm::ChatModel,
    tools::{Tool, ToolSource},
};

/// An agent that is a model with tools.
#[derive(Clone)]
pub struct ReactAgent(Arc<Parts>);

impl Agent for ReactAgent {
    fn run(&self, request: AgentRequest) -> AgentStream {
        drive::run(Arc::clone(&self.0), request)
    }
}

/// What an agent is made of.
struct Parts {
    name: String,
    prompt: Prompt,
    model: Arc<dyn ChatModel>,
    max_iters: u32,
    /// Its own tools, each with the name of its source.
    tools: Vec<(Arc<str>, Arc<dyn Tool>)>,
    /// Tools that come and go.
    sources: Vec<Source>,
    external: Vec<Declared>,
    subagents: Vec<String>,
    directory: Directory,
    max_subagent_depth: u32,
    tool_timeout: Option<Duration>,
    parallel_tool_calls: bool,
    permission: PermissionConfig,
    mode: ToolMergeMode,
    history_limit: usize,
    /// Whether the model is told the thread's state.
    tells_state: bool,
    /// The tools of an agent without sources, made by its first run; sub-agents are only known
    /// when all agents are built.
    whole: OnceLock<Arc<OwnTools>>,
    /// The same without sub-agents.
    leaf: OnceLock<Arc<OwnTools>>,
    notices: Notices,
}

/// Tools that come and go together, and which of them the agent uses.
struct Source {
    source: Arc<dyn ToolSource>,
    /// Empty = all.
    include: Vec<String>,
    exclude: Vec<String>,
}

impl Parts {
    fn subagent_tools(&self) -> Vec<SubagentTool> {
        let known = self.subagents.iter().filter_map(|id| self.directory.get(id));
        let tool = |registered| SubagentTool {
            description: subagent::description(&registered),
            id: registered.info.id,
        };
        known.map(tool).collect()
    }
}
