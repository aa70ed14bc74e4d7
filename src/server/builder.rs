//! Where extensions are registered, and where the server is bound and served.

use std::{fmt, future::Future, io, net::SocketAddr, sync::Arc};

use agui_adapter::outbound::{AdapterFactory, Extensions};
use axum::Router;
use tokio::net::TcpListener;

use super::{
    router,
    runtime_context::{Resolvers, RuntimeContextResolver},
    shutdown::{self, Times},
    state::AppState,
};
use crate::{
    agents::registry::Registry,
    config::Config,
    runs::{RunService, RunServiceSetup, Sources},
    store::Store,
    tools::mcp::McpServers,
};

/// The server with the built-in parts only; [`ServerBuilder`] adds a program's own.
#[derive(Debug)]
pub struct Server;

impl Server {
    /// Binds the configured address.
    ///
    /// # Errors
    ///
    /// When the address cannot be bound.
    pub async fn bind(config: Config, agents: Registry) -> Result<Bound, ServeError> {
        ServerBuilder::new(config, agents).bind().await
    }
}

/// Gathers what a program adds: context resolvers, converters, enrichers, an adapter factory.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use agentscope_agui::{
///     agents::{ContextValues, registry::Registry},
///     config::Config,
///     server::{ContextRequest, ResolveError, RuntimeContextResolver, ServerBuilder},
/// };
///
/// struct Locale;
///
/// impl RuntimeContextResolver for Locale {
///     fn resolve(&self, request: &ContextRequest<'_>) -> Result<ContextValues, ResolveError> {
///         let locale = request.header("accept-language").unwrap_or("en");
///         Ok(ContextValues::from_iter([("locale".to_owned(), locale.into())]))
///     }
/// }
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let config = Config::default();
/// let agents = Registry::builder().build(&config).map_err(|faults| faults[0].clone())?;
/// let bound = ServerBuilder::new(config, agents).resolver(0, Arc::new(Locale)).bind().await?;
/// bound.serve(std::future::pending(), std::future::pending()).await;
/// # Ok(())
/// # }
/// ```
pub struct ServerBuilder {
    config: Config,
    agents: Registry,
    resolvers: Resolvers,
    runs: RunServiceSetup,
}

impl ServerBuilder {
    /// A server of these agents, without extensions.
    pub fn new(config: Config, agents: Registry) -> Self {
        let resolvers = Resolvers::new(&config.agui.runtime_context);
        Self { config, agents, resolvers, runs: RunServiceSetup::default() }
    }

    /// Adds a resolver of runtime context; lower orders come first, later ones win a key.
    #[must_use]
    pub fn resolver(mut self, order: i32, resolver: Arc<dyn RuntimeContextResolver>) -> Self {
        self.resolvers.register(order, resolver);
        self
    }

    /// Sets the converters and enrichers.
    #[must_use]
    pub fn extensions(mut self, extensions: Extensions) -> Self {
        self.runs.extensions = Arc::new(extensions);
        self
    }

    /// Sets who makes the adapters of runs.
    #[must_use]
    pub fn adapter_factory(mut self, factory: Arc<dyn AdapterFactory>) -> Self {
        self.runs.factory = Some(factory);
        self
    }

    /// Sets where ids and times come from.
    #[must_use]
    pub fn sources(mut self, sources: Sources) -> Self {
        self.runs.sources = sources;
        self
    }

    /// Sets what keeps the threads; without it they are in the memory of this process.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.runs.store = Some(store);
        self
    }

    /// Binds the configured address.
    ///
    /// # Errors
    ///
    /// When the address cannot be bound.
    pub async fn bind(self) -> Result<Bound, ServeError> {
        let Self { config, agents, resolvers, runs } = self;
        let address = (config.server.host.clone(), config.server.port);
        let shown = format!("{}:{}", address.0, address.1);
        let bound = TcpListener::bind(address).await;
        let listener = bound.map_err(|error| ServeError::Bind { address: shown, error })?;
        let local = listener.local_addr().map_err(ServeError::Address)?;
        let runs =
            RunService::new(config.server.max_concurrent_runs, config.agui.threads.clone(), runs);
        let times =
            Times { grace: config.server.shutdown_grace, write_timeout: config.agui.write_timeout };
        let mcp = Arc::clone(agents.mcp_servers());
        let state = AppState::new(config, agents, resolvers, runs.clone());
        Ok(Bound { listener, local, router: router::build(state), runs, mcp, times })
    }
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder").field("agents", &self.agents).finish_non_exhaustive()
    }
}

/// A server that has its port and serves nobody yet.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    local: SocketAddr,
    router: Router,
    runs: RunService,
    mcp: Arc<McpServers>,
    times: Times,
}

impl Bound {
    /// The address; tells the port when 0 was configured.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The runs of this server.
    pub fn runs(&self) -> RunService {
        self.runs.clone()
    }

    /// Serves until told to end.
    ///
    /// When `drain` resolves, runs under way go on for up to the configured `shutdown-grace` while
    /// new ones are refused with 503; this returns once the last one has ended and its client has
    /// all of it. When `stop` resolves, or the grace is over, the runs that are left end with
    /// `RUN_ERROR`, and this returns half a second later at the latest.
    pub async fn serve(self, drain: impl Future<Output = ()>, stop: impl Future<Output = ()>) {
        let Self { listener, router, runs, mcp, times, .. } = self;
        // They are connected to while the first requests come, and end with the runs.
        mcp.start(runs.tasks(), runs.stopping());
        shutdown::serve(listener, router, runs, times, drain, stop).await;
    }
}

/// Why a server cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be bound.
    #[error("cannot listen on {address}: {error}")]
    Bind {
        /// Host and port as configured.
        address: String,
        /// Why.
        error: io::Error,
    },
    /// The system does not tell which address was bound.
    #[error("cannot tell the address: {0}")]
    Address(io::Error),
}
