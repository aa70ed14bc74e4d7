//! Sub-agents as tools: a task for another agent of the registry, whatever its type.
//!
//! Every agent speaks as if it were the root of its run. Whoever delegates puts its own level on
//! what the child says ([`Place`]) and takes it off the answers that go to the child, so that
//! agents nest without knowing it and two invocations of one agent are told apart at any depth.

mod place;
mod said;

use std::{sync::Arc, time::Duration};

use agui_adapter::{
    model::{
        AgentEvent, AgentEventKind, Block, Msg, Role,
        event::{EndReason, Failure, Object, ResultState},
    },
    resume::Decision,
};
use agui_protocol::{
    Content, InterruptId, Message, MessageId, RunAgentInput, message::MessageBase,
};
use async_stream::stream;
use futures_util::{Stream, StreamExt};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use self::{
    place::Place,
    said::{End, Heard, Said},
};
use crate::agents::{Agent, AgentError, AgentRequest, Delegation, registry::Registered};

/// An agent that is offered as a tool.
#[derive(Clone)]
pub struct Child {
    /// Its id, which is the tool's name.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// The agent.
    pub agent: Arc<dyn Agent>,
    /// Longest time of one invocation; `None` = no limit.
    pub run_timeout: Option<Duration>,
}

impl From<Registered> for Child {
    fn from(registered: Registered) -> Self {
        let Registered { info, agent, run_timeout, .. } = registered;
        Self { id: info.id, name: info.name, agent, run_timeout }
    }
}

/// What the model is told of an agent that is offered as a tool.
pub fn description(registered: &Registered) -> String {
    let info = &registered.info;
    if info.description.is_empty() {
        format!("Hands a task to the agent {} and gives back its answer.", info.name)
    } else {
        info.description.clone()
    }
}

/// The arguments of every such tool.
pub fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": {
            "task": {
                "type": "string",
                "description": "What the agent is to do. It sees nothing of this conversation: \
                                say all that it needs to know.",
            },
        },
        "required": ["task"],
    })
}

/// How many agents may stand below the agent of this request, by its own limit and those of the
/// agents above it. At 0 no sub-agent is offered.
pub fn depth_left(request: &AgentRequest, max_subagent_depth: u32) -> u32 {
    let above = request.delegation.as_ref().map(|delegation| delegation.depth_left);
    above.map_or(max_subagent_depth, |left| left.min(max_subagent_depth))
}

/// A call of a sub-agent.
#[derive(Clone, Debug)]
pub struct SubagentCall {
    /// Id of the delegating call, not blank.
    pub id: String,
    /// Its arguments.
    pub arguments: Object,
    /// The thread's state at the time of the call.
    pub state: Arc<Value>,
    /// How many agents may stand below the agent that calls, at least 1.
    pub depth_left: u32,
    /// Tools that nobody below may call.
    pub denied: Vec<String>,
    /// What the child kept on the thread in earlier runs.
    pub kept: Option<Arc<Value>>,
}

/// An invocation that goes on.
#[derive(Clone, Debug)]
pub struct Resumed {
    /// What [`ChildItem::Waits`] handed over.
    pub parked: Value,
    /// The answers of the run; those to other questions than the child's do not matter.
    pub decisions: Vec<Decision>,
}

/// What a child gives its parent. [`ChildItem::Done`], [`ChildItem::Waits`] and
/// [`ChildItem::Failed`] come last.
#[derive(Debug, PartialEq)]
pub enum ChildItem {
    /// To be sent on as it is.
    Event(Box<AgentEvent>),
    /// What the child wants to know in later runs on the thread; the last one counts.
    Kept(Arc<Value>),
    /// The result of the call.
    Done {
        /// What the model reads.
        output: Vec<Block>,
        /// How it went.
        state: ResultState,
    },
    /// The child, or somebody below it, has asked something. It goes on with the next run.
    Waits {
        /// What it needs then.
        parked: Value,
    },
    /// The parent's run fails with this: an answer of a person cannot be taken, and its question
    /// stays open.
    Failed(AgentError),
}

/// The code of an answer that cannot be taken.
const INVALID_INPUT: &str = "INVALID_INPUT_ERROR";

/// Runs a task of `parent` on `child`. Dropping the stream stops the child.
pub fn invoke(
    parent: &AgentRequest,
    child: &Child,
    call: &SubagentCall,
    resumed: Option<Resumed>,
) -> impl Stream<Item = ChildItem> + Send + use<> {
    let place = Place::new(&child.id, &call.id);
    let request = request(parent, &place, child, call, resumed);
    let child = child.clone();
    stream! {
        let log = Log::new(&request, &child.id);
        let deadline = child.run_timeout.map(|longest| Instant::now() + longest);
        yield ChildItem::Event(place.put(start(&child.name)).into());
        let mut events = child.agent.run(request);
        let mut said = Said::default();
        let end = loop {
            let event = match deadline {
                None => events.next().await,
                Some(deadline) => match timeout_at(deadline, events.next()).await {
                    Ok(event) => event,
                    Err(_elapsed) => break End::Failed(failure("TIMEOUT_ERROR", TOO_LONG)),
                },
            };
            match event {
                Some(Ok(event)) => match said.hear(event) {
                    Heard::Event(event) => yield ChildItem::Event(place.put(*event).into()),
                    Heard::Kept(state) => yield ChildItem::Kept(state),
                    Heard::Nothing => {}
                    Heard::End(end) => break end,
                },
                Some(Err(error)) => {
                    log.failed(&error);
                    if error.code == INVALID_INPUT {
                        yield ChildItem::Failed(error);
                        return;
                    }
                    break End::Failed(failure(error.code, &error.message));
                }
                None => break said.broke_off(),
            }
        };
        drop(events);
        yield ChildItem::Event(place.put(end.event()).into());
        yield said.item(&end);
    }
}

