//! Key `agentscope.agents`: what each agent is.

use std::path::PathBuf;

/// One agent.
#[derive(Clone, Debug)]
pub struct AgentConfig {
    /// Name shown to people; empty = the agent id.
    pub name: String,
    /// Shown to people.
    pub description: String,
    /// Adapter switches that hold for this agent only (`agui:` inside its block), merged over
    /// the server's.
    pub adapter: agui_adapter::options::AdapterOptions,
    /// Longest run of this agent; `None` = no limit.
    pub run_timeout: Option<std::time::Duration>,
    /// What it is.
    pub kind: AgentKind,
}

/// What an agent is (`type`).
#[derive(Clone, Debug)]
pub enum AgentKind {
    /// Events from a file.
    Scripted(ScriptedConfig),
}

/// `type: scripted`.
#[derive(Clone, Debug, Default)]
pub struct ScriptedConfig {
    /// The turns; the first that matches is played, without a match the last one.
    pub turns: Vec<Turn>,
}

/// One turn of a scripted agent.
#[derive(Clone, Debug, Default)]
pub struct Turn {
    /// When it is played.
    pub when: When,
    /// The script, already read: one JSON value per line with its line number, comments and
    /// blank lines left out.
    pub lines: Vec<(usize, String)>,
    /// Where the lines came from, for messages.
    pub origin: PathBuf,
}

/// Conditions of a turn; all that are given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct When {
    /// The last user message contains it, case ignored.
    pub text: Option<String>,
    /// How the run's resume answers.
    pub resume: Option<ResumeCondition>,
    /// The last message is a tool result for the tool of this name.
    pub tool_result: Option<String>,
    /// Always holds.
    pub always: bool,
}

/// What a run's resume must say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumeCondition {
    /// All entries approve.
    Approved,
    /// Any entry denies.
    Denied,
    /// Any entry is cancelled.
    Cancelled,
    /// Any other payload.
    Answered,
    /// Any resume.
    Any,
}
