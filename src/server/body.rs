//! A request's body -> the run input, or the problem that says what is wrong with it and where.

use agui_protocol::{RunAgentInput, input::InputError};
use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use http::{HeaderMap, StatusCode, header};

use super::{error::Problem, layers::RequestId};

/// Checks the content type before anything of the body is read.
pub(super) fn check_content_type(headers: &HeaderMap) -> Result<(), Problem> {
    let sent = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = sent.and_then(|value| value.split(';').next()).unwrap_or_default().trim();
    let essence = essence.to_ascii_lowercase();
    let json = essence == "application/json"
        || (essence.starts_with("application/") && essence.ends_with("+json"));
    if json {
        return Ok(());
    }
    let detail = "The body must be JSON: send the header `Content-Type: application/json`.";
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail))
}

/// Reads the body up to `limit` bytes; what is longer is refused without reading the rest.
pub(super) async fn read(headers: &HeaderMap, body: Body, limit: usize) -> Result<Bytes, Problem> {
    let declared = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let declared = declared.and_then(|value| value.parse::<u64>().ok());
    if declared.is_some_and(|length| usize::try_from(length).map_or(true, |len| len > limit)) {
        return Err(too_large(limit));
    }
    let mut read = BytesMut::new();
    let mut chunks = body.into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|_| {
            Problem::new(StatusCode::BAD_REQUEST, "The body ended before it was complete.")
        })?;
        if read.len() + chunk.len() > limit {
            return Err(too_large(limit));
        }
        read.extend_from_slice(&chunk);
    }
    Ok(read.freeze())
}

fn too_large(limit: usize) -> Problem {
    let detail = format!("The body is longer than the {limit} bytes that this server takes.");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
}

/// Parses the run input. Warnings name places, never content.
pub(super) fn parse(body: &[u8], request_id: &RequestId) -> Result<RunAgentInput, Problem> {
    let parsed = RunAgentInput::from_slice(body).map_err(|error| match error {
        InputError::NotJson { line, column, message } => Problem::new(
            StatusCode::BAD_REQUEST,
            format!("The body is not JSON: {message} at line {line}, column {column}."),
        ),
        InputError::Invalid { pointer, message } => {
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, message).at(pointer)
        }
    })?;
    if !parsed.warnings.is_empty() {
        let count = parsed.warnings.len();
        tracing::info!(request.id = %request_id.0, count, "parts of the input that AG-UI does not know were left out");
    }
    for warning in &parsed.warnings {
        // The pointer may hold a name that the client made up, so it is for debugging only.
        tracing::debug!(request.id = %request_id.0, pointer = warning.pointer, "{}", warning.reason);
    }
    Ok(parsed.input)
}
