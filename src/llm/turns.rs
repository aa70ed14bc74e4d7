//! A conversation as providers with two sides take it: the user and the model in turn, results
//! where their calls are answered. What a wire cannot say is left out before turns are formed, so
//! that none is empty and no two neighbours are of one side.

use std::{collections::VecDeque, sync::Arc};

use agui_adapter::model::{
    Block, Msg, Role,
    event::{Call, Object, ResultState},
    msg::{MediaKind, MediaSource},
};

use serde_json::Value;

use super::{Artefact, json};

/// What stands in front of a conversation that the user did not open: providers want the user to
/// speak first.
const OPENING: &str = "(The conversation begins.)";

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The person, and the tools.
    User,
    /// The model.
    Model,
}

/// One turn; it has at least one part.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Turn<'a> {
    /// Whose.
    pub(super) side: Side,
    /// What; results first, in the order of their calls.
    pub(super) parts: Vec<Part<'a>>,
}

impl Turn<'_> {
    /// Whether a person speaks in it, not only tools.
    fn is_persons(&self) -> bool {
        self.side == Side::User
            && self.parts.iter().any(|part| !matches!(part, Part::Result { .. }))
    }
}

/// One part of a turn.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part<'a> {
    /// Text, never blank.
    Text(&'a str),
    /// Thinking that the provider of this wire signed.
    Thinking {
        /// May be empty.
        text: &'a str,
        /// Its artefact.
        artefact: Artefact<'a>,
    },
    /// A medium.
    Media {
        /// What kind.
        kind: MediaKind,
        /// Where it is.
        source: &'a MediaSource,
        /// File name, if known.
        name: Option<&'a str>,
    },
    /// A tool call.
    Call {
        /// The how manieth of the conversation; ids may repeat.
        number: usize,
        /// The call.
        call: &'a Call,
        /// Its artefact, if the provider of this wire gave one.
        artefact: Option<Artefact<'a>>,
    },
    /// The answer to a call.
    Result {
        /// Number of the call.
        number: usize,
        /// The call.
        call: &'a Call,
        /// What the tool said.
        output: &'a [Block],
        /// How it went.
        state: ResultState,
    },
}

/// A conversation in turns.
#[derive(Debug, PartialEq)]
pub(super) struct Conversation<'a> {
    /// Instructions out of the messages, in their order.
    pub(super) instructions: Vec<&'a str>,
    /// The turns; the first is the user's.
    pub(super) turns: Vec<Turn<'a>>,
}

impl<'a> Conversation<'a> {
    /// Forms the turns, with the artefacts that go back to this wire.
    pub(super) fn of(messages: &'a [Arc<Msg>], wire: &'static str) -> Self {
        let mut forming = Forming {
            wire,
            instructions: Vec::new(),
            turns: VecDeque::new(),
            open: Vec::new(),
            calls: 0,
        };
        for message in messages {
            for block in &message.content {
                forming.add(message.role, block);
            }
        }
        let Forming { instructions, mut turns, .. } = forming;
        if turns.front().is_none_or(|turn| turn.side == Side::Model) {
            turns.push_front(Turn { side: Side::User, parts: vec![Part::Text(OPENING)] });
        }
        Self { instructions, turns: turns.into() }
    }

    /// Index of the turn behind the last one in which a person speaks: from there on the model
    /// and its tools are among themselves.
    pub(super) fn in_progress(&self) -> usize {
        self.turns.iter().rposition(Turn::is_persons).map_or(0, |at| at + 1)
    }

    /// `system` and the instructions out of the messages.
    pub(super) fn system(&self, system: &'a str) -> String {
        let all = std::iter::once(system).chain(self.instructions.iter().copied());
        all.filter(|text| !text.trim().is_empty()).collect::<Vec<_>>().join("\n\n")
    }
}

/// A call that is not answered yet.
struct Open<'a> {
    number: usize,
    call: &'a Call,
    turn: usize,
}

