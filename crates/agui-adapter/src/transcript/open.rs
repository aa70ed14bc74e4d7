//! What is open in a stream, for those who come to it later.

use std::collections::{BTreeMap, HashMap, hash_map::Entry};

use agui_protocol::{Body, Event, MessageId, SubagentRunId, ToolCallId};

/// The items of a stream that have begun and not ended, in the order of their beginnings.
///
/// Fed with the events that leave; deltas cost nothing.
#[derive(Clone, Debug, Default)]
pub struct OpenItems {
    open: BTreeMap<u64, Event>,
    places: HashMap<Item, u64>,
    begun: u64,
}

/// What an event begins or ends.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Item {
    Text(MessageId),
    Span(MessageId),
    Reasoning(MessageId),
    Call(ToolCallId),
    Subagent(SubagentRunId),
    Step(String, Option<SubagentRunId>),
}

impl OpenItems {
    /// Takes in an event that left.
    pub fn apply(&mut self, event: &Event) {
        if event.body.delta().is_some() {
            return;
        }
        if let Some(begun) = begins(&event.body) {
            // A start that is repeated opens nothing more.
            if let Entry::Vacant(free) = self.places.entry(begun) {
                free.insert(self.begun);
                self.open.insert(self.begun, bare(&event.body));
                self.begun += 1;
            }
        } else if let Some(ended) = ends(&event.body) {
            if let Some(place) = self.places.remove(&ended) {
                self.open.remove(&place);
            }
        } else if matches!(event.body, Body::RunFinished { .. } | Body::RunError { .. }) {
            self.open.clear();
            self.places.clear();
        }
    }

    /// Whether nothing is open.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The events that open each item again under its id, without content. A client that has the
    /// messages so far goes on with them.
    pub fn starts(&self) -> impl Iterator<Item = &Event> {
        self.open.values()
    }
}

fn begins(body: &Body) -> Option<Item> {
    Some(match body {
        Body::TextMessageStart { message_id, .. } => Item::Text(message_id.clone()),
        Body::ReasoningStart { message_id, .. } => Item::Span(message_id.clone()),
        Body::ReasoningMessageStart { message_id, .. } => Item::Reasoning(message_id.clone()),
        Body::ToolCallStart { tool_call_id, .. } => Item::Call(tool_call_id.clone()),
        Body::SubagentStarted { subagent_run_id, .. } => Item::Subagent(subagent_run_id.clone()),
        Body::StepStarted { step_name, subagent_run_id } => {
            Item::Step(step_name.clone(), subagent_run_id.clone())
        }
        _ => return None,
    })
}

fn ends(body: &Body) -> Option<Item> {
    Some(match body {
        Body::TextMessageEnd { message_id, .. } => Item::Text(message_id.clone()),
        Body::ReasoningEnd { message_id, .. } => Item::Span(message_id.clone()),
        Body::ReasoningMessageEnd { message_id, .. } => Item::Reasoning(message_id.clone()),
        Body::ToolCallEnd { tool_call_id, .. } => Item::Call(tool_call_id.clone()),
        Body::SubagentFinished { subagent_run_id, .. }
        | Body::SubagentError { subagent_run_id, .. } => Item::Subagent(subagent_run_id.clone()),
        Body::StepFinished { step_name, subagent_run_id } => {
            Item::Step(step_name.clone(), subagent_run_id.clone())
        }
        _ => return None,
    })
}

/// The opening event without base members: what it said of itself was said.
fn bare(body: &Body) -> Event {
    Event::new(body.clone())
}
