//! `init`: a configuration to begin with.

use std::{fs::OpenOptions, io::ErrorKind, io::Write, path::Path, path::PathBuf};

use anyhow::anyhow;

use super::{Failure, UNAVAILABLE, print};
use crate::config::STARTER;

/// Arguments of `init`.
#[derive(Debug, clap::Args)]
pub(super) struct InitArguments {
    /// File to write; `-` = standard output.
    #[arg(default_value = "agentscope.yaml", value_name = "FILE")]
    file: PathBuf,
}

pub(super) fn run(arguments: &InitArguments) -> Result<(), Failure> {
    let file = &arguments.file;
    if file == Path::new("-") {
        return print(STARTER);
    }
    let unavailable = |message: String| Failure::new(UNAVAILABLE, anyhow!(message));
    let shown = file.display();
    // Made and opened in one step: a file that appears in between is not overwritten either.
    let made = OpenOptions::new().write(true).create_new(true).open(file);
    let mut made = made.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            unavailable(format!("{shown} exists already and was left as it is"))
        }
        _ => unavailable(format!("{shown} cannot be written: {error}")),
    })?;
    made.write_all(STARTER.as_bytes())
        .map_err(|error| unavailable(format!("{shown} cannot be written: {error}")))?;
    print(&format!("wrote {shown}; next: agentscope-agui serve --config {shown}\n"))
}
