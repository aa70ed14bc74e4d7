//! Makes a history that models accept: every answer behind its call, every call answered.
//!
//! Works on AgentScope messages, so that a history merged from several sources can be repaired as
//! well as one client's. Ids of calls may repeat: an answer belongs to the latest open call before
//! it, else to the first open one after it.

use std::collections::{BTreeSet, HashMap, HashSet};

use agui_protocol::{MessageId, ToolCallId};

use super::InboundNote;
use crate::model::event::{Object, ResultState};
use crate::model::{Block, Msg, Role};

/// What the model reads as the answer to a call that nobody answered.
pub const INTERRUPTED_RESULT: &str = "The call was interrupted before it gave a result.";

/// A call that no message answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OpenCall {
    pub(super) call: String,
    name: String,
    message: String,
    at: usize,
}

impl OpenCall {
    pub(super) fn note(&self) -> InboundNote {
        InboundNote::DanglingCall {
            message: MessageId::from(self.message.as_str()),
            call: ToolCallId::from(self.call.as_str()),
        }
    }
}

/// Moves answers behind their calls, drops answers without a call and second answers, and adds an
/// interrupted result to every call without an answer, unless the call is in `pending`.
pub fn repair(msgs: &mut Vec<Msg>, pending: &HashSet<String>) -> Vec<InboundNote> {
    let mut notes = Vec::new();
    *msgs = place_results(std::mem::take(msgs), &|_| false, &mut notes);
    let answered = answer_open(msgs, &|call| pending.contains(call));
    notes.extend(answered);
    notes
}

/// Adds an interrupted result to every call without an answer, unless it is pending; the notes
/// name these calls. Answers must stand behind their calls.
pub(super) fn answer_open(msgs: &mut Vec<Msg>, pending: &dyn Fn(&str) -> bool) -> Vec<InboundNote> {
    let mut notes = Vec::new();
    let mut open: HashMap<usize, Vec<OpenCall>> = HashMap::new();
    for call in unanswered(msgs) {
        if !pending(&call.call) {
            notes.push(call.note());
            open.entry(call.at).or_default().push(call);
        }
    }
    if open.is_empty() {
        return notes;
    }
    let mut due: Vec<OpenCall> = Vec::new();
    for (at, msg) in std::mem::take(msgs).into_iter().enumerate() {
        // Behind the answers that the other calls of the same message do have.
        if msg.role != Role::Tool {
            msgs.extend(due.drain(..).map(interrupted));
        }
        msgs.push(msg);
        due.extend(open.remove(&at).unwrap_or_default());
    }
    msgs.extend(due.into_iter().map(interrupted));
    notes
}

fn interrupted(open: OpenCall) -> Msg {
    let result = Block::ToolResult {
        call_id: open.call.clone(),
        name: open.name,
        output: vec![Block::Text { text: INTERRUPTED_RESULT.to_owned() }],
        state: ResultState::Interrupted,
        metadata: Object::new(),
    };
    Msg {
        // Made from ids that are unique already, so that a second repair gives the same one.
        id: format!("{}:{}:interrupted", open.message, open.call),
        name: String::new(),
        role: Role::Tool,
        content: vec![result],
        metadata: Object::new(),
    }
}

/// The calls that no message answers, in their order.
pub(super) fn unanswered(msgs: &[Msg]) -> Vec<OpenCall> {
    let mut calls = Calls::of(msgs);
    for (at, msg) in msgs.iter().enumerate().filter(|(_, msg)| msg.role == Role::Tool) {
        for call in results_of(msg) {
            calls.answer(call, at);
        }
    }
    let open = calls.made.into_iter().filter(|made| !made.answered);
    open.map(|made| OpenCall {
        call: made.id.to_owned(),
        name: made.name.to_owned(),
        message: msgs.get(made.at).map(|msg| msg.id.clone()).unwrap_or_default(),
        at: made.at,
    })
    .collect()
}

/// Where an answer goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Behind the message at this index.
    Behind(usize),
    /// Where it is: its call was made elsewhere.
    Stay,
    /// Out: its call has an answer.
    Duplicate,
    /// Out: nobody made its call.
    Orphan,
}

/// Moves every tool message behind the message that makes its call, and drops second answers and
/// answers to calls that nobody made. `known` tells the calls made outside these messages.
pub(super) fn place_results(
    msgs: Vec<Msg>,
    known: &dyn Fn(&str) -> bool,
    notes: &mut Vec<InboundNote>,
) -> Vec<Msg> {
    let places = places(&msgs, known);
    let others_before = others_before(&msgs);
    let count = msgs.len();
    let mut behind: Vec<Vec<Msg>> = vec![Vec::new(); count];
    let mut stay: Vec<Option<Msg>> = Vec::with_capacity(count);
    for (at, (mut msg, places)) in msgs.into_iter().zip(places).enumerate() {
        let target = drop_results(&mut msg, &places, notes);
        match target {
            _ if places.is_empty() => stay.push(Some(msg)),
            Some(Place::Behind(target)) => {
                let others = others_before.get(at).copied().unwrap_or_default();
                let expected = others_before.get(target).copied().unwrap_or_default() + 1;
                if others != expected {
                    notes.push(moved(&msg));
                }
                stay.push(None);
                if let Some(answers) = behind.get_mut(target) {
                    answers.push(msg);
                }
            }
            Some(_) => stay.push(Some(msg)),
            None => stay.push(None),
        }
    }
    let merged = stay.into_iter().zip(behind);
    merged.flat_map(|(msg, answers)| msg.into_iter().chain(answers)).collect()
}

