//! Many streams that say nothing cost little memory.

use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use super::frontends::server::Server;

const STREAMS: usize = 5_000;
/// Twice what a bare handler needs for a held stream; futures of unoptimised builds are larger.
const BYTES_PER_STREAM: usize = if cfg!(debug_assertions) { 60 * 1024 } else { 50 * 1024 };

const CONFIG: &str = r#"agentscope:
  agents:
    hang:
      type: scripted
      turns:
        - events: ['{"type":"AGENT_START","replyId":"R"}', '{"@":"hang"}']
"#;

/// Bytes of memory that a process has in use.
pub(crate) fn resident(pid: u32) -> usize {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("VmRSS");
    let kib = line.split_whitespace().nth(1).expect("a number");
    kib.parse::<usize>().expect("a number") * 1024
}

fn open(address: SocketAddr, n: usize) -> TcpStream {
    let body =
        format!(r#"{{"threadId":"t{n}","runId":"r","protocolVersion":"1.0","messages":[]}}"#);
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    let head = "POST /agui/hang HTTP/1.1\r\nhost: x\r\ncontent-type: application/json";
    write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).expect("a request");
    let (mut answer, mut buffer) = (Vec::new(), [0; 1024]);
    while !String::from_utf8_lossy(&answer).contains("RUN_STARTED") {
        let read = stream.read(&mut buffer).expect("an answer");
        assert!(read > 0, "the stream ended");
        answer.extend_from_slice(&buffer[..read]);
    }
    stream
}

#[test]
fn five_thousand_idle_streams_fit_into_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("agentscope.yaml");
    fs::write(&config, CONFIG).expect("a file");
    let server = Server::start(&config);
    let address = server.address();
    let warm: Vec<TcpStream> = (0..100).map(|n| open(address, n)).collect();
    let before = resident(server.pid());
    let held: Vec<TcpStream> = (100..100 + STREAMS).map(|n| open(address, n)).collect();
    let each = (resident(server.pid()).saturating_sub(before)) / held.len();
    assert!(each <= BYTES_PER_STREAM, "{each} bytes for every stream");
    drop((warm, held));
}
