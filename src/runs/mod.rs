//! Runs: from a parsed request to batches of AG-UI events.
//!
//! [`RunService`] starts runs and is the only place besides the server's connections that spawns
//! tasks. The pipeline strings the stages together, the [`ledger`] keeps one run per thread and
//! the open interrupts between runs. No HTTP type may appear here: tests and other transports
//! use this room directly.

mod answers;
mod begun;
mod connect;
mod core;
mod drive;
mod joiner;
pub mod ledger;
mod log;
mod opening;
mod outlet;
mod pipeline;
mod refusal;
mod service;
mod sources;
mod watch;

pub use crate::store::{AgentId, Principal};

pub use self::{
    service::{Activity, RunHandle, RunRequest, RunService, RunServiceSetup, StartError},
    sources::Sources,
};
