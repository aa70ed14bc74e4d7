//! Key `agentscope.mcp-servers`: the MCP servers, by name.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use super::models::Secret;

/// One MCP server.
#[derive(Clone, Debug, PartialEq)]
pub struct McpServerConfig {
    /// How it is reached.
    pub transport: McpTransport,
    /// Longest time that starting it or one of its calls may take without progress; default 60 s.
    pub timeout: Duration,
    /// Who shares it.
    pub scope: McpScope,
    /// Whether a run goes on without it; default false.
    pub optional: bool,
    /// What becomes of its questions in the middle of a call.
    pub elicitation: Elicitation,
}

/// How an MCP server is reached.
#[derive(Clone, Debug, PartialEq)]
pub enum McpTransport {
    /// A program, over its stdin and stdout.
    Stdio {
        /// The program: a name, which is looked up on the PATH, or a path.
        command: PathBuf,
        /// Its arguments.
        args: Vec<String>,
        /// Environment variables of its own, over PATH, HOME, LANG and TMPDIR of the server,
        /// which are all it has else.
        env: BTreeMap<String, Secret>,
        /// The folder it runs in.
        cwd: PathBuf,
    },
    /// Streamable HTTP.
    Http {
        /// The endpoint.
        url: String,
        /// Headers of every request.
        headers: BTreeMap<String, Secret>,
    },
}

/// Who shares an MCP server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum McpScope {
    /// All threads.
    #[default]
    Server,
    /// Each thread has its own process or session.
    Thread,
}

/// What becomes of questions that an MCP server of the older protocol asks in the middle of a
/// call, which cannot outlast the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Elicitation {
    /// Declined.
    #[default]
    Decline,
    /// The run waits, open, for an answer.
    Wait,
}
