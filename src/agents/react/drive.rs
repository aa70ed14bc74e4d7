//! The loop: a model call, an acting round, and so on until nothing is called or something waits.

use std::{pin::pin, sync::Arc};

use agui_adapter::model::{AgentEvent, AgentEventKind, event::EndReason};
use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;

use super::{
    Parts,
    reply::Reply,
    round::{Ended, Round, Slot},
    turn::{Answer, Turn, fresh_id, say},
};
use crate::{
    agents::{AgentError, AgentRequest, AgentStream},
    llm::{FinishReason, ModelError, ModelErrorKind},
};

/// Runs the agent.
pub(super) fn run(parts: Arc<Parts>, request: AgentRequest) -> AgentStream {
    Box::pin(async_stream::stream! {
        let stop = request.cancel.clone();
        let mut stopped = pin!(request.cancel.clone().cancelled_owned());
        let mut pace = Pace::default();
        let mut out = Vec::new();
        let id = fresh_id();
        yield Ok(AgentEvent::local(AgentEventKind::AgentStart {
            reply: Some(id.clone()),
            session: Some(request.thread_id.as_str().to_owned()),
            name: parts.name.clone(),
        }));
        let (model, max_iters) = (Arc::clone(&parts.model), parts.max_iters);
        let opened = tokio::select! {
            biased;
            () = &mut stopped => None,
            opened = Reply::open(parts, request, &mut out) => Some(opened),
        };
        let (mut reply, mut acting) = match opened {
            None => {
                yield Ok(end(id, EndReason::Interrupted));
                return;
            }
            Some(Err(error)) => {
                yield Err(error);
                return;
            }
            Some(Ok((reply, round))) => (reply, round),
        };
        loop {
            if let Some(mut round) = acting.take() {
                round.begin(&reply, &mut out);
                loop {
                    for event in out.drain(..) {
                        yield Ok(event);
                    }
                    let step = if pace.is_told(&stop) {
                        None
                    } else {
                        tokio::select! {
                            biased;
                            step = round.steps().next() => Some(step),
                            () = &mut stopped => None,
                        }
                    };
                    let Some(step) = step else {
                        round.interrupt(&mut out);
                        for event in out.drain(..) {
                            yield Ok(event);
                        }
                        yield Ok(end(id, EndReason::Interrupted));
                        return;
                    };
                    let Some((at, step)) = step else { break };
                    if let Err(error) = round.on_step(at, step, &mut reply, &mut out) {
                        yield Err(error);
                        return;
                    }
                }
                let ended = round.end(&mut out);
                if ended == Ended::Waits {
                    reply.park(&round, &mut out);
                }
                for event in out.drain(..) {
                    yield Ok(event);
                }
                if ended == Ended::Waits {
                    yield Ok(end(id, EndReason::Completed));
                    return;
                }
                reply.add_results(round);
            }

            let sums_up = reply.is_at_limit();
            let mut turn = Turn::new();
            say(&mut out, AgentEventKind::ModelCallStart {
                reply: turn.reply().to_owned(),
                model: Some(model.name().to_owned()),
            });
            let mut events = model.stream(reply.model_request());
            loop {
                for event in out.drain(..) {
                    yield Ok(event);
                }
                if pace.is_told(&stop) {
                    yield Ok(end(id, EndReason::Interrupted));
                    return;
                }
                if turn.is_finished() {
                    break;
                }
                let event = tokio::select! {
                    biased;
                    event = events.next() => Some(event),
                    () = &mut stopped => None,
                };
                let Some(event) = event else {
                    yield Ok(end(id, EndReason::Interrupted));
                    return;
                };
                match event.unwrap_or_else(|| Err(broke_off())) {
                    Ok(event) => turn.on_event(event, &mut reply.used, &mut out),
                    Err(error) => {
                        yield Err(failure(error));
                        return;
                    }
                }
            }
            drop(events);
            let Answer { message, calls, finish } = turn.finish(&mut out);
            note(&finish, &reply.request.request_id);
            reply.add(message);
            if sums_up {
                // Calls that it made all the same have a result that says so.
                if !calls.is_empty() {
                    Round::refused(calls).begin(&reply, &mut out);
                }
                say(&mut out, AgentEventKind::ExceedMaxIters {
                    max_iters: Some(max_iters.into()),
                });
            } else if !calls.is_empty() {
                let slots = calls.into_iter().map(|call| Slot::plan(call, &reply)).collect();
                acting = Some(Round::new(slots));
                continue;
            }
            for event in out.drain(..) {
                yield Ok(event);
            }
            let reason = if sums_up { EndReason::MaxIterations } else { EndReason::Completed };
            yield Ok(end(id, reason));
            return;
        }
    })
}

fn end(reply: String, reason: EndReason) -> AgentEvent {
    AgentEvent::local(AgentEventKind::AgentEnd { reply: Some(reply), reason })
}

/// The client gets the sentence, the log the cause.
fn failure(error: ModelError) -> AgentError {
    let ModelError { kind, cause } = error;
    AgentError { code: kind.code(), message: kind.sentence().to_owned(), cause: Some(cause) }
}

fn broke_off() -> ModelError {
    let cause = "the answer ended without a finish".to_owned();
    ModelError { kind: ModelErrorKind::Other, cause }
}

/// An answer that was cut ends as any other does.
fn note(finish: &FinishReason, request: &str) {
    match finish {
        FinishReason::Stop | FinishReason::ToolCalls => {}
        finish => {
            tracing::info!(request.id = request, ?finish, "a model's answer is not whole");
        }
    }
}

/// Looks at the token now and then while events are always ready: asking it takes a lock, which is
/// too much for every event.
#[derive(Default)]
struct Pace(u32);

impl Pace {
    const LOOK_EVERY: u32 = 16;

    fn is_told(&mut self, stop: &CancellationToken) -> bool {
        self.0 = self.0.wrapping_add(1);
        self.0.is_multiple_of(Self::LOOK_EVERY) && stop.is_cancelled()
    }
}
