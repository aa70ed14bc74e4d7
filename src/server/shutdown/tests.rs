//! Connections and their end, over pipes in place of sockets and in time that stands still while
//! anything can go on: what is measured is exact.

use std::io;

use agui_adapter::outbound::{Clock, IdSource};
use axum::body::Body;
use http::Request;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    sync::{mpsc, oneshot},
    task::JoinHandle,
};
use tokio_util::task::TaskTracker;

use super::*;
use crate::{
    agents::registry::Registry,
    config::{self, Config, Environment, Source},
    runs::{RunServiceSetup, Sources},
    server::{router, runtime_context::Resolvers, state::AppState},
};

const AGENTS: &str = r#"
server: {max-concurrent-runs: 2}
agentscope:
  agui: {heartbeat-interval: 0, run-timeout: 0}
  agents:
    short:
      type: scripted
      turns:
        - events:
            - '{"type":"AGENT_START"}'
            - '{"@":"sleep","ms":4000}'
            - '{"type":"AGENT_END"}'
    hangs:
      type: scripted
      turns: [{events: ['{"type":"AGENT_START"}', '{"@":"hang"}']}]
    floods:
      type: scripted
      turns:
        - events:
            - '{"type":"AGENT_START"}'
            - '{"@":"repeat","times":100000000,"line":{"type":"TEXT_BLOCK_DELTA","blockId":"b","delta":"0123456789"}}'
    fills:
      type: scripted
      turns:
        - events:
            - '{"type":"AGENT_START"}'
            - '{"@":"repeat","times":10,"line":{"type":"TEXT_BLOCK_DELTA","blockId":"b","delta":"0123456789"}}'
            - '{"type":"AGENT_END"}'
"#;

const GRACE: Duration = Duration::from_secs(25);
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
const HEAD: Duration = Duration::from_secs(30);
const KEPT: Duration = Duration::from_secs(95);

struct Pipes(mpsc::UnboundedReceiver<io::Result<DuplexStream>>);

impl Accept for Pipes {
    type Io = DuplexStream;

    async fn accept(&mut self) -> io::Result<DuplexStream> {
        self.0.recv().await.unwrap()
    }
}

struct Harness {
    connect: mpsc::UnboundedSender<io::Result<DuplexStream>>,
    runs: RunService,
    drain: Option<oneshot::Sender<()>>,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<Instant>,
}

impl Harness {
    fn start() -> Self {
        let source = Source::Text { name: "test.yaml".into(), text: AGENTS.to_owned() };
        let config = config::load(source, &Environment::default()).unwrap().config;
        Self::serve(config)
    }

    fn serve(config: Config) -> Self {
        let agents = Registry::from_config(&config).unwrap();
        let sources = Sources::new(|| Box::new(OneId), || Box::new(NoTime));
        let setup = RunServiceSetup { sources, ..RunServiceSetup::default() };
        let runs =
            RunService::new(config.server.max_concurrent_runs, config.agui.threads.clone(), setup);
        let resolvers = Resolvers::new(&config.agui.runtime_context);
        let times =
            Times { grace: config.server.shutdown_grace, write_timeout: config.agui.write_timeout };
        let router = router::build(AppState::new(config, agents, resolvers, runs.clone()));
        let (connect, connections) = mpsc::unbounded_channel();
        let (drain, drained) = oneshot::channel::<()>();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = super::serve(
            Pipes(connections),
            router,
            runs.clone(),
            times,
            drained.map(drop),
            stopped.map(drop),
        );
        let served = TaskTracker::new().spawn(async {
            serving.await;
            Instant::now()
        });
        Self { connect, runs, drain: Some(drain), stop: Some(stop), served }
    }

    /// A connection whose pipe holds so many bytes in each direction.
    fn connection(&self, holds: usize) -> DuplexStream {
        let (client, server) = duplex(holds);
        self.connect.send(Ok(server)).unwrap();
        client
    }

    /// A connection on which this was sent.
    async fn sent(&self, request: &str) -> DuplexStream {
        let mut connection = self.connection(1 << 16);
        connection.write_all(request.as_bytes()).await.unwrap();
        connection
    }

    fn tell_to_drain(&mut self) {
        self.drain.take().unwrap().send(()).unwrap();
    }

