//! The thread's messages as the server keeps them, and what a client's input adds to them.
//!
//! Works for clients that send the whole conversation each time and for those that send only what
//! is new. The server's messages count: a client can take back the end of the conversation (edit,
//! regenerate) and add to it, but not rewrite it. Nothing is converted or repaired for a model
//! here; see [`crate::inbound`].

mod fresh;
mod instructions;
mod note;
mod output;

use std::collections::{HashMap, HashSet};

use agui_protocol::{Content, Message, MessageId, ToolCallId};
use serde::{Deserialize, Serialize};

pub use fresh::is_new;
pub use note::HistoryNote;

use instructions::Instructions;
use output::Output;

/// A message that the server keeps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stored {
    /// The message.
    pub message: Message,
    /// It came into being when the client was gone, and no input has named it since. It is never
    /// cut: the client does not leave it out on purpose.
    #[serde(default)]
    pub unseen: bool,
}

impl Stored {
    /// A message that the client has.
    pub fn seen(message: Message) -> Self {
        Self { message, unseen: false }
    }

    /// A message that the client cannot have seen.
    pub fn unseen(message: Message) -> Self {
        Self { message, unseen: true }
    }
}

/// How much of what is stored stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Up to the last message that the input names: the client went back to there.
    UpToInput,
    /// Everything: the thread is parked or resumed, and what waits needs its history.
    Everything,
}

/// What the client sent.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// The input's messages.
    pub messages: &'a [Message],
    /// The calls that the input's `resume` answers: their result is still to come, so tool
    /// messages for them do not count.
    pub answered_calls: &'a HashSet<ToolCallId>,
}

/// The thread's messages after the input.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reconciled {
    /// What to store, and what to give to the agent.
    pub history: Vec<Stored>,
    /// The messages that were not stored before, under the ids that they have now.
    pub new: Vec<MessageId>,
    /// What is worth a log line.
    pub notes: Vec<HistoryNote>,
}

impl Reconciled {
    /// The messages alone.
    pub fn messages(&self) -> impl Iterator<Item = &Message> {
        self.history.iter().map(|stored| &stored.message)
    }
}

/// Brings what is stored and what the client sent together, by the ids of messages.
///
/// - What is stored is cut after the last message that the input names, then what follows that
///   message in the input is appended. An input that names none is appended whole.
/// - Not cut are messages that the client cannot have seen, and answers to calls that stay.
/// - What is stored wins over another content under its id. But a user message at the end of the
///   input is news, whatever its id: simple clients use ids again. It gets a minted one.
/// - An answer to a call is never left out, wherever it stands, unless the call has one.
/// - Instructions (system and developer messages) are not stored twice, whatever their ids. Where
///   the input names stored messages and holds instructions, these replace the stored ones.
///
/// Takes time linear in both.
pub fn reconcile(
    stored: Vec<Stored>,
    keep: Keep,
    input: &Incoming<'_>,
    mint: &mut dyn FnMut() -> MessageId,
) -> Reconciled {
    let found = Found::of(&stored, input.messages);
    let instructions = Instructions::of(&stored, keep, input.messages, &found);
    let mut output = Output::new(stored, &found, &kept(keep, &found), &instructions, mint);
    for (at, message) in input.messages.iter().enumerate() {
        let before_last = found.last.is_some_and(|last| at < last) && keep == Keep::UpToInput;
        match message {
            _ if found.places[at].is_some() => {}
            Message::System { .. } | Message::Developer { .. } => {
                if !instructions.is_repeated(at) {
                    output.instruct(message, before_last);
                }
            }
            Message::Tool { id, tool_call_id, .. } => {
                let (message_id, call) = (id.clone(), tool_call_id.clone());
                if input.answered_calls.contains(tool_call_id) {
                    output.note(HistoryNote::AnsweredByResume { message: message_id, call });
                } else if output.is_answered(tool_call_id) {
                    output.note(HistoryNote::DuplicateResult { message: message_id, call });
                } else {
                    output.answer(message, before_last);
                }
            }
            other if before_last => {
                output.note(HistoryNote::Unknown { message: other.id().clone() });
            }
            other => output.append(other),
        }
    }
    output.finish()
}

