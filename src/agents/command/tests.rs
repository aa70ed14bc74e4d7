//! What does not need the whole server: runs that are told to stop, and programs that are fast.

use std::{sync::Arc, time::Duration};

use agui_adapter::{
    model::{AgentEvent, AgentEventKind as Kind, event::EndReason},
    options::AdapterOptions,
};
use agui_protocol::RunAgentInput;
use futures_util::StreamExt;
use serde_json::json;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::*;
use crate::{agents::AgentError, config::CommandConfig};

/// An agent that is this script of bash.
fn agent(script: &str, grace: Duration) -> CommandAgent {
    let command = CommandConfig {
        command: "bash".into(),
        args: vec!["-c".to_owned(), script.to_owned()],
        kill_grace: grace,
        ..CommandConfig::default()
    };
    let config = AgentConfig {
        name: String::new(),
        description: String::new(),
        adapter: AdapterOptions::default(),
        run_timeout: None,
        accept_client_system_messages: false,
        history_limit: 200,
        kind: AgentKind::Command(command),
    };
    CommandAgent::find("a", &config).unwrap()
}

fn request() -> AgentRequest {
    let input = json!({"threadId": "t", "runId": "r", "messages": []});
    let input: RunAgentInput = serde_json::from_value(input).unwrap();
    AgentRequest {
        thread_id: "t".into(),
        run_id: "r".into(),
        input: Arc::new(input),
        messages: Vec::new(),
        decisions: Vec::new(),
        parked: None,
        kept: None,
        session: "session".into(),
        delegation: None,
        state: json!({}).into(),
        context: Arc::default(),
        cancel: CancellationToken::new(),
        request_id: "q".into(),
        background: TaskTracker::new(),
    }
}

/// What the agent says once it was told to stop, which is behind its first event, and that the
/// program is gone then.
async fn stopped(script: &str, grace: Duration) -> Vec<Result<AgentEvent, AgentError>> {
    let request = request();
    let (cancel, background) = (request.cancel.clone(), request.background.clone());
    let mut stream = agent(script, grace).run(request);
    assert!(stream.next().await.is_some_and(|event| event.is_ok()));
    cancel.cancel();
    let rest = stream.collect().await;
    background.close();
    background.wait().await;
    rest
}

fn end(reason: EndReason) -> Result<AgentEvent, AgentError> {
    Ok(AgentEvent::local(Kind::AgentEnd { reply: None, reason }))
}

const LONG: Duration = Duration::from_secs(600);

#[tokio::test]
async fn a_run_that_is_told_to_stop_ends_as_the_program_says() {
    let script = r#"trap 'echo "{\"type\":\"REPLY_END\",\"reply_id\":\"x\",\"finished_reason\":\"interrupted\"}"; exit 3' TERM
        echo '{"type":"REPLY_START","reply_id":"x","name":"n"}'
        while :; do sleep 0.01; done"#;
    let rest = stopped(script, LONG).await;
    let kinds: Vec<Kind> = rest.into_iter().map(|event| event.unwrap().kind).collect();
    let said = Kind::AgentEnd { reply: Some("x".to_owned()), reason: EndReason::Interrupted };
    // The pipeline takes the first end; nothing is a failure from here on.
    assert_eq!(kinds.first(), Some(&said));
}

#[tokio::test]
async fn a_run_that_is_told_to_stop_is_interrupted_whatever_the_program_does() {
    let first = "echo '{\"type\":\"AGENT_START\"}'; ";
    for script in [
        "sleep 600",
        "trap 'echo half a line; exit 9' TERM; while :; do sleep 0.01; done",
        "exec >&-; sleep 600",
    ] {
        let rest = stopped(&format!("{first}{script}"), LONG).await;
        assert_eq!(rest, [end(EndReason::Interrupted)], "{script}");
    }
    let stubborn = format!("trap '' TERM; {first} while :; do sleep 600; done");
    let rest = stopped(&stubborn, Duration::from_millis(10)).await;
    assert_eq!(rest, [end(EndReason::Interrupted)]);
}

