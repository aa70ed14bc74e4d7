//! Interrupts, the answers to them, and the outcomes of runs and sub-agents.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{InterruptId, Object, SubagentRunId, ToolCallId};

/// A question that a run stopped to ask (INT-1 to INT-7).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Interrupt {
    /// The sub-agent that asks; absent for the root agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent_run_id: Option<SubagentRunId>,
    /// Unique over the thread (INT-2).
    pub id: InterruptId,
    /// `tool_call`, `input_required`, or `<framework>:<name>` (INT-4).
    pub reason: String,
    /// What to show to the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The call that waits for the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<ToolCallId>,
    /// JSON Schema of the payload expected; an object, never `true` (INT-3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_schema: Option<Object>,
    /// ISO 8601 with zone; after it the question can only be cancelled (INT-6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// Open by key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
}

/// How an interrupt was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResumeStatus {
    /// Answered; the answer is the payload.
    Resolved,
    /// Abandoned: the action must not be performed (INT-10).
    Cancelled,
}

/// One answer in `RunAgentInput.resume`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResumeEntry {
    /// The interrupt answered.
    pub interrupt_id: InterruptId,
    /// Answered or abandoned.
    pub status: ResumeStatus,
    /// Any JSON but a whole `null`, which reads as absent (IN-6, INT-19).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
    /// Open by key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
}

/// How a run ended without a failure; a closed object (LIFE-11 to LIFE-17).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum RunOutcome {
    /// Completed.
    Success {
        /// The calls left unanswered, in call order; absent when there are none (LIFE-16).
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pending_tool_call_ids: Vec<ToolCallId>,
    },
    /// Stopped to ask; never empty (INT-1).
    Interrupt {
        /// The questions.
        interrupts: Vec<Interrupt>,
    },
    /// Stopped on purpose before completion (LIFE-12).
    Cancelled,
}

/// How a sub-agent's invocation ended without a failure (SUB-13, SUB-14).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum SubagentOutcome {
    /// Completed.
    Success,
    /// Waits for outside input.
    Suspended {
        /// The interrupts that it raised itself.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        interrupt_ids: Vec<InterruptId>,
    },
}