/// Which messages of the input are stored, and where.
struct Found {
    /// For each message of the input its place among the stored ones.
    places: Vec<Option<usize>>,
    /// The last message of the input that is stored.
    last: Option<usize>,
    /// For each stored message its place in the input.
    named: Vec<Option<usize>>,
    /// Known messages whose content is another one than the stored.
    rewritten: usize,
    /// For each stored message whether something that stays needs it.
    bound: Vec<bool>,
    unseen: Vec<bool>,
}

impl Found {
    fn of(stored: &[Stored], input: &[Message]) -> Self {
        let mut by_id: HashMap<&MessageId, usize> = HashMap::new();
        for (at, stored) in stored.iter().enumerate() {
            by_id.entry(stored.message.id()).or_insert(at);
        }
        let spoken = |message: &Message| {
            matches!(
                message,
                Message::Assistant { .. } | Message::Tool { .. } | Message::Reasoning { .. }
            )
        };
        let trailing = input.iter().rposition(spoken).map_or(0, |at| at + 1);
        let mut found = Self {
            places: Vec::with_capacity(input.len()),
            last: None,
            named: vec![None; stored.len()],
            rewritten: 0,
            bound: vec![false; stored.len()],
            unseen: stored.iter().map(|stored| stored.unseen).collect(),
        };
        for (at, message) in input.iter().enumerate() {
            let place = by_id.get(message.id()).copied().filter(|place| {
                let same = says_the_same(&stored[*place].message, message);
                let news = !same && at >= trailing && matches!(message, Message::User { .. });
                found.rewritten += usize::from(!same && !news);
                !news
            });
            if let Some(place) = place {
                found.last = Some(at);
                found.named[place] = Some(at);
            }
            found.places.push(place);
        }
        found.bind(stored);
        found
    }

    /// Answers and calls belong together: an unseen answer keeps the message that made its call.
    fn bind(&mut self, stored: &[Stored]) {
        let unseen = stored.iter().filter(|stored| stored.unseen);
        let answered: HashSet<&ToolCallId> =
            unseen.filter_map(|stored| stored.message.answered_call()).collect();
        for (bound, stored) in self.bound.iter_mut().zip(stored) {
            *bound = calls(&stored.message).any(|call| answered.contains(call));
        }
    }
}

/// For each stored message whether it stays for its own sake.
fn kept(keep: Keep, found: &Found) -> Vec<bool> {
    let count = found.named.len();
    let last = found.named.iter().rposition(Option::is_some);
    let end = match (keep, last) {
        (Keep::UpToInput, Some(last)) => last + 1,
        _ => count,
    };
    (0..count).map(|at| at < end || found.unseen[at] || found.bound[at]).collect()
}

/// The calls that a message makes.
fn calls(message: &Message) -> impl Iterator<Item = &ToolCallId> {
    let calls = match message {
        Message::Assistant { tool_calls, .. } => tool_calls.as_slice(),
        _ => &[],
    };
    calls.iter().map(|call| &call.id)
}

/// Whether two messages of one id have one content. What clients are told otherwise on purpose
/// (arguments, media, cut texts) does not make a difference.
fn says_the_same(stored: &Message, sent: &Message) -> bool {
    match (stored, sent) {
        (Message::User { content: a, .. }, Message::User { content: b, .. }) => same(a, b),
        (Message::Assistant { content: a, .. }, Message::Assistant { content: b, .. }) => {
            a.as_deref().unwrap_or_default() == b.as_deref().unwrap_or_default()
        }
        (Message::Activity { .. }, Message::Activity { .. }) => true,
        (a, b) => a.role() == b.role() && a.text_content() == b.text_content(),
    }
}

fn same(a: &Content, b: &Content) -> bool {
    let plain = |content: &Content| match content {
        Content::Text(_) => true,
        Content::Parts(parts) => parts.iter().all(|part| part.media().is_none()),
    };
    a == b || (plain(a) && plain(b) && a.text_content() == b.text_content())
}

#[cfg(test)]
mod tests;
