//! Threads: what is remembered of them, who may see it, how their runs are joined, cancelled and
//! left alone, and how what waits on them is answered.

mod answers;
mod cancel;
mod connect;
mod disconnect;
mod expiry;
mod frontend_tools;
mod join;
mod limits;
mod listing;
mod logs;
mod memory;
mod repeats;
mod settled;
mod timeouts;
mod unanswered;

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicI64, AtomicU32, Ordering},
};

use agentscope_agui::{
    agents::{AgentRequest, registry::Registered},
    config::{AuthConfig, Config},
    runs::{AgentId, Principal, RunHandle, RunRequest, RunService, RunServiceSetup, Sources},
    store::ThreadKey,
};
use agui_adapter::{
    model::{AgentEvent, AgentEventKind, Block, Msg, Role, event::ResultState},
    outbound::{Clock, IdSource},
    resume::Verdict,
};
use agui_protocol::RunAgentInput;
use futures_util::{Stream, stream};
use serde_json::{Value, json};
use tokio::sync::{
    mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    watch,
};
use tokio_util::sync::CancellationToken;

use super::support::{
    agents::{Item, agent, asks_for, delta, end, start},
    expected,
    server::{NOW_MS, TestServer, checked, counted},
};

/// The header that names the user where [`two_users`] is set.
const USER: &str = "X-User-Id";

/// With memory on the server.
fn remembering() -> Config {
    let mut config = Config::default();
    config.agui.threads.server_side_memory = true;
    config
}

/// With callers told apart by a header.
fn two_users(mut config: Config) -> Config {
    config.server.auth = AuthConfig::TrustedHeader { header: USER.parse().unwrap() };
    config
}

/// A server whose ids never repeat, as they do not in earnest: `id-1`, `id-2` and so on.
pub(crate) async fn server(config: Config, agents: Vec<Registered>) -> TestServer {
    timed(config, &Hand::default(), agents).await
}

/// The same with a clock that the test moves.
async fn timed(config: Config, hand: &Hand, agents: Vec<Registered>) -> TestServer {
    let (ids, clock) = (Arc::<AtomicU32>::default(), hand.clone());
    let sources =
        Sources::new(move || Box::new(Unique(Arc::clone(&ids))), move || Box::new(clock.clone()));
    TestServer::built(config, agents, |builder| builder.sources(sources)).await
}

struct Unique(Arc<AtomicU32>);

