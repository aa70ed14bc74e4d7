//! What a child says that the result of its call depends on.

use std::{collections::BTreeSet, sync::Arc};

use agui_adapter::model::{
    AgentEvent, AgentEventKind, Block, Msg,
    event::{EndReason, Failure, ResultState},
};
use serde_json::Value;

use super::ChildItem;

/// What became of an event.
pub(super) enum Heard {
    /// The client sees it.
    Event(Box<AgentEvent>),
    /// What the child wants to know in later runs.
    Kept(Arc<Value>),
    /// It was for us.
    Nothing,
    /// The child's reply is complete; what it says later is not heard.
    End(End),
}

/// How the child's stream ended.
#[derive(Debug, PartialEq)]
pub(super) enum End {
    /// By its AGENT_END, for this reason.
    Said(Box<AgentEvent>, EndReason),
    /// With a question, and without AGENT_END.
    Paused,
    /// Otherwise.
    Failed(Failure),
}

/// What the child and those below it have said so far.
#[derive(Default)]
pub(super) struct Said {
    text: Text,
    /// The text of its finished message; counts if it said nothing else.
    message: Option<String>,
    asked: BTreeSet<Asked>,
    parked: Option<Arc<Value>>,
    generate_reason: Option<String>,
    limit_reached: bool,
}

/// Something that waits for an answer.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Asked {
    asker: Asker,
    what: What,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Asker {
    source: Option<Arc<str>>,
    task: Option<String>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Call(String),
    Question(String),
}

/// How the child got on, for its result.
enum Outcome {
    Done,
    LimitReached,
    Stopped,
    Failed,
}

impl Said {
    /// Takes an event of the child's stream.
    pub(super) fn hear(&mut self, event: AgentEvent) -> Heard {
        self.note_asks(&event);
        if event.source.is_some() {
            return Heard::Event(event.into());
        }
        match &event.kind {
            // The invocation has begun already.
            AgentEventKind::AgentStart { .. } => return Heard::Nothing,
            AgentEventKind::AgentEnd { reason, .. } => {
                let reason = reason.clone();
                return Heard::End(End::Said(event.into(), reason));
            }
            AgentEventKind::Park { state } => {
                self.parked = Some(Arc::clone(state));
                return Heard::Nothing;
            }
            AgentEventKind::Keep { state } => return Heard::Kept(Arc::clone(state)),
            AgentEventKind::AgentResult { result, generate_reason } => {
                self.generate_reason.clone_from(generate_reason);
                self.message = Some(result.text_content());
            }
            AgentEventKind::RequestStop { generate_reason: Some(reason), .. } => {
                self.generate_reason.get_or_insert_with(|| reason.clone());
            }
            AgentEventKind::ExceedMaxIters { .. } => self.limit_reached = true,
            kind => self.text.hear(kind),
        }
        Heard::Event(event.into())
    }

    /// The child's stream ended without AGENT_END.
    pub(super) fn broke_off(&self) -> End {
        if !self.asked.is_empty() {
            return End::Paused;
        }
        End::Failed(Failure {
            class: "AGENT_ENDED_EARLY".to_owned(),
            message: "The agent stopped before it had finished.".to_owned(),
        })
    }

    /// What the parent gets.
    pub(super) fn item(self, end: &End) -> ChildItem {
        let outcome = self.outcome(end);
        if matches!(outcome, Outcome::Done) && !self.asked.is_empty() {
            return ChildItem::Waits {
                parked: self.parked.as_deref().cloned().unwrap_or_default(),
            };
        }
        let said = Some(self.text.whole).filter(|text| !text.is_empty());
        let said = said.or(self.message).filter(|text| !text.is_empty());
        let (said, sentence, state) = match outcome {
            Outcome::Done => {
                let sentence = said.is_none().then_some(NO_ANSWER);
                (said, sentence, ResultState::Success)
            }
            Outcome::LimitReached => (said, Some(LIMIT_REACHED), ResultState::Error),
            Outcome::Stopped => (said, Some(STOPPED), ResultState::Interrupted),
            Outcome::Failed => (None, Some(FAILED), ResultState::Error),
        };
        let texts = said.into_iter().chain(sentence.map(str::to_owned));
        ChildItem::Done { output: texts.map(|text| Block::Text { text }).collect(), state }
    }

