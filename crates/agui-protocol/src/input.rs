//! What a client sends to start a run, and its parser.
//!
//! Tolerant where the protocol says so (unknown members and unknown union members are dropped
//! with a warning, IN-3 and IN-4), strict everywhere else (a known member with a value that the
//! schema rejects is an error with its JSON pointer, IN-2). No routing rules.

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
    /// Any JSON; absent = `{}` for the agent, but see [`RunAgentInput::state`] (IN-5, IN-7).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Value>,
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
