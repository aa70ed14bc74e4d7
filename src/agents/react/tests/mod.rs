//! Tests of the loop, and what they share: a model that says what it is told, tools made of
//! closures, events as short lines.

mod asks;
mod build;
mod resumes;
mod rounds;
mod stops;
mod turns;

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use agui_adapter::{
    model::{
        AgentEvent, AgentEventKind, Block, Msg, Role,
        event::{DataChunk, Object, ResultData, ResultState},
    },
    options::ToolMergeMode,
    resume::{Decision, InterruptKind, OpenInterrupt, StoredCall, Verdict},
};
use agui_protocol::{Interrupt, ResumeStatus, RunAgentInput};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Parts, ReactAgent, Source, prompt::Prompt};
use crate::{
    agents::{Agent, AgentError, AgentRequest, directory::Directory},
    config::react::{Declared, PermissionConfig},
    llm::{ChatModel, FinishReason, ModelError, ModelEvent, ModelRequest, ModelStream},
    tools::{Tool, ToolCall, ToolEnd, ToolEvent, ToolSpec, ToolStream},
};

/// A run as short lines; an error is the last.
pub(super) type Lines = Vec<String>;

/// What a model says in one call; without an end it hangs.
type Said = Vec<Result<ModelEvent, ModelError>>;

/// A model that says what it is told.
#[derive(Default)]
pub(super) struct Script {
    answers: Mutex<VecDeque<Said>>,
    requests: Mutex<Vec<ModelRequest>>,
    /// Answers that are still being given.
    open: Arc<()>,
}

impl Script {
    fn new(answers: impl IntoIterator<Item = Said>) -> Arc<Self> {
        let answers = Mutex::new(answers.into_iter().collect());
        Arc::new(Self { answers, ..Self::default() })
    }

    fn requests(&self) -> Vec<ModelRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// The conversation of a request, a line for each block.
    fn heard(&self, request: usize) -> Vec<String> {
        self.requests()[request].messages.iter().flat_map(|message| written(message)).collect()
    }
}

impl ChatModel for Script {
    fn name(&self) -> &str {
        "script"
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        self.requests.lock().unwrap().push(request);
        let said = self.answers.lock().unwrap().pop_front().expect("one call too many");
        let ends = matches!(said.last(), Some(Ok(ModelEvent::Finish(_)) | Err(_)));
        let open = Arc::clone(&self.open);
        let said = stream::iter(said).map(move |event| {
            let _held = &open;
            event
        });
        if ends { Box::pin(said) } else { Box::pin(said.chain(stream::pending())) }
    }
}

fn written(message: &Msg) -> Vec<String> {
    let role = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    let block = |block: &Block| match block {
        Block::Text { text } => format!("{role}: {text}"),
        Block::Thinking { thinking, encrypted } => {
            format!("{role} thinks: {thinking} {}", encrypted.as_deref().unwrap_or_default())
        }
        Block::ToolUse { call, .. } => {
            format!("{role} calls {} {}({})", call.id, call.name, call.arguments)
        }
        Block::ToolResult { call_id, output, state, .. } => {
            let state = state.as_str();
            format!("{role} answers {call_id} {state}: {}", texts(output))
        }
        Block::Hint { text } => format!("{role} hint: {text}"),
        Block::Media { source, .. } => format!("{role} shows {source:?}"),
    };
    message.content.iter().map(block).collect()
}

fn texts(blocks: &[Block]) -> String {
    let text = |block: &Block| match block {
        Block::Text { text } => text.clone(),
        other => format!("{other:?}"),
    };
    blocks.iter().map(text).collect::<Vec<_>>().join("|")
}

pub(super) fn text(text: &str) -> Result<ModelEvent, ModelError> {
    Ok(ModelEvent::Text(text.to_owned()))
}

fn finish(reason: FinishReason) -> Result<ModelEvent, ModelError> {
    Ok(ModelEvent::Finish(reason))
}

fn says(said: &str) -> Said {
    vec![text(said), finish(FinishReason::Stop)]
}

/// An answer that makes these calls: id, name, arguments.
fn calls(calls: &[(&str, &str, &str)]) -> Said {
    let events = calls.iter().enumerate().flat_map(|(index, (id, name, arguments))| {
        [
            ModelEvent::CallStart { index, id: (*id).to_owned(), name: (*name).to_owned() },
            ModelEvent::CallDelta { index, delta: (*arguments).to_owned() },
            ModelEvent::CallEnd { index, encrypted: None },
        ]
    });
    events.map(Ok).chain([finish(FinishReason::ToolCalls)]).collect()
}

