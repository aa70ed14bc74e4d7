//! What kind of failure an answer is.

use http::StatusCode;

use super::super::{ModelErrorKind, failure::ProviderError};

/// The kind of an answer without success.
pub(super) fn of_answer(status: StatusCode, body: &[u8]) -> ModelErrorKind {
    match status.as_u16() {
        // The request is larger than the API takes, whatever it says.
        413 => ModelErrorKind::ContextExceeded,
        _ => ProviderError::of_body(body).kind(Some(status)),
    }
}
