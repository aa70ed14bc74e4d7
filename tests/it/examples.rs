//! The configurations that the project ships: all are valid, for the loader and for the schema.

use std::{
    fs,
    path::{Path, PathBuf},
};

use agentscope_agui::{
    agents::registry::Registry,
    config::{self, Environment, Source},
};

use super::schema::schema_faults;

/// All of them.
fn shipped() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("config");
    let mut found: Vec<PathBuf> = [folder.clone(), folder.join("examples")]
        .iter()
        .flat_map(|folder| fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        .collect();
    found.sort();
    found
}

/// The variables that they name without a default.
const KEYS: [&str; 5] =
    ["DASHSCOPE_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "TICKETS_TOKEN"];

fn environment() -> Environment {
    KEYS.into_iter().map(|name| (name, "key")).collect()
}

#[test]
fn every_shipped_configuration_is_valid_and_has_an_example_of_its_own() {
    let mut names = Vec::new();
    for path in shipped() {
        let source = Source::File(path.clone());
        let loaded = config::load(source, &environment());
        let loaded = loaded.unwrap_or_else(|faults| panic!("{faults}"));
        let faults = Registry::from_config(&loaded.config).err().unwrap_or_default();
        assert_eq!(faults, [], "{}", path.display());
        assert_eq!(loaded.warnings, Vec::<String>::new(), "{}", path.display());
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(schema_faults(&text), Vec::<String>::new(), "{}", path.display());
        names.push(path.file_stem().unwrap().to_str().unwrap().to_owned());
    }
    let expected = [
        "agentscope",
        "anthropic",
        "approvals",
        "behind-a-proxy",
        "dashscope",
        "gemini",
        "mcp",
        "minimal",
        "ollama",
        "openai",
        "several-agents",
        "starter",
        "subagents",
    ];
    names.sort();
    assert_eq!(names, expected);
}

#[test]
fn the_model_of_the_starter_is_valid_without_its_comment_signs() {
    let (mut text, mut inside) = (String::new(), false);
    for line in config::STARTER.lines() {
        let bare = line.replacen("# ", "", 1);
        inside = matches!(bare.trim(), "models:" | "helper:") || (inside && !line.is_empty());
        text.push_str(if inside { &bare } else { line });
        text.push('\n');
    }
    let loaded = super::support::config::load(&text, &[("DASHSCOPE_API_KEY", "key")]);
    let config = loaded.unwrap_or_else(|faults| panic!("{faults}")).config;
    assert_eq!(config.models.keys().collect::<Vec<_>>(), ["qwen"]);
    assert_eq!(config.agents.keys().collect::<Vec<_>>(), ["assistant", "helper"]);
    assert_eq!(config.agents["helper"].kind.name(), "react");
    assert_eq!(schema_faults(&text), Vec::<String>::new());
}

#[test]
fn the_configurations_of_the_readme_are_valid() {
    let readme =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let blocks: Vec<&str> =
        readme.split("```yaml\n").skip(1).map(|block| block.split_once("```").unwrap().0).collect();
    assert!(!blocks.is_empty());
    for text in blocks {
        let keys: Vec<_> = KEYS.iter().chain(&["MODEL_KEY"]).map(|name| (*name, "key")).collect();
        let loaded = super::support::config::load(text, &keys);
        let loaded = loaded.unwrap_or_else(|faults| panic!("{faults}"));
        assert_eq!(Registry::from_config(&loaded.config).err(), None);
        assert_eq!(schema_faults(text), Vec::<String>::new());
    }
}
