//! JSON lines as agent events: events of either wire, and directives such as
//! `{"@": "state", "set": {}}`.
//!
//! What each directive may hold, and the agent event that `state`, `activity`, `ask`, `park` and
//! `keep` stand for. Shared by all agents that read lines; how a script is played is not said here.

use agui_adapter::model::{
    AgentEvent, AgentEventKind,
    event::{ActivityChange, Object, StateChange},
    wire::{self, DecodeOptions},
};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// One directive as it is written.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "@", rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum Directive {
    Sleep {
        ms: u64,
    },
    Fail {
        message: String,
    },
    Panic {},
    End {},
    State {
        #[serde(default, deserialize_with = "given")]
        set: Option<Value>,
        #[serde(default, deserialize_with = "given")]
        patch: Option<Value>,
    },
    Activity {
        id: String,
        #[serde(rename = "type")]
        activity_type: String,
        #[serde(default)]
        content: Option<Object>,
        #[serde(default, deserialize_with = "given")]
        patch: Option<Value>,
    },
    Ask {
        id: String,
        message: String,
        #[serde(default)]
        schema: Option<Object>,
    },
    Park {
        state: Value,
    },
    Keep {
        state: Value,
    },
    Repeat {
        times: u64,
        line: Value,
    },
    Hang {},
}

/// A line as an agent event.
pub(super) fn decode(line: Value, options: DecodeOptions) -> Result<AgentEvent, String> {
    if line.get("@").is_none() {
        return wire::decode_value(line, options).map_err(|error| error.to_string());
    }
    let event = Directive::parse(line)?.into_event();
    event.unwrap_or_else(|| Err("this directive sends no event".to_owned()))
}

/// Keeps a `null` that is written apart from a member that is not there.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Directive {
    pub(super) fn parse(line: Value) -> Result<Self, String> {
        Self::deserialize(line).map_err(|error| error.to_string())
    }

    /// The agent event that the directive stands for, if it stands for one.
    pub(super) fn into_event(self) -> Option<Result<AgentEvent, String>> {
        let kind = match self {
            Self::State { set, patch } => {
                state_change(set, patch).map(|change| AgentEventKind::State { change })
            }
            Self::Activity { id, activity_type, content, patch } => activity_change(content, patch)
                .map(|change| AgentEventKind::Activity { id, activity_type, change }),
            Self::Ask { id, message, schema } => {
                Ok(AgentEventKind::Question { id, message, schema })
            }
            Self::Park { state } => Ok(AgentEventKind::Park { state: state.into() }),
            Self::Keep { state } => Ok(AgentEventKind::Keep { state: state.into() }),
            Self::Sleep { .. }
            | Self::Fail { .. }
            | Self::Panic {}
            | Self::End {}
            | Self::Repeat { .. }
            | Self::Hang {} => return None,
        };
        Some(kind.map(AgentEvent::local))
    }
}

fn state_change(set: Option<Value>, patch: Option<Value>) -> Result<StateChange, String> {
    match (set, patch) {
        (Some(state), None) => Ok(StateChange::Set(state)),
        (None, Some(patch)) => checked_patch(patch).map(StateChange::Patch),
        _ => Err("a state line has exactly one of `set` and `patch`".to_owned()),
    }
}

fn activity_change(
    content: Option<Object>,
    patch: Option<Value>,
) -> Result<ActivityChange, String> {
    match (content, patch) {
        (Some(content), None) => Ok(ActivityChange::Content(content)),
        (None, Some(patch)) => checked_patch(patch).map(ActivityChange::Patch),
        _ => Err("an activity line has exactly one of `content` and `patch`".to_owned()),
    }
}

fn checked_patch(patch: Value) -> Result<Value, String> {
    match json_patch::Patch::deserialize(&patch) {
        Ok(_) => Ok(patch),
        Err(error) => Err(format!("`patch` is no list of JSON Patch operations: {error}")),
    }
}
