//! The enrichers of the configuration. None of them may break the order of events: what is
//! dropped is dropped as a whole family.

use std::sync::Arc;

use agui_protocol::{Body, Event, EventType};

use crate::{
    hidden::scrub,
    model::{
        AgentEvent,
        event::{AgentEventKind, EndReason, Object},
    },
    options::{AdapterOptions, Droppable, EnricherSpec},
};

use super::EnrichContext;

/// The metadata key that the protocol keeps for itself (META-2).
pub(crate) const RESERVED_METADATA_KEY: &str = "ag-ui";

/// One built-in enricher.
#[derive(Clone, Debug)]
pub(super) enum Builtin {
    /// The source's wire form on events that have none.
    RawEvent {
        /// Whether thinking may be shown.
        reasoning: bool,
    },
    /// Constants.
    Metadata(Arc<Object>),
    /// Leaves events out.
    Drop { event: Droppable, name: Option<String> },
    /// The time on events that have none.
    Timestamp,
}

/// The built-in enrichers in the order of the configuration, the time last, so that no event is
/// stamped in vain.
pub(super) fn from_options(options: &AdapterOptions) -> Vec<Builtin> {
    let mut timestamps = options.timestamps;
    let mut enrichers = Vec::new();
    for spec in &options.enrichers {
        enrichers.push(match spec {
            EnricherSpec::RawEvent => Builtin::RawEvent { reasoning: options.enable_reasoning },
            EnricherSpec::Metadata(set) => Builtin::Metadata(Arc::clone(set)),
            EnricherSpec::Drop { event, name } => {
                Builtin::Drop { event: *event, name: name.clone() }
            }
            EnricherSpec::Timestamp => {
                timestamps = true;
                continue;
            }
        });
    }
    enrichers.extend(timestamps.then_some(Builtin::Timestamp));
    enrichers
}

impl Builtin {
    /// Changes a batch on the spot.
    pub(super) fn apply(
        &self,
        source: Option<&AgentEvent>,
        events: &mut Vec<Event>,
        context: &EnrichContext<'_>,
    ) {
        match self {
            Self::RawEvent { reasoning } => attach_raw(source, events, *reasoning),
            Self::Metadata(set) => events.iter_mut().for_each(|event| add_metadata(event, set)),
            Self::Drop { event: what, name } => {
                events.retain(|event| !matches(*what, name.as_deref(), event));
            }
            Self::Timestamp => {
                for event in events {
                    event.timestamp.get_or_insert(context.now_ms);
                }
            }
        }
    }
}

fn attach_raw(source: Option<&AgentEvent>, events: &mut [Event], reasoning: bool) {
    let Some(source) = source.filter(|source| may_be_shown(source, reasoning)) else { return };
    let Some(raw) = source.raw.as_deref().filter(|raw| !raw.is_null()) else { return };
    let mut raw = raw.clone();
    scrub(&mut raw, reasoning);
    for event in events {
        event.raw_event.get_or_insert_with(|| raw.clone());
    }
}

/// An agent's event can close items that other events opened, so that its wire form would travel
/// on an event that has nothing to do with what it says. Thinking, text meant for the model and
/// results that repeat both stay inside while reasoning is off; the words of a failure always do.
fn may_be_shown(source: &AgentEvent, reasoning: bool) -> bool {
    match &source.kind {
        AgentEventKind::AgentEnd { reason: EndReason::Failed(_), .. } => false,
        AgentEventKind::ThinkingBlockStart { .. }
        | AgentEventKind::ThinkingBlockDelta { .. }
        | AgentEventKind::ThinkingBlockEnd { .. }
        | AgentEventKind::HintBlock { .. }
        | AgentEventKind::AgentResult { .. } => reasoning,
        _ => true,
    }
}

fn add_metadata(event: &mut Event, set: &Object) {
    for (key, value) in set.iter().filter(|(key, _)| *key != RESERVED_METADATA_KEY) {
        event.metadata.get_or_insert_default().insert(key.clone(), value.clone());
    }
}

fn matches(what: Droppable, name: Option<&str>, event: &Event) -> bool {
    let kind = event.event_type();
    match what {
        Droppable::Custom => match &event.body {
            Body::Custom { name: found, .. } => name.is_none_or(|name| name == found),
            _ => false,
        },
        Droppable::Raw => kind == EventType::Raw,
        Droppable::Reasoning => matches!(
            kind,
            EventType::ReasoningStart
                | EventType::ReasoningEnd
                | EventType::ReasoningMessageStart
                | EventType::ReasoningMessageContent
                | EventType::ReasoningMessageEnd
                | EventType::ReasoningMessageChunk
                | EventType::ReasoningEncryptedValue
        ),
        Droppable::Step => matches!(kind, EventType::StepStarted | EventType::StepFinished),
        Droppable::State => matches!(kind, EventType::StateSnapshot | EventType::StateDelta),
        Droppable::Activity => {
            matches!(kind, EventType::ActivitySnapshot | EventType::ActivityDelta)
        }
    }
}
