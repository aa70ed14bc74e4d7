//! Reads both wire forms of agent events into the one model, and writes messages for the Python
//! one.
//!
//! AgentScope Java writes camelCase and `type` twice, AgentScope Python snake_case. Both spellings
//! are read everywhere, aliases of types too, and types nobody knows become
//! [`AgentEventKind::Unknown`]. Times are not read at all, so no form of them can be refused.
//! Errors name the event and the field, never what stood in it. Nothing here keeps state between
//! events.

mod blocks;
mod custom;
mod events;
mod fields;
mod python;

use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;

pub(crate) use blocks::parse_object;
pub use blocks::{decode_block, decode_call, decode_msg};
pub use custom::read_reserved;
pub use python::python_msgs;

use self::fields::{Fields, Key};
use super::event::{AgentEvent, AgentEventKind, AgentEventType, Object, Origin};

/// How to decode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecodeOptions {
    /// Keep every event as it stood on the wire. Costs a copy of the event; types that go out as
    /// RAW keep it in any case.
    pub keep_raw: bool,
}

/// Why a line is not an agent event.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WireError {
    /// Not JSON.
    #[error("agent event is not JSON (column {column})")]
    NotJson {
        /// Where the parser gave up.
        column: usize,
    },
    /// JSON, but not an object.
    #[error("agent event is not a JSON object")]
    NotAnObject,
    /// No `type`, or one that is not a string.
    #[error("agent event has no `type`")]
    NoType,
    /// A field without which the event means nothing is absent or null.
    #[error("agent event {event} lacks `{field}`")]
    Missing {
        /// Canonical name of the event's type.
        event: &'static str,
        /// The field, spelled as the event's wire spells it.
        field: &'static str,
    },
    /// A field has a value that cannot be read.
    #[error("agent event {event} has an unreadable `{field}`")]
    Invalid {
        /// Canonical name of the event's type.
        event: &'static str,
        /// The field, spelled as the event's wire spells it.
        field: &'static str,
    },
}

/// Decodes one event from its JSON text.
///
/// # Errors
///
/// When the text is not a JSON object with a `type`, or lacks a field that the type needs.
pub fn decode(line: &str, options: DecodeOptions) -> Result<AgentEvent, WireError> {
    // Into a Value first: a typed parser refuses the doubled `type` of the Java wire.
    let value = serde_json::from_str(line)
        .map_err(|error| WireError::NotJson { column: error.column() })?;
    decode_value(value, options)
}

/// Decodes one event from parsed JSON.
///
/// # Errors
///
/// As [`decode`].
pub fn decode_value(value: Value, options: DecodeOptions) -> Result<AgentEvent, WireError> {
    let Value::Object(map) = value else { return Err(WireError::NotAnObject) };
    let Some(Value::String(type_name)) = map.get("type") else { return Err(WireError::NoType) };
    let known = events::known_type(type_name);
    let origin = origin_of(&map, type_name);
    let Some(event_type) = known else { return Ok(unknown(map, origin)) };
    let goes_out_raw = event_type == AgentEventType::SubagentExposed;
    let raw = (options.keep_raw || goes_out_raw).then(|| Arc::new(Value::Object(map.clone())));
    let mut fields = Fields::new(map, origin, event_type);
    // On the Python wire `source` of a hint is its label, not a path.
    let source = if event_type == AgentEventType::HintBlock && origin == Origin::Python {
        None
    } else {
        fields.text(Key::same("source")).filter(|path| !path.is_empty()).map(Arc::from)
    };
    let metadata = fields.object(Key::same("metadata")).unwrap_or_default();
    let kind = events::read(event_type, &mut fields)?;
    Ok(AgentEvent { origin, source, metadata, kind, raw })
}

fn unknown(map: Object, origin: Origin) -> AgentEvent {
    let text = |key: &str| map.get(key).and_then(Value::as_str).map(str::to_owned);
    let type_name = text("type").unwrap_or_default();
    let source = text("source").filter(|path| !path.is_empty()).map(Arc::from);
    let metadata = map.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    let kind = AgentEventKind::Unknown { type_name };
    AgentEvent { origin, source, metadata, kind, raw: Some(Arc::new(Value::Object(map))) }
}

/// The wire that an event came from: the spelling of the members that both wires always write
/// decides, then the type, then the spelling of any member.
fn origin_of(map: &Object, type_name: &str) -> Origin {
    if map.contains_key("created_at") || map.contains_key("reply_id") {
        return Origin::Python;
    }
    if map.contains_key("createdAt") || map.contains_key("replyId") {
        return Origin::Java;
    }
    if type_name.starts_with("REPLY_") {
        return Origin::Python;
    }
    if map.keys().any(|key| key.contains('_')) { Origin::Python } else { Origin::Java }
}

#[cfg(test)]
mod tests;
