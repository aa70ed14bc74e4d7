//! What the requests of all wires have in common.

use http::HeaderValue;
use serde_json::{Map, Value};

/// Puts the configured members over our own; a null takes one out.
pub(super) fn merge(body: &mut Map<String, Value>, parameters: &Map<String, Value>) {
    for (name, value) in parameters {
        match value {
            Value::Null => drop(body.shift_remove(name)),
            value => drop(body.insert(name.clone(), value.clone())),
        }
    }
}

/// A header that no log shows; `None` = no header can hold this value.
pub(super) fn secret_header(value: &str) -> Option<HeaderValue> {
    let mut header = HeaderValue::from_str(value).ok()?;
    header.set_sensitive(true);
    Some(header)
}
