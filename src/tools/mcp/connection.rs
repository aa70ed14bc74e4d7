//! One connection to an MCP server: made, attended to while it lasts, closed.

use std::{collections::HashMap, future::Future, pin::pin, sync::Arc, time::Duration};

use futures_util::{
    StreamExt,
    future::{BoxFuture, FusedFuture, FutureExt},
    stream::FuturesUnordered,
};
use http::{HeaderName, HeaderValue};
use rmcp::{
    Peer, RoleClient, ServiceError,
    model::{ProtocolVersion, SubscriptionFilter},
    service::{
        ClientInitializeError, ClientLifecycleMode, RequestHandle, RunningService,
        serve_client_with_lifecycle_and_ct,
    },
    transport::{
        StreamableHttpClientTransport, Transport, async_rw::AsyncRwTransport,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use tokio::{
    sync::mpsc::{self, UnboundedReceiver, UnboundedSender},
    task::JoinHandle,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    client::Client,
    fault,
    link::Link,
    listing::{self, LeftOut, Listing},
    process::Process,
    server::{Hub, Setup},
    tap::{Broken, Tap, Tapped},
};
use crate::{config::mcp_servers::McpTransport, process::PIPES_CLOSE_WITHIN, tools::ToolSpec};

/// How long a connection may take to close.
const CLOSES_WITHIN: Duration = Duration::from_secs(3);
/// After so long a subscription that ended is made again.
const LISTEN_AGAIN: Duration = Duration::from_secs(5);
/// Rest between two lists of tools, however often the server says that they changed.
const LIST_AGAIN: Duration = Duration::from_secs(1);
/// Requests of one connection at once over HTTP.
const MAX_REQUESTS: usize = 1_024;
/// Why requests are cancelled, for the server.
const CANCELLED: &str = "the call was cancelled";

/// What calls need of a connection.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) peer: Peer<RoleClient>,
    pub(super) tap: Arc<Tap>,
    cancels: UnboundedSender<RequestHandle<RoleClient>>,
}

impl Live {
    /// Nobody waits for this request any more: the server is told.
    pub(super) fn give_up(&self, request: RequestHandle<RoleClient>) {
        // With the connection its requests end.
        self.cancels.send(request).ok();
    }

    /// The connection may be broken: it is looked at.
    pub(super) fn doubt(&self) {
        self.tap.relist.notify_one();
    }
}

/// A connection that is ready.
pub(super) struct Connection {
    pub(super) live: Arc<Live>,
    pub(super) tools: Arc<[ToolSpec]>,
    left_out: Vec<LeftOut>,
    running: RunningService<RoleClient, Client>,
    close: CancellationToken,
    cancels: UnboundedReceiver<RequestHandle<RoleClient>>,
    program: Option<Program>,
}

/// The process behind a connection, and the task that keeps it.
struct Program {
    stop: CancellationToken,
    died: CancellationToken,
    kept: JoinHandle<()>,
}

impl Program {
    fn keep(process: Process, hub: &Hub) -> Self {
        let (stop, died) = (CancellationToken::new(), CancellationToken::new());
        let kept = hub.run(process.keep(stop.clone(), died.clone()));
        Self { stop, died, kept }
    }

    async fn end(self) {
        self.stop.cancel();
        if let Err(error) = self.kept.await {
            tracing::error!(%error, "what keeps the program of an MCP server failed");
        }
    }
}

/// Makes a connection and lists the tools; within the server's timeout, the whole of it.
pub(super) async fn open(
    setup: &Setup,
    hub: &Hub,
    stop: &CancellationToken,
) -> Result<Connection, String> {
    let auto = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: None,
    };
    match open_as(auto, setup, hub, stop).await {
        // It knows how the new protocol begins, and speaks only older ones.
        Err(Unready::Older) => {
            let older = ClientLifecycleMode::Initialize;
            open_as(older, setup, hub, stop).await.map_err(Unready::cause)
        }
        opened => opened.map_err(Unready::cause),
    }
}

