//! What a change does to what it changes (RFC 6902).

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::event::StateChange;

/// Why a patch was not applied; what it was for is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.as_str())]
pub enum PatchError {
    /// Not a list of RFC 6902 operations.
    NoPatch,
    /// An operation names a place that is not there, or a test fails.
    Misfit,
}

impl PatchError {
    /// The sentence for the log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoPatch => "a patch that is not a list of RFC 6902 operations was left out",
            Self::Misfit => "a patch that does not apply was left out",
        }
    }
}

impl StateChange {
    /// Makes the change on `state`.
    ///
    /// # Errors
    ///
    /// A patch that does not fit changes nothing.
    pub fn apply(&self, state: &mut Arc<Value>) -> Result<(), PatchError> {
        match self {
            Self::Set(value) => *state = Arc::new(value.clone()),
            Self::Patch(operations) => apply_patch(Arc::make_mut(state), operations)?,
        }
        Ok(())
    }
}

/// Applies RFC 6902 operations.
pub(crate) fn apply_patch(target: &mut Value, operations: &Value) -> Result<(), PatchError> {
    let patch = json_patch::Patch::deserialize(operations).map_err(|_error| PatchError::NoPatch)?;
    json_patch::patch(target, &patch).map_err(|_error| PatchError::Misfit)
}
