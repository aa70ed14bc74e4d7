//! What the adapter's tests share: counted ids, a clock that stands still, and a checked stream.

use std::{path::PathBuf, sync::Arc};

use agui_adapter::{
    model::wire::{DecodeOptions, decode},
    options::{AdapterOptions, Peer},
    outbound::{Adapter, AdapterParts, Clock, Extensions, IdSource, RunSetup, StreamEnd},
};
use agui_protocol::{
    Event, RunAgentInput,
    verify::{VerifyInput, Violation, check_events},
};
use serde_json::Value;

pub const NOW: i64 = 1_790_000_000_000;

pub fn data_dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests")
}

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

pub struct Converted {
    pub events: Vec<Event>,
}

impl Converted {
    /// One event a line, as on the wire.
    pub fn to_lines(&self) -> String {
        let line = |event: &Event| serde_json::to_string(event).expect("json") + "\n";
        self.events.iter().map(line).collect()
    }

    /// What the independent checker says of the stream.
    pub fn violations(&self, input: &RunAgentInput) -> Vec<Violation> {
        let input = serde_json::to_value(input).expect("json");
        check_events(&self.values(), &VerifyInput::from(input))
    }

    pub fn values(&self) -> Vec<Value> {
        self.events.iter().map(|event| serde_json::to_value(event).expect("json")).collect()
    }
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

pub fn convert_lines(
    lines: &[String],
    input: RunAgentInput,
    peer: Peer,
    options: AdapterOptions,
    end: StreamEnd,
) -> Converted {
    convert_run(lines, RunSetup::new(Arc::new(input), peer), options, end)
}

pub fn convert_run(
    lines: &[String],
    setup: RunSetup,
    options: AdapterOptions,
    end: StreamEnd,
) -> Converted {
    let mut adapter = adapter(setup, options, Extensions::default());
    let mut events = Vec::new();
    let mut ended = None;
    for line in lines {
        let event = decode(line, DecodeOptions { keep_raw: false }).expect("an agent event");
        if let Some(end) = adapter.on_event(&event, &mut events) {
            ended.get_or_insert(end);
        }
    }
    if ended.is_none() {
        adapter.finish(end, &mut events);
    }
    Converted { events }
}
