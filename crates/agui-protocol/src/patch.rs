//! JSON Patch (RFC 6902) operations as they travel in `STATE_DELTA` and `ACTIVITY_DELTA`.
//!
//! Operations are open objects: members that the RFC does not name are legal and kept
//! (STATE-10). Computing and applying patches is not done here.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Object;

/// One operation. `value` of add, replace and test is always written, `null` included (STATE-2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum PatchOperation {
    /// Adds `value` at `path`, or inserts it into a list.
    Add {
        /// JSON pointer (RFC 6901).
        path: String,
        /// What to add.
        value: Value,
        /// Members that RFC 6902 does not name.
        #[serde(flatten)]
        extra: Object,
    },
    /// Replaces what stands at `path`, which must exist.
    Replace {
        /// JSON pointer (RFC 6901).
        path: String,
        /// The new value.
        value: Value,
        /// Members that RFC 6902 does not name.
        #[serde(flatten)]
        extra: Object,
    },
    /// Fails the whole patch unless `path` holds `value`.
    Test {
        /// JSON pointer (RFC 6901).
        path: String,
        /// The value expected there.
        value: Value,
        /// Members that RFC 6902 does not name.
        #[serde(flatten)]
        extra: Object,
    },
    /// Removes what stands at `path`, which must exist.
    Remove {
        /// JSON pointer (RFC 6901).
        path: String,
        /// Members that RFC 6902 does not name.
        #[serde(flatten)]
        extra: Object,
    },
    /// Moves what stands at `from` to `path`.
    Move {
        /// JSON pointer (RFC 6901) of the source.
        from: String,
        /// JSON pointer (RFC 6901) of the target.
        path: String,
        /// Members that RFC 6902 does not name.
        #[serde(flatten)]
        extra: Object,
    },
    /// Copies what stands at `from` to `path`.
    Copy {
        /// JSON pointer (RFC 6901) of the source.
        from: String,
        /// JSON pointer (RFC 6901) of the target.
        path: String,
        /// Members that RFC 6902 does not name.
        #[serde(flatten)]
        extra: Object,
    },
}
