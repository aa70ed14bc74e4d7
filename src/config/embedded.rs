//! Files that are part of the program: the demo configuration and its scripts.

/// The demo configuration.
pub const CONFIG: &str = include_str!("../../config/agentscope.yaml");

/// The file that somebody begins with who writes a configuration of their own.
pub const STARTER: &str = include_str!("../../config/starter.yaml");

/// The demo scripts, by their path relative to the demo configuration. One line per file; a test
/// compares the list with the folder.
pub const DEMO_FILES: &[(&str, &str)] = &[
    ("demo/activity.jsonl", include_str!("../../config/demo/activity.jsonl")),
    ("demo/approval-approved.jsonl", include_str!("../../config/demo/approval-approved.jsonl")),
    ("demo/approval-ask.jsonl", include_str!("../../config/demo/approval-ask.jsonl")),
    ("demo/approval-cancelled.jsonl", include_str!("../../config/demo/approval-cancelled.jsonl")),
    ("demo/approval-denied.jsonl", include_str!("../../config/demo/approval-denied.jsonl")),
    ("demo/approval-help.jsonl", include_str!("../../config/demo/approval-help.jsonl")),
    ("demo/custom.jsonl", include_str!("../../config/demo/custom.jsonl")),
    ("demo/default.jsonl", include_str!("../../config/demo/default.jsonl")),
    ("demo/error-early.jsonl", include_str!("../../config/demo/error-early.jsonl")),
    ("demo/error-panic.jsonl", include_str!("../../config/demo/error-panic.jsonl")),
    ("demo/error.jsonl", include_str!("../../config/demo/error.jsonl")),
    ("demo/external-answered.jsonl", include_str!("../../config/demo/external-answered.jsonl")),
    ("demo/external-ask.jsonl", include_str!("../../config/demo/external-ask.jsonl")),
    ("demo/external-cancelled.jsonl", include_str!("../../config/demo/external-cancelled.jsonl")),
    ("demo/external-help.jsonl", include_str!("../../config/demo/external-help.jsonl")),
    ("demo/form-answered.jsonl", include_str!("../../config/demo/form-answered.jsonl")),
    ("demo/form-ask.jsonl", include_str!("../../config/demo/form-ask.jsonl")),
    ("demo/form-cancelled.jsonl", include_str!("../../config/demo/form-cancelled.jsonl")),
    ("demo/form-help.jsonl", include_str!("../../config/demo/form-help.jsonl")),
    ("demo/frontend-call.jsonl", include_str!("../../config/demo/frontend-call.jsonl")),
    ("demo/frontend-cancelled.jsonl", include_str!("../../config/demo/frontend-cancelled.jsonl")),
    ("demo/frontend-done.jsonl", include_str!("../../config/demo/frontend-done.jsonl")),
    ("demo/frontend-help.jsonl", include_str!("../../config/demo/frontend-help.jsonl")),
    ("demo/limit.jsonl", include_str!("../../config/demo/limit.jsonl")),
    ("demo/long.jsonl", include_str!("../../config/demo/long.jsonl")),
    ("demo/media.jsonl", include_str!("../../config/demo/media.jsonl")),
    ("demo/parallel.jsonl", include_str!("../../config/demo/parallel.jsonl")),
    ("demo/reasoning.jsonl", include_str!("../../config/demo/reasoning.jsonl")),
    ("demo/slow-hang.jsonl", include_str!("../../config/demo/slow-hang.jsonl")),
    ("demo/slow.jsonl", include_str!("../../config/demo/slow.jsonl")),
    ("demo/state-add.jsonl", include_str!("../../config/demo/state-add.jsonl")),
    ("demo/state-done.jsonl", include_str!("../../config/demo/state-done.jsonl")),
    ("demo/state.jsonl", include_str!("../../config/demo/state.jsonl")),
    ("demo/steps.jsonl", include_str!("../../config/demo/steps.jsonl")),
    ("demo/subagents-approved.jsonl", include_str!("../../config/demo/subagents-approved.jsonl")),
    ("demo/subagents-ask.jsonl", include_str!("../../config/demo/subagents-ask.jsonl")),
    ("demo/subagents-cancelled.jsonl", include_str!("../../config/demo/subagents-cancelled.jsonl")),
    ("demo/subagents-denied.jsonl", include_str!("../../config/demo/subagents-denied.jsonl")),
    ("demo/subagents.jsonl", include_str!("../../config/demo/subagents.jsonl")),
    ("demo/text.jsonl", include_str!("../../config/demo/text.jsonl")),
    ("demo/tools.jsonl", include_str!("../../config/demo/tools.jsonl")),
    ("demo/usage.jsonl", include_str!("../../config/demo/usage.jsonl")),
];

/// The content of a file in the program.
pub fn find(path: &str) -> Option<&'static str> {
    let path = path.strip_prefix("./").unwrap_or(path);
    DEMO_FILES.iter().find(|(name, _)| *name == path).map(|(_, content)| *content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_demo_script_is_part_of_the_program() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/config/demo");
        let mut on_disk: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| format!("demo/{}", entry.unwrap().file_name().to_string_lossy()))
            .collect();
        on_disk.sort();
        let mut embedded: Vec<&str> = DEMO_FILES.iter().map(|(name, _)| *name).collect();
        embedded.sort_unstable();
        assert_eq!(embedded, on_disk);
    }
}
