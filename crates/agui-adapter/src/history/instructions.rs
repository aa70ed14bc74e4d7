//! System and developer messages. They are no history: a client that sends them sends its current
//! ones with each input, at times under new ids.

use std::collections::{HashMap, HashSet};

use agui_protocol::Message;

use super::{Found, Keep, Stored};

/// What happens to the instructions that are stored and those that came.
///
/// The same words are not stored twice. Where the client sends the conversation along, its
/// instructions take the place of the stored ones; otherwise they are added.
pub(super) struct Instructions {
    /// The input's instructions replace the stored ones.
    replaces: bool,
    /// Places in the input of instructions whose words are stored.
    repeated: HashSet<usize>,
    /// Places among the stored of instructions that the input says again.
    current: HashSet<usize>,
    /// The current words of stored instructions, by their place.
    words: HashMap<usize, Message>,
}

impl Instructions {
    pub(super) fn of(stored: &[Stored], keep: Keep, input: &[Message], found: &Found) -> Self {
        let mut by_words: HashMap<(&str, &str), usize> = HashMap::new();
        for (at, stored) in stored.iter().enumerate() {
            if let Some(words) = words(&stored.message) {
                by_words.entry(words).or_insert(at);
            }
        }
        let known = |at: &usize| found.places.get(*at).is_some_and(Option::is_some);
        let sends_conversation =
            (0..input.len()).filter(known).any(|at| words(&input[at]).is_none());
        let instructs = input.iter().any(|message| words(message).is_some());
        let replaces = keep == Keep::UpToInput && sends_conversation && instructs;
        let mut all = Self {
            replaces,
            repeated: HashSet::new(),
            current: HashSet::new(),
            words: HashMap::new(),
        };
        let mut seen: HashSet<(&str, &str)> = HashSet::new();
        for (at, message) in input.iter().enumerate() {
            let Some(words) = words(message) else { continue };
            let first = seen.insert(words);
            if let Some(place) = found.places[at] {
                all.current.insert(place);
                if replaces {
                    all.words.insert(place, message.clone());
                }
            } else if let Some(place) = by_words.get(&words) {
                all.current.insert(*place);
                all.repeated.insert(at);
            } else if !first {
                all.repeated.insert(at);
            }
        }
        all
    }

    /// Whether the input's message at this place says what is stored.
    pub(super) fn is_repeated(&self, at: usize) -> bool {
        self.repeated.contains(&at)
    }

    /// The stored message at this place as it is now; `None` = it does not count any more.
    pub(super) fn current(&self, at: usize, message: Message) -> Option<Message> {
        if !self.replaces || words(&message).is_none() {
            return Some(message);
        }
        let words = self.words.get(&at).cloned();
        words.or_else(|| self.current.contains(&at).then_some(message))
    }
}

/// Role and text of instructions.
pub(super) fn words(message: &Message) -> Option<(&'static str, &str)> {
    match message {
        Message::System { content, .. } | Message::Developer { content, .. } => {
            Some((message.role(), content))
        }
        _ => None,
    }
}