impl IdSource for Unique {
    fn next_id(&mut self) -> String {
        format!("id-{}", self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// The hand of a clock that stands still until it is moved.
#[derive(Clone)]
struct Hand(Arc<AtomicI64>);

impl Default for Hand {
    fn default() -> Self {
        Self(Arc::new(AtomicI64::new(NOW_MS)))
    }
}

impl Hand {
    fn forward(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Clock for Hand {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The runs alone, without a server: for time that stands still.
fn service(config: &Config) -> RunService {
    let setup = RunServiceSetup { sources: counted(), ..RunServiceSetup::default() };
    RunService::new(10, config.agui.threads.clone(), setup)
}

fn request(agent: &Registered, input: &Value) -> RunRequest {
    RunRequest {
        agent: Arc::clone(&agent.agent),
        agent_id: AgentId::new(agent.info.id.as_str()),
        options: Arc::clone(&agent.options),
        principal: Principal::anonymous(),
        input: Arc::new(RunAgentInput::from_value(input.clone()).unwrap().input),
        context: Arc::default(),
        run_timeout: agent.run_timeout,
        accept_client_system_messages: false,
        request_id: "q".into(),
    }
}

/// All events of a stream.
async fn all(handle: RunHandle) -> Vec<Value> {
    let (mut batches, mut events) = (handle.events(), Vec::new());
    while let Some(batch) = batches.recv().await {
        events.extend(batch.iter().map(|event| json!(event)));
        let last = events.last().map(|event: &Value| event["type"].as_str().unwrap());
        if matches!(last, Some("RUN_FINISHED" | "RUN_ERROR")) {
            break;
        }
    }
    events
}

/// Where time stands still: resolves when every task waits for something.
async fn idle() {
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
}

/// The key of an anonymous caller's thread.
fn key(thread: &str) -> ThreadKey {
    ThreadKey { principal: Principal::anonymous(), thread: thread.into() }
}

/// Resolves when the thread `t` has no run.
async fn at_rest(server: &TestServer) {
    server.runs.ledger().store().at_rest(&key("t")).await;
}

/// What an agent was given in each of its runs: a line per message.
#[derive(Clone, Default)]
struct Given(Arc<Mutex<Vec<Vec<String>>>>);

impl Given {
    fn note(&self, request: &AgentRequest) {
        self.0.lock().unwrap().push(request.messages.iter().map(line).collect());
    }

    fn last(&self) -> Vec<String> {
        self.0.lock().unwrap().last().unwrap().clone()
    }

    /// How often the agent was called.
    fn runs(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

fn line(msg: &Msg) -> String {
    let role = match msg.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    let blocks = msg.content.iter().map(|block| match block {
        Block::Text { text } => text.clone(),
        Block::ToolUse { call, .. } => format!("{}({}) as {}", call.name, call.arguments, call.id),
        Block::ToolResult { call_id, output, state, .. } => {
            let texts = output.iter().map(|block| match block {
                Block::Text { text } => text.clone(),
                other => format!("{other:?}"),
            });
            format!("{call_id} {}: {}", state.as_str(), texts.collect::<String>())
        }
        other => format!("{other:?}"),
    });
    format!("{role}: {}", blocks.collect::<Vec<_>>().join(" | "))
}

/// An agent that says how many messages it was given.
fn counting(given: &Given) -> Registered {
    let given = given.clone();
    agent("a", move |request| {
        given.note(&request);
        let answer = format!("answer to {}", request.messages.len());
        stream::iter([Ok(start()), Ok(delta(&answer)), Ok(end())])
    })
}

/// An agent that asks for these calls of `wipe`, and says what was decided when it is resumed:
/// see [`verdicts`].
fn asking(given: &Given, calls: &'static [&'static str]) -> Registered {
    let given = given.clone();
    agent("asking", move |request| {
        given.note(&request);
        let mut events = vec![start()];
        match request.decisions.is_empty() {
            true => events.extend(calls.iter().flat_map(|call| asks_for(call))),
            false => events.extend([delta(&verdicts(&request)), end()]),
        }
        stream::iter(events.into_iter().map(Ok))
    })
}

/// What an agent was told of the answers.
fn verdicts(request: &AgentRequest) -> String {
    let verdicts = request.decisions.iter().map(|decision| {
        let verdict = match &decision.verdict {
            Verdict::Approved { call, .. } => format!("run {} {}", call.id, call.arguments),
            Verdict::Denied { call, reason: None } => format!("do not run {}", call.id),
            Verdict::Denied { call, reason: Some(why) } => format!("do not run {}: {why}", call.id),
            Verdict::Result { call, text, .. } => format!("{} gave {text}", call.id),
            Verdict::Answer { payload } => format!("{payload:?}"),
        };
        if decision.settled { format!("did {verdict}") } else { verdict }
    });
    verdicts.collect::<Vec<_>>().join("; ")
}

/// The ids of the interrupts with which a run ended.
fn raised(events: &[Value]) -> Vec<&str> {
    let last = events.last().unwrap();
    assert_eq!(last["outcome"]["type"], "interrupt", "{last}");
    let interrupts = last["outcome"]["interrupts"].as_array().unwrap();
    interrupts.iter().map(|one| one["id"].as_str().unwrap()).collect()
}

/// The refusal of a run that does not answer these interrupts as it must.
fn contract(message: &str, open: &Value) -> Value {
    let mut error = expected::error("AGUI_INTERRUPT_CONTRACT_ERROR", message);
    error["metadata"] = json!({"agentscope.openInterrupts": open});
    error
}

/// The first event of a run that ignores these entries.
fn ignoring(thread: &str, run: &str, entries: &[&str]) -> Value {
    let mut started = expected::started(thread, run);
    started["metadata"] = json!({"agentscope.ignoredResume": entries});
    started
}

/// An agent in whose run the test puts the words: `tell` for one run, then silence for the rest.
fn told(id: &str) -> (Registered, Tell) {
    let (tell, heard) = unbounded_channel();
    let heard = Mutex::new(Some(heard));
    let (stop, asked) = watch::channel(None);
    let agent = agent(id, move |request| {
        stop.send_replace(Some(request.cancel));
        said_by(heard.lock().unwrap().take())
    });
    (agent, Tell { events: tell, asked })
}

fn said_by(heard: Option<UnboundedReceiver<AgentEvent>>) -> impl Stream<Item = Item> + Send {
    stream::unfold(heard, |heard| async move {
        let Some(mut heard) = heard else { return std::future::pending().await };
        let event = heard.recv().await?;
        Some((Ok(event), Some(heard)))
    })
}

/// What [`told`] agents are told. Dropped, the agent's stream ends.
struct Tell {
    events: UnboundedSender<AgentEvent>,
    asked: watch::Receiver<Option<CancellationToken>>,
}

impl Tell {
    fn say(&self, events: impl IntoIterator<Item = AgentEvent>) {
        events.into_iter().for_each(|event| self.events.send(event).unwrap());
    }

    /// Resolves when the agent's stream was dropped.
    async fn dropped(&self) {
        self.events.closed().await;
    }

    /// Resolves when the agent was asked to stop.
    async fn asked_to_stop(&mut self) {
        let cancel = self.asked.wait_for(Option::is_some).await.unwrap().clone().unwrap();
        cancel.cancelled().await;
    }
}

/// The input of a run with these messages.
fn with(thread: &str, run: &str, messages: &[Value]) -> Value {
    json!({
        "threadId": thread, "runId": run, "protocolVersion": "1.0", "messages": messages,
    })
}

fn user(id: &str, text: &str) -> Value {
    json!({"id": id, "role": "user", "content": text})
}

/// An assistant message that only calls.
fn called(id: &str, call: &str, tool: &str, arguments: &str) -> Value {
    json!({
        "id": id, "role": "assistant",
        "toolCalls": [{
            "id": call, "type": "function",
            "function": {"name": tool, "arguments": arguments},
        }],
    })
}

fn result(id: &str, call: &str, text: &str) -> Value {
    json!({"id": id, "role": "tool", "toolCallId": call, "content": text})
}

/// The text message of a run, as a client keeps it.
fn answered(events: &[Value]) -> Value {
    let start = events.iter().find(|event| event["type"] == "TEXT_MESSAGE_START").unwrap();
    json!({"id": start["messageId"], "role": "assistant", "content": said(events)})
}

/// What was said in a run.
fn said(events: &[Value]) -> String {
    let text = events.iter().filter(|event| event["type"] == "TEXT_MESSAGE_CONTENT");
    text.filter_map(|event| event["delta"].as_str()).collect()
}

fn code(events: &[Value]) -> &str {
    events.last().unwrap()["code"].as_str().unwrap()
}

fn approve(id: &str) -> Value {
    json!({"interruptId": id, "status": "resolved", "payload": {"approved": true}})
}

/// A call of a tool, as an agent sends it.
fn calls(call: &str, tool: &str, arguments: &str) -> Vec<AgentEvent> {
    let (id, reply) = (call.to_owned(), "reply".to_owned());
    [
        AgentEventKind::ToolCallStart { reply, call: id.clone(), name: tool.to_owned() },
        AgentEventKind::ToolCallDelta { call: id.clone(), delta: arguments.to_owned() },
        AgentEventKind::ToolCallEnd { call: id, encrypted: None },
    ]
    .map(AgentEvent::local)
    .to_vec()
}

/// What a tool gave, as an agent sends it.
fn gives(call: &str, tool: &str, text: &str) -> Vec<AgentEvent> {
    let (id, reply, name) = (call.to_owned(), "reply".to_owned(), tool.to_owned());
    [
        AgentEventKind::ToolResultStart { reply: reply.clone(), call: id.clone(), name },
        AgentEventKind::ToolResultTextDelta { call: id.clone(), delta: text.to_owned() },
        AgentEventKind::ToolResultEnd { reply, call: id, state: ResultState::Success },
    ]
    .map(AgentEvent::local)
    .to_vec()
}

/// The events of a run of this user.
async fn run_as(server: &TestServer, user: &str, path: &str, input: &Value) -> Vec<Value> {
    let response = server.post(path).header(USER, user).json(input).send().await.unwrap();
    assert_eq!(response.status(), 200);
    checked(response, input).await
}

/// A thread as the server shows it.
async fn shown(server: &TestServer, thread: &str) -> Value {
    let response = server.get(&format!("/agui/threads/{thread}")).send().await.unwrap();
    assert_eq!(response.status(), 200);
    response.json().await.unwrap()
}
