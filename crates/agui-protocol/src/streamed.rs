//! The text that an event adds to something open.

use crate::Body;

impl Body {
    /// The text of an event that streams a message, thinking or arguments. Short forms, which
    /// may open what they add to, are none of these.
    pub fn delta(&self) -> Option<&str> {
        match self {
            Self::TextMessageContent { delta, .. }
            | Self::ReasoningMessageContent { delta, .. }
            | Self::ToolCallArgs { delta, .. } => Some(delta),
            _ => None,
        }
    }

    /// The same text, to be changed.
    pub fn delta_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::TextMessageContent { delta, .. }
            | Self::ReasoningMessageContent { delta, .. }
            | Self::ToolCallArgs { delta, .. } => Some(delta),
            _ => None,
        }
    }
}
