//! What the agent keeps on the thread: the tools that a person allowed, what its sub-agents keep,
//! by their ids, and a reply that only waits for the client's tools: clients are not shown all that
//! the model must be told again.

use std::{collections::BTreeMap, sync::Arc};

use agui_adapter::model::AgentEventKind;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What is kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Kept {
    /// As the permissions keep it.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub(super) permissions: Value,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) children: BTreeMap<String, Arc<Value>>,
    /// As it would be parked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pending: Option<Value>,
}

impl Kept {
    /// Reads what was kept; what cannot be read is not there.
    pub(super) fn read(value: Option<&Value>) -> Self {
        value.and_then(|value| Self::deserialize(value).ok()).unwrap_or_default()
    }

    /// The event that keeps it.
    pub(super) fn event(&self) -> AgentEventKind {
        if *self == Self::default() {
            return AgentEventKind::Keep { state: Arc::new(Value::Null) };
        }
        // Every form of it can be written.
        AgentEventKind::Keep { state: Arc::new(serde_json::to_value(self).unwrap_or_default()) }
    }
}