    fn tell_to_stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// How long the server went on from `since`.
    async fn ended(self, since: Instant) -> Duration {
        self.served.await.unwrap() - since
    }
}

struct OneId;

impl IdSource for OneId {
    fn next_id(&mut self) -> String {
        "id".to_owned()
    }
}

struct NoTime;

impl Clock for NoTime {
    fn now_ms(&self) -> i64 {
        0
    }
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: x\r\nx-request-id: q\r\n\r\n")
}

fn post(agent: &str, thread: &str) -> String {
    let body =
        format!(r#"{{"threadId":"{thread}","runId":"r","protocolVersion":"1.0","messages":[]}}"#);
    format!(
        "POST /agui/{agent} HTTP/1.1\r\nhost: x\r\nx-request-id: q\r\ncontent-type: \
         application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// What came until these words, and with them.
async fn until(connection: &mut DuplexStream, words: &str) -> String {
    let mut text = String::new();
    while !text.ends_with(words) {
        text.push(char::from(connection.read_u8().await.unwrap()));
    }
    text
}

/// What came until the connection was closed.
async fn rest(connection: &mut DuplexStream) -> String {
    let mut text = String::new();
    connection.read_to_string(&mut text).await.unwrap();
    text
}

/// The events of an answer.
fn frames(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("data: ")).collect()
}

/// Status and those headers that say what becomes of the connection and when to come back.
fn answer(text: &str) -> Vec<&str> {
    let (head, _body) = text.split_once("\r\n\r\n").unwrap();
    let shown = ["HTTP/1.1 ", "connection: ", "retry-after: "];
    head.lines().filter(|line| shown.iter().any(|start| line.starts_with(start))).collect()
}

const STARTED: &str =
    r#"{"type":"RUN_STARTED","threadId":"t","runId":"r","protocolVersion":"1.0"}"#;
const SUCCESS: &str =
    r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"success"}}"#;
