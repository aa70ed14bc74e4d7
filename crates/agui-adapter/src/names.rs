//! Names that this server writes where the protocol leaves them open, and that more than one
//! place here writes or reads.

/// The key in a tool message's metadata that says how a call went which did not succeed.
pub const STATE_KEY: &str = "agentscope.state";

/// Type of the activity that shows an assistant's own media: AG-UI has no place for them in an
/// assistant message.
pub const MEDIA_ACTIVITY: &str = "agentscope.media";

/// Media type of bytes that nobody named.
pub const UNKNOWN_MEDIA: &str = "application/octet-stream";

/// The code of an error that stands for a stop on purpose.
pub const CANCELLED: &str = "CANCELLED";
