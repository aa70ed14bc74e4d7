//! Runs: from a parsed request to batches of AG-UI events.
//!
//! [`RunService`] starts runs and is the only place besides the server's connections that spawns
//! tasks. The pipeline strings the stages together, the [`ledger`] keeps one run per thread and
//! the open interrupts between runs. No HTTP type may appear here: tests and other transports
//! use this room directly.

mod core;
mod drive;
pub mod ledger;
mod outlet;
mod pipeline;
mod refusal;
mod service;
mod sources;

use std::{fmt, sync::Arc};

pub use self::{
    service::{RunHandle, RunRequest, RunService, RunServiceSetup, StartError},
    sources::Sources,
};

/// Who asks, as established by authentication; never taken from the body.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Principal(Option<Arc<str>>);

impl Principal {
    /// Nobody in particular: what every caller is without authentication.
    pub fn anonymous() -> Self {
        Self(None)
    }

    /// A named caller.
    pub fn named(name: impl Into<Arc<str>>) -> Self {
        Self(Some(name.into()))
    }

    /// The name; `None` for the anonymous principal.
    pub fn name(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

/// Id of an agent as it stands in paths and in the configuration.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AgentId(Arc<str>);

impl AgentId {
    /// Wraps an id.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