#[tokio::test]
async fn a_run_that_is_told_to_stop_before_it_begins_starts_no_program() {
    let request = request();
    request.cancel.cancel();
    let background = request.background.clone();
    let events: Vec<_> = agent("exit 1", LONG).run(request).collect().await;
    assert_eq!(events, [end(EndReason::Interrupted)]);
    assert!(background.is_empty());
}

#[test]
fn a_runtime_that_goes_takes_every_program_along() {
    let line = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = line.local_addr().unwrap().port();
    let script = format!(
        r#"trap '' TERM; exec 3<>/dev/tcp/127.0.0.1/{port}; echo '{{"type":"AGENT_START"}}'
        while :; do sleep 600; done"#
    );
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut stream = agent(&script, LONG).run(request());
    assert!(runtime.block_on(stream.next()).is_some_and(|event| event.is_ok()));
    // Told to end, which it does not mind.
    drop(stream);
    drop(runtime);
    let (mut line, _) = line.accept().unwrap();
    // Every process of the program held the connection.
    assert_eq!(std::io::Read::read_to_end(&mut line, &mut Vec::new()).unwrap(), 0);
}

/// Fills the pipe without waiting, then tells over a connection how many bytes went in.
const FILLS: &str = r#"
import os, socket, sys
line = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
event = b'{"type":"CUSTOM","name":"n","value":1}\n'
os.write(1, event)
line.recv(1)
os.set_blocking(1, False)
written = 0
try:
    while True:
        written += os.write(1, event * 100)
except BlockingIOError:
    line.sendall(str(written).encode())
    line.recv(1)
"#;

#[tokio::test]
async fn a_program_is_not_read_while_nobody_takes_its_events() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let line = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = line.local_addr().unwrap().port();
    let script = format!("exec python3 -c '{}' {port}", FILLS.replace('\'', r"'\''"));
    let mut stream = agent(&script, Duration::ZERO).run(request());
    assert!(stream.next().await.is_some_and(|event| event.is_ok()));
    let (mut line, _) = line.accept().await.unwrap();
    line.write_all(b"!").await.unwrap();
    let mut written = [0; 16];
    let count = line.read(&mut written).await.unwrap();
    let written: usize = std::str::from_utf8(&written[..count]).unwrap().parse().unwrap();
    // What a pipe holds, and not a byte more.
    assert!(written <= 64 << 10, "{written}");
}

#[tokio::test]
async fn every_line_of_a_fast_program_arrives_in_order() {
    let script = r#"i=0; while :; do i=$((i+1))
        echo "{\"type\":\"CUSTOM\",\"name\":\"n\",\"value\":$i}"; done"#;
    let mut stream = agent(script, Duration::ZERO).run(request());
    for n in 1..=10_000 {
        let event = stream.next().await.unwrap().unwrap();
        assert_eq!(event.kind, Kind::Custom { name: "n".to_owned(), value: n.into() });
    }
}

#[test]
fn a_long_line_is_parsed_beside_the_runtimes_threads_and_in_its_turn() {
    let long = session::PARSED_IN_PLACE;
    let script = format!(
        r#"echo '{{"type":"CUSTOM","name":"n","value":1}}'
        printf '{{"type":"CUSTOM","name":"n","value":"%0{long}d"}}\n' 2
        echo '{{"type":"CUSTOM","name":"n","value":3}}'
        exec sleep 600"#
    );
    // One thread for what blocks, and that is taken.
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().max_blocking_threads(1).build().unwrap();
    let (let_go, taken) = std::sync::mpsc::channel::<()>();
    let holding = runtime.spawn_blocking(move || taken.recv());
    runtime.block_on(async {
        let request = request();
        let background = request.background.clone();
        let mut stream = agent(&script, Duration::ZERO).run(request);
        let first = stream.next().await;
        // The keeper is there from the start, the parsing comes to it.
        let parsing = async {
            while background.len() < 2 {
                tokio::task::yield_now().await;
            }
        };
        let early = tokio::select! {
            biased;
            early = stream.next() => Some(early),
            () = parsing => None,
        };
        assert!(early.is_none(), "parsed in place");
        let_go.send(()).unwrap();
        holding.await.unwrap().unwrap();
        let events = [first, stream.next().await, stream.next().await];
        let values = events.map(|event| match event.unwrap().unwrap().kind {
            Kind::Custom { value, .. } => value,
            other => panic!("{other:?}"),
        });
        assert_eq!(values, [json!(1), json!("0".repeat(long - 1) + "2"), json!(3)]);
    });
}

