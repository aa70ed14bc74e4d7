//! An acting round: the calls of one answer, from what becomes of each to all their results.
//!
//! A call that needs a person's consent holds back the whole batch, so that there is one pause
//! with everything that is asked.

use std::collections::VecDeque;

use agui_adapter::{
    inbound::INTERRUPTED_RESULT,
    model::{
        AgentEvent, AgentEventKind, Block, Msg, Role,
        event::{Call, DataChunk, Object, ResultData, ResultState},
    },
};
use futures_util::{
    Stream, StreamExt,
    stream::{BoxStream, SelectAll},
};
use serde_json::{Value, json};

use super::{
    call::{Outcome, Step},
    permission::Verdict,
    reply::Reply,
    subagent::Resumed,
    toolkit::EntryKind,
    turn::{Made, fresh_id, message, say},
};
use crate::{
    agents::AgentError,
    tools::{ToolAnswer, ToolEvent},
};

/// A call and what becomes of it.
pub(super) struct Slot {
    pub(super) call: Made,
    /// The arguments, if they are an object.
    pub(super) input: Object,
    pub(super) standing: Standing,
}

/// What becomes of a call.
pub(super) enum Standing {
    /// It has its result; `shown` = the client has it or gets it without our doing.
    Done { outcome: Outcome, shown: bool },
    /// It may run.
    Run(Start),
    /// It waits for a person's consent.
    Asked { suggested: Vec<Value> },
    /// Somebody outside runs it.
    Elsewhere,
    /// Its tool asked the person.
    Question { parked: Option<Value> },
    /// Something that its sub-agent asked waits.
    Child { parked: Value },
}

/// With what a call goes on that waited.
#[derive(Default)]
pub(super) struct Start {
    pub(super) answer: Option<ToolAnswer>,
    pub(super) resumed: Option<Resumed>,
}

/// How a round ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// Every call has its result.
    Answered,
    /// Something waits for an answer from outside.
    Waits,
}

/// A round under way.
pub(super) struct Round {
    /// Reply id of the round.
    id: String,
    slots: Vec<Slot>,
    running: SelectAll<BoxStream<'static, (usize, Step)>>,
    /// Calls that run one behind the other.
    queue: VecDeque<usize>,
    /// The one of them that runs.
    in_turn: Option<usize>,
}

impl Slot {
    /// What is to become of a call of the model, before anything runs.
    pub(super) fn plan(call: Made, reply: &Reply) -> Self {
        let mut input = Object::new();
        let standing = match plan(&call, reply) {
            Ok((arguments, standing)) => {
                input = arguments;
                standing
            }
            Err(outcome) => Standing::Done { outcome, shown: false },
        };
        Self { call, input, standing }
    }

    fn call(&self) -> Call {
        let suggested_rules = match &self.standing {
            Standing::Asked { suggested } => suggested.clone(),
            _ => Vec::new(),
        };
        Call {
            id: self.call.id.clone(),
            name: self.call.name.clone(),
            arguments: self.call.arguments.clone(),
            input: Some(self.input.clone()),
            suggested_rules,
        }
    }
}

fn plan(call: &Made, reply: &Reply) -> Result<(Object, Standing), Outcome> {
    let Some(entry) = reply.toolkit.get(&call.name) else {
        return Err(Outcome::error(reply.no_such_tool(&call.name)));
    };
    if matches!(entry.kind, EntryKind::Frontend) {
        // Only the client may answer it.
        let input = serde_json::from_str(&call.arguments).unwrap_or_default();
        return Ok((input, Standing::Elsewhere));
    }
    if call.is_cut {
        return Err(Outcome::error(CUT));
    }
    let input = entry.arguments(&call.arguments).map_err(Outcome::error)?;
    let standing = match reply.permissions.decide(entry) {
        Verdict::Deny { text } => return Err(Outcome::text(text, ResultState::Denied)),
        Verdict::Ask { suggested } => Standing::Asked { suggested },
        Verdict::Allow if matches!(entry.kind, EntryKind::External) => Standing::Elsewhere,
        Verdict::Allow => Standing::Run(Start::default()),
    };
    Ok((input, standing))
}

/// What the model reads of a call that its answer did not finish.
const CUT: &str = "The call was not run: the answer reached its length limit before the arguments \
                   were complete. Call again with shorter arguments.";

/// What the model reads of a call that it made when it may make none.
const NOT_NOW: &str = "The call was not run: the limit of iterations is reached.";

impl Round {
    pub(super) fn new(slots: Vec<Slot>) -> Self {
        Self {
            id: fresh_id(),
            slots,
            running: SelectAll::new(),
            queue: VecDeque::new(),
            in_turn: None,
        }
    }

    /// Answers calls that must not run.
    pub(super) fn refused(calls: Vec<Made>) -> Self {
        let outcome = || Outcome::error(NOT_NOW);
        let slot = |call| Slot {
            call,
            input: Object::new(),
            standing: Standing::Done { outcome: outcome(), shown: false },
        };
        Self::new(calls.into_iter().map(slot).collect())
    }

