//! Tests of the scripted agent, and what they share.

mod compile;
mod demos;
mod matching;
mod play;

use std::sync::Arc;

use agui_adapter::{
    model::{AgentEvent, Block, Msg, Role, event::Object},
    options::AdapterOptions,
    resume::{Decision, InterruptKind, OpenInterrupt, StoredCall, Verdict},
};
use agui_protocol::{Interrupt, ResumeStatus, RunAgentInput};
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::ScriptedAgent;
use crate::{
    agents::{Agent, AgentError, AgentRequest},
    config::{AgentConfig, AgentKind, ScriptedConfig, Turn, When},
};

type Played = Vec<Result<AgentEvent, AgentError>>;

fn turn(when: When, lines: &[&str]) -> Turn {
    let lines = lines.iter().enumerate().map(|(at, line)| (at + 1, (*line).to_owned())).collect();
    Turn { when, lines, origin: "demo/test.jsonl".into() }
}

fn config(turns: Vec<Turn>) -> AgentConfig {
    AgentConfig {
        name: String::new(),
        description: String::new(),
        adapter: AdapterOptions::default(),
        run_timeout: None,
        accept_client_system_messages: false,
        history_limit: 200,
        kind: AgentKind::Scripted(ScriptedConfig { turns }),
    }
}

fn agent(lines: &[&str]) -> ScriptedAgent {
    ScriptedAgent::compile("test", &config(vec![turn(When::default(), lines)])).unwrap()
}

fn request() -> AgentRequest {
    let input = json!({"threadId": "t1", "runId": "r1", "messages": []});
    let input: RunAgentInput = serde_json::from_value(input).unwrap();
    AgentRequest {
        thread_id: "t1".into(),
        run_id: "r1".into(),
        input: Arc::new(input),
        messages: Vec::new(),
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

fn saying(text: &str) -> AgentRequest {
    AgentRequest {
        messages: vec![message(Role::User, Block::Text { text: text.to_owned() })],
        ..request()
    }
}

fn message(role: Role, block: Block) -> Msg {
    let id = "m1".to_owned();
    Msg { id, name: String::new(), role, content: vec![block], metadata: Object::new() }
}

fn call(id: &str, arguments: &str) -> StoredCall {
    StoredCall {
        id: id.to_owned(),
        wire_id: format!("wire-{id}"),
        name: "tool".to_owned(),
        arguments: arguments.to_owned(),
        input: serde_json::from_str(arguments).ok(),
    }
}

fn decision(status: ResumeStatus, payload: Option<Value>, verdict: Verdict) -> Decision {
    let (kind, call, question) = match &verdict {
        Verdict::Approved { call, .. } | Verdict::Denied { call, .. } => {
            (InterruptKind::PermissionConfirm, Some(call.clone()), None)
        }
        Verdict::Result { call, .. } => {
            (InterruptKind::ExternalExecution, Some(call.clone()), None)
        }
        Verdict::Answer { .. } => (InterruptKind::InputRequired, None, Some("q1".to_owned())),
    };
    let interrupt = Interrupt {
        subagent_run_id: None,
        id: "i1".into(),
        reason: "tool_call".to_owned(),
        message: None,
        tool_call_id: None,
        response_schema: None,
        expires_at: None,
        metadata: None,
    };
    let reply = String::new();
    let open = OpenInterrupt {
        interrupt,
        kind,
        reply,
        source: None,
        task: None,
        above: Vec::new(),
        call,
        question,
        expires_ms: None,
    };
    Decision { open, status, payload, verdict, settled: false, result: None }
}

fn approved(id: &str, arguments: &str) -> Decision {
    let verdict = Verdict::Approved { call: call(id, arguments), edited: false, rules: Vec::new() };
    decision(ResumeStatus::Resolved, Some(json!({"approved": true})), verdict)
}

fn denied(status: ResumeStatus) -> Decision {
    let verdict = Verdict::Denied { call: call("c1", "{}"), reason: None };
    decision(status, None, verdict)
}

fn answered(payload: Value) -> Decision {
    let verdict = Verdict::Answer { payload: Some(payload.clone()) };
    decision(ResumeStatus::Resolved, Some(payload), verdict)
}

async fn played(agent: &ScriptedAgent, request: AgentRequest) -> Played {
    agent.run(request).collect().await
}
