//! What is open in a stream, for those who come to it later.

use agui_protocol::{Body, Event, MessageId, SubagentRunId, ToolCallId};

/// The items of a stream that have begun and not ended, in the order of their beginnings.
///
/// Fed with the events that leave; deltas cost nothing. What is open is little, so it is looked
/// through.
#[derive(Clone, Debug, Default)]
pub struct OpenItems {
    open: Vec<Event>,
}

/// What an event begins or ends.
#[derive(PartialEq, Eq)]
enum Item<'a> {
    Text(&'a MessageId),
    Span(&'a MessageId),
    Reasoning(&'a MessageId),
    Call(&'a ToolCallId),
    Subagent(&'a SubagentRunId),
    Step(&'a str, Option<&'a SubagentRunId>),
}

impl OpenItems {
    /// Takes in an event that left.
    pub fn apply(&mut self, event: &Event) {
        if event.body.delta().is_some() {
            return;
        }
        if let Some(begun) = begins(&event.body) {
            // A start that is repeated opens nothing more.
            if self.position(&begun).is_none() {
                self.open.push(bare(&event.body));
            }
        } else if let Some(ended) = ends(&event.body) {
            if let Some(at) = self.position(&ended) {
                self.open.remove(at);
            }
        } else if matches!(event.body, Body::RunFinished { .. } | Body::RunError { .. }) {
            self.open.clear();
        }
    }

    /// Whether nothing is open.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The events that open each item again under its id, without content. A client that has the
    /// messages so far goes on with them.
    pub fn starts(&self) -> &[Event] {
        &self.open
    }

    fn position(&self, item: &Item<'_>) -> Option<usize> {
        self.open.iter().position(|open| begins(&open.body).as_ref() == Some(item))
    }
}

fn begins(body: &Body) -> Option<Item<'_>> {
    Some(match body {
        Body::TextMessageStart { message_id, .. } => Item::Text(message_id),
        Body::ReasoningStart { message_id, .. } => Item::Span(message_id),
        Body::ReasoningMessageStart { message_id, .. } => Item::Reasoning(message_id),
        Body::ToolCallStart { tool_call_id, .. } => Item::Call(tool_call_id),
        Body::SubagentStarted { subagent_run_id, .. } => Item::Subagent(subagent_run_id),
        Body::StepStarted { step_name, subagent_run_id } => {
            Item::Step(step_name, subagent_run_id.as_ref())
        }
        _ => return None,
    })
}

fn ends(body: &Body) -> Option<Item<'_>> {
    Some(match body {
        Body::TextMessageEnd { message_id, .. } => Item::Text(message_id),
        Body::ReasoningEnd { message_id, .. } => Item::Span(message_id),
        Body::ReasoningMessageEnd { message_id, .. } => Item::Reasoning(message_id),
        Body::ToolCallEnd { tool_call_id, .. } => Item::Call(tool_call_id),
        Body::SubagentFinished { subagent_run_id, .. }
        | Body::SubagentError { subagent_run_id, .. } => Item::Subagent(subagent_run_id),
        Body::StepFinished { step_name, subagent_run_id } => {
            Item::Step(step_name, subagent_run_id.as_ref())
        }
        _ => return None,
    })
}

/// The opening event without base members: what it said of itself was said.
fn bare(body: &Body) -> Event {
    Event::new(body.clone())
}
