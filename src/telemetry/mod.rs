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

/// Sends logs to stderr, from level info unless `RUST_LOG` says otherwise. A second call in one
/// process changes nothing.
pub fn init(format: LogFormat) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let registry = tracing_subscriber::registry().with(filter);
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
    }
}
