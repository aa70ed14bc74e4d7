//! A server in this process on a free port, with fixed times and counted ids.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use agentscope_agui::{
    agents::registry::{Registered, Registry},
    config::Config,
    runs::{RunService, Sources},
    server::ServerBuilder,
};
use agui_adapter::outbound::{Clock, IdSource};
use agui_protocol::verify::{self, VerifyInput};
use futures_util::FutureExt;
use reqwest::{RequestBuilder, Response};
use serde_json::Value;
use tokio::{sync::oneshot, task::JoinHandle};
use tokio_util::task::TaskTracker;

use super::sse::{self, Frame};

/// The time on every server's clock.
pub(crate) const NOW_MS: i64 = 1_700_000_000_000;

/// A running server.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) runs: RunService,
    client: reqwest::Client,
    drain: Option<oneshot::Sender<()>>,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<()>,
}

impl TestServer {
    /// Serves these agents with the default settings.
    pub(crate) async fn of(agents: Vec<Registered>) -> Self {
        Self::with(Config::default(), agents).await
    }

    /// Serves these agents with these settings; the port is always a free one.
    pub(crate) async fn with(config: Config, agents: Vec<Registered>) -> Self {
        Self::built(config, agents, |builder| builder).await
    }

    /// The same with extensions.
    pub(crate) async fn built(
        config: Config,
        agents: Vec<Registered>,
        extend: impl FnOnce(ServerBuilder) -> ServerBuilder,
    ) -> Self {
        let builder = agents.into_iter().fold(Registry::builder(), |all, one| all.insert(one));
        let registry = builder.build(&config).unwrap();
        Self::serve(config, registry, extend).await
    }

    /// Serves the agents of a configuration file.
    pub(crate) async fn of_yaml(yaml: &str) -> Self {
        Self::of_yaml_built(yaml, |builder| builder).await
    }

    /// The same with extensions.
    pub(crate) async fn of_yaml_built(
        yaml: &str,
        extend: impl FnOnce(ServerBuilder) -> ServerBuilder,
    ) -> Self {
        let loaded = super::config::load(yaml, &[]);
        let config = loaded.unwrap_or_else(|errors| panic!("{errors}")).config;
        let registry = Registry::from_config(&config).unwrap();
        Self::serve(config, registry, extend).await
    }

    async fn serve(
        mut config: Config,
        registry: Registry,
        extend: impl FnOnce(ServerBuilder) -> ServerBuilder,
    ) -> Self {
        config.server.port = 0;
        let server = extend(ServerBuilder::new(config, registry).sources(counted()));
        let bound = server.bind().await.unwrap();
        let (address, runs) = (bound.local_addr(), bound.runs());
        let (drain, drained) = oneshot::channel::<()>();
        let (stop, stopped) = oneshot::channel::<()>();
        let served = TaskTracker::new().spawn(async move {
            // A dropped sender counts as well: the test is over.
            bound.serve(drained.map(drop), stopped.map(drop)).await;
        });
        let client = super::client();
        Self { address, runs, client, drain: Some(drain), stop: Some(stop), served }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn get(&self, path: &str) -> RequestBuilder {
        self.client.get(self.url(path))
    }

    /// A request with any body.
    pub(crate) fn post(&self, path: &str) -> RequestBuilder {
        self.client.post(self.url(path))
    }

    /// A request with another method.
    pub(crate) fn request(&self, method: &str, path: &str) -> RequestBuilder {
        self.client.request(method.parse().unwrap(), self.url(path))
    }

    /// Starts a run and gives the answer as soon as its head is there.
    pub(crate) async fn start(&self, path: &str, input: &Value) -> Response {
        let response = self.post(path).json(input).send().await.unwrap();
        assert_eq!(response.status(), 200);
        response
    }

    /// Runs to the end and gives the events.
    pub(crate) async fn run(&self, path: &str, input: &Value) -> Vec<Value> {
        checked(self.start(path, input).await, input).await
    }

    /// The same where the stream breaks these rules with a reason: the checker knows neither the
    /// history that the server keeps nor every option.
    pub(crate) async fn run_but(&self, rules: &[&str], path: &str, input: &Value) -> Vec<Value> {
        let body = self.start(path, input).await.text().await.unwrap();
        check(&body, input, rules);
        only_events(&body)
    }

    /// Tells the server to take no more runs and to end behind the last one.
    pub(crate) fn tell_to_drain(&mut self) {
        self.drain.take().unwrap().send(()).unwrap();
    }

    /// Tells the server to end all runs and itself, without waiting for it.
    pub(crate) fn tell_to_stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// Waits until the server has stopped.
    pub(crate) async fn stopped(self) {
        self.served.await.unwrap();
    }
}

/// The events of an answer to this input, which must obey the protocol.
pub(crate) async fn checked(response: Response, input: &Value) -> Vec<Value> {
    let body = response.text().await.unwrap();
    check(&body, input, &[]);
    only_events(&body)
}

/// All events of an answer that holds no comments.
pub(crate) async fn events(response: Response) -> Vec<Value> {
    only_events(&response.text().await.unwrap())
}

fn only_events(body: &str) -> Vec<Value> {
    let events = sse::frames(body).into_iter().map(|frame| match frame {
        Frame::Event(event) => event,
        Frame::Comment(text) => panic!("an unexpected comment: {text}"),
    });
    events.collect()
}

/// Counted ids and a clock that stands still.
pub(crate) fn counted() -> Sources {
    Sources::new(|| Box::new(Counter(0)), || Box::new(Stopped))
}

/// The same with ids that no two runs of a server share: `id-1`, `id-2` and so on.
pub(crate) fn unique() -> Sources {
    let last = Arc::<AtomicU32>::default();
    Sources::new(move || Box::new(Unique(Arc::clone(&last))), || Box::new(Stopped))
}

/// No stream breaks a rule of the protocol, but those.
fn check(body: &str, input: &Value, excused: &[&str]) {
    let mut found = verify::check_body(body.as_bytes(), &VerifyInput::from(input.clone()));
    found.retain(|fault| !excused.contains(&fault.rule));
    // These inputs leave out the history, and so the calls that a resume answers.
    found.retain(|fault| !(input["resume"].is_array() && fault.rule == "TOOL-14"));
    assert_eq!(found, [], "{body}");
}

struct Counter(u32);

impl IdSource for Counter {
    fn next_id(&mut self) -> String {
        self.0 += 1;
        format!("id-{}", self.0)
    }
}

struct Unique(Arc<AtomicU32>);

impl IdSource for Unique {
    fn next_id(&mut self) -> String {
        format!("id-{}", self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

struct Stopped;

impl Clock for Stopped {
    fn now_ms(&self) -> i64 {
        NOW_MS
    }
}