type Runs = dyn Fn(ToolCall) -> ToolStream + Send + Sync;

struct Fake {
    spec: ToolSpec,
    run: Box<Runs>,
}

impl Tool for Fake {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, call: ToolCall) -> ToolStream {
        (self.run)(call)
    }
}

fn tool(name: &str, run: impl Fn(ToolCall) -> ToolStream + Send + Sync + 'static) -> Arc<dyn Tool> {
    let parameters = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let spec = ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        parameters: Arc::new(parameters),
        read_only: false,
        destructive: false,
    };
    Arc::new(Fake { spec, run: Box::new(run) })
}

fn events(events: Vec<ToolEvent>) -> ToolStream {
    Box::pin(stream::iter(events))
}

fn result(text: impl Into<String>) -> ToolStream {
    events(vec![ToolEvent::End(ToolEnd::text(text, ResultState::Success))])
}

/// A tool that gives its arguments back.
fn echo(name: &str) -> Arc<dyn Tool> {
    let said = name.to_owned();
    tool(name, move |call| result(format!("{said} {}", Value::Object(call.arguments))))
}

/// An agent that can be changed before it is used.
fn parts(model: &Arc<Script>, tools: Vec<Arc<dyn Tool>>) -> Parts {
    let model: Arc<Script> = Arc::clone(model);
    Parts {
        name: "Assistant".to_owned(),
        prompt: Prompt::parse("Help.").unwrap(),
        model,
        max_iters: 10,
        tools: tools.into_iter().map(|tool| ("builtin".into(), tool)).collect(),
        sources: Vec::<Source>::new(),
        external: Vec::new(),
        subagents: Vec::new(),
        directory: Directory::default(),
        max_subagent_depth: 3,
        tool_timeout: Some(Duration::from_secs(10)),
        parallel_tool_calls: true,
        permission: PermissionConfig::default(),
        mode: ToolMergeMode::default(),
        history_limit: 200,
        tells_state: false,
        whole: OnceLock::new(),
        leaf: OnceLock::new(),
        notices: super::notices::Notices::default(),
    }
}

fn asking(mut parts: Parts, tools: &[&str]) -> Parts {
    parts.permission.ask = tools.iter().map(|tool| (*tool).to_owned()).collect();
    parts
}

fn external(name: &str) -> Declared {
    let parameters = Arc::new(json!({"type": "object", "properties": {}}));
    Declared { name: name.to_owned(), description: String::new(), parameters }
}

pub(super) fn request() -> AgentRequest {
    let input = json!({"threadId": "t1", "runId": "r1", "messages": []});
    let input: RunAgentInput = serde_json::from_value(input).unwrap();
    AgentRequest {
        thread_id: "t1".into(),
        run_id: "r1".into(),
        input: Arc::new(input),
        messages: vec![said("m1", Role::User, "Hello")],
        decisions: Vec::new(),
        parked: None,
        kept: None,
        session: "session".into(),
        delegation: None,
        state: json!({}).into(),
        context: Arc::default(),
        cancel: CancellationToken::new(),
        request_id: "q1".into(),
        background: TaskTracker::new(),
    }
}

/// With tools of the client.
fn offering(mut request: AgentRequest, tools: &[&str]) -> AgentRequest {
    let tool = |name: &&str| json!({"name": name, "description": "", "parameters": {}});
    let tools: Vec<Value> = tools.iter().map(tool).collect();
    let input = json!({"threadId": "t1", "runId": "r1", "messages": [], "tools": tools});
    request.input = Arc::new(serde_json::from_value(input).unwrap());
    request
}

fn said(id: &str, role: Role, text: &str) -> Msg {
    msg(id, role, Block::Text { text: text.to_owned() })
}

fn msg(id: &str, role: Role, block: Block) -> Msg {
    let id = id.to_owned();
    Msg { id, name: String::new(), role, content: vec![block], metadata: Object::new() }
}

