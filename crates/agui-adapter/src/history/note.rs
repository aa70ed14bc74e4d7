//! What the log says of an input that was brought together with the stored history.

use std::fmt;

use agui_protocol::{MessageId, ToolCallId};

/// Something worth a log line; holds ids and numbers only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryNote {
    /// The client went back: what was stored behind is forgotten.
    Cut {
        /// How many messages.
        count: usize,
    },
    /// Messages came with another content than the stored one, which counts.
    Rewritten {
        /// How many messages.
        count: usize,
    },
    /// A new message came under an id that is in use.
    NewId {
        /// The id it came under.
        given: MessageId,
        /// The id it has now.
        minted: MessageId,
    },
    /// A message that nobody knows stands among known ones and was left out.
    Unknown {
        /// The message.
        message: MessageId,
    },
    /// A tool message for a call that `resume` answers was left out.
    AnsweredByResume {
        /// The tool message.
        message: MessageId,
        /// The call.
        call: ToolCallId,
    },
    /// A second answer to a call was left out; the first one counts.
    DuplicateResult {
        /// The tool message.
        message: MessageId,
        /// The call.
        call: ToolCallId,
    },
}

impl fmt::Display for HistoryNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut { count } => {
                write!(f, "the client went back: {count} stored messages were forgotten")
            }
            Self::Rewritten { count } => {
                write!(f, "{count} messages came with another content than the stored one")
            }
            Self::NewId { given, minted } => {
                write!(f, "the new message {given} has an id that is in use; it is now {minted}")
            }
            Self::Unknown { message } => {
                write!(f, "message {message} was left out: it stands among stored ones, unknown")
            }
            Self::AnsweredByResume { message, call } => {
                write!(f, "tool message {message} was dropped: resume answers call {call}")
            }
            Self::DuplicateResult { message, call } => {
                write!(f, "tool message {message} was dropped: call {call} has an answer")
            }
        }
    }
}
