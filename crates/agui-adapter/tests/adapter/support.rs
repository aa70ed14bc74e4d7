//! What the adapter's tests share: an input, counted ids, and a clock that stands still.

use std::sync::Arc;

use agui_adapter::{
    options::AdapterOptions,
    outbound::{Adapter, AdapterParts, Clock, Extensions, IdSource, RunSetup},
};
use agui_protocol::RunAgentInput;
use serde_json::Value;

pub const NOW: i64 = 1_790_000_000_000;

/// `id-1`, `id-2`, …
pub struct CountedIds(pub u64);

impl IdSource for CountedIds {
    fn next_id(&mut self) -> String {
        self.0 += 1;
        format!("id-{}", self.0)
    }
}

/// Always [`NOW`].
pub struct StoppedClock;

impl Clock for StoppedClock {
    fn now_ms(&self) -> i64 {
        NOW
    }
}

/// The smallest input, with the members of `json` laid over it.
pub fn input(json: &str) -> RunAgentInput {
    let mut value = serde_json::json!({
        "threadId": "t1", "runId": "r1", "protocolVersion": "1.0",
        "messages": [{ "id": "u1", "role": "user", "content": "hi" }],
    });
    let over: Value = serde_json::from_str(json).expect("json");
    for (key, member) in over.as_object().expect("object") {
        value[key] = member.clone();
    }
    RunAgentInput::from_value(value).expect("input").input
}

pub fn adapter(setup: RunSetup, options: AdapterOptions, extensions: Extensions) -> Adapter {
    Adapter::new(AdapterParts {
        setup,
        options: Arc::new(options),
        extensions: Arc::new(extensions),
        context: Arc::default(),
        ids: Box::new(CountedIds(0)),
        clock: Box::new(StoppedClock),
    })
}
