//! The command line: subcommands, exit codes. Nothing else may be called from here only.

mod convert;
mod serve;

use std::{path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};

use crate::config::{self, Environment, Loaded, Source};

/// Exit code: the command line is wrong.
const USAGE: u8 = 64;
/// Exit code: something outside is unavailable, such as the port.
const UNAVAILABLE: u8 = 69;
/// Exit code: the configuration is wrong.
const CONFIG: u8 = 78;

/// Serves AgentScope-style agents to any AG-UI front end over HTTP and SSE.
#[derive(Debug, Parser)]
#[command(name = "agentscope-agui", version, about, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: ServeArguments,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the agents (also what happens without a subcommand).
    Serve(ServeArguments),
    /// Convert AgentEvent JSON lines on stdin to AG-UI frames on stdout.
    Convert(convert::ConvertArguments),
    /// Print the JSON Schema of the configuration file.
    Schema,
}

/// Arguments of `serve`.
#[derive(Clone, Debug, Default, clap::Args)]
struct ServeArguments {
    /// Configuration file; `-` = standard input. Without it: AGENTSCOPE_CONFIG, ./agentscope.yaml,
    /// ./config/agentscope.yaml, /etc/agentscope-agui/agentscope.yaml, else the demo agents.
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Why a command failed, and with which exit code.
#[derive(Debug)]
struct Failure {
    code: u8,
    error: anyhow::Error,
}

impl Failure {
    fn new(code: u8, error: impl Into<anyhow::Error>) -> Self {
        Self { code, error: error.into() }
    }
}

/// Runs the program and gives its exit code.
pub fn run() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error),
    };
    let done = match arguments.command {
        None => serve::run(arguments.serve),
        Some(Command::Serve(arguments)) => serve::run(arguments),
        Some(Command::Convert(arguments)) => convert::run(&arguments),
        Some(Command::Schema) => {
            print_schema();
            Ok(())
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { code, error }) => {
            print_error(&format!("{error:#}"));
            ExitCode::from(code)
        }
    }
}

/// Help and version are asked for and no failure.
fn usage(error: &clap::Error) -> ExitCode {
    let failed = error.use_stderr();
    if error.print().is_err() || failed {
        return ExitCode::from(USAGE);
    }
    ExitCode::SUCCESS
}

/// Loads the configuration that the arguments name.
fn load(arguments: &ServeArguments) -> Result<Loaded, Failure> {
    let source = arguments.config.clone().map_or(Source::Search, Source::File);
    config::load(source, &Environment::of_process()).map_err(|errors| Failure::new(CONFIG, errors))
}

#[expect(clippy::print_stdout, reason = "the schema is what the command is for")]
fn print_schema() {
    println!("{:#}", config::json_schema());
}

#[expect(clippy::print_stderr, reason = "a command's own error goes to the terminal")]
fn print_error(message: &str) {
    eprintln!("error: {message}");
}