    /// Gives the results that are known, and starts what may run.
    pub(super) fn begin(&mut self, reply: &Reply, out: &mut Vec<AgentEvent>) {
        let asks = self.slots.iter().any(|slot| matches!(slot.standing, Standing::Asked { .. }));
        for slot in &self.slots {
            let answers = match &slot.standing {
                Standing::Done { shown, .. } => !shown,
                Standing::Run(_) => !asks && !reply.runs_in_turn(&slot.call.name),
                _ => false,
            };
            if answers {
                let (call, name) = (slot.call.id.clone(), slot.call.name.clone());
                say(out, AgentEventKind::ToolResultStart { reply: self.id.clone(), call, name });
            }
        }
        for slot in &mut self.slots {
            if let Standing::Done { outcome, shown } = &mut slot.standing
                && !*shown
            {
                *shown = true;
                show(&self.id, &slot.call.id, outcome, out);
            }
        }
        if asks {
            return;
        }
        for at in 0..self.slots.len() {
            let waits = self.slots.get(at).is_some_and(|slot| reply.runs_in_turn(&slot.call.name));
            if waits {
                self.queue.push_back(at);
            } else {
                self.start(at, reply);
            }
        }
        self.start_next(reply, out);
    }

    /// Starts the next of the calls that run one behind the other.
    fn start_next(&mut self, reply: &Reply, out: &mut Vec<AgentEvent>) {
        self.in_turn = None;
        while self.in_turn.is_none()
            && let Some(at) = self.queue.pop_front()
        {
            self.in_turn = self.start(at, reply).then_some(at);
            // Not before its turn: a call that has begun is not executed again, whatever happens.
            if let (Some(_), Some(slot)) = (self.in_turn, self.slots.get(at)) {
                let (call, name) = (slot.call.id.clone(), slot.call.name.clone());
                say(out, AgentEventKind::ToolResultStart { reply: self.id.clone(), call, name });
            }
        }
    }

    /// Starts a call; `false` = it is not to run.
    fn start(&mut self, at: usize, reply: &Reply) -> bool {
        let Some(slot) = self.slots.get_mut(at) else { return false };
        let Standing::Run(start) = &mut slot.standing else { return false };
        let steps = reply.start(&slot.call, &slot.input, std::mem::take(start));
        self.running.push(steps.map(move |step| (at, step)).boxed());
        true
    }

    /// What the calls say; `None` = all are done or wait.
    pub(super) fn steps(&mut self) -> &mut (impl Stream<Item = (usize, Step)> + Unpin + use<>) {
        &mut self.running
    }

    /// Takes what a call says.
    pub(super) fn on_step(
        &mut self,
        at: usize,
        step: Step,
        reply: &mut Reply,
        out: &mut Vec<AgentEvent>,
    ) -> Result<(), AgentError> {
        let Some(slot) = self.slots.get_mut(at) else { return Ok(()) };
        match step {
            Step::Tool(event) => {
                tool_event(&slot.call.id, event, reply, out);
                return Ok(());
            }
            Step::Child(event) => {
                child_event(event, reply, out);
                return Ok(());
            }
            Step::ChildKeeps(state) => {
                say(out, reply.child_keeps(&slot.call.name, state));
                return Ok(());
            }
            Step::Failed(error) => return Err(error),
            Step::Done(outcome) => {
                show(&self.id, &slot.call.id, &outcome, out);
                slot.standing = Standing::Done { outcome, shown: true };
            }
            Step::Asks { message, schema, parked } => {
                let id = slot.call.id.clone();
                say(out, AgentEventKind::Question { id, message, schema });
                slot.standing = Standing::Question { parked };
            }
            Step::Waits { parked } => slot.standing = Standing::Child { parked },
        }
        if self.in_turn == Some(at) {
            self.start_next(reply, out);
        }
        Ok(())
    }

    /// The run was told to stop: what runs is given up, and calls have a result that says so.
    pub(super) fn interrupt(&mut self, out: &mut Vec<AgentEvent>) {
        self.running.clear();
        for (at, slot) in self.slots.iter_mut().enumerate() {
            let begun = match slot.standing {
                Standing::Run(_) => !self.queue.contains(&at),
                Standing::Elsewhere => false,
                _ => continue,
            };
            if !begun {
                let (call, name) = (slot.call.id.clone(), slot.call.name.clone());
                say(out, AgentEventKind::ToolResultStart { reply: self.id.clone(), call, name });
            }
            let outcome = Outcome::text(INTERRUPTED_RESULT, ResultState::Interrupted);
            show(&self.id, &slot.call.id, &outcome, out);
            slot.standing = Standing::Done { outcome, shown: true };
        }
    }

