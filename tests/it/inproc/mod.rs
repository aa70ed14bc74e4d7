//! What the tests with agents written in Rust share: a server in this process with fixed times and
//! counted ids, agents made of a closure, and a strict reader of server-sent events. No assertion
//! that hides an expected value. Tests with scripted agents use [`super::support`].

pub(crate) mod agents;
pub(crate) mod server;
pub(crate) mod sse;

use serde_json::{Value, json};

/// The input of a run with one user message, from a peer that speaks 1.0.
pub(crate) fn input(thread: &str, run: &str) -> Value {
    json!({
        "threadId": thread,
        "runId": run,
        "protocolVersion": "1.0",
        "messages": [{"id": "u1", "role": "user", "content": "hello"}],
    })
}

/// The same with answers to interrupts.
pub(crate) fn resume(thread: &str, run: &str, entries: &Value) -> Value {
    let mut input = input(thread, run);
    input["resume"] = entries.clone();
    input
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
