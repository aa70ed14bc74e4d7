//! What a run costs beside the least that could be done, measured side by side in one process:
//! `cargo bench`. Figures are ratios; absolute ones would be those of a machine.

use std::{
    error::Error,
    fs,
    io::{Read, Write, stdout},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    time::{Duration, Instant},
};

use agentscope_agui::{
    agents::{
        Agent, AgentRequest, AgentStream,
        registry::{AgentInfo, Registered, Registry},
    },
    config::Config,
    runs::Sources,
    server::ServerBuilder,
};
use agui_adapter::{
    model::{AgentEvent, AgentEventKind, event::EndReason},
    options::Peer,
    outbound::{Adapter, AdapterParts, Extensions, RunSetup},
};
use agui_protocol::{RunAgentInput, sse};
use async_stream::stream;
use axum::{Router, response::sse as plain, routing::post};
use bytes::BytesMut;
use futures_util::{Stream, StreamExt, stream as streams};
use serde::Serialize;
use serde_json::json;
use tokio::{net::TcpListener, runtime::Runtime};
use tokio_util::task::TaskTracker;

type Done<T> = Result<T, Box<dyn Error>>;

const DELTAS: usize = 200_000;
const ROUNDS: usize = 7;
const HELD: usize = 2_000;
const TEXT: &str = "twenty bytes of text";

fn main() -> Done<()> {
    let mut table = vec![("", "this", "least", "ratio")].into_iter().map(row).collect::<Vec<_>>();
    let (ours, least) = conversion()?;
    table.push(times("convert and encode, per delta (least: encode a struct)", ours, least));
    let runtime = Runtime::new()?;
    let address = runtime.block_on(serve())?;
    let bare = runtime.block_on(serve_bare())?;
    let (ours, least) = alternately(
        || whole(address, "/agui/talks").map(drop),
        || whole(bare, "/talks").map(drop),
    )?;
    table.push(times("whole stream over HTTP, per delta (least: axum's Sse)", ours, least));
    let (ours, least) = (held(address, "/agui/waits")?, held(bare, "/waits")?);
    let ratio = format!("{:.2}", ours as f64 / least as f64);
    let kib = |bytes: usize| format!("{:.1} KiB", bytes as f64 / 1024.0);
    table.push(row(("held idle stream (least: axum's Sse)", &kib(ours), &kib(least), &ratio)));
    stdout().write_all(table.concat().as_bytes())?;
    // The held streams never end by themselves.
    runtime.shutdown_background();
    Ok(())
}

fn row((what, ours, least, ratio): (&str, &str, &str, &str)) -> String {
    format!("{what:<58} {ours:>10} {least:>10} {ratio:>6}\n")
}

fn times(what: &str, ours: Duration, least: Duration) -> String {
    let each = |time: Duration| format!("{:.0} ns", time.as_nanos() as f64 / DELTAS as f64);
    let ratio = format!("{:.2}", ours.as_secs_f64() / least.as_secs_f64());
    row((what, &each(ours), &each(least), &ratio))
}

/// The medians of both, run by turns so that both see the same machine.
fn alternately(
    mut ours: impl FnMut() -> Done<()>,
    mut least: impl FnMut() -> Done<()>,
) -> Done<(Duration, Duration)> {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        for (one, times) in
            [(&mut ours as &mut dyn FnMut() -> Done<()>, &mut first), (&mut least, &mut second)]
        {
            let began = Instant::now();
            one()?;
            times.push(began.elapsed());
        }
    }
    let median = |times: &mut Vec<Duration>| {
        times.sort();
        times.get(ROUNDS / 2).copied().unwrap_or_default()
    };
    Ok((median(&mut first), median(&mut second)))
}

fn start() -> AgentEvent {
    AgentEvent::local(AgentEventKind::AgentStart {
        reply: Some("reply".to_owned()),
        session: None,
        name: "agent".to_owned(),
    })
}

fn delta() -> AgentEvent {
    AgentEvent::local(AgentEventKind::TextBlockDelta {
        reply: "reply".to_owned(),
        block: "block".to_owned(),
        delta: TEXT.to_owned(),
    })
}

fn end() -> AgentEvent {
    AgentEvent::local(AgentEventKind::AgentEnd { reply: None, reason: EndReason::Completed })
}

/// The frame of a delta, for whoever makes it by hand.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Delta<'a> {
    r#type: &'a str,
    message_id: &'a str,
    delta: &'a str,
}

