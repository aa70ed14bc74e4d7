//! Resume entries and the interrupts they answer -> decisions for the agent.
//!
//! The rules of approvals live here: only a boolean `true` approves, `editedArgs` replaces the
//! whole arguments, the call executed is the one the server stored. No storage.

use agui_protocol::{Interrupt, ResumeStatus};
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    /// The call, if the interrupt is bound to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<StoredCall>,
    /// The agent's own id of the question, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
}

/// What an answer means for the agent.
#[derive(Clone, Debug, PartialEq)]
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
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The interrupt answered.
    pub open: OpenInterrupt,
    /// Resolved or cancelled.
    pub status: ResumeStatus,
    /// The payload as it came.
    pub payload: Option<Value>,
    /// What it means.
    pub verdict: Verdict,
}
