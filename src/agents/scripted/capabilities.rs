//! What a scripted agent can do, read off its scripts. Declares only what holds (CAP-3).

use std::collections::{BTreeMap, BTreeSet};

use agui_adapter::model::{AgentEvent, AgentEventKind, event::ResultData};
use agui_protocol::capabilities::{
    AgentCapabilities, HumanInTheLoopCapabilities, IdentityCapabilities, MultiAgentCapabilities,
    MultimodalCapabilities, MultimodalOutputCapabilities, ReasoningCapabilities, StateCapabilities,
    SubagentInfo, ToolsCapabilities, TransportCapabilities,
};

use super::script::Script;
use crate::{agents::registry::Capabilities, config::AgentConfig};

/// What the scripts of one agent use.
#[derive(Default)]
struct Uses {
    tools: bool,
    parallel_calls: bool,
    reasoning: bool,
    state: bool,
    approvals: bool,
    interrupts: bool,
    image: bool,
    audio: bool,
    /// Names of the children that have one, by source.
    children: BTreeMap<String, Option<String>>,
}

/// The capabilities of the agent `id`.
pub(super) fn derive<'a>(
    id: &str,
    config: &AgentConfig,
    scripts: impl Iterator<Item = &'a Script>,
) -> Capabilities {
    let mut uses = Uses::default();
    for script in scripts {
        let mut open = BTreeSet::new();
        for event in script.events() {
            uses.note_child(&event);
            uses.note_calls(&event, &mut open);
            uses.note(&event.kind);
        }
    }
    uses.document(id, config)
}

impl Uses {
    fn note(&mut self, kind: &AgentEventKind) {
        match kind {
            AgentEventKind::ThinkingBlockDelta { .. } => self.reasoning = true,
            AgentEventKind::State { .. } => self.state = true,
            AgentEventKind::RequireUserConfirm { .. } => {
                self.approvals = true;
                self.interrupts = true;
            }
            AgentEventKind::RequireExternalExecution { .. } | AgentEventKind::Question { .. } => {
                self.interrupts = true;
            }
            AgentEventKind::DataBlockStart { media_type, .. }
            | AgentEventKind::DataBlockDelta { media_type, .. }
            | AgentEventKind::ToolResultDataDelta {
                data: ResultData::Media { media_type, .. },
                ..
            } => self.note_media(media_type.as_deref()),
            _ => {}
        }
    }

    fn note_media(&mut self, media_type: Option<&str>) {
        let family = media_type.and_then(|media_type| media_type.split('/').next());
        self.image |= family == Some("image");
        self.audio |= family == Some("audio");
    }

    fn note_child(&mut self, event: &AgentEvent) {
        let Some(source) = &event.source else { return };
        let child = self.children.entry(source.to_string()).or_default();
        if let AgentEventKind::AgentStart { name, .. } = &event.kind {
            *child = Some(name.clone()).filter(|name| !name.is_empty());
        }
    }

    /// Two calls of one agent without an answer in between are parallel.
    fn note_calls(&mut self, event: &AgentEvent, open: &mut BTreeSet<(Option<String>, String)>) {
        let owner = event.source.as_ref().map(ToString::to_string);
        match &event.kind {
            AgentEventKind::ToolCallStart { call, .. } => {
                self.tools = true;
                let others = open.iter().any(|(who, other)| *who == owner && other != call);
                self.parallel_calls |= others;
                open.insert((owner, call.clone()));
            }
            AgentEventKind::ToolResultStart { .. } | AgentEventKind::ModelCallStart { .. } => {
                open.retain(|(who, _)| *who != owner);
            }
            _ => {}
        }
    }

    fn document(&self, id: &str, config: &AgentConfig) -> Capabilities {
        let name = if config.name.is_empty() { id } else { &config.name };
        let reasoning = self.reasoning && config.adapter.enable_reasoning;
        let state = self.state && config.adapter.emit_state_events;
        let children: BTreeSet<&String> = self.children.values().flatten().collect();
        let info = |name: &String| SubagentInfo { name: name.clone(), description: None };
        let subagents: Vec<_> = children.into_iter().map(info).collect();
        let delegates = Some(!subagents.is_empty());
        let description = Some(config.description.clone()).filter(|text| !text.is_empty());
        AgentCapabilities {
            identity: Some(IdentityCapabilities {
                name: Some(name.to_owned()),
                r#type: Some("scripted".to_owned()),
                description,
                ..Default::default()
            }),
            transport: Some(TransportCapabilities { streaming: Some(true), ..Default::default() }),
            tools: Some(ToolsCapabilities {
                supported: Some(self.tools),
                parallel_calls: Some(self.parallel_calls),
                ..Default::default()
            }),
            state: Some(StateCapabilities {
                snapshots: Some(state),
                deltas: Some(state),
                ..Default::default()
            }),
            multi_agent: Some(MultiAgentCapabilities {
                supported: delegates,
                delegation: delegates,
                subagents: (!subagents.is_empty()).then_some(subagents),
                ..Default::default()
            }),
            reasoning: Some(ReasoningCapabilities {
                supported: Some(reasoning),
                streaming: Some(reasoning),
                ..Default::default()
            }),
            multimodal: Some(MultimodalCapabilities {
                output: Some(MultimodalOutputCapabilities {
                    image: Some(self.image),
                    audio: Some(self.audio),
                }),
                ..Default::default()
            }),
            human_in_the_loop: Some(HumanInTheLoopCapabilities {
                supported: Some(self.interrupts),
                approvals: Some(self.approvals),
                interrupts: Some(self.interrupts),
                approve_with_edits: Some(self.approvals),
                ..Default::default()
            }),
            ..Default::default()
        }
    }
}
