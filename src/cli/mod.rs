//! The command line: subcommands and exit codes. What a command does is the rooms' business.

mod convert;
mod serve;

use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::anyhow;
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
            print(&format!("{:#}\n", config::json_schema()));
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
    if error.print().is_err() {
        tracing::debug!("nobody reads what was printed");
    }
    if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS }
}

/// Loads the configuration that the arguments name.
fn load(arguments: &ServeArguments) -> Result<Loaded, Failure> {
    let source = arguments.config.clone().map_or(Source::Search, Source::File);
    config::load(source, &Environment::of_process()).map_err(|errors| refused(&errors.to_string()))
}

/// All faults of a configuration, each on lines of its own so that editors find the place.
fn refused(faults: &str) -> Failure {
    Failure::new(CONFIG, anyhow!("the configuration is not valid\n{faults}"))
}

/// Writes to the terminal what is no log.
fn print(text: &str) {
    if !matches!(write_out(text.as_bytes()), Ok(Reader::Reads)) {
        tracing::debug!("nobody reads standard output");
    }
}

/// Who stands at the other end of standard output.
enum Reader {
    Reads,
    /// It has seen enough, as in `| head`; no failure.
    Gone,
}

fn write_out(bytes: &[u8]) -> io::Result<Reader> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(Reader::Reads),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(error),
    }
}

/// A command's own error goes to the terminal, not to the log.
fn print_error(message: &str) {
    if writeln!(io::stderr().lock(), "error: {message}").is_err() {
        tracing::debug!("nobody reads standard error");
    }
}
