//! `serve`: start-up in order. Nothing is bound before the configuration and all agents are valid.

use std::{
    future::Future,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use anyhow::{Context, anyhow};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::oneshot,
};

use super::{CONFIG, Failure, ServeArguments, UNAVAILABLE, load};
use crate::{
    agents::registry::{BuildError, Registry},
    config::{
        AguiConfig, Config, Loaded,
        place::{self, Places},
    },
    server::Server,
    telemetry::{self, LogFormat},
};

/// How long tasks may take to end once everything is served.
const LET_GO: Duration = Duration::from_millis(200);

pub(super) fn run(arguments: ServeArguments) -> Result<(), Failure> {
    start_logs()?;
    let Loaded { config, warnings, origin, places } = load(&arguments)?;
    tracing::info!(origin = %origin, agents = config.agents.len(), "configuration loaded");
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    let agents = Registry::from_config(&config).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(|error| placed(error, &places)).collect();
        super::refused(&lines.join("\n"))
    })?;
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

/// Logs come first, so that everything after them can be told.
fn start_logs() -> Result<(), Failure> {
    let variable = |name| std::env::var(name).unwrap_or_default();
    let Some(format) = LogFormat::parse(&variable("LOG_FORMAT")) else {
        let message = "environment variable LOG_FORMAT: expected pretty or json";
        return Err(Failure::new(CONFIG, anyhow!(message)));
    };
    telemetry::init(format, &variable("RUST_LOG"))
        .context("environment variable RUST_LOG")
        .map_err(|error| Failure::new(CONFIG, error))
}

/// A fault of an agent with its place: the line of its script, the item of its `events`, else its
/// key.
fn placed(error: &BuildError, places: &Places) -> String {
    let Some(file) = &error.file else {
        return places.error(&error.path, &error.message).to_string();
    };
    let events = file.to_string_lossy();
    let index = error.line.and_then(|line| line.checked_sub(1));
    match index.map(|index| place::item(&events, index)) {
        Some(path) if places.knows(&path) => places.error(&path, &error.message).to_string(),
        _ => error.to_string(),
    }
}

async fn serve(config: Config, agents: Registry) -> anyhow::Result<()> {
    let first = agents.default_agent().or_else(|| agents.iter().next());
    let example = first.map(|agent| Example::of(&config.agui, &agent.info.id));
    // First of all, so that no signal finds the program without its shutdown.
    let (drain, stop) = signals()?;
    let bound = Server::bind(config, agents).await?;
    let address = bound.local_addr();
    tracing::info!(address = %address, "listening");
    if let Some(example) = example {
        super::print(&example.line(address));
    }
    bound.serve(drain, stop).await;
    tracing::info!("stopped");
    Ok(())
}

/// What to try first.
struct Example {
    path: String,
    header: Option<String>,
}

impl Example {
    /// Names the agent where this configuration lets it be named.
    fn of(agui: &AguiConfig, agent: &str) -> Self {
        let prefix = &agui.path_prefix;
        if agui.enable_path_routing {
            return Self { path: format!("{prefix}/{agent}"), header: None };
        }
        let header = format!("{}: {agent}", agui.agent_id_header);
        Self { path: prefix.clone(), header: Some(header) }
    }

    /// A line that works when it is pasted into a shell.
    fn line(&self, address: SocketAddr) -> String {
        let reachable: IpAddr = match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        let host = SocketAddr::new(reachable, address.port());
        let path = &self.path;
        let header =
            self.header.as_ref().map(|header| format!(" -H '{header}'")).unwrap_or_default();
        // Brackets of an IPv6 address and braces would be patterns for curl.
        format!(
            "Try: curl -gN 'http://{host}{path}' -H 'Content-Type: application/json'{header} -d \
             '{{\"threadId\":\"t1\",\"runId\":\"r1\",\"protocolVersion\":\"1.0\",\"messages\":\
             [{{\"id\":\"m1\",\"role\":\"user\",\"content\":\"hello\"}}]}}'\n"
        )
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
    use crate::config::{self, Source};

    fn line(agui: &AguiConfig, address: &str) -> String {
        let line = Example::of(agui, "default").line(address.parse().unwrap());
        line.split(" -d ").next().unwrap().to_owned()
    }

    /// What starting with this text and these variables is refused for.
    fn faults(text: &str, variables: &[(&str, &str)]) -> Vec<String> {
        let source = Source::Text { name: "test.yaml".into(), text: text.to_owned() };
        let Loaded { config, places, .. } =
            config::load(source, &variables.iter().copied().collect()).unwrap();
        let errors = Registry::from_config(&config).unwrap_err();
        errors.iter().map(|error| placed(error, &places)).collect()
    }

    #[test]
    fn faults_of_agents_stand_at_their_place() {
        let text = "agentscope:\n  agui: {default-agent-id: nobody}\n  agents:\n    a.b:\n      \
                    type: scripted\n      turns:\n        - events: ['{}', '{\"@\": \"end\"}', 'x']\n";
        let line = "\n  7 |         - events: ['{}', '{\"@\": \"end\"}', 'x']\n    |";
        assert_eq!(
            faults(text, &[]),
            [
                format!(
                    "test.yaml:7:20: agentscope.agents.\"a.b\".turns[0].events[0]: neither an agent \
                     event (`type`) nor a directive (`@`){line}                    ^"
                ),
                format!(
                    "test.yaml:7:42: agentscope.agents.\"a.b\".turns[0].events[2]: not JSON, column \
                     1: expected value{line}                                          ^"
                ),
                "test.yaml:2:28: agentscope.agui.default-agent-id: there is no agent `nobody`; \
                 agents: a.b\n  2 |   agui: {default-agent-id: nobody}\n    |                            ^"
                    .to_owned(),
            ]
        );
        let sound = "agentscope: {agents: {a: {type: scripted, turns: [{events: []}]}}}";
        assert_eq!(
            faults(sound, &[("AGENTSCOPE_AGUI_DEFAULT_AGENT_ID", "nobody")]),
            ["environment variable AGENTSCOPE_AGUI_DEFAULT_AGENT_ID: \
              agentscope.agui.default-agent-id: there is no agent `nobody`; agents: a"]
        );
    }

    #[test]
    fn the_example_names_an_address_and_a_route_that_work() {
        let mut agui = AguiConfig::default();
        assert_eq!(
            line(&agui, "0.0.0.0:81"),
            "Try: curl -gN 'http://127.0.0.1:81/agui/default' -H 'Content-Type: application/json'"
        );
        agui.enable_path_routing = false;
        assert_eq!(
            line(&agui, "[::]:81"),
            "Try: curl -gN 'http://[::1]:81/agui' -H 'Content-Type: application/json' \
             -H 'X-Agent-Id: default'"
        );
    }
}
