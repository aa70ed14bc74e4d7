//! For orchestrators: alive, and ready for requests.

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::StatusCode;

use crate::server::{error::Problem, state::AppState};

/// The process answers.
pub(in crate::server) async fn live() -> &'static str {
    "ok"
}

/// New runs are taken.
pub(in crate::server) async fn ready(State(state): State<AppState>) -> Response {
    if state.runs().is_draining() {
        return Problem::new(StatusCode::SERVICE_UNAVAILABLE, "The server is shutting down.")
            .into_response();
    }
    "ok".into_response()
}
