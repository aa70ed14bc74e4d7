//! One normalised form of AgentScope's agent events.
//!
//! The Java wire is camelCase with a doubled `type`, the Python wire snake_case; `wire/` reads
//! both into these types. Agents inside this server make them directly ([`Origin::Local`]).

use std::sync::Arc;

use serde_json::Value;

use super::msg::Msg;
pub use super::value::{
    ActivityChange, Call, Confirmation, DataChunk, EndReason, ExternalResult, Failure, ModelUsage,
    Object, ResultData, ResultState, StateChange, StepPhase,
};

/// Which wire an event came from; decides where the two dialects mean different things.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// Made inside this process.
    #[default]
    Local,
    /// AgentScope Java.
    Java,
    /// AgentScope Python.
    Python,
}

/// One event of an agent's reply.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentEvent {
    /// Where it came from.
    pub origin: Origin,
    /// The event's `source`: a path such as `main/researcher`; `None` = the root agent.
    pub source: Option<Arc<str>>,
    /// The event's `metadata`; empty when it has none. `taskId` tells two invocations of one
    /// remote child apart.
    pub metadata: Object,
    /// What happened.
    pub kind: AgentEventKind,
    /// The event as it stood on the wire, the doubled `type` removed. Kept for unknown types
    /// always, for others only when the decoder was asked to (the `raw-event` enricher).
    pub raw: Option<Arc<Value>>,
}

impl AgentEvent {
    /// A root event made inside this process.
    pub fn local(kind: AgentEventKind) -> Self {
        Self { origin: Origin::Local, source: None, metadata: Object::new(), kind, raw: None }
    }

