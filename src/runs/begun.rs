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
            AgentEventKind::ToolResultStart { call, .. }
                if self.approved.iter().any(|approved| approved.is(event, call)) =>
            {
                self.begun.push(event.clone());
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn approved(call: &str, source: Option<&str>, task: Option<&str>) -> Decision {
        let decision = json!({
            "open": {
                "interrupt": {"id": "i", "reason": "tool_call"}, "kind": "permission_confirm",
                "reply": "r", "source": source, "task": task,
            },
            "status": "resolved", "payload": null,
            "verdict": {"type": "approved", "edited": false, "rules": [], "call":
                {"id": call, "wireId": call, "name": "f", "arguments": "{}"}},
        });
        serde_json::from_value(decision).unwrap()
    }

    fn event(kind: AgentEventKind, source: Option<&str>, task: Option<&str>) -> AgentEvent {
        let mut event = AgentEvent::local(kind);
        event.source = source.map(Into::into);
        event.metadata.extend(task.map(|task| ("taskId".to_owned(), task.into())));
        event
    }

    fn start(call: &str) -> AgentEventKind {
        let (reply, call, name) = ("r".to_owned(), call.to_owned(), "f".to_owned());
        AgentEventKind::ToolResultStart { reply, call, name }
    }

    fn end(call: &str, state: ResultState) -> AgentEventKind {
        AgentEventKind::ToolResultEnd { reply: "r".to_owned(), call: call.to_owned(), state }
    }

    #[test]
    fn what_has_begun_and_not_ended_is_cut_off() {
        let mut calls = BegunCalls::new(&[approved("a", None, None), approved("b", None, None)]);
        for call in ["a", "b", "not-approved"] {
            calls.note(&event(start(call), None, None));
        }
        calls.note(&event(end("a", ResultState::Success), None, None));
        // A second beginning of what has its result is none.
        calls.note(&event(start("a"), None, None));
        let text =
            AgentEventKind::ToolResultTextDelta { call: "b".to_owned(), delta: CUT_OFF.to_owned() };
        let expected =
            [event(text, None, None), event(end("b", ResultState::Interrupted), None, None)];
        assert_eq!(calls.cut_off(), expected);
        assert_eq!(calls.cut_off(), []);
    }

    #[test]
    fn calls_of_children_are_told_apart_by_their_child_and_its_invocation() {
        let child = Some("main/child");
        let mut calls = BegunCalls::new(&[
            approved("a", child, Some("one")),
            approved("a", child, Some("two")),
        ]);
        calls.note(&event(start("a"), None, None));
        calls.note(&event(start("a"), child, Some("three")));
        assert_eq!(calls.cut_off(), []);
        calls.note(&event(start("a"), child, Some("one")));
        calls.note(&event(start("a"), child, Some("two")));
        calls.note(&event(end("a", ResultState::Success), child, Some("one")));
        let cut_off = calls.cut_off();
        assert_eq!(cut_off.len(), 2);
        assert_eq!(cut_off[1], event(end("a", ResultState::Interrupted), child, Some("two")));
    }
}
