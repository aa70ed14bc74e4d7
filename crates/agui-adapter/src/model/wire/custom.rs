//! CUSTOM events under reserved names, through which agents change state, activities and steps.

use serde_json::Value;

use super::fields::{object_of, text_of};
use crate::model::event::{ActivityChange, AgentEventKind, Object, StateChange, StepPhase};

/// Reads the value of a CUSTOM event with a reserved name: `agui.state` `{set | patch}`,
/// `agui.activity` `{id, type, content | patch}`, `agui.step` `{name, phase: start | finish}`.
///
/// # Errors
///
/// Gives the value back when the name is not reserved or the value has another shape; such an
/// event stays an ordinary CUSTOM one.
pub fn read_reserved(name: &str, value: Value) -> Result<AgentEventKind, Value> {
    let Value::Object(mut map) = value else { return Err(value) };
    let kind = match name {
        "agui.state" if is_state(&map) => read_state(&mut map),
        "agui.activity" if is_activity(&map) => read_activity(&mut map),
        "agui.step" if is_step(&map) => read_step(&mut map),
        _ => None,
    };
    // Reading takes members out only after the shape was checked, so nothing is lost here.
    kind.ok_or(Value::Object(map))
}

fn is_state(map: &Object) -> bool {
    match (map.get("set"), map.get("patch")) {
        (Some(_), None) => true,
        (None, Some(patch)) => patch.is_array(),
        _ => false,
    }
}

fn read_state(map: &mut Object) -> Option<AgentEventKind> {
    let change = match map.swap_remove("patch") {
        Some(patch) => StateChange::Patch(patch),
        None => StateChange::Set(map.swap_remove("set")?),
    };
    Some(AgentEventKind::State { change })
}

fn is_activity(map: &Object) -> bool {
    has_text(map, "id")
        && has_text(map, "type")
        && match (map.get("content"), map.get("patch")) {
            (Some(content), None) => content.is_object(),
            (None, Some(patch)) => patch.is_array(),
            _ => false,
        }
}

fn read_activity(map: &mut Object) -> Option<AgentEventKind> {
    let id = text_of(map.swap_remove("id")?)?;
    let activity_type = text_of(map.swap_remove("type")?)?;
    let change = match map.swap_remove("patch") {
        Some(patch) => ActivityChange::Patch(patch),
        None => ActivityChange::Content(object_of(map.swap_remove("content")?)?),
    };
    Some(AgentEventKind::Activity { id, activity_type, change })
}

fn is_step(map: &Object) -> bool {
    has_text(map, "name") && map.get("phase").and_then(step_phase).is_some()
}

fn read_step(map: &mut Object) -> Option<AgentEventKind> {
    let phase = step_phase(map.get("phase")?)?;
    Some(AgentEventKind::Step { name: text_of(map.swap_remove("name")?)?, phase })
}

fn step_phase(value: &Value) -> Option<StepPhase> {
    match value.as_str()? {
        "start" => Some(StepPhase::Start),
        "finish" => Some(StepPhase::Finish),
        _ => None,
    }
}

fn has_text(map: &Object, key: &str) -> bool {
    map.get(key).and_then(Value::as_str).is_some_and(|text| !text.is_empty())
}
