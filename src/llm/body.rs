//! What the requests of all wires have in common.

use http::HeaderValue;
use serde_json::{Map, Value};

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

/// A header that no log shows; `None` = no header can hold this value.
pub(super) fn secret_header(value: &str) -> Option<HeaderValue> {
    let mut header = HeaderValue::from_str(value).ok()?;
    header.set_sensitive(true);
    Some(header)
}
