//! The program's commands: what they print and how they end.

use std::{
    io::{Read, Write},
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};

use super::support::sse::{Frame, frames};

pub(crate) fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_agentscope-agui"));
    command.args(arguments).env_clear();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(crate) fn run(arguments: &[&str], stdin: &str) -> Output {
    let mut child = program(arguments).spawn().unwrap();
    let mut sink = child.stdin.take().unwrap();
    // A program that fails early does not read to the end.
    sink.write_all(stdin.as_bytes()).ok();
    drop(sink);
    child.wait_with_output().unwrap()
}

/// Exit code and what stands on standard error.
fn failure(arguments: &[&str], stdin: &str) -> (i32, String) {
    let output = run(arguments, stdin);
    assert_eq!(output.stdout, b"");
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

const REPLY: &str = r#"{"type":"AGENT_START","replyId":"R"}
{"type":"THINKING_BLOCK_DELTA","replyId":"R","blockId":"T","delta":"hm"}

{"type":"TOOL_CALL_START","replyId":"R","toolCallId":"c1","toolCallName":"f"}
{"type":"TOOL_CALL_DELTA","toolCallId":"c1","delta":"{}"}
{"type":"TOOL_CALL_END","toolCallId":"c1"}
{"type":"AGENT_END","replyId":"R"}
{"type":"AGENT_START","replyId":"behind the end"}
"#;

fn converted(arguments: &[&str]) -> Vec<Value> {
    let output = run(arguments, REPLY);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
    let frames = frames(std::str::from_utf8(&output.stdout).unwrap());
    let events = frames.into_iter().map(|frame| match frame {
        Frame::Event(event) => event,
        Frame::Comment(text) => panic!("an unexpected comment: {text}"),
    });
    events.collect()
}

#[test]
fn convert_writes_the_frames_of_a_run() {
    let events = converted(&["convert", "--thread-id", "t", "--run-id", "r"]);
    let expected = [
        json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "1.0"}),
        json!({
            "type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "f",
            "parentMessageId": events[1]["parentMessageId"],
        }),
        json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": "{}"}),
        json!({"type": "TOOL_CALL_END", "toolCallId": "c1"}),
        json!({
            "type": "RUN_FINISHED", "threadId": "t", "runId": "r",
            "outcome": {"type": "success", "pendingToolCallIds": ["c1"]},
        }),
    ];
    assert_eq!(events, expected);
}

#[test]
fn a_switch_of_convert_is_a_switch_of_the_adapter() {
    let shown = converted(&["convert", "--enable-reasoning"]);
    let kinds: Vec<&str> = shown.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "RUN_STARTED",
            "REASONING_START",
            "REASONING_MESSAGE_START",
            "REASONING_MESSAGE_CONTENT",
            "REASONING_MESSAGE_END",
            "REASONING_END",
            "TOOL_CALL_START",
            "TOOL_CALL_ARGS",
            "TOOL_CALL_END",
            "RUN_FINISHED",
        ]
    );
}

#[test]
fn a_line_that_is_no_event_ends_convert_with_its_number() {
    let output = run(&["convert"], "{\"type\":\"AGENT_START\",\"replyId\":\"R\"}\n\nnonsense\n");
    assert_eq!(output.status.code(), Some(65));
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(message, "error: line 3: agent event is not JSON (column 2)\n");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let mut child = program(&["convert"]).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut sink = child.stdin.take().unwrap();
    sink.write_all(b"{\"type\":\"AGENT_START\",\"replyId\":\"R\"}\n").unwrap();
    stdout.read_exact(&mut [0; 6]).unwrap();
    drop(stdout);
    // More than a pipe holds, so that it cannot have been written before.
    let line = r#"{"type":"TEXT_BLOCK_DELTA","replyId":"R","blockId":"B","delta":"x"}"#;
    sink.write_all(format!("{line}\n").repeat(5_000).as_bytes()).ok();
    drop(sink);
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    for arguments in [&["init", "-"][..], &["schema"], &["check"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = program(arguments).stdout(full).output().unwrap();
        assert_eq!(
            String::from_utf8_lossy(&output.stderr),
            "error: standard output cannot be written: No space left on device (os error 28)\n",
            "{arguments:?}"
        );
        assert_eq!(output.status.code(), Some(69), "{arguments:?}");
        // A pipe that nobody reads any more.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = program(arguments).stdout(writer).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
    }
}

#[test]
fn what_is_wrong_outside_has_exit_codes_of_its_own() {
    let (code, message) = failure(&["serve", "--config", "-"], "server: {prot: 1}\n");
    assert_eq!(code, 78);
    assert_eq!(
        message.lines().filter(|line| !line.contains(" INFO ")).collect::<Vec<_>>(),
        [
            "error: the configuration is not valid",
            "standard input:1:10: server.prot: unknown key; did you mean `port`? Valid keys: host, \
             port, request-body-limit, max-concurrent-runs, shutdown-grace, auth",
            "  1 | server: {prot: 1}",
            "    |          ^",
        ]
    );
    let missing = "agentscope: {agents: {a: {type: command, command: no-such-program}}}\n";
    let (code, message) = failure(&["serve", "--config", "-"], missing);
    assert_eq!(code, 78);
    assert_eq!(
        message.lines().filter(|line| !line.contains(" INFO ")).collect::<Vec<_>>(),
        [
            "error: the configuration is not valid",
            "standard input:1:51: agentscope.agents.a.command: the program `no-such-program` is \
             missing: it is not on the PATH and must be installed (the container image holds \
             neither Python nor Node; README.md shows how to add them)",
            "  1 | agentscope: {agents: {a: {type: command, command: no-such-program}}}",
            "    |                                                   ^",
        ]
    );
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let (code, message) =
        failure(&["serve", "--config", "-"], &format!("server: {{port: {port}}}\n"));
    assert_eq!(code, 69);
    let last = message.lines().last().unwrap();
    assert_eq!(
        last,
        format!("error: cannot listen on 127.0.0.1:{port}: Address already in use (os error 98)")
    );
    assert_eq!(failure(&["convrt"], "").0, 64);
}
