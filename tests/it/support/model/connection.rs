//! HTTP/1.1 by hand: requests in, answers out in chunks that stand for one write each.

use std::sync::Arc;

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    task::JoinSet,
};

use super::{
    Fate, Request, Shared,
    answer::{Answer, Step},
};

pub(super) async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        connections.spawn(serve(stream, Arc::clone(&shared)));
    }
}

/// Counts a connection for as long as it lives.
struct Open(Arc<Shared>);

impl Open {
    fn new(shared: Arc<Shared>) -> Self {
        shared.open.send_modify(|open| *open += 1);
        Self(shared)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.send_modify(|open| *open -= 1);
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let (read, mut write) = stream.into_split();
    let mut reader = Reader { read, bytes: Vec::new() };
    let open = Open::new(Arc::clone(&shared));
    loop {
        let (fate, seen) = watch::channel(Fate::Answering);
        let Some(request) = reader.request(seen).await else { return };
        let request = Arc::new(request);
        let answer = shared.answer(&request);
        shared.requests.send_modify(|requests| requests.push(request));
        let stubborn = answer.stubborn;
        let end = tokio::select! {
            end = send(&mut write, answer) => end.unwrap_or(Sent::Failed),
            () = reader.ended() => Sent::Failed,
        };
        // Nobody may wait for it.
        fate.send_replace(if end == Sent::Failed { Fate::Left } else { Fate::Answered });
        if end == Sent::Failed && stubborn {
            drop(open);
            return std::future::pending().await;
        }
        if end != Sent::Whole {
            return;
        }
    }
}

/// What of an answer was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    Whole,
    Cut,
    Failed,
}

async fn send(write: &mut OwnedWriteHalf, answer: Answer) -> std::io::Result<Sent> {
    if let Some(gate) = &answer.held {
        gate.opened().await;
    }
    let mut head = format!("HTTP/1.1 {} Mocked\r\nTransfer-Encoding: chunked\r\n", answer.status);
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    write.write_all(format!("{head}\r\n").as_bytes()).await?;
    for step in answer.steps {
        match step {
            Step::Write(bytes) => chunk(write, &bytes).await?,
            Step::Wait(gate) => gate.opened().await,
            Step::Fed(mut fed) => {
                while let Some(bytes) = fed.recv().await {
                    chunk(write, &bytes).await?;
                }
            }
            Step::Cut => return Ok(Sent::Cut),
        }
    }
    write.write_all(b"0\r\n\r\n").await?;
    Ok(Sent::Whole)
}

async fn chunk(write: &mut OwnedWriteHalf, bytes: &[u8]) -> std::io::Result<()> {
    // An empty chunk would be the end of the body.
    if bytes.is_empty() {
        return Ok(());
    }
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    write.write_all(&chunk).await
}

struct Reader {
    read: OwnedReadHalf,
    /// Read and not used yet.
    bytes: Vec<u8>,
}

impl Reader {
    /// The next request; `None` = the connection ended before one.
    async fn request(&mut self, fate: watch::Receiver<Fate>) -> Option<Request> {
        let head = loop {
            if let Some(end) = self.bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                let head: Vec<u8> = self.bytes.drain(..end + 4).collect();
                break String::from_utf8(head).unwrap();
            }
            self.more().await?;
        };
        let mut lines = head.trim_end().split("\r\n");
        let mut words = lines.next().unwrap().split(' ').map(str::to_owned);
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        let headers: Vec<(String, String)> = lines
            .map(|line| line.split_once(':').unwrap())
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length = length.map_or(0, |(_, length)| length.parse().unwrap());
        while self.bytes.len() < length {
            self.more().await?;
        }
        let text = String::from_utf8(self.bytes.drain(..length).collect()).unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        Some(Request { method, path, headers, text, body, fate })
    }

    async fn more(&mut self) -> Option<()> {
        let read = self.read.read_buf(&mut self.bytes).await;
        read.is_ok_and(|read| read > 0).then_some(())
    }

    /// Resolves when the client has closed the connection.
    async fn ended(&mut self) {
        while self.more().await.is_some() {}
    }
}
