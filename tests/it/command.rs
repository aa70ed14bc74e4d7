//! Agents that are programs, through the whole server: what they are told, what becomes of what
//! they say, and that nothing of them is left.

use std::path::Path;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::support::{
    expected, input, log::Captured, resume, saying, server::TestServer, sse::Reader,
};

/// A program's reply: these lines, then its end.
fn says(text: &str) -> String {
    format!(
        r#"echo '{{"type":"AGENT_START"}}'
        echo '{{"type":"TEXT_BLOCK_DELTA","blockId":"b","delta":"{text}"}}'
        echo '{{"type":"AGENT_END"}}'
        "#
    )
}

/// A configuration whose agent `a` is this script of bash; `keys` are more keys of the agent.
fn bash(script: &str, keys: &Value) -> String {
    let mut agent = json!({"type": "command", "command": "bash", "args": ["-c", script]});
    let more = keys.as_object().expect("an object").clone();
    agent.as_object_mut().expect("an object").extend(more);
    // A literal `${` is written `$${` in a configuration.
    let config = json!({"agentscope": {"agents": {"a": agent}}}).to_string();
    config.replace("${", "$${")
}

async fn serve(script: &str) -> TestServer {
    TestServer::of_yaml(&bash(script, &json!({}))).await
}

/// A run of the script whose agent has these keys besides.
async fn run_with(script: &str, keys: Value) -> Vec<Value> {
    TestServer::of_yaml(&bash(script, &keys)).await.run("/agui/a", &input("t", "r")).await
}

async fn run(script: &str) -> Vec<Value> {
    run_with(script, json!({})).await
}

/// The events of a run that says nothing but why it failed.
fn failed(code: &str, message: &str) -> Vec<Value> {
    vec![expected::started("t", "r"), expected::error(code, message)]
}

fn joined(parts: &[&[Value]]) -> Vec<Value> {
    parts.concat()
}

/// A line to the test that every process of a program holds open: it ends with the last of them.
struct Line {
    listener: TcpListener,
}

impl Line {
    async fn open() -> Self {
        Self { listener: TcpListener::bind("127.0.0.1:0").await.unwrap() }
    }

    /// What a script begins with; it then writes to file descriptor 3.
    fn dial(&self) -> String {
        let port = self.listener.local_addr().unwrap().port();
        format!("exec 3<>/dev/tcp/127.0.0.1/{port}\n")
    }

    async fn answer(&self) -> TcpStream {
        self.listener.accept().await.unwrap().0
    }
}

/// All that is said on a line until nobody holds it any more.
async fn to_the_end(mut line: TcpStream) -> String {
    let mut said = String::new();
    line.read_to_string(&mut said).await.unwrap();
    said
}

async fn hears(line: &mut TcpStream, word: &str) {
    let mut said = vec![0; word.len()];
    line.read_exact(&mut said).await.unwrap();
    assert_eq!(String::from_utf8(said).unwrap(), word);
}

#[tokio::test]
async fn a_programs_lines_are_the_run() {
    assert_eq!(
        run(&says("Hello")).await,
        joined(&[
            &[expected::started("t", "r")],
            &expected::text("id-1", &["Hello"]),
            &[expected::success("t", "r")],
        ])
    );
}

