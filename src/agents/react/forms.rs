//! Messages as they are parked.

use agui_adapter::model::{
    Block, Msg, Role,
    event::{Call, Object, ResultState},
    msg::{MediaKind, MediaSource},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Serialize, Deserialize)]
pub(super) struct MsgForm {
    id: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    name: String,
    role: RoleForm,
    content: Vec<BlockForm>,
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    metadata: Object,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RoleForm {
    System,
    User,
    Assistant,
    Tool,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum BlockForm {
    Text {
        text: String,
    },
    Thinking {
        thinking: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        encrypted: Option<String>,
    },
    Media {
        kind: KindForm,
        source: SourceForm,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Value>,
    },
    ToolUse {
        id: String,
        name: String,
        arguments: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        encrypted: Option<String>,
    },
    ToolResult {
        id: String,
        name: String,
        output: Vec<BlockForm>,
        state: StateForm,
        #[serde(default, skip_serializing_if = "Object::is_empty")]
        metadata: Object,
    },
    Hint {
        text: String,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum KindForm {
    Image,
    Audio,
    Video,
    Document,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SourceForm {
    Base64 { media_type: String, data: String },
    Url { media_type: Option<String>, url: String },
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StateForm {
    Success,
    Error,
    Interrupted,
    Denied,
    Running,
}

impl From<&Msg> for MsgForm {
    fn from(msg: &Msg) -> Self {
        let role = match msg.role {
            Role::System => RoleForm::System,
            Role::User => RoleForm::User,
            Role::Assistant => RoleForm::Assistant,
            Role::Tool => RoleForm::Tool,
        };
        Self {
            id: msg.id.clone(),
            name: msg.name.clone(),
            role,
            content: forms(&msg.content),
            metadata: msg.metadata.clone(),
        }
    }
}

impl From<MsgForm> for Msg {
    fn from(form: MsgForm) -> Self {
        let role = match form.role {
            RoleForm::System => Role::System,
            RoleForm::User => Role::User,
            RoleForm::Assistant => Role::Assistant,
            RoleForm::Tool => Role::Tool,
        };
        let MsgForm { id, name, content, metadata, .. } = form;
        Self { id, name, role, content: blocks(content), metadata }
    }
}

/// Blocks as they are parked.
pub(super) fn forms(blocks: &[Block]) -> Vec<BlockForm> {
    blocks.iter().map(BlockForm::from).collect()
}

/// Blocks as they were.
pub(super) fn blocks(forms: Vec<BlockForm>) -> Vec<Block> {
    forms.into_iter().map(Block::from).collect()
}

impl From<&Block> for BlockForm {
    fn from(block: &Block) -> Self {
        match block.clone() {
            Block::Text { text } => Self::Text { text },
            Block::Thinking { thinking, encrypted } => Self::Thinking { thinking, encrypted },
            Block::Media { kind, source, name, metadata } => {
                Self::Media { kind: kind.into(), source: source.into(), name, metadata }
            }
            Block::ToolUse { call, encrypted } => {
                let Call { id, name, arguments, .. } = call;
                Self::ToolUse { id, name, arguments, encrypted }
            }
            Block::ToolResult { call_id, name, output, state, metadata } => Self::ToolResult {
                id: call_id,
                name,
                output: forms(&output),
                state: state.into(),
                metadata,
            },
            Block::Hint { text } => Self::Hint { text },
        }
    }
}

impl From<BlockForm> for Block {
    fn from(form: BlockForm) -> Self {
        match form {
            BlockForm::Text { text } => Self::Text { text },
            BlockForm::Thinking { thinking, encrypted } => Self::Thinking { thinking, encrypted },
            BlockForm::Media { kind, source, name, metadata } => {
                Self::Media { kind: kind.into(), source: source.into(), name, metadata }
            }
            BlockForm::ToolUse { id, name, arguments, encrypted } => {
                let input = serde_json::from_str(&arguments).ok();
                let call = Call { id, name, arguments, input, suggested_rules: Vec::new() };
                Self::ToolUse { call, encrypted }
            }
            BlockForm::ToolResult { id, name, output, state, metadata } => Self::ToolResult {
                call_id: id,
                name,
                output: blocks(output),
                state: state.into(),
                metadata,
            },
            BlockForm::Hint { text } => Self::Hint { text },
        }
    }
}

impl From<MediaKind> for KindForm {
    fn from(kind: MediaKind) -> Self {
        match kind {
            MediaKind::Image => Self::Image,
            MediaKind::Audio => Self::Audio,
            MediaKind::Video => Self::Video,
            MediaKind::Document => Self::Document,
        }
    }
}

impl From<KindForm> for MediaKind {
    fn from(form: KindForm) -> Self {
        match form {
            KindForm::Image => Self::Image,
            KindForm::Audio => Self::Audio,
            KindForm::Video => Self::Video,
            KindForm::Document => Self::Document,
        }
    }
}

impl From<MediaSource> for SourceForm {
    fn from(source: MediaSource) -> Self {
        match source {
            MediaSource::Base64 { media_type, data } => Self::Base64 { media_type, data },
            MediaSource::Url { media_type, url } => Self::Url { media_type, url },
        }
    }
}

impl From<SourceForm> for MediaSource {
    fn from(form: SourceForm) -> Self {
        match form {
            SourceForm::Base64 { media_type, data } => Self::Base64 { media_type, data },
            SourceForm::Url { media_type, url } => Self::Url { media_type, url },
        }
    }
}

impl From<ResultState> for StateForm {
    fn from(state: ResultState) -> Self {
        match state {
            ResultState::Success => Self::Success,
            ResultState::Error => Self::Error,
            ResultState::Interrupted => Self::Interrupted,
            ResultState::Denied => Self::Denied,
            ResultState::Running => Self::Running,
        }
    }
}

impl From<StateForm> for ResultState {
    fn from(form: StateForm) -> Self {
        match form {
            StateForm::Success => Self::Success,
            StateForm::Error => Self::Error,
            StateForm::Interrupted => Self::Interrupted,
            StateForm::Denied => Self::Denied,
            StateForm::Running => Self::Running,
        }
    }
}
