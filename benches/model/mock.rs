//! A model that says a number of words, in a thread of its own.

use std::{
    io,
    sync::{LazyLock, mpsc},
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{interval, sleep},
};

use super::Done;

/// Deltas of an answer.
const DELTAS: usize = 200;

/// When the times in the deltas began.
pub(super) static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);

/// How an answer comes.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Way {
    /// All of it in one write.
    Burst,
    /// Several deltas in a write.
    Pieces,
    /// Each delta after a pause.
    Paced,
}

impl Way {
    pub(super) const ALL: [Self; 3] = [Self::Burst, Self::Pieces, Self::Paced];

    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Burst => "burst",
            Self::Pieces => "pieces",
            Self::Paced => "paced",
        }
    }

    /// Runs of one measurement.
    pub(super) fn runs(self) -> usize {
        match self {
            Self::Burst | Self::Pieces => 400,
            Self::Paced => 50,
        }
    }

    /// How many of them at once.
    pub(super) fn at_once(self) -> usize {
        match self {
            Self::Burst | Self::Pieces => 8,
            Self::Paced => 50,
        }
    }

    /// Deltas in a write.
    fn together(self) -> usize {
        match self {
            Self::Burst => DELTAS,
            Self::Pieces => 8,
            Self::Paced => 1,
        }
    }

    /// The time between writes.
    fn pause(self) -> Duration {
        match self {
            Self::Burst | Self::Pieces => Duration::from_millis(1),
            Self::Paced => Duration::from_millis(10),
        }
    }
}

/// Starts it; gives its URL.
pub(super) fn start() -> Done<String> {
    LazyLock::force(&EPOCH);
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            tell.send(listener.local_addr()?).map_err(io::Error::other)?;
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await?;
                connections.spawn(serve(stream));
            }
        })
    });
    Ok(format!("http://{}", told.recv()?))
}

async fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut read = Vec::new();
    while let Some(path) = request(&mut stream, &mut read).await? {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                    Transfer-Encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).await?;
        let Some(way) = Way::ALL.into_iter().find(|way| path.contains(way.path())) else {
            stream.write_all(delta().as_bytes()).await?;
            // Until the client leaves.
            stream.read_u8().await?;
            return Ok(());
        };
        let mut tick = interval(way.pause());
        let mut said = 0;
        while said < DELTAS {
            tick.tick().await;
            let now = way.together().min(DELTAS - said);
            let write: String = (0..now).map(|_| delta()).collect();
            stream.write_all(write.as_bytes()).await?;
            said += now;
        }
        let end = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
        let end = chunk(end) + &chunk("[DONE]") + "0\r\n\r\n";
        stream.write_all(end.as_bytes()).await?;
    }
    sleep(Duration::ZERO).await;
    Ok(())
}

/// Reads a request; gives its first line.
async fn request(stream: &mut TcpStream, read: &mut Vec<u8>) -> io::Result<Option<String>> {
    loop {
        let text = String::from_utf8_lossy(read);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let lower = head.to_ascii_lowercase();
            let length = lower.split("content-length: ").nth(1).and_then(|rest| {
                rest.lines().next().and_then(|length| length.trim().parse::<usize>().ok())
            });
            if body.len() >= length.unwrap_or_default() {
                let line = head.lines().next().unwrap_or_default().to_owned();
                read.clear();
                return Ok(Some(line));
            }
        }
        if stream.read_buf(read).await? == 0 {
            return Ok(None);
        }
    }
}

/// A delta, which says when it was said, as a chunk of HTTP.
fn delta() -> String {
    let now = EPOCH.elapsed().as_nanos();
    chunk(&format!(
        r#"{{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{{"index":0,"delta":{{"content":"{now:020}"}},"finish_reason":null}}]}}"#
    ))
}

fn chunk(data: &str) -> String {
    let frame = format!("data: {data}\n\n");
    format!("{:x}\r\n{frame}\r\n", frame.len())
}
