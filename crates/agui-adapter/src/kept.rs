//! What AG-UI knows of a message and AgentScope has no place for.
//!
//! It travels in the AgentScope message's metadata under [`AGUI_KEY`], so that a message comes
//! back to clients as they sent it. Written by `inbound`, read by `messages_out`; agents leave it
//! alone.

use agui_protocol::ContentPart;
use agui_protocol::SubagentRunId;
use agui_protocol::message::MessageBase;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::Msg;
use crate::model::event::Object;

/// The key in an AgentScope message's metadata.
pub const AGUI_KEY: &str = "agui";

/// The value under [`AGUI_KEY`]; members at their defaults are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Kept {
    /// The message had role `developer`, which AgentScope takes as `system`.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) developer: bool,
    /// The message's name was the empty string, which AgentScope takes as none.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) empty_name: bool,
    /// The message's content was empty but there.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) empty_content: bool,
    /// A tool message's error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// The content was a list of these parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parts: Option<Vec<KeptPart>>,
    /// The metadata of the tool calls, in their order; empty when none has any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) call_metadata: Vec<Option<Object>>,
    /// Encrypted value, owner and metadata of the message.
    #[serde(flatten)]
    pub(crate) base: MessageBase,
}

/// What is kept of one content part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct KeptPart {
    /// The whole part, when no block was made of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) whole: Option<ContentPart>,
    /// The part's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    /// The metadata of a text part; a media block has its own place for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<Value>,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl Kept {
    /// Reads what a message keeps; everything at its default when it keeps nothing.
    pub(crate) fn of(msg: &Msg) -> Self {
        msg.metadata
            .get(AGUI_KEY)
            .and_then(|value| Self::deserialize(value).ok())
            .unwrap_or_default()
    }

    /// As metadata of an AgentScope message; empty when there is nothing to keep.
    pub(crate) fn into_metadata(self) -> Object {
        match serde_json::to_value(self) {
            Ok(Value::Object(kept)) if !kept.is_empty() => {
                Object::from_iter([(AGUI_KEY.to_owned(), Value::Object(kept))])
            }
            _ => Object::new(),
        }
    }
}

/// The sub-agent that owns a message which came from a client; `None` = the root agent.
pub fn owner(msg: &Msg) -> Option<SubagentRunId> {
    let owner = msg.metadata.get(AGUI_KEY)?.get("subagentRunId")?.as_str()?;
    Some(SubagentRunId::from(owner))
}
