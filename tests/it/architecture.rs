//! The rules of ARCHITECTURE.md that a compiler does not check.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Which rooms each room may use, besides itself.
const ALLOWED: &[(&str, &[&str])] = &[
    ("config", &[]),
    ("telemetry", &[]),
    ("agents", &["config", "telemetry"]),
    ("runs", &["agents", "config", "telemetry"]),
    ("server", &["runs", "agents", "config", "telemetry"]),
    ("cli", &["server", "runs", "agents", "config", "telemetry"]),
];

/// Longest source file, without its tests.
const MAX_LINES: usize = 500;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() {
            if name != "tests" {
                sources(&path, found);
            }
        } else if name.ends_with(".rs") && name != "tests.rs" {
            found.push(path);
        }
    }
}

/// A file's text up to its tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("a source file");
    text.split("#[cfg(test)]").next().unwrap_or_default().to_owned()
}

fn all_sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["src", "crates/agui-protocol/src", "crates/agui-adapter/src"] {
        sources(&root().join(folder), &mut found);
    }
    found
}

#[test]
fn no_room_uses_one_above_it() {
    let mut faults = Vec::new();
    for (room, allowed) in ALLOWED {
        let mut files = Vec::new();
        sources(&root().join("src").join(room), &mut files);
        for file in files {
            let text = code(&file);
            for (other, _) in ALLOWED.iter().filter(|(other, _)| other != room) {
                let used = text.contains(&format!("crate::{other}")) || nested(&text, other);
                if used && !allowed.contains(other) {
                    faults.push(format!("{} uses {other}", file.display()));
                }
            }
        }
    }
    assert_eq!(faults, [""; 0]);
}

/// `use crate::{ … other:: … }` over several lines.
fn nested(text: &str, other: &str) -> bool {
    text.split("use crate::{").skip(1).any(|rest| {
        let block = rest.split("};").next().unwrap_or_default();
        block.lines().any(|line| {
            let line = line.trim();
            line.starts_with(&format!("{other}::")) || line.contains(&format!(", {other}::"))
        })
    })
}

#[test]
fn the_library_crates_do_no_io_and_know_their_place() {
    let protocol =
        fs::read_to_string(root().join("crates/agui-protocol/Cargo.toml")).expect("toml");
    let adapter = fs::read_to_string(root().join("crates/agui-adapter/Cargo.toml")).expect("toml");
    for dependency in ["tokio", "axum", "reqwest", "agentscope-agui"] {
        assert!(!protocol.contains(dependency) && !adapter.contains(dependency), "{dependency}");
    }
    assert!(!protocol.contains("agui-adapter"));
}

#[test]
fn source_files_are_short() {
    let long: Vec<String> = all_sources()
        .iter()
        .filter(|path| code(path).lines().count() > MAX_LINES)
        .map(|path| path.display().to_string())
        .collect();
    assert_eq!(long, [""; 0]);
}

#[test]
fn tasks_are_spawned_where_shutdown_knows_of_them() {
    let may = |path: &Path| {
        let path = path.display().to_string();
        path.contains("/src/runs/") || path.ends_with("/src/server/shutdown.rs")
    };
    let spawning: Vec<String> = all_sources()
        .iter()
        .filter(|path| !may(path) && code(path).contains("spawn("))
        .map(|path| path.display().to_string())
        .collect();
    assert_eq!(spawning, [""; 0]);
}
