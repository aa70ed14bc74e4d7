//! Thin handlers: extract, call, answer.

pub(super) mod agents;
pub(super) mod connect;
pub(super) mod health;
pub(super) mod run;
pub(super) mod threads;
