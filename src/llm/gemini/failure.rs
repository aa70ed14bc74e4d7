//! What kind of failure an error is, where Gemini says it in its own way: in the details.

use std::time::Duration;

use http::StatusCode;
use serde_json::Value;

use super::super::{ModelError, ModelErrorKind, failure::ProviderError, json};

/// The kind of an answer without success.
pub(super) fn of_answer(status: StatusCode, body: &[u8]) -> ModelErrorKind {
    let kind = ProviderError::of_body(body).kind(Some(status));
    match json::parse::<Value>(&String::from_utf8_lossy(body)) {
        Ok(body) => detailed(kind, &body),
        Err(_) => kind,
    }
}

/// The failure that a chunk with an `error` is.
pub(super) fn in_stream(chunk: &Value) -> ModelError {
    let ModelError { kind, cause } = ProviderError::of(chunk).in_band();
    ModelError { kind: detailed(kind, chunk), cause }
}

fn detailed(kind: ModelErrorKind, body: &Value) -> ModelErrorKind {
    let details = details(body);
    match kind {
        ModelErrorKind::RateLimited { .. } => ModelErrorKind::RateLimited {
            retry_after: details.iter().find_map(|detail| seconds(detail.get("retryDelay")?)),
        },
        // A key that is none is a 400.
        ModelErrorKind::Other if details.iter().any(is_about_key) => ModelErrorKind::Auth,
        kind => kind,
    }
}

/// An error may come in a list.
fn details(body: &Value) -> &[Value] {
    let body = body.as_array().and_then(|list| list.first()).unwrap_or(body);
    let details = body.pointer("/error/details").and_then(Value::as_array);
    details.map(Vec::as_slice).unwrap_or_default()
}

fn is_about_key(detail: &Value) -> bool {
    let reason = detail.get("reason").and_then(Value::as_str);
    reason.is_some_and(|reason| reason.starts_with("API_KEY_"))
}

/// A duration such as `34.07s`.
fn seconds(duration: &Value) -> Option<Duration> {
    let seconds = duration.as_str()?.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}
