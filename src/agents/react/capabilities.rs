//! What a react agent can do, read off its configuration. Declares only what holds (CAP-3).

use agui_adapter::options::ToolMergeMode;
use agui_protocol::{
    Tool,
    capabilities::{
        AgentCapabilities, ExecutionCapabilities, HumanInTheLoopCapabilities, IdentityCapabilities,
        MultiAgentCapabilities, MultimodalCapabilities, MultimodalInputCapabilities,
        ReasoningCapabilities, StateCapabilities, SubagentInfo, ToolsCapabilities,
        TransportCapabilities,
    },
};

use super::factory::Tools;
use crate::{
    agents::registry::Capabilities,
    config::{
        AgentConfig, ReactConfig,
        react::{Builtin, PermissionMode, ToolConfig},
    },
};

/// The capabilities of the agent `id`.
pub(super) fn derive(
    id: &str,
    config: &AgentConfig,
    react: &ReactConfig,
    tools: &Tools,
    subagents: Vec<SubagentInfo>,
    vision: bool,
) -> Capabilities {
    let name = if config.name.is_empty() { id } else { &config.name };
    let description = Some(config.description.clone()).filter(|text| !text.is_empty());
    let reasoning = config.adapter.enable_reasoning;
    let delegates = !subagents.is_empty();
    AgentCapabilities {
        identity: Some(IdentityCapabilities {
            name: Some(name.to_owned()),
            r#type: Some("react".to_owned()),
            description,
            ..Default::default()
        }),
        transport: Some(TransportCapabilities { streaming: Some(true), ..Default::default() }),
        tools: Some(of_tools(config, react, tools, delegates)),
        state: Some(of_state(config, react)),
        multi_agent: Some(MultiAgentCapabilities {
            supported: Some(delegates),
            delegation: Some(delegates),
            subagents: delegates.then_some(subagents),
            ..Default::default()
        }),
        reasoning: Some(ReasoningCapabilities {
            supported: Some(reasoning),
            streaming: Some(reasoning),
            ..Default::default()
        }),
        multimodal: Some(MultimodalCapabilities {
            input: Some(MultimodalInputCapabilities { image: Some(vision), ..Default::default() }),
            ..Default::default()
        }),
        execution: Some(ExecutionCapabilities {
            max_iterations: Some(react.max_iters.into()),
            ..Default::default()
        }),
        human_in_the_loop: Some(of_people(react, tools, delegates)),
        ..Default::default()
    }
}

/// Those of MCP servers are not known before a run.
fn of_tools(
    config: &AgentConfig,
    react: &ReactConfig,
    tools: &Tools,
    delegates: bool,
) -> ToolsCapabilities {
    let mode = config.adapter.tool_merge_mode;
    let has_own = mode != ToolMergeMode::FrontendOnly;
    let own = tools.own.iter().map(|(_, tool)| tool.spec());
    let own = own.map(|spec| item(&spec.name, &spec.description, &spec.parameters));
    let external = tools.external.iter();
    let external = external.map(|tool| item(&tool.name, &tool.description, &tool.parameters));
    let items: Vec<Tool> = own.chain(external).filter(|_| has_own).collect();
    let client_provided = mode != ToolMergeMode::AgentOnly;
    let any = !items.is_empty() || (has_own && (delegates || !tools.sources.is_empty()));
    ToolsCapabilities {
        supported: Some(any || client_provided),
        items: (!items.is_empty()).then_some(items),
        parallel_calls: Some(react.parallel_tool_calls),
        client_provided: Some(client_provided),
    }
}

fn item(name: &str, description: &str, parameters: &serde_json::Value) -> Tool {
    Tool {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: Some(parameters.clone()),
        metadata: None,
    }
}

fn has(react: &ReactConfig, builtin: Builtin) -> bool {
    react.tools.contains(&ToolConfig::Builtin(builtin))
}

fn of_state(config: &AgentConfig, react: &ReactConfig) -> StateCapabilities {
    let changes = has(react, Builtin::UpdateState) || has(react, Builtin::UpdatePlan);
    let state = changes && config.adapter.emit_state_events;
    StateCapabilities { snapshots: Some(state), deltas: Some(state), ..Default::default() }
}

/// Tools of MCP servers may be destructive, and may ask.
fn of_people(react: &ReactConfig, tools: &Tools, delegates: bool) -> HumanInTheLoopCapabilities {
    let permission = &react.permission;
    let from_servers = !tools.sources.is_empty();
    let approvals = match permission.mode {
        PermissionMode::Default | PermissionMode::AcceptEdits => {
            from_servers || !permission.ask.is_empty()
        }
        PermissionMode::Explore | PermissionMode::Bypass => !permission.ask.is_empty(),
        PermissionMode::DontAsk => false,
    };
    let asks = from_servers || delegates || has(react, Builtin::AskUser);
    let interrupts = approvals || asks || !tools.external.is_empty();
    HumanInTheLoopCapabilities {
        supported: Some(interrupts),
        approvals: Some(approvals),
        interrupts: Some(interrupts),
        approve_with_edits: Some(approvals),
        ..Default::default()
    }
}
