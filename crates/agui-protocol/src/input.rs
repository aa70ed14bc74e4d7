//! What a client sends to start a run, and its parser.
//!
//! Tolerant where the protocol says so (unknown members and unknown union members are dropped
//! with a warning, IN-3 and IN-4), strict everywhere else (a known member with a value that the
//! schema rejects is an error with its JSON pointer, IN-2). No routing rules.

mod cursor;
mod message;
mod parse;

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Message, Object, ResumeEntry, RunId, ThreadId};

/// The body of a run request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunAgentInput {
    /// The conversation.
    pub thread_id: ThreadId,
    /// The run that the client asks for.
    pub run_id: RunId,
    /// The protocol version of the client; absent = a peer older than 1.0 (VER-7).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// The run that spawned this one; copied to `RUN_STARTED` (IN-23).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_run_id: Option<RunId>,
    /// Any JSON; absent = `{}` for the agent, and nothing is known of the client's (IN-5, IN-7).
    /// Shared: it can be large and everybody who reads it keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Arc<Value>>,
    /// The complete history that the client shows (IN-10).
    pub messages: Vec<Message>,
    /// The client's own tools, for this run only (IN-18).
    #[serde(default)]
    pub tools: Vec<Tool>,
    /// Grounding for the model (IN-17).
    #[serde(default)]
    pub context: Vec<Context>,
    /// Passed on unchanged, never trusted (IN-8).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forwarded_props: Option<Value>,
    /// Answers to interrupts; empty when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resume: Vec<ResumeEntry>,
}

/// A tool that the client runs itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// The name the model sees.
    pub name: String,
    /// What the model is told about it.
    pub description: String,
    /// Opaque JSON, normally a JSON Schema; absent = no arguments (IN-9).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
    /// Open by key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
}

/// A piece of grounding for the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// What the value is.
    pub description: String,
    /// The value.
    pub value: String,
}

/// A run input that the schema accepts, and what had to be left out of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// The input.
    pub input: RunAgentInput,
    /// What was dropped, in the order of reading; at most [`MAX_WARNINGS`].
    pub warnings: Vec<InputWarning>,
}

/// How many warnings one input can give; the rest is dropped without a word, so that a hostile
/// body cannot fill a log.
pub const MAX_WARNINGS: usize = 64;

/// Something that was left out of an input, which is valid without it (IN-3, IN-4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputWarning {
    /// JSON pointer (RFC 6901) of what was dropped; very long keys are cut.
    pub pointer: String,
    /// Why it was dropped.
    pub reason: &'static str,
}

impl fmt::Display for InputWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.pointer, self.reason)
    }
}

/// Why a body is not a run input. No variant repeats content of the body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// Not JSON, not UTF-8, or nested too deeply.
    #[error("the body is not JSON: {message} at line {line} column {column}")]
    NotJson {
        /// Line of the fault, from 1.
        line: usize,
        /// Column of the fault, from 1; counted in bytes.
        column: usize,
        /// What is wrong there.
        message: String,
    },
    /// JSON that the schema of the run input rejects.
    #[error("{}: {message}", if pointer.is_empty() { "the body" } else { pointer.as_str() })]
    Invalid {
        /// JSON pointer (RFC 6901) of the fault; of a missing member, where it should stand.
        pointer: String,
        /// What is wrong there, and what would be right.
        message: String,
    },
}

impl RunAgentInput {
    /// Reads the body of a run request.
    ///
    /// The last of several members with the same name counts.
    ///
    /// # Errors
    ///
    /// When the body is no JSON, or JSON that the schema rejects.
    pub fn from_slice(body: &[u8]) -> Result<Parsed, InputError> {
        let value = serde_json::from_slice(body).map_err(|error| not_json(&error))?;
        Self::from_value(value)
    }

    /// Reads a run input that was parsed as JSON before.
    ///
    /// # Errors
    ///
    /// When the schema rejects the value.
    pub fn from_value(value: Value) -> Result<Parsed, InputError> {
        parse::run_agent_input(value)
    }
}

fn not_json(error: &serde_json::Error) -> InputError {
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    let message = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text);
    InputError::NotJson { line, column, message: message.to_owned() }
}

#[cfg(test)]
mod tests;
