//! A run: request in, stream out.

use std::sync::Arc;

use agui_protocol::RunAgentInput;
use axum::{
    extract::{Extension, Path, Request, State, rejection::PathRejection},
    response::{IntoResponse, Response},
};
use http::{HeaderName, HeaderValue, StatusCode, header, request::Parts};

use crate::{
    agents::registry::Registered,
    runs::{AgentId, Principal, RunHandle, RunRequest, StartError},
    server::{
        agent_id::{self, Named},
        body,
        encode::{self, Pace},
        error::Problem,
        layers::RequestId,
        runtime_context::ContextRequest,
        state::AppState,
    },
};

/// `POST {prefix}` and `POST {prefix}/run`.
pub(in crate::server) async fn without_path(
    State(state): State<AppState>,
    Extension(id): Extension<RequestId>,
    Extension(principal): Extension<Principal>,
    request: Request,
) -> Result<Response, Problem> {
    run(&state, &id, principal, None, request).await
}

/// `POST {prefix}/{agentId}` and `POST {prefix}/run/{agentId}`.
pub(in crate::server) async fn with_path(
    State(state): State<AppState>,
    Extension(id): Extension<RequestId>,
    Extension(principal): Extension<Principal>,
    path: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, Problem> {
    // A path that is not UTF-8 names no agent.
    let Path(agent) = path.map_err(|_rejection| agent_id::unknown())?;
    run(&state, &id, principal, Some(agent), request).await
}

async fn run(
    state: &AppState,
    id: &RequestId,
    principal: Principal,
    path_agent: Option<String>,
    request: Request,
) -> Result<Response, Problem> {
    let request = read(state, id, principal, path_agent, request).await?;
    let handle = state.runs().start(request).map_err(|error| match error {
        StartError::TooManyRuns => too_many(),
        StartError::ShuttingDown => stopping(),
    })?;
    Ok(stream(state, handle))
}

/// What a request that carries a run input asks for.
pub(super) async fn read(
    state: &AppState,
    id: &RequestId,
    principal: Principal,
    path_agent: Option<String>,
    request: Request,
) -> Result<RunRequest, Problem> {
    if state.runs().is_draining() {
        return Err(stopping());
    }
    let (parts, body) = request.into_parts();
    body::check_headers(&parts.headers)?;
    let named = Named::new(state, path_agent, &parts.headers);
    let body = body::read(&parts.headers, body, state.server().request_body_limit).await?;
    let input = Arc::new(body::parse(body, id).await?);
    let agent = named.find(state, &input)?;
    prepare(state, id, principal, &named, &parts, agent, input)
}

/// The answer of a stream.
pub(super) fn stream(state: &AppState, handle: RunHandle) -> Response {
    let agui = state.agui();
    let pace = Pace { heartbeat: agui.heartbeat_interval, window: agui.coalesce_window };
    let stream = encode::body(handle.events(), pace);
    (STREAM_HEADERS, stream).into_response()
}

/// No proxy may buffer, cache or rewrite the stream.
const STREAM_HEADERS: [(HeaderName, HeaderValue); 3] = [
    (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform")),
    (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
];

fn prepare(
    state: &AppState,
    id: &RequestId,
    principal: Principal,
    named: &Named,
    parts: &Parts,
    agent: &Registered,
    input: Arc<RunAgentInput>,
) -> Result<RunRequest, Problem> {
    let context = state.resolvers().resolve(&ContextRequest {
        parts,
        transport: "http",
        path_agent_id: named.path.as_deref(),
        header_agent_id: named.header.as_deref(),
        principal: &principal,
        input: &input,
    });
    let context = context.map_err(|error| {
        tracing::error!(request.id = %id.0, error = %error, "the runtime context was not made");
        Problem::internal()
    })?;
    Ok(RunRequest {
        agent: Arc::clone(&agent.agent),
        agent_id: AgentId::new(agent.info.id.as_str()),
        options: Arc::clone(&agent.options),
        principal,
        input,
        context: Arc::new(context),
        run_timeout: agent.run_timeout,
        accept_client_system_messages: agent.accept_client_system_messages,
        request_id: Arc::clone(&id.0),
    })
}

fn too_many() -> Problem {
    Problem::new(StatusCode::TOO_MANY_REQUESTS, "Too many runs at once; try again soon.")
        .retry_after(1)
}

fn stopping() -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "The server is shutting down.").retry_after(1)
}
