//! The table event type -> converter, and the rule that a program's converter replaces the
//! built-in one of its type.

use std::{collections::HashMap, sync::Arc};

use super::{
    activity, context::StreamContext, custom, interrupt, lifecycle, state, subagent, text, tool,
    usage,
};
use crate::model::{AgentEvent, AgentEventKind, AgentEventType};

/// A converter failed; the run ends with `RUN_ERROR` `INTERNAL_ERROR`.
#[derive(Clone, Debug, thiserror::Error)]
#[error("converter: {0}")]
pub struct ConvertError(
    /// For the log only.
    pub String,
);

/// Converts agent events of some types in place of the built-in converter.
///
/// ```
/// use agui_adapter::model::{AgentEvent, AgentEventKind, AgentEventType};
/// use agui_adapter::outbound::{AgentEventConverter, ConvertError, StreamContext};
///
/// /// Prefixes the names of an agent's own events.
/// struct Prefix;
///
/// impl AgentEventConverter for Prefix {
///     fn event_types(&self) -> &[AgentEventType] {
///         &[AgentEventType::Custom]
///     }
///
///     fn convert(
///         &self,
///         event: &AgentEvent,
///         context: &mut StreamContext,
///     ) -> Result<(), ConvertError> {
///         if let AgentEventKind::Custom { name, value } = &event.kind {
///             context.emit_custom(event, format!("com.example.{name}"), value.clone());
///         }
///         Ok(())
///     }
/// }
///
/// # use std::sync::Arc;
/// # use agui_adapter::{options::{AdapterOptions, Peer}, outbound::*};
/// # struct Ids(u32);
/// # impl IdSource for Ids { fn next_id(&mut self) -> String { self.0 += 1; format!("id-{}", self.0) } }
/// # struct Zero;
/// # impl Clock for Zero { fn now_ms(&self) -> i64 { 0 } }
/// # let input = agui_protocol::RunAgentInput::from_slice(
/// #     br#"{"threadId":"t","runId":"r","protocolVersion":"1.0","messages":[]}"#).unwrap().input;
/// # let setup = RunSetup::new(Arc::new(input), Peer::Current);
/// let extensions = Extensions::default().converter(0, Arc::new(Prefix));
/// # let mut adapter = Adapter::new(AdapterParts {
/// #     setup, options: Arc::new(AdapterOptions::default()), extensions: Arc::new(extensions),
/// #     context: Default::default(), ids: Box::new(Ids(0)), clock: Box::new(Zero) });
/// # let mut out = Vec::new();
/// # let kind = AgentEventKind::Custom { name: "cart".into(), value: 1.into() };
/// # adapter.on_event(&AgentEvent::local(kind), &mut out);
/// # let json = serde_json::to_value(&out[1]).unwrap();
/// # assert_eq!(json, serde_json::json!({"type": "CUSTOM", "name": "com.example.cart", "value": 1}));
/// ```
pub trait AgentEventConverter: Send + Sync {
    /// The types of events that it converts.
    fn event_types(&self) -> &[AgentEventType];

    /// Converts one event.
    ///
    /// # Errors
    ///
    /// An error ends the run with `RUN_ERROR`; its text goes to the log only.
    fn convert(&self, event: &AgentEvent, context: &mut StreamContext) -> Result<(), ConvertError>;
}

/// The converters of a program, by event type; of two for one type the first in order wins.
#[derive(Clone, Default)]
pub(super) struct Converters(HashMap<AgentEventType, (i32, Arc<dyn AgentEventConverter>)>);

impl Converters {
    pub(super) fn insert(&mut self, order: i32, converter: Arc<dyn AgentEventConverter>) {
        for &event_type in converter.event_types() {
            let first = self.0.get(&event_type).is_none_or(|(other, _)| order < *other);
            if first {
                self.0.insert(event_type, (order, Arc::clone(&converter)));
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn convert(
        &self,
        event: &AgentEvent,
        context: &mut StreamContext,
    ) -> Result<(), ConvertError> {
        if !self.0.is_empty()
            && let Some((_, converter)) = self.0.get(&event.event_type())
        {
            return converter.convert(event, context);
        }
        built_in(event, context);
        Ok(())
    }
}

/// Hands an event to the converter of its type.
pub(super) fn built_in(event: &AgentEvent, context: &mut StreamContext) {
    if event.source.is_some() && subagent::convert_child_custom(event, context) {
        return;
    }
    match &event.kind {
        AgentEventKind::AgentStart { .. }
        | AgentEventKind::AgentEnd { .. }
        | AgentEventKind::AgentResult { .. }
        | AgentEventKind::RequestStop { .. }
        | AgentEventKind::AllToolsDenied { .. }
        | AgentEventKind::ExceedMaxIters { .. } => lifecycle::convert(event, context),
        AgentEventKind::ModelCallStart { .. } | AgentEventKind::ModelCallEnd { .. } => {
            usage::convert(event, context);
        }
        AgentEventKind::TextBlockStart { .. }
        | AgentEventKind::TextBlockDelta { .. }
        | AgentEventKind::TextBlockEnd { .. } => text::convert_text(event, context),
        AgentEventKind::ThinkingBlockStart { .. }
        | AgentEventKind::ThinkingBlockDelta { .. }
        | AgentEventKind::ThinkingBlockEnd { .. } => text::convert_thinking(event, context),
        AgentEventKind::DataBlockStart { .. }
        | AgentEventKind::DataBlockDelta { .. }
        | AgentEventKind::DataBlockEnd { .. } => activity::convert_media(event, context),
        AgentEventKind::ToolCallStart { .. }
        | AgentEventKind::ToolCallDelta { .. }
        | AgentEventKind::ToolCallEnd { .. } => tool::convert_call(event, context),
        AgentEventKind::ToolResultStart { .. }
        | AgentEventKind::ToolResultTextDelta { .. }
        | AgentEventKind::ToolResultDataDelta { .. }
        | AgentEventKind::ToolResultEnd { .. } => tool::convert_result(event, context),
        AgentEventKind::RequireUserConfirm { .. }
        | AgentEventKind::RequireExternalExecution { .. }
        | AgentEventKind::UserConfirmResult { .. }
        | AgentEventKind::ExternalExecutionResult { .. }
        | AgentEventKind::Question { .. } => interrupt::convert(event, context),
        AgentEventKind::State { change } => state::convert(event, change, context),
        AgentEventKind::Activity { .. } => activity::convert(event, context),
        AgentEventKind::Step { name, phase } => custom::convert_step(event, name, *phase, context),
        AgentEventKind::Park { state } if event.source.is_none() => {
            context.parked = Some(Arc::clone(state));
        }
        AgentEventKind::Keep { state } if event.source.is_none() => context.keep(state),
        // What a child hands over is its parent's affair.
        AgentEventKind::Park { .. } | AgentEventKind::Keep { .. } => {}
        AgentEventKind::HintBlock { .. }
        | AgentEventKind::SubagentExposed { .. }
        | AgentEventKind::Unknown { .. }
        | AgentEventKind::Custom { .. } => custom::convert(event, context),
    }
}