#[tokio::test]
async fn directives_change_state_and_activities() {
    let events = run(r#"echo '{"@":"state","set":{"a":1}}'
        echo
        echo '{"@":"activity","id":"p","type":"PLAN","content":{"steps":[]}}'
        echo -n '{"type":"REPLY_END","reply_id":"r","finished_reason":"completed"}'"#)
    .await;
    assert_eq!(
        events,
        [
            expected::started("t", "r"),
            json!({"type": "STATE_SNAPSHOT", "snapshot": {"a": 1}}),
            json!({"type": "ACTIVITY_SNAPSHOT", "messageId": "id-1", "activityType": "PLAN",
                "content": {"steps": []}}),
            expected::success("t", "r"),
        ]
    );
}

/// Repeats what it reads as the value of a CUSTOM event.
const REPEATS: &str = r#"read -r line
    printf '{"type":"CUSTOM","name":"heard","value":%s}\n' "$line"
    echo '{"type":"AGENT_END"}'"#;

#[tokio::test]
async fn a_program_is_told_the_run_in_one_line() {
    let server = serve(REPEATS).await;
    let told = json!({
        "threadId": "t", "runId": "r", "protocolVersion": "1.0", "state": {"n": 1},
        "messages": [{"id": "u1", "role": "user", "content": "two\nlines"}],
        "tools": [{"name": "paint", "description": "Paints."}],
        "context": [{"description": "d", "value": "v"}], "forwardedProps": {"p": true},
    });
    let events = server.run("/agui/a", &told).await;
    assert_eq!(
        events[1]["value"],
        json!({
            "input": told,
            "messages": [{"name": "user", "role": "user", "id": "u1",
                "content": [{"type": "text", "text": "two\nlines"}]}],
            "state": {"n": 1}, "context": {}, "resume": [], "parked": null, "kept": null,
        })
    );
}

#[tokio::test]
async fn a_program_is_told_values_of_the_request_and_no_tools_that_are_not_its_own() {
    let config = bash(REPEATS, &json!({"agui": {"default-tool-merge-mode": "AGENT_ONLY"}}));
    let mut config: Value = serde_json::from_str(&config).unwrap();
    config["agentscope"]["agui"] = json!({"runtime-context": {"tenant": {"header": "X-Tenant"}}});
    let server = TestServer::of_yaml(&config.to_string()).await;
    let mut told = input("t", "r");
    told["tools"] = json!([{"name": "paint", "description": "Paints."}]);
    let response = server.post("/agui/a").header("X-Tenant", "blue").json(&told).send().await;
    let events = super::support::server::events(response.unwrap()).await;
    assert_eq!(events[1]["value"]["context"], json!({"tenant": "blue"}));
    assert_eq!(events[1]["value"]["input"]["tools"], json!([]));
}

/// Asks on the first run; on the next one says what it was told, without the input.
const ASKS: &str = r#"read -r line
    case "$line" in *'"resume":[]'*)
        echo '{"type":"AGENT_START"}'
        echo '{"type":"TOOL_CALL_START","replyId":"r1","toolCallId":"c1","toolCallName":"send"}'
        echo '{"type":"REQUIRE_USER_CONFIRM","replyId":"r1","toolCalls":[{"type":"tool_use","id":"c1","name":"send","input":{"to":"a"}}]}'
        echo '{"type":"TOOL_RESULT_START","replyId":"r1","toolCallId":"c2","toolCallName":"print"}'
        echo '{"type":"REQUIRE_EXTERNAL_EXECUTION","replyId":"r1","toolCalls":[{"type":"tool_use","id":"c2","name":"print","input":{}}]}'
        echo '{"@":"ask","id":"q1","message":"Which?"}'
        echo '{"@":"park","state":{"step":1}}'
        echo '{"@":"park","state":{"step":2}}'
        exit;;
    esac
    python3 -c 'import json, sys
line = json.loads(sys.argv[1])
for event in ({"type": "CUSTOM", "name": "told", "value": {k: line[k] for k in ("resume", "parked")}},
        {"type": "TOOL_RESULT_END", "replyId": "r1", "toolCallId": "c1", "state": "success"},
        {"type": "TOOL_RESULT_END", "replyId": "r1", "toolCallId": "c2", "state": "success"},
        {"type": "AGENT_END"}): print(json.dumps(event))' "$line""#;

/// Tells what it kept and keeps its run's id, unless it is to fail.
const KEEPS: &str = r#"python3 -c '
import json, sys
line = json.loads(sys.stdin.readline())
said = line["messages"][-1]["content"][0]["text"]
print(json.dumps({"type": "CUSTOM", "name": "kept", "value": line["kept"]}))
if said != "nothing": print(json.dumps({"@": "keep", "state": {"run": line["input"]["runId"]}}))
if said != "fail": print(json.dumps({"type": "AGENT_END"}))
'"#;

