//! `serve`: start-up in order. Nothing is bound before the configuration and all agents are valid.

use std::{
    future::Future,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use anyhow::Context;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::oneshot,
};

use super::{ConfigArguments, Failure, UNAVAILABLE, configured::Configured};
use crate::{
    agents::registry::Registry,
    config::{AguiConfig, AuthConfig, Config},
    server::Server,
};

/// How long tasks may take to end once everything is served.
const LET_GO: Duration = Duration::from_millis(200);

pub(super) fn run(arguments: &ConfigArguments) -> Result<(), Failure> {
    let Configured { logs, config, agents, warnings, origin } = Configured::load(arguments)?;
    logs.start()?;
    tracing::info!(origin = %origin, agents = config.agents.len(), "configuration loaded");
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    raise_file_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("the runtime cannot be started")
        .map_err(|error| Failure::new(UNAVAILABLE, error))?;
    let served = runtime.block_on(serve(config, agents));
    // An agent that does not yield must not hold up the end.
    runtime.shutdown_timeout(LET_GO);
    served.map_err(|error| Failure::new(UNAVAILABLE, error))
}

/// Every connection takes a file descriptor, and the usual limit of a shell is far below
/// `max-concurrent-runs`; a process may raise its own up to the system's.
fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return;
    }
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(error = %error, "the limit of open files cannot be raised");
    }
}

async fn serve(config: Config, agents: Registry) -> anyhow::Result<()> {
    let first = agents.default_agent().or_else(|| agents.iter().next());
    let example = first.map(|agent| Example::of(&config, &agent.info.id));
    // First of all, so that no signal finds the program without its shutdown.
    let (drain, stop) = signals()?;
    let bound = Server::bind(config, agents).await?;
    let address = bound.local_addr();
    tracing::info!(address = %address, "listening");
    if let Some(example) = example {
        // A server serves whether or not somebody reads what to try first.
        super::print(&example.line(address)).ok();
    }
    bound.serve(drain, stop).await;
    tracing::info!("stopped");
    Ok(())
}

/// What to try first.
struct Example {
    path: String,
    headers: Vec<String>,
}

impl Example {
    /// Names the agent where this configuration lets it be named, and somebody who asks.
    fn of(config: &Config, agent: &str) -> Self {
        let AguiConfig { path_prefix, enable_path_routing, agent_id_header, .. } = &config.agui;
        let mut headers = Vec::new();
        if let AuthConfig::TrustedHeader { header } = &config.server.auth {
            headers.push(format!("{header}: somebody"));
        }
        if *enable_path_routing {
            return Self { path: format!("{path_prefix}/{agent}"), headers };
        }
        headers.push(format!("{agent_id_header}: {agent}"));
        Self { path: path_prefix.clone(), headers }
    }

    /// A line that works when it is pasted into a shell.
    fn line(&self, address: SocketAddr) -> String {
        let host = SocketAddr::new(reachable(address.ip()), address.port());
        let path = &self.path;
        let header: String = self.headers.iter().map(|header| format!(" -H '{header}'")).collect();
        // Brackets of an IPv6 address and braces would be patterns for curl.
        format!(
            "Try: curl -gN 'http://{host}{path}' -H 'Content-Type: application/json'{header} -d \
             '{{\"threadId\":\"t1\",\"runId\":\"r1\",\"protocolVersion\":\"1.0\",\"messages\":\
             [{{\"id\":\"m1\",\"role\":\"user\",\"content\":\"hello\"}}]}}'\n"
        )
    }
}

/// The address at which a program on this machine reaches what listens on `ip`.
pub(super) fn reachable(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    }
}

/// Resolve on the first and on the second signal that asks the process to end.
fn signals() -> anyhow::Result<(impl Future<Output = ()>, impl Future<Output = ()>)> {
    let mut signals = Signals::new()?;
    let (hand_over, handed_over) = oneshot::channel();
    let first = async move {
        let name = signals.next().await;
        tracing::info!(signal = name, "told to end");
        hand_over.send(signals).ok();
    };
    let second = async move {
        let Ok(mut signals): Result<Signals, _> = handed_over.await else {
            return std::future::pending().await;
        };
        let name = signals.next().await;
        tracing::info!(signal = name, "told again: stopping at once");
    };
    Ok((first, second))
}

/// The signals that ask the process to end.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("no signals on this system");
        let terminate = listen(SignalKind::terminate())?;
        Ok(Self { terminate, interrupt: listen(SignalKind::interrupt())? })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(config: &Config, address: &str) -> String {
        let line = Example::of(config, "default").line(address.parse().unwrap());
        line.split(" -d ").next().unwrap().to_owned()
    }

    #[test]
    fn the_example_names_an_address_and_a_route_that_work() {
        let mut config = Config::default();
        assert_eq!(
            line(&config, "0.0.0.0:81"),
            "Try: curl -gN 'http://127.0.0.1:81/agui/default' -H 'Content-Type: application/json'"
        );
        config.agui.enable_path_routing = false;
        config.server.auth = AuthConfig::TrustedHeader { header: "x-user-id".parse().unwrap() };
        assert_eq!(
            line(&config, "[::]:81"),
            "Try: curl -gN 'http://[::1]:81/agui' -H 'Content-Type: application/json' \
             -H 'x-user-id: somebody' -H 'X-Agent-Id: default'"
        );
    }
}
