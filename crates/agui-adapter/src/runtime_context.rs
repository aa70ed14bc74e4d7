//! Runtime context: what agents, tools and extensions are told of a run.

use std::{borrow::Cow, sync::Arc};

use agui_protocol::RunAgentInput;
use serde::Serialize;
use serde_json::Value;

use crate::model::event::Object;

/// Values that resolvers add, by key.
pub type ContextValues = Object;

/// The context of one run: the resolvers' values, and the protocol's own keys, which nobody can
/// override. The latter are made from the input when somebody asks, so that a run does not hold
/// its messages twice.
#[derive(Clone, Debug, Default)]
pub struct RuntimeContext {
    values: ContextValues,
    input: Option<Arc<RunAgentInput>>,
}

impl RuntimeContext {
    /// The keys of the protocol: the session, which is the thread, and every part of the input.
    pub const PROTOCOL_KEYS: [&'static str; 10] = [
        "sessionId",
        "agui.threadId",
        "agui.runId",
        "agui.messages",
        "agui.tools",
        "agui.context",
        "agui.state",
        "agui.forwardedProps",
        "agui.resume",
        "agui.input",
    ];

    /// Whether a key is the protocol's own; nobody else can set it.
    pub fn is_protocol_key(key: &str) -> bool {
        key == "sessionId" || key.starts_with("agui.")
    }

    /// The context of a run with this input.
    pub fn new(values: ContextValues, input: Arc<RunAgentInput>) -> Self {
        Self { values, input: Some(input) }
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<Cow<'_, Value>> {
        match self.input.as_deref().and_then(|input| protocol_value(input, key)) {
            Some(value) => Some(Cow::Owned(value)),
            None => self.values.get(key).map(Cow::Borrowed),
        }
    }

    /// What the resolvers added, without the protocol's own keys.
    pub fn resolved(&self) -> &ContextValues {
        &self.values
    }

    /// Every key with its value, the protocol's own last.
    pub fn to_values(&self) -> ContextValues {
        let mut values = self.values.clone();
        if let Some(input) = self.input.as_deref() {
            values.extend(
                Self::PROTOCOL_KEYS
                    .iter()
                    .filter_map(|key| Some(((*key).to_owned(), protocol_value(input, key)?))),
            );
        }
        values
    }
}

impl From<ContextValues> for RuntimeContext {
    /// A context without a run; it has the given values only.
    fn from(values: ContextValues) -> Self {
        Self { values, input: None }
    }
}

fn protocol_value(input: &RunAgentInput, key: &str) -> Option<Value> {
    Some(match key {
        "sessionId" | "agui.threadId" => input.thread_id.as_str().into(),
        "agui.runId" => input.run_id.as_str().into(),
        "agui.messages" => json(&input.messages),
        "agui.tools" => json(&input.tools),
        "agui.context" => json(&input.context),
        "agui.state" => input.state.as_deref().cloned().unwrap_or_default(),
        "agui.forwardedProps" => input.forwarded_props.clone().unwrap_or_default(),
        "agui.resume" => json(&input.resume),
        "agui.input" => json(input),
        _ => return None,
    })
}

fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}
