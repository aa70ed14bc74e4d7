//! The command line: subcommands and exit codes. What a command does is the rooms' business.

mod check;
mod configured;
mod convert;
mod health;
mod init;
mod serve;

use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::Context;
use clap::{Parser, Subcommand};

use crate::config::{self, Source};

/// Exit code: the command line is wrong.
const USAGE: u8 = 64;
/// Exit code: something outside is unavailable, such as the port.
const UNAVAILABLE: u8 = 69;
/// Exit code: the configuration is wrong.
const CONFIG: u8 = 78;

/// Serves AgentScope-style agents to any AG-UI front end over HTTP and SSE.
#[derive(Debug, Parser)]
#[command(name = "agentscope-agui", version, about, args_conflicts_with_subcommands = true)]
#[command(
    after_help = "Exit codes: 0 success, 64 wrong usage, 65 wrong input (convert), 69 something \
                        outside is unavailable, 78 wrong configuration"
)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: ConfigArguments,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the agents (also what happens without a subcommand).
    Serve(ConfigArguments),
    /// Check the configuration as `serve` would, and say what would be served.
    Check(ConfigArguments),
    /// Write a configuration to begin with; an existing file is never overwritten.
    Init(init::InitArguments),
    /// Ask the server of this configuration and environment whether it is ready.
    Health(ConfigArguments),
    /// Convert AgentEvent JSON lines on stdin to AG-UI frames on stdout.
    Convert(convert::ConvertArguments),
    /// Print a JSON Schema of the configuration file, for editors.
    Schema,
}

/// Where the configuration is.
#[derive(Clone, Debug, Default, clap::Args)]
struct ConfigArguments {
    /// Configuration file; `-` = standard input. Without it: AGENTSCOPE_CONFIG, ./agentscope.yaml,
    /// ./config/agentscope.yaml, /etc/agentscope-agui/agentscope.yaml, else the demo agents.
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl ConfigArguments {
    fn source(&self) -> Source {
        self.config.clone().map_or(Source::Search, Source::File)
    }
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
        None => serve::run(&arguments.serve),
        Some(Command::Serve(arguments)) => serve::run(&arguments),
        Some(Command::Check(arguments)) => check::run(&arguments),
        Some(Command::Init(arguments)) => init::run(&arguments),
        Some(Command::Health(arguments)) => health::run(&arguments),
        Some(Command::Convert(arguments)) => convert::run(&arguments),
        Some(Command::Schema) => print(&format!("{:#}\n", config::json_schema())),
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

/// Writes what a command was asked for to standard output; a reader that has seen enough is no
/// failure, a full disk is one.
fn print(text: &str) -> Result<(), Failure> {
    let written = write_out(text.as_bytes()).context("standard output cannot be written");
    match written.map_err(|error| Failure::new(UNAVAILABLE, error))? {
        Reader::Reads => {}
        Reader::Gone => tracing::debug!("nobody reads standard output"),
    }
    Ok(())
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
    print_aside(&format!("error: {message}"));
}

/// Tells the person at the terminal what is not the command's output.
fn print_aside(line: &str) {
    if writeln!(io::stderr().lock(), "{line}").is_err() {
        tracing::debug!("nobody reads standard error");
    }
}
