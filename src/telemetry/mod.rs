//! Logs: where they go and what they look like. No business names here.

use tracing_subscriber::{EnvFilter, fmt, prelude::*};

/// How log lines look (`LOG_FORMAT`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Pretty,
    /// One JSON object a line.
    Json,
}

impl LogFormat {
    /// Reads the value of `LOG_FORMAT`; `None` = it is neither `pretty` nor `json`.
    pub fn parse(value: &str) -> Option<Self> {
        match value.to_ascii_lowercase().as_str() {
            "" | "pretty" => Some(Self::Pretty),
            "json" => Some(Self::Json),
            _ => None,
        }
    }
}

/// The value of `RUST_LOG` is no filter.
#[derive(Clone, Debug, thiserror::Error)]
#[error("expected a level or a list such as `info,agentscope_agui=debug`: {0}")]
pub struct BadFilter(String);

/// Whether [`init`] takes this filter.
///
/// # Errors
///
/// The filter cannot be understood.
pub fn check(filter: &str) -> Result<(), BadFilter> {
    parse(filter).map(|_filter| ())
}

/// The library of MCP logs what servers and people say, and addresses that may hold keys. Only
/// who asks for it by name gets it.
const QUIET: &str = "rmcp=off";

fn parse(filter: &str) -> Result<EnvFilter, BadFilter> {
    let filter = if filter.trim().is_empty() { "info" } else { filter };
    let filter = format!("{QUIET},{filter}");
    EnvFilter::try_new(filter).map_err(|error| BadFilter(error.to_string()))
}

/// Sends logs to stderr: what `filter` (`RUST_LOG`) lets through, empty = level info. A second
/// call in one process changes nothing.
///
/// # Errors
///
/// The filter cannot be understood.
pub fn init(format: LogFormat, filter: &str) -> Result<(), BadFilter> {
    let registry = tracing_subscriber::registry().with(parse(filter)?);
    let lines = fmt::layer().with_writer(std::io::stderr);
    let set = match format {
        LogFormat::Json => registry.with(lines.json().flatten_event(true)).try_init(),
        LogFormat::Pretty => {
            use std::io::IsTerminal;
            let color = std::io::stderr().is_terminal();
            registry.with(lines.with_ansi(color)).try_init()
        }
    };
    if set.is_err() {
        tracing::debug!("logs were set up before");
        return Ok(());
    }
    std::panic::set_hook(Box::new(log_panic));
    Ok(())
}

/// A panic is a line of the log like any other. Its message may hold what a client sent, so it is
/// for debugging only.
fn log_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    tracing::error!(place, "a task panicked");
    tracing::debug!(message = panic.payload_as_str().unwrap_or_default(), "a task panicked");
}

#[cfg(test)]
mod tests {
    use tracing::{Level, subscriber::with_default};

    use super::*;

    #[test]
    fn the_library_of_mcp_is_heard_only_by_its_name() {
        let heard = |filter: &str| {
            let registry = tracing_subscriber::registry().with(parse(filter).unwrap());
            with_default(registry, || {
                (
                    tracing::enabled!(target: "rmcp::service", Level::ERROR),
                    tracing::enabled!(target: "agentscope_agui", Level::INFO),
                )
            })
        };
        assert_eq!(heard(""), (false, true));
        assert_eq!(heard("trace"), (false, true));
        assert_eq!(heard("info,rmcp=info"), (true, true));
    }

    #[test]
    fn a_filter_that_cannot_be_understood_is_refused() {
        assert!(init(LogFormat::Pretty, "agentscope_agui=loud").is_err());
        assert!(check(" ").is_ok() && check("debug,agentscope_agui=trace").is_ok());
        assert_eq!(LogFormat::parse("JSON"), Some(LogFormat::Json));
        assert_eq!(LogFormat::parse("xml"), None);
    }
}
