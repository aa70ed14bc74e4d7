//! AG-UI messages -> AgentScope messages.
//!
//! The client's history becomes the agent's, with nothing invented: what cannot be given to an
//! agent is left out and noted, what AgentScope has no place for is kept beside it (see
//! [`crate::kept`]). Tool messages end up behind the calls that they answer. [`for_agent`] also
//! answers the calls that nobody will answer. What the answers to interrupts mean is decided in
//! [`crate::resume`], not here.

mod convert;
mod repair;

use std::collections::{HashMap, HashSet};
use std::fmt;

use agui_protocol::{Message, MessageId, ToolCallId};

pub use repair::{INTERRUPTED_RESULT, repair};

use crate::model::Msg;

/// What the conversion depends on besides the input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InboundOptions {
    /// Let system and developer messages of the client through to the agent.
    pub accept_client_system_messages: bool,
    /// Let messages of sub-agents through. An agent's own history must not hold them: it never
    /// made those calls; a store that gives them back to clients wants them.
    pub keep_subagent_messages: bool,
    /// The calls, by the ids the client knows, that `resume` answers; tool messages for them do
    /// not count.
    pub answered_calls: HashSet<ToolCallId>,
    /// Calls that the server knows from elsewhere (stored history, parked state), with the names
    /// of their tools; a tool message for one of them is no orphan.
    pub known_calls: HashMap<ToolCallId, String>,
}

/// The history for the agent, and what was done to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inbound {
    /// The messages.
    pub msgs: Vec<Msg>,
    /// How many system and developer messages were left out.
    pub dropped_system: usize,
    /// What else was left out or moved, and which calls nobody answered.
    pub notes: Vec<InboundNote>,
}

/// Something worth a log line; holds ids only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InboundNote {
    /// A content part refers to a file of some provider, which no agent here can read.
    FileSkipped {
        /// The message that has the part.
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
    /// An answer to a call that nobody made was left out.
    OrphanResult {
        /// The tool message.
        message: MessageId,
        /// The call.
        call: ToolCallId,
    },
    /// An answer was moved to its call, where models expect it.
    ResultMoved {
        /// The tool message.
        message: MessageId,
        /// The call.
        call: ToolCallId,
    },
    /// Nobody answered a call.
    DanglingCall {
        /// The message that makes the call.
        message: MessageId,
        /// The call.
        call: ToolCallId,
    },
}

impl fmt::Display for InboundNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FileSkipped { message } => {
                write!(f, "a file part of message {message} was skipped")
            }
            Self::AnsweredByResume { message, call } => {
                write!(f, "tool message {message} was dropped: resume answers call {call}")
            }
            Self::DuplicateResult { message, call } => {
                write!(f, "tool message {message} was dropped: call {call} has an answer")
            }
            Self::OrphanResult { message, call } => {
                write!(f, "tool message {message} was dropped: nobody made call {call}")
            }
            Self::ResultMoved { message, call } => {
                write!(f, "tool message {message} was moved to its call {call}")
            }
            Self::DanglingCall { message, call } => {
                write!(f, "call {call} of message {message} has no answer")
            }
        }
    }
}

/// Makes the history for an agent: [`to_msgs`], then every call that nobody answered and that
/// `resume` does not answer gets [`INTERRUPTED_RESULT`]. Models accept what comes of it.
pub fn for_agent(messages: &[Message], options: &InboundOptions) -> Inbound {
    let mut inbound = to_msgs(messages, options);
    // `to_msgs` has noted these calls.
    let answered = |call: &str| options.answered_calls.contains(call);
    repair::answer_open(&mut inbound.msgs, &answered);
    inbound
}

/// Converts messages.
///
/// Activities are left out, so are system and developer messages unless the options accept them.
/// Calls without an answer stay as they are: whether one is still pending is only known to the
/// caller, who may let [`for_agent`] or [`repair`] fill in the rest.
pub fn to_msgs(messages: &[Message], options: &InboundOptions) -> Inbound {
    let mut inbound = Inbound::default();
    let names = call_names(messages, options);
    for message in messages {
        if !options.keep_subagent_messages && message.base().subagent_run_id.is_some() {
            continue;
        }
        match message {
            Message::Activity { .. } => {}
            Message::System { .. } | Message::Developer { .. }
                if !options.accept_client_system_messages =>
            {
                inbound.dropped_system += 1;
            }
            Message::Tool { id, tool_call_id, .. }
                if options.answered_calls.contains(tool_call_id) =>
            {
                let (message, call) = (id.clone(), tool_call_id.clone());
                inbound.notes.push(InboundNote::AnsweredByResume { message, call });
            }
            _ => inbound.msgs.extend(convert::to_msg(message, &names, &mut inbound.notes)),
        }
    }
    let known = |call: &str| options.known_calls.contains_key(call);
    inbound.msgs = repair::place_results(inbound.msgs, &known, &mut inbound.notes);
    let dangling = repair::unanswered(&inbound.msgs).into_iter();
    inbound.notes.extend(
        dangling
            .filter(|open| !options.answered_calls.contains(open.call.as_str()))
            .map(|open| open.note()),
    );
    inbound
}

/// The tool of every call, by the call's id.
fn call_names<'a>(
    messages: &'a [Message],
    options: &'a InboundOptions,
) -> HashMap<&'a str, &'a str> {
    let known = options.known_calls.iter().map(|(call, name)| (call.as_str(), name.as_str()));
    let mut names: HashMap<&str, &str> = known.collect();
    for message in messages {
        if let Message::Assistant { tool_calls, .. } = message {
            for call in tool_calls {
                names.entry(call.id.as_str()).or_insert(&call.function.name);
            }
        }
    }
    names
}

#[cfg(test)]
mod tests;
