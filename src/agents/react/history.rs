//! How much of the history a model is given.

use std::collections::HashMap;

use agui_adapter::model::{Block, Msg, Role};

/// The latest turns that have no more than `limit` messages together (0 = all of them), and every
/// instruction; instructions do not count.
///
/// A turn begins with a person's message. It is kept whole, the current one however long it is,
/// and no result is left without its call.
pub fn recent(mut messages: Vec<Msg>, limit: usize) -> Vec<Msg> {
    let start = first_kept(&messages, limit);
    let mut at = 0;
    messages.retain(|message| {
        at += 1;
        at > start || message.role == Role::System
    });
    messages
}

/// Where the kept turns begin.
fn first_kept(messages: &[Msg], limit: usize) -> usize {
    let mut counted = messages.iter().filter(|message| message.role != Role::System).count();
    if limit == 0 || counted <= limit {
        return 0;
    }
    let torn = torn_by_cuts(messages);
    let mut start = 0;
    for (at, (message, torn)) in messages.iter().zip(torn).enumerate() {
        if message.role == Role::User && !torn {
            start = at;
            if counted <= limit {
                break;
            }
        }
        counted -= usize::from(message.role != Role::System);
    }
    start
}

/// For each message, whether a cut before it would part a call from its result.
fn torn_by_cuts(messages: &[Msg]) -> Vec<bool> {
    let mut calls: HashMap<&str, usize> = HashMap::new();
    let mut torn = vec![false; messages.len()];
    for (at, message) in messages.iter().enumerate() {
        for block in &message.content {
            match block {
                Block::ToolUse { call, .. } => {
                    calls.insert(&call.id, at);
                }
                Block::ToolResult { call_id, .. } => {
                    // Several calls may have had one id: the latest is the one that is answered.
                    let Some(call) = calls.remove(call_id.as_str()) else { continue };
                    torn.iter_mut().take(at + 1).skip(call + 1).for_each(|torn| *torn = true);
                }
                _ => {}
            }
        }
    }
    torn
}

#[cfg(test)]
mod tests {
    use agui_adapter::model::event::{Call, Object, ResultState};
    use proptest::prelude::*;

    use super::*;

    fn msg(id: &str, role: Role, content: Vec<Block>) -> Msg {
        Msg { id: id.to_owned(), name: String::new(), role, content, metadata: Object::new() }
    }

    /// `s` instructions, `u` a person, `a` the agent, `c:<id>` calls, `r:<id>` a result.
    fn thread(written: &str) -> Vec<Msg> {
        let message = |(at, word): (usize, &str)| {
            let id = at.to_string();
            match word.split_once(':') {
                Some(("c", calls)) => {
                    let calls = calls.split('+').map(|id| Block::ToolUse {
                        call: Call { id: id.to_owned(), ..Call::default() },
                        encrypted: None,
                    });
                    msg(&id, Role::Assistant, calls.collect())
                }
                Some((_, call)) => {
                    let result = Block::ToolResult {
                        call_id: call.to_owned(),
                        name: String::new(),
                        output: Vec::new(),
                        state: ResultState::Success,
                        metadata: Object::new(),
                    };
                    msg(&id, Role::Tool, vec![result])
                }
                None => {
                    let role = match word {
                        "s" => Role::System,
                        "u" => Role::User,
                        _ => Role::Assistant,
                    };
                    msg(&id, role, vec![Block::Text { text: id.clone() }])
                }
            }
        };
        written.split_whitespace().enumerate().map(message).collect()
    }

    /// The places of the messages that are kept.
    fn kept(written: &str, limit: usize) -> Vec<usize> {
        let kept = recent(thread(written), limit);
        kept.iter().map(|message| message.id.parse().unwrap()).collect()
    }

    #[test]
    fn a_short_history_and_one_without_a_limit_are_kept_whole() {
        assert_eq!(kept("u a u a", 0), [0, 1, 2, 3]);
        assert_eq!(kept("u a u a", 4), [0, 1, 2, 3]);
        assert_eq!(kept("", 3), [0; 0]);
    }

    #[test]
    fn a_cut_is_made_where_a_turn_begins() {
        assert_eq!(kept("u a u a u", 4), [2, 3, 4]);
        assert_eq!(kept("u a u a u", 3), [2, 3, 4]);
        assert_eq!(kept("u a u a u", 2), [4]);
        assert_eq!(kept("u a a a u u", 2), [4, 5]);
    }

    #[test]
    fn the_current_turn_is_kept_however_long_it_is() {
        assert_eq!(kept("u a u c:1 r:1 c:2 r:2 a", 3), [2, 3, 4, 5, 6, 7]);
        assert_eq!(kept("a a a", 1), [0, 1, 2]);
    }

    #[test]
    fn instructions_are_kept_and_do_not_count() {
        assert_eq!(kept("s u a s u a", 2), [0, 3, 4, 5]);
        assert_eq!(kept("s s u a", 2), [0, 1, 2, 3]);
    }

    #[test]
    fn a_result_that_came_after_a_persons_word_keeps_its_call() {
        assert_eq!(kept("u a u c:1+2 r:1 u r:2 a", 3), [2, 3, 4, 5, 6, 7]);
        // The id was used before: its first call is not meant.
        assert_eq!(kept("u c:1 r:1 u c:1 r:1 a", 4), [3, 4, 5, 6]);
    }

    fn pairs(messages: &[Msg]) -> Vec<(String, Option<String>)> {
        let mut calls: HashMap<&str, &str> = HashMap::new();
        let mut pairs = Vec::new();
        for message in messages {
            for block in &message.content {
                match block {
                    Block::ToolUse { call, .. } => {
                        calls.insert(&call.id, &message.id);
                    }
                    Block::ToolResult { call_id, .. } => {
                        let call = calls.remove(call_id.as_str()).map(str::to_owned);
                        pairs.push((message.id.clone(), call));
                    }
                    _ => {}
                }
            }
        }
        pairs
    }

    proptest! {
        #[test]
        fn no_call_is_parted_from_its_result(
            words in prop::collection::vec(
                prop::sample::select(vec!["s", "u", "a", "c:1", "c:2", "c:1+2", "r:1", "r:2"]),
                0..40,
            ),
            limit in 0..12_usize,
        ) {
            let all = thread(&words.join(" "));
            let kept = recent(all.clone(), limit);
            // What is kept is an end of the history, and instructions from before it.
            let start = kept.iter().position(|message| message.role != Role::System);
            let tail = start.map_or(&kept[kept.len()..], |start| &kept[start..]);
            prop_assert!(all.ends_with(tail));
            let system = |messages: &[Msg]| {
                messages.iter().filter(|message| message.role == Role::System).count()
            };
            prop_assert_eq!(system(&kept), system(&all));
            prop_assert!(kept.iter().rfind(|message| message.role == Role::User)
                == all.iter().rfind(|message| message.role == Role::User));
            // Every result that is kept answers the call that it answered before, and every call
            // that is kept has the result that it had.
            let ids: Vec<&str> = kept.iter().map(|message| message.id.as_str()).collect();
            let of_kept: Vec<_> = pairs(&all)
                .into_iter()
                .filter(|(result, call)| {
                    ids.contains(&result.as_str())
                        || call.as_ref().is_some_and(|call| ids.contains(&call.as_str()))
                })
                .collect();
            prop_assert_eq!(pairs(&kept), of_kept);
        }
    }
}
