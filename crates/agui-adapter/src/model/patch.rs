//! What a change does to what it changes (RFC 6902).

use std::sync::Arc;

use json_patch::{
    AddOperation, CopyOperation, MoveOperation, PatchOperation, ReplaceOperation, jsonptr::Pointer,
};
use serde::Deserialize;
use serde_json::Value;

use super::event::StateChange;
use crate::truncate;

/// Why a patch was not applied; what it was for is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.as_str())]
pub enum PatchError {
    /// Not a list of RFC 6902 operations.
    NoPatch,
    /// An operation names a place that is not there, or a test fails.
    Misfit,
    /// The result would be longer or deeper than a document may be.
    TooLarge,
}

/// Longest document that a patch may make, as JSON in bytes. `copy` doubles a document with a few
/// bytes, so the length of a patch says nothing about that of its result.
const MAX_LEN: usize = 16 << 20;

/// How deep a document may nest: a little less than a parser takes. Patches could nest deeper, and
/// everything that walks a document uses the stack.
const MAX_DEPTH: usize = 100;

impl PatchError {
    /// The sentence for the log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoPatch => "a patch that is not a list of RFC 6902 operations was left out",
            Self::Misfit => "a patch that does not apply was left out",
            Self::TooLarge => "a change that makes a document too long or too deep was left out",
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
            Self::Set(value) => {
                if !fits(value, MAX_DEPTH) {
                    return Err(PatchError::TooLarge);
                }
                *state = Arc::new(value.clone());
            }
            Self::Patch(operations) => apply_patch(Arc::make_mut(state), operations)?,
        }
        Ok(())
    }
}

/// Applies RFC 6902 operations, all of them or none.
pub(crate) fn apply_patch(target: &mut Value, operations: &Value) -> Result<(), PatchError> {
    let patch = json_patch::Patch::deserialize(operations).map_err(|_error| PatchError::NoPatch)?;
    let copies = |operation: &PatchOperation| {
        matches!(operation, PatchOperation::Copy(_) | PatchOperation::Move(_))
    };
    if patch.iter().any(copies) {
        return apply_in_steps(target, patch);
    }
    let added = patch.iter().map(added).collect::<Result<Vec<_>, _>>()?;
    if truncate::exact(target).saturating_add(added.iter().sum()) > MAX_LEN {
        return Err(PatchError::TooLarge);
    }
    json_patch::patch(target, &patch).map_err(|_error| PatchError::Misfit)
}

/// What an operation copies depends on those before it.
fn apply_in_steps(target: &mut Value, patch: json_patch::Patch) -> Result<(), PatchError> {
    let mut changed = target.clone();
    for operation in patch.0 {
        let source = match &operation {
            PatchOperation::Copy(CopyOperation { from, path })
            | PatchOperation::Move(MoveOperation { from, path }) => {
                let value = from.resolve(&changed).map_err(|_error| PatchError::Misfit)?;
                added_at(path, value)?
            }
            other => added(other)?,
        };
        // What a move takes away is not counted: it is there while it is moved.
        if truncate::exact(&changed).saturating_add(source) > MAX_LEN {
            return Err(PatchError::TooLarge);
        }
        let step = json_patch::Patch(vec![operation]);
        json_patch::patch(&mut changed, &step).map_err(|_error| PatchError::Misfit)?;
    }
    *target = changed;
    Ok(())
}

/// How much longer the operation makes a document at most.
fn added(operation: &PatchOperation) -> Result<usize, PatchError> {
    match operation {
        PatchOperation::Add(AddOperation { path, value })
        | PatchOperation::Replace(ReplaceOperation { path, value }) => added_at(path, value),
        _ => Ok(0),
    }
}

fn added_at(path: &Pointer, value: &Value) -> Result<usize, PatchError> {
    let depth = MAX_DEPTH.checked_sub(path.count());
    if !depth.is_some_and(|depth| fits(value, depth)) {
        return Err(PatchError::TooLarge);
    }
    Ok(path.len() + truncate::exact(value))
}

/// Whether the value nests no deeper than `depth`.
fn fits(value: &Value, depth: usize) -> bool {
    let Some(inner) = depth.checked_sub(1) else { return !value.is_object() && !value.is_array() };
    match value {
        Value::Array(items) => items.iter().all(|item| fits(item, inner)),
        Value::Object(members) => members.values().all(|member| fits(member, inner)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patched(target: Value, operations: &Value) -> (Value, Result<(), PatchError>) {
        let mut changed = target;
        let done = apply_patch(&mut changed, operations);
        (changed, done)
    }

    #[test]
    fn a_document_does_not_double_beyond_its_bound() {
        let copy = |n: usize| json!({"op": "copy", "from": "", "path": format!("/a{n}")});
        let start = json!({"x": "y".repeat(1000)});
        let few: Value = (0..3).map(copy).collect();
        let (grown, done) = patched(start.clone(), &few);
        assert_eq!((done, truncate::exact(&grown)), (Ok(()), 8106));
        let many: Value = (0..40).map(copy).collect();
        assert_eq!(patched(start.clone(), &many), (start, Err(PatchError::TooLarge)));
    }

    #[test]
    fn a_document_does_not_nest_deeper_than_a_parser_takes_it() {
        let wrap = [
            json!({"op": "add", "path": "/t", "value": {}}),
            json!({"op": "move", "from": "/a", "path": "/t/a"}),
            json!({"op": "move", "from": "/t", "path": "/a"}),
        ];
        let start = json!({"a": 1});
        let wrapped = |times: usize| {
            patched(start.clone(), &wrap.iter().cycle().take(3 * times).cloned().collect())
        };
        let (deep, done) = wrapped(98);
        assert_eq!(done, Ok(()));
        assert!(serde_json::from_str::<Value>(&deep.to_string()).is_ok());
        assert_eq!(wrapped(1000), (start.clone(), Err(PatchError::TooLarge)));

        let path = |n: usize| "/a".repeat(n);
        let nest: Value =
            (1..200).map(|n| json!({"op": "add", "path": path(n), "value": {}})).collect();
        assert_eq!(patched(start.clone(), &nest), (start, Err(PatchError::TooLarge)));
    }

    #[test]
    fn a_long_value_is_left_out() {
        let long = json!([{"op": "add", "path": "/b", "value": "x".repeat(MAX_LEN)}]);
        let start = json!({"a": 1});
        assert_eq!(patched(start.clone(), &long), (start, Err(PatchError::TooLarge)));
    }

    #[test]
    fn steps_that_fail_change_nothing() {
        let start = json!({"a": 1});
        let steps = json!([
            {"op": "copy", "from": "/a", "path": "/b"},
            {"op": "move", "from": "/nowhere", "path": "/c"},
        ]);
        assert_eq!(patched(start.clone(), &steps), (start, Err(PatchError::Misfit)));
        let steps = json!([
            {"op": "copy", "from": "/a", "path": "/b"},
            {"op": "test", "path": "/b", "value": 1},
            {"op": "move", "from": "/b", "path": "/a"},
        ]);
        assert_eq!(patched(json!({"a": 1}), &steps), (json!({"a": 1}), Ok(())));
    }
}
