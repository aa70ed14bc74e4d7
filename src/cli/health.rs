//! `health`: asks a running server whether it is ready. For health checks of containers, where
//! nothing else can ask; so it needs no runtime and no HTTP client.

use std::{
    fmt,
    io::{self, Read, Write},
    net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs},
    time::{Duration, Instant},
};

use anyhow::anyhow;

use super::{ConfigArguments, Failure, UNAVAILABLE, configured::refused, print, serve::reachable};
use crate::config::{self, ConfigErrors, Environment, Survey, place::within};

/// How long the answer may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// Longest status line that is read.
const MAX_LINE: usize = 256;

pub(super) fn run(arguments: &ConfigArguments) -> Result<(), Failure> {
    let survey = config::survey(arguments.source(), &Environment::of_process());
    let Survey { loaded, faults } = survey.map_err(|faults| refused(&faults))?;
    // What else is wrong was put right when the server started, or does not concern it yet.
    let concerns = ["server.host", "server.port"];
    let faults = faults.into_iter().filter(|fault| {
        concerns.iter().any(|key| within(&fault.path, key) || within(key, &fault.path))
    });
    let faults: Vec<_> = faults.collect();
    if !faults.is_empty() {
        return Err(refused(&ConfigErrors::new(faults)));
    }
    let server = loaded.config.server;
    if server.port == 0 {
        let message = "server.port is 0: only the server knows which port it has; its log line \
                       \"listening\" names it";
        return Err(Failure::new(UNAVAILABLE, anyhow!(message)));
    }
    let target = Target::of(&server.host, server.port);
    match target.ask(PATIENCE) {
        Ok(()) => {
            // The answer is the exit code: a probe's output may go nowhere.
            print(&format!("{target} is ready\n")).ok();
            Ok(())
        }
        Err(sick) => Err(Failure::new(UNAVAILABLE, anyhow!("{target} {sick}"))),
    }
}

/// The server to ask.
struct Target {
    host: String,
    port: u16,
}

/// Why a server is not ready.
#[derive(Debug, thiserror::Error)]
enum Sick {
    #[error("cannot be reached: {0}")]
    Unreachable(io::Error),
    #[error("did not answer in time")]
    Silent,
    #[error("broke off: {0}")]
    Broken(io::Error),
    #[error("did not answer with HTTP")]
    NotHttp,
    #[error("is not ready: status {0}")]
    NotReady(u16),
}

impl Target {
    /// What listens on `host`, as this machine reaches it.
    fn of(host: &str, port: u16) -> Self {
        let host = match host.parse::<IpAddr>() {
            Ok(ip) => SocketAddr::new(reachable(ip), port).ip().to_string(),
            Err(_name) => host.to_owned(),
        };
        Self { host, port }
    }

    /// Asks `/readyz`.
    fn ask(&self, patience: Duration) -> Result<(), Sick> {
        let deadline = Instant::now() + patience;
        let mut connection = self.connect(deadline)?;
        let request = format!("GET /readyz HTTP/1.1\r\nHost: {self}\r\nConnection: close\r\n\r\n");
        connection.set_write_timeout(Some(left(deadline)?)).map_err(Sick::Broken)?;
        connection.write_all(request.as_bytes()).map_err(broken)?;
        match status(&first_line(&mut connection, deadline)?) {
            Some(200) => Ok(()),
            Some(other) => Err(Sick::NotReady(other)),
            None => Err(Sick::NotHttp),
        }
    }

    fn connect(&self, deadline: Instant) -> Result<TcpStream, Sick> {
        let addresses =
            (self.host.as_str(), self.port).to_socket_addrs().map_err(Sick::Unreachable)?;
        let mut last = Sick::Unreachable(io::Error::other("the name has no address"));
        for address in addresses {
            match TcpStream::connect_timeout(&address, left(deadline)?) {
                Ok(connection) => return Ok(connection),
                Err(error) => last = Sick::Unreachable(error),
            }
        }
        Err(last)
    }
}

/// Host and port as they stand in a URL.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// The time until the deadline, which is not zero: that would mean for ever.
fn left(deadline: Instant) -> Result<Duration, Sick> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(Sick::Silent) } else { Ok(left) }
}

fn broken(error: io::Error) -> Sick {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Sick::Silent,
        _ => Sick::Broken(error),
    }
}

fn first_line(connection: &mut TcpStream, deadline: Instant) -> Result<Vec<u8>, Sick> {
    let mut line = Vec::new();
    let mut buffer = [0; MAX_LINE];
    while !line.contains(&b'\n') && line.len() < MAX_LINE {
        connection.set_read_timeout(Some(left(deadline)?)).map_err(Sick::Broken)?;
        match connection.read(&mut buffer).map_err(broken)? {
            0 => break,
            read => line.extend(buffer.iter().take(read)),
        }
    }
    Ok(line)
}

/// The code of a status line.
fn status(line: &[u8]) -> Option<u16> {
    let line = String::from_utf8_lossy(line);
    let rest = line.strip_prefix("HTTP/1.")?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, thread};

    use super::*;

    /// Asks a server that answers with these bytes and hangs up.
    fn told(answer: &'static [u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = Target::of("0.0.0.0", listener.local_addr().unwrap().port());
        let server = thread::spawn(move || {
            let (mut connection, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            let mut buffer = [0; 64];
            while !request.ends_with(b"\r\n\r\n") {
                let read = connection.read(&mut buffer).unwrap();
                request.extend_from_slice(&buffer[..read]);
            }
            connection.write_all(answer).unwrap();
            String::from_utf8(request).unwrap()
        });
        let told = target.ask(Duration::from_secs(60));
        let request = server.join().unwrap();
        let host = format!("127.0.0.1:{}", target.port);
        assert_eq!(
            request,
            format!("GET /readyz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
        );
        told.map_or_else(|sick| sick.to_string(), |()| "ready".to_owned())
    }

    #[test]
    fn the_status_decides() {
        assert_eq!(told(b"HTTP/1.1 200 OK\r\n\r\nok"), "ready");
        assert_eq!(told(b"HTTP/1.1 503 Service Unavailable\r\n\r\n"), "is not ready: status 503");
        assert_eq!(told(b"HTTP/1.0 302 Found\r\n"), "is not ready: status 302");
        assert_eq!(told(b"SSH-2.0-x\r\n"), "did not answer with HTTP");
        assert_eq!(told(b""), "did not answer with HTTP");
    }

    #[test]
    fn a_server_that_says_nothing_is_not_waited_for() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = Target::of("127.0.0.1", listener.local_addr().unwrap().port());
        let told = target.ask(Duration::from_millis(50)).unwrap_err();
        assert_eq!(told.to_string(), "did not answer in time");
    }

    #[test]
    fn a_wildcard_is_reached_on_this_machine() {
        let shown = |host| Target::of(host, 81).to_string();
        assert_eq!(shown("0.0.0.0"), "127.0.0.1:81");
        assert_eq!(shown("::"), "[::1]:81");
        assert_eq!(shown("fd00::7"), "[fd00::7]:81");
        assert_eq!(shown("agui.internal"), "agui.internal:81");
    }
}
