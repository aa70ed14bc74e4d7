//! What kind of failure an error is.

use http::StatusCode;
use serde_json::Value;

use super::super::{ModelError, ModelErrorKind};

/// Sentences that say that the conversation is too long; the API has no type for it.
const TOO_LONG: &[&str] = &["prompt is too long", "exceed context limit", "context window"];

/// The kind of an answer without success. The status counts, except where it says too little.
pub(super) fn of_answer(status: StatusCode, body: &[u8]) -> ModelErrorKind {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let stated = of_error(body.get("error").unwrap_or(&Value::Null));
    match status.as_u16() {
        401 | 403 => ModelErrorKind::Auth,
        413 => ModelErrorKind::ContextExceeded,
        429 => ModelErrorKind::RateLimited { retry_after: None },
        408 | 502 | 503 | 504 | 529 => ModelErrorKind::Unavailable,
        _ => stated,
    }
}

/// The failure that an `error` object in the stream is. Its message may quote what was sent, so
/// only its type is told.
pub(super) fn in_stream(error: &Value) -> ModelError {
    let name = error.get("type").and_then(Value::as_str).unwrap_or_default();
    let plain = |c: &char| c.is_ascii_lowercase() || *c == '_';
    let name: String = name.chars().filter(plain).take(64).collect();
    ModelError { kind: of_error(error), cause: format!("the stream says: {name}") }
}

fn of_error(error: &Value) -> ModelErrorKind {
    let text = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default();
    match text("type") {
        "authentication_error" | "permission_error" => ModelErrorKind::Auth,
        "rate_limit_error" => ModelErrorKind::RateLimited { retry_after: None },
        "overloaded_error" | "timeout_error" => ModelErrorKind::Unavailable,
        "request_too_large" => ModelErrorKind::ContextExceeded,
        _ if is_too_long(text("message")) => ModelErrorKind::ContextExceeded,
        _ => ModelErrorKind::Other,
    }
}

fn is_too_long(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    TOO_LONG.iter().any(|sentence| message.contains(sentence))
}
