//! What the requests of all wires have in common.

use http::HeaderValue;
use serde_json::{Map, Value};

use super::ModelRequest;
use crate::config::models::ModelConfig;

/// Puts the configured members over our own, each as a whole; a null takes one out. Only their
/// `tools` (the provider's own, such as a search) stand beside ours.
pub(super) fn merge(body: &mut Map<String, Value>, parameters: &Map<String, Value>) {
    for (name, value) in parameters {
        match (body.get_mut(name), value) {
            (_, Value::Null) => drop(body.shift_remove(name)),
            (Some(Value::Array(ours)), Value::Array(further)) if name == "tools" => {
                ours.extend(further.iter().cloned());
            }
            (_, value) => drop(body.insert(name.clone(), value.clone())),
        }
    }
}

/// Says in the log that the model did not get all that it was sent.
pub(super) fn note_left_out(count: usize, model: &str, request: &ModelRequest) {
    if count > 0 {
        tracing::warn!(
            request.id = %request.request_id,
            model,
            count,
            "pictures are left out, because the model is configured to take none",
        );
    }
}

/// The configured key, if there is one, behind what the provider wants in front of it. One that
/// no header can hold is none of a provider's, which will say so.
pub(super) fn key_header(config: &ModelConfig, scheme: &str) -> Option<HeaderValue> {
    let key = config.api_key.as_ref().map(|key| key.expose().trim())?;
    if key.is_empty() { None } else { secret_header(&format!("{scheme}{key}")) }
}

/// A header that no log shows; `None` = no header can hold this value.
fn secret_header(value: &str) -> Option<HeaderValue> {
    let mut header = HeaderValue::from_str(value).ok()?;
    header.set_sensitive(true);
    Some(header)
}