    /// The same event as sent by a child agent.
    #[must_use]
    pub fn from_source(mut self, source: impl Into<Arc<str>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The event's type, under which converters are registered.
    pub fn event_type(&self) -> AgentEventType {
        self.kind.event_type()
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident $wire:literal { $($(#[$fdoc:meta])* $field:ident : $ty:ty,)* })*) => {
        /// What happened. Field `reply` is the wire's reply id; on Python one id lasts a whole
        /// reply, on Java it is new for every model call and acting round.
        #[derive(Clone, Debug, PartialEq)]
        pub enum AgentEventKind {
            $($(#[$doc])* $variant { $($(#[$fdoc])* $field: $ty,)* },)*
        }

        /// The types of agent events, under their canonical (Java) names.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum AgentEventType {
            $($(#[$doc])* $variant,)*
        }

        impl AgentEventType {
            /// Every type.
            pub const ALL: &[AgentEventType] = &[$(AgentEventType::$variant,)*];

            /// The canonical name.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $wire,)* }
            }
        }

        impl AgentEventKind {
            /// The type, under which converters are registered.
            pub fn event_type(&self) -> AgentEventType {
                match self { $(Self::$variant { .. } => AgentEventType::$variant,)* }
            }
        }
    };
}

kinds! {
    /// A reply begins (Python `REPLY_START`).
    AgentStart "AGENT_START" {
        /// Reply id.
        reply: Option<String>,
        /// Session id.
        session: Option<String>,
        /// Name of the agent.
        name: String,
    }
    /// A reply ends (Python `REPLY_END`).
    AgentEnd "AGENT_END" {
        /// Reply id.
        reply: Option<String>,
        /// Why.
        reason: EndReason,
    }
    /// The finished message (Java only).
    AgentResult "AGENT_RESULT" {
        /// The message; its metadata holds `agentscope_generate_reason`.
        result: Msg,
        /// `agentscope_generate_reason`, e.g. `MODEL_STOP`.
        generate_reason: Option<String>,
    }
    /// A model call begins.
    ModelCallStart "MODEL_CALL_START" {
        /// Reply id.
        reply: String,
        /// Name of the model (Python only).
        model: Option<String>,
    }
    /// A model call ends.
    ModelCallEnd "MODEL_CALL_END" {
        /// Reply id.
        reply: String,
        /// What the model reported; `None` = nothing.
        usage: Option<ModelUsage>,
    }
    /// A text block begins.
    TextBlockStart "TEXT_BLOCK_START" {
        /// Reply id.
        reply: String,
        /// Block id; on Java the constant `text`.
        block: String,
    }
    /// More text.
    TextBlockDelta "TEXT_BLOCK_DELTA" {
        /// Reply id.
        reply: String,
        /// Block id.
        block: String,
        /// The text.
        delta: String,
    }
    /// A text block ends.
    TextBlockEnd "TEXT_BLOCK_END" {
        /// Reply id.
        reply: String,
        /// Block id.
        block: String,
        /// The final text, when it is not the sum of the deltas (Python only).
        text: Option<String>,
    }
    /// A thinking block begins.
    ThinkingBlockStart "THINKING_BLOCK_START" {
        /// Reply id.
        reply: String,
        /// Block id; on Java the constant `thinking`.
        block: String,
    }
    /// More thinking.
    ThinkingBlockDelta "THINKING_BLOCK_DELTA" {
        /// Reply id.
        reply: String,
        /// Block id.
        block: String,
        /// The thinking.
        delta: String,
    }
    /// A thinking block ends.
    ThinkingBlockEnd "THINKING_BLOCK_END" {
        /// Reply id.
        reply: String,
        /// Block id.
        block: String,
        /// An opaque artefact of the provider that belongs to the block (local agents only).
        encrypted: Option<String>,
    }
    /// A media block of the assistant begins.
    DataBlockStart "DATA_BLOCK_START" {
        /// Reply id.
        reply: String,
        /// Block id.
        block: String,
        /// Media type, if the wire says.
        media_type: Option<String>,
        /// File name, if the wire says.
        name: Option<String>,
    }
    /// More of a media block.
    DataBlockDelta "DATA_BLOCK_DELTA" {
        /// Reply id.
        reply: String,
        /// Block id.
        block: String,
        /// Media type, if the wire says.
        media_type: Option<String>,
        /// The bytes.
        data: DataChunk,
    }
    /// A media block ends.
    DataBlockEnd "DATA_BLOCK_END" {
        /// Reply id.
        reply: String,
        /// Block id.
        block: String,
    }
    /// Text for the model, not for people, unless labelled.
    HintBlock "HINT_BLOCK" {
        /// Label of the source (Python: `label` of the JSON inside `source`, or the string).
        label: Option<String>,
        /// Second part of the label.
        sublabel: Option<String>,
        /// The text; media blocks of a hint are left out.
        text: String,
    }
    /// A tool call begins.
    ToolCallStart "TOOL_CALL_START" {
        /// Reply id.
        reply: String,
        /// Call id; empty when the wire gave none.
        call: String,
        /// Name of the tool.
        name: String,
    }
    /// More argument text.
    ToolCallDelta "TOOL_CALL_DELTA" {
        /// Call id.
        call: String,
        /// The text.
        delta: String,
    }
    /// The arguments are complete, unless the same call starts again.
    ToolCallEnd "TOOL_CALL_END" {
        /// Call id.
        call: String,
        /// An opaque artefact of the provider that belongs to the call (local agents only).
        encrypted: Option<String>,
    }
    /// A tool begins to answer.
    ToolResultStart "TOOL_RESULT_START" {
        /// Reply id.
        reply: String,
        /// Call id.
        call: String,
        /// Name of the tool.
        name: String,
    }
    /// More text of a tool's answer.
    ToolResultTextDelta "TOOL_RESULT_TEXT_DELTA" {
        /// Call id.
        call: String,
        /// The text.
        delta: String,
    }
    /// A media part of a tool's answer, or a piece of one.
    ToolResultDataDelta "TOOL_RESULT_DATA_DELTA" {
        /// Call id.
        call: String,
        /// Pieces with one block id belong together; `None` = whole.
        block: Option<String>,
        /// The part; text blocks are possible (Java).
        data: ResultData,
    }
    /// A tool's answer is complete, or suspended.
    ToolResultEnd "TOOL_RESULT_END" {
        /// Reply id.
        reply: String,
        /// Call id.
        call: String,
        /// How it went.
        state: ResultState,
    }
    /// The limit of iterations was reached.
    ExceedMaxIters "EXCEED_MAX_ITERS" {
        /// The limit, if the wire says.
        max_iters: Option<u64>,
    }
    /// Calls that need a person's permission.
    RequireUserConfirm "REQUIRE_USER_CONFIRM" {
        /// Reply id; empty when the wire gave none.
        reply: String,
        /// The calls.
        calls: Vec<Call>,
    }
    /// Calls that somebody outside has to run.
    RequireExternalExecution "REQUIRE_EXTERNAL_EXECUTION" {
        /// Reply id; empty when the wire gave none.
        reply: String,
        /// The calls.
        calls: Vec<Call>,
    }
    /// The person answered.
    UserConfirmResult "USER_CONFIRM_RESULT" {
        /// Reply id.
        reply: String,
        /// The answers.
        results: Vec<Confirmation>,
    }
    /// Somebody outside answered.
    ExternalExecutionResult "EXTERNAL_EXECUTION_RESULT" {
        /// Reply id.
        reply: String,
        /// The answers.
        results: Vec<ExternalResult>,
    }
    /// The agent was asked to stop (Java only).
    RequestStop "REQUEST_STOP" {
        /// A sentence.
        reason: Option<String>,
        /// `generateReason`, e.g. `PERMISSION_ASKING`.
        generate_reason: Option<String>,
    }
    /// Every call of a batch was refused (Java only).
    AllToolsDenied "ALL_TOOLS_DENIED" {}
    /// A sub-agent may be talked to directly (Java only).
    SubagentExposed "SUBAGENT_EXPOSED" {}
    /// An application's own event.
    Custom "CUSTOM" {
        /// Name.
        name: String,
        /// Any JSON.
        value: Value,
    }
    /// The shared state changed (directive `state`, or CUSTOM `agui.state`).
    State "agui.state" {
        /// How.
        change: StateChange,
    }
    /// An activity changed (directive `activity`, or CUSTOM `agui.activity`).
    Activity "agui.activity" {
        /// The agent's own id of the activity.
        id: String,
        /// What kind of element.
        activity_type: String,
        /// How.
        change: ActivityChange,
    }
    /// A step began or ended (CUSTOM `agui.step`).
    Step "agui.step" {
        /// Name.
        name: String,
        /// Which of the two.
        phase: StepPhase,
    }
    /// The agent asks the user a question that belongs to no tool call (directive `ask`,
    /// built-in tool `ask_user`).
    Question "agui.ask" {
        /// The agent's own id of the question.
        id: String,
        /// What to show.
        message: String,
        /// JSON Schema of the answer.
        schema: Option<Object>,
    }
    /// The agent hands over what it needs to go on when its questions are answered (directive
    /// `park`). Sends nothing; of several the last one counts.
    Park "agui.park" {
        /// Opaque to everybody but the agent.
        state: Arc<Value>,
    }
    /// What the agent wants to know in its later runs on the thread, such as permission rules that
    /// a person accepted. Sends nothing; the last one counts.
    Keep "agui.keep" {
        /// Opaque to everybody but the agent.
        state: Arc<Value>,
    }
    /// A type that this server does not know; goes out as RAW.
    Unknown "UNKNOWN" {
        /// The `type` of the wire.
        type_name: String,
    }
}
