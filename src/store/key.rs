//! What records are found by, and whose they are.

use std::{fmt, sync::Arc};

use agui_protocol::ThreadId;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Who asks, as established by authentication; never taken from the body.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Principal(Option<Arc<str>>);

impl Principal {
    /// Nobody in particular: what every caller is without authentication.
    pub fn anonymous() -> Self {
        Self(None)
    }

    /// A named caller.
    pub fn named(name: impl Into<Arc<str>>) -> Self {
        Self(Some(name.into()))
    }

    /// The name; `None` for the anonymous principal.
    pub fn name(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

/// Id of an agent as it stands in paths and in the configuration.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AgentId(Arc<str>);

impl AgentId {
    /// Wraps an id.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a record is found by: threads of two principals never meet.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadKey {
    /// Whose thread.
    pub principal: Principal,
    /// The thread, as the client names it.
    pub thread: ThreadId,
}

impl ThreadKey {
    /// Names the key and tells neither the principal nor the thread: a digest of both.
    pub fn digest(&self) -> Arc<str> {
        let mut hasher = Sha256::new();
        let principal = self.principal.name();
        // Lengths keep two pairs apart whose texts are cut at different places.
        hasher.update(principal.map_or(u64::MAX, |name| name.len() as u64).to_be_bytes());
        hasher.update(principal.unwrap_or_default());
        hasher.update(self.thread.as_str());
        hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
    }
}

/// One execution of a run, told from every other one, also of the same run id: a late clean-up
/// must not free the thread of a successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RunOwner(u128);

impl RunOwner {
    /// A new one, unique over all replicas.
    pub fn fresh() -> Self {
        Self(uuid::Uuid::new_v4().as_u128())
    }
}