#[tokio::test]
async fn how_a_program_ended_counts_whatever_it_leaves_behind() {
    // The child does not mind SIGTERM, and holds the program's stderr.
    let script = |says: &str| {
        format!("trap '' TERM; {says} sleep 600 >/dev/null & echo 'No model.' >&2; exit 7")
    };
    let failure = Err(AgentError {
        code: "UPSTREAM_ERROR",
        message: "The agent's program failed with exit code 7.".to_owned(),
        cause: Some("exit code 7; last line of its stderr: No model.".to_owned()),
    });
    // Longer than the test takes; what is left is killed with the runtime.
    let grace = Duration::from_secs(20);
    let events: Vec<_> = agent(&script(""), grace).run(request()).collect().await;
    assert_eq!(events, std::slice::from_ref(&failure));
    let asks = script(r#"echo '{"@":"ask","id":"q","message":"Which?"}';"#);
    let events: Vec<_> = agent(&asks, grace).run(request()).collect().await;
    assert_eq!(events.last(), Some(&failure));
    assert_eq!(events.len(), 2);
}

/// A stream behind its first event, whose program is gone.
async fn behind_a_program_that_is_gone(script: &str) -> AgentStream {
    let request = request();
    let background = request.background.clone();
    let mut stream = agent(script, Duration::ZERO).run(request);
    assert!(stream.next().await.is_some_and(|event| event.is_ok()));
    background.close();
    background.wait().await;
    stream
}

#[tokio::test]
async fn all_that_a_program_said_arrives_however_slowly_it_is_taken() {
    let count = 1_000;
    let script = format!(
        r#"for i in {{0..{count}}}; do echo "{{\"type\":\"CUSTOM\",\"name\":\"n\",\"value\":$i}}"; done
        echo '{{"type":"AGENT_END"}}'"#
    );
    let mut stream = behind_a_program_that_is_gone(&script).await;
    tokio::time::pause();
    for n in 1..=count {
        let event = stream.next().await.map(|event| event.unwrap().kind);
        assert_eq!(event, Some(Kind::Custom { name: "n".to_owned(), value: n.into() }));
        tokio::time::advance(crate::process::PIPES_CLOSE_WITHIN).await;
    }
    let end = stream.next().await.map(|event| event.unwrap().kind);
    assert!(matches!(end, Some(Kind::AgentEnd { .. })), "{end:?}");
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn who_writes_on_without_a_pause_cannot_hold_a_run_whose_program_is_gone() {
    let line = r#"{"type":"CUSTOM","name":"n","value":1}"#;
    // It has left the program's group when that ends.
    let script = format!(
        r#"echo '{line}'; exec 4>&1
        read -r < <(setsid bash -c 'echo left; exec yes "$0" >&4' '{line}' 2>/dev/null)"#
    );
    let stream = behind_a_program_that_is_gone(&script).await;
    // What the pipe held, as much again, and what was read at once before and behind that.
    let most = (2 * (64 << 10) + 2 * (32 << 10)) / line.len();
    let events: Vec<_> = stream.take(most).collect().await;
    assert!(events.len() < most, "{}", events.len());
}
