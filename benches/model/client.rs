//! A front end that counts.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{Done, mock::EPOCH};

/// What a client saw of a run.
#[derive(Default)]
pub(super) struct Run {
    /// Chunks of HTTP, each of which is a write.
    pub(super) chunks: usize,
    /// From the request to the first delta.
    pub(super) first: Duration,
    /// From the model to here, for each delta.
    pub(super) delays: Vec<Duration>,
}

/// Runs an agent to its end.
pub(super) async fn run(address: SocketAddr, agent: &str, thread: usize) -> Done<Run> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let began = Instant::now();
    ask(&mut stream, agent, thread).await?;
    let (mut run, mut bytes, mut used) = (Run::default(), Vec::with_capacity(1 << 16), 0);
    let mut is_head = true;
    loop {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err("the answer broke off".into());
        }
        let now = Instant::now();
        while let Some(rest) = bytes.get(used..) {
            if is_head {
                let Some(head) = find(rest, b"\r\n\r\n") else { break };
                used += head + 4;
                is_head = false;
                continue;
            }
            let Some(line) = find(rest, b"\r\n") else { break };
            let size = std::str::from_utf8(rest.get(..line).unwrap_or_default())?;
            let length = usize::from_str_radix(size, 16)?;
            let Some(chunk) = rest.get(line + 2..line + 2 + length + 2) else { break };
            used += line + 2 + length + 2;
            if length == 0 {
                if !String::from_utf8_lossy(&bytes).contains("RUN_FINISHED") {
                    return Err("a run failed".into());
                }
                return Ok(run);
            }
            run.chunks += 1;
            run.take(chunk, began, now);
        }
    }
}

impl Run {
    fn take(&mut self, chunk: &[u8], began: Instant, now: Instant) {
        let chunk = String::from_utf8_lossy(chunk);
        for after in chunk.split(r#""delta":""#).skip(1) {
            let said = after.get(..20).and_then(|nanos| nanos.parse().ok()).unwrap_or_default();
            let said = *EPOCH + Duration::from_nanos(said);
            if self.delays.is_empty() {
                self.first = now - began;
            }
            self.delays.push(now.saturating_duration_since(said));
        }
    }
}

/// Begins a run and reads its first delta.
pub(super) async fn hold(address: SocketAddr, agent: &str, thread: usize) -> Done<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    ask(&mut stream, agent, thread).await?;
    let mut bytes = Vec::new();
    while !String::from_utf8_lossy(&bytes).contains(r#""delta":"#) {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err("the answer broke off".into());
        }
    }
    Ok(stream)
}

async fn ask(stream: &mut TcpStream, agent: &str, thread: usize) -> Done<()> {
    let message = r#"{"id":"u1","role":"user","content":"hello"}"#;
    let body = format!(
        r#"{{"threadId":"{agent}-{thread}","runId":"r","protocolVersion":"1.0","messages":[{message}]}}"#
    );
    let head = format!(
        "POST /agui/{agent} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).await?;
    Ok(())
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|found| found == what)
}
