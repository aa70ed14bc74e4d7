//! Signals: what a server that is told to end does with its runs, its clients and itself. Times are
//! checked where time can be made exact, beside the shutdown's code; here nothing depends on them.

use std::{fs, net::SocketAddr};

use serde_json::Value;

use super::{
    frontends::server::Server,
    support::{
        expected, input,
        sse::{Frame, frames},
        wire::Wire,
    },
};

/// More than what sockets and the server hold for a client that does not read: such a run goes on
/// until its client reads.
const DELTAS: usize = 300;

fn config(grace: &str) -> String {
    let piece = "x".repeat(64 << 10);
    format!(
        r#"server: {{shutdown-grace: {grace}}}
agentscope:
  agui: {{heartbeat-interval: 0}}
  agents:
    long:
      type: scripted
      turns:
        - events:
            - '{{"type":"AGENT_START"}}'
            - '{{"@":"repeat","times":{DELTAS},"line":{{"type":"TEXT_BLOCK_DELTA","blockId":"b","delta":"{piece}"}}}}'
            - '{{"type":"AGENT_END"}}'
    hangs:
      type: scripted
      turns:
        - events:
            - '{{"type":"AGENT_START"}}'
            - '{{"type":"TEXT_BLOCK_DELTA","blockId":"b","delta":"so far"}}'
            - '{{"@":"hang"}}'
"#
    )
}

fn start(grace: &str) -> Server {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("agentscope.yaml");
    fs::write(&file, config(grace)).expect("a file");
    Server::start(&file)
}

/// A run that is under way, with its head read.
fn open(address: SocketAddr, agent: &str, thread: &str) -> Wire {
    let mut run = Wire::run(address, agent, &input(thread, "r"));
    let head = run.until("\r\n\r\n");
    assert_eq!(head.lines().next(), Some("HTTP/1.1 200 OK"));
    run
}

/// The frames to the end of the body.
fn rest(run: &mut Wire, begun: &str) -> Vec<Value> {
    let body = format!("{begun}{}", run.body());
    let events = frames(&body).into_iter().map(|frame| match frame {
        Frame::Event(event) => event,
        Frame::Comment(text) => panic!("an unexpected comment: {text}"),
    });
    events.collect()
}

/// Names of ids and the time differ from run to run.
fn levelled(mut events: Vec<Value>) -> Vec<Value> {
    for event in &mut events {
        if event.get("messageId").is_some() {
            event["messageId"] = "id-1".into();
        }
        if event["type"] == "RUN_ERROR" {
            event["timestamp"] = super::support::server::NOW_MS.into();
        }
    }
    events
}

/// What a run of `hangs` gives on a server that ends.
fn shut_down(thread: &str) -> Vec<Value> {
    let message = "The run was stopped: the server is shutting down.";
    let mut events = vec![expected::started(thread, "r")];
    events.extend(expected::text("id-1", &["so far"]));
    events.push(expected::error("SERVER_SHUTTING_DOWN", message));
    events
}

/// Status line, the headers that matter, and the body of an answer on a connection that is closed.
fn refused(mut wire: Wire) -> Vec<String> {
    let head = wire.until("\r\n\r\n");
    let shown = ["HTTP/1.1", "retry-after", "connection"];
    let lines = head.lines().filter(|line| shown.iter().any(|name| line.starts_with(name)));
    let mut lines: Vec<String> = lines.map(str::to_owned).collect();
    lines.push(wire.until("}"));
    assert_eq!(wire.end().expect("the connection is closed"), 0);
    lines
}

const UNAVAILABLE: &str = "HTTP/1.1 503 Service Unavailable";
const PROBLEM: &str = r#"{"type":"about:blank","title":"Service Unavailable","status":503,"detail":"The server is shutting down.","instance":"q"}"#;

/// Asks until the server says that it is not ready any more.
fn wait_for_drain(address: SocketAddr) {
    loop {
        let mut answer = Wire::get(address, "/readyz");
        match answer.until("\r\n").as_str() {
            "HTTP/1.1 200 OK\r\n" => {}
            status => {
                assert_eq!(status.trim_end(), UNAVAILABLE);
                return;
            }
        }
    }
}

#[test]
fn the_first_signal_lets_runs_end_and_the_second_one_ends_them() {
    let mut server = start("10m");
    let address = server.address();
    let mut long = open(address, "long", "t1");
    let mut hangs = open(address, "hangs", "t2");
    let begun = hangs.chunk().expect("RUN_STARTED");
    server.signal("TERM");
    wait_for_drain(address);
    let new = refused(Wire::run(address, "hangs", &input("t3", "r")));
    assert_eq!(new, [UNAVAILABLE, "retry-after: 1", "connection: close", PROBLEM]);
    assert_eq!(refused(Wire::get(address, "/readyz")), [UNAVAILABLE, "connection: close", PROBLEM]);

    let piece = "x".repeat(64 << 10);
    let mut all = vec![expected::started("t1", "r")];
    all.extend(expected::text("id-1", &[piece.as_str(); DELTAS]));
    all.push(expected::success("t1", "r"));
    assert!(levelled(rest(&mut long, "")) == all, "other events than expected");

    server.signal("TERM");
    assert_eq!(levelled(rest(&mut hangs, &begun)), shut_down("t2"));
    assert_eq!(server.exit_code(), Some(0));
}

#[test]
fn the_end_of_the_grace_is_the_end_of_runs_that_hang_and_of_clients_that_do_not_read() {
    let mut server = start("2s");
    let unread = open(server.address(), "long", "t1");
    let mut hangs = open(server.address(), "hangs", "t2");
    let begun = hangs.chunk().expect("RUN_STARTED");
    server.signal("INT");
    assert_eq!(levelled(rest(&mut hangs, &begun)), shut_down("t2"));
    assert_eq!(server.exit_code(), Some(0));
    drop(unread);
}

#[test]
fn without_runs_the_first_signal_is_the_end_although_connections_are_open() {
    let mut server = start("10m");
    let mut kept = Wire::get(server.address(), "/healthz");
    kept.until("\r\n\r\nok");
    server.signal("TERM");
    assert_eq!(server.exit_code(), Some(0));
    assert_eq!(kept.end().expect("the connection is closed"), 0);
}
