//! Servers for the clients to talk to: the real binary, and one that plays a given body once.

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Duration,
};

use serde_json::Value;

/// The real binary on a free port; stopped when dropped.
pub(crate) struct Server {
    child: Child,
    base: String,
    log: Arc<Mutex<String>>,
}

impl Server {
    /// Starts it with a configuration file and waits for the line that names its address.
    pub(crate) fn start(config: &Path) -> Self {
        Self::start_with(config, &[])
    }

    /// The same with these environment variables.
    pub(super) fn start_with(config: &Path, variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agentscope-agui"));
        command.arg("serve").arg("--config").arg(config);
        for (name, _) in std::env::vars_os() {
            let name_text = name.to_string_lossy();
            if name_text.starts_with("AGENTSCOPE_") || name_text.starts_with("SERVER_") {
                command.env_remove(&name);
            }
        }
        command
            .env("SERVER_HOST", "127.0.0.1")
            .env("SERVER_PORT", "0")
            .env("RUST_LOG", "info")
            .env("NO_COLOR", "1")
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the server starts");

        let log = Arc::new(Mutex::new(String::new()));
        let (found, address) = mpsc::channel();
        follow(child.stdout.take().expect("piped"), log.clone(), found.clone());
        follow(child.stderr.take().expect("piped"), log.clone(), found);
        // Both ends are dropped when the process ends, so a refused start fails at once.
        let Ok(address) = address.recv_timeout(Duration::from_secs(30)) else {
            stop(&mut child);
            panic!("the server did not say where it listens:\n{}", log.lock().expect("unpoisoned"));
        };
        Self { child, base: format!("http://{address}"), log }
    }

    /// The process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> std::net::SocketAddr {
        self.base.trim_start_matches("http://").parse().expect("an address")
    }

    /// Sends a signal, such as TERM.
    pub(crate) fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell").success());
    }

    /// Waits until it has ended by itself; gives the exit code.
    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        self.child.wait().expect("a child").code()
    }

    /// Where its routes begin.
    pub(super) fn prefix_url(&self) -> String {
        format!("{}/agui", self.base)
    }

    /// Where a run of this agent is posted.
    pub(super) fn run_url(&self, agent: &str) -> String {
        format!("{}/{agent}", self.prefix_url())
    }

    /// The agents that the server lists.
    pub(super) async fn agent_ids(&self) -> BTreeSet<String> {
        let url = format!("{}/agui/agents", self.base);
        let answer = crate::support::client().get(&url).send().await.expect("an answer");
        let body: Value = answer.json().await.expect("a JSON body");
        let list = body.as_array().or_else(|| body["agents"].as_array()).expect("a list of agents");
        list.iter().map(|agent| agent["id"].as_str().expect("an id").to_owned()).collect()
    }

    /// What it logged so far.
    pub(super) fn log(&self) -> String {
        self.log.lock().expect("unpoisoned").clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        stop(&mut self.child);
    }
}

fn stop(child: &mut Child) {
    // Either fails only if the process is gone already.
    child.kill().ok();
    child.wait().ok();
}

/// Keeps what the process prints and sends the address once a line names it.
fn follow(
    output: impl Read + Send + 'static,
    log: Arc<Mutex<String>>,
    found: mpsc::Sender<String>,
) {
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if let Some(address) = listening_address(&line) {
                // Nobody waits for a second one.
                found.send(address).ok();
            }
            let mut log = log.lock().expect("unpoisoned");
            log.push_str(&line);
            log.push('\n');
        }
    });
}

/// `127.0.0.1:<port>` out of the line that says "listening".
fn listening_address(line: &str) -> Option<String> {
    const HOST: &str = "127.0.0.1:";
    let (_, rest) = line.split_once("listening").and_then(|_| line.split_once(HOST))?;
    let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
    (!port.is_empty()).then(|| format!("{HOST}{port}"))
}

/// Answers one request with an event stream of the given lines; returns the URL to post to.
pub(super) fn serve_once(lines: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let frames: String = lines.lines().map(|line| format!("data: {line}\n\n")).collect();
    thread::spawn(move || {
        let (mut connection, _) = listener.accept().expect("a client");
        read_request(&connection);
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n";
        write!(connection, "{head}Content-Length: {}\r\n\r\n{frames}", frames.len())
            .expect("the answer is sent");
    });
    url
}

/// Reads one request to the end of its body, which an answer must not overtake, and gives that.
pub(super) fn read_request(connection: &std::net::TcpStream) -> Vec<u8> {
    let mut reader = BufReader::new(connection);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a header line");
        if line.trim_end().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().expect("a number");
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("the body");
    body
}