    /// All calls have said what they have to say.
    pub(super) fn end(&mut self, out: &mut Vec<AgentEvent>) -> Ended {
        let asked: Vec<Call> = self.calls(|standing| matches!(standing, Standing::Asked { .. }));
        let elsewhere = self.calls(|standing| matches!(standing, Standing::Elsewhere));
        let asks = !asked.is_empty();
        if asks {
            let reply = self.id.clone();
            say(out, AgentEventKind::RequireUserConfirm { reply, calls: asked });
        }
        if !elsewhere.is_empty() {
            let reply = self.id.clone();
            say(out, AgentEventKind::RequireExternalExecution { reply, calls: elsewhere });
        }
        if asks {
            say(
                out,
                AgentEventKind::RequestStop {
                    reason: Some("permission asking".to_owned()),
                    generate_reason: Some("PERMISSION_ASKING".to_owned()),
                },
            );
        }
        let done = |slot: &Slot| matches!(slot.standing, Standing::Done { .. });
        if self.slots.iter().all(done) { Ended::Answered } else { Ended::Waits }
    }

    fn calls(&self, of: impl Fn(&Standing) -> bool) -> Vec<Call> {
        self.slots.iter().filter(|slot| of(&slot.standing)).map(Slot::call).collect()
    }

    /// The calls.
    pub(super) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The results for the model, in the order of the calls.
    pub(super) fn results(self) -> impl Iterator<Item = Msg> {
        self.slots.into_iter().filter_map(|slot| {
            let Standing::Done { outcome, .. } = slot.standing else { return None };
            let result = Block::ToolResult {
                call_id: slot.call.id,
                name: slot.call.name,
                output: outcome.output.into_iter().map(for_model).collect(),
                state: outcome.state,
                metadata: Object::new(),
            };
            Some(message(fresh_id(), Role::Tool, vec![result]))
        })
    }
}

/// The longest text of a result that a model is given, in bytes.
const MAX_TEXT: usize = 256 << 10;

/// A text that is very long would only make the next call fail.
fn for_model(block: Block) -> Block {
    match block {
        Block::Text { mut text } if text.len() > MAX_TEXT => {
            let whole = text.len();
            text.truncate(text.floor_char_boundary(MAX_TEXT));
            text.push_str(&format!("\n[cut: {} of {whole} bytes]", text.len()));
            Block::Text { text }
        }
        block => block,
    }
}

/// Gives a result.
fn show(reply: &str, call: &str, outcome: &Outcome, out: &mut Vec<AgentEvent>) {
    let mut is_first = true;
    for block in &outcome.output {
        let call = call.to_owned();
        match block {
            Block::Text { text } if text.is_empty() => continue,
            Block::Text { text } if is_first => {
                say(out, AgentEventKind::ToolResultTextDelta { call, delta: text.clone() });
            }
            Block::Text { text } => {
                let data = ResultData::Text(text.clone());
                say(out, AgentEventKind::ToolResultDataDelta { call, block: None, data });
            }
            Block::Media { kind, source, name, .. } => {
                let data = ResultData::Media {
                    kind: Some(*kind),
                    media_type: source.media_type().map(str::to_owned),
                    name: name.clone(),
                    data: DataChunk::from(source.clone()),
                };
                say(out, AgentEventKind::ToolResultDataDelta { call, block: None, data });
            }
            _ => continue,
        }
        is_first = false;
    }
    let (reply, call, state) = (reply.to_owned(), call.to_owned(), outcome.state);
    say(out, AgentEventKind::ToolResultEnd { reply, call, state });
}

fn tool_event(call: &str, event: ToolEvent, reply: &mut Reply, out: &mut Vec<AgentEvent>) {
    match event {
        ToolEvent::Progress { progress, total, message } => {
            let mut value = Object::new();
            value.insert("toolCallId".to_owned(), json!(call));
            value.insert("progress".to_owned(), json!(progress));
            value.extend(total.map(|total| ("total".to_owned(), json!(total))));
            value.extend(message.map(|message| ("message".to_owned(), json!(message))));
            let (name, value) = ("mcp_progress".to_owned(), Value::Object(value));
            say(out, AgentEventKind::Custom { name, value });
        }
        ToolEvent::State(change) => {
            if let Err(error) = change.apply(&mut reply.state) {
                tracing::warn!(%error, "a tool changed the state in vain");
                return;
            }
            say(out, AgentEventKind::State { change });
        }
        ToolEvent::Activity { id, activity_type, change } => {
            say(out, AgentEventKind::Activity { id, activity_type, change });
        }
        // A call's end is a step of its own.
        ToolEvent::End(_) => {}
    }
}

/// A sub-agent's event goes on as it is; the state is everybody's, and the client knows each id of
/// a call for one call.
fn child_event(event: AgentEvent, reply: &mut Reply, out: &mut Vec<AgentEvent>) {
    if let AgentEventKind::ToolCallStart { call, .. } = &event.kind {
        reply.used.insert(call.clone());
    }
    if let AgentEventKind::State { change } = &event.kind
        && let Err(error) = change.apply(&mut reply.state)
    {
        tracing::warn!(%error, "a sub-agent changed the state in vain");
        return;
    }
    out.push(event);
}
