//! Resume entries and the interrupts they answer -> decisions for the agent.
//!
//! The rules of approvals live here: only a boolean `true` approves, `editedArgs` replaces the
//! whole arguments, the call executed is the one the server stored. No storage.

use std::{
    collections::HashMap,
    fmt::Write as _,
    time::{Duration, UNIX_EPOCH},
};

use agui_protocol::{Interrupt, InterruptId, ResumeEntry, ResumeStatus, SubagentRunId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::model::event::Object;

/// What kind of answer an interrupt waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterruptKind {
    /// May the call run? (`REQUIRE_USER_CONFIRM`)
    PermissionConfirm,
    /// The result of a call that somebody outside runs (`REQUIRE_EXTERNAL_EXECUTION`).
    ExternalExecution,
    /// The same for a tool of the client, with `frontend-tool-outcome: interrupt`.
    FrontendTool,
    /// An answer to a question.
    InputRequired,
}

/// The stored call of an interrupt, in a form that can be kept by a store.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredCall {
    /// The agent's own id of the call.
    pub id: String,
    /// The id that the client knows; differs when the agent's was blank or already used.
    pub wire_id: String,
    /// Name of the tool.
    pub name: String,
    /// The raw argument text.
    pub arguments: String,
    /// The arguments, if they are a JSON object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Object>,
}

/// An interrupt as the ledger keeps it: what the client saw, and what is needed to go on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenInterrupt {
    /// What the client saw.
    pub interrupt: Interrupt,
    /// What kind of answer it waits for.
    pub kind: InterruptKind,
    /// The reply that asked; empty when the wire gave none.
    pub reply: String,
    /// The `source` path of the child that asked; `None` = the root agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The child's invocation (`taskId` of its events); `None` = the wire gave none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The invocations above the child that asked, the innermost first; they go on with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub above: Vec<Suspended>,
    /// The call, if the interrupt is bound to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<StoredCall>,
    /// The agent's own id of the question, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// When it can no longer be resolved, in milliseconds since the Unix epoch; the same time as
    /// the interrupt's `expiresAt`. `None` = never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<i64>,
}

/// A child's invocation that a run leaves waiting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Suspended {
    /// The `source` path of the child.
    pub source: String,
    /// `taskId` of its events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The id that the client knows it by.
    #[serde(rename = "subagentRunId")]
    pub id: SubagentRunId,
}

impl OpenInterrupt {
    /// From `ttl` after now on it can only be cancelled.
    pub(crate) fn expire(&mut self, now_ms: i64, ttl: Duration) {
        let since_epoch = Duration::from_millis(u64::try_from(now_ms).unwrap_or_default());
        let Some(expires) = since_epoch.checked_add(ttl) else { return };
        let (Ok(expires_ms), Some(at)) =
            (i64::try_from(expires.as_millis()), UNIX_EPOCH.checked_add(expires))
        else {
            return;
        };
        let mut text = String::new();
        // Beyond the year 9999 there is no such text, and no need for one.
        if write!(text, "{}", humantime::format_rfc3339_millis(at)).is_ok() {
            self.expires_ms = Some(expires_ms);
            self.interrupt.expires_at = Some(text);
        }
    }

    /// Whether a child asked that was shown as CUSTOM events, whose calls the client never saw.
    pub(crate) fn is_of_custom_child(&self) -> bool {
        self.source.is_some() && self.interrupt.subagent_run_id.is_none()
    }
}

/// What an answer means for the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Verdict {
    /// Run exactly this call.
    Approved {
        /// The stored call, with edited arguments in place of its own if there were any.
        call: StoredCall,
        /// Whether the person edited the arguments.
        edited: bool,
        /// Permission rules accepted along with it (payload `rules`).
        rules: Vec<Value>,
    },
    /// Do not run the call.
    Denied {
        /// The stored call.
        call: StoredCall,
        /// Why, in the person's words; reaches the model.
        reason: Option<String>,
    },
    /// The result of an external call.
    Result {
        /// The stored call.
        call: StoredCall,
        /// The payload as text: itself if a string, else its JSON; `""` when absent; the
        /// interrupted sentence when cancelled.
        text: String,
        /// False when the interrupt was cancelled.
        answered: bool,
    },
    /// The answer to a question; `None` = the person declined.
    Answer {
        /// The payload.
        payload: Option<Value>,
    },
}

/// One answered interrupt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// The interrupt answered.
    pub open: OpenInterrupt,
    /// Resolved or cancelled.
    pub status: ResumeStatus,
    /// The payload as it came.
    pub payload: Option<Value>,
    /// What it means.
    pub verdict: Verdict,
    /// An earlier run took this answer, and the call has its result, which stands in the
    /// messages: the call must not be executed again.
    #[serde(default)]
    pub settled: bool,
    /// The result of a settled call of a child: the messages of a run hold nothing of children.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<StoredResult>,
}

