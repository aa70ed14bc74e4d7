//! Messages and content parts. No conversion to AgentScope.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{MessageId, Object, SubagentRunId, ToolCallId};

/// Text, or a list of content parts (IN-13).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Content {
    /// Plain text.
    Text(String),
    /// Parts in order.
    Parts(Vec<ContentPart>),
}

impl Content {
    /// The text alone: the string, or the text parts concatenated without a separator.
    pub fn text_content(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Parts(parts) => parts.iter().filter_map(ContentPart::text).collect(),
        }
    }
}

/// One part of a message's content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum ContentPart {
    /// Text.
    Text {
        /// Id of the part.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The text.
        text: String,
        /// Any JSON but a whole `null`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Value>,
    },
    /// A picture.
    Image(MediaPart),
    /// Sound.
    Audio(MediaPart),
    /// Moving pictures.
    Video(MediaPart),
    /// Any other document.
    Document(MediaPart),
}

impl ContentPart {
    /// A text part without id and metadata.
    pub fn plain(text: impl Into<String>) -> Self {
        Self::Text { id: None, text: text.into(), metadata: None }
    }

    /// The text, if this is a text part.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Source and metadata, if this is a media part.
    pub fn media(&self) -> Option<&MediaPart> {
        match self {
            Self::Text { .. } => None,
            Self::Image(part) | Self::Audio(part) | Self::Video(part) | Self::Document(part) => {
                Some(part)
            }
        }
    }
}

/// What image, audio, video and document parts have in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MediaPart {
    /// Id of the part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Where the bytes are.
    pub source: PartSource,
    /// Any JSON but a whole `null`; what the part does not model, e.g. a file name (TOOL-12).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
}

/// Where a media part's bytes are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum PartSource {
    /// Inline, base64.
    Data {
        /// Base64.
        value: String,
        /// Required for inline data (TOOL-10).
        mime_type: String,
    },
    /// At a URL.
    Url {
        /// The URL.
        value: String,
        /// If known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
    },
    /// A provider's file handle; never fetched or interpreted here (IN-12).
    File {
        /// The handle.
        value: String,
        /// Whose handle it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider: Option<String>,
        /// If known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
    },
}

/// A tool call inside an assistant message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// Unique over the thread.
    pub id: ToolCallId,
    /// Always `function`.
    #[serde(rename = "type")]
    pub kind: ToolCallKind,
    /// What is called.
    pub function: FunctionCall,
    /// Opaque reasoning artefact of the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypted_value: Option<String>,
    /// Open by key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
}

/// The one kind of tool call that AG-UI 1.0 knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolCallKind {
    /// A function call.
    #[default]
    Function,
}

/// Name and argument text of a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionCall {
    /// The tool.
    pub name: String,
    /// The argument text as the model wrote it; normally JSON, never parsed here (TOOL-2).
    pub arguments: String,
}

/// What every message has besides its role's own members.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageBase {
    /// Opaque reasoning artefact of the provider (not on activity messages).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypted_value: Option<String>,
    /// The sub-agent that owns the message; absent for the root agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent_run_id: Option<SubagentRunId>,
    /// Open by key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
}

