//! A reply that waited goes on: what the answers make of its calls.

use std::sync::Arc;

use agui_adapter::{
    inbound::INTERRUPTED_RESULT,
    model::{
        Block, Msg, Role,
        event::{Object, ResultState},
    },
    resume::{Decision, StoredCall, Verdict},
};
use serde_json::Value;

use super::{
    call::Outcome,
    park::{ParkedCall, ParkedStanding},
    permission::Verdict as Permission,
    reply::Reply,
    round::{Slot, Standing, Start},
    subagent::Resumed,
    toolkit::EntryKind,
    turn::Made,
};
use crate::{agents::AgentError, tools::ToolAnswer};

/// The answers of a run, and the results that its history has. Every agent is the root of its own
/// run: what has a source was asked below it.
pub(super) struct Answers<'a> {
    decisions: &'a [Decision],
    messages: &'a [Msg],
}

impl<'a> Answers<'a> {
    pub(super) fn new(decisions: &'a [Decision], messages: &'a [Msg]) -> Self {
        Self { decisions, messages }
    }

    fn own(&self) -> impl Iterator<Item = &'a Decision> + use<'a> {
        self.decisions.iter().filter(|decision| decision.open.source.is_none())
    }

    fn of_call(&self, call: &str) -> Option<&'a Decision> {
        let is_it = |stored: &StoredCall| stored.id == call;
        self.own().find(|decision| decision.open.call.as_ref().is_some_and(is_it))
    }

    fn of_question(&self, call: &str) -> Option<&'a Decision> {
        self.own().find(|decision| decision.open.question.as_deref() == Some(call))
    }

    /// What agents below this one asked.
    fn below(&self) -> Vec<Decision> {
        let below = self.decisions.iter().filter(|decision| decision.open.source.is_some());
        below.cloned().collect()
    }

    /// The result of a call in the history, if it is one: calls without one were given the
    /// sentence that they were interrupted.
    fn result(&self, call: &str) -> Option<Outcome> {
        let blocks = self.messages.iter().filter(|msg| msg.role == Role::Tool);
        blocks.flat_map(|msg| &msg.content).find_map(|block| match block {
            Block::ToolResult { call_id, output, state, .. } if call_id == call => {
                let outcome = Outcome { output: output.clone(), state: *state };
                (outcome != interrupted()).then_some(outcome)
            }
            _ => None,
        })
    }
}

fn interrupted() -> Outcome {
    Outcome::text(INTERRUPTED_RESULT, ResultState::Interrupted)
}

/// What becomes of the calls of a round that stopped. Nothing runs before all are known.
///
/// # Errors
///
/// When arguments that the person edited do not fit the tool.
pub(super) fn slots(
    calls: Vec<ParkedCall>,
    answers: &Answers<'_>,
    reply: &Reply,
) -> Result<Vec<Slot>, AgentError> {
    calls.into_iter().map(|call| slot(call, answers, reply)).collect()
}

fn slot(parked: ParkedCall, answers: &Answers<'_>, reply: &Reply) -> Result<Slot, AgentError> {
    let call = parked.made();
    let source = parked.source.as_deref();
    let shown = |outcome| Standing::Done { outcome, shown: true };
    let standing = match parked.standing {
        ParkedStanding::Done { output, state } => shown(ParkedStanding::outcome(output, state)),
        ParkedStanding::Asked => return consented(call, source, answers, reply),
        ParkedStanding::Frontend | ParkedStanding::External => shown(elsewhere(&call, answers)),
        waited => match answers.result(&call.id) {
            // An earlier run that took the answers came as far as that.
            Some(outcome) => shown(outcome),
            None => return Ok(going_on(call, source, waited, answers, reply)),
        },
    };
    Ok(Slot { call, input: Object::new(), standing })
}

/// A call goes on that waited, though for no consent to itself.
fn going_on(
    call: Made,
    source: Option<&str>,
    waited: ParkedStanding,
    answers: &Answers<'_>,
    reply: &Reply,
) -> Slot {
    let start = match waited {
        ParkedStanding::Question { parked } => {
            let payload =
                answers.of_question(&call.id).and_then(|decision| match &decision.verdict {
                    Verdict::Answer { payload } => payload.clone(),
                    _ => None,
                });
            let answer = ToolAnswer { parked: parked.map(Arc::new), payload };
            Start { answer: Some(answer), resumed: None }
        }
        ParkedStanding::Child { parked } => {
            let resumed = Resumed { parked, decisions: answers.below() };
            Start { answer: None, resumed: Some(resumed) }
        }
        _ => Start::default(),
    };
    runs(call, source, start, reply).unwrap_or_else(|(call, outcome)| Slot {
        call,
        input: Object::new(),
        standing: Standing::Done { outcome, shown: false },
    })
}

