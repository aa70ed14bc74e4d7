//! AgentScope events and messages to AG-UI and back.
//!
//! Sans-I/O: an [`outbound::Adapter`] takes agent events one by one and gives AG-UI events;
//! ids and times are passed in, nothing here waits, spawns or reads a clock. Converters say what
//! happened; the sequencer mints ids, opens, closes and puts the boundary events; enrichers see
//! every event; the gate makes sure that neither an enricher nor an event that a program's
//! converter made itself broke the stream; a view for each client serves peers older than 1.0.
//! What a run adds to its thread is recorded on the way; `history` and `connect` make of it what
//! the next run and the next client get.

pub mod connect;
pub mod downgrade;
pub mod enrich;
pub mod gate;
mod hidden;
pub mod history;
pub mod inbound;
pub mod kept;
pub mod messages_out;
pub mod model;
pub mod names;
pub mod options;
pub mod outbound;
pub mod resume;
pub mod runtime_context;
mod sequencer;
mod shown_media;
pub mod tail;
pub mod transcript;
pub mod truncate;
pub mod view;
