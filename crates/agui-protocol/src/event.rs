//! The events of AG-UI 1.0: a [`Body`] with exactly the members of the specification, plus the
//! base members that every event may have. Whether an event may name a sub-agent is part of its
//! body, so that a `RUN_STARTED` with a `subagentRunId` cannot be written down.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Content, Message, MessageId, Object, PatchOperation, RunAgentInput, RunId, RunOutcome,
    SubagentOutcome, SubagentRunId, ThreadId, TokenUsage, ToolCallId,
};

/// One event of a run, as it stands in one SSE frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Type and own members.
    #[serde(flatten)]
    pub body: Body,
    /// Milliseconds since the Unix epoch; no ordering meaning (META-5).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<i64>,
    /// The provider's own event; any JSON but a whole `null` (META-4).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_event: Option<Value>,
    /// Open by key; the key `ag-ui` is reserved (META-1, META-2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
}

impl Event {
    /// An event without base members.
    pub fn new(body: Body) -> Self {
        Self { body, timestamp: None, raw_event: None, metadata: None }
    }

    /// Adds one metadata entry; the last write to a key wins (META-3).
    #[must_use]
    pub fn with_metadata(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.metadata.get_or_insert_default().insert(key.to_owned(), value.into());
        self
    }

    /// Sets the time, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn with_timestamp(mut self, milliseconds: i64) -> Self {
        self.timestamp = Some(milliseconds);
        self
    }

    /// The event's type.
    pub fn event_type(&self) -> EventType {
        self.body.event_type()
    }
}

impl From<Body> for Event {
    fn from(body: Body) -> Self {
        Self::new(body)
    }
}

/// Role of a streamed text message (TXT-3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TextRole {
    /// The application's developer.
    Developer,
    /// System.
    System,
    /// The agent; also what an absent role means.
    Assistant,
    /// The person.
    User,
}

/// The one role of a streamed reasoning message (REAS-4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReasoningRole {
    /// Reasoning.
    #[default]
    Reasoning,
}

/// The one role of a tool result (TOOL-9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolRole {
    /// Tool.
    #[default]
    Tool,
}

/// What an encrypted value belongs to (REAS-8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EncryptedSubtype {
    /// A tool call.
    ToolCall,
    /// A message.
    Message,
}

