//! Key `permission`: the mode, and rules that name tools.

use std::collections::BTreeMap;

use super::{OTHER_SOURCES, PermissionConfig, PermissionMode, ReactConfig, ToolConfig};
use crate::config::{
    check::{no_such, shown},
    place::item,
    tree::{Block, Faults},
};

/// Reads the key. Of two lists that name a tool, the first of `deny`, `ask` and `allow` counts;
/// the same rule in two of them says nothing.
pub(super) fn read(
    entry: &Block<'_>,
    tools: &[ToolConfig],
    subagents: &[String],
    faults: &mut Faults<'_>,
) -> PermissionConfig {
    let block = entry.block("permission");
    // Where a tool could not be read, there is no telling what a rule may name.
    let is_known = !faults.within(&entry.at("tools")) && !faults.within(&entry.at("subagents"));
    let sources = is_known.then(|| sources(tools, subagents));
    let mut seen: Vec<(&str, &str)> = Vec::new();
    let mut rules = |list: &'static str, faults: &mut Faults<'_>| -> Vec<String> {
        let rules = block.texts(list).unwrap_or_default();
        for (at, rule) in &rules {
            let path = item(&block.at(list), *at);
            if let Some(message) = rule_fault(rule, &path, sources.as_ref()) {
                faults.value(&path, message);
            } else if let Some((_, other)) = seen.iter().find(|(seen, _)| seen == rule) {
                faults.value(&path, format!("the same rule stands under `{other}` already"));
            }
            seen.push((rule, list));
        }
        rules.into_iter().map(|(_, rule)| rule.to_owned()).collect()
    };
    let (deny, ask, allow) = (rules("deny", faults), rules("ask", faults), rules("allow", faults));
    PermissionConfig { mode: mode(&block), allow, ask, deny }
}

fn mode(block: &Block<'_>) -> PermissionMode {
    match block.text("mode") {
        Some("accept_edits") => PermissionMode::AcceptEdits,
        Some("explore") => PermissionMode::Explore,
        Some("bypass") => PermissionMode::Bypass,
        Some("dont_ask") => PermissionMode::DontAsk,
        _ => PermissionMode::Default,
    }
}

/// What is wrong with a rule. Which tools an MCP server has is not known here.
fn rule_fault(rule: &str, path: &str, sources: Option<&Sources<'_>>) -> Option<String> {
    let (source, tool) = rule.split_once(':').map_or((None, rule), |(s, t)| (Some(s), t));
    if tool.is_empty() || source.is_some_and(str::is_empty) {
        return Some("a rule is `tool` or `source:tool`".to_owned());
    }
    let (source, named) = (source?, sources?);
    let Some(names) = named.get(source) else {
        let (what, plural) = ("source of tools", "sources of this agent");
        return Some(no_such(what, plural, source, path, named.keys().copied()));
    };
    (OTHER_SOURCES.contains(&source) && !names.contains(&tool))
        .then(|| no_such("tool", "tools of this source", tool, path, names.iter().copied()))
}

/// The sources of an agent's tools, and what is known of their tools.
type Sources<'a> = BTreeMap<&'a str, Vec<&'a str>>;

fn sources<'a>(tools: &'a [ToolConfig], subagents: &'a [String]) -> Sources<'a> {
    let mut sources = Sources::new();
    for tool in tools {
        sources.entry(tool.source()).or_default().extend(tool.name());
    }
    for id in subagents {
        sources.entry("subagent").or_default().push(id);
    }
    sources
}

/// Rules that name no tool, as far as that is known.
pub(crate) fn warnings(id: &str, react: &ReactConfig) -> Vec<String> {
    let ReactConfig { permission, tools, subagents, .. } = react;
    let PermissionConfig { allow, ask, deny, .. } = permission;
    let lists = [("allow", allow), ("ask", ask), ("deny", deny)];
    let rules = lists.iter().flat_map(|(list, rules)| rules.iter().map(move |rule| (list, rule)));
    let unknown = rules.filter(|(list, rule)| {
        let (source, tool) = match rule.split_once(':') {
            Some((source, tool)) => (Some(source), tool),
            None => (None, rule.as_str()),
        };
        let mut tools = tools.iter().filter(|other| source.is_none_or(|s| other.source() == s));
        let is_subagent =
            source.is_none_or(|s| s == "subagent") && subagents.iter().any(|other| other == tool);
        // What is denied is denied to those below as well.
        let is_meant_for_others = **list == "deny" && !subagents.is_empty();
        !is_subagent && !is_meant_for_others && !tools.any(|other| other.may_provide(tool))
    });
    unknown
        .map(|(list, rule)| {
            let rule = shown(rule, "");
            format!("agent {id}: `{rule}` under permission.{list} names no tool of this agent")
        })
        .collect()
}
