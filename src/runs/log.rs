//! What the log says of runs: ids and numbers, never content.

use std::time::Duration;

use agui_adapter::outbound::EndOutcome;
use agui_protocol::InterruptId;

use super::{ledger::Begun, opening::Opening, pipeline::Report, service::RunRequest};
use crate::agents::AgentError;

/// Notes about one input that are logged: a client can send as many and as long ids as a body holds.
const MAX_NOTES: usize = 20;
/// Longest part of a note that is logged, in bytes.
const MAX_NOTE: usize = 500;

/// What of the input was not used.
pub(super) fn input(request: &RunRequest, begun: &Begun, opening: &Opening) {
    let request_id = &*request.request_id;
    let (notes, count) = shown(&opening.notes);
    for note in notes {
        tracing::info!(request.id = request_id, note, "part of the input is not used");
    }
    if count > 0 {
        tracing::info!(request.id = request_id, count, "more parts of the input are not used");
    }
    if opening.dropped_system > 0 {
        let count = opening.dropped_system;
        tracing::info!(request.id = request_id, count, "system messages of the client dropped");
    }
    let sent =
        |id: &InterruptId| request.input.resume.iter().any(|entry| entry.interrupt_id == *id);
    let cancelled = begun.entries.iter().filter(|entry| !sent(&entry.interrupt_id)).count();
    if cancelled > 0 {
        tracing::info!(request.id = request_id, cancelled, "interrupts that nobody answered");
    }
    if !begun.never_raised.is_empty() || !begun.already_answered.is_empty() {
        tracing::info!(
            request.id = request_id,
            never_raised = begun.never_raised.len(),
            already_answered = begun.already_answered.len(),
            "resume entries ignored"
        );
    }
}

/// The notes that are logged, cut, and how many are not.
fn shown(notes: &[String]) -> (impl Iterator<Item = &str>, usize) {
    let cut = |note: &'_ String| note.floor_char_boundary(MAX_NOTE);
    let first = notes.iter().take(MAX_NOTES);
    let first = first.map(move |note| note.get(..cut(note)).unwrap_or_default());
    (first, notes.len().saturating_sub(MAX_NOTES))
}

/// The agent's stream gave an error.
pub(super) fn agent_failed(request: &RunRequest, error: &AgentError) {
    tracing::warn!(
        request.id = %request.request_id,
        agent.id = %request.agent_id,
        code = error.code,
        cause = error.cause.as_deref().unwrap_or("none given"),
        "the agent failed"
    );
}

/// The agent or a converter panicked.
pub(super) fn agent_panicked(request: &RunRequest) {
    tracing::error!(
        request.id = %request.request_id,
        agent.id = %request.agent_id,
        "the agent panicked; the line before tells where"
    );
}

/// The one line of a run.
pub(super) fn ended(request: &RunRequest, report: &Report, took: Duration) {
    let (outcome, code) = match &report.end {
        None => ("client-gone", None),
        Some(EndOutcome::Success) => ("success", None),
        Some(EndOutcome::Interrupted) => ("interrupt", None),
        Some(EndOutcome::Cancelled) => ("cancelled", None),
        Some(EndOutcome::Error(code)) => ("error", Some(code.as_str())),
    };
    tracing::info!(
        request.id = %request.request_id,
        thread.id = request.input.thread_id.as_str(),
        run.id = request.input.run_id.as_str(),
        agent.id = %request.agent_id,
        outcome,
        code,
        duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        events = report.events,
        "run ended"
    );
}

/// A client looked at a thread.
pub(super) fn connected(request: &RunRequest, joined: bool, took: Duration) {
    tracing::info!(
        request.id = %request.request_id,
        thread.id = request.input.thread_id.as_str(),
        joined,
        duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        "connect ended"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_cannot_fill_the_log_with_ids() {
        let notes: Vec<String> = (0..MAX_NOTES + 3).map(|_| "é".repeat(MAX_NOTE)).collect();
        let (first, more) = shown(&notes);
        let lengths: Vec<usize> = first.map(str::len).collect();
        assert_eq!((lengths, more), (vec![MAX_NOTE; MAX_NOTES], 3));
        let few = ["a".to_owned()];
        let (first, more) = shown(&few);
        assert_eq!((first.collect::<Vec<_>>(), more), (vec!["a"], 0));
    }
}