const FRAME: Delta<'static> =
    Delta { r#type: "TEXT_MESSAGE_CONTENT", message_id: "6f0c4f0de4a14b39-1", delta: TEXT };

fn conversion() -> Done<(Duration, Duration)> {
    alternately(convert, || {
        let mut frames = BytesMut::new();
        for _ in 0..DELTAS {
            frames.extend_from_slice(b"data: ");
            frames.extend_from_slice(&serde_json::to_vec(&FRAME)?);
            frames.extend_from_slice(b"\n\n");
            if frames.len() > 1 << 16 {
                std::hint::black_box(&frames);
                frames.clear();
            }
        }
        Ok(())
    })
}

fn convert() -> Done<()> {
    let input = json!({"threadId": "t", "runId": "r", "protocolVersion": "1.0", "messages": []});
    let input = Arc::new(RunAgentInput::from_value(input)?.input);
    let sources = Sources::default();
    let mut adapter = Adapter::new(AdapterParts {
        setup: RunSetup::new(input, Peer::Current),
        options: Arc::default(),
        extensions: Arc::new(Extensions::default()),
        context: Arc::default(),
        ids: sources.ids(),
        clock: sources.clock(),
    });
    let (mut events, mut frames) = (Vec::new(), BytesMut::new());
    let deltas = std::iter::repeat_with(delta).take(DELTAS);
    for event in [start()].into_iter().chain(deltas).chain([end()]) {
        adapter.on_event(&event, &mut events);
        for event in events.drain(..) {
            sse::write_frame(&event, &mut frames)?;
        }
        if frames.len() > 1 << 16 {
            std::hint::black_box(&frames);
            frames.clear();
        }
    }
    Ok(())
}

/// Sends the deltas, or waits for ever behind the first event.
struct Bench {
    waits: bool,
}

impl Agent for Bench {
    fn run(&self, _request: AgentRequest) -> AgentStream {
        let first = streams::iter([Ok(start()), Ok(delta())]);
        if self.waits {
            return Box::pin(first.chain(streams::pending()));
        }
        let rest = std::iter::repeat_with(delta).take(DELTAS - 1).chain([end()]);
        Box::pin(first.chain(streams::iter(rest.map(Ok))))
    }
}

fn registered(id: &str, waits: bool) -> Registered {
    Registered {
        info: AgentInfo {
            id: id.to_owned(),
            name: id.to_owned(),
            description: String::new(),
            capabilities: Default::default(),
        },
        agent: Arc::new(Bench { waits }),
        options: Arc::default(),
        run_timeout: None,
        accept_client_system_messages: false,
    }
}

async fn serve() -> Done<SocketAddr> {
    let mut config = Config::default();
    config.server.port = 0;
    let agents = Registry::builder()
        .insert(registered("talks", false))
        .insert(registered("waits", true))
        .build(&config)
        .map_err(|faults| format!("{faults:?}"))?;
    let bound = ServerBuilder::new(config, agents).bind().await?;
    let address = bound.local_addr();
    TaskTracker::new().spawn(bound.serve(std::future::pending(), std::future::pending()));
    Ok(address)
}

/// The least that serves the same stream: axum, its `Sse`, one struct per frame.
async fn serve_bare() -> Done<SocketAddr> {
    let app = Router::new()
        .route("/talks", post(|_body: String| async { plain::Sse::new(frames(DELTAS, false)) }))
        .route("/waits", post(|_body: String| async { plain::Sse::new(frames(1, true)) }));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    TaskTracker::new().spawn(async move { axum::serve(listener, app).await });
    Ok(address)
}

fn frames(
    count: usize,
    waits: bool,
) -> impl Stream<Item = Result<plain::Event, axum::Error>> + Send {
    stream! {
        for _ in 0..count {
            yield plain::Event::default().json_data(FRAME);
        }
        if waits {
            std::future::pending::<()>().await;
        }
    }
}

fn open(address: SocketAddr, path: &str, thread: usize) -> Done<TcpStream> {
    let body =
        format!(r#"{{"threadId":"t{thread}","runId":"r","protocolVersion":"1.0","messages":[]}}"#);
    let mut stream = TcpStream::connect(address)?;
    let length = body.len();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: \
         application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )?;
    Ok(stream)
}

/// Reads a stream to its end; gives its length.
fn whole(address: SocketAddr, path: &str) -> Done<usize> {
    let mut stream = open(address, path, 0)?;
    let (mut buffer, mut length) = (vec![0; 1 << 16], 0);
    loop {
        match stream.read(&mut buffer)? {
            0 => break,
            read => length += read,
        }
    }
    if length < DELTAS * TEXT.len() {
        return Err(format!("{path}: only {length} bytes").into());
    }
    Ok(length)
}

/// Resident bytes of this process for every held stream.
fn held(address: SocketAddr, path: &str) -> Done<usize> {
    let hold = |thread| -> Done<TcpStream> {
        let mut stream = open(address, path, thread)?;
        let (mut answer, mut buffer) = (Vec::new(), [0; 1024]);
        while !String::from_utf8_lossy(&answer).contains("TEXT_MESSAGE_CONTENT") {
            let read = stream.read(&mut buffer)?;
            answer.extend_from_slice(
                buffer.get(..read).filter(|read| !read.is_empty()).ok_or("end")?,
            );
        }
        Ok(stream)
    };
    let warm = (0..100).map(hold).collect::<Done<Vec<_>>>()?;
    let before = resident()?;
    let streams = (100..100 + HELD).map(hold).collect::<Done<Vec<_>>>()?;
    let each = resident()?.saturating_sub(before) / streams.len();
    // Kept open: freed memory would be used again by what is measured next.
    std::mem::forget((warm, streams));
    Ok(each)
}

fn resident() -> Done<usize> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).ok_or("no VmRSS")?;
    let kib: usize = line.split_whitespace().nth(1).ok_or("no number")?.parse()?;
    Ok(kib * 1024)
}
