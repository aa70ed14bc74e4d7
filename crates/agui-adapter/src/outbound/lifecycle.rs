//! The beginning and the end of runs and of sub-agents' invocations.

use std::sync::Arc;

use agui_protocol::RunOutcome;
use serde_json::Value;

use super::{
    EndOutcome, RunEnd, RunFailure, StreamEnd, context::StreamContext, subagent::RunClose,
};
use crate::{
    model::{
        AgentEvent, AgentEventKind, Msg,
        event::{EndReason, Failure, Object},
        msg::Block,
    },
    resume::OpenInterrupt,
    sequencer::{BlockKey, OwnerId},
};

/// Metadata key of the machine-readable reason of a cancelled run.
const REASON_KEY: &str = "agentscope.reason";
/// Metadata key of the limit that was reached.
const LIMIT_KEY: &str = "agentscope.maxIters";

/// What the agent said about its end before it came.
#[derive(Default)]
pub(super) struct Ending {
    generate_reason: Option<String>,
    stop_requested: bool,
    limit: Option<Option<u64>>,
    /// Set once the terminal event was sent.
    pub(super) run_end: Option<RunEnd>,
}

pub(super) fn convert(event: &AgentEvent, context: &mut StreamContext) {
    match (&event.kind, &event.source) {
        (AgentEventKind::AgentStart { name, .. }, Some(source)) => {
            context.begin_child(event, source, name);
        }
        (AgentEventKind::AgentEnd { reason, .. }, Some(source)) => {
            context.end_child(event, source, reason);
        }
        (AgentEventKind::AgentEnd { reason, .. }, None) => end_by_agent(reason, context),
        (AgentEventKind::AgentResult { result, generate_reason }, source) => {
            agent_result(event, source.as_ref(), result, generate_reason.as_deref(), context);
        }
        (AgentEventKind::RequestStop { generate_reason, .. }, None) => {
            context.ending.stop_requested = true;
            if context.ending.generate_reason.is_none() {
                context.ending.generate_reason.clone_from(generate_reason);
            }
        }
        (AgentEventKind::AllToolsDenied {}, None) => {
            context.ending.generate_reason = Some("ALL_TOOLS_DENIED".to_owned());
        }
        (AgentEventKind::ExceedMaxIters { max_iters }, None) => {
            context.ending.limit = Some(*max_iters);
        }
        _ => {}
    }
}

/// Why an agent ends that was interrupted; its last text is a sentence about that.
const RECOVERED: &str = "INTERRUPTED";

impl StreamContext {
    /// The text of a finished message, if it is news: if none was streamed since the last model
    /// call, or if it is the sentence with which an agent recovers from an interruption.
    pub(super) fn news(
        &self,
        owner: OwnerId,
        result: &Msg,
        reason: Option<&str>,
    ) -> Option<String> {
        if reason != Some(RECOVERED) && self.texts.has_spoken(owner) {
            return None;
        }
        let says = |block: &Block| matches!(block, Block::Text { text } if !text.is_empty());
        result.content.iter().any(says).then(|| result.text_content())
    }
}

fn agent_result(
    event: &AgentEvent,
    source: Option<&Arc<str>>,
    result: &Msg,
    generate_reason: Option<&str>,
    context: &mut StreamContext,
) {
    let owner = context.owner_of(event);
    if let Some(text) = context.news(owner, result, generate_reason) {
        let key = BlockKey { reply: &result.id, block: "agentscope.result" };
        if generate_reason == Some(RECOVERED) {
            context.sequencer.close_items(owner);
        }
        context.send_text(owner, key, &text);
        context.sequencer.end_text(owner, key);
    }
    if generate_reason == Some("TOOL_SUSPENDED") {
        context.note_suspended(owner, &result.content);
    }
    if let (None, Some(reason)) = (source, generate_reason) {
        context.ending.generate_reason = Some(reason.to_owned());
    }
}

/// What the end means.
enum End {
    Done,
    Cancelled(String),
    Failed(RunFailure),
}

fn end_by_agent(reason: &EndReason, context: &mut StreamContext) {
    if context.sequencer.ended() {
        return;
    }
    let end = match reason {
        EndReason::Failed(failure) => End::Failed(run_failure(failure)),
        EndReason::Interrupted => End::Cancelled("interrupted".to_owned()),
        EndReason::MaxIterations => End::Cancelled(MAX_ITERATIONS.to_owned()),
        EndReason::Completed | EndReason::Unstated => stated_end(context),
    };
    match end {
        End::Done => finish_done(context),
        End::Cancelled(reason) => finish_cancelled(&reason, context),
        End::Failed(failure) => finish_failed(failure, context),
    }
}

const MAX_ITERATIONS: &str = "max_iterations";

/// The end as told by events before `AGENT_END`, which itself says nothing on the Java wire.
fn stated_end(context: &StreamContext) -> End {
    let ending = &context.ending;
    if ending.limit.is_some() {
        return End::Cancelled(MAX_ITERATIONS.to_owned());
    }
    match ending.generate_reason.as_deref() {
        Some(RECOVERED) => End::Cancelled("interrupted".to_owned()),
        Some("MAX_ITERATIONS") => End::Cancelled(MAX_ITERATIONS.to_owned()),
        Some(reason) if reason.ends_with("_STOP_REQUESTED") => {
            End::Cancelled(reason.to_ascii_lowercase())
        }
        None if ending.stop_requested && !context.asks.any_open() => {
            End::Cancelled("stop_requested".to_owned())
        }
        _ => End::Done,
    }
}