#[tokio::test]
async fn what_a_program_keeps_goes_to_its_later_runs_without_memory_and_only_if_the_run_finished() {
    let server = serve(KEEPS).await;
    let run = async |run: &str, says: &str| {
        let events = server.run("/agui/a", &saying("t", run, says)).await;
        events[1]["value"].clone()
    };
    assert_eq!(run("r1", "keep").await, json!(null));
    assert_eq!(run("r2", "nothing").await, json!({"run": "r1"}));
    assert_eq!(run("r3", "fail").await, json!({"run": "r1"}));
    assert_eq!(run("r4", "keep").await, json!({"run": "r1"}));
    assert_eq!(run("r5", "nothing").await, json!({"run": "r4"}));
}

#[tokio::test]
async fn answers_and_the_parked_state_go_back_to_the_program() {
    let server = serve(ASKS).await;
    let events = server.run("/agui/a", &input("t", "r1")).await;
    let interrupts = &events.last().unwrap()["outcome"]["interrupts"];
    let ids: Vec<&str> =
        interrupts.as_array().unwrap().iter().map(|i| i["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["r1:c1", "r1:c2", "r1:q1"]);

    let entry = |id: &str, payload: Value| json!({"interruptId": id, "status": "resolved", "payload": payload});
    let approval =
        json!({"approved": true, "editedArgs": {"to": "b"}, "rules": [{"tool_name": "send"}]});
    let entries = json!([
        entry("r1:c1", approval.clone()),
        entry("r1:c2", json!({"printer": 2})),
        {"interruptId": "r1:q1", "status": "cancelled"},
    ]);
    let events = server.run("/agui/a", &resume("t", "r2", &entries)).await;
    assert_eq!(
        events[1]["value"],
        json!({
            "parked": {"step": 2},
            "resume": [
                {"interruptId": "r1:c1", "kind": "permission_confirm", "replyId": "r1",
                    "toolCallId": "c1", "toolName": "send", "arguments": "{\"to\":\"b\"}",
                    "verdict": "approved", "edited": true, "rules": [{"tool_name": "send"}],
                    "payload": approval},
                {"interruptId": "r1:c2", "kind": "external_execution", "replyId": "r1",
                    "toolCallId": "c2", "toolName": "print", "arguments": "{}",
                    "verdict": "result", "text": "{\"printer\":2}", "cancelled": false,
                    "payload": {"printer": 2}},
                {"interruptId": "r1:q1", "kind": "input_required", "replyId": "",
                    "questionId": "q1", "verdict": "declined"},
            ],
        })
    );
}

#[tokio::test]
async fn a_program_has_its_own_environment_and_folder_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"printf '{"type":"CUSTOM","name":"here","value":["%s","%s"]}\n' \
        "$(compgen -e | sort | grep -vx -e PWD -e OLDPWD -e SHLVL -e _ | tr '\n' ' ')" "$OWN $PWD"
        echo '{"type":"AGENT_END"}'"#;
    let keys = json!({"cwd": folder.path(), "env": {"OWN": "a b", "TMPDIR": "/tmp", "LANG": "C"}});
    let events = run_with(script, keys).await;
    let here = folder.path().canonicalize().unwrap();
    assert_eq!(
        events[1]["value"],
        json!(["HOME LANG OWN PATH TMPDIR ", format!("a b {}", here.display())])
    );
}

#[tokio::test]
async fn what_a_program_does_wrong_is_told_with_its_place() {
    let log = Captured::start();
    let bad = |line| {
        failed(
            "UPSTREAM_ERROR",
            &format!("Line {line} of the agent's output is not an agent event."),
        )
    };
    for (script, message) in [
        ("echo; echo 'my secret'", bad(2)),
        (r#"echo '{"secret":1}'"#, bad(1)),
        (r#"echo '{"@":"sleep","ms":1}'"#, bad(1)),
        (
            "head -c 70 /dev/zero | tr '\\0' x; sleep 600",
            failed(
                "UPSTREAM_ERROR",
                "Line 1 of the agent's output is longer than this server allows.",
            ),
        ),
        (
            "echo 'ModuleNotFoundError: agentscope' >&2; exit 3",
            failed("UPSTREAM_ERROR", "The agent's program failed with exit code 3."),
        ),
        ("kill -9 $$", failed("UPSTREAM_ERROR", "The agent's program was ended by signal 9.")),
        ("exit 0", failed("AGENT_ENDED_EARLY", "The agent stopped before it had finished.")),
    ] {
        let events = run_with(script, json!({"line-limit": 64})).await;
        assert_eq!(events, message, "{script}");
    }
    let log = log.text();
    let causes: Vec<&str> =
        log.lines().filter_map(|line| Some(line.split_once("cause=")?.1)).collect();
    assert_eq!(
        causes,
        [
            r#""line 2 of its stdout: not JSON (column 1); what is not an event belongs on stderr""#,
            r#""line 1 of its stdout: neither an agent event (`type`) nor a directive (`@`)""#,
            r#""line 1 of its stdout: not a directive of programs: state, activity, ask, park, keep""#,
            r#""line 1 of its stdout is longer than 64 bytes (line-limit)""#,
            r#""exit code 3; last line of its stderr: ModuleNotFoundError: agentscope""#,
            r#""ended by signal 9""#,
        ]
    );
    assert!(!log.contains("secret"), "{log}");
}

#[tokio::test]
async fn a_half_written_line_of_a_program_that_crashed_is_not_the_fault() {
    assert_eq!(
        run(r#"echo -n '{"type":'; exit 7"#).await,
        failed("UPSTREAM_ERROR", "The agent's program failed with exit code 7.")
    );
}

#[tokio::test]
async fn silence_is_bounded() {
    assert_eq!(
        run_with("sleep 600", json!({"silence-timeout": "50ms"})).await,
        failed("UPSTREAM_ERROR", "The agent was silent for longer than this server allows.")
    );
}

#[tokio::test]
async fn a_program_that_is_gone_since_the_start_is_told_without_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("agent");
    std::os::unix::fs::symlink("/bin/true", &program).unwrap();
    let config = json!({"agentscope": {"agents": {"a": {"type": "command", "command": program}}}});
    let server = TestServer::of_yaml(&config.to_string()).await;
    std::fs::remove_file(&program).unwrap();
    assert_eq!(
        server.run("/agui/a", &input("t", "r")).await,
        failed("UPSTREAM_ERROR", "The agent's program could not be started.")
    );
}

#[tokio::test]
async fn stderr_goes_to_the_log_with_the_ids_of_the_run() {
    let log = Captured::start();
    let server = serve(&format!("printf 'loading\\n\\033[31mred\\n' >&2\n{}", says("Hi"))).await;
    let response = server.start("/agui/a", &input("t", "r")).await;
    let request = response.headers()["x-request-id"].to_str().unwrap().to_owned();
    response.text().await.unwrap();
    let mut server = server;
    server.tell_to_stop();
    server.stopped().await;
    let log = log.text();
    let lines: Vec<&str> =
        log.lines().filter_map(|line| Some(line.split_once("command::speaker: ")?.1)).collect();
    let ids = format!("request.id=\"{request}\" thread.id=\"t\" run.id=\"r\" agent.id=\"a\"");
    assert_eq!(
        lines,
        [format!("stderr: loading {ids}"), format!("stderr: \\u{{1b}}[31mred {ids}")]
    );
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_program_with_all_it_started() {
    let line = Line::open().await;
    // Neither the shell nor its children mind SIGTERM; one has left the shell's stdout.
    let script = format!(
        "{}trap '' TERM\n(exec >/dev/null; sleep 600) &\nsleep 600 &\n\
         echo '{{\"type\":\"AGENT_START\"}}'\necho -n ready >&3\nwhile :; do sleep 600; done",
        line.dial()
    );
    let server = TestServer::of_yaml(&bash(&script, &json!({"kill-grace": "10ms"}))).await;
    let mut reader = Reader::new(server.start("/agui/a", &input("t", "r")).await);
    let mut line = line.answer().await;
    assert_eq!(reader.event().await, Some(expected::started("t", "r")));
    hears(&mut line, "ready").await;
    drop(reader);
    assert_eq!(to_the_end(line).await, "");
}

#[tokio::test]
async fn a_program_told_to_end_has_its_grace() {
    let line = Line::open().await;
    let script = format!(
        "{}trap 'echo -n bye >&3; exit' TERM\necho '{{\"type\":\"AGENT_START\"}}'\n\
         while :; do sleep 0.01; done",
        line.dial()
    );
    let server = TestServer::of_yaml(&bash(&script, &json!({"kill-grace": "10m"}))).await;
    let mut reader = Reader::new(server.start("/agui/a", &input("t", "r")).await);
    let line = line.answer().await;
    assert_eq!(reader.event().await, Some(expected::started("t", "r")));
    drop(reader);
    assert_eq!(to_the_end(line).await, "bye");
}

#[tokio::test]
async fn a_program_may_finish_what_it_does_behind_its_reply() {
    let line = Line::open().await;
    // What it says late is read and not used, so that it does not fail on a closed pipe.
    let script = format!(
        "{}{}read -r -u 3\nfor i in {{1..9}}; do echo late || exit; done\necho -n done >&3",
        line.dial(),
        says("Hi")
    );
    let server = TestServer::of_yaml(&bash(&script, &json!({"kill-grace": "10m"}))).await;
    let events = server.run("/agui/a", &input("t", "r")).await;
    assert_eq!(events.last(), Some(&expected::success("t", "r")));
    let mut line = line.answer().await;
    line.write_all(b"go on\n").await.unwrap();
    assert_eq!(to_the_end(line).await, "done");
}

#[tokio::test]
async fn a_reply_that_is_complete_ends_the_run_although_the_program_goes_on() {
    let line = Line::open().await;
    let script = format!("{}{}sleep 600", line.dial(), says("Hi"));
    let server = TestServer::of_yaml(&bash(&script, &json!({"kill-grace": "10ms"}))).await;
    let events = server.run("/agui/a", &input("t", "r")).await;
    assert_eq!(events.last(), Some(&expected::success("t", "r")));
    assert_eq!(to_the_end(line.answer().await).await, "");
}

#[tokio::test]
async fn a_program_that_closes_its_stdout_and_goes_on_is_ended() {
    let log = Captured::start();
    let line = Line::open().await;
    let script = format!(
        "{}echo '{{\"@\":\"ask\",\"id\":\"q\",\"message\":\"Which?\"}}'\nexec >&-\nsleep 600",
        line.dial()
    );
    let server = TestServer::of_yaml(&bash(&script, &json!({"kill-grace": "10ms"}))).await;
    let response = server.start("/agui/a", &input("t", "r")).await;
    let request = response.headers()["x-request-id"].to_str().unwrap().to_owned();
    let events = Reader::new(response).rest().await;
    // Its question counts: it said all it had to say.
    assert_eq!(events.last().unwrap()["outcome"]["interrupts"][0]["id"], "r:q");
    let log = log.text();
    let words = "a program closed its stdout and went on; it is ended";
    let ids: Vec<&str> =
        log.lines().filter_map(|line| Some(line.split_once(words)?.1.trim())).collect();
    let expected = format!("request.id=\"{request}\" thread.id=\"t\" run.id=\"r\" agent.id=\"a\"");
    assert_eq!(ids, [expected]);
    assert_eq!(to_the_end(line.answer().await).await, "");
}

#[tokio::test]
async fn what_a_program_leaves_behind_ends_with_it() {
    let line = Line::open().await;
    // The child holds the program's stdout, which would keep the run waiting.
    let script =
        format!("{}sleep 600 &\n{}", line.dial(), says("Hi").replace("AGENT_END", "HINT_BLOCK"));
    let server = TestServer::of_yaml(&bash(&script, &json!({"kill-grace": "10ms"}))).await;
    let events = server.run("/agui/a", &input("t", "r")).await;
    assert_eq!(
        events.last(),
        Some(&expected::error("AGENT_ENDED_EARLY", "The agent stopped before it had finished."))
    );
    assert_eq!(to_the_end(line.answer().await).await, "");
}

#[tokio::test]
async fn no_process_is_left_unwaited_when_the_server_has_stopped() {
    let script = r#"printf '{"type":"CUSTOM","name":"pid","value":%s}\n' $$; sleep 600"#;
    let mut server = TestServer::of_yaml(&bash(script, &json!({"kill-grace": "10ms"}))).await;
    let mut reader = Reader::new(server.start("/agui/a", &input("t", "r")).await);
    reader.event().await;
    let pid = reader.event().await.unwrap()["value"].to_string();
    let process = Path::new("/proc").join(pid);
    assert!(process.exists() || !Path::new("/proc/self").exists());
    server.tell_to_stop();
    let events = reader.rest().await;
    assert_eq!(events.last().unwrap()["code"], "SERVER_SHUTTING_DOWN");
    server.stopped().await;
    assert!(!process.exists());
}

#[tokio::test]
async fn one_agent_serves_many_threads_at_once() {
    let server = serve(
        r#"read -r line
        case "$line" in *'"one"'*) word=one;; *) word=two;; esac
        printf '{"type":"TEXT_BLOCK_DELTA","blockId":"b","delta":"%s"}\n{"type":"AGENT_END"}\n' $word"#,
    )
    .await;
    let (one, two) = (saying("t1", "r1", "one"), saying("t2", "r2", "two"));
    let runs = tokio::join!(server.run("/agui/a", &one), server.run("/agui/a", &two));
    assert_eq!((&runs.0[2]["delta"], &runs.1[2]["delta"]), (&json!("one"), &json!("two")));
}

#[tokio::test]
async fn a_program_is_listed_with_what_is_known_of_it() {
    let keys = json!({"name": "Mine", "description": "Does things."});
    let server = TestServer::of_yaml(&bash("", &keys)).await;
    let capabilities = json!({
        "identity": {"name": "Mine", "type": "command", "description": "Does things."},
        "transport": {"streaming": true},
    });
    let answer = server.get("/agui/a/capabilities").send().await.unwrap();
    assert_eq!(answer.json::<Value>().await.unwrap(), capabilities);
}

/// A program that ends at once and leaves its stdout to somebody who left its group, and who has
/// left it when the program ends.
fn leaves_behind(line: &Line, doing: &str) -> String {
    let stranger = format!("echo left; exec >&4; {doing}");
    format!("{}exec 4>&1\nread -r < <(setsid bash -c '{stranger}')\nexit 0", line.dial())
}

#[tokio::test]
async fn what_left_the_group_cannot_hold_the_run() {
    let line = Line::open().await;
    // It goes on writing.
    let script = leaves_behind(&line, "while :; do echo; sleep 0.01; done");
    let events = run(&script).await;
    assert_eq!(events, failed("AGENT_ENDED_EARLY", "The agent stopped before it had finished."));
    // A closed pipe ends it.
    assert_eq!(to_the_end(line.answer().await).await, "");
}

#[tokio::test]
async fn half_a_line_at_the_cut_is_not_the_agents_fault() {
    let line = Line::open().await;
    let script = leaves_behind(&line, "while printf x; do sleep 0.01; done");
    let events = run(&script).await;
    assert_eq!(events, failed("AGENT_ENDED_EARLY", "The agent stopped before it had finished."));
    assert_eq!(to_the_end(line.answer().await).await, "");
}
