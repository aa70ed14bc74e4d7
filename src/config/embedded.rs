//! Files that are part of the program: the demo configuration and its scripts.

/// The demo configuration.
pub const CONFIG: &str = include_str!("../../config/agentscope.yaml");

/// The demo scripts, by their path relative to the demo configuration. One line per file; a test
/// compares the list with the folder.
pub const DEMO_FILES: &[(&str, &str)] = &[
    ("demo/default.jsonl", include_str!("../../config/demo/default.jsonl")),
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
