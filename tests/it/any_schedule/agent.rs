//! An agent that does what its plan says, and counts what it executes.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use agentscope_agui::agents::{Agent, AgentError, AgentRequest, AgentStream};
use agui_adapter::{
    model::{
        AgentEvent, AgentEventKind,
        event::{Call, EndReason, ResultState},
    },
    resume::{Decision, Verdict as Decided},
};
use async_stream::stream;
use tokio::sync::Notify;

use super::schedule::{Last, Plan};

/// The tool of the client.
pub(super) const FRONT: &str = "front";
/// The arguments of every call that an agent asks for.
pub(super) const ARGUMENTS: &str = r#"{"disk":"a"}"#;

/// One run's part.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) plan: Plan,
    /// The calls that it asks for.
    pub(super) calls: Vec<String>,
    pub(super) released: Arc<Notify>,
}

/// Plays the parts, by run.
#[derive(Clone, Default)]
pub(super) struct Player(Arc<Played>);

#[derive(Default)]
struct Played {
    parts: Mutex<HashMap<String, Part>>,
    executed: Mutex<Vec<(String, String)>>,
}

impl Player {
    pub(super) fn cast(&self, run: &str, part: Part) {
        self.0.parts.lock().unwrap().insert(run.to_owned(), part);
    }

    /// The calls executed so far, with their arguments.
    pub(super) fn executed(&self) -> Vec<(String, String)> {
        self.0.executed.lock().unwrap().clone()
    }

    /// Executes the call if it was approved, and gives its result.
    fn decide(&self, decision: &Decision) -> Vec<AgentEvent> {
        match &decision.verdict {
            Decided::Approved { call, .. } => {
                let executed = (call.id.clone(), call.arguments.clone());
                self.0.executed.lock().unwrap().push(executed);
                result(&call.id, ResultState::Success)
            }
            Decided::Denied { call, .. } => result(&call.id, ResultState::Denied),
            other => panic!("nobody asked for this: {other:?}"),
        }
    }
}

impl Agent for Player {
    fn run(&self, request: AgentRequest) -> AgentStream {
        let player = self.clone();
        let part = self.0.parts.lock().unwrap().get(request.run_id.as_str()).unwrap().clone();
        let AgentRequest { decisions, cancel, .. } = request;
        Box::pin(stream! {
            let Part { plan, calls, released } = part;
            yield Ok(start());
            let open: Vec<Decision> = decisions.into_iter().filter(|one| !one.settled).collect();
            let (first, rest) = open.split_at(open.len().min(plan.first));
            for decision in first {
                for event in player.decide(decision) {
                    yield Ok(event);
                }
            }
            if plan.waits {
                let stopped = tokio::select! {
                    biased;
                    () = cancel.cancelled() => true,
                    () = released.notified() => false,
                };
                if stopped {
                    yield Ok(end(EndReason::Interrupted));
                    return;
                }
            }
            for decision in rest.iter().take(plan.then) {
                for event in player.decide(decision) {
                    yield Ok(event);
                }
            }
            for item in last(plan.last, &calls) {
                yield item;
            }
        })
    }
}

fn last(last: Last, calls: &[String]) -> Vec<Result<AgentEvent, AgentError>> {
    match last {
        Last::Finish => vec![Ok(end(EndReason::Completed))],
        Last::Stop => vec![Ok(end(EndReason::Interrupted))],
        Last::Ask(_) => asks(calls).into_iter().map(Ok).collect(),
        Last::AskLater(_) => {
            let front = format!("front-{}", calls[0]);
            called(&front, FRONT).into_iter().chain(asks(calls)).map(Ok).collect()
        }
        Last::Fail => vec![Err(AgentError {
            code: "MODEL_UNAVAILABLE",
            message: "The model cannot be reached.".to_owned(),
            cause: None,
        })],
        // A panic that no hook prints.
        Last::Panic => std::panic::resume_unwind(Box::new("the agent's own")),
        Last::BreakOff => Vec::new(),
    }
}

fn start() -> AgentEvent {
    AgentEvent::local(AgentEventKind::AgentStart {
        reply: Some(reply()),
        session: None,
        name: "player".to_owned(),
    })
}

fn end(reason: EndReason) -> AgentEvent {
    AgentEvent::local(AgentEventKind::AgentEnd { reply: None, reason })
}

fn reply() -> String {
    "reply".to_owned()
}

fn called(call: &str, name: &str) -> Vec<AgentEvent> {
    [
        AgentEventKind::ToolCallStart {
            reply: reply(),
            call: call.to_owned(),
            name: name.to_owned(),
        },
        AgentEventKind::ToolCallDelta { call: call.to_owned(), delta: ARGUMENTS.to_owned() },
        AgentEventKind::ToolCallEnd { call: call.to_owned(), encrypted: None },
    ]
    .map(AgentEvent::local)
    .to_vec()
}

fn asks(calls: &[String]) -> Vec<AgentEvent> {
    let mut events: Vec<_> = calls.iter().flat_map(|call| called(call, "wipe")).collect();
    let calls = calls.iter().map(|call| Call {
        id: call.clone(),
        name: "wipe".to_owned(),
        arguments: ARGUMENTS.to_owned(),
        input: serde_json::from_str(ARGUMENTS).ok(),
        suggested_rules: Vec::new(),
    });
    let asked = AgentEventKind::RequireUserConfirm { reply: reply(), calls: calls.collect() };
    events.push(AgentEvent::local(asked));
    events
}

fn result(call: &str, state: ResultState) -> Vec<AgentEvent> {
    let call = call.to_owned();
    [
        AgentEventKind::ToolResultStart {
            reply: reply(),
            call: call.clone(),
            name: "wipe".to_owned(),
        },
        AgentEventKind::ToolResultTextDelta { call: call.clone(), delta: "done".to_owned() },
        AgentEventKind::ToolResultEnd { reply: reply(), call, state },
    ]
    .map(AgentEvent::local)
    .to_vec()
}