/// Why there is no connection.
enum Unready {
    /// The server speaks the new protocol's lifecycle in older versions only.
    Older,
    /// Anything else.
    Failed(String),
}

impl Unready {
    fn cause(self) -> String {
        match self {
            Self::Older => {
                "it speaks no version of the protocol that this server speaks".to_owned()
            }
            Self::Failed(cause) => cause,
        }
    }
}

impl From<String> for Unready {
    fn from(cause: String) -> Self {
        Self::Failed(cause)
    }
}

impl From<ClientInitializeError> for Unready {
    fn from(error: ClientInitializeError) -> Self {
        match error {
            ClientInitializeError::NoCompatibleProtocolVersion { .. } => Self::Older,
            other => Self::Failed(fault::initialize(&other)),
        }
    }
}

async fn open_as(
    lifecycle: ClientLifecycleMode,
    setup: &Setup,
    hub: &Hub,
    stop: &CancellationToken,
) -> Result<Connection, Unready> {
    let config = &setup.config;
    let tap = Arc::new(Tap::default());
    let client =
        Client { tap: Arc::clone(&tap), elicitation: config.elicitation, patience: config.timeout };
    let close = CancellationToken::new();
    let (program, ready) = match &config.transport {
        McpTransport::Stdio { .. } => {
            let (process, stdout, stdin) = Process::start(&setup.name, &config.transport)?;
            let program = Program::keep(process, hub);
            let transport = Tapped::new(AsyncRwTransport::new_client(stdout, stdin), tap);
            let ready = ready(lifecycle, setup, client, transport, &close, stop).await;
            (Some(program), ready)
        }
        McpTransport::Http { url, headers } => {
            let headers = headers.iter().map(|(name, value)| header(name, value.expose()));
            let headers = headers.collect::<Result<HashMap<_, _>, _>>()?;
            let mut to = StreamableHttpClientTransportConfig::with_uri(url.as_str())
                .custom_headers(headers)
                .max_concurrent_requests(MAX_REQUESTS);
            to.retry_config = Arc::new(Broken(Arc::clone(&tap)));
            let transport = StreamableHttpClientTransport::with_client(setup.client.clone(), to);
            let transport = Tapped::new(transport, tap);
            (None, ready(lifecycle, setup, client, transport, &close, stop).await)
        }
    };
    match ready {
        Ok((running, listing)) => {
            listing.log(&setup.name);
            let Listing { tools, left_out } = listing;
            let (sender, cancels) = mpsc::unbounded_channel();
            let (peer, tap) = (running.peer().clone(), Arc::clone(&running.service().tap));
            let live = Arc::new(Live { peer, tap, cancels: sender });
            Ok(Connection { live, tools, left_out, running, close, cancels, program })
        }
        Err(cause) => {
            if let Some(program) = program {
                program.end().await;
            }
            Err(cause)
        }
    }
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let fault = || format!("the header `{name}` cannot be sent");
    let header = HeaderName::try_from(name).map_err(|_invalid| fault())?;
    let mut value = HeaderValue::try_from(value).map_err(|_invalid| fault())?;
    value.set_sensitive(true);
    Ok((header, value))
}

/// Shakes hands and lists the tools.
async fn ready<T: Transport<RoleClient> + 'static>(
    lifecycle: ClientLifecycleMode,
    setup: &Setup,
    client: Client,
    transport: T,
    close: &CancellationToken,
    stop: &CancellationToken,
) -> Result<(RunningService<RoleClient, Client>, Listing), Unready> {
    let shaken = serve_client_with_lifecycle_and_ct(client, transport, lifecycle, close.clone());
    let ready = async {
        let running = Box::pin(shaken).await?;
        let listing = listing::list(running.peer()).await;
        Ok((running, listing.map_err(|error| fault::service(&error))?))
    };
    tokio::select! {
        ready = timeout(setup.config.timeout, ready) => {
            ready.unwrap_or_else(|_late| Err("it was not ready in time".to_owned().into()))
        }
        () = stop.cancelled() => Err("it was told to stop".to_owned().into()),
    }
}

