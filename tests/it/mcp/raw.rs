//! A server over stdio that is made of nothing but the protocol: its process, its list, its death.

use std::{env, process::Command, str::FromStr};

use agentscope_agui::{
    process::Missing,
    tools::mcp::{McpStatus, program_faults},
};
use agui_adapter::runtime_context::RuntimeContext;
use rustix::process::{Pid, test_kill_process};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::support::log::Captured;

fn raw(mode: &str) -> McpServerConfig {
    server(stdio("python3", &["tests/it/mcp/raw.py", mode]))
}

/// Python itself, not what stands before it on the PATH and sets variables.
fn python() -> PathBuf {
    let program = "import sys; print(sys.executable, end='')";
    let found = Command::new("python3").args(["-c", program]).output().unwrap();
    PathBuf::from(String::from_utf8(found.stdout).unwrap())
}

impl Mcp {
    /// The text that a call gives.
    async fn text(&self, session: &str, name: &str) -> String {
        let tools = self.tools_of(session).await;
        let tool = tools.iter().find(|tool| tool.spec().name == name).unwrap();
        let events: Vec<ToolEvent> = tool.call(call(json!({}))).collect().await;
        match &events[..] {
            [ToolEvent::End(ToolEnd::Result { output, state: ResultState::Success })] => {
                match &output[..] {
                    [Block::Text { text }] => text.clone(),
                    other => panic!("{other:?}"),
                }
            }
            other => panic!("{other:?}"),
        }
    }

    async fn number(&self, session: &str, name: &str) -> Pid {
        process(&self.text(session, name).await)
    }
}

/// The process of this number.
pub(super) fn process(number: &str) -> Pid {
    Pid::from_raw(i32::from_str(number).unwrap()).unwrap()
}

/// Whether a process is there, or was not waited for.
pub(super) fn exists(process: Pid) -> bool {
    test_kill_process(process).is_ok()
}

#[tokio::test]
async fn a_program_has_the_environment_that_is_meant_for_it_and_no_more() {
    let McpTransport::Stdio { args, cwd, .. } = raw("").transport else { panic!() };
    let env = BTreeMap::from([("TOKEN".to_owned(), Secret::new("secret"))]);
    let mcp = Mcp::start(server(McpTransport::Stdio { command: python(), args, env, cwd }));
    let seen: BTreeMap<String, String> = serde_json::from_str(&mcp.text("", "env").await).unwrap();
    let inherited = ["PATH", "HOME", "LANG", "TMPDIR"];
    let inherited = inherited.iter().filter_map(|name| Some((*name, env::var(name).ok()?)));
    let mut expected: BTreeMap<String, String> =
        inherited.map(|(name, value)| (name.to_owned(), value)).collect();
    expected.insert("TOKEN".to_owned(), "secret".to_owned());
    // Python sets it where no locale is.
    let seen: BTreeMap<String, String> =
        seen.into_iter().filter(|(name, _)| name != "LC_CTYPE").collect();
    assert_eq!(seen, expected);
    mcp.end().await;
}

#[tokio::test]
async fn a_list_is_read_to_its_last_page() {
    let mcp = Mcp::start(raw("pages"));
    assert_eq!(mcp.names().await, ["t0", "t1", "t2"]);
    mcp.end().await;
}

#[tokio::test]
async fn tools_that_cannot_be_offered_are_left_out_and_logged() {
    let log = Captured::start();
    let mcp = Mcp::start(raw("odd"));
    assert_eq!(mcp.names().await, ["good", "also good"]);
    mcp.end().await;
    let log = log.text();
    let left_out: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("agentscope_agui"))
        .filter_map(|line| line.split_once("listing: ").map(|(_, said)| said))
        .collect();
    assert_eq!(
        left_out,
        [
            "a tool is left out mcp.server=\"s\" tool=\"text\" fault=\"its inputSchema is no object\"",
            "a tool is left out mcp.server=\"s\" tool=\"list\" fault=\"its arguments are no object\"",
            "a tool is left out mcp.server=\"s\" tool=\"\" fault=\"it has no name\"",
            "a tool is left out mcp.server=\"s\" tool=\"good\" fault=\"it is listed twice\"",
        ]
    );
    assert!(log.contains("stderr: raw is here mcp.server=\"s\""), "{log}");
}

#[tokio::test]
async fn a_server_without_tools_is_ready_and_has_none() {
    let mcp = Mcp::start(raw("no-tools"));
    assert_eq!(mcp.names().await, Vec::<String>::new());
    assert_eq!(mcp.servers.status(), BTreeMap::from([("s", McpStatus::Ready)]));
    mcp.end().await;
}

