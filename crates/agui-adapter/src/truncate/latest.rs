//! The latest part of a thread that is too long to be shown whole.

use std::collections::HashSet;

use agui_protocol::{Content, Message, MessageId};

use super::{CONTENT, is_data, part_len, size, texts, tool_content};

/// What messages may take beside the texts and media that can be cut, which get the rest.
const SHELLS: usize = CONTENT / 4 * 3;

/// Leaves out the oldest turns until what cannot be cut of the others fits into a frame; a turn
/// begins with a user's message. The last turn stays in any case, and so does what the client
/// `holds`, which a snapshot without it would delete, with all that follows. Gives the length of
/// all messages if any was left out.
pub(crate) fn latest_turns(
    messages: &mut Vec<Message>,
    holds: &HashSet<MessageId>,
) -> Option<usize> {
    let shells: Vec<usize> = messages.iter_mut().map(shell).collect();
    let mut total: usize = shells.iter().sum();
    if total <= SHELLS {
        return None;
    }
    let mut first = 0;
    for (at, message) in messages.iter().enumerate() {
        if matches!(message, Message::User { .. }) {
            total -= shells[first..at].iter().sum::<usize>();
            first = at;
            if total <= SHELLS {
                break;
            }
        }
        if holds.contains(message.id()) {
            break;
        }
    }
    let original = size::exact(messages);
    (messages.drain(..first).count() > 0).then_some(original)
}

/// What is left of a message of which everything is cut that can be.
fn shell(message: &mut Message) -> usize {
    let whole = size::exact(message) + 1;
    let parts = match message {
        Message::User { content: Content::Parts(parts), .. }
        | Message::Tool { content: Content::Parts(parts), .. } => parts.as_slice(),
        _ => &[],
    };
    let media = parts.iter().filter(|part| is_data(part)).map(part_len);
    let media = media.sum::<usize>();
    let answer = tool_content(message).map_or(0, |content| size::exact(content));
    let texts: usize = texts(std::slice::from_mut(message)).map(|text| size::exact(text)).sum();
    whole.saturating_sub(media.max(answer) + texts)
}