/// Something that was to be done beside.
enum Done {
    Nothing,
    Listed(Result<Listing, ServiceError>),
    /// The list may be asked for again.
    Rested,
}

type Work<'a> = FuturesUnordered<BoxFuture<'a, Done>>;

impl Connection {
    /// Serves it until it is over, or has to be.
    pub(super) async fn attend(self, setup: &Setup, link: &Link) {
        let Self { live, running, close, mut cancels, program, mut left_out, .. } = self;
        let mut over = pin!(running.waiting().fuse());
        let mut died = pin!(died(program.as_ref().map(|program| program.died.clone())));
        let mut work = Work::new();
        if listens(&live.peer) {
            work.push(listen(&live).boxed());
        }
        let mut listing = false;
        loop {
            tokio::select! {
                _reason = &mut over => break,
                () = link.stop.cancelled() => break,
                () = &mut died => break,
                () = link.unused() => break,
                () = live.tap.relist.notified(), if !listing => {
                    listing = true;
                    work.push(list(setup, &live).boxed());
                }
                Some(request) = cancels.recv() => work.push(cancel(request).boxed()),
                Some(done) = work.next() => match done {
                    Done::Nothing => {}
                    Done::Rested => listing = false,
                    Done::Listed(Ok(listed)) => {
                        work.push(sleep(LIST_AGAIN).map(|()| Done::Rested).boxed());
                        // Said once, as long as it is the same.
                        if listed.left_out != left_out {
                            listed.log(&setup.name);
                        }
                        left_out = listed.left_out;
                        link.is_ready(&live, listed.tools);
                    }
                    Done::Listed(Err(error)) => {
                        work.push(sleep(LIST_AGAIN).map(|()| Done::Rested).boxed());
                        let (server, cause) = (&*setup.name, fault::service(&error));
                        tracing::warn!(mcp.server = server, cause, "the tools cannot be listed");
                        if fault::is_connection(&error) {
                            break;
                        }
                    }
                },
            }
        }
        live.tap.gone.cancel();
        close.cancel();
        if !over.is_terminated() {
            timeout(CLOSES_WITHIN, over).await.ok();
        }
        if let Some(program) = program {
            program.end().await;
        }
    }
}

/// Resolves when the program has ended and what it said was read.
async fn died(program: Option<CancellationToken>) {
    match program {
        Some(program) => program.cancelled().await,
        None => std::future::pending().await,
    }
    sleep(PIPES_CLOSE_WITHIN).await;
}

async fn list(setup: &Setup, live: &Live) -> Done {
    let limit = setup.config.timeout;
    let listing = timeout(limit, listing::list(&live.peer)).await;
    Done::Listed(listing.unwrap_or(Err(ServiceError::Timeout { timeout: limit })))
}

fn cancel(request: RequestHandle<RoleClient>) -> impl Future<Output = Done> {
    request.cancel(Some(CANCELLED.to_owned())).map(|_sent| Done::Nothing)
}

/// Whether the server tells of changes only who subscribed to them.
fn listens(peer: &Peer<RoleClient>) -> bool {
    peer.peer_info().is_some_and(|info| {
        let tools = info.capabilities.tools.as_ref();
        info.protocol_version >= ProtocolVersion::V_2026_07_28
            && tools.is_some_and(|tools| tools.list_changed == Some(true))
    })
}

/// Keeps a subscription to changes of the list; the [`Tap`] sees them.
async fn listen(live: &Live) -> Done {
    loop {
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        match live.peer.listen(filter).await {
            Ok(mut subscription) => while let Ok(Some(_)) = subscription.next().await {},
            Err(ServiceError::McpError(_) | ServiceError::TransportClosed) => return Done::Nothing,
            Err(_failed) => {}
        }
        sleep(LISTEN_AGAIN).await;
        // What changed meanwhile was told to nobody.
        live.tap.relist.notify_one();
    }
}
