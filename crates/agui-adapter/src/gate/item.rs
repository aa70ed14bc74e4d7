//! What can be open in a run, and what each event does to it. No state.

use agui_protocol::{Body, Event, MessageId, SubagentRunId, ToolCallId, event::EncryptedSubtype};

/// Who produced an event; `None` = the root agent.
pub(super) type Owner = Option<SubagentRunId>;

/// Something that events refer to by its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Item {
    Text(MessageId),
    Reasoning(MessageId),
    Span(MessageId),
    Call(ToolCallId),
    /// The one kind whose name is only unique per owner (LIFE-29).
    Step(String),
    Activity(MessageId),
}

impl Item {
    /// Place in the order of closing before a run ends: a message before its span.
    pub(super) fn closing_rank(&self) -> u8 {
        match self {
            Self::Text(_) => 0,
            Self::Reasoning(_) => 1,
            Self::Span(_) => 2,
            Self::Call(_) => 3,
            Self::Step(_) => 4,
            Self::Activity(_) => 5,
        }
    }

    /// The event that ends the item; activities have none.
    pub(super) fn closer(self, owner: Owner) -> Option<Event> {
        let subagent_run_id = owner;
        let body = match self {
            Self::Text(message_id) => Body::TextMessageEnd { message_id, subagent_run_id },
            Self::Reasoning(message_id) => {
                Body::ReasoningMessageEnd { message_id, subagent_run_id }
            }
            Self::Span(message_id) => Body::ReasoningEnd { message_id, subagent_run_id },
            Self::Call(tool_call_id) => Body::ToolCallEnd { tool_call_id, subagent_run_id },
            Self::Step(step_name) => Body::StepFinished { step_name, subagent_run_id },
            Self::Activity(_) => return None,
        };
        Some(body.into())
    }
}

/// What an event inside a run does.
#[derive(Debug, PartialEq)]
pub(super) enum Effect {
    /// Opens an item that must not be open.
    Opens(Item),
    /// Adds to an item that must be open.
    Continues(Item),
    /// Ends an item that must be open.
    Closes(Item),
    /// Names an item that may be known already, open or not; the first known one counts.
    Names(Vec<Item>),
    /// Sets an activity.
    Sets {
        item: Item,
        /// Whether an existing one stays as it is.
        keeps_existing: bool,
    },
    /// Changes an activity that must have been set.
    Patches(Item),
    /// A sub-agent's invocation begins.
    SubagentStarts(SubagentRunId),
    /// A sub-agent's invocation ends.
    SubagentEnds(SubagentRunId),
    /// Restates messages.
    Restates,
    /// A short form, which is never sent.
    Chunk,
    /// May stand anywhere inside a run.
    Free,
    /// Begins or ends the run itself.
    Boundary,
}

/// What `body` does.
pub(super) fn effect(body: &Body) -> Effect {
    match body {
        Body::RunStarted { .. } | Body::RunFinished { .. } | Body::RunError { .. } => {
            Effect::Boundary
        }
        Body::TextMessageStart { message_id, .. } => Effect::Opens(Item::Text(message_id.clone())),
        Body::TextMessageContent { message_id, .. } => {
            Effect::Continues(Item::Text(message_id.clone()))
        }
        Body::TextMessageEnd { message_id, .. } => Effect::Closes(Item::Text(message_id.clone())),
        Body::ReasoningStart { message_id, .. } => Effect::Opens(Item::Span(message_id.clone())),
        Body::ReasoningEnd { message_id, .. } => Effect::Closes(Item::Span(message_id.clone())),
        Body::ReasoningMessageStart { message_id, .. } => {
            Effect::Opens(Item::Reasoning(message_id.clone()))
        }
        Body::ReasoningMessageContent { message_id, .. } => {
            Effect::Continues(Item::Reasoning(message_id.clone()))
        }
        Body::ReasoningMessageEnd { message_id, .. } => {
            Effect::Closes(Item::Reasoning(message_id.clone()))
        }
        Body::ToolCallStart { tool_call_id, .. } => Effect::Opens(Item::Call(tool_call_id.clone())),
        Body::ToolCallArgs { tool_call_id, .. } => {
            Effect::Continues(Item::Call(tool_call_id.clone()))
        }
        Body::ToolCallEnd { tool_call_id, .. } => Effect::Closes(Item::Call(tool_call_id.clone())),
        Body::ToolCallResult { tool_call_id, .. } => {
            Effect::Names(vec![Item::Call(tool_call_id.clone())])
        }
        Body::ReasoningEncryptedValue { subtype, entity_id, .. } => {
            Effect::Names(encrypted_entity(*subtype, entity_id))
        }
        Body::StepStarted { step_name, .. } => Effect::Opens(Item::Step(step_name.clone())),
        Body::StepFinished { step_name, .. } => Effect::Closes(Item::Step(step_name.clone())),
        Body::ActivitySnapshot { message_id, replace, .. } => Effect::Sets {
            item: Item::Activity(message_id.clone()),
            keeps_existing: *replace == Some(false),
        },
        Body::ActivityDelta { message_id, .. } => {
            Effect::Patches(Item::Activity(message_id.clone()))
        }
        Body::SubagentStarted { subagent_run_id, .. } => {
            Effect::SubagentStarts(subagent_run_id.clone())
        }
        Body::SubagentFinished { subagent_run_id, .. }
        | Body::SubagentError { subagent_run_id, .. } => {
            Effect::SubagentEnds(subagent_run_id.clone())
        }
        Body::MessagesSnapshot { .. } => Effect::Restates,
        Body::TextMessageChunk { .. }
        | Body::ToolCallChunk { .. }
        | Body::ReasoningMessageChunk { .. } => Effect::Chunk,
        Body::StateSnapshot { .. }
        | Body::StateDelta { .. }
        | Body::Raw { .. }
        | Body::Custom { .. } => Effect::Free,
    }
}

fn encrypted_entity(subtype: EncryptedSubtype, id: &str) -> Vec<Item> {
    match subtype {
        EncryptedSubtype::ToolCall => vec![Item::Call(id.into())],
        EncryptedSubtype::Message => vec![Item::Reasoning(id.into()), Item::Text(id.into())],
    }
}

/// The owner's tag of an event that belongs to an item; `None` for all others, whose tag says
/// something of its own or does not exist.
pub(super) fn owner_mut(body: &mut Body) -> Option<&mut Owner> {
    match body {
        Body::StepStarted { subagent_run_id, .. }
        | Body::StepFinished { subagent_run_id, .. }
        | Body::TextMessageStart { subagent_run_id, .. }
        | Body::TextMessageContent { subagent_run_id, .. }
        | Body::TextMessageEnd { subagent_run_id, .. }
        | Body::ToolCallStart { subagent_run_id, .. }
        | Body::ToolCallArgs { subagent_run_id, .. }
        | Body::ToolCallEnd { subagent_run_id, .. }
        | Body::ToolCallResult { subagent_run_id, .. }
        | Body::ActivitySnapshot { subagent_run_id, .. }
        | Body::ActivityDelta { subagent_run_id, .. }
        | Body::ReasoningStart { subagent_run_id, .. }
        | Body::ReasoningEnd { subagent_run_id, .. }
        | Body::ReasoningMessageStart { subagent_run_id, .. }
        | Body::ReasoningMessageContent { subagent_run_id, .. }
        | Body::ReasoningMessageEnd { subagent_run_id, .. }
        | Body::ReasoningEncryptedValue { subagent_run_id, .. } => Some(subagent_run_id),
        _ => None,
    }
}