/// For every message the places of its results; empty for what is not an answer.
fn places(msgs: &[Msg], known: &dyn Fn(&str) -> bool) -> Vec<Vec<Place>> {
    let mut calls = Calls::of(msgs);
    // An answer kept because its call was made elsewhere counts as that call's first one.
    let mut answered_elsewhere: HashSet<String> = HashSet::new();
    let mut place = |call: &str, at: usize| match calls.answer(call, at) {
        Some(target) => Place::Behind(target),
        None if calls.by_id.contains_key(call) => Place::Duplicate,
        None if !known(call) => Place::Orphan,
        None if answered_elsewhere.insert(call.to_owned()) => Place::Stay,
        None => Place::Duplicate,
    };
    let of_msg = |(at, msg): (usize, &Msg)| match msg.role {
        Role::Tool => results_of(msg).map(|call| place(call, at)).collect(),
        _ => Vec::new(),
    };
    msgs.iter().enumerate().map(of_msg).collect()
}

/// How many messages before each one are not answers.
fn others_before(msgs: &[Msg]) -> Vec<usize> {
    let mut others = 0;
    let mut counts = Vec::with_capacity(msgs.len());
    for msg in msgs {
        counts.push(others);
        others += usize::from(msg.role != Role::Tool);
    }
    counts
}

/// Takes the results out that have no place; gives the place of the message, `None` = out.
fn drop_results(msg: &mut Msg, places: &[Place], notes: &mut Vec<InboundNote>) -> Option<Place> {
    let message = MessageId::from(msg.id.as_str());
    let mut next = places.iter();
    let mut target = None;
    msg.content.retain(|block| {
        let Block::ToolResult { call_id, .. } = block else { return true };
        let (message, call) = (message.clone(), ToolCallId::from(call_id.as_str()));
        match next.next() {
            Some(Place::Duplicate) => notes.push(InboundNote::DuplicateResult { message, call }),
            Some(Place::Orphan) => notes.push(InboundNote::OrphanResult { message, call }),
            Some(place) => {
                // A message with several results goes behind the last of its calls.
                target = match (target, *place) {
                    (Some(Place::Behind(a)), Place::Behind(b)) => Some(Place::Behind(a.max(b))),
                    (Some(Place::Behind(a)), _) => Some(Place::Behind(a)),
                    (_, place) => Some(place),
                };
                return true;
            }
            None => return true,
        }
        false
    });
    target
}

fn moved(msg: &Msg) -> InboundNote {
    let call = results_of(msg).next().unwrap_or_default();
    InboundNote::ResultMoved {
        message: MessageId::from(msg.id.as_str()),
        call: ToolCallId::from(call),
    }
}

fn results_of(msg: &Msg) -> impl Iterator<Item = &str> {
    msg.content.iter().filter_map(|block| match block {
        Block::ToolResult { call_id, .. } => Some(call_id.as_str()),
        _ => None,
    })
}

struct Made<'a> {
    id: &'a str,
    name: &'a str,
    at: usize,
    answered: bool,
}

/// Every call of a history, and which of them are answered.
struct Calls<'a> {
    made: Vec<Made<'a>>,
    /// For each id the calls under it that are open: the index of the message, then the place in
    /// `made`.
    by_id: HashMap<&'a str, BTreeSet<(usize, usize)>>,
}

impl<'a> Calls<'a> {
    /// Collects the calls. Answers inside the messages of assistants, as Python keeps them, count
    /// at once.
    fn of(msgs: &'a [Msg]) -> Self {
        let mut calls = Self { made: Vec::new(), by_id: HashMap::new() };
        for (at, msg) in msgs.iter().enumerate().filter(|(_, msg)| msg.role != Role::Tool) {
            for block in &msg.content {
                match block {
                    Block::ToolUse { call, .. } => calls.make(&call.id, &call.name, at),
                    Block::ToolResult { call_id, .. } => {
                        calls.answer(call_id, at);
                    }
                    _ => {}
                }
            }
        }
        calls
    }

    fn make(&mut self, id: &'a str, name: &'a str, at: usize) {
        self.by_id.entry(id).or_default().insert((at, self.made.len()));
        self.made.push(Made { id, name, at, answered: false });
    }

    /// Marks the call that an answer at this index belongs to; gives the index of the message
    /// that makes it.
    fn answer(&mut self, id: &str, at: usize) -> Option<usize> {
        let open = self.by_id.get_mut(id)?;
        let before = open.range(..=(at, usize::MAX)).next_back();
        let call = *before.or_else(|| open.first())?;
        open.remove(&call);
        let made = self.made.get_mut(call.1)?;
        made.answered = true;
        Some(made.at)
    }
}
