//! `type: react`: a model that calls tools until it is done.

pub mod permission;
pub mod toolkit;
