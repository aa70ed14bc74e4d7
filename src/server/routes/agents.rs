//! Which agents there are and what they can do.

use agui_protocol::capabilities::AgentCapabilities;
use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
};
use serde::Serialize;

use crate::server::{agent_id, error::Problem, state::AppState};

/// One entry of the list.
#[derive(Serialize)]
pub(in crate::server) struct Entry {
    id: String,
    name: String,
    description: String,
    capabilities: AgentCapabilities,
}

/// The list.
#[derive(Serialize)]
pub(in crate::server) struct Listing {
    agents: Vec<Entry>,
}

/// `GET {prefix}/agents`.
pub(in crate::server) async fn list(State(state): State<AppState>) -> Json<Listing> {
    let entry = |agent: &crate::agents::registry::Registered| Entry {
        id: agent.info.id.clone(),
        name: agent.info.name.clone(),
        description: agent.info.description.clone(),
        capabilities: agent.info.capabilities.clone(),
    };
    Json(Listing { agents: state.agents().iter().map(entry).collect() })
}

/// `GET {prefix}/{agentId}/capabilities`.
pub(in crate::server) async fn capabilities(
    State(state): State<AppState>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Json<AgentCapabilities>, Problem> {
    // A path that is not UTF-8 names no agent.
    let Path(id) = path.map_err(|_rejection| agent_id::unknown())?;
    let agent = state.agents().get(&id).ok_or_else(agent_id::unknown)?;
    Ok(Json(agent.info.capabilities.clone()))
}
