//! The agent's own events, hints, steps by name, and everything that this server does not know.

use agui_protocol::Body;
use serde_json::{Value, json};

use super::context::{StreamContext, object};
use crate::{
    hidden::scrub,
    model::{AgentEvent, AgentEventKind, event::StepPhase, wire},
    options::ConverterAction,
};

/// Whether a hint is the framework's own business: Python says `System`, Java `system`.
fn is_system(label: &str) -> bool {
    label.eq_ignore_ascii_case("system")
}

pub(super) fn convert(event: &AgentEvent, context: &mut StreamContext) {
    match &event.kind {
        AgentEventKind::Custom { name, value } => convert_custom(event, name, value, context),
        AgentEventKind::HintBlock { label, sublabel, text } => {
            let Some(label) = label.as_deref().filter(|label| !is_system(label)) else {
                return;
            };
            let value = object([
                ("label", Some(Value::from(label))),
                ("sublabel", sublabel.as_deref().map(Value::from)),
                ("text", Some(Value::from(text.as_str()))),
            ]);
            context.emit_custom(event, "agentscope.hint", Value::Object(value));
        }
        AgentEventKind::SubagentExposed {} | AgentEventKind::Unknown { .. } => {
            convert_raw(event, context);
        }
        _ => {}
    }
}

/// The `converters` of the configuration come first: they rename, drop, or map onto the reserved
/// names.
fn convert_custom(event: &AgentEvent, name: &str, value: &Value, context: &mut StreamContext) {
    let options = std::sync::Arc::clone(&context.options);
    let spec = options.converters.iter().find(|spec| spec.custom == name);
    match spec.map(|spec| &spec.action) {
        None => context.emit_custom(event, name, value.clone()),
        Some(ConverterAction::Drop) => {}
        Some(ConverterAction::Rename(new)) => context.emit_custom(event, new, value.clone()),
        Some(ConverterAction::AsState) => reserved(event, "agui.state", value, context),
        Some(ConverterAction::AsActivity) => reserved(event, "agui.activity", value, context),
        Some(ConverterAction::AsStep) => reserved(event, "agui.step", value, context),
    }
}

/// Reads the value as if the event had the reserved name; one that does not fit stays CUSTOM.
fn reserved(event: &AgentEvent, name: &str, value: &Value, context: &mut StreamContext) {
    match wire::read_reserved(name, value.clone()) {
        Ok(kind) => {
            let mapped = AgentEvent { kind, ..event.clone() };
            context.convert_built_in(&mapped);
        }
        Err(_) => {
            context.note("a CUSTOM event mapped onto a reserved name has another shape");
            if let AgentEventKind::Custom { name, value } = &event.kind {
                context.emit_custom(event, name, value.clone());
            }
        }
    }
}

pub(super) fn convert_step(
    event: &AgentEvent,
    name: &str,
    phase: StepPhase,
    context: &mut StreamContext,
) {
    let owner = context.owner_of(event);
    match phase {
        StepPhase::Start => context.sequencer.start_step(owner, name),
        StepPhase::Finish => context.sequencer.finish_step(owner, name),
    }
}

/// RAW holds the event as it came; thinking and hints are taken out of it, wherever they stand,
/// unless thinking may be shown.
fn convert_raw(event: &AgentEvent, context: &mut StreamContext) {
    let mut raw = event
        .raw
        .as_deref()
        .cloned()
        .unwrap_or_else(|| json!({ "type": event.event_type().as_str() }));
    scrub(&mut raw, context.options.enable_reasoning);
    let source = event.source.as_deref().map(str::to_owned);
    let owner = context.owner_of(event);
    context.sequencer.emit(owner, |subagent_run_id| Body::Raw {
        event: raw,
        source,
        subagent_run_id,
    });
}
