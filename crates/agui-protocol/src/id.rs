//! Opaque identifiers. All of them are strings on the wire (SER-5) and cheap to clone here.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Wraps a string as it stands on the wire.
            pub fn new(id: impl Into<Arc<str>>) -> Self {
                Self(id.into())
            }

            /// The id as it stands on the wire.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(id: &str) -> Self {
                Self(id.into())
            }
        }

        impl From<String> for $name {
            fn from(id: String) -> Self {
                Self(id.into())
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    )*};
}

ids! {
    /// A conversation; minted by the client.
    ThreadId
    /// One run on a thread; minted by the client, never reused on the thread (LIFE-9).
    RunId
    /// A message of any kind; unique over its thread across all kinds (TXT-5).
    MessageId
    /// A tool call; unique over its thread (TOOL-24).
    ToolCallId
    /// One invocation of a sub-agent; never reused for a second one in a run (SUB-2).
    SubagentRunId
    /// An interrupt; unique over its thread (INT-2).
    InterruptId
}