macro_rules! events {
    ($(
        $(#[$doc:meta])*
        $variant:ident $wire:literal {
            $($(#[$fdoc:meta])* $field:ident : $ty:ty,)*
        }
    )*) => {
        /// Type and own members of an event.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "type", rename_all_fields = "camelCase")]
        pub enum Body {
            $(
                $(#[$doc])*
                #[serde(rename = $wire)]
                $variant { $($(#[$fdoc])* $field: $ty,)* },
            )*
        }

        /// The types of events that AG-UI 1.0 knows.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum EventType {
            $($(#[$doc])* #[serde(rename = $wire)] $variant,)*
        }

        impl EventType {
            /// Every type, in the order of the specification.
            pub const ALL: &[EventType] = &[$(EventType::$variant,)*];

            /// The name as it stands on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $wire,)* }
            }
        }

        impl Body {
            /// The event's type.
            pub fn event_type(&self) -> EventType {
                match self { $(Self::$variant { .. } => EventType::$variant,)* }
            }
        }
    };
}

events! {
    /// First event of a run (LIFE-1).
    RunStarted "RUN_STARTED" {
        /// The input's thread.
        thread_id: ThreadId,
        /// The input's run.
        run_id: RunId,
        /// The producer's protocol version, never an echo (VER-1).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        protocol_version: Option<String>,
        /// The run that spawned this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_run_id: Option<RunId>,
        /// Echo of the input (IN-22).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Box<RunAgentInput>>,
    }
    /// The run's end without a failure (LIFE-2).
    RunFinished "RUN_FINISHED" {
        /// The input's thread.
        thread_id: ThreadId,
        /// The input's run.
        run_id: RunId,
        /// Any JSON but `null`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        /// Absent = success.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<RunOutcome>,
        /// Tokens of the run's own model calls.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        usage: Vec<TokenUsage>,
    }
    /// The run's end by a failure; nothing follows it (LIFE-3).
    RunError "RUN_ERROR" {
        /// For people; no secrets (LIFE-23).
        message: String,
        /// Open, stable string.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
        /// Tokens spent before the failure.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        usage: Vec<TokenUsage>,
    }
    /// A step begins (LIFE-28).
    StepStarted "STEP_STARTED" {
        /// Unique among the open steps of its owner.
        step_name: String,
        /// Owner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<SubagentRunId>,
    }
    /// A step ends.
    StepFinished "STEP_FINISHED" {
        /// The step.
        step_name: String,
        /// Owner, the same as at the start.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<SubagentRunId>,
    }
    /// A text message begins (TXT-1).
    TextMessageStart "TEXT_MESSAGE_START" {
        /// Unique over the thread (TXT-5).
        message_id: MessageId,
        /// Absent = assistant.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<TextRole>,
        /// Name of the author.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Owner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<SubagentRunId>,
    }
    /// More text of an open message.
    TextMessageContent "TEXT_MESSAGE_CONTENT" {
        /// The message.
        message_id: MessageId,
        /// Concatenated byte for byte (SER-8).
        delta: String,
        /// Owner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<SubagentRunId>,
    }
    /// A text message ends.
    TextMessageEnd "TEXT_MESSAGE_END" {
        /// The message.
        message_id: MessageId,
        /// Owner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<SubagentRunId>,
    }
    /// Short form of a text message; never sent by this server (CHK-9).
    TextMessageChunk "TEXT_MESSAGE_CHUNK" {
        /// Required on the first chunk.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<MessageId>,
        /// Absent = assistant.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<TextRole>,
        /// More text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delta: Option<String>,
        /// Name of the author.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Owner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<SubagentRunId>,
    }
    /// A tool call begins (TOOL-1).
    ToolCallStart "TOOL_CALL_START" {
        /// Unique over the thread (TOOL-24).
        tool_call_id: ToolCallId,
        /// The tool.
        tool_call_name: String,
        /// The assistant message that carries the call (TOOL-4).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_message_id: Option<MessageId>,
        /// Owner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<SubagentRunId>,
    }
    /// More argument text of an open call (TOOL-2).
    ToolCallArgs "TOOL_CALL_ARGS" {
        /// The call.
        tool_call_id: ToolCallId,
        /// Text as the model wrote it.
        delta: String,
        /// Owner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<SubagentRunId>,
    }
    /// A call's arguments are complete.
    ToolCallEnd "TOOL_CALL_END" {
        /// The call.
        tool_call_id: ToolCallId,
        /// Owner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<SubagentRunId>,
    }
    /// Short form of a tool call; never sent by this server (CHK-9).
    ToolCallChunk "TOOL_CALL_CHUNK" {
        /// Required on the first chunk.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_call_id: Option<ToolCallId>,
        /// Required on the first chunk.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_call_name: Option<String>,
        /// The assistant message that carries the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_message_id: Option<MessageId>,
        /// More argument text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delta: Option<String>,
        /// Owner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<SubagentRunId>,
    }
    /// The answer to a call (TOOL-7, TOOL-8).
    ToolCallResult "TOOL_CALL_RESULT" {
        /// Id of the tool message that it becomes; fresh.
        message_id: MessageId,
        /// The call answered.
        tool_call_id: ToolCallId,
        /// Text or parts; `""` when the tool said nothing.
        content: Content,
        /// Absent = tool.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<ToolRole>,
        /// Owner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<SubagentRunId>,
    }
    /// The whole shared state (STATE-1).
    StateSnapshot "STATE_SNAPSHOT" {
        /// Any JSON, `null` included.
        snapshot: Value,
        /// Who changed it; provenance only (SUB-15).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<SubagentRunId>,
    }
    /// A change of the shared state (STATE-2).
    StateDelta "STATE_DELTA" {
        /// RFC 6902.
        delta: Vec<PatchOperation>,
        /// Who changed it; provenance only (SUB-15).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<SubagentRunId>,
    }
    /// The complete set of messages (SNAP-1).
    MessagesSnapshot "MESSAGES_SNAPSHOT" {
        /// What is missing here is deleted at the client.
        messages: Vec<Message>,
    }
    /// The whole content of an activity (ACT-1).
    ActivitySnapshot "ACTIVITY_SNAPSHOT" {
        /// The activity's message id.
        message_id: MessageId,
        /// What kind of element.
        activity_type: String,
        /// Its content.
        content: Object,
        /// Absent = true (ACT-5).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        replace: Option<bool>,
        /// Owner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<SubagentRunId>,
    }
    /// A change of an activity's content (ACT-2).
    ActivityDelta "ACTIVITY_DELTA" {
        /// The activity's message id.
        message_id: MessageId,
        /// Repeated, since it replaces the stored type (ACT-3).
        activity_type: String,
        /// RFC 6902.
        patch: Vec<PatchOperation>,
        /// Owner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<SubagentRunId>,
    }
    /// A stretch of thinking begins (REAS-1).
    ReasoningStart "REASONING_START" {
        /// Id of the span.
        message_id: MessageId,
        /// Owner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<SubagentRunId>,
    }
    /// A stretch of thinking ends.
    ReasoningEnd "REASONING_END" {
        /// Id of the span.
        message_id: MessageId,
        /// Owner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<SubagentRunId>,
    }
    /// A reasoning message begins (REAS-3).
    ReasoningMessageStart "REASONING_MESSAGE_START" {
        /// Differs from every text message's id (REAS-5).
        message_id: MessageId,
        /// Required and always `reasoning` (REAS-4).
        role: ReasoningRole,
        /// Owner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<SubagentRunId>,
    }
    /// More thinking.
    ReasoningMessageContent "REASONING_MESSAGE_CONTENT" {
        /// The message.
        message_id: MessageId,
        /// Concatenated byte for byte.
        delta: String,
        /// Owner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<SubagentRunId>,
    }
    /// A reasoning message ends.
    ReasoningMessageEnd "REASONING_MESSAGE_END" {
        /// The message.
        message_id: MessageId,
        /// Owner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<SubagentRunId>,
    }
    /// Short form of a reasoning message; never sent by this server (CHK-9).
    ReasoningMessageChunk "REASONING_MESSAGE_CHUNK" {
        /// Required on the first chunk.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<MessageId>,
        /// More thinking.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delta: Option<String>,
        /// Owner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<SubagentRunId>,
    }
    /// An opaque artefact of the provider (REAS-8).
    ReasoningEncryptedValue "REASONING_ENCRYPTED_VALUE" {
        /// What it belongs to.
        subtype: EncryptedSubtype,
        /// Id of the message or call.
        entity_id: String,
        /// Never interpreted, never logged.
        encrypted_value: String,
        /// Owner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<SubagentRunId>,
    }
    /// A sub-agent's invocation begins (SUB-3).
    SubagentStarted "SUBAGENT_STARTED" {
        /// One id per invocation (SUB-2).
        subagent_run_id: SubagentRunId,
        /// Name of the sub-agent.
        name: String,
        /// What it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// The invocation that spawned it; absent = the root agent (SUB-9).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_subagent_run_id: Option<SubagentRunId>,
        /// The delegating call (SUB-10).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_tool_call_id: Option<ToolCallId>,
        /// The message that carries the delegating call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_message_id: Option<MessageId>,
    }
    /// A sub-agent's invocation ends.
    SubagentFinished "SUBAGENT_FINISHED" {
        /// The invocation.
        subagent_run_id: SubagentRunId,
        /// Any JSON but `null`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        /// Absent = success.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<SubagentOutcome>,
    }
    /// A sub-agent's invocation fails; the run goes on (SUB-12).
    SubagentError "SUBAGENT_ERROR" {
        /// The invocation.
        subagent_run_id: SubagentRunId,
        /// For people.
        message: String,
        /// Open, stable string.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
    }
    /// Somebody else's event, passed through (PASS-1).
    Raw "RAW" {
        /// Any JSON, `null` included.
        event: Value,
        /// Where it came from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source: Option<String>,
        /// Owner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<SubagentRunId>,
    }
    /// An application's own event (PASS-2).
    Custom "CUSTOM" {
        /// Carries a vendor prefix (PASS-4).
        name: String,
        /// Any JSON, `null` included.
        value: Value,
        /// Owner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<SubagentRunId>,
    }
}
