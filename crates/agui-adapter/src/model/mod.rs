//! AgentScope's own vocabulary: events, messages and tool calls, read from either wire form.
//!
//! No AG-UI type appears here.

pub mod event;
pub mod msg;
pub mod patch;
pub mod value;
pub mod wire;

pub use event::{AgentEvent, AgentEventKind, AgentEventType, Origin};
pub use msg::{Block, Msg, Role};
