//! Many runs of many rounds at once, half of them left in the middle, some parked for good:
//! nothing of them stays but what was asked.

use std::{collections::BTreeSet, fs, net::SocketAddr, path::Path, time::Duration};

use agentscope_agui::{
    runs::Principal,
    store::{Page, Store},
};
use futures_util::{StreamExt, stream};
use rustix::process::{Pid, test_kill_process};
use serde_json::{Value, json};
use tokio::{runtime::Handle, task::yield_now, time::timeout};

use super::{Setup, events, posts, raised, user, with};
use crate::{
    frontends::server::Server,
    idle::resident,
    support::{
        client,
        model::{Answer, Endpoint, Fate, Request, openai},
        server::checked,
        sse::Reader,
    },
};

const ROUNDS: usize = 20;

/// Whatever takes longer to go counts as left behind.
const SETTLED_WITHIN: Duration = Duration::from_secs(60);

/// What the person says where the model is to call a tool that asks first.
const WIPE: &str = "wipe it";

/// Calls a tool as often as there are rounds, and then says that it is done.
fn another_round(request: &Request) -> Answer {
    let messages = request.body["messages"].as_array().unwrap();
    let rounds = messages.iter().filter(|message| message["role"] == "tool").count();
    if rounds == ROUNDS {
        return openai::says(&["done"]);
    }
    let name = match rounds {
        3 if request.text.contains(WIPE) => "wipe",
        rounds if rounds % 5 == 1 => "pid",
        _ => "add",
    };
    let (id, arguments) = (format!("c{rounds}"), format!(r#"{{"round":{rounds}}}"#));
    openai::answer([
        openai::call(0, &id, name, arguments.split_at(4).0),
        openai::arguments(0, arguments.split_at(4).1),
        openai::finish("tool_calls"),
    ])
}

/// An agent with a tool over HTTP, one of an MCP server over stdio, and one that asks first.
fn setup(model: &Endpoint, tools: &Endpoint) -> Setup {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/mcp/raw.py");
    let mut setup = Setup::new(model)
        .tool(posts(tools, "add"))
        .tool(posts(tools, "wipe"))
        .tool(json!({"mcp": "raw"}))
        .agent("max-iters", ROUNDS + 1)
        .agent("permission", json!({"ask": ["wipe"]}));
    setup.0["agentscope"]["mcp-servers"] =
        json!({"raw": {"command": "python3", "args": [script], "timeout": "2m"}});
    setup
}

/// Clients of a server.
struct Clients {
    client: reqwest::Client,
    address: SocketAddr,
    /// Begins the names of their threads.
    name: String,
}

impl Clients {
    fn new(address: SocketAddr, name: &str) -> Self {
        Self { client: client(), address, name: name.to_owned() }
    }

    /// So many runs at once, and what they show; gives the processes in which tools ran.
    async fn play(&self, runs: usize) -> BTreeSet<String> {
        let numbers = stream::iter(0..runs);
        let runs = numbers.map(|number| self.one(number)).buffer_unordered(runs);
        runs.collect::<Vec<_>>().await.into_iter().flatten().collect()
    }

    /// One in four is asked and answers, the same number is not asked; of those that leave, half
    /// do so while the model speaks, half behind the third result; one in eight is asked and never
    /// answers.
    async fn one(&self, number: usize) -> BTreeSet<String> {
        let thread = format!("{}-{number}", self.name);
        let wipes = number % 4 == 2;
        let input = with(&thread, "r", &[user("u", if wipes { WIPE } else { "hello" })]);
        let response = self.start(&input).await;
        if number % 2 == 1 {
            let until = if number % 4 == 1 { 3 } else { 0 };
            leave_after(Reader::new(response), until).await;
            return BTreeSet::new();
        }
        let mut seen = checked(response, &input).await;
        if wipes {
            let [interrupt] = raised(&seen)[..] else { panic!("{seen:?}") };
            if number % 8 == 6 {
                return pids(&seen);
            }
            let payload = json!({"approved": true});
            let mut answer = with(&thread, "r2", &[]);
            answer["resume"] =
                json!([{"interruptId": interrupt, "status": "resolved", "payload": payload}]);
            seen.extend(checked(self.start(&answer).await, &answer).await);
        }
        let results = seen.iter().filter(|event| event["type"] == "TOOL_CALL_RESULT");
        assert_eq!(results.count(), ROUNDS);
        assert_eq!(super::said(&seen), "done");
        assert_eq!(seen.last().unwrap()["outcome"], events::success("", "")["outcome"]);
        pids(&seen)
    }

    async fn start(&self, input: &Value) -> reqwest::Response {
        let url = format!("http://{}/agui/a", self.address);
        let response = self.client.post(url).json(input).send().await.unwrap();
        assert_eq!(response.status(), 200);
        response
    }
}

/// Reads until so many results have come and the next call begins.
async fn leave_after(mut reader: Reader, results: usize) {
    let mut came = 0;
    loop {
        let event = reader.event().await.unwrap();
        came += usize::from(event["type"] == "TOOL_CALL_RESULT");
        if came == results && event["type"] == "TOOL_CALL_START" {
            return;
        }
    }
}

/// What the tool said that names its process.
fn pids(seen: &[Value]) -> BTreeSet<String> {
    let of_type = |kind| seen.iter().filter(move |event| event["type"] == kind);
    let named = of_type("TOOL_CALL_START").filter(|event| event["toolCallName"] == "pid");
    let calls: Vec<&Value> = named.map(|event| &event["toolCallId"]).collect();
    let results = of_type("TOOL_CALL_RESULT").filter(|event| calls.contains(&&event["toolCallId"]));
    results.map(|event| event["content"].as_str().unwrap().to_owned()).collect()
}

/// Every request was answered, or its connection is closed.
async fn over(endpoint: &Endpoint) {
    for request in endpoint.requests() {
        assert_ne!(request.fate().await, Fate::Answering);
    }
}

/// Waits until `settled`.
async fn until(what: &str, settled: impl Fn() -> bool) {
    let settled = async {
        while !settled() {
            yield_now().await;
        }
    };
    timeout(SETTLED_WITHIN, settled).await.unwrap_or_else(|_| panic!("{what}"));
}

/// Tasks of this test's runtime.
fn tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

fn exists(process: &str) -> bool {
    let process = Pid::from_raw(process.parse().unwrap()).unwrap();
    test_kill_process(process).is_ok()
}

/// The run markers of all threads, and how many threads wait for an answer.
async fn markers(store: &dyn Store) -> (usize, usize) {
    let page = Page { limit: usize::MAX, after: None, agent: None };
    let threads = store.list(&Principal::anonymous(), &page).await.unwrap();
    let count = |of: fn(&agentscope_agui::store::Thread) -> bool| {
        threads.iter().filter(|listed| of(&listed.thread)).count()
    };
    (count(|thread| thread.active.is_some()), count(|thread| thread.parked.is_some()))
}

#[tokio::test]
async fn nothing_of_many_long_runs_stays() {
    const RUNS: usize = 200;
    let before = tasks();
    let (model, tools) = (Endpoint::with(another_round).await, super::tools().await);
    let mut server = setup(&model, &tools).serve().await;
    ready(server.address).await;
    let idle = server.runs.activity();

    let clients = Clients::new(server.address, "t");
    let pids = clients.play(RUNS).await;

    until("a run goes on", || server.runs.activity() == idle).await;
    assert_eq!(markers(&**server.runs.ledger().store()).await, (0, RUNS / 8));
    over(&model).await;
    over(&tools).await;
    let [pid] = &Vec::from_iter(pids)[..] else { panic!("one process") };
    assert!(exists(pid));
    server.tell_to_stop();
    drop(clients);
    server.stopped().await;
    assert!(!exists(pid));
    // Whatever the server had open is closed behind its last run.
    model.connections(0).await;
    tools.connections(0).await;
    drop((model, tools));
    until(&format!("{before} {}", tasks()), || tasks() <= before).await;
}

/// Open files and sockets of a process.
fn descriptors(pid: u32) -> usize {
    fs::read_dir(Path::new("/proc").join(pid.to_string()).join("fd")).unwrap().count()
}

async fn ready(address: SocketAddr) {
    let url = format!("http://{address}/readyz");
    while client().get(&url).send().await.unwrap().status() != 200 {
        yield_now().await;
    }
}

/// The process holds the connections that the other ends know of, and no more; rounds of the same
/// runs do not make it grow.
#[tokio::test]
async fn the_process_does_not_grow() {
    const RUNS: usize = 40;
    /// What an allocator may keep for the next round; all that the runs of a round hold is more.
    const GROWTH: usize = 4 << 20;
    let (model, tools) = (Endpoint::with(another_round).await, super::tools().await);
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("agentscope.yaml");
    fs::write(&config, setup(&model, &tools).0.to_string()).unwrap();
    let mut server = Server::start(&config);
    ready(server.address()).await;
    let before = descriptors(server.pid());
    let mut sizes = Vec::new();
    let mut pids = BTreeSet::new();
    for round in 0..4 {
        pids.extend(Clients::new(server.address(), &format!("t{round}")).play(RUNS).await);
        over(&model).await;
        over(&tools).await;
        let known = || before + model.open() + tools.open();
        until("a descriptor is left", || descriptors(server.pid()) <= known()).await;
        sizes.push(resident(server.pid()));
    }
    assert!(sizes[3] <= sizes[1] + GROWTH, "{sizes:?}");
    let [pid] = &Vec::from_iter(pids)[..] else { panic!("one process") };
    server.signal("TERM");
    assert_eq!(server.exit_code(), Some(0));
    assert!(!exists(pid));
    model.connections(0).await;
    tools.connections(0).await;
}
