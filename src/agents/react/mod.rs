//! `type: react`: a model that calls tools until it is done.

pub mod history;
pub mod permission;
pub mod subagent;
pub mod toolkit;
