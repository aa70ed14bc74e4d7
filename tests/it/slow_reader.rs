//! Clients that read slowly or not at all: what waits for them is bounded, and what ends does not
//! wait for them. Exact figures without HTTP, since what sockets hold on the way would blur them;
//! then the whole server.

use std::{fs, io, sync::Arc, time::Duration};

use agentscope_agui::{
    agents::{RuntimeContext, registry::Registered},
    config::{Config, ThreadsConfig},
    runs::{AgentId, Principal, RunHandle, RunRequest, RunService, RunServiceSetup, StartError},
};
use agui_adapter::transcript::MAX_RECORDED;
use agui_protocol::{Event, RunAgentInput};
use futures_util::{StreamExt, stream};
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::{
    frontends::server::Server,
    idle::resident,
    support::{
        agents::{agent, delta, says_its_id, start, then_silent},
        expected, input,
        server::{TestServer, counted, events},
        wire::Wire,
    },
};

const MIB: usize = 1 << 20;
const LIMIT: Duration = Duration::from_secs(5);

fn request(agent: &Registered, thread: &str) -> RunRequest {
    let input = RunAgentInput::from_value(input(thread, "r")).unwrap().input;
    RunRequest {
        agent: Arc::clone(&agent.agent),
        agent_id: AgentId::new(agent.info.id.as_str()),
        options: Arc::clone(&agent.options),
        principal: Principal::anonymous(),
        input: Arc::new(input),
        context: Arc::new(RuntimeContext::default()),
        run_timeout: Some(LIMIT),
        accept_client_system_messages: false,
        request_id: "q".into(),
    }
}

fn one_run_at_a_time() -> RunService {
    RunService::new(
        1,
        ThreadsConfig::default(),
        RunServiceSetup { sources: counted(), ..RunServiceSetup::default() },
    )
}

