//! Whether a message asks for anything.

use std::collections::HashSet;

use agui_protocol::{Message, MessageId, ToolCallId};

/// Whether a message that comes with a resume of interrupts which are answered already asks for
/// a run: something that the person says, or an answer to a call, that the answering run did not
/// have. `known` are the ids of the messages of that run's input; a tool message for one of the
/// `answered` calls is never new. What an agent says is not, nor are instructions.
pub fn is_new(
    message: &Message,
    known: &HashSet<MessageId>,
    answered: &HashSet<ToolCallId>,
) -> bool {
    match message {
        Message::User { id, .. } => !known.contains(id),
        Message::Tool { id, tool_call_id, .. } => {
            !known.contains(id) && !answered.contains(tool_call_id)
        }
        Message::Assistant { .. }
        | Message::System { .. }
        | Message::Developer { .. }
        | Message::Reasoning { .. }
        | Message::Activity { .. } => false,
    }
}
