//! HTTP: routes, CORS, errors before the stream, frames, shutdown. Knows no rule of the ledger.

mod accept;
mod agent_id;
mod auth;
mod body;
mod builder;
mod encode;
mod error;
mod layers;
mod router;
mod routes;
mod runtime_context;
mod shutdown;
mod socket;
mod state;

pub use builder::{Bound, ServeError, Server, ServerBuilder};
pub use runtime_context::{ContextRequest, ResolveError, RuntimeContextResolver};
