//! One client of the load: what it asks is drawn from a sequence of numbers of its own.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};

/// What clients saw.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) requests: usize,
    /// Streams that it left.
    pub(super) left: usize,
    /// Streams that ended with RUN_FINISHED, and those of them that asked something.
    pub(super) finished: usize,
    pub(super) asked: usize,
    /// Streams that ended with RUN_ERROR, and those of them that met another run.
    pub(super) failed: usize,
    pub(super) busy: usize,
    /// Requests to cancel.
    pub(super) cancels: usize,
}

impl Tally {
    pub(super) fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.left += other.left;
        self.finished += other.finished;
        self.asked += other.asked;
        self.failed += other.failed;
        self.busy += other.busy;
        self.cancels += other.cancels;
    }
}

/// A client.
pub(super) struct Client {
    address: SocketAddr,
    number: u64,
    agents: Vec<&'static str>,
    threads: u64,
    draws: u64,
    tally: Tally,
}

impl Client {
    pub(super) fn new(
        address: SocketAddr,
        number: u64,
        agents: &[&'static str],
        threads: u64,
    ) -> Self {
        let draws = number.wrapping_mul(0x5851_f42d_4c95_7f2d);
        Self { address, number, agents: agents.to_vec(), threads, draws, tally: Tally::default() }
    }

    /// Makes so many requests.
    pub(super) async fn play(mut self, rounds: usize) -> Tally {
        for round in 0..rounds {
            self.tally.requests += 1;
            let thread = format!("t{}", self.draw(self.threads));
            match self.draw(10) {
                0 => self.cancel(&thread).await,
                1 => {
                    let agent = self.agent();
                    self.request(&format!("{agent}/connect"), &self.input(&thread, round), None)
                        .await;
                }
                _ => self.run(&thread, round).await,
            }
        }
        self.tally
    }

    async fn run(&mut self, thread: &str, round: usize) {
        let agent = self.agent();
        let stays = agent != "hangs" && self.draw(2) == 0;
        // Whatever hangs says two things.
        let leaves_after = 1 + if agent == "hangs" { self.draw(2) } else { self.draw(60) };
        let leaves_after = (!stays).then_some(leaves_after);
        let input = self.input(thread, round);
        let Some(last) = self.request(agent, &input, leaves_after).await else { return };
        let interrupts = match last["type"].as_str() {
            Some("RUN_FINISHED") => &last["outcome"]["interrupts"],
            _ => &last["metadata"]["agentscope.openInterrupts"],
        };
        let Some(interrupts) = interrupts.as_array() else { return };
        self.tally.asked += 1;
        if self.draw(3) > 0 {
            let mut input = self.input(thread, round);
            input["resume"] = interrupts
                .iter()
                .map(|open| json!({"interruptId": open["id"], "status": "cancelled"}))
                .collect();
            self.request("asks", &input, None).await;
        }
    }

    async fn cancel(&mut self, thread: &str) {
        self.tally.cancels += 1;
        let mut answer = self.post(&format!("threads/{thread}/cancel"), "").await;
        let mut text = String::new();
        answer.read_to_string(&mut text).await.expect("an answer");
        let status = text.split(' ').nth(1);
        assert!(matches!(status, Some("200" | "202" | "404")), "{text}");
    }

    /// Reads a stream to its end and gives the last event, or leaves behind so many events.
    async fn request(
        &mut self,
        path: &str,
        input: &Value,
        leaves_after: Option<u64>,
    ) -> Option<Value> {
        let mut answer = self.post(path, &input.to_string()).await;
        let (mut line, mut last, mut seen) = (String::new(), Value::Null, 0);
        loop {
            line.clear();
            let read = answer.read_line(&mut line).await.expect("a line");
            if read == 0 {
                break;
            }
            let Some(data) = line.strip_prefix("data: ") else { continue };
            last = serde_json::from_str(data).expect("an event");
            seen += 1;
            if Some(seen) == leaves_after {
                self.tally.left += 1;
                return None;
            }
        }
        match last["type"].as_str() {
            Some("RUN_FINISHED") => self.tally.finished += 1,
            Some("RUN_ERROR") => {
                self.tally.failed += 1;
                self.tally.busy += usize::from(last["code"] == "THREAD_BUSY");
            }
            _ => panic!("a stream of {path} ended behind {last}"),
        }
        Some(last)
    }

    async fn post(&self, path: &str, body: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(self.address).await.expect("a connection");
        let length = body.len();
        let request = format!(
            "POST /agui/{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: \
             application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await.expect("a request");
        BufReader::new(stream)
    }

    fn input(&self, thread: &str, round: usize) -> Value {
        let run = format!("{}-{round}", self.number);
        json!({
            "threadId": thread,
            "runId": run,
            "protocolVersion": "1.0",
            "messages": [{"id": run, "role": "user", "content": "hello"}],
        })
    }

    fn agent(&mut self) -> &'static str {
        let at = self.draw(self.agents.len() as u64);
        self.agents[usize::try_from(at).expect("few")]
    }

    /// A number below `limit` (SplitMix64).
    fn draw(&mut self, limit: u64) -> u64 {
        self.draws = self.draws.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.draws;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }
}
