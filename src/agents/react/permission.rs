//! Who may call what: AgentScope's permission modes and rules.
//!
//! A rule names a tool as `tool`, by its own name or the one under which it is offered, or as
//! `source:tool`, where the source is an MCP server's name, `builtin`, `http`, `external` or
//! `subagent`. A bare name means the tools of that name of every source.
//!
//! The first of these that applies decides:
//!
//! 1. a deny rule, the agent's own or of an agent above it: denied
//! 2. a tool of the client's own: allowed
//! 3. an ask rule: asks; allowed once a person accepted the tool for the thread; denied in
//!    `dont_ask`
//! 4. `explore`: allowed if it is read-only, else denied
//! 5. an allow rule, or one that a person accepted: allowed
//! 6. a destructive tool asks in `default` and `accept_edits`, is denied in `dont_ask` and allowed
//!    in `bypass`; every other is allowed
//!
//! `accept_edits` is `default` here: what it lets pass in AgentScope are its own tools that edit
//! files, which this server has not.

use serde_json::{Value, json};

use super::toolkit::{Entry, EntryKind};
use crate::config::react::{PermissionConfig, PermissionMode};

/// What becomes of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It runs.
    Allow,
    /// A person is asked first.
    Ask {
        /// Rules that would make the ask unnecessary, for the person to accept.
        suggested: Vec<Value>,
    },
    /// It does not run.
    Deny {
        /// The result that the model reads.
        text: String,
    },
}

/// The rules of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    mode: PermissionMode,
    allow: Vec<String>,
    ask: Vec<String>,
    /// The agent's own and those of the agents above.
    deny: Vec<String>,
    /// Tools that a person allowed for the thread, as `source:tool`.
    accepted: Vec<String>,
}

impl Permissions {
    /// The rules of the configuration, the deny rules of the agents above, and what
    /// [`kept`](Self::kept) gave in an earlier run.
    pub fn new(config: &PermissionConfig, denied_above: &[String], kept: Option<&Value>) -> Self {
        let mut deny = config.deny.clone();
        deny.extend(denied_above.iter().filter(|rule| !config.deny.contains(rule)).cloned());
        let kept = kept.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let accepted = kept.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let (allow, ask) = (config.allow.clone(), config.ask.clone());
        Self { mode: config.mode, allow, ask, deny, accepted }
    }

    /// What becomes of a call of this tool.
    pub fn decide(&self, entry: &Entry) -> Verdict {
        if any_names(&self.deny, entry) {
            return deny("Permission denied by rules");
        }
        if matches!(entry.kind, EntryKind::Frontend) {
            return Verdict::Allow;
        }
        let accepted = self.has_accepted(entry);
        if any_names(&self.ask, entry) {
            return if accepted { Verdict::Allow } else { self.ask(entry) };
        }
        if self.mode == PermissionMode::Explore {
            return match entry.read_only {
                true => Verdict::Allow,
                false => deny(&format!(
                    "Permission denied for {} (explore mode - read-only tools only)",
                    entry.name
                )),
            };
        }
        let allowed = accepted || self.allow.iter().any(|rule| allows(rule, entry));
        if allowed || !entry.destructive || self.mode == PermissionMode::Bypass {
            return Verdict::Allow;
        }
        self.ask(entry)
    }

    /// Takes the rules that came along with the approval of a call of this tool; tells whether
    /// there is more to keep than before.
    ///
    /// They come from a client, so only what was suggested counts: that this tool may run. The
    /// approval of one tool cannot allow another.
    pub fn accept(&mut self, entry: &Entry, rules: &[Value]) -> bool {
        let (suggested, other): (Vec<&Value>, Vec<&Value>) =
            rules.iter().partition(|rule| is_suggested(rule, entry));
        if !other.is_empty() {
            let ignored = other.len();
            tracing::warn!(
                ignored,
                "permission rules that were not suggested for the call are ignored"
            );
        }
        let Some(name) = entry.qualified() else { return false };
        if suggested.is_empty() || self.accepted.contains(&name) {
            return false;
        }
        self.accepted.push(name);
        true
    }

    /// What a person accepted so far, for the thread's later runs.
    pub fn kept(&self) -> Value {
        json!(self.accepted)
    }

    /// The deny rules that hold for agents below.
    pub fn denied_below(&self) -> Vec<String> {
        self.deny.clone()
    }

    fn has_accepted(&self, entry: &Entry) -> bool {
        entry.qualified().is_some_and(|name| self.accepted.contains(&name))
    }

    fn ask(&self, entry: &Entry) -> Verdict {
        let name = &entry.name;
        match self.mode {
            PermissionMode::DontAsk => {
                deny(&format!("Permission denied for {name} (dont_ask mode - user not available)"))
            }
            _ => Verdict::Ask { suggested: vec![suggestion(name)] },
        }
    }
}

fn deny(text: &str) -> Verdict {
    Verdict::Deny { text: text.to_owned() }
}

/// The rule that allows every call of a tool.
fn suggestion(name: &str) -> Value {
    json!({"tool_name": name, "rule_content": null, "behavior": "allow", "source": "suggested"})
}

/// Whether a rule that a client sends is the one that was suggested for this tool. Its `source`
/// does not matter.
fn is_suggested(rule: &Value, entry: &Entry) -> bool {
    // As rules stand in the configuration.
    if let Value::String(rule) = rule {
        return names(rule, entry);
    }
    let text = |key: &str| rule.get(key).and_then(Value::as_str);
    let whole_tool = rule.get("rule_content").is_none_or(Value::is_null);
    let allows = text("behavior").is_some_and(|behavior| behavior.eq_ignore_ascii_case("allow"));
    whole_tool && allows && text("tool_name").is_some_and(|name| names(name, entry))
}

fn any_names(rules: &[String], entry: &Entry) -> bool {
    rules.iter().any(|rule| names(rule, entry))
}

fn names(rule: &str, entry: &Entry) -> bool {
    rule == entry.name || rule == entry.bare || is_qualified(rule, entry)
}

/// The rules that name none of these tools, each with the list that it stands in.
pub(super) fn unknown_rules<'a>(
    config: &'a PermissionConfig,
    entries: &[&Entry],
) -> Vec<(&'static str, &'a str)> {
    let PermissionConfig { allow, ask, deny, .. } = config;
    let lists = [("allow", allow), ("ask", ask), ("deny", deny)];
    let rules = lists.into_iter().flat_map(|(list, rules)| rules.iter().map(move |r| (list, &**r)));
    rules.filter(|(_, rule)| !entries.iter().any(|entry| names(rule, entry))).collect()
}

/// As [`names`], but a rule for one source's tool never allows a tool of another source that is
/// itself called `source:tool`.
fn allows(rule: &str, entry: &Entry) -> bool {
    if rule.contains(':') { is_qualified(rule, entry) } else { names(rule, entry) }
}

fn is_qualified(rule: &str, entry: &Entry) -> bool {
    let Some(source) = entry.source.as_deref() else { return false };
    let tool = rule.strip_prefix(source).and_then(|rest| rest.strip_prefix(':'));
    tool == Some(entry.bare.as_str())
}

#[cfg(test)]
mod tests;