/// A result as it stands in the history.
fn answered(call: &str, text: &str, state: ResultState) -> Msg {
    let block = Block::ToolResult {
        call_id: call.to_owned(),
        name: String::new(),
        output: vec![Block::Text { text: text.to_owned() }],
        state,
        metadata: Object::new(),
    };
    msg(&format!("result-{call}"), Role::Tool, block)
}

/// What a run said, and what it parked, as a store gives it back.
struct Ran {
    lines: Lines,
    parked: Option<Arc<Value>>,
    kept: Option<Arc<Value>>,
}

async fn run(parts: Parts, request: AgentRequest) -> Ran {
    run_agent(&ReactAgent(Arc::new(parts)), request).await
}

async fn run_agent(agent: &ReactAgent, request: AgentRequest) -> Ran {
    let events: Vec<_> = agent.run(request).collect().await;
    let mut names = Names::default();
    let stored = |state: &Arc<Value>| serde_json::from_str(&state.to_string()).ok();
    let mut ran = Ran { lines: Vec::new(), parked: None, kept: None };
    for event in &events {
        match event.as_ref().map(|event| &event.kind) {
            Ok(AgentEventKind::Park { state }) => ran.parked = stored(state),
            Ok(AgentEventKind::Keep { state }) => ran.kept = stored(state),
            _ => {}
        }
        ran.lines.push(names.line(event));
    }
    ran
}

async fn lines(parts: Parts, request: AgentRequest) -> Lines {
    run(parts, request).await.lines
}

/// Short names for ids that are made anew in every run.
#[derive(Default)]
struct Names(HashMap<String, String>);

impl Names {
    fn of(&mut self, id: &str) -> String {
        if id.len() < 32 {
            return id.to_owned();
        }
        let next = format!("r{}", self.0.len());
        self.0.entry(id.to_owned()).or_insert(next).clone()
    }

    /// A block's id holds that of its reply.
    fn block(&mut self, id: &str) -> String {
        let (reply, number) = id.split_once('-').unwrap();
        format!("{}-{number}", self.of(reply))
    }

    fn line(&mut self, event: &Result<AgentEvent, AgentError>) -> String {
        let event = match event {
            Ok(event) => event,
            Err(AgentError { code, message, .. }) => return format!("error {code}: {message}"),
        };
        let name = event.event_type().as_str();
        let rest = self.rest(&event.kind);
        match &event.source {
            Some(source) => format!("{source} {name} {rest}"),
            None => format!("{name} {rest}"),
        }
        .trim_end()
        .to_owned()
    }

    fn rest(&mut self, kind: &AgentEventKind) -> String {
        use AgentEventKind as K;
        match kind {
            K::AgentStart { reply, name, .. } => {
                format!("{} {name}", self.of(reply.as_deref().unwrap_or_default()))
            }
            K::AgentEnd { reply, reason } => {
                format!("{} {reason:?}", self.of(reply.as_deref().unwrap_or_default()))
            }
            K::ModelCallStart { reply, model } => {
                format!("{} {}", self.of(reply), model.as_deref().unwrap_or_default())
            }
            K::ModelCallEnd { reply, usage } => {
                let output = usage.as_ref().and_then(|usage| usage.output);
                format!("{} {}", self.of(reply), output.map(|n| n.to_string()).unwrap_or_default())
            }
            K::TextBlockStart { block, .. }
            | K::TextBlockEnd { block, .. }
            | K::ThinkingBlockStart { block, .. }
            | K::DataBlockEnd { block, .. } => self.block(block),
            K::TextBlockDelta { block, delta, .. } | K::ThinkingBlockDelta { block, delta, .. } => {
                format!("{} {delta}", self.block(block))
            }
            K::ThinkingBlockEnd { block, encrypted, .. } => {
                format!("{} {}", self.block(block), encrypted.as_deref().unwrap_or_default())
            }
            K::DataBlockStart { block, media_type, .. } => {
                format!("{} {}", self.block(block), media_type.as_deref().unwrap_or_default())
            }
            K::DataBlockDelta { block, data, .. } => {
                let (DataChunk::Base64(data) | DataChunk::Url(data)) = data;
                format!("{} {data}", self.block(block))
            }
            K::ToolCallStart { reply, call, name } | K::ToolResultStart { reply, call, name } => {
                format!("{} {} {name}", self.of(reply), self.of(call))
            }
            K::ToolCallDelta { call, delta } | K::ToolResultTextDelta { call, delta } => {
                format!("{} {delta}", self.of(call))
            }
            K::ToolCallEnd { call, encrypted } => {
                format!("{} {}", self.of(call), encrypted.as_deref().unwrap_or_default())
            }
            K::ToolResultDataDelta { call, data, .. } => {
                let data = match data {
                    ResultData::Text(text) => text.clone(),
                    ResultData::Media { kind, media_type, data, .. } => {
                        let (DataChunk::Base64(data) | DataChunk::Url(data)) = data;
                        let media_type = media_type.as_deref().unwrap_or_default();
                        format!("{kind:?} {media_type} {data}")
                    }
                };
                format!("{} {data}", self.of(call))
            }
            K::ToolResultEnd { reply, call, state } => {
                format!("{} {} {}", self.of(reply), self.of(call), state.as_str())
            }
            K::ExceedMaxIters { max_iters } => format!("{}", max_iters.unwrap()),
            K::RequireUserConfirm { reply, calls }
            | K::RequireExternalExecution { reply, calls } => {
                let reply = self.of(reply);
                let mut call = |call: &agui_adapter::model::event::Call| {
                    let rules = call.suggested_rules.len();
                    format!("{} {}({}) {rules}", self.of(&call.id), call.name, call.arguments)
                };
                let calls: Vec<String> = calls.iter().map(&mut call).collect();
                format!("{reply} {}", calls.join(", "))
            }
            K::RequestStop { generate_reason, .. } => generate_reason.clone().unwrap_or_default(),
            K::Custom { name, value } => format!("{name} {value}"),
            K::State { change } => format!("{change:?}"),
            K::Activity { id, activity_type, .. } => format!("{id} {activity_type}"),
            K::Question { id, message, .. } => format!("{id} {message}"),
            K::Keep { state } => state.to_string(),
            _ => String::new(),
        }
    }
}

