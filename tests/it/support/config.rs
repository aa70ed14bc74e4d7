//! Configurations as texts.

use std::path::PathBuf;

use agentscope_agui::config::{self, Loaded, Source};

/// What a file of this text and these environment variables give, or the errors.
pub(crate) fn load(text: &str, variables: &[(&str, &str)]) -> Result<Loaded, String> {
    let source = Source::Text { name: PathBuf::from("test.yaml"), text: text.to_owned() };
    config::load(source, &variables.iter().copied().collect()).map_err(|errors| errors.to_string())
}
