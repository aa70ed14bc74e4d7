//! What went wrong with an MCP server, in words for the log.
//!
//! Never the address, which may hold a key, and never what the server sent: it may be a person's.

use std::error::Error;

use rmcp::{
    ErrorData,
    service::{ClientInitializeError, ServiceError},
    transport::streamable_http_client::StreamableHttpError,
};

const STRANGE: &str = "its answer is not understood";
const CLOSED: &str = "the connection was closed";

/// Why a connection could not be made.
pub(super) fn initialize(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => initialize(fallback),
        ClientInitializeError::TransportError { error, .. } => transport(error.error.as_ref()),
        ClientInitializeError::JsonRpcError(error) => refused(error),
        ClientInitializeError::ConnectionClosed(_) => CLOSED.to_owned(),
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            "it speaks no version of the protocol that this server speaks".to_owned()
        }
        ClientInitializeError::Cancelled => "it was told to stop".to_owned(),
        _ => STRANGE.to_owned(),
    }
}

/// Why a request failed.
pub(super) fn service(error: &ServiceError) -> String {
    match error {
        ServiceError::McpError(error) => refused(error),
        ServiceError::TransportSend(error) => transport(error.error.as_ref()),
        ServiceError::TransportClosed => CLOSED.to_owned(),
        ServiceError::Timeout { .. } => "it did not answer in time".to_owned(),
        _ => STRANGE.to_owned(),
    }
}

/// Whether the connection itself failed, not the request.
pub(super) fn is_connection(error: &ServiceError) -> bool {
    matches!(
        error,
        ServiceError::TransportSend(_)
            | ServiceError::TransportClosed
            | ServiceError::Timeout { .. }
    )
}

fn refused(error: &ErrorData) -> String {
    format!("it refused with code {}", error.code.0)
}

fn transport(error: &(dyn Error + 'static)) -> String {
    let Some(error) = error.downcast_ref::<StreamableHttpError<reqwest::Error>>() else {
        return innermost(error);
    };
    match error {
        StreamableHttpError::Client(error) => match error.source() {
            Some(source) => innermost(source),
            None => "the request failed".to_owned(),
        },
        StreamableHttpError::UnexpectedServerResponse(text) => match text.split_once(':') {
            Some((status, _body)) if status.starts_with("HTTP ") => status.to_owned(),
            _ => STRANGE.to_owned(),
        },
        StreamableHttpError::Deserialize(_)
        | StreamableHttpError::Sse(_)
        | StreamableHttpError::ReinitializationFailed(_) => STRANGE.to_owned(),
        StreamableHttpError::UnexpectedContentType(_) => {
            "its answer is neither JSON nor an event stream".to_owned()
        }
        StreamableHttpError::AuthRequired(_) => "HTTP 401 Unauthorized".to_owned(),
        StreamableHttpError::InsufficientScope(_) => "HTTP 403 Forbidden".to_owned(),
        other => other.to_string(),
    }
}

/// The last cause; those around it repeat it and add the address.
fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    match cause.downcast_ref::<reqwest::Error>() {
        Some(_) => "the request failed".to_owned(),
        None => cause.to_string(),
    }
}
