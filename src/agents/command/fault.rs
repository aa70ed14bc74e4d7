//! What goes wrong with a program, and what of it the client sees.

use std::{io, time::Duration};

use crate::agents::AgentError;

/// Why a run of a program failed. The text is for the log.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("the program `{program}` cannot be started: {error}")]
    Start { program: String, error: io::Error },
    #[error("line {line} of its stdout: {what}")]
    BadLine { line: u64, what: String },
    #[error("line {line} of its stdout is longer than {limit} bytes (line-limit)")]
    LongLine { line: u64, limit: usize },
    #[error("no line on its stdout for {} s (silence-timeout)", limit.as_secs_f64())]
    Silent { limit: Duration },
    #[error("its stdout cannot be read: {0}")]
    Unreadable(io::Error),
    #[error("exit code {code}{}", said(last_words.as_ref()))]
    Exit { code: i32, last_words: Option<String> },
    #[error("ended by signal {signal}{}", said(last_words.as_ref()))]
    Killed { signal: i32, last_words: Option<String> },
    #[error("it is not known how the program ended: {0}")]
    Lost(String),
}

impl Fault {
    /// For people: places and numbers, never a path or content.
    fn sentence(&self) -> String {
        match self {
            Self::Start { .. } => "The agent's program could not be started.".to_owned(),
            Self::BadLine { line, .. } => {
                format!("Line {line} of the agent's output is not an agent event.")
            }
            Self::LongLine { line, .. } => {
                format!("Line {line} of the agent's output is longer than this server allows.")
            }
            Self::Silent { .. } => {
                "The agent was silent for longer than this server allows.".to_owned()
            }
            Self::Exit { code, .. } => {
                format!("The agent's program failed with exit code {code}.")
            }
            Self::Killed { signal, .. } => {
                format!("The agent's program was ended by signal {signal}.")
            }
            Self::Unreadable(_) | Self::Lost(_) => "The agent's program was lost.".to_owned(),
        }
    }
}

impl From<Fault> for AgentError {
    fn from(fault: Fault) -> Self {
        Self { code: "UPSTREAM_ERROR", message: fault.sentence(), cause: Some(fault.to_string()) }
    }
}

fn said(last_words: Option<&String>) -> String {
    last_words.map(|words| format!("; last line of its stderr: {words}")).unwrap_or_default()
}
