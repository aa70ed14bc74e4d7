//! The connections of a server: accepting them, speaking HTTP on them, closing them.
//!
//! HTTP/1.1 and HTTP/2 without TLS on one port. A connection is a task, and so is every stream of
//! HTTP/2; [`Connections`] knows of all of them. Nothing that one connection does holds up the
//! accepting of others.

use std::{
    convert::Infallible,
    future::Future,
    io,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{Router, response::Response};
use http::{HeaderValue, Request, Version, header};
use hyper::{
    body::Incoming,
    rt::Executor,
    service::{Service, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::conn::auto::Builder,
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    time::{Instant, Sleep, sleep},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::socket::{Impatient, Transport};
use crate::runs::RunService;

/// How long a client may take for the head of its first request.
const HEAD: Duration = Duration::from_secs(30);

/// How long a connection is kept open for the head of the next one. Proxies keep theirs for up to
/// 90 seconds; a request that they send while it is being closed is lost.
const KEPT: Duration = Duration::from_secs(95);

/// After this long a silence an HTTP/2 client is asked whether it is still there.
const PING: Duration = Duration::from_secs(30);

/// How long accepting rests when the system has no resources for another connection.
const REST: Duration = Duration::from_millis(200);

/// How long the log is silent about that once it has told it.
const TOLD: Duration = Duration::from_secs(10);

/// Where connections come from.
pub(super) trait Accept: Send {
    /// A connection.
    type Io: Transport;

    /// The next one.
    fn accept(&mut self) -> impl Future<Output = io::Result<Self::Io>> + Send;
}

impl Accept for TcpListener {
    type Io = TcpStream;

    async fn accept(&mut self) -> io::Result<TcpStream> {
        let (stream, _peer) = TcpListener::accept(self).await?;
        // A delta is small and must not wait for the acknowledgement of the one before.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(error = %error, "TCP_NODELAY cannot be set");
        }
        Ok(stream)
    }
}

/// All connections of a server.
pub(super) struct Connections(Arc<Shared>);

struct Shared {
    router: TowerToHyperService<Router>,
    runs: RunService,
    http: Builder<Tracked>,
    write_timeout: Option<Duration>,
    tasks: TaskTracker,
    /// Cancelled when connections have to end as soon as they owe nothing.
    closing: CancellationToken,
    /// Cancelled when they have to end as they are.
    cut: CancellationToken,
}

impl Connections {
    /// No connection yet. While `runs` drain, every answer is the last one of its connection.
    pub(super) fn new(router: Router, runs: RunService, write_timeout: Option<Duration>) -> Self {
        let tasks = TaskTracker::new();
        let mut http = Builder::new(Tracked(tasks.clone()));
        http.http1().timer(TokioTimer::new()).header_read_timeout(KEPT);
        http.http2().timer(TokioTimer::new()).keep_alive_interval(PING);
        Self(Arc::new(Shared {
            router: TowerToHyperService::new(router),
            runs,
            http,
            write_timeout,
            tasks,
            closing: CancellationToken::new(),
            cut: CancellationToken::new(),
        }))
    }

    /// Serves whoever connects. An error of the listener is survived: connections that end give
    /// back what it lacked, and meanwhile new ones wait in the system's queue.
    pub(super) async fn accept(&self, listener: &mut impl Accept) -> Infallible {
        let mut told: Option<Instant> = None;
        loop {
            match listener.accept().await {
                Ok(io) => drop(self.0.tasks.spawn(serve(Arc::clone(&self.0), io))),
                Err(error) if concerns_one_client(&error) => {}
                Err(error) => {
                    if told.is_none_or(|told| told.elapsed() >= TOLD) {
                        tracing::error!(error = %error, "no connection can be accepted for now");
                        told = Some(Instant::now());
                    }
                    sleep(REST).await;
                }
            }
        }
    }

    /// Lets connections end, each when it has sent what it owes, and waits for them.
    pub(super) async fn close(&self) {
        self.0.closing.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    /// Ends connections whatever they owe.
    pub(super) fn cut(&self) {
        self.0.cut.cancel();
    }
}

/// The client gave up before it was accepted; nothing is wrong here.
fn concerns_one_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// One connection from its beginning to its end.
async fn serve(shared: Arc<Shared>, io: impl Transport) {
    let asked = Arc::new(AtomicBool::new(false));
    let has_asked = Arc::clone(&asked);
    let answers = &shared;
    let service = service_fn(move |request| {
        has_asked.store(true, Ordering::Relaxed);
        answer(answers, request)
    });
    let io = TokioIo::new(Impatient::new(io, shared.write_timeout));
    let mut connection = pin!(shared.http.serve_connection(io, service));
    // HTTP's own limit is for later requests, and HTTP/2 has none.
    let mut first = Some(Box::pin(sleep(HEAD)));
    let mut told = pin!(shared.closing.cancelled());
    let mut closing = false;
    loop {
        tokio::select! {
            served = connection.as_mut() => {
                if let Err(error) = served {
                    tracing::debug!(error = %error, "a connection failed");
                }
                return;
            }
            () = wait(&mut first) => {
                if !asked.load(Ordering::Relaxed) {
                    return;
                }
                first = None;
            }
            () = told.as_mut() => {
                // Nothing is owed to a client that has not asked, and nothing more after a cut.
                if closing || !asked.load(Ordering::Relaxed) {
                    return;
                }
                closing = true;
                connection.as_mut().graceful_shutdown();
                told.set(shared.cut.cancelled());
            }
        }
    }
}

async fn wait(timer: &mut Option<Pin<Box<Sleep>>>) {
    match timer {
        Some(timer) => timer.await,
        None => std::future::pending().await,
    }
}

type Answer = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

/// The router's answer. Boxed, so that a stream does not hold the room that its handler needed.
fn answer(shared: &Shared, request: Request<Incoming>) -> Answer {
    let one_of_many = request.version() <= Version::HTTP_11;
    let answer = shared.router.call(request);
    let runs = shared.runs.clone();
    Box::pin(async move {
        let mut response = answer.await?;
        // The next request has to find another server.
        if one_of_many && runs.is_draining() {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
        Ok(response)
    })
}

/// Starts the tasks of HTTP/2 streams.
#[derive(Clone)]
struct Tracked(TaskTracker);

impl<F> Executor<F> for Tracked
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, stream: F) {
        self.0.spawn(stream);
    }
}
