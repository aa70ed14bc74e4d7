//! What tests of the whole server share: a server in this process with fixed times and counted
//! ids, agents made of a closure or of a script, a strict reader of server-sent events, a client
//! that reads when it likes, the log.
//! No assertion that hides an expected value.

pub(crate) mod agents;
pub(crate) mod config;
pub(crate) mod log;
pub(crate) mod model;
pub(crate) mod server;
pub(crate) mod sse;
pub(crate) mod wire;

use serde_json::{Value, json};

/// An HTTP client that asks no proxy.
pub(crate) fn client() -> reqwest::Client {
    // Another test may have been first.
    rustls::crypto::ring::default_provider().install_default().ok();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// The input of a run with one user message, from a peer that speaks 1.0.
pub(crate) fn input(thread: &str, run: &str) -> Value {
    json!({
        "threadId": thread,
        "runId": run,
        "protocolVersion": "1.0",
        "messages": [{"id": "u1", "role": "user", "content": "hello"}],
    })
}

/// The same with these words.
pub(crate) fn saying(thread: &str, run: &str, text: &str) -> Value {
    let mut input = input(thread, run);
    input["messages"][0]["content"] = text.into();
    input
}

/// The same with answers to interrupts.
pub(crate) fn resume(thread: &str, run: &str, entries: &Value) -> Value {
    let mut input = input(thread, run);
    input["resume"] = entries.clone();
    input
}

/// A configuration with one agent, `a`, that plays these lines.
pub(crate) fn script(lines: &[&str]) -> String {
    let line = |line: &&str| format!("            - '{line}'\n");
    let lines: String = lines.iter().map(line).collect();
    format!(
        "agentscope:\n  agents:\n    a:\n      type: scripted\n      turns:\n        - events:\n{lines}"
    )
}

/// Events of a run, as the clients see them.
pub(crate) mod expected {
    use serde_json::{Value, json};

    pub(crate) fn started(thread: &str, run: &str) -> Value {
        json!({
            "type": "RUN_STARTED", "threadId": thread, "runId": run, "protocolVersion": "1.0",
        })
    }

    pub(crate) fn text(id: &str, deltas: &[&str]) -> Vec<Value> {
        let mut events =
            vec![json!({"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"})];
        events.extend(
            deltas.iter().map(
                |delta| json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": delta}),
            ),
        );
        events.push(json!({"type": "TEXT_MESSAGE_END", "messageId": id}));
        events
    }

    pub(crate) fn success(thread: &str, run: &str) -> Value {
        json!({
            "type": "RUN_FINISHED", "threadId": thread, "runId": run,
            "outcome": {"type": "success"},
        })
    }

    pub(crate) fn error(code: &str, message: &str) -> Value {
        json!({
            "type": "RUN_ERROR", "message": message, "code": code,
            "timestamp": super::server::NOW_MS,
        })
    }
}
