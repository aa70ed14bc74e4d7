//! The official clients come to a thread at rest and to a run under way: each ends with what a
//! client of its release has that saw the whole run. The streams are made by the adapter; what a
//! server makes of them is not tested here.

use std::{fs, sync::Arc};

use agui_adapter::{
    connect::{Connect, Snapshot},
    model::{
        AgentEvent,
        wire::{DecodeOptions, decode},
    },
    options::{AdapterOptions, Peer},
    outbound::{Adapter, AdapterParts, Clock, Extensions, IdSource, RunSetup, StreamEnd},
    view::View,
};
use agui_protocol::{Event, Object, RunAgentInput, RunOutcome};
use serde_json::{Value, json};

use super::{
    driver::{self, CLIENTS, Job},
    root, server,
};

/// Text, thinking, calls that overlap, their results, media, children, an ask.
const CAPTURES: [&str; 6] = [
    "service/parallel_tool_calls_interleaved",
    "service/thinking_text",
    "service/audio_output",
    "service/text_between_tools",
    "java/subagent_forwarded",
    "java/permission_ask",
];

/// Places at which each run is joined, evenly spread.
const PLACES: usize = 6;

pub(super) struct CountedIds(pub(super) u64);

impl IdSource for CountedIds {
    fn next_id(&mut self) -> String {
        self.0 += 1;
        format!("id-{}", self.0)
    }
}

pub(super) struct StoppedClock;

impl Clock for StoppedClock {
    fn now_ms(&self) -> i64 {
        0
    }
}

fn options() -> AdapterOptions {
    AdapterOptions { enable_reasoning: true, ..AdapterOptions::default() }
}

fn peer(client: &str) -> Peer {
    if client == CLIENTS[0] { Peer::Current } else { Peer::Legacy }
}

/// The request that the driver's first step makes on this thread.
fn request(thread: &str) -> RunAgentInput {
    let input = json!({
        "threadId": thread, "runId": format!("{thread}-r1"), "protocolVersion": "1.0",
        "messages": [{ "id": "user-1", "role": "user", "content": "Hello" }],
        "state": {},
    });
    RunAgentInput::from_value(input).expect("an input").input
}

/// A run of a captured stream whose view is taken out.
struct Playing {
    adapter: Adapter,
    input: Arc<RunAgentInput>,
    ended: bool,
}

impl Playing {
    fn new() -> Self {
        let input = Arc::new(request("t"));
        let mut adapter = Adapter::new(AdapterParts {
            setup: RunSetup::new(Arc::clone(&input), Peer::Current),
            options: Arc::new(options()),
            extensions: Arc::new(Extensions::default()),
            context: Arc::default(),
            ids: Box::new(CountedIds(0)),
            clock: Box::new(StoppedClock),
        });
        adapter.take_view();
        Self { adapter, input, ended: false }
    }

    fn feed(&mut self, events: &[AgentEvent]) -> Vec<Event> {
        let mut out = Vec::new();
        for event in events {
            self.ended |= self.adapter.on_event(event, &mut out).is_some();
        }
        out
    }

    fn finish(&mut self) -> Vec<Event> {
        let mut out = Vec::new();
        if !self.ended {
            self.adapter.finish(StreamEnd::Completed, &mut out);
        }
        out
    }

    fn snapshot(&self) -> Snapshot {
        let messages = self.adapter.transcript().clone().onto(self.input.messages.clone());
        Snapshot { messages, state: self.adapter.shown_state().cloned() }
    }
}

/// The ways to come to a run: from its beginning, at a place, when it is over.
fn streams(events: &[AgentEvent], thread: &str, peer: Peer, way: Way) -> Vec<Event> {
    let mut run = Playing::new();
    let connect = || Connect::new(&request(thread), peer, Arc::new(options()), Object::new());
    let place = match way {
        Way::Whole => 0,
        Way::At(place) => place,
        Way::AtRest => events.len(),
    };
    let (before, after) = events.split_at(place);
    run.feed(before);
    if way == Way::AtRest {
        run.finish();
        let outcome = RunOutcome::Success { pending_tool_call_ids: Vec::new() };
        return connect().at_rest(run.snapshot(), outcome.into(), 0);
    }
    let (mut out, mut view) = match way {
        Way::Whole => {
            let input = request(thread);
            (Vec::new(), View::new(peer, &options(), input.thread_id, input.run_id))
        }
        _ => connect().joining(&run.input.run_id, run.snapshot(), run.adapter.open_items(), 0),
    };
    view.show(run.feed(after), 0, &mut out);
    view.show(run.finish(), 0, &mut out);
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Whole,
    At(usize),
    AtRest,
}

fn read(capture: &str) -> Vec<AgentEvent> {
    let path = root().join(format!("crates/agui-adapter/tests/captures/{capture}.jsonl"));
    let text = fs::read_to_string(path).expect("a capture");
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| decode(line, DecodeOptions { keep_raw: false }).expect(line)).collect()
}

#[test]
fn clients_that_come_later_have_what_the_others_have() {
    let mut jobs = Vec::new();
    for capture in CAPTURES {
        let events = read(capture);
        let places = (1..=PLACES).map(|at| Way::At(at * (events.len() - 1) / PLACES));
        let ways: Vec<Way> = [Way::Whole, Way::AtRest].into_iter().chain(places).collect();
        for client in CLIENTS {
            for (at, way) in ways.iter().enumerate() {
                let name = format!("{}-{at}", capture.replace('/', "."));
                // The thread is the job's: see `Job::new`.
                let thread = format!("{name}-{client}");
                let events = streams(&events, &thread, peer(client), *way);
                let lines: Vec<String> =
                    events.iter().map(|event| json!(event).to_string()).collect();
                let url = server::serve_once(&lines.join("\n"));
                jobs.push(Job::new(&name, client, &url, json!([{ "user": "Hello" }])));
            }
        }
    }
    let records = driver::drive(jobs);
    let mut faults = Vec::new();
    for records in records.chunks(PLACES + 2) {
        let (whole, others) = records.split_first().expect("the whole run");
        faults.extend(records.iter().flat_map(super::complaints));
        for record in others {
            let differs = |a: &Value, b: &Value| (a != b).then(|| format!("{a}\n  not {b}"));
            let found = differs(&record.messages, &whole.messages)
                .or_else(|| differs(&record.state, &whole.state));
            faults.extend(found.map(|fault| format!("{} {}: {fault}", record.name, record.client)));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
