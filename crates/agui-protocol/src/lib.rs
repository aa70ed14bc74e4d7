//! AG-UI 1.0 on the wire.
//!
//! Every type of the protocol, serialised exactly as the specification wants it (no `null` for an
//! optional member, required any-JSON members written even when `null`), the parser of a run's
//! input with a JSON pointer in every error, SSE framing straight into a buffer, and an
//! independent checker of whole streams.
//!
//! No I/O, no clock and no ids of its own. Nothing here knows AgentScope.

pub mod capabilities;
pub mod event;
pub mod id;
pub mod input;
pub mod interrupt;
pub mod message;
pub mod patch;
pub mod sse;
mod streamed;
pub mod usage;
pub mod verify;

pub use event::{Body, Event, EventType};
pub use id::{InterruptId, MessageId, RunId, SubagentRunId, ThreadId, ToolCallId};
pub use input::{Context, InputError, InputWarning, Parsed, RunAgentInput, Tool};
pub use interrupt::{Interrupt, ResumeEntry, ResumeStatus, RunOutcome, SubagentOutcome};
pub use message::{Content, ContentPart, Message, PartSource, ToolCall};
pub use patch::PatchOperation;
pub use usage::TokenUsage;

/// The protocol version that this crate speaks, as it stands in `RUN_STARTED.protocolVersion`
/// (VER-1, VER-2: `MAJOR.MINOR`, digits only).
pub const PROTOCOL_VERSION: &str = "1.0";

/// A JSON object that is open by key: metadata, activity content, JSON Schema.
pub type Object = serde_json::Map<String, serde_json::Value>;
