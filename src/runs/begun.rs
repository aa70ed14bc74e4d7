//! Approved calls under way: a run may break off while one is executed, and then nobody knows
//! whether it did its work. It must not be executed a second time.

use agui_adapter::{
    model::{AgentEvent, AgentEventKind, event::ResultState},
    resume::{Decision, Verdict},
};

/// What stands for the result of a call that was cut off.
pub(super) const CUT_OFF: &str =
    "The call was cut off while it ran. Whether it did its work is not known.";

/// The approved calls of a run whose execution has begun and has no result yet.
#[derive(Debug, Default)]
pub(super) struct BegunCalls {
    approved: Vec<Approved>,
    /// Their `TOOL_RESULT_START`s.
    begun: Vec<AgentEvent>,
}

/// A call that may be executed, as its agent's events name it.
#[derive(Debug)]
struct Approved {
    source: Option<String>,
    task: Option<String>,
    call: String,
}

impl Approved {
    fn of(decision: &Decision) -> Option<Self> {
        let Verdict::Approved { call, .. } = &decision.verdict else { return None };
        let (source, task) = (decision.open.source.clone(), decision.open.task.clone());
        Some(Self { source, task, call: call.id.clone() })
    }

    fn is(&self, event: &AgentEvent, call: &str) -> bool {
        let task = task(event);
        self.call == call
            && self.source.as_deref() == event.source.as_deref()
            // Who has no `taskId` in one of the two runs is told apart by nothing else.
            && (self.task.is_none() || task.is_none() || self.task.as_deref() == task)
    }
}

fn task(event: &AgentEvent) -> Option<&str> {
    event.metadata.get("taskId").and_then(serde_json::Value::as_str)
}

impl BegunCalls {
    pub(super) fn new(decisions: &[Decision]) -> Self {
        let open = decisions.iter().filter(|decision| !decision.settled);
        Self { approved: open.filter_map(Approved::of).collect(), begun: Vec::new() }
    }

    /// Sees an event of the agent before it is converted.
    pub(super) fn note(&mut self, event: &AgentEvent) {
        if self.approved.is_empty() {
            return;
        }
        match &event.kind {
            AgentEventKind::ToolResultStart { call, .. } => {
                if self.approved.iter().any(|approved| approved.is(event, call)) {
                    self.begun.push(event.clone());
                }
            }
            AgentEventKind::ToolResultEnd { call, .. } => {
                self.begun.retain(|begun| !is_of(begun, event, call));
                self.approved.retain(|approved| !approved.is(event, call));
            }
            _ => {}
        }
    }

    /// The results of what was cut off, as the agents would have said them.
    pub(super) fn cut_off(&mut self) -> Vec<AgentEvent> {
        std::mem::take(&mut self.begun).into_iter().flat_map(results).collect()
    }
}

/// Whether a result's beginning and another event are of one call.
fn is_of(begun: &AgentEvent, event: &AgentEvent, call: &str) -> bool {
    let of_call =
        matches!(&begun.kind, AgentEventKind::ToolResultStart { call: own, .. } if own == call);
    of_call && begun.source == event.source && task(begun) == task(event)
}

fn results(begun: AgentEvent) -> Vec<AgentEvent> {
    let AgentEventKind::ToolResultStart { reply, call, .. } = &begun.kind else {
        return Vec::new();
    };
    let text =
        AgentEventKind::ToolResultTextDelta { call: call.clone(), delta: CUT_OFF.to_owned() };
    let end = AgentEventKind::ToolResultEnd {
        reply: reply.clone(),
        call: call.clone(),
        state: ResultState::Interrupted,
    };
    [text, end].map(|kind| AgentEvent { kind, ..begun.clone() }).into()
}
