//! Hundreds of clients at once that stay, leave in the middle, look at each other's threads, answer
//! and cancel: afterwards nothing of them is left. `LOAD_ROUNDS` says how many requests each of
//! them makes.

mod client;

use std::{fs, net::SocketAddr, sync::Arc, time::Duration};

use agentscope_agui::{
    agents::registry::Registry,
    config::Config,
    runs::Principal,
    server::ServerBuilder,
    store::{MemoryLimits, MemoryStore, Page, Store},
};
use agui_adapter::outbound::Clock;
use serde_json::Value;
use tokio::{sync::oneshot, task::JoinSet, time::timeout};
use tokio_util::task::TaskTracker;

use self::client::{Client, Tally};
use super::{frontends::server::Server, support};

const CLIENTS: usize = 500;
const THREADS: u64 = 300;

/// Everything that leaves within this time counts as gone.
const SETTLED_WITHIN: Duration = Duration::from_secs(60);

const AGENTS: &str = r#"
  agents:
    words:
      type: scripted
      turns:
        - events:
            - '{"type":"AGENT_START"}'
            - '{"@":"repeat","times":300,"line":{"type":"TEXT_BLOCK_DELTA","blockId":"b","delta":"word ${n} "}}'
            - '{"type":"AGENT_END"}'
    slow:
      type: scripted
      turns:
        - events:
            - '{"type":"AGENT_START"}'
            - '{"@":"repeat","times":5,"line":{"type":"TEXT_BLOCK_DELTA","blockId":"b","delta":"word ${n} "}}'
            - '{"@":"sleep","ms":20}'
            - '{"@":"repeat","times":5,"line":{"type":"TEXT_BLOCK_DELTA","blockId":"b","delta":"word ${n} "}}'
            - '{"type":"AGENT_END"}'
    asks:
      type: scripted
      turns:
        - when: {resume: any}
          events: ['{"type":"AGENT_START"}', '{"type":"AGENT_END"}']
        - events:
            - '{"type":"AGENT_START"}'
            - '{"@":"ask","id":"q","message":"Well?"}'
    fails:
      type: scripted
      turns:
        - events: ['{"type":"AGENT_START"}', '{"@":"fail","message":"no"}']
    panics:
      type: scripted
      turns:
        - events: ['{"type":"AGENT_START"}', '{"@":"panic"}']
    hangs:
      type: scripted
      turns:
        - events:
            - '{"type":"AGENT_START"}'
            - '{"type":"TEXT_BLOCK_DELTA","blockId":"b","delta":"word"}'
            - '{"@":"hang"}'
"#;

/// Runs end when their client leaves, so that agents may hang.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_of_runs_whose_clients_left() {
    let config = yaml("server-side-memory: true\n    on-unanswered-interrupts: cancel");
    let agents = ["words", "slow", "asks", "fails", "panics", "hangs"];
    in_this_process(&config, &agents).await;
}

/// Runs go on when their client leaves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_of_runs_that_went_on() {
    let config = yaml("interrupt-on-disconnect: false");
    in_this_process(&config, &["words", "slow", "asks", "fails"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_process_keeps_no_socket_and_ends_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("agentscope.yaml");
    let config = yaml("server-side-memory: true\n    on-unanswered-interrupts: cancel");
    fs::write(&path, config).expect("a file");
    let mut server = Server::start(&path);
    let before = descriptors(server.pid());
    let agents = ["words", "slow", "asks", "fails", "panics", "hangs"];
    let address = server.address();
    load(address, &agents).await;
    let gone = async {
        // Every look costs a round trip, in which the server gets on.
        while descriptors(server.pid()) > before || running(address).await > 0 {
            tokio::task::yield_now().await;
        }
    };
    let settled = timeout(SETTLED_WITHIN, gone).await;
    let (after, running) = (descriptors(server.pid()), running(address).await);
    assert!(settled.is_ok(), "{before} descriptors before, {after} after; {running} threads run");
    server.signal("TERM");
    assert_eq!(server.exit_code(), Some(0));
}

async fn in_this_process(yaml: &str, agents: &[&'static str]) {
    let mut config: Config = load_config(yaml);
    config.server.port = 0;
    let registry = Registry::from_config(&config).expect("agents");
    let slots = config.server.max_concurrent_runs;
    let store = Arc::new(MemoryStore::new(MemoryLimits::default(), Box::new(Now)));
    let kept: Arc<dyn Store> = store.clone();
    let server = ServerBuilder::new(config, registry).store(kept).bind().await.expect("a port");
    let (address, runs) = (server.local_addr(), server.runs());
    let (drain, drained) = oneshot::channel::<()>();
    let served = TaskTracker::new()
        .spawn(server.serve(async { drop(drained.await) }, std::future::pending::<()>()));

    load(address, agents).await;

    let gone = async {
        loop {
            let now = runs.activity();
            if now.tasks == 0 && now.joinable == 0 && now.free_slots == slots {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    let settled = timeout(SETTLED_WITHIN, gone).await;
    assert!(settled.is_ok(), "{:?}, {slots} slots", runs.activity());
    let page = Page { limit: usize::MAX, after: None, agent: None };
    let threads = store.list(&Principal::anonymous(), &page).await.expect("the list");
    assert!(!threads.is_empty(), "the load left open interrupts at least");
    let active = threads.iter().filter(|listed| listed.thread.active.is_some()).count();
    assert_eq!(active, 0, "active markers of {} threads", threads.len());
    // Ends when the last connection is closed.
    drain.send(()).expect("a server");
    timeout(SETTLED_WITHIN, served).await.expect("no connection is left").expect("an end");
}

/// All clients at once, each with its own sequence of requests, the same in every execution.
async fn load(address: SocketAddr, agents: &[&'static str]) {
    let rounds = std::env::var("LOAD_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    let rounds: usize = rounds.unwrap_or(6);
    let began = std::time::Instant::now();
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let client = Client::new(address, number as u64, agents, THREADS);
        clients.spawn(client.play(rounds));
    }
    let mut tally = Tally::default();
    while let Some(seen) = clients.join_next().await {
        tally.add(&seen.expect("no client finds a fault"));
    }
    println!("{tally:?} in {:?}", began.elapsed());
    assert_eq!(tally.requests, CLIENTS * rounds);
    assert!(tally.left > 0 && tally.finished > 0 && tally.failed > 0, "{tally:?}");
}

fn yaml(switches: &str) -> String {
    format!("server:\n  max-concurrent-runs: 1000\nagentscope:\n  agui:\n    {switches}{AGENTS}")
}

fn load_config(yaml: &str) -> Config {
    support::config::load(yaml, &[]).unwrap_or_else(|errors| panic!("{errors}")).config
}

/// Open files and sockets of a process.
fn descriptors(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).expect("a process").count()
}

/// Threads that run, of those used last.
async fn running(address: SocketAddr) -> usize {
    let url = format!("http://{address}/agui/threads?limit=200");
    let request = crate::support::client().get(url).header("connection", "close");
    let body: Value = request.send().await.expect("an answer").json().await.expect("JSON");
    let threads = body["threads"].as_array().expect("a list");
    threads.iter().filter(|thread| thread["status"] == "running").count()
}

struct Now;

impl Clock for Now {
    fn now_ms(&self) -> i64 {
        let since = std::time::SystemTime::UNIX_EPOCH.elapsed().expect("a time after 1970");
        i64::try_from(since.as_millis()).expect("a time before the end of all clocks")
    }
}
