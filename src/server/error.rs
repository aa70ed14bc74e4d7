//! Errors before the stream: `application/problem+json` (RFC 9457). After RUN_STARTED a failure
//! is a RUN_ERROR and not an error of HTTP.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;

/// One refused request.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Problem {
    status: StatusCode,
    detail: String,
    pointer: Option<String>,
    /// Seconds after which the request may be sent again.
    retry_after: Option<u32>,
}

/// The members of the document; `instance` is put in where the request id is known.
#[derive(Serialize)]
struct Document<'a> {
    r#type: &'static str,
    title: &'static str,
    status: u16,
    detail: &'a str,
    instance: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<&'a str>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), pointer: None, retry_after: None }
    }

    /// Something that is not the client's fault; the log says what.
    pub(super) fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "The server failed.")
    }

    /// The place in the body, as a JSON pointer (RFC 6901).
    pub(super) fn at(mut self, pointer: String) -> Self {
        self.pointer = Some(pointer);
        self
    }

    /// The request may be sent again after so many seconds.
    pub(super) fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// The answer; `request_id` finds the request in the log.
    pub(super) fn into_response_for(self, request_id: &str) -> Response {
        let document = Document {
            r#type: "about:blank",
            title: self.status.canonical_reason().unwrap_or("Error"),
            status: self.status.as_u16(),
            detail: &self.detail,
            instance: request_id,
            pointer: self.pointer.as_deref(),
        };
        let body = serde_json::to_vec(&document).unwrap_or_default();
        let content_type = HeaderValue::from_static("application/problem+json");
        let mut response =
            (self.status, [(header::CONTENT_TYPE, content_type)], body).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// A handler's answer: the layer around it knows the request id.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}
