//! The instructions of an agent, and the placeholders in them.

use crate::config::{
    check::hint,
    diagnostic::near,
    tree::{Block, Faults},
};

/// Placeholders with fixed names; the others are `context.<key>`.
const NAMES: [&str; 2] = ["threadId", "runId"];

/// Reads the key.
pub(super) fn read(entry: &Block<'_>, faults: &mut Faults<'_>) -> String {
    let prompt = entry.text("sys-prompt").unwrap_or_default();
    if let Some(name) = names(prompt).find(|name| !is_known(name)) {
        let hint = hint(near(name, NAMES));
        let message = format!(
            "unknown placeholder `{{{{{name}}}}}`{hint}; there are {{{{threadId}}}}, {{{{runId}}}} \
             and {{{{context.<key>}}}} with a key of the runtime context"
        );
        faults.value(&entry.at("sys-prompt"), message);
    }
    prompt.to_owned()
}

/// Names in double braces. Everything else in braces is text.
fn names(prompt: &str) -> impl Iterator<Item = &str> {
    let is_name = |name: &&str| {
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        !name.is_empty() && name.chars().all(legal)
    };
    prompt
        .split("{{")
        .skip(1)
        .filter_map(|rest| rest.split_once("}}"))
        .map(|(name, _)| name)
        .filter(is_name)
}

fn is_known(name: &str) -> bool {
    NAMES.contains(&name) || name.strip_prefix("context.").is_some_and(|key| !key.is_empty())
}