/// What waits in the stream of a run, to its end.
async fn rest(run: RunHandle) -> Vec<Value> {
    let mut batches = run.events();
    let mut events = Vec::new();
    while let Some(batch) = batches.recv().await {
        events.extend(batch.iter().map(|event: &Event| serde_json::to_value(event).unwrap()));
    }
    events
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_stops_the_agent_and_holds_up_no_end() {
    let piece = "x".repeat(MIB);
    let said = piece.clone();
    let endless = agent("endless", move |_request| {
        let said = said.clone();
        stream::iter([Ok(start())]).chain(stream::repeat_with(move || Ok(delta(&said))))
    });
    let runs = one_run_at_a_time();
    let unread = runs.start(request(&endless, "t1")).unwrap();
    let other = says_its_id("a");
    assert_eq!(runs.start(request(&other, "t2")).unwrap_err(), StartError::TooManyRuns);
    // The time limit ends the run, and its slot is free, although nobody has read a word.
    tokio::time::sleep(LIMIT + Duration::from_millis(1)).await;
    let read = rest(runs.start(request(&other, "t2")).unwrap()).await;
    assert_eq!(read.last(), Some(&expected::success("t2", "r")));
    // Four pieces in the stream and one that found no place are all that was kept.
    let mut expected = vec![expected::started("t1", "r")];
    expected.extend(expected::text("id-1", &[piece.as_str(); 5]));
    let message = "The run took longer than this server allows.";
    expected.push(expected::error("TIMEOUT_ERROR", message));
    assert!(rest(unread).await == expected, "other events than expected");
}

#[tokio::test(start_paused = true)]
async fn a_drain_takes_no_more_runs_and_waits_for_those_under_way() {
    let hangs = agent("hangs", |_request| then_silent(vec![start()]));
    let runs = one_run_at_a_time();
    let run = runs.start(request(&hangs, "t1")).unwrap();
    assert!(!runs.is_draining());
    runs.drain();
    assert!(runs.is_draining());
    let other = says_its_id("a");
    let began = Instant::now();
    let mut drained = std::pin::pin!(runs.drained());
    assert!(timeout(LIMIT / 2, drained.as_mut()).await.is_err());
    // Whoever asks learns why, although the only slot is taken too.
    assert_eq!(runs.start(request(&other, "t2")).unwrap_err(), StartError::ShuttingDown);
    // The run ends by its own limit, and is read or not.
    drained.await;
    assert_eq!(began.elapsed(), LIMIT);
    let message = "The run took longer than this server allows.";
    let end = expected::error("TIMEOUT_ERROR", message);
    assert_eq!(rest(run).await, [expected::started("t1", "r"), end]);
    assert_eq!(runs.start(request(&other, "t2")).unwrap_err(), StartError::ShuttingDown);
}

#[tokio::test]
async fn the_state_of_the_input_is_shared_and_not_copied() {
    let looks = agent("looks", |request| {
        let shared =
            request.input.state.as_ref().is_some_and(|sent| Arc::ptr_eq(sent, &request.state));
        stream::iter([Ok(start()), Ok(delta(&format!("{shared}")))])
    });
    let mut request = request(&looks, "t");
    Arc::make_mut(&mut request.input).state = Some(serde_json::json!({"a": [1, 2]}).into());
    let read = rest(one_run_at_a_time().start(request).unwrap()).await;
    assert_eq!(read[2]["delta"], "true");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_takes_nothing_is_cut_and_what_it_held_is_free() {
    let piece = "x".repeat(MIB / 4);
    let endless = agent("endless", move |_request| {
        let piece = piece.clone();
        stream::iter([Ok(start())]).chain(stream::repeat_with(move || Ok(delta(&piece))))
    });
    let mut config = Config::default();
    config.agui.write_timeout = Some(Duration::from_millis(100));
    config.agui.run_timeout = None;
    config.server.max_concurrent_runs = 1;
    let server = TestServer::with(config, vec![endless, says_its_id("a")]).await;
    let mut unread = Wire::run(server.address, "endless", &input("t", "r"));
    unread.until("RUN_STARTED");
    // Refused until the only slot is free; the thread is free before.
    let next = loop {
        let next = server.post("/agui/a").json(&input("t", "r2")).send().await.unwrap();
        if next.status() != 429 {
            break next;
        }
    };
    let mut expected = vec![expected::started("t", "r2")];
    expected.extend(expected::text("id-1", &["a"]));
    expected.push(expected::success("t", "r2"));
    assert_eq!(events(next).await, expected);
    // What the kernel held is gone too, else the stream would break off without an error.
    assert_eq!(unread.end().unwrap_err().kind(), io::ErrorKind::ConnectionReset);
}

const PIECES: usize = 1_600;
const PIECE: usize = 64 << 10;

/// What the server may grow by while it serves a slow reader: what a run records of itself, its
/// buffers, a few hundred KiB each, and what an allocator keeps.
const BOUND: usize = MAX_RECORDED + 16 * MIB;

#[test]
fn a_slow_reader_gets_everything_in_order_and_costs_little_memory_and_no_one_time() {
    let piece = "x".repeat(PIECE);
    let config = format!(
        r#"agentscope:
  agui: {{heartbeat-interval: 0}}
  agents:
    floods:
      type: scripted
      turns:
        - events:
            - '{{"type":"AGENT_START"}}'
            - '{{"@":"repeat","times":{PIECES},"line":{{"type":"TEXT_BLOCK_DELTA","blockId":"b","delta":"${{n}} {piece}"}}}}'
            - '{{"type":"AGENT_END"}}'
    short:
      type: scripted
      turns:
        - events: ['{{"type":"AGENT_START"}}', '{{"type":"AGENT_END"}}']
"#
    );
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("agentscope.yaml");
    fs::write(&file, config).expect("a file");
    let server = Server::start(&file);
    let short = |thread: &str| {
        let mut run = Wire::run(server.address(), "short", &input(thread, "r"));
        run.until("\r\n\r\n");
        run.body()
    };
    let whole = short("warm");
    let before = resident(server.pid());
    let mut slow = Wire::run(server.address(), "floods", &input("slow", "r"));
    slow.until("RUN_STARTED");
    slow.until("TEXT_MESSAGE_START");
    slow.until("\n\n");
    let mut most = 0;
    for n in 0..PIECES {
        let text = slow.until("\"}\n\n");
        let text = text.rsplit_once("\"delta\":\"").expect("a delta").1;
        assert!(text == format!("{n} {piece}\"}}\n\n"), "another piece than {n}");
        if n % 16 == 0 {
            // Reads on only when somebody else has had a whole run.
            let thread = format!("other-{n}");
            assert_eq!(short(&thread), whole.replace("warm", &thread));
            most = most.max(resident(server.pid()).saturating_sub(before));
        }
    }
    slow.until(r#""outcome":{"type":"success"}}"#);
    assert!(most <= BOUND, "{most} bytes more");
}