struct Forming<'a> {
    wire: &'static str,
    instructions: Vec<&'a str>,
    turns: VecDeque<Turn<'a>>,
    open: Vec<Open<'a>>,
    calls: usize,
}

impl<'a> Forming<'a> {
    fn add(&mut self, role: Role, block: &'a Block) {
        let side = if role == Role::Assistant { Side::Model } else { Side::User };
        match block {
            Block::Text { text } if text.trim().is_empty() => {}
            Block::Text { text } if role == Role::System => self.instructions.push(text),
            Block::Text { text } => self.push(side, Part::Text(text)),
            // Whoever keeps a hint, it is said to the model.
            Block::Hint { text } if text.trim().is_empty() => {}
            Block::Hint { text } => self.push(Side::User, Part::Text(text)),
            Block::Thinking { thinking, encrypted } => {
                if let Some(artefact) = self.own(encrypted.as_deref()) {
                    self.push(Side::Model, Part::Thinking { text: thinking, artefact });
                }
            }
            Block::Media { kind, source, name, .. } => {
                let name = name.as_deref();
                self.push(side, Part::Media { kind: *kind, source, name });
            }
            Block::ToolUse { call, encrypted } => self.call(call, encrypted.as_deref()),
            Block::ToolResult { call_id, output, state, .. } => {
                self.result(call_id, output, *state);
            }
        }
    }

    fn own(&self, encrypted: Option<&'a str>) -> Option<Artefact<'a>> {
        encrypted.and_then(Artefact::parse).filter(|artefact| artefact.wire == self.wire)
    }

    fn push(&mut self, side: Side, part: Part<'a>) {
        match self.turns.back_mut() {
            Some(turn) if turn.side == side => turn.parts.push(part),
            _ => self.turns.push_back(Turn { side, parts: vec![part] }),
        }
    }

    fn call(&mut self, call: &'a Call, encrypted: Option<&'a str>) {
        let (number, artefact) = (self.calls, self.own(encrypted));
        self.calls += 1;
        self.push(Side::Model, Part::Call { number, call, artefact });
        self.open.push(Open { number, call, turn: self.turns.len() - 1 });
    }

    /// An answer goes to the turn behind that of the latest open call of its id, before whatever
    /// else is said there.
    fn result(&mut self, id: &str, output: &'a [Block], state: ResultState) {
        let Some(at) = self.open.iter().rposition(|open| open.call.id == id) else {
            tracing::warn!("a tool result without a call is not sent to the model");
            return;
        };
        let Open { number, call, turn } = self.open.remove(at);
        if turn + 1 == self.turns.len() {
            self.turns.push_back(Turn { side: Side::User, parts: Vec::new() });
        }
        if let Some(turn) = self.turns.get_mut(turn + 1) {
            let before =
                |part: &Part<'_>| matches!(part, Part::Result { number: n, .. } if *n < number);
            let at = turn.parts.partition_point(before);
            turn.parts.insert(at, Part::Result { number, call, output, state });
        }
    }
}

/// The arguments of a call. Text that is no object becomes an empty one: providers of this kind
/// take nothing else, and names that we made up would be imitated. The result of such a call says
/// what was wrong with it.
pub(super) fn arguments(call: &Call) -> Object {
    match json::parse(&call.arguments) {
        Ok(Value::Object(arguments)) => arguments,
        _ => call.input.clone().unwrap_or_default(),
    }
}

/// What a model reads of a failure that says nothing itself. `None` = no failure.
pub(super) fn failure_text(state: ResultState) -> Option<&'static str> {
    match state {
        ResultState::Error => Some("The call failed."),
        ResultState::Denied => Some("The call was denied."),
        ResultState::Interrupted => Some("The call was interrupted."),
        ResultState::Success | ResultState::Running => None,
    }
}

#[cfg(test)]
pub(super) mod tests;
