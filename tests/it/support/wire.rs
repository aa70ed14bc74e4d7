//! A client that decides itself how much it reads and when: HTTP/1.1 over a plain socket.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
};

use serde_json::Value;

/// One connection.
pub(crate) struct Wire {
    stream: TcpStream,
    /// Read and not asked for yet.
    read: Vec<u8>,
}

impl Wire {
    /// Sends a request without a body.
    pub(crate) fn get(address: SocketAddr, path: &str) -> Self {
        Self::send(address, &format!("GET {path} HTTP/1.1\r\nHost: x\r\nX-Request-Id: q\r\n\r\n"))
    }

    /// Starts a run and reads nothing of it.
    pub(crate) fn run(address: SocketAddr, agent: &str, input: &Value) -> Self {
        let body = input.to_string();
        let length = body.len();
        Self::send(
            address,
            &format!(
                "POST /agui/{agent} HTTP/1.1\r\nHost: x\r\nX-Request-Id: q\r\nContent-Type: \
                 application/json\r\nContent-Length: {length}\r\n\r\n{body}"
            ),
        )
    }

    fn send(address: SocketAddr, request: &str) -> Self {
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.write_all(request.as_bytes()).expect("a request");
        Self { stream, read: Vec::new() }
    }

    /// Reads until these words have come; gives what came before and the words.
    pub(crate) fn until(&mut self, words: &str) -> String {
        let (words, mut searched) = (words.as_bytes(), 0);
        loop {
            let unseen = self.read.get(searched..).unwrap_or_default();
            if let Some(at) = unseen.windows(words.len()).position(|seen| seen == words) {
                let rest = self.read.split_off(searched + at + words.len());
                let text = std::mem::replace(&mut self.read, rest);
                return String::from_utf8(text).expect("text");
            }
            searched = (self.read.len() + 1).saturating_sub(words.len());
            let mut piece = [0; 16 << 10];
            let read = self.stream.read(&mut piece).expect("more");
            assert!(read > 0, "it ended: {}", String::from_utf8_lossy(&self.read));
            self.read.extend_from_slice(&piece[..read]);
        }
    }

    /// The next chunk of the body, whose head must have been read; `None` = the body has ended.
    pub(crate) fn chunk(&mut self) -> Option<String> {
        let length = self.until("\r\n");
        let length = usize::from_str_radix(length.trim_end(), 16).expect("a length");
        let mut chunk = vec![0; length + 2];
        let held = self.read.len().min(chunk.len());
        chunk[..held].copy_from_slice(&self.read[..held]);
        self.read.drain(..held);
        self.stream.read_exact(&mut chunk[held..]).expect("a chunk");
        chunk.truncate(length);
        (length > 0).then(|| String::from_utf8(chunk).expect("text"))
    }

    /// The body to its end; the head must have been read.
    pub(crate) fn body(&mut self) -> String {
        std::iter::from_fn(|| self.chunk()).collect()
    }

    /// Reads until the connection ends; how it ended.
    pub(crate) fn end(mut self) -> std::io::Result<usize> {
        self.stream.read_to_end(&mut self.read)
    }
}
