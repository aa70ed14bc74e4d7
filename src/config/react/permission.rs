//! Key `permission`: the mode, and rules that name tools.

use std::collections::BTreeSet;

use super::{OTHER_SOURCES, PermissionConfig, PermissionMode, ReactConfig, ToolConfig};
use crate::config::{
    check::{no_such, shown},
    place::item,
    tree::{Block, Faults},
};

/// Reads the block. Of two lists that name a tool, the first of `deny`, `ask` and `allow` counts;
/// the same rule in two of them says nothing.
pub(super) fn read(
    block: &Block<'_>,
    tools: &[ToolConfig],
    faults: &mut Faults<'_>,
) -> PermissionConfig {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    let mut rules = |list: &'static str, faults: &mut Faults<'_>| -> Vec<String> {
        let rules = block.texts(list).unwrap_or_default();
        for (at, rule) in &rules {
            let path = item(&block.at(list), *at);
            if let Some(message) = rule_fault(rule, &path, tools) {
                faults.value(&path, message);
            } else if let Some((_, other)) = seen.iter().find(|(seen, _)| seen == rule) {
                faults.value(&path, format!("the same rule stands under `{other}` already"));
            }
            seen.push((rule, list));
        }
        rules.into_iter().map(|(_, rule)| rule.to_owned()).collect()
    };
    let (deny, ask, allow) = (rules("deny", faults), rules("ask", faults), rules("allow", faults));
    PermissionConfig { mode: mode(block), allow, ask, deny }
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

/// What is wrong with a rule. Which tools a server has is not known here.
fn rule_fault(rule: &str, path: &str, tools: &[ToolConfig]) -> Option<String> {
    let Some((source, tool)) = rule.split_once(':') else {
        return rule.is_empty().then(|| "a rule is `tool` or `source:tool`".to_owned());
    };
    if source.is_empty() || tool.is_empty() {
        return Some("a rule is `tool` or `source:tool`".to_owned());
    }
    let sources: BTreeSet<&str> = tools.iter().map(ToolConfig::source).collect();
    if !sources.contains(source) {
        let what = "source of tools";
        return Some(no_such(what, "sources of this agent", source, path, sources.into_iter()));
    }
    let of_source = || tools.iter().filter(|other| other.source() == source);
    let names: Vec<&str> = of_source().filter_map(ToolConfig::name).collect();
    let is_other = OTHER_SOURCES.contains(&source);
    (is_other && !names.contains(&tool))
        .then(|| no_such("tool", "tools of this source", tool, path, names.into_iter()))
}

/// Rules that name no tool, as far as that is known.
pub(crate) fn warnings(id: &str, react: &ReactConfig) -> Vec<String> {
    let ReactConfig { permission, tools, subagents, .. } = react;
    let PermissionConfig { allow, ask, deny, .. } = permission;
    let lists = [("allow", allow), ("ask", ask), ("deny", deny)];
    let rules = lists.iter().flat_map(|(list, rules)| rules.iter().map(move |rule| (list, rule)));
    let unknown = rules.filter(|(_, rule)| {
        let (source, tool) = match rule.split_once(':') {
            Some((source, tool)) => (Some(source), tool),
            None => (None, rule.as_str()),
        };
        let mut tools = tools.iter().filter(|other| source.is_none_or(|s| other.source() == s));
        let is_subagent = source.is_none() && subagents.iter().any(|other| other == tool);
        !is_subagent && !tools.any(|other| other.may_provide(tool))
    });
    unknown
        .map(|(list, rule)| {
            let rule = shown(rule, "");
            format!("agent {id}: `{rule}` under permission.{list} names no tool of this agent")
        })
        .collect()
}
