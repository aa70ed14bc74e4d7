//! What of an agent's own wire form must not reach a client. Nothing else is changed here.

use serde_json::Value;

/// Takes out hints, which are written for the model, and thinking unless it may be shown, wherever
/// they stand.
pub(crate) fn scrub(value: &mut Value, keep_thinking: bool) {
    match value {
        Value::Array(items) => {
            items.retain(|item| !is_hidden(item, keep_thinking));
            items.iter_mut().for_each(|item| scrub(item, keep_thinking));
        }
        Value::Object(members) => {
            members.retain(|key, value| {
                let hidden = key == "hint" || (key == "thinking" && !keep_thinking);
                !hidden && !is_hidden(value, keep_thinking)
            });
            members.values_mut().for_each(|value| scrub(value, keep_thinking));
        }
        _ => {}
    }
}

fn is_hidden(value: &Value, keep_thinking: bool) -> bool {
    match value.get("type").and_then(Value::as_str) {
        Some("hint") => true,
        Some("thinking") => !keep_thinking,
        _ => false,
    }
}
