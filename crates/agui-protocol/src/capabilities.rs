//! What an agent declares about itself (CAP-1 to CAP-8).
//!
//! Every group and member is optional: absent = undeclared, `false` = not supported. The objects
//! are closed except `metadata` and `custom`; nothing of this server's own may be added elsewhere.

use serde::{Deserialize, Serialize};

use crate::{Object, Tool};

macro_rules! groups {
    ($(
        $(#[$doc:meta])*
        $name:ident {
            $($(#[$fdoc:meta])* $field:ident : $ty:ty,)*
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            $(
                $(#[$fdoc])*
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $field: Option<$ty>,
            )*
        }
    )*};
}

groups! {
    /// The whole document.
    AgentCapabilities {
        /// Who the agent is.
        identity: IdentityCapabilities,
        /// How it can be reached.
        transport: TransportCapabilities,
        /// Tool calling.
        tools: ToolsCapabilities,
        /// Output formats.
        output: OutputCapabilities,
        /// Shared state and memory.
        state: StateCapabilities,
        /// Work with other agents.
        multi_agent: MultiAgentCapabilities,
        /// Visible thinking.
        reasoning: ReasoningCapabilities,
        /// Media in and out.
        multimodal: MultimodalCapabilities,
        /// Code execution and limits.
        execution: ExecutionCapabilities,
        /// Asking the person.
        human_in_the_loop: HumanInTheLoopCapabilities,
        /// What the standard groups do not model; open by key.
        custom: Object,
    }

    /// Who the agent is.
    IdentityCapabilities {
        /// Name to show.
        name: String,
        /// Framework or kind of agent.
        r#type: String,
        /// What it does.
        description: String,
        /// Its version.
        version: String,
        /// Who provides it.
        provider: String,
        /// Where its documentation is.
        documentation_url: String,
        /// Open by key.
        metadata: Object,
    }

    /// How the agent can be reached.
    TransportCapabilities {
        /// Events as they happen.
        streaming: bool,
        /// WebSocket.
        websocket: bool,
        /// The protobuf binding.
        http_binary: bool,
        /// Push notifications (CAP-6).
        push_notifications: bool,
        /// Streams that can be entered again (CAP-6).
        resumable: bool,
    }

    /// Tool calling.
    ToolsCapabilities {
        /// Whether the agent calls tools.
        supported: bool,
        /// The agent's own tools, never the client's (CAP-5).
        items: Vec<Tool>,
        /// Several calls at a time.
        parallel_calls: bool,
        /// Tools of the run input.
        client_provided: bool,
    }

    /// Output formats.
    OutputCapabilities {
        /// Answers that follow a JSON Schema.
        structured_output: bool,
        /// MIME types of what the agent produces.
        supported_mime_types: Vec<String>,
    }

    /// Shared state and memory.
    StateCapabilities {
        /// `STATE_SNAPSHOT`.
        snapshots: bool,
        /// `STATE_DELTA`.
        deltas: bool,
        /// Memory over conversations.
        memory: bool,
        /// State that outlives the run.
        persistent_state: bool,
    }

    /// Work with other agents.
    MultiAgentCapabilities {
        /// Whether there is any.
        supported: bool,
        /// Giving work to others.
        delegation: bool,
        /// Giving the conversation to others.
        handoffs: bool,
        /// The sub-agents that can be invoked (CAP-4).
        subagents: Vec<SubagentInfo>,
    }

    /// Visible thinking.
    ReasoningCapabilities {
        /// Whether reasoning is shown.
        supported: bool,
        /// As it happens.
        streaming: bool,
        /// With encrypted values.
        encrypted: bool,
    }

    /// Media in and out.
    MultimodalCapabilities {
        /// What the agent takes.
        input: MultimodalInputCapabilities,
        /// What the agent gives.
        output: MultimodalOutputCapabilities,
    }

    /// Media that the agent takes.
    MultimodalInputCapabilities {
        /// Pictures.
        image: bool,
        /// Sound.
        audio: bool,
        /// Moving pictures.
        video: bool,
        /// PDF documents.
        pdf: bool,
        /// Other files.
        file: bool,
    }

    /// Media that the agent gives.
    MultimodalOutputCapabilities {
        /// Pictures.
        image: bool,
        /// Sound.
        audio: bool,
    }

    /// Code execution and limits.
    ExecutionCapabilities {
        /// Whether the agent runs code.
        code_execution: bool,
        /// Inside a sandbox.
        sandboxed: bool,
        /// Rounds of model calls at most.
        max_iterations: u64,
        /// Milliseconds at most (CAP-8).
        max_execution_time: u64,
    }

    /// Asking the person.
    HumanInTheLoopCapabilities {
        /// Whether the agent asks at all.
        supported: bool,
        /// Approval of actions.
        approvals: bool,
        /// Interventions while it runs.
        interventions: bool,
        /// Feedback.
        feedback: bool,
        /// Interrupts and resume.
        interrupts: bool,
        /// Approval with changed arguments.
        approve_with_edits: bool,
    }
}

/// A sub-agent that can be invoked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubagentInfo {
    /// Its name.
    pub name: String,
    /// What it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_is_undeclared_is_left_out() {
        let empty: Value = serde_json::to_value(AgentCapabilities::default()).unwrap();
        assert_eq!(empty, json!({}));
    }
}
