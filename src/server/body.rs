//! A request's body -> the run input, or the problem that says what is wrong with it and where.

use std::time::Duration;

use agui_protocol::{RunAgentInput, RunId, input::InputError};
use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use http::{HeaderMap, StatusCode, header};
use tokio::time::{Instant, timeout_at};

use super::{error::Problem, layers::RequestId};

/// How long a client may send nothing of its body.
const SILENCE: Duration = Duration::from_secs(30);

/// How long a client may take to send its body, however steadily: what has come is held meanwhile.
const LONGEST: Duration = Duration::from_secs(300);

/// Longest thread or run id in bytes: ids are kept and repeated, in every event and in the log.
const MAX_ID: usize = 1024;

/// A longer body is parsed where it does not hold up other requests.
const PARSED_IN_PLACE: usize = 256 << 10;

/// Checks type and encoding before anything of the body is read.
pub(super) fn check_headers(headers: &HeaderMap) -> Result<(), Problem> {
    let sent = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = sent.and_then(|value| value.split(';').next()).unwrap_or_default().trim();
    let essence = essence.to_ascii_lowercase();
    let json = essence == "application/json"
        || (essence.starts_with("application/") && essence.ends_with("+json"));
    let unsupported = |detail| Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
    if !json {
        return unsupported(
            "The body must be JSON: send the header `Content-Type: application/json`.",
        );
    }
    let mut encodings = headers.get_all(header::CONTENT_ENCODING).iter();
    if encodings.any(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return unsupported("The body must not be compressed: send no `Content-Encoding`.");
    }
    Ok(())
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
    let deadline = Instant::now() + LONGEST;
    loop {
        let next = timeout_at(deadline.min(Instant::now() + SILENCE), chunks.next()).await;
        let next = next.map_err(|_elapsed| {
            Problem::new(StatusCode::REQUEST_TIMEOUT, "The rest of the body did not come.")
        })?;
        let Some(chunk) = next else { return Ok(read.freeze()) };
        let chunk = chunk.map_err(|_| {
            Problem::new(StatusCode::BAD_REQUEST, "The body ended before it was complete.")
        })?;
        if read.len() + chunk.len() > limit {
            return Err(too_large(limit));
        }
        read.extend_from_slice(&chunk);
    }
}

fn too_large(limit: usize) -> Problem {
    let detail = format!("The body is longer than the {limit} bytes that this server takes.");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
}

/// Parses the run input. Warnings name places, never content.
pub(super) async fn parse(body: Bytes, request_id: &RequestId) -> Result<RunAgentInput, Problem> {
    let parsed = if body.len() > PARSED_IN_PLACE {
        let parsing = tokio::task::spawn_blocking(move || RunAgentInput::from_slice(&body));
        parsing.await.map_err(|_panicked| Problem::internal())?
    } else {
        RunAgentInput::from_slice(&body)
    };
    let parsed = parsed.map_err(|error| match error {
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
    check_ids(&parsed.input)?;
    Ok(parsed.input)
}

fn check_ids(input: &RunAgentInput) -> Result<(), Problem> {
    let ids = [
        ("/threadId", Some(input.thread_id.as_str())),
        ("/runId", Some(input.run_id.as_str())),
        ("/parentRunId", input.parent_run_id.as_ref().map(RunId::as_str)),
    ];
    for (pointer, id) in ids {
        if id.is_some_and(|id| id.is_empty() || id.len() > MAX_ID) {
            let detail = format!("an id has 1 to {MAX_ID} bytes");
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail).at(pointer.into()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;
    use tokio::time::sleep;

    use super::*;

    /// A body that comes in pieces, each after so much silence; `None` = never.
    fn pieces(pauses: Vec<Option<Duration>>) -> Body {
        let pieces = stream::iter(pauses).then(|pause| async move {
            match pause {
                Some(pause) => sleep(pause).await,
                None => std::future::pending().await,
            }
            Ok::<_, Infallible>("{}")
        });
        Body::from_stream(pieces)
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_body_is_read_and_a_silent_one_is_given_up() {
        let headers = HeaderMap::new();
        let (almost, began) = (SILENCE - Duration::from_millis(1), Instant::now());
        let read_all = read(&headers, pieces(vec![Some(almost); 3]), 100).await;
        assert_eq!(read_all, Ok(Bytes::from_static(b"{}{}{}")));
        assert_eq!(began.elapsed(), almost * 3);
        let silent = read(&headers, pieces(vec![Some(almost), None]), 100).await;
        let detail = "The rest of the body did not come.";
        assert_eq!(silent, Err(Problem::new(StatusCode::REQUEST_TIMEOUT, detail)));
        assert_eq!(began.elapsed(), almost * 4 + SILENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_takes_too_long_is_given_up() {
        let (headers, began) = (HeaderMap::new(), Instant::now());
        let dripping = read(&headers, pieces(vec![Some(SILENCE / 2); 100]), 1000).await;
        let detail = "The rest of the body did not come.";
        assert_eq!(dripping, Err(Problem::new(StatusCode::REQUEST_TIMEOUT, detail)));
        assert_eq!(began.elapsed(), LONGEST);
    }
}
