//! The merged history while it is put together.

use std::collections::{HashMap, HashSet};

use agui_protocol::{Message, MessageId, ToolCallId};

use super::{
    Found, HistoryNote, Reconciled, Stored, calls,
    instructions::{Instructions, words},
};

pub(super) struct Output<'a> {
    history: Vec<Stored>,
    /// Answers that go behind the message at this index.
    behind: HashMap<usize, Vec<Stored>>,
    /// For a message that makes calls, the index of the last of the answers behind it.
    ends: HashMap<usize, usize>,
    /// Instructions that go to the front.
    front: Vec<Stored>,
    ids: HashSet<MessageId>,
    makers: HashMap<ToolCallId, usize>,
    answered: HashSet<ToolCallId>,
    new: Vec<MessageId>,
    notes: Vec<HistoryNote>,
    mint: &'a mut dyn FnMut() -> MessageId,
}

impl<'a> Output<'a> {
    /// Begins with those of the stored messages that stay: the ones in `kept`, and the answers to
    /// their calls.
    pub(super) fn new(
        stored: Vec<Stored>,
        found: &Found,
        kept: &[bool],
        instructions: &Instructions,
        mint: &'a mut dyn FnMut() -> MessageId,
    ) -> Self {
        let mut output = Self {
            history: Vec::with_capacity(stored.len()),
            behind: HashMap::new(),
            ends: HashMap::new(),
            front: Vec::new(),
            ids: HashSet::new(),
            makers: HashMap::new(),
            answered: HashSet::new(),
            new: Vec::new(),
            notes: Vec::new(),
            mint,
        };
        let count = stored.len();
        for (at, Stored { message, unseen }) in stored.into_iter().enumerate() {
            let answers =
                message.answered_call().is_some_and(|call| output.makers.contains_key(call));
            if !kept[at] && !answers {
                continue;
            }
            let unseen = unseen && found.named[at].is_none();
            if let Some(message) = instructions.current(at, message) {
                output.push(Stored { message, unseen });
            }
        }
        let cut = count - output.history.len();
        if cut > 0 {
            output.note(HistoryNote::Cut { count: cut });
        }
        if found.rewritten > 0 {
            output.note(HistoryNote::Rewritten { count: found.rewritten });
        }
        output
    }

    pub(super) fn note(&mut self, note: HistoryNote) {
        self.notes.push(note);
    }

    /// Whether a call has an answer, here or to the right of it.
    pub(super) fn is_answered(&self, call: &ToolCallId) -> bool {
        self.answered.contains(call)
    }

    fn push(&mut self, stored: Stored) {
        self.register(&stored.message, self.history.len());
        self.history.push(stored);
    }

    fn register(&mut self, message: &Message, at: usize) {
        self.ids.insert(message.id().clone());
        for call in calls(message) {
            self.makers.entry(call.clone()).or_insert(at);
        }
        self.answered.extend(message.answered_call().cloned());
    }

    /// Appends a message of the input. One that stands there already word for word is not
    /// repeated; another one under an id in use gets a minted id.
    pub(super) fn append(&mut self, message: &Message) {
        if let Some(message) = self.named(message) {
            self.push(Stored::seen(message));
        }
    }

    /// Adds an answer: behind its call if it came before known messages, else to the end.
    pub(super) fn answer(&mut self, message: &Message, before_last: bool) {
        let maker = message.answered_call().and_then(|call| self.makers.get(call)).copied();
        match maker.filter(|_| before_last) {
            None => self.append(message),
            Some(maker) => {
                let Some(message) = self.named(message) else { return };
                let at = self.end_of_answers(maker);
                self.register(&message, at);
                self.behind.entry(at).or_default().push(Stored::seen(message));
            }
        }
    }

    fn end_of_answers(&mut self, maker: usize) -> usize {
        let others = self.history.iter().skip(maker + 1);
        let is_answer = |stored: &&Stored| stored.message.answered_call().is_some();
        let end = || maker + others.take_while(is_answer).count();
        *self.ends.entry(maker).or_insert_with(end)
    }

    /// Adds instructions: to the front if they came before known messages, else to the end.
    pub(super) fn instruct(&mut self, message: &Message, before_last: bool) {
        if !before_last {
            return self.append(message);
        }
        if let Some(message) = self.named(message) {
            self.ids.insert(message.id().clone());
            self.front.push(Stored::seen(message));
        }
    }

    /// The new message under an id of its own.
    fn named(&mut self, message: &Message) -> Option<Message> {
        let mut message = message.clone();
        let given = message.id().clone();
        if self.ids.contains(&given) {
            if self.history.iter().rev().take(1).any(|last| last.message == message) {
                return None;
            }
            let minted = (self.mint)();
            message.set_id(minted.clone());
            self.notes.push(HistoryNote::NewId { given, minted });
        }
        self.new.push(message.id().clone());
        Some(message)
    }

    pub(super) fn finish(self) -> Reconciled {
        let Self { history, mut behind, front, new, notes, .. } = self;
        let leading = history.iter().take_while(|stored| words(&stored.message).is_some()).count();
        let mut merged = Vec::with_capacity(history.len() + front.len());
        let mut front = Some(front);
        for (at, stored) in history.into_iter().enumerate() {
            if at == leading {
                merged.extend(front.take().unwrap_or_default());
            }
            merged.push(stored);
            merged.extend(behind.remove(&at).unwrap_or_default());
        }
        merged.extend(front.take().unwrap_or_default());
        Reconciled { history: merged, new, notes }
    }
}
