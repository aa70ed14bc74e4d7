//! The servers, a process each, and what the system knows of them.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::json;
use tempfile::NamedTempFile;

use super::{Done, bare};

const PROGRAM: &str = env!("CARGO_BIN_EXE_agentscope-agui");

/// A running server.
pub(super) struct Server {
    child: Child,
    pub(super) address: SocketAddr,
    /// How long it took to say where it listens.
    pub(super) started: Duration,
    _config: Option<NamedTempFile>,
}

impl Server {
    /// The program, with an agent for each way in which the model answers.
    pub(super) fn ours(model: &str) -> Done<Self> {
        let ways = ["burst", "pieces", "paced", "stalled"];
        let models = ways.map(|way| {
            let model = json!({
                "provider": "openai", "base-url": format!("{model}/{way}"), "api-key": "sk-bench",
                "model": "m",
            });
            (way.to_owned(), model)
        });
        let agents = ways.map(|way| {
            let agent = json!({"type": "react", "model": way, "sys-prompt": "Be brief."});
            (way.to_owned(), agent)
        });
        // Started with the server, and never there.
        let nobody = json!({"url": "http://127.0.0.1:9/mcp"});
        let config = json!({
            "server": {"host": "127.0.0.1", "port": 0},
            "agentscope": {
                "models": models.into_iter().collect::<serde_json::Map<_, _>>(),
                "agents": agents.into_iter().collect::<serde_json::Map<_, _>>(),
                "mcp-servers": {"nobody": nobody},
            },
        });
        let mut file = NamedTempFile::new()?;
        file.write_all(config.to_string().as_bytes())?;
        let mut command = Command::new(PROGRAM);
        command.arg("serve").arg("--config").arg(file.path());
        Self::start(command, Some(file))
    }

    /// This process once more, as the bare proxy.
    pub(super) fn bare(model: &str) -> Done<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args([bare::WORD, model]);
        Self::start(command, None)
    }

    fn start(mut command: Command, config: Option<NamedTempFile>) -> Done<Self> {
        let began = Instant::now();
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = child.spawn()?;
        let mut lines = BufReader::new(child.stdout.take().ok_or("no stdout")?).lines();
        let address = loop {
            let line = lines.next().ok_or("the server ended")??;
            let after = line.split("http://").nth(1).and_then(|after| after.split('/').next());
            if let Some(Ok(address)) = after.map(str::parse) {
                break address;
            }
        };
        let started = began.elapsed();
        // What it logs is read by nobody.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(Self { child, address, started, _config: config })
    }

    /// The processor time of its threads so far.
    pub(super) fn cpu(&self) -> Done<Duration> {
        let mut nanos = 0;
        for thread in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let times = fs::read_to_string(thread?.path().join("schedstat"))?;
            nanos += times.split(' ').next().ok_or("no time")?.parse::<u64>()?;
        }
        Ok(Duration::from_nanos(nanos))
    }

    /// Its resident bytes.
    pub(super) fn resident(&self) -> Done<usize> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).ok_or("no VmRSS")?;
        let kib: usize = line.split_whitespace().nth(1).ok_or("no number")?.parse()?;
        Ok(kib * 1024)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Either fails only if the process is gone already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The length of the program's file.
pub(super) fn program_size() -> Done<usize> {
    Ok(usize::try_from(fs::metadata(PROGRAM)?.len())?)
}
