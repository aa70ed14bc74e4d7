//! `serve`: start-up in order. Nothing is bound before the configuration and all agents are valid.

use std::{future::Future, net::SocketAddr};

use anyhow::{Context, anyhow};

use super::{CONFIG, Failure, ServeArguments, UNAVAILABLE, load};
use crate::{
    agents::registry::Registry,
    config::{Config, Loaded},
    server::Server,
    telemetry::{self, LogFormat},
};

pub(super) fn run(arguments: ServeArguments) -> Result<(), Failure> {
    telemetry::init(log_format()?);
    let Loaded { config, warnings, origin, .. } = load(&arguments)?;
    tracing::info!(origin = %origin, agents = config.agents.len(), "configuration loaded");
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    let agents = Registry::from_config(&config).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Failure::new(CONFIG, anyhow!("{}", lines.join("\n")))
    })?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("the runtime cannot be started")
        .map_err(|error| Failure { code: UNAVAILABLE, error })?;
    runtime.block_on(serve(config, agents)).map_err(|error| Failure { code: UNAVAILABLE, error })
}

fn log_format() -> Result<LogFormat, Failure> {
    let value = std::env::var("LOG_FORMAT").unwrap_or_default();
    LogFormat::parse(&value).ok_or_else(|| {
        Failure::new(CONFIG, anyhow!("environment variable LOG_FORMAT: expected pretty or json"))
    })
}

async fn serve(config: Config, agents: Registry) -> anyhow::Result<()> {
    let prefix = config.agui.path_prefix.clone();
    let first = agents.default_agent().or_else(|| agents.iter().next());
    let example = first.map(|agent| agent.info.id.clone());
    let bound = Server::bind(config, agents).await?;
    let address = bound.local_addr();
    tracing::info!(address = %address, "listening");
    if let Some(agent) = example {
        print_example(address, &prefix, &agent);
    }
    bound.serve(stopped()?).await?;
    tracing::info!("stopped");
    Ok(())
}

/// A line that works when it is pasted into a shell.
#[expect(clippy::print_stdout, reason = "what to try first is for the terminal, not for the log")]
fn print_example(address: SocketAddr, prefix: &str, agent: &str) {
    let host = if address.ip().is_unspecified() {
        SocketAddr::new([127, 0, 0, 1].into(), address.port())
    } else {
        address
    };
    println!(
        "Try: curl -N http://{host}{prefix}/{agent} -H 'Content-Type: application/json' -d \
         '{{\"threadId\":\"t1\",\"runId\":\"r1\",\"protocolVersion\":\"1.0\",\"messages\":\
         [{{\"id\":\"m1\",\"role\":\"user\",\"content\":\"hello\"}}]}}'"
    );
}

/// Resolves on the first signal that asks the process to end.
fn stopped() -> anyhow::Result<impl Future<Output = ()> + Send + 'static> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).context("no signals on this system")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("no signals on this system")?;
    Ok(async move {
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        tracing::info!(signal = name, "stopping");
    })
}
