//! The adapter's switches. Names and defaults are those of `agentscope.agui.*`.

use std::{sync::Arc, time::Duration};

use serde_json::Value;

/// Switches of one adapter.
#[derive(Clone, Debug, PartialEq)]
pub struct AdapterOptions {
    /// `default-tool-merge-mode`.
    pub tool_merge_mode: ToolMergeMode,
    /// `frontend-tool-outcome`.
    pub frontend_tool_outcome: FrontendToolOutcome,
    /// `echo-input`: RUN_STARTED carries the input.
    pub echo_input: bool,
    /// `emit-state-events`.
    pub emit_state_events: bool,
    /// `emit-step-events`.
    pub emit_step_events: bool,
    /// `emit-tool-call-args`.
    pub emit_tool_call_args: bool,
    /// `emit-token-usage`.
    pub emit_token_usage: bool,
    /// `enable-reasoning`.
    pub enable_reasoning: bool,
    /// `emit-run-finished-after-error`, for old clients only.
    pub emit_run_finished_after_error: bool,
    /// `subagent-events`, with `emit-subagent-events-as-native: true` already folded in.
    pub subagent_events: SubagentEvents,
    /// `assume-peer`.
    pub assume_peer: AssumePeer,
    /// `base-event-properties-enricher-enabled`: the same as `{type: timestamp}` in `enrichers`.
    pub timestamps: bool,
    /// `enrichers`, in order.
    pub enrichers: Vec<EnricherSpec>,
    /// `converters`, in order.
    pub converters: Vec<ConverterSpec>,
    /// `interrupt-ttl`: how long an interrupt can be resolved; `None` = for ever.
    pub interrupt_ttl: Option<Duration>,
}

impl Default for AdapterOptions {
    fn default() -> Self {
        Self {
            tool_merge_mode: ToolMergeMode::default(),
            frontend_tool_outcome: FrontendToolOutcome::default(),
            echo_input: false,
            emit_state_events: true,
            emit_step_events: false,
            emit_tool_call_args: true,
            emit_token_usage: false,
            enable_reasoning: false,
            emit_run_finished_after_error: false,
            subagent_events: SubagentEvents::default(),
            assume_peer: AssumePeer::default(),
            timestamps: false,
            enrichers: Vec::new(),
            converters: Vec::new(),
            interrupt_ttl: None,
        }
    }
}

/// `default-tool-merge-mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolMergeMode {
    /// Only the tools of the input.
    FrontendOnly,
    /// Only the agent's tools.
    AgentOnly,
    /// Both; the input's win on a name conflict.
    #[default]
    MergeFrontendPriority,
}

/// `frontend-tool-outcome`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FrontendToolOutcome {
    /// The call stays unanswered and the run ends with success.
    #[default]
    Pending,
    /// The run ends with an interrupt (AgentScope Java's earlier behaviour).
    Interrupt,
}

/// `subagent-events`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SubagentEvents {
    /// Attributed for current peers, custom for legacy ones.
    #[default]
    Auto,
    /// SUBAGENT_* and `subagentRunId`.
    Attributed,
    /// CUSTOM `subagent.*`.
    Custom,
    /// As the root agent's own events, tagged.
    Native,
}

/// `assume-peer`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AssumePeer {
    /// By `protocolVersion` of the input.
    #[default]
    Auto,
    /// Every peer speaks 1.0.
    Current,
    /// Every peer is older than 1.0.
    Legacy,
}

/// What a run's peer understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// AG-UI 1.x.
    Current,
    /// Older than 1.0: the stream is downgraded.
    Legacy,
}

/// One entry of `enrichers`.
#[derive(Clone, Debug, PartialEq)]
pub enum EnricherSpec {
    /// `{type: raw-event}`: the agent's event on every AG-UI event made from it.
    RawEvent,
    /// `{type: metadata, set: {…}}`: constants on every event.
    Metadata(Arc<serde_json::Map<String, Value>>),
    /// `{type: drop, event: RAW}` or `{type: drop, event: CUSTOM, name: noisy}`.
    Drop {
        /// What to drop.
        event: Droppable,
        /// Only CUSTOM events of this name.
        name: Option<String>,
    },
    /// `{type: timestamp}`: the time on every event that has none; applied last wherever it
    /// stands, so that no event is stamped in vain.
    Timestamp,
}

/// What an enricher may drop: never a single opener or closer, never RUN_*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Droppable {
    /// CUSTOM.
    Custom,
    /// RAW.
    Raw,
    /// All REASONING_*.
    Reasoning,
    /// All STEP_*.
    Step,
    /// All STATE_*.
    State,
    /// All ACTIVITY_*.
    Activity,
}

/// One entry of `converters`: what happens to the agent's CUSTOM events of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConverterSpec {
    /// Name of the CUSTOM event.
    pub custom: String,
    /// What to do with it.
    pub action: ConverterAction,
}

/// What a converter entry does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConverterAction {
    /// `rename: new-name`.
    Rename(String),
    /// `drop: true`.
    Drop,
    /// `as: state`: value {set | patch}.
    AsState,
    /// `as: activity`: value {id, type, content | patch}.
    AsActivity,
    /// `as: step`: value {name, phase}.
    AsStep,
}
