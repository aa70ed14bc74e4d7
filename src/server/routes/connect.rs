//! A thread as it is, without calling its agent: history, open interrupts, the run under way.

use axum::{
    extract::{Extension, Path, Request, State, rejection::PathRejection},
    response::Response,
};

use super::run::{read, stream};
use crate::{
    runs::Principal,
    server::{agent_id, error::Problem, layers::RequestId, state::AppState},
};

/// `POST {prefix}/connect`.
pub(in crate::server) async fn without_path(
    State(state): State<AppState>,
    Extension(id): Extension<RequestId>,
    Extension(principal): Extension<Principal>,
    request: Request,
) -> Result<Response, Problem> {
    let request = read(&state, &id, principal, None, request).await?;
    Ok(stream(&state, state.runs().connect(request)))
}

/// `POST {prefix}/{agentId}/connect`.
pub(in crate::server) async fn with_path(
    State(state): State<AppState>,
    Extension(id): Extension<RequestId>,
    Extension(principal): Extension<Principal>,
    path: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, Problem> {
    // A path that is not UTF-8 names no agent.
    let Path(agent) = path.map_err(|_rejection| agent_id::unknown())?;
    let request = read(&state, &id, principal, Some(agent), request).await?;
    Ok(stream(&state, state.runs().connect(request)))
}
