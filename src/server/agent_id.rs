//! Which agent a request means: path, header, `forwardedProps.agentId`, default.

use agui_protocol::RunAgentInput;
use http::{HeaderMap, StatusCode};

use super::{error::Problem, state::AppState};
use crate::agents::registry::Registered;

/// The agent ids that a request names, before the body is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Named {
    pub(super) path: Option<String>,
    pub(super) header: Option<String>,
}

impl Named {
    pub(super) fn new(state: &AppState, path: Option<String>, headers: &HeaderMap) -> Self {
        let header = headers.get(&state.agui().agent_id_header);
        // What is not text names an agent too, one that there is not.
        let header = header.map(|value| String::from_utf8_lossy(value.as_bytes()));
        let header = header.map(|id| id.trim().to_owned()).filter(|id| !id.is_empty());
        Self { path, header }
    }

    /// The agent. The more specific name wins and is not replaced by another when it is wrong.
    pub(super) fn find<'a>(
        &self,
        state: &'a AppState,
        input: &RunAgentInput,
    ) -> Result<&'a Registered, Problem> {
        let forwarded = || input.forwarded_props.as_ref()?.get("agentId")?.as_str();
        match self.path.as_deref().or(self.header.as_deref()).or_else(forwarded) {
            Some(id) => state.agents().get(id).ok_or_else(unknown),
            None => state.agents().default_agent().ok_or_else(|| {
                Problem::new(
                    StatusCode::NOT_FOUND,
                    "The request names no agent, and this server has no default one.",
                )
            }),
        }
    }
}

/// No agent of this id; which there are stands at `GET …/agents`.
pub(super) fn unknown() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "There is no agent of this id.")
}
