//! A thread as it is, without calling its agent: history, open interrupts, the run under way.

use std::sync::Arc;

use axum::{
    extract::{Extension, Path, Request, State, rejection::PathRejection},
    response::Response,
};

use super::run::{read, stream};
use crate::{
    runs::{Principal, RunRequest},
    server::{agent_id, error::Problem, layers::RequestId, state::AppState},
    store::ThreadKey,
};

/// `POST {prefix}/connect`.
pub(in crate::server) async fn without_path(
    State(state): State<AppState>,
    Extension(id): Extension<RequestId>,
    Extension(principal): Extension<Principal>,
    request: Request,
) -> Result<Response, Problem> {
    let request = read(&state, &id, principal, None, request).await?;
    Ok(show(&state, request).await)
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
    Ok(show(&state, request).await)
}

/// What clients may see of a thread is decided by the switches of the agent that has it, whatever
/// agent the request names.
async fn show(state: &AppState, mut request: RunRequest) -> Response {
    let key =
        ThreadKey { principal: request.principal.clone(), thread: request.input.thread_id.clone() };
    let thread = state.runs().ledger().store().load(&key).await;
    let owner = thread.ok().flatten().and_then(|thread| thread.agent.clone());
    if let Some(agent) = owner.and_then(|id| state.agents().get(id.as_str())) {
        request.options = Arc::clone(&agent.options);
    }
    stream(state, state.runs().connect(request))
}