    fn outcome(&self, end: &End) -> Outcome {
        let reason = match end {
            End::Failed(_) => return Outcome::Failed,
            End::Paused => return Outcome::Done,
            End::Said(_, reason) => reason,
        };
        match (reason, self.generate_reason.as_deref()) {
            (EndReason::Failed(_), _) => Outcome::Failed,
            (EndReason::Interrupted, _) => Outcome::Stopped,
            (EndReason::MaxIterations, _) => Outcome::LimitReached,
            // The end as told by events before AGENT_END, which itself says nothing on the Java wire.
            _ if self.limit_reached => Outcome::LimitReached,
            (_, Some("MAX_ITERATIONS")) => Outcome::LimitReached,
            (_, Some("INTERRUPTED")) => Outcome::Stopped,
            (_, Some(reason)) if reason.ends_with("_STOP_REQUESTED") => Outcome::Stopped,
            _ => Outcome::Done,
        }
    }

    /// Notes what waits for an answer, here and below.
    fn note_asks(&mut self, event: &AgentEvent) {
        match &event.kind {
            AgentEventKind::RequireUserConfirm { calls, .. }
            | AgentEventKind::RequireExternalExecution { calls, .. } => {
                calls.iter().for_each(|call| self.ask(event, What::Call(call.id.clone())));
            }
            AgentEventKind::Question { id, .. } => self.ask(event, What::Question(id.clone())),
            AgentEventKind::ToolResultEnd { call, state, .. } => self.result(event, call, *state),
            AgentEventKind::UserConfirmResult { results, .. } => {
                for result in results {
                    self.result(event, &result.call.id, ResultState::Success);
                }
            }
            AgentEventKind::ExternalExecutionResult { results, .. } => {
                for result in results {
                    self.result(event, &result.call_id, result.state);
                }
            }
            AgentEventKind::AgentResult { result, .. } => self.note_suspended(event, result),
            AgentEventKind::AgentEnd {
                reason: EndReason::Failed(_) | EndReason::Interrupted | EndReason::MaxIterations,
                ..
            } => self.forget(&Asker::of(event)),
            _ => {}
        }
    }

    fn ask(&mut self, event: &AgentEvent, what: What) {
        self.asked.insert(Asked { asker: Asker::of(event), what });
    }

    fn result(&mut self, event: &AgentEvent, call: &str, state: ResultState) {
        let asked = Asked { asker: Asker::of(event), what: What::Call(call.to_owned()) };
        if state == ResultState::Running {
            self.asked.insert(asked);
        } else {
            self.asked.remove(&asked);
        }
    }

    fn note_suspended(&mut self, event: &AgentEvent, message: &Msg) {
        for block in &message.content {
            if let Block::ToolResult { call_id, state: ResultState::Running, .. } = block {
                self.ask(event, What::Call(call_id.clone()));
            }
        }
    }

    /// Nobody asks any more there and below.
    fn forget(&mut self, over: &Asker) {
        self.asked.retain(|asked| !asked.asker.is_within(over));
    }
}

impl Asker {
    fn of(event: &AgentEvent) -> Self {
        let task = event.metadata.get("taskId").and_then(Value::as_str).map(str::to_owned);
        Self { source: event.source.clone(), task }
    }

    fn is_within(&self, other: &Self) -> bool {
        let within = |path: Option<&str>, other: Option<&str>| {
            let Some(other) = other else { return true };
            let rest = path.and_then(|path| path.strip_prefix(other));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        within(self.source.as_deref(), other.source.as_deref())
            && within(self.task.as_deref(), other.task.as_deref())
    }
}

/// What the child said since the last result of a tool.
#[derive(Default)]
struct Text {
    whole: String,
    /// The block that it is in.
    block: Option<(String, String)>,
    /// Where the block begins.
    start: usize,
}

impl Text {
    fn hear(&mut self, kind: &AgentEventKind) {
        match kind {
            AgentEventKind::TextBlockStart { .. } => self.block = None,
            AgentEventKind::TextBlockDelta { reply, block, delta } => {
                self.begin(reply, block);
                self.whole.push_str(delta);
            }
            AgentEventKind::TextBlockEnd { reply, block, text: Some(text) } => {
                self.begin(reply, block);
                self.whole.truncate(self.start);
                self.whole.push_str(text);
            }
            AgentEventKind::TextBlockEnd { .. } => self.block = None,
            AgentEventKind::ToolResultEnd { .. } => *self = Self::default(),
            _ => {}
        }
    }

    /// Text of a block follows; blocks stand on lines of their own.
    fn begin(&mut self, reply: &str, block: &str) {
        let same = |(of, named): &(String, String)| of == reply && named == block;
        if self.block.as_ref().is_some_and(same) {
            return;
        }
        if !self.whole.is_empty() {
            self.whole.push('\n');
        }
        self.start = self.whole.len();
        self.block = Some((reply.to_owned(), block.to_owned()));
    }
}

const NO_ANSWER: &str = "The sub-agent finished without an answer.";
const LIMIT_REACHED: &str = "The sub-agent stopped at its limit of steps.";
const STOPPED: &str = "The sub-agent was stopped before it had finished.";
const FAILED: &str = "The sub-agent failed.";
