//! A client that joins a run under way has at the end what the client has that began it.

use agui_adapter::{
    connect::{Connect, JOINED_RUN, Snapshot},
    outbound::RunFailure,
    view::View,
};
use agui_protocol::verify::{VerifyInput, Violation, check_events};

use super::*;
use crate::conversion::script::*;

/// A client that comes to a run.
pub struct Joining {
    view: View,
    pub events: Vec<Event>,
}

fn request(peer: Peer) -> RunAgentInput {
    let mut request = support::input(r#"{"runId":"r9","messages":[]}"#);
    if peer == Peer::Legacy {
        request.protocol_version = None;
    }
    request
}

impl Joining {
    pub fn of(run: &Playing, peer: Peer, options: &AdapterOptions) -> Self {
        let connect =
            Connect::new(&request(peer), peer, Arc::new(options.clone()), Default::default());
        let state = run.adapter.shown_state().cloned();
        let snapshot = Snapshot { messages: run.thread(), state };
        let open = run.adapter.open_items();
        let (events, view) = connect.joining(&run.input.run_id, snapshot, open, support::NOW);
        Self { view, events }
    }

    pub fn show(&mut self, events: &[Event]) {
        self.view.show(events.to_vec(), support::NOW, &mut self.events);
    }

    pub fn client(&self) -> Client {
        let mut client = Client::new(&json!([]), None);
        client.apply_all(&self.events);
        client
    }

    pub fn findings(&self, peer: Peer) -> Vec<Violation> {
        let events: Vec<Value> = self.events.iter().map(|event| json!(event)).collect();
        check_events(&events, &VerifyInput::from(json!(request(peer))))
    }
}

/// Joins at every place of a run; every one must be right.
#[track_caller]
pub fn at_every_place(name: &str, lines: &[String], options: &AdapterOptions) {
    for place in 0..lines.len() {
        let mut run = Playing::new(support::input("{}"), options.clone());
        let (before, after) = lines.split_at(place);
        before.iter().for_each(|line| {
            run.feed(&read(line));
        });
        if run.end.is_some() {
            return;
        }
        let mut joining = Joining::of(&run, Peer::Current, options);
        after.iter().for_each(|line| joining.show(run.feed(&read(line))));
        joining.show(run.finish(StreamEnd::Completed));
        assert_eq!(joining.findings(Peer::Current), [], "{name} joined at {place}");
        assert_eq!(joining.client().messages, run.client().messages, "{name} joined at {place}");
    }
}

/// A step, a call with half of its arguments, a child that thinks, and text beside the call.
fn in_the_middle(options: &AdapterOptions) -> Playing {
    let mut run = Playing::new(support::input("{}"), options.clone());
    let lines = joined![
        start(),
        custom("agui.step", json!({ "name": "s", "phase": "start" })),
        call_start("c1", "find"),
        args("c1", "{\"a\":"),
        from("main/a", joined![any("AGENT_START", json!({ "name": "A" })), think("hm")]),
        text("So"),
    ];
    lines.iter().for_each(|line| {
        run.feed(&read(line));
    });
    run
}

fn open_options() -> AdapterOptions {
    AdapterOptions { enable_reasoning: true, emit_step_events: true, ..AdapterOptions::default() }
}

fn values(events: &[Event]) -> Vec<Value> {
    events.iter().map(|event| json!(event)).collect()
}

#[test]
fn what_is_open_is_opened_again_without_content() {
    let options = open_options();
    let mut run = in_the_middle(&options);
    let mut joining = Joining::of(&run, Peer::Current, &options);
    let call = json!({ "id": "c1", "type": "function",
        "function": { "name": "find", "arguments": "{\"a\":" } });
    assert_eq!(
        values(&joining.events),
        [
            json!({ "type": "RUN_STARTED", "threadId": "t1", "runId": "r9",
                "protocolVersion": "1.0", "metadata": { (JOINED_RUN): "r1" } }),
            json!({ "type": "MESSAGES_SNAPSHOT", "messages": [
                { "id": "u1", "role": "user", "content": "hi" },
                { "id": "id-1", "role": "assistant", "toolCalls": [call] },
                { "id": "id-3", "role": "reasoning", "content": "hm", "subagentRunId": "id-2" },
                { "id": "id-4", "role": "assistant", "content": "So" },
            ] }),
            json!({ "type": "STEP_STARTED", "stepName": "s" }),
            json!({ "type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "find",
                "parentMessageId": "id-1" }),
            json!({ "type": "SUBAGENT_STARTED", "subagentRunId": "id-2", "name": "A",
                "parentToolCallId": "c1", "parentMessageId": "id-1" }),
            json!({ "type": "REASONING_START", "messageId": "id-3", "subagentRunId": "id-2" }),
            json!({ "type": "REASONING_MESSAGE_START", "messageId": "id-3", "role": "reasoning",
                "subagentRunId": "id-2" }),
            json!({ "type": "TEXT_MESSAGE_START", "messageId": "id-4", "role": "assistant" }),
        ]
    );
    let head = joining.events.len();
    joining.show(run.feed(&read(&text("."))));
    joining.show(run.finish(StreamEnd::Cancelled("cancelled")));
    let live = values(&joining.events[head..]);
    assert_eq!(live[0]["delta"], ".");
    assert_eq!(
        live.last(),
        Some(&json!({ "type": "RUN_FINISHED", "threadId": "t1", "runId": "r9",
            "outcome": { "type": "cancelled" }, "metadata": { "agentscope.reason": "cancelled" } }))
    );
    assert!(run.adapter.open_items().is_empty());
}

#[test]
fn an_old_client_gets_an_open_call_from_its_beginning() {
    let options = open_options();
    let joining = Joining::of(&in_the_middle(&options), Peer::Legacy, &options);
    let events = values(&joining.events);
    assert_eq!(events[1]["messages"][1], json!({ "id": "id-1", "role": "assistant" }));
    let types: Vec<_> = events[2..].iter().map(|event| event["type"].clone()).collect();
    let thinking = ["REASONING_START", "REASONING_MESSAGE_START"];
    assert_eq!(types[..3], ["STEP_STARTED", "TOOL_CALL_START", "TOOL_CALL_ARGS"]);
    assert_eq!(
        (&types[3..5], &types[5..]),
        (&thinking.map(Value::from)[..], &["TEXT_MESSAGE_START".into()][..])
    );
    assert_eq!(events[4]["delta"], "{\"a\":");
    let hidden = AdapterOptions { emit_tool_call_args: false, ..options };
    let joining = Joining::of(&in_the_middle(&hidden), Peer::Legacy, &hidden);
    let types: Vec<_> = values(&joining.events).iter().map(|event| event["type"].clone()).collect();
    assert!(!types.contains(&json!("TOOL_CALL_ARGS")));
}

#[test]
fn before_the_first_event_a_client_joins_what_is_stored() {
    let options = AdapterOptions::default();
    let mut run = Playing::new(support::input("{}"), options.clone());
    let mut joining = Joining::of(&run, Peer::Current, &options);
    joining.show(run.feed(&read(&start())));
    joining.show(run.finish(StreamEnd::Failed(RunFailure::new("TIMEOUT_ERROR", "Too slow."))));
    let types: Vec<_> = joining.events.iter().map(|event| event.event_type().as_str()).collect();
    assert_eq!(types, ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_ERROR"]);
    assert_eq!(joining.findings(Peer::Current), []);
}