/// A message of the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum Message {
    /// From the person.
    User {
        /// Unique over the thread.
        id: MessageId,
        /// Name of the person.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// What was said.
        content: Content,
        /// Common members.
        #[serde(flatten)]
        base: MessageBase,
    },
    /// From the agent.
    Assistant {
        /// Unique over the thread.
        id: MessageId,
        /// Name of the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Absent when the message only carries calls; never `null` (SNAP-5).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<String>,
        /// The calls that it makes.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall>,
        /// Common members.
        #[serde(flatten)]
        base: MessageBase,
    },
    /// The answer to a tool call.
    Tool {
        /// Unique over the thread.
        id: MessageId,
        /// The call answered.
        tool_call_id: ToolCallId,
        /// Text or parts; `""` when the tool said nothing (TOOL-8).
        content: Content,
        /// Present when the tool failed (IN-16).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// Common members.
        #[serde(flatten)]
        base: MessageBase,
    },
    /// Instructions.
    System {
        /// Unique over the thread.
        id: MessageId,
        /// Name of the author.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// The instructions.
        content: String,
        /// Common members.
        #[serde(flatten)]
        base: MessageBase,
    },
    /// Instructions of the application's developer.
    Developer {
        /// Unique over the thread.
        id: MessageId,
        /// Name of the author.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// The instructions.
        content: String,
        /// Common members.
        #[serde(flatten)]
        base: MessageBase,
    },
    /// The model's thinking (IN-14).
    Reasoning {
        /// Unique over the thread.
        id: MessageId,
        /// The thinking.
        content: String,
        /// Common members.
        #[serde(flatten)]
        base: MessageBase,
    },
    /// A UI element that never reaches a model (IN-15).
    Activity {
        /// Unique over the thread.
        id: MessageId,
        /// What kind of element, e.g. `PLAN`.
        activity_type: String,
        /// Its content.
        content: Object,
        /// Common members.
        #[serde(flatten)]
        base: MessageBase,
    },
}

impl Message {
    /// The call that the message answers, if it is a tool message.
    pub fn answered_call(&self) -> Option<&ToolCallId> {
        match self {
            Self::Tool { tool_call_id, .. } => Some(tool_call_id),
            _ => None,
        }
    }

    /// The message's id.
    pub fn id(&self) -> &MessageId {
        match self {
            Self::User { id, .. }
            | Self::Assistant { id, .. }
            | Self::Tool { id, .. }
            | Self::System { id, .. }
            | Self::Developer { id, .. }
            | Self::Reasoning { id, .. }
            | Self::Activity { id, .. } => id,
        }
    }

    /// Gives the message another id.
    pub fn set_id(&mut self, new: MessageId) {
        match self {
            Self::User { id, .. }
            | Self::Assistant { id, .. }
            | Self::Tool { id, .. }
            | Self::System { id, .. }
            | Self::Developer { id, .. }
            | Self::Reasoning { id, .. }
            | Self::Activity { id, .. } => *id = new,
        }
    }

    /// The members that every message may have.
    pub fn base(&self) -> &MessageBase {
        match self {
            Self::User { base, .. }
            | Self::Assistant { base, .. }
            | Self::Tool { base, .. }
            | Self::System { base, .. }
            | Self::Developer { base, .. }
            | Self::Reasoning { base, .. }
            | Self::Activity { base, .. } => base,
        }
    }

    /// The same members, to be changed.
    pub fn base_mut(&mut self) -> &mut MessageBase {
        match self {
            Self::User { base, .. }
            | Self::Assistant { base, .. }
            | Self::Tool { base, .. }
            | Self::System { base, .. }
            | Self::Developer { base, .. }
            | Self::Reasoning { base, .. }
            | Self::Activity { base, .. } => base,
        }
    }

    /// The role as it stands on the wire.
    pub fn role(&self) -> &'static str {
        match self {
            Self::User { .. } => "user",
            Self::Assistant { .. } => "assistant",
            Self::Tool { .. } => "tool",
            Self::System { .. } => "system",
            Self::Developer { .. } => "developer",
            Self::Reasoning { .. } => "reasoning",
            Self::Activity { .. } => "activity",
        }
    }

    /// The message's text, for code that knows nothing but text; empty for activities.
    pub fn text_content(&self) -> String {
        match self {
            Self::User { content, .. } | Self::Tool { content, .. } => content.text_content(),
            Self::Assistant { content, .. } => content.clone().unwrap_or_default(),
            Self::System { content, .. }
            | Self::Developer { content, .. }
            | Self::Reasoning { content, .. } => content.clone(),
            Self::Activity { .. } => String::new(),
        }
    }
}