/// What becomes of a call for which a person's consent was asked.
fn consented(
    mut call: Made,
    source: Option<&str>,
    answers: &Answers<'_>,
    reply: &Reply,
) -> Result<Slot, AgentError> {
    let shown = |call, outcome| Slot {
        call,
        input: Object::new(),
        standing: Standing::Done { outcome, shown: true },
    };
    let Some(decision) = answers.of_call(&call.id) else {
        return Ok(shown(call, interrupted()));
    };
    let (stored, edited) = match &decision.verdict {
        Verdict::Approved { call, edited, .. } => (call, *edited),
        Verdict::Denied { reason, .. } => return Ok(shown(call, denied(reason.as_deref()))),
        _ => return Ok(shown(call, interrupted())),
    };
    if !stored.arguments.is_empty() {
        call.arguments.clone_from(&stored.arguments);
    }
    if decision.settled {
        let outcome = answers.result(&stored.wire_id).unwrap_or_else(|| {
            Outcome::text("The tool ran. Its result was not kept.", ResultState::Success)
        });
        return Ok(shown(call, outcome));
    }
    let entry = reply.toolkit.get(&call.name).filter(|entry| entry.source.as_deref() == source);
    if let (true, Some(entry)) = (edited, entry) {
        let arguments = stored.input.clone().unwrap_or_default();
        entry.check(&arguments).map_err(|fault| does_not_fit(&fault))?;
    }
    match runs(call, source, Start::default(), reply) {
        Ok(slot) => Ok(slot),
        Err((call, outcome)) => Ok(Slot {
            call,
            input: Object::new(),
            standing: Standing::Done { outcome, shown: false },
        }),
    }
}

/// A call that may run, if its tool is still there, no rule has come to deny it, and it takes the
/// arguments. The agent may have been set up anew since it was called.
fn runs(
    call: Made,
    source: Option<&str>,
    start: Start,
    reply: &Reply,
) -> Result<Slot, (Made, Outcome)> {
    let Some(entry) = reply.toolkit.get(&call.name) else {
        let text = reply.no_such_tool(&call.name);
        return Err((call, Outcome::error(text)));
    };
    if entry.source.as_deref() != source {
        let text = format!("The call was not run: `{}` is another tool now.", call.name);
        return Err((call, Outcome::error(text)));
    }
    if let Permission::Deny { text } = reply.permissions.decide(entry) {
        return Err((call, Outcome::text(text, ResultState::Denied)));
    }
    match entry.arguments(&call.arguments) {
        Ok(input) if matches!(entry.kind, EntryKind::External) => {
            Ok(Slot { call, input, standing: Standing::Elsewhere })
        }
        Ok(input) => Ok(Slot { call, input, standing: Standing::Run(start) }),
        Err(text) => Err((call, Outcome::error(text))),
    }
}

/// The answer of somebody outside.
fn elsewhere(call: &Made, answers: &Answers<'_>) -> Outcome {
    match answers.of_call(&call.id).map(|decision| &decision.verdict) {
        Some(Verdict::Result { text, answered, .. }) => {
            let state = if *answered { ResultState::Success } else { ResultState::Interrupted };
            Outcome::text(text.clone(), state)
        }
        _ => answers.result(&call.id).unwrap_or_else(interrupted),
    }
}

/// AgentScope's own sentence, and the person's reason.
fn denied(reason: Option<&str>) -> Outcome {
    let text = match reason {
        Some(reason) => format!("Permission denied by user: {reason}"),
        None => "Permission denied by user".to_owned(),
    };
    Outcome::text(text, ResultState::Denied)
}

/// The person who edited must see where it went wrong, and what was typed is nobody else's.
fn does_not_fit(fault: &str) -> AgentError {
    let message = format!("`editedArgs` does not fit the tool: {fault}");
    AgentError { code: "INVALID_INPUT_ERROR", message, cause: None }
}

/// The consents to calls of this agent, by the name of the tool, with the rules that came along.
pub(super) fn accepted_rules<'a>(
    answers: &Answers<'a>,
) -> impl Iterator<Item = (&'a str, &'a [Value])> + use<'a> {
    // Those of settled calls too: a run that failed has kept nothing.
    answers.own().filter_map(|decision| match &decision.verdict {
        Verdict::Approved { call, rules, .. } if !rules.is_empty() => {
            Some((call.name.as_str(), rules.as_slice()))
        }
        _ => None,
    })
}

/// A call in the history has the arguments that it runs with.
pub(super) fn with_arguments(message: &mut Msg, slots: &[Slot]) {
    for block in &mut message.content {
        let Block::ToolUse { call, .. } = block else { continue };
        let Some(slot) = slots.iter().find(|slot| slot.call.id == call.id) else { continue };
        if slot.call.arguments != call.arguments {
            call.arguments.clone_from(&slot.call.arguments);
            call.input = serde_json::from_str(&call.arguments).ok();
        }
    }
}