#[tokio::test]
async fn a_list_that_changes_is_asked_for_again() {
    let mcp = Mcp::start(raw(""));
    let first = ["env", "die", "wait", "cancelled", "pid", "child", "meta", "grow"];
    assert_eq!(mcp.names().await, first);
    assert_eq!(mcp.text("", "grow").await, "grown");
    // The new list comes behind the result of the call.
    while mcp.names().await.len() == first.len() {
        tokio::task::yield_now().await;
    }
    assert_eq!(mcp.text("", "grown").await, "tall");
    mcp.end().await;
}

#[tokio::test]
async fn a_call_tells_the_server_whose_run_it_is() {
    let mcp = Mcp::start(raw(""));
    let tool = mcp.tool("meta").await;
    let own = json!({"agentscope.agui/threadId": "t", "agentscope.agui/runId": "r"});
    let events: Vec<ToolEvent> = tool.call(call(json!({}))).collect().await;
    let of = |meta: &Value| {
        // As Python writes it.
        let pairs = meta.as_object().unwrap().iter();
        let mut pairs: Vec<String> =
            pairs.map(|(key, value)| format!("\"{key}\": {value}")).collect();
        pairs.sort();
        success(vec![text(&format!("{{{}}}", pairs.join(", ")))])
    };
    assert_eq!(events, [of(&own)]);
    let mut with_context = call(json!({}));
    let values = json!({"tenantId": "acme"}).as_object().unwrap().clone();
    let mut context = ToolContext::clone(&with_context.context);
    context.runtime = Arc::new(RuntimeContext::from(values));
    with_context.context = Arc::new(context);
    let events: Vec<ToolEvent> = tool.call(with_context).collect().await;
    let expected = r#"{"agentscope.agui/context": {"tenantId": "acme"}, "agentscope.agui/runId": "r", "agentscope.agui/threadId": "t"}"#;
    assert_eq!(events, [success(vec![text(expected)])]);
    mcp.end().await;
}

