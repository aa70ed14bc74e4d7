//! Runs: from a parsed request to batches of AG-UI events.
//!
//! [`RunService`] starts runs and is the only place besides the server's shutdown that spawns
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

pub use crate::store::{AgentId, Principal};

pub use self::{
    service::{RunHandle, RunRequest, RunService, RunServiceSetup, StartError},
    sources::Sources,
};
