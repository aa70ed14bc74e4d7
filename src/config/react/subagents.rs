//! Agents that are offered as tools: they exist, and none leads back to where it began.

use std::collections::{BTreeMap, VecDeque};

use super::ToolConfig;
use crate::config::{
    AgentConfig, AgentKind,
    check::no_such,
    place::{item, join},
    tree::{Block, Faults},
};

/// Reads the key.
pub(super) fn read(
    entry: &Block<'_>,
    tools: &[ToolConfig],
    faults: &mut Faults<'_>,
) -> Vec<String> {
    let path = entry.at("subagents");
    let mut ids: Vec<String> = Vec::new();
    for (at, id) in entry.texts("subagents").unwrap_or_default() {
        if ids.iter().any(|other| other == id) {
            faults.value(&item(&path, at), "this agent stands in the list already");
        } else if tools.iter().any(|tool| tool.name() == Some(id)) {
            faults.value(&item(&path, at), "a tool of this agent has the same name");
        }
        ids.push(id.to_owned());
    }
    ids
}

/// Says which sub-agents there are not, and which lead back to their agent.
pub(crate) fn check(agents: &BTreeMap<String, AgentConfig>, faults: &mut Faults<'_>) {
    for (id, agent) in agents {
        let list = join(&join("agentscope.agents", id), "subagents");
        for (at, child) in subagents(agent).iter().enumerate() {
            let path = item(&list, at);
            if !agents.contains_key(child) {
                let others = agents.keys().filter(|other| *other != id).map(String::as_str);
                faults.value(&path, no_such("agent", "agents", child, &path, others));
            } else if child == id {
                faults.value(&path, "an agent cannot be its own sub-agent");
            } else if let Some(way) = way(agents, child, id)
                && way.iter().all(|other| *other >= id.as_str())
            {
                let way = way.join(" → ");
                faults.value(&path, format!("sub-agents lead back to this agent: {id} → {way}"));
            }
        }
    }
}

fn subagents(agent: &AgentConfig) -> &[String] {
    match &agent.kind {
        AgentKind::React(react) => &react.subagents,
        AgentKind::Scripted(_) | AgentKind::Command(_) => &[],
    }
}

/// The shortest way from one agent to another, both included.
fn way<'a>(
    agents: &'a BTreeMap<String, AgentConfig>,
    from: &'a str,
    to: &str,
) -> Option<Vec<&'a str>> {
    let mut before: BTreeMap<&str, Option<&str>> = BTreeMap::from([(from, None)]);
    let mut open = VecDeque::from([from]);
    while let Some(id) = open.pop_front() {
        if id == to {
            let mut way: Vec<&str> =
                std::iter::successors(Some(id), |id| before.get(id).copied().flatten()).collect();
            way.reverse();
            return Some(way);
        }
        for next in agents.get(id).map(subagents).unwrap_or_default() {
            if !before.contains_key(next.as_str()) {
                before.insert(next, Some(id));
                open.push_back(next);
            }
        }
    }
    None
}