fn stored(id: &str, arguments: &str) -> StoredCall {
    StoredCall {
        id: id.to_owned(),
        wire_id: id.to_owned(),
        name: "tool".to_owned(),
        arguments: arguments.to_owned(),
        input: serde_json::from_str(arguments).ok(),
    }
}

fn decision(kind: InterruptKind, question: Option<&str>, verdict: Verdict) -> Decision {
    let call = match &verdict {
        Verdict::Approved { call, .. }
        | Verdict::Denied { call, .. }
        | Verdict::Result { call, .. } => Some(call.clone()),
        Verdict::Answer { .. } => None,
    };
    let interrupt: Interrupt =
        serde_json::from_value(json!({"id": "i1", "reason": "tool_call"})).unwrap();
    let open = json!({"interrupt": interrupt, "kind": kind, "reply": "", "question": question});
    let mut open: OpenInterrupt = serde_json::from_value(open).unwrap();
    open.call = call;
    let status = ResumeStatus::Resolved;
    Decision { open, status, payload: None, verdict, settled: false, result: None }
}

fn approved(id: &str, arguments: &str) -> Decision {
    let verdict =
        Verdict::Approved { call: stored(id, arguments), edited: false, rules: Vec::new() };
    decision(InterruptKind::PermissionConfirm, None, verdict)
}

fn edited(id: &str, arguments: &str) -> Decision {
    let verdict =
        Verdict::Approved { call: stored(id, arguments), edited: true, rules: Vec::new() };
    decision(InterruptKind::PermissionConfirm, None, verdict)
}

fn denied(id: &str, reason: Option<&str>) -> Decision {
    let reason = reason.map(str::to_owned);
    let verdict = Verdict::Denied { call: stored(id, "{}"), reason };
    decision(InterruptKind::PermissionConfirm, None, verdict)
}

fn gave(id: &str, text: &str) -> Decision {
    let verdict = Verdict::Result { call: stored(id, "{}"), text: text.to_owned(), answered: true };
    decision(InterruptKind::ExternalExecution, None, verdict)
}

fn replied(id: &str, payload: Option<Value>) -> Decision {
    decision(InterruptKind::InputRequired, Some(id), Verdict::Answer { payload })
}

/// The lines from the first acting round on.
fn acting(lines: &[String]) -> &[String] {
    let first = lines.iter().position(|line| line.starts_with("MODEL_CALL_END")).unwrap();
    &lines[first + 1..]
}
