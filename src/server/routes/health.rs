//! For orchestrators: alive, and ready for requests.

use std::collections::BTreeMap;

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use http::StatusCode;
use serde::Serialize;

use crate::server::{error::Problem, state::AppState};

/// The process answers.
pub(in crate::server) async fn live() -> &'static str {
    "ok"
}

/// What is ready, beside the server itself.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Ready<'a> {
    status: &'static str,
    /// By name. None of them holds the server up: a run that needs one waits for it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    mcp_servers: BTreeMap<&'a str, &'static str>,
}

/// New runs are taken.
pub(in crate::server) async fn ready(State(state): State<AppState>) -> Response {
    if state.runs().is_draining() {
        return Problem::new(StatusCode::SERVICE_UNAVAILABLE, "The server is shutting down.")
            .into_response();
    }
    let servers = state.agents().mcp_servers().status();
    let mcp_servers = servers.into_iter().map(|(name, status)| (name, status.as_str())).collect();
    Json(Ready { status: "ready", mcp_servers }).into_response()
}