/// What the client is told of a child that took longer than it may.
const TOO_LONG: &str = "The sub-agent took too long.";

fn failure(code: &str, message: &str) -> Failure {
    Failure { class: code.to_owned(), message: message.to_owned() }
}

fn start(name: &str) -> AgentEvent {
    let name = name.to_owned();
    AgentEvent::local(AgentEventKind::AgentStart { reply: None, session: None, name })
}

/// The child's run: the task is its whole history, and the client's own tools are not its.
fn request(
    parent: &AgentRequest,
    place: &Place,
    child: &Child,
    call: &SubagentCall,
    resumed: Option<Resumed>,
) -> AgentRequest {
    let task = call.arguments.get("task").and_then(Value::as_str).unwrap_or_default();
    let (parked, decisions) = match resumed {
        None => (None, Vec::new()),
        Some(Resumed { parked, decisions }) => {
            let parked = (!parked.is_null()).then(|| Arc::new(parked));
            (parked, decisions.iter().filter_map(|decision| place.take_off(decision)).collect())
        }
    };
    AgentRequest {
        thread_id: parent.thread_id.clone(),
        run_id: parent.run_id.clone(),
        input: Arc::new(input(parent, call, task, &decisions)),
        messages: messages(call, task, &decisions),
        decisions,
        parked,
        kept: call.kept.clone(),
        session: Arc::clone(&parent.session),
        delegation: Some(Arc::new(delegation(parent, child, call))),
        state: Arc::clone(&call.state),
        context: Arc::clone(&parent.context),
        cancel: parent.cancel.child_token(),
        request_id: Arc::clone(&parent.request_id),
        background: parent.background.clone(),
    }
}

/// The child's history: the task, and the results of its calls that an earlier run settled.
fn messages(call: &SubagentCall, task: &str, decisions: &[Decision]) -> Vec<Msg> {
    let message = |id: &str, role, block| Msg {
        id: id.to_owned(),
        name: String::new(),
        role,
        content: vec![block],
        metadata: Object::new(),
    };
    let asked = message(&call.id, Role::User, Block::Text { text: task.to_owned() });
    let settled = decisions.iter().filter(|decision| decision.open.source.is_none());
    let results = settled.filter_map(|decision| {
        let (result, call) = (decision.result.as_ref()?, decision.open.call.as_ref()?);
        let block = Block::ToolResult {
            call_id: call.wire_id.clone(),
            name: call.name.clone(),
            output: vec![Block::Text { text: result.text.clone() }],
            state: ResultState::from_name(&result.state).unwrap_or(ResultState::Success),
            metadata: Object::new(),
        };
        Some(message(decision.open.interrupt.id.as_str(), Role::Tool, block))
    });
    std::iter::once(asked).chain(results).collect()
}

/// The input as the child's client would have sent it. The message has the id of the call, so that
/// it is the same one when the child goes on.
fn input(
    parent: &AgentRequest,
    call: &SubagentCall,
    task: &str,
    decisions: &[Decision],
) -> RunAgentInput {
    let RunAgentInput { thread_id, run_id, protocol_version, parent_run_id, .. } = &*parent.input;
    let answers =
        |id: &InterruptId| decisions.iter().any(|decision| decision.open.interrupt.id == *id);
    let resume = parent.input.resume.iter().filter(|entry| answers(&entry.interrupt_id));
    RunAgentInput {
        thread_id: thread_id.clone(),
        run_id: run_id.clone(),
        protocol_version: protocol_version.clone(),
        parent_run_id: parent_run_id.clone(),
        state: Some(Arc::clone(&call.state)),
        messages: vec![Message::User {
            id: MessageId::from(call.id.as_str()),
            name: None,
            content: Content::Text(task.to_owned()),
            base: MessageBase::default(),
        }],
        tools: Vec::new(),
        context: parent.input.context.clone(),
        forwarded_props: parent.input.forwarded_props.clone(),
        resume: resume.cloned().collect(),
    }
}

fn delegation(parent: &AgentRequest, child: &Child, call: &SubagentCall) -> Delegation {
    let above = parent.delegation.as_deref();
    let source = above.map_or(place::ROOT, |above| &*above.source);
    Delegation {
        source: format!("{source}/{}", child.id).into(),
        depth: above.map_or(1, |above| above.depth.saturating_add(1)),
        depth_left: call.depth_left.saturating_sub(1),
        denied: call.denied.clone(),
    }
}

/// Names the invocation in the log.
struct Log {
    request: Arc<str>,
    thread: String,
    run: String,
    agent: String,
}

impl Log {
    fn new(request: &AgentRequest, agent: &str) -> Self {
        Self {
            request: Arc::clone(&request.request_id),
            thread: request.thread_id.as_str().to_owned(),
            run: request.run_id.as_str().to_owned(),
            agent: agent.to_owned(),
        }
    }

    fn failed(&self, error: &AgentError) {
        tracing::warn!(
            request.id = &*self.request,
            thread.id = self.thread,
            run.id = self.run,
            agent.id = self.agent,
            code = error.code,
            cause = error.cause.as_deref().unwrap_or_default(),
            "a sub-agent failed",
        );
    }
}

impl End {
    /// The end as the client is told it.
    fn event(&self) -> AgentEvent {
        let reason = match self {
            Self::Said(event, _) => return AgentEvent::clone(event),
            Self::Paused => EndReason::Unstated,
            Self::Failed(failure) => EndReason::Failed(failure.clone()),
        };
        AgentEvent::local(AgentEventKind::AgentEnd { reply: None, reason })
    }
}

#[cfg(test)]
mod tests;
