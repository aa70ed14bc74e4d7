//! What handlers share.

use std::sync::Arc;

use super::{auth::Authenticator, runtime_context::Resolvers};
use crate::{
    agents::registry::Registry,
    config::{AguiConfig, AuthConfig, Config, ServerConfig},
    runs::RunService,
};

/// Cheap to clone.
#[derive(Clone)]
pub(super) struct AppState(Arc<Shared>);

struct Shared {
    server: ServerConfig,
    agui: AguiConfig,
    authenticator: Authenticator,
    agents: Registry,
    resolvers: Resolvers,
    runs: RunService,
}

impl AppState {
    pub(super) fn new(
        config: Config,
        agents: Registry,
        resolvers: Resolvers,
        runs: RunService,
    ) -> Self {
        let Config { server, agui, .. } = config;
        let authenticator = Authenticator::new(&server.auth);
        Self(Arc::new(Shared { server, agui, authenticator, agents, resolvers, runs }))
    }

    pub(super) fn server(&self) -> &ServerConfig {
        &self.0.server
    }

    pub(super) fn agui(&self) -> &AguiConfig {
        &self.0.agui
    }

    /// Whether nobody is asked who they are.
    pub(super) fn is_open(&self) -> bool {
        self.0.server.auth == AuthConfig::None
    }

    pub(super) fn authenticator(&self) -> &Authenticator {
        &self.0.authenticator
    }

    pub(super) fn agents(&self) -> &Registry {
        &self.0.agents
    }

    pub(super) fn resolvers(&self) -> &Resolvers {
        &self.0.resolvers
    }

    pub(super) fn runs(&self) -> &RunService {
        &self.0.runs
    }
}
