//! The program; see `cli`.

use std::process::ExitCode;

fn main() -> ExitCode {
    agentscope_agui::cli::run()
}
