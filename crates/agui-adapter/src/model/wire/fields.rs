//! Takes members out of a JSON object under either spelling. Knows no event.

use serde_json::Value;

use super::WireError;
use crate::model::event::{AgentEventType, Object, Origin};
use crate::model::value::MAX_COUNT;

/// One member's name in both spellings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    camel: &'static str,
    snake: &'static str,
}

impl Key {
    pub(super) const fn new(camel: &'static str, snake: &'static str) -> Self {
        Self { camel, snake }
    }

    /// A name that both wires spell alike.
    pub(super) const fn same(name: &'static str) -> Self {
        Self { camel: name, snake: name }
    }
}

/// The members of one event, taken out one by one without copying.
pub(super) struct Fields {
    map: Object,
    origin: Origin,
    event: AgentEventType,
}

impl Fields {
    pub(super) fn new(map: Object, origin: Origin, event: AgentEventType) -> Self {
        Self { map, origin, event }
    }

    pub(super) fn is_python(&self) -> bool {
        self.origin == Origin::Python
    }

    pub(super) fn missing(&self, key: Key) -> WireError {
        WireError::Missing { event: self.event.as_str(), field: self.spelling(key) }
    }

    pub(super) fn invalid(&self, key: Key) -> WireError {
        WireError::Invalid { event: self.event.as_str(), field: self.spelling(key) }
    }

    fn spelling(&self, key: Key) -> &'static str {
        if self.is_python() { key.snake } else { key.camel }
    }

    /// Any value; null counts as absent.
    pub(super) fn value(&mut self, key: Key) -> Option<Value> {
        if self.is_python() {
            take(&mut self.map, key.snake, key.camel)
        } else {
            take(&mut self.map, key.camel, key.snake)
        }
    }

    /// A text; another type counts as absent.
    pub(super) fn text(&mut self, key: Key) -> Option<String> {
        text_of(self.value(key)?)
    }

    /// A text without which the event means nothing.
    pub(super) fn required_text(&mut self, key: Key) -> Result<String, WireError> {
        match self.value(key) {
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err(self.invalid(key)),
            None => Err(self.missing(key)),
        }
    }

    /// An id or a name; empty when the wire gave none.
    pub(super) fn id(&mut self, key: Key) -> String {
        self.optional_id(key).unwrap_or_default()
    }

    /// An id, numbers included.
    pub(super) fn optional_id(&mut self, key: Key) -> Option<String> {
        match self.value(key)? {
            Value::String(id) => Some(id),
            Value::Number(id) => Some(id.to_string()),
            _ => None,
        }
    }

    /// An object; another type counts as absent.
    pub(super) fn object(&mut self, key: Key) -> Option<Object> {
        object_of(self.value(key)?)
    }

    /// A list without which the event means nothing.
    pub(super) fn required_list(&mut self, key: Key) -> Result<Vec<Value>, WireError> {
        match self.value(key) {
            Some(Value::Array(items)) => Ok(items),
            Some(_) => Err(self.invalid(key)),
            None => Err(self.missing(key)),
        }
    }

    /// A count; anything that is not a natural number counts as absent.
    pub(super) fn count(&mut self, key: Key) -> Option<u64> {
        count_of(&self.value(key)?)
    }
}

/// Takes a member under its first spelling, else under its second; null counts as absent.
pub(super) fn take(map: &mut Object, first: &str, second: &str) -> Option<Value> {
    // `swap_remove` does not shift the members behind; their order is of no use any more.
    match map.swap_remove(first) {
        Some(value) if !value.is_null() => Some(value),
        _ if first == second => None,
        _ => map.swap_remove(second).filter(|value| !value.is_null()),
    }
}

/// The text, if it is one.
pub(super) fn text_of(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// The object, if it is one.
pub(super) fn object_of(value: Value) -> Option<Object> {
    match value {
        Value::Object(map) => Some(map),
        _ => None,
    }
}

/// The count, if it is a natural number within what JSON carries safely.
pub(super) fn count_of(value: &Value) -> Option<u64> {
    value.as_u64().filter(|count| *count <= MAX_COUNT)
}
