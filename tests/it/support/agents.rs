//! Agents made of a closure, and the events that they send.

use std::sync::Arc;

use agentscope_agui::agents::{
    Agent, AgentError, AgentRequest, AgentStream,
    registry::{AgentInfo, Registered},
};
use agui_adapter::model::{
    AgentEvent, AgentEventKind,
    event::{Call, EndReason},
};
use futures_util::{Stream, StreamExt, stream};

/// What an agent's stream gives.
pub(crate) type Item = Result<AgentEvent, AgentError>;

struct FromFn<F>(F);

impl<F: Fn(AgentRequest) -> AgentStream + Send + Sync + 'static> Agent for FromFn<F> {
    fn run(&self, request: AgentRequest) -> AgentStream {
        (self.0)(request)
    }
}

/// An agent of this id that answers with what `run` gives.
pub(crate) fn agent<S: Stream<Item = Item> + Send + 'static>(
    id: &str,
    run: impl Fn(AgentRequest) -> S + Send + Sync + 'static,
) -> Registered {
    Registered {
        info: AgentInfo {
            id: id.to_owned(),
            name: format!("Agent {id}"),
            description: format!("Test agent {id}."),
            capabilities: Default::default(),
        },
        agent: Arc::new(FromFn(move |request| Box::pin(run(request)) as AgentStream)),
        options: Arc::default(),
        run_timeout: None,
        accept_client_system_messages: false,
    }
}

/// An agent that always sends the same events.
pub(crate) fn plays(id: &str, events: Vec<AgentEvent>) -> Registered {
    agent(id, move |_request| stream::iter(events.clone().into_iter().map(Ok)))
}

/// An agent that says its own id.
pub(crate) fn says_its_id(id: &str) -> Registered {
    plays(id, vec![start(), delta(id), end()])
}

/// Sends the events and then never anything again.
pub(crate) fn then_silent(events: Vec<AgentEvent>) -> impl Stream<Item = Item> + Send {
    stream::iter(events.into_iter().map(Ok)).chain(stream::pending())
}

pub(crate) fn start() -> AgentEvent {
    AgentEvent::local(AgentEventKind::AgentStart {
        reply: Some("reply".to_owned()),
        session: None,
        name: "agent".to_owned(),
    })
}

pub(crate) fn delta(text: &str) -> AgentEvent {
    AgentEvent::local(AgentEventKind::TextBlockDelta {
        reply: "reply".to_owned(),
        block: "block".to_owned(),
        delta: text.to_owned(),
    })
}

pub(crate) fn end() -> AgentEvent {
    AgentEvent::local(AgentEventKind::AgentEnd { reply: None, reason: EndReason::Completed })
}

/// A call of the tool `wipe` and the request for permission to run it.
pub(crate) fn asks_for(call: &str) -> Vec<AgentEvent> {
    let (reply, id, name) = ("reply".to_owned(), call.to_owned(), "wipe".to_owned());
    let arguments = r#"{"disk":"a"}"#.to_owned();
    let asked = Call {
        id: id.clone(),
        name: name.clone(),
        arguments: arguments.clone(),
        input: serde_json::from_str(&arguments).ok(),
        suggested_rules: Vec::new(),
    };
    [
        AgentEventKind::ToolCallStart { reply: reply.clone(), call: id.clone(), name },
        AgentEventKind::ToolCallDelta { call: id.clone(), delta: arguments },
        AgentEventKind::ToolCallEnd { call: id, encrypted: None },
        AgentEventKind::RequireUserConfirm { reply, calls: vec![asked] },
    ]
    .map(AgentEvent::local)
    .to_vec()
}
