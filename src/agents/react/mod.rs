//! An agent with a model, tools and sub-agents.

pub mod history;
pub mod subagent;
