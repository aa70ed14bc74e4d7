//! The react agent behind the whole server, with a model that the test plays: what comes from a
//! model's wire, and what is sent on it, up to the events that a front end sees.

mod aimock;
mod approvals;
mod calls;
mod children;
mod dialects;
mod disconnect;
mod errors;
mod history;
mod isolation;
mod media;
mod openai;
mod reasoning;
mod rounds;
mod retries;
mod soak;
mod unicode;
mod usage;

use std::time::Duration;

use serde_json::{Value, json};
use tokio::{runtime::Handle, task::yield_now, time::timeout};

use super::support::{
    model::{Answer, Endpoint, dialect::Dialect},
    server::{TestServer, unique},
};

/// The configuration of one agent, `a`, whose model is the test's.
struct Setup(Value);

impl Setup {
    fn new(model: &Endpoint) -> Self {
        Self::at(Dialect::OpenAi, &model.url())
    }

    /// With a model at any URL, which is asked once.
    fn at(dialect: Dialect, url: &str) -> Self {
        let model = json!({
            "provider": dialect.name(), "base-url": format!("{url}{}", dialect.base()), "api-key": "sk-test",
            "model": "m", "max-retries": 0,
        });
        // A machine that is slow makes no comments between the events.
        let agui = json!({"heartbeat-interval": 0});
        let agent = json!({"type": "react", "model": "mock", "sys-prompt": "Be brief."});
        Self(json!({
            "server": {},
            "agentscope": {"agui": agui, "models": {"mock": model}, "agents": {"a": agent}},
        }))
    }

    /// A switch under `agentscope.agui`.
    fn agui(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0["agentscope"]["agui"][key] = value.into();
        self
    }

    /// A key of the agent.
    fn agent(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0["agentscope"]["agents"]["a"][key] = value.into();
        self
    }

    /// Tools run one by one: side by side, the quicker one is told first.
    fn one_by_one(self) -> Self {
        self.agent("parallel-tool-calls", false)
    }

    /// A key of the model.
    fn model(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0["agentscope"]["models"]["mock"][key] = value.into();
        self
    }

    /// A tool more.
    fn tool(mut self, tool: Value) -> Self {
        let tools = &mut self.0["agentscope"]["agents"]["a"]["tools"];
        if tools.is_null() {
            *tools = json!([]);
        }
        tools.as_array_mut().unwrap().push(tool);
        self
    }

    /// Users are told apart by the header [`USER`].
    fn two_users(mut self) -> Self {
        self.0["server"]["auth"] = json!({"type": "trusted-header", "header": USER});
        self
    }

    /// No ids repeat, as they do not in earnest.
    async fn serve(self) -> TestServer {
        TestServer::of_yaml_built(&self.0.to_string(), |builder| builder.sources(unique())).await
    }
}

/// Names the user where [`Setup::two_users`] is set.
const USER: &str = "X-User-Id";

/// A tool that posts its arguments to the endpoint and gives what it answers.
fn posts(tools: &Endpoint, name: &str) -> Value {
    json!({"http": {
        "name": name, "description": format!("Does {name}."), "method": "POST",
        "url": format!("{}/{name}", tools.url()), "parameters": {"type": "object"},
    }})
}

/// An endpoint whose tools say their own name and arguments.
async fn tools() -> Endpoint {
    Endpoint::with(|request| Answer::text(200, &format!("{} {}", request.path, request.text))).await
}

/// A tool that the front end brings.
fn frontend(name: &str) -> Value {
    json!({
        "name": name, "description": "d",
        "parameters": {"type": "object", "properties": {"c": {"type": "string"}}},
    })
}

/// The input of a run with these messages.
fn with(thread: &str, run: &str, messages: &[Value]) -> Value {
    json!({"threadId": thread, "runId": run, "protocolVersion": "1.0", "messages": messages})
}

fn user(id: &str, text: &str) -> Value {
    json!({"id": id, "role": "user", "content": text})
}

fn result(id: &str, call: &str, text: &str) -> Value {
    json!({"id": id, "role": "tool", "toolCallId": call, "content": text})
}

/// An assistant message that calls.
fn called(id: &str, call: &str, tool: &str, arguments: &str) -> Value {
    let function = json!({"name": tool, "arguments": arguments});
    json!({
        "id": id, "role": "assistant",
        "toolCalls": [{"id": call, "type": "function", "function": function}],
    })
}

/// What was said in a run.
fn said(events: &[Value]) -> String {
    let text = events.iter().filter(|event| event["type"] == "TEXT_MESSAGE_CONTENT");
    text.map(|event| event["delta"].as_str().unwrap()).collect()
}