/// The result of a call, as the agent that made the call may need it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredResult {
    /// What it said.
    pub text: String,
    /// How it went, as AgentScope writes it: `success`, `error`, ...
    pub state: String,
}

/// What an external call gives when its interrupt was cancelled.
pub const CANCELLED_TEXT: &str = "Interrupt cancelled by user";

/// An answer that cannot be taken; the interrupt stays open and the person who typed it must see
/// why. Goes to the client as `INVALID_INPUT_ERROR`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("answer to interrupt {interrupt_id}: {message}")]
pub struct AnswerError {
    /// The interrupt answered.
    pub interrupt_id: InterruptId,
    /// What is wrong, without what was typed.
    pub message: String,
}

/// What the answers mean, in the order of the open interrupts.
///
/// Whether every open interrupt has its one entry is the ledger's business: one without an entry
/// gets no decision here, of several entries the first counts. Neither is a question's payload
/// checked against its `responseSchema`, nor are edited arguments against a tool's schema: that
/// needs a JSON Schema validator and is the caller's part.
///
/// # Errors
///
/// When any answer cannot be taken; then none of them counts and nothing may run.
pub fn decide(
    entries: &[ResumeEntry],
    open: &[OpenInterrupt],
) -> Result<Vec<Decision>, AnswerError> {
    let mut by_id: HashMap<&InterruptId, &ResumeEntry> = HashMap::new();
    for entry in entries {
        by_id.entry(&entry.interrupt_id).or_insert(entry);
    }
    let answered = open.iter().filter_map(|open| Some((open, *by_id.get(&open.interrupt.id)?)));
    answered.map(|(open, entry)| decision(open, entry)).collect()
}

fn decision(open: &OpenInterrupt, entry: &ResumeEntry) -> Result<Decision, AnswerError> {
    let verdict = match open.kind {
        InterruptKind::PermissionConfirm => permission(open, entry)?,
        InterruptKind::ExternalExecution | InterruptKind::FrontendTool => {
            external(stored_call(open)?, entry)
        }
        InterruptKind::InputRequired => answer(entry),
    };
    Ok(Decision {
        open: open.clone(),
        status: entry.status,
        payload: entry.payload.clone(),
        verdict,
        settled: false,
        result: None,
    })
}

/// The call that the server stored; what clients send as arguments never counts.
fn stored_call(open: &OpenInterrupt) -> Result<StoredCall, AnswerError> {
    open.call.clone().ok_or_else(|| error(open, "the call that it belongs to is not stored"))
}

fn permission(open: &OpenInterrupt, entry: &ResumeEntry) -> Result<Verdict, AnswerError> {
    let call = stored_call(open)?;
    let payload = match entry.status {
        ResumeStatus::Resolved => entry.payload.as_ref().and_then(Value::as_object),
        ResumeStatus::Cancelled => None,
    };
    let member = |key: &str| payload.and_then(|payload| payload.get(key));
    // Checked for denials too, so that a form which sends nonsense is found at once.
    let edited = match member("editedArgs") {
        None | Some(Value::Null) => None,
        Some(Value::Object(edited)) => Some(edited.clone()),
        Some(_) => return Err(error(open, "`editedArgs` must be a JSON object")),
    };
    if member("approved") != Some(&Value::Bool(true)) {
        let reason = member("reason").and_then(Value::as_str).map(str::to_owned);
        return Ok(Verdict::Denied { call, reason });
    }
    let rules = member("rules").and_then(Value::as_array).cloned().unwrap_or_default();
    Ok(match edited {
        None => Verdict::Approved { call, edited: false, rules },
        Some(edited) => {
            Verdict::Approved { call: with_arguments(call, edited), edited: true, rules }
        }
    })
}

/// Members that the person took out are gone; nothing is merged.
fn with_arguments(call: StoredCall, edited: Object) -> StoredCall {
    let arguments = Value::Object(edited.clone()).to_string();
    StoredCall { arguments, input: Some(edited), ..call }
}

fn external(call: StoredCall, entry: &ResumeEntry) -> Verdict {
    match entry.status {
        ResumeStatus::Resolved => {
            let text = payload_text(entry.payload.as_ref());
            Verdict::Result { call, text, answered: true }
        }
        ResumeStatus::Cancelled => {
            Verdict::Result { call, text: CANCELLED_TEXT.to_owned(), answered: false }
        }
    }
}

fn payload_text(payload: Option<&Value>) -> String {
    match payload {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn answer(entry: &ResumeEntry) -> Verdict {
    let payload = match entry.status {
        // A person who resolves without a payload answered with nothing, and did not decline.
        ResumeStatus::Resolved => Some(entry.payload.clone().unwrap_or(Value::Null)),
        ResumeStatus::Cancelled => None,
    };
    Verdict::Answer { payload }
}

fn error(open: &OpenInterrupt, message: &str) -> AnswerError {
    AnswerError { interrupt_id: open.interrupt.id.clone(), message: message.to_owned() }
}

#[cfg(test)]
mod tests;