#[tokio::test]
async fn a_call_that_is_dropped_is_cancelled_at_the_server() {
    let mcp = Mcp::start(raw(""));
    let mut waits = mcp.start_call("wait", json!({})).await;
    assert_eq!(waits.next().await, Some(waiting()));
    drop(waits);
    assert_eq!(mcp.text("", "cancelled").await, r#"["the call was cancelled"]"#);
    mcp.end().await;
}

fn waiting() -> ToolEvent {
    ToolEvent::Progress { progress: 1.0, total: None, message: Some("waiting".to_owned()) }
}

#[tokio::test]
async fn a_call_without_progress_for_the_timeout_is_cancelled_and_says_so() {
    let timeout = Duration::from_secs(5);
    let mcp = Mcp::start(McpServerConfig { timeout, ..raw("") });
    assert_eq!(
        mcp.call("wait", json!({})).await,
        [waiting(), error("The tool `wait` did not answer within 5 s and was cancelled.")]
    );
    assert_eq!(mcp.text("", "cancelled").await, r#"["the call was cancelled"]"#);
    mcp.end().await;
}

#[tokio::test]
async fn when_the_program_dies_calls_fail_and_the_next_run_has_a_new_one() {
    let mcp = Mcp::start(raw(""));
    let first = mcp.number("", "pid").await;
    let mut waits = mcp.start_call("wait", json!({})).await;
    assert_eq!(waits.next().await, Some(waiting()));
    let lost = |name: &str| {
        error(&format!(
            "The tool `{name}` failed: the connection to its server was lost. Whether it did its \
             work is not known."
        ))
    };
    assert_eq!(mcp.call("die", json!({})).await, [lost("die")]);
    assert_eq!(waits.next().await, Some(lost("wait")));
    assert_eq!(waits.next().await, None);
    let second = mcp.number("", "pid").await;
    assert_ne!(first, second);
    assert!(!exists(first));
    mcp.end().await;
    assert!(!exists(second));
}

#[tokio::test]
async fn nothing_is_left_of_a_program_that_does_not_want_to_end() {
    let mcp = Mcp::start(raw("stubborn"));
    let (leader, child) = (mcp.number("", "pid").await, mcp.number("", "child").await);
    assert!(exists(leader) && exists(child));
    mcp.end().await;
    assert!(!exists(leader));
    assert!(!exists(child));
}

#[tokio::test]
async fn each_session_has_a_process_of_its_own_where_the_scope_is_the_thread() {
    let mcp = Mcp::start(McpServerConfig { scope: McpScope::Thread, ..raw("") });
    assert_eq!(mcp.servers.status(), BTreeMap::from([("s", McpStatus::Ready)]));
    assert_eq!(mcp.tasks.len(), 0);
    let (a, b) = (mcp.number("a", "pid").await, mcp.number("b", "pid").await);
    assert_ne!(a, b);
    assert_eq!(mcp.number("a", "pid").await, a);
    mcp.end().await;
    assert!(!exists(a));
    assert!(!exists(b));
}

#[tokio::test]
async fn a_program_that_is_missing_is_named_and_its_tools_are_unavailable() {
    let timeout = Duration::from_millis(50);
    let config = McpServerConfig { timeout, ..server(stdio("no-such-program-at-all", &[])) };
    let missing = "the program `no-such-program-at-all` is missing: it is not on the PATH and must \
                   be installed (the container image holds neither Python nor Node; README.md \
                   shows how to add them)";
    let fault = Missing { key: "command", message: missing.to_owned() };
    assert_eq!(program_faults(&config), [fault]);
    assert_eq!(program_faults(&raw("")), []);
    assert_eq!(program_faults(&server(http("http://127.0.0.1:1/".to_owned()))), []);
    let mcp = Mcp::start(config);
    let failed = mcp.servers.get("s").unwrap().tools("").await.map(|_tools| ()).unwrap_err();
    assert_eq!((failed.source_name.as_str(), failed.cause.as_str()), ("s", missing));
    assert_eq!(mcp.servers.status(), BTreeMap::from([("s", McpStatus::Failed)]));
    assert!(mcp.servers.get("another").is_none());
    mcp.end().await;
}

#[tokio::test]
async fn a_server_that_was_not_started_has_no_tools() {
    let servers = BTreeMap::from([("s".to_owned(), raw(""))]);
    rustls::crypto::ring::default_provider().install_default().ok();
    let servers = McpServers::new(&servers, reqwest::Client::new());
    let source = servers.get("s").unwrap();
    let failed = source.tools("").await.map(|_tools| ()).unwrap_err();
    assert_eq!(failed.to_string(), "the tools of s are unavailable: it was not started");
    assert_eq!(servers.status(), BTreeMap::from([("s", McpStatus::Starting)]));
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    stop.cancel();
    servers.start(&tasks, stop);
    let failed = source.tools("").await.map(|_tools| ()).unwrap_err();
    assert_eq!(failed.cause, "the server is shutting down");
}

#[tokio::test]
async fn a_server_that_says_again_and_again_that_its_list_changed_is_not_asked_as_often() {
    let mcp = Mcp::start(raw("restless"));
    let began = tokio::time::Instant::now();
    // After each list it says so.
    for _call in 0..50 {
        mcp.text("", "pid").await;
    }
    let lists: u64 = mcp.text("", "lists").await.parse().unwrap();
    // At first, at once when it says so, and then once a second.
    assert!(lists <= 2 + began.elapsed().as_secs(), "{lists}");
    mcp.end().await;
}

#[tokio::test]
async fn a_server_that_answers_nothing_any_more_is_started_again() {
    let timeout = Duration::from_secs(5);
    let mcp = Mcp::start(McpServerConfig { timeout, ..raw("slow") });
    let first = mcp.number("", "pid").await;
    assert_eq!(
        mcp.call("hang", json!({})).await,
        [error("The tool `hang` did not answer within 5 s and was cancelled.")]
    );
    // What is called meanwhile fails as well.
    while exists(first) {
        tokio::task::yield_now().await;
    }
    assert_ne!(mcp.number("", "pid").await, first);
    mcp.end().await;
}

#[tokio::test]
async fn a_question_that_nobody_read_in_time_is_over() {
    let (timeout, elicitation) = (Duration::from_secs(5), Elicitation::Wait);
    let mcp = Mcp::start(McpServerConfig { timeout, elicitation, ..raw("slow") });
    let asking = |message: &str| ToolEvent::Progress {
        progress: 1.0,
        total: None,
        message: Some(message.to_owned()),
    };
    let mut asks = mcp.start_call("elicit", json!({})).await;
    assert_eq!(asks.next().await, Some(asking("asking")));
    // The run reads nothing until the server has its answer.
    while mcp.text("", "answered").await == "no" {}
    assert_eq!(asks.next().await, Some(success(vec![text("decline")])));
    assert_eq!(asks.next().await, None);
    mcp.end().await;
}

#[tokio::test]
async fn a_long_message_of_progress_is_cut() {
    let mcp = Mcp::start(raw("slow"));
    let message = Some(format!("{}…", "x".repeat(2_000)));
    let told = ToolEvent::Progress { progress: 1.0, total: None, message };
    assert_eq!(mcp.call("shout", json!({})).await, [told, success(vec![text("done")])]);
    mcp.end().await;
}
