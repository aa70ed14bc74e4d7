//! Integration tests: the real binary over real HTTP.
//!
//! One test binary for all of them, since every further one would be linked anew. A topic is a
//! module; what several topics need stands in a module of its own. `cfg(test)` tells the lints
//! that helper functions are tests as well.

#[cfg(test)]
mod any_schedule;
#[cfg(test)]
mod architecture;
#[cfg(test)]
mod at_once;
#[cfg(test)]
mod auth;
#[cfg(test)]
mod check;
#[cfg(test)]
mod command;
#[cfg(test)]
mod commands;
#[cfg(test)]
mod config;
#[cfg(test)]
mod config_errors;
#[cfg(test)]
mod cors;
#[cfg(test)]
mod drain;
#[cfg(test)]
mod env_override;
#[cfg(test)]
mod errors;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod frontends;
#[cfg(test)]
mod idle;
#[cfg(test)]
mod image;
#[cfg(test)]
mod interrupts;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod load;
#[cfg(test)]
mod mcp;
#[cfg(test)]
mod models;
#[cfg(test)]
mod react_config;
#[cfg(test)]
mod react_config_errors;
#[cfg(test)]
mod routing;
#[cfg(test)]
mod run;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod scripted;
#[cfg(test)]
mod settled;
#[cfg(test)]
mod slow_reader;
#[cfg(test)]
mod stops;
#[cfg(test)]
mod store;
#[cfg(test)]
mod support;
#[cfg(test)]
mod threads;
