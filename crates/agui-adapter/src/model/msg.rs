//! AgentScope messages: what agents read as history and write as results.

use serde_json::Value;

use super::event::{Call, Object, ResultState};

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Instructions.
    System,
    /// The person.
    User,
    /// The agent.
    Assistant,
    /// A tool.
    Tool,
}

/// A message.
#[derive(Clone, Debug, PartialEq)]
pub struct Msg {
    /// Id; the AG-UI message id where the message came from a client.
    pub id: String,
    /// Name of the speaker, empty when there is none.
    pub name: String,
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: Vec<Block>,
    /// Open by key.
    pub metadata: Object,
}

impl Msg {
    /// The text blocks, joined with newlines (AgentScope's own rule).
    pub fn text_content(&self) -> String {
        let texts: Vec<&str> = self
            .content
            .iter()
            .filter_map(|block| match block {
                Block::Text { text } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        texts.join("\n")
    }
}

/// What kind of media a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MediaKind {
    /// Picture.
    Image,
    /// Sound.
    Audio,
    /// Moving pictures.
    Video,
    /// Anything else (AgentScope's `data` block).
    Document,
}

impl MediaKind {
    /// The kind that a media type belongs to.
    pub fn of(media_type: &str) -> Self {
        match media_type.split('/').next() {
            Some("image") => Self::Image,
            Some("audio") => Self::Audio,
            Some("video") => Self::Video,
            _ => Self::Document,
        }
    }
}

/// Where a media block's bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MediaSource {
    /// Inline.
    Base64 {
        /// Media type; empty when unknown.
        media_type: String,
        /// Base64.
        data: String,
    },
    /// At a URL.
    Url {
        /// Media type, if known.
        media_type: Option<String>,
        /// The URL.
        url: String,
    },
}

impl MediaSource {
    /// The media type, if it is known; an empty one is not.
    pub fn media_type(&self) -> Option<&str> {
        let media_type = match self {
            Self::Base64 { media_type, .. } => Some(media_type.as_str()),
            Self::Url { media_type, .. } => media_type.as_deref(),
        };
        media_type.filter(|media_type| !media_type.is_empty())
    }
}

/// One block of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// Thinking.
    Thinking {
        /// The thinking.
        thinking: String,
        /// The provider's opaque artefact, returned unmodified.
        encrypted: Option<String>,
    },
    /// Media.
    Media {
        /// What kind.
        kind: MediaKind,
        /// Where the bytes are.
        source: MediaSource,
        /// File name, if known.
        name: Option<String>,
        /// What AG-UI had beside the source, kept for the way back.
        metadata: Option<Value>,
    },
    /// A tool call.
    ToolUse {
        /// The call.
        call: Call,
        /// The provider's opaque artefact, returned unmodified.
        encrypted: Option<String>,
    },
    /// The answer to a tool call.
    ToolResult {
        /// The call answered.
        call_id: String,
        /// Name of the tool; empty when unknown.
        name: String,
        /// What the tool said.
        output: Vec<Block>,
        /// How it went.
        state: ResultState,
        /// Open by key.
        metadata: Object,
    },
    /// A hint to the model.
    Hint {
        /// The text.
        text: String,
    },
}
