//! The failures that a run's pipeline itself tells to the client.
//!
//! Codes are stable, messages are for people and carry no content of the input.

use agui_adapter::outbound::RunFailure;
use agui_protocol::InterruptId;
use serde_json::Value;

use agui_adapter::resume::OpenInterrupt;

use super::ledger::Refusal;
use crate::agents::AgentError;

/// The thread's slot is taken, or its open interrupts are not answered as they must be.
pub(super) fn refused(refusal: &Refusal) -> RunFailure {
    match refusal {
        Refusal::Busy => RunFailure::new(
            "THREAD_BUSY",
            "This thread has a run already; wait for its end before starting another one.",
        ),
        Refusal::Uncovered { missing, duplicate, open } => {
            contract(&uncovered(missing, duplicate), open)
        }
        Refusal::Expired { expired, open } => contract(
            &format!("These interrupts have expired and can only be cancelled: {}.", list(expired)),
            open,
        ),
        Refusal::OtherAgent { agent, open } => contract(
            &format!(
                "The open interrupts of this thread belong to the agent \"{agent}\"; send the \
                 resume to it."
            ),
            open,
        ),
        Refusal::Store(error) => {
            tracing::error!(error = %error, "a run could not begin");
            internal()
        }
    }
}

/// An answer that its interrupt cannot take.
pub(super) fn bad_answer(error: &dyn std::error::Error) -> RunFailure {
    RunFailure::new("INVALID_INPUT_ERROR", error.to_string())
}

/// The run took longer than it may.
pub(super) fn timed_out() -> RunFailure {
    RunFailure::new("TIMEOUT_ERROR", "The run took longer than this server allows.")
}

/// One response lasted longer than it may.
pub(super) fn response_timed_out() -> RunFailure {
    RunFailure::new("TIMEOUT_ERROR", "The response took longer than this server allows.")
}

/// For those who watch a run whose own client left.
pub(super) fn client_left() -> RunFailure {
    RunFailure::new("INTERRUPTED_ERROR", "The run was stopped: the client that began it left.")
}

/// A client that joined a run does not keep up with it.
pub(super) fn too_slow() -> RunFailure {
    RunFailure::new("TIMEOUT_ERROR", "The stream was not read fast enough; connect again.")
}

/// The server stops.
pub(super) fn shutting_down() -> RunFailure {
    RunFailure::new("SERVER_SHUTTING_DOWN", "The run was stopped: the server is shutting down.")
}

/// A fault of the server or the agent that the client cannot do anything about.
pub(super) fn internal() -> RunFailure {
    RunFailure::new("INTERNAL_ERROR", "The run failed because of an internal error.")
}

/// The agent's own failure.
pub(super) fn agent_failed(error: &AgentError) -> RunFailure {
    RunFailure::new(error.code, error.message.as_str())
}

fn uncovered(missing: &[InterruptId], duplicate: &[InterruptId]) -> String {
    let mut faults = Vec::new();
    if !missing.is_empty() {
        faults.push(format!("no entry for {}", list(missing)));
    }
    if !duplicate.is_empty() {
        faults.push(format!("more than one entry for {}", list(duplicate)));
    }
    format!("Resume must answer every open interrupt exactly once: {}.", faults.join("; "))
}

fn list(ids: &[InterruptId]) -> String {
    ids.iter().map(InterruptId::as_str).collect::<Vec<_>>().join(", ")
}

/// A breach of the interrupt contract names what is open, so that a client that lost its
/// interrupts can still answer them.
fn contract(message: &str, open: &[OpenInterrupt]) -> RunFailure {
    let open = open.iter().map(|open| serde_json::to_value(&open.interrupt));
    let open = open.filter_map(Result::ok).collect();
    let mut refused = RunFailure::new("AGUI_INTERRUPT_CONTRACT_ERROR", message);
    refused.metadata.insert("agentscope.openInterrupts".to_owned(), Value::Array(open));
    refused
}