const SHUT_DOWN: &str = r#"{"type":"RUN_ERROR","message":"The run was stopped: the server is shutting down.","code":"SERVER_SHUTTING_DOWN","timestamp":0}"#;

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_whole_head_is_closed() {
    let server = Harness::start();
    let beginnings = ["", "POST /agui HTTP/1.1\r\nhost: x\r\n", "PRI * HTTP/2.0\r\n"];
    for beginning in beginnings {
        let began = Instant::now();
        let mut connection = server.sent(beginning).await;
        assert_eq!(rest(&mut connection).await, "", "{beginning:?}");
        assert_eq!(began.elapsed(), HEAD, "{beginning:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_kept_for_the_next_request_and_closed_when_none_comes() {
    let server = Harness::start();
    let mut connection = server.sent(&get("/healthz")).await;
    for _ in 0..3 {
        let text = until(&mut connection, "\r\n\r\nok").await;
        assert_eq!(answer(&text), ["HTTP/1.1 200 OK"]);
        sleep(KEPT - Duration::from_millis(1)).await;
        connection.write_all(get("/healthz").as_bytes()).await.unwrap();
    }
    let last = Instant::now();
    until(&mut connection, "\r\n\r\nok").await;
    // Half a head is no request.
    connection.write_all(b"GET /healthz HTTP/1.1\r\n").await.unwrap();
    assert_eq!(rest(&mut connection).await, "");
    assert_eq!(last.elapsed(), KEPT);
}

#[tokio::test(start_paused = true)]
async fn http_2_is_spoken_on_the_same_port() {
    let server = Harness::start();
    let io = TokioIo::new(server.connection(1 << 16));
    let handshake = hyper::client::conn::http2::handshake(TokioExecutor::new(), io);
    let (mut requests, connection) = handshake.await.unwrap();
    let connection = TaskTracker::new().spawn(connection);
    let request = Request::get("http://x/readyz").body(Body::empty()).unwrap();
    let response = requests.send_request(request).await.unwrap();
    assert_eq!(response.status(), 200);
    let body = axum::body::to_bytes(Body::new(response.into_body()), 100).await.unwrap();
    assert_eq!(body, r#"{"status":"ready"}"#);
    // A client that is still there may be silent for long.
    sleep(HEAD * 100).await;
    server.runs.drain();
    let request = Request::get("http://x/readyz").body(Body::empty()).unwrap();
    assert_eq!(requests.send_request(request).await.unwrap().status(), 503);
    drop(requests);
    connection.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn errors_of_the_listener_are_survived() {
    let server = Harness::start();
    let began = Instant::now();
    for kind in [io::ErrorKind::ConnectionAborted, io::ErrorKind::ConnectionReset] {
        server.connect.send(Err(kind.into())).unwrap();
    }
    until(&mut server.sent(&get("/healthz")).await, "\r\n\r\nok").await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    // EMFILE: no file descriptors are left.
    for _ in 0..3 {
        server.connect.send(Err(io::Error::from_raw_os_error(24))).unwrap();
    }
    until(&mut server.sent(&get("/healthz")).await, "\r\n\r\nok").await;
    assert_eq!(began.elapsed(), Duration::from_millis(600));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_nothing_loses_its_connection_and_its_run() {
    let server = Harness::start();
    let mut connection = server.connection(1 << 10);
    connection.write_all(post("floods", "t").as_bytes()).await.unwrap();
    until(&mut connection, "RUN_STARTED").await;
    let began = Instant::now();
    server.runs.drain();
    server.runs.drained().await;
    assert_eq!(began.elapsed(), WRITE_TIMEOUT);
    // The pipe is closed behind what it held.
    let mut left = Vec::new();
    connection.read_to_end(&mut left).await.unwrap();
    assert_eq!(left.len(), 1 << 10);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_little_but_often_keeps_its_connection() {
    let server = Harness::start();
    let mut connection = server.connection(1 << 10);
    connection.write_all(post("fills", "t").as_bytes()).await.unwrap();
    let mut text = Vec::new();
    loop {
        let mut piece = [0; 16];
        sleep(WRITE_TIMEOUT - Duration::from_millis(1)).await;
        let read = connection.read(&mut piece).await.unwrap();
        text.extend_from_slice(&piece[..read]);
        if text.ends_with(b"\r\n0\r\n\r\n") {
            break;
        }
    }
    let text = String::from_utf8(text).unwrap();
    let events = frames(&text);
    let piece = r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"id","delta":"0123456789"}"#;
    let mut expected = vec![STARTED];
    expected.push(r#"{"type":"TEXT_MESSAGE_START","messageId":"id","role":"assistant"}"#);
    expected.extend([piece; 10]);
    expected.extend([r#"{"type":"TEXT_MESSAGE_END","messageId":"id"}"#, SUCCESS]);
    assert_eq!(events, expected);
}

#[tokio::test(start_paused = true)]
async fn without_runs_a_drain_is_the_end() {
    let mut server = Harness::start();
    // One that waits for its next request, one that has half of its first head, one without any.
    let mut kept = server.sent(&get("/healthz")).await;
    until(&mut kept, "\r\n\r\nok").await;
    let mut half = server.sent("GET /healthz HTTP/1.1\r\n").await;
    let mut silent = server.connection(1);
    tokio::task::yield_now().await;
    let began = Instant::now();
    server.tell_to_drain();
    assert_eq!(server.ended(began).await, Duration::ZERO);
    for connection in [&mut kept, &mut half, &mut silent] {
        assert_eq!(rest(connection).await, "");
    }
}

#[tokio::test(start_paused = true)]
async fn a_drain_refuses_new_runs_and_lets_the_others_end() {
    let mut server = Harness::start();
    let mut kept = server.sent(&get("/readyz")).await;
    let ready = until(&mut kept, r#"{"status":"ready"}"#).await;
    assert_eq!(answer(&ready), ["HTTP/1.1 200 OK"]);
    let mut stream = server.sent(&post("short", "t")).await;
    let began = Instant::now();
    let head = until(&mut stream, "RUN_STARTED").await;
    assert_eq!(answer(&head), ["HTTP/1.1 200 OK"]);
    server.tell_to_drain();
    sleep(Duration::from_secs(1)).await;
    // On a connection from before and on new ones.
    kept.write_all(post("short", "u").as_bytes()).await.unwrap();
    let refused = rest(&mut kept).await;
    let status = "HTTP/1.1 503 Service Unavailable";
    assert_eq!(answer(&refused), [status, "retry-after: 1", "connection: close"]);
    let problem = r#"{"type":"about:blank","title":"Service Unavailable","status":503,"detail":"The server is shutting down.","instance":"q"}"#;
    assert_eq!(refused.split_once("\r\n\r\n").unwrap().1, problem);
    let refused = rest(&mut server.sent(&post("short", "u")).await).await;
    assert_eq!(answer(&refused), [status, "retry-after: 1", "connection: close"]);
    let ready = rest(&mut server.sent(&get("/readyz")).await).await;
    assert_eq!(answer(&ready), [status, "connection: close"]);
    let live = rest(&mut server.sent(&get("/healthz")).await).await;
    assert_eq!(answer(&live), ["HTTP/1.1 200 OK", "connection: close"]);
    let text = rest(&mut stream).await;
    assert_eq!(frames(&text), [SUCCESS]);
    assert!(text.ends_with("\r\n0\r\n\r\n"), "{text:?}");
    assert_eq!(server.ended(began).await, Duration::from_secs(4));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_grace_ends_the_runs_that_are_left() {
    let mut server = Harness::start();
    let mut stream = server.sent(&post("hangs", "t")).await;
    until(&mut stream, "\n\n").await;
    let began = Instant::now();
    server.tell_to_drain();
    let text = rest(&mut stream).await;
    assert_eq!(frames(&text), [SHUT_DOWN]);
    assert!(text.ends_with("\r\n0\r\n\r\n"), "{text:?}");
    assert_eq!(server.ended(began).await, GRACE);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_holds_the_server_for_the_grace_and_half_a_second() {
    let mut server = Harness::start();
    let mut connection = server.connection(1 << 10);
    connection.write_all(post("floods", "t").as_bytes()).await.unwrap();
    until(&mut connection, "RUN_STARTED").await;
    let began = Instant::now();
    server.tell_to_drain();
    assert_eq!(server.ended(began).await, GRACE + LAST);
    let mut left = Vec::new();
    connection.read_to_end(&mut left).await.unwrap();
    assert_eq!(left.len(), 1 << 10);
}

#[tokio::test(start_paused = true)]
async fn what_a_run_left_behind_is_sent_until_the_end_of_the_grace() {
    for reads in [true, false] {
        let mut server = Harness::start();
        let mut connection = server.connection(512);
        connection.write_all(post("fills", "t").as_bytes()).await.unwrap();
        until(&mut connection, "RUN_STARTED").await;
        let began = Instant::now();
        server.tell_to_drain();
        sleep(Duration::from_secs(9)).await;
        // The run has ended long ago; its client has not all of it yet.
        if reads {
            let text = rest(&mut connection).await;
            assert_eq!(frames(&text).last(), Some(&SUCCESS));
            assert_eq!(server.ended(began).await, Duration::from_secs(9));
        } else {
            assert_eq!(server.ended(began).await, GRACE + LAST);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_everything_at_once_in_a_drain_and_without_one() {
    for drains in [true, false] {
        let mut server = Harness::start();
        let mut stream = server.sent(&post("hangs", "t")).await;
        until(&mut stream, "\n\n").await;
        let mut unread = server.connection(1 << 10);
        unread.write_all(post("floods", "u").as_bytes()).await.unwrap();
        until(&mut unread, "RUN_STARTED").await;
        if drains {
            server.tell_to_drain();
            sleep(Duration::from_secs(1)).await;
        }
        let began = Instant::now();
        server.tell_to_stop();
        assert_eq!(frames(&rest(&mut stream).await), [SHUT_DOWN]);
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert_eq!(server.ended(began).await, LAST);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_after_the_runs_have_ended_cuts_who_does_not_read() {
    let mut server = Harness::start();
    let mut connection = server.connection(512);
    connection.write_all(post("fills", "t").as_bytes()).await.unwrap();
    until(&mut connection, "RUN_STARTED").await;
    server.tell_to_drain();
    sleep(Duration::from_secs(1)).await;
    let began = Instant::now();
    server.tell_to_stop();
    assert_eq!(server.ended(began).await, LAST);
}
