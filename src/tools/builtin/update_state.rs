//! The thread's shared state, changed by the model.

use std::sync::Arc;

use agui_adapter::model::event::{Object, StateChange};
use serde_json::{Value, json};

use super::{result, said, spec};
use crate::{
    config::react::Builtin,
    tools::{Tool, ToolCall, ToolEvent, ToolSpec, ToolStream},
};

/// How many changes one call may make: each of them walks the state.
const MAX_CHANGES: usize = 200;

/// How many characters of a new value the result repeats.
const SHOWN: usize = 200;

/// Sets and removes values by JSON Pointer. What a value stands in comes about with it, so that a
/// model need not know RFC 6902: it says how the state shall be, not which operations lead there.
pub(super) struct UpdateState {
    spec: ToolSpec,
}

impl Default for UpdateState {
    fn default() -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {
                "set": {
                    "type": "array",
                    "description": "Values to set, in this order.",
                    "items": {
                        "type": "object",
                        "properties": {
                            "path": {
                                "type": "string",
                                "description": "Where: a JSON Pointer such as /customer/name, /items/0, \
                                                /items/- (behind the last item), or an empty text \
                                                for the whole state.",
                            },
                            "value": {"description": "Any JSON value."},
                        },
                        "required": ["path", "value"],
                    },
                },
                "remove": {
                    "type": "array",
                    "description": "JSON Pointers of values to remove, after those were set.",
                    "items": {"type": "string"},
                },
            },
        });
        let description = "Changes the state that is shared with the user interface.";
        Self { spec: spec(Builtin::UpdateState, description, parameters, false) }
    }
}

impl Tool for UpdateState {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, call: ToolCall) -> ToolStream {
        let mut draft = Draft { state: Arc::clone(&call.state), operations: Vec::new() };
        said(match draft.take(&call.arguments) {
            Ok(told) => {
                let change = StateChange::Patch(Value::Array(draft.operations));
                vec![ToolEvent::State(change), result(Ok(told))]
            }
            Err(fault) => vec![result(Err(format!("The state is as it was: {fault}")))],
        })
    }
}

/// The state as it is going to be, and what takes the old one there.
struct Draft {
    state: Arc<Value>,
    operations: Vec<Value>,
}

impl Draft {
    /// Makes all changes; tells what the new values are.
    fn take(&mut self, arguments: &Object) -> Result<String, String> {
        let list = |key: &str| {
            arguments.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
        };
        let (set, remove) = (list("set"), list("remove"));
        if set.is_empty() && remove.is_empty() {
            return Err("there is nothing to set or to remove".to_owned());
        }
        if set.len() + remove.len() > MAX_CHANGES {
            return Err(format!("more than {MAX_CHANGES} changes at once are not supported"));
        }
        let mut told = Vec::new();
        for entry in set {
            let path = entry.get("path").and_then(Value::as_str).unwrap_or_default();
            let value = entry.get("value").unwrap_or(&Value::Null);
            self.set(path, value)?;
            told.push(format!("{} is now {}", place(path), clipped(value)));
        }
        for path in remove.iter().filter_map(Value::as_str) {
            self.apply(path, json!({"op": "remove", "path": path}))?;
            told.push(format!("{} is removed", place(path)));
        }
        Ok(format!("Done: {}.", told.join("; ")))
    }

    fn set(&mut self, path: &str, value: &Value) -> Result<(), String> {
        if !path.is_empty() && !path.starts_with('/') {
            return Err(format!("{path} is no JSON Pointer: it must begin with /"));
        }
        for (end, _) in path.match_indices('/') {
            let parent = path.get(..end).unwrap_or_default();
            if matches!(self.state.pointer(parent), None | Some(Value::Null)) {
                self.put(parent, &json!({}))?;
            }
        }
        self.put(path, value)
    }

    fn put(&mut self, path: &str, value: &Value) -> Result<(), String> {
        // `add` would put it in front of an item that is there.
        let op = if self.state.pointer(path).is_some() { "replace" } else { "add" };
        self.apply(path, json!({"op": op, "path": path, "value": value}))
    }

    fn apply(&mut self, path: &str, operation: Value) -> Result<(), String> {
        let change = StateChange::Patch(json!([operation]));
        change.apply(&mut self.state).map_err(|_| format!("{} cannot be changed", place(path)))?;
        self.operations.push(operation);
        Ok(())
    }
}

fn place(path: &str) -> &str {
    if path.is_empty() { "the whole state" } else { path }
}

fn clipped(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        None => text,
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}