/// Completed: with the questions that are open, or with the calls that the client runs itself.
/// Where both are there, the calls come first: a client cannot answer both at once.
fn finish_done(context: &mut StreamContext) {
    context.pay_owed();
    context.flush_media(None);
    let interrupted = context.raises_interrupts();
    context.close_children(if interrupted { RunClose::Interrupted } else { RunClose::Success });
    let raised = context.collect_interrupts();
    if interrupted { finish_interrupted(raised, context) } else { finish_success(raised, context) }
}

fn finish_success(deferred: Vec<OpenInterrupt>, context: &mut StreamContext) {
    context.sequencer.close_items(OwnerId::ROOT);
    let outcome = RunOutcome::Success { pending_tool_call_ids: context.sequencer.unanswered() };
    let usage = context.usage.entries();
    context.sequencer.finish_run(Some(outcome.clone()), usage, Object::new());
    let mut end = run_end(EndOutcome::Success, context);
    end.finished = Some(outcome);
    end.deferred = deferred;
    context.ending.run_end = Some(end);
}

fn finish_interrupted(mut open: Vec<OpenInterrupt>, context: &mut StreamContext) {
    if let Some(ttl) = context.options.interrupt_ttl {
        open.iter_mut().for_each(|open| open.expire(context.now_ms, ttl));
    }
    let interrupts = open.iter().map(|open| open.interrupt.clone()).collect();
    let outcome = RunOutcome::Interrupt { interrupts };
    let usage = context.usage.entries();
    context.sequencer.finish_run(Some(outcome.clone()), usage, Object::new());
    let mut end = run_end(EndOutcome::Interrupted, context);
    end.finished = Some(outcome);
    end.open = open;
    context.ending.run_end = Some(end);
}

fn finish_cancelled(reason: &str, context: &mut StreamContext) {
    context.pay_owed();
    context.flush_media(None);
    context.close_children(RunClose::Cancelled);
    let mut metadata = Object::new();
    metadata.insert(REASON_KEY.to_owned(), Value::from(reason));
    if let (MAX_ITERATIONS, Some(Some(limit))) = (reason, context.ending.limit) {
        metadata.insert(LIMIT_KEY.to_owned(), Value::from(limit));
    }
    let usage = context.usage.entries();
    context.sequencer.finish_run(Some(RunOutcome::Cancelled), usage, metadata);
    let mut end = run_end(EndOutcome::Cancelled, context);
    end.finished = Some(RunOutcome::Cancelled);
    context.ending.run_end = Some(end);
}

/// Failed; whatever end was made before and has not left is taken back.
pub(super) fn finish_failed(failure: RunFailure, context: &mut StreamContext) {
    context.start_run();
    context.flush_media(None);
    context.close_children(RunClose::Failed(&failure.code));
    let usage = context.usage.entries();
    let outcome = EndOutcome::Error(failure.code.clone());
    let finish_after = context.options.emit_run_finished_after_error;
    context.sequencer.fail_run(failure, context.now_ms, usage, finish_after);
    context.ending.run_end = Some(run_end(outcome, context));
}

/// Ends the run when the agent's stream ended without its own end event. With something that
/// waits it is a pause (the Python wire has no end event there), else it broke off.
pub(super) fn finish_stream(end: StreamEnd, context: &mut StreamContext) {
    if context.sequencer.ended() {
        return;
    }
    context.start_run();
    match end {
        StreamEnd::Completed if context.asks.any_open() => finish_done(context),
        StreamEnd::Completed => finish_failed(
            RunFailure::new("AGENT_ENDED_EARLY", "The agent stopped before it had finished."),
            context,
        ),
        StreamEnd::Failed(failure) => finish_failed(failure, context),
        StreamEnd::Raise(raised) => finish_interrupted(raised, context),
        StreamEnd::Cancelled(reason) => finish_cancelled(reason, context),
    }
}

fn run_end(outcome: EndOutcome, context: &StreamContext) -> RunEnd {
    let state = context.state.final_state();
    let (parked, kept) = (context.parked.clone(), context.kept.clone());
    let (open, deferred) = (Vec::new(), Vec::new());
    RunEnd { outcome, finished: None, open, deferred, state, parked, kept }
}

/// AgentScope's failure as the client sees it: a stable code, and the sentence only where the
/// class is known to come with a sentence that was made for people.
pub(super) fn run_failure(failure: &Failure) -> RunFailure {
    let code = match failure.class.as_str() {
        "authentication" | "permission" => "MODEL_AUTH_ERROR",
        "rate_limit" => "MODEL_RATE_LIMITED",
        "connection" => "MODEL_UNAVAILABLE",
        "upstream" | "invalid_request" => "MODEL_ERROR",
        "internal" | "setup" | "unknown" => "UPSTREAM_ERROR",
        _ => return RunFailure::new("UPSTREAM_ERROR", "The agent failed."),
    };
    let message = failure.message.trim();
    RunFailure::new(code, if message.is_empty() { "The agent failed." } else { message })
}