/// The last text message of a run, as a client keeps it.
fn answered(events: &[Value]) -> Value {
    let start = events.iter().rfind(|event| event["type"] == "TEXT_MESSAGE_START").unwrap();
    let id = &start["messageId"];
    let of_it = events
        .iter()
        .filter(|event| event["type"] == "TEXT_MESSAGE_CONTENT" && event["messageId"] == *id);
    let text: String = of_it.map(|event| event["delta"].as_str().unwrap()).collect();
    json!({"id": id, "role": "assistant", "content": text})
}

/// How a run ended, in one word.
fn code(events: &[Value]) -> &str {
    events.last().unwrap()["code"].as_str().unwrap()
}

/// The ids of the interrupts with which a run ended.
fn raised(events: &[Value]) -> Vec<&str> {
    let last = events.last().unwrap();
    assert_eq!(last["outcome"]["type"], "interrupt", "{last}");
    let interrupts = last["outcome"]["interrupts"].as_array().unwrap();
    interrupts.iter().map(|one| one["id"].as_str().unwrap()).collect()
}

/// Tasks of this test's runtime.
fn tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

/// Resolves when no more tasks are left than these.
async fn settled(tasks: usize) {
    let settled = async {
        while self::tasks() > tasks {
            yield_now().await;
        }
    };
    timeout(Duration::from_secs(60), settled).await.unwrap();
}

/// Events as front ends see them.
mod events {
    use serde_json::{Value, json};

    pub(super) use crate::support::expected::{error, started, success, text};

    /// A run from its start to its end.
    pub(super) fn run(
        start: Value,
        middle: impl IntoIterator<Item = Vec<Value>>,
        end: Value,
    ) -> Vec<Value> {
        let middle = middle.into_iter().flatten();
        [start].into_iter().chain(middle).chain([end]).collect()
    }

    /// The run `r` of the thread `t` that succeeds.
    pub(super) fn whole(middle: impl IntoIterator<Item = Vec<Value>>) -> Vec<Value> {
        run(started("t", "r"), middle, success("t", "r"))
    }

    /// The same with an error at its end.
    pub(super) fn failed(middle: impl IntoIterator<Item = Vec<Value>>, end: Value) -> Vec<Value> {
        run(started("t", "r"), middle, end)
    }

    pub(super) fn call(parent: &str, id: &str, name: &str, arguments: &[&str]) -> Vec<Value> {
        let mut events = vec![call_start(parent, id, name)];
        events.extend(arguments.iter().map(|delta| args(id, delta)));
        events.push(call_end(id));
        events
    }

    pub(super) fn call_start(parent: &str, id: &str, name: &str) -> Value {
        json!({
            "type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": name,
            "parentMessageId": parent,
        })
    }

    pub(super) fn args(id: &str, delta: &str) -> Value {
        json!({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": delta})
    }

    pub(super) fn call_end(id: &str) -> Value {
        json!({"type": "TOOL_CALL_END", "toolCallId": id})
    }

    pub(super) fn result(message: &str, call: &str, text: &str) -> Vec<Value> {
        vec![json!({
            "type": "TOOL_CALL_RESULT", "messageId": message, "toolCallId": call, "role": "tool",
            "content": text,
        })]
    }

    pub(super) fn failed_result(message: &str, call: &str, text: &str) -> Vec<Value> {
        let mut events = result(message, call, text);
        events[0]["metadata"] = json!({"agentscope.state": "error"});
        events
    }

    /// A span of thinking, with the artefact that belongs to it.
    pub(super) fn thinking(id: &str, deltas: &[&str], encrypted: Option<&str>) -> Vec<Value> {
        let mut events = vec![
            json!({"type": "REASONING_START", "messageId": id}),
            json!({"type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning"}),
        ];
        events.extend(deltas.iter().map(
            |delta| json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": id, "delta": delta}),
        ));
        events.push(json!({"type": "REASONING_MESSAGE_END", "messageId": id}));
        events.extend(encrypted.map(|value| {
            json!({
                "type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": id,
                "encryptedValue": value,
            })
        }));
        events.push(json!({"type": "REASONING_END", "messageId": id}));
        events
    }

    /// The end with what it cost.
    pub(super) fn costing(mut end: Value, mut usage: Value) -> Value {
        usage["model"] = "m".into();
        end["usage"] = json!([usage]);
        end
    }

    /// The end that waits for the front end.
    pub(super) fn pending(calls: &[&str]) -> Value {
        let mut end = success("t", "r");
        end["outcome"]["pendingToolCallIds"] = json!(calls);
        end
    }
}
