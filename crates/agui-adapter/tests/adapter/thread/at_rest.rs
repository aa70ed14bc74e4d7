//! What a client is shown of a thread in which nothing runs.

use agui_adapter::{
    connect::{Connect, Ending, Snapshot, pending_calls},
    options::{Droppable, EnricherSpec},
};
use agui_protocol::{
    Interrupt, RunOutcome, ToolCallId,
    verify::{VerifyInput, check_events},
};
use serde_json::Map;

use super::*;

fn messages(list: Value) -> Vec<Message> {
    serde_json::from_value(list).expect("messages")
}

fn thread() -> Vec<Message> {
    messages(json!([
        { "id": "u1", "role": "user", "content": "hi" },
        { "id": "r1", "role": "reasoning", "content": "hm", "encryptedValue": "e" },
        { "id": "a1", "role": "assistant", "content": "yes", "toolCalls": [
            { "id": "c1", "type": "function", "function": { "name": "f", "arguments": "{\"a\":1}" } },
            { "id": "c2", "type": "function", "function": { "name": "f", "arguments": "{}" } }] },
        { "id": "t1", "role": "tool", "toolCallId": "c1", "content": [{ "type": "text", "text": "o" }, { "type": "text", "text": "k" }] },
        { "id": "p1", "role": "activity", "activityType": "P", "content": {} },
    ]))
}

fn show(peer: Peer, options: AdapterOptions, snapshot: Snapshot, ending: Ending) -> Vec<Value> {
    let mut request = support::input("{}");
    if peer == Peer::Legacy {
        request.protocol_version = None;
    }
    let connect = Connect::new(&request, peer, Arc::new(options), Map::new());
    let events = connect.at_rest(snapshot, ending, support::NOW);
    let events: Vec<Value> = events.iter().map(|event| json!(event)).collect();
    assert_eq!(check_events(&events, &VerifyInput::from(json!(request))), []);
    events
}

fn started() -> Value {
    json!({ "type": "RUN_STARTED", "threadId": "t1", "runId": "r1", "protocolVersion": "1.0" })
}

fn finished(outcome: Value) -> Value {
    json!({ "type": "RUN_FINISHED", "threadId": "t1", "runId": "r1", "outcome": outcome })
}

fn success(pending: &[&str]) -> Ending {
    let ids = pending.iter().map(|id| ToolCallId::from(*id)).collect();
    RunOutcome::Success { pending_tool_call_ids: ids }.into()
}

fn reasoning() -> AdapterOptions {
    AdapterOptions { enable_reasoning: true, ..AdapterOptions::default() }
}

#[test]
fn a_thread_is_shown_as_snapshots() {
    let state = Some(Arc::new(json!({ "n": 1 })));
    let snapshot = Snapshot { messages: thread(), state };
    let events = show(Peer::Current, reasoning(), snapshot, success(&["c2"]));
    assert_eq!(
        events,
        [
            started(),
            json!({ "type": "MESSAGES_SNAPSHOT", "messages": thread() }),
            json!({ "type": "STATE_SNAPSHOT", "snapshot": { "n": 1 } }),
            finished(json!({ "type": "success", "pendingToolCallIds": ["c2"] })),
        ]
    );
}

#[test]
fn a_thread_that_nobody_knows_wipes_nothing() {
    let events = show(Peer::Current, AdapterOptions::default(), Snapshot::default(), success(&[]));
    assert_eq!(events, [started(), finished(json!({ "type": "success" }))]);
}

#[test]
fn open_interrupts_are_raised_again() {
    let interrupt: Interrupt =
        serde_json::from_value(json!({ "id": "R:c2", "reason": "tool_call", "toolCallId": "c2" }))
            .expect("an interrupt");
    let ending = RunOutcome::Interrupt { interrupts: vec![interrupt] }.into();
    let snapshot = Snapshot { messages: thread(), state: None };
    let events = show(Peer::Current, reasoning(), snapshot, ending);
    let interrupts = json!([{ "id": "R:c2", "reason": "tool_call", "toolCallId": "c2" }]);
    assert_eq!(events[2], finished(json!({ "type": "interrupt", "interrupts": interrupts })));
}

#[test]
fn what_switches_hide_is_hidden_here_too() {
    let snapshot = || Snapshot { messages: thread(), state: Some(Arc::new(json!({}))) };
    let options = AdapterOptions {
        emit_tool_call_args: false,
        emit_state_events: false,
        enrichers: vec![EnricherSpec::Drop { event: Droppable::Activity, name: None }],
        ..AdapterOptions::default()
    };
    let mut rest = thread();
    rest.retain(|message| !matches!(message.id().as_str(), "r1" | "p1"));
    let mut rest = json!(rest);
    for call in [0, 1] {
        rest[1]["toolCalls"][call]["function"]["arguments"] = json!("");
    }
    assert_eq!(
        show(Peer::Current, options, snapshot(), success(&["c2"]))[1..2],
        [json!({ "type": "MESSAGES_SNAPSHOT", "messages": rest })]
    );
    let options = AdapterOptions {
        enrichers: vec![
            EnricherSpec::Drop { event: Droppable::Reasoning, name: None },
            EnricherSpec::Drop { event: Droppable::State, name: None },
        ],
        timestamps: true,
        ..reasoning()
    };
    let events = show(Peer::Current, options, snapshot(), success(&["c2"]));
    let types: Vec<_> = events.iter().map(|event| event["type"].clone()).collect();
    assert_eq!(types, ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]);
    assert!(events.iter().all(|event| event["timestamp"] == support::NOW));
    assert_eq!(events[1]["messages"].as_array().expect("messages").len(), 4);
}

#[test]
fn a_peer_older_than_1_0_gets_its_own_form() {
    let snapshot = Snapshot { messages: thread(), state: None };
    let events = show(Peer::Legacy, AdapterOptions::default(), snapshot, success(&["c2"]));
    assert_eq!(events[1]["messages"][2]["content"], "ok");
    let bare = json!({ "type": "RUN_FINISHED", "threadId": "t1", "runId": "r1" });
    assert_eq!(events[2], bare);
    // A run that was stopped is not shown as a success.
    let ending = Ending { outcome: RunOutcome::Cancelled, metadata: Map::new() };
    let events = show(Peer::Legacy, AdapterOptions::default(), Snapshot::default(), ending);
    assert_eq!(
        (&events[1]["type"], &events[1]["code"]),
        (&json!("RUN_ERROR"), &json!("CANCELLED"))
    );
}

#[test]
fn calls_without_an_answer_are_pending() {
    assert_eq!(pending_calls(&thread()), [ToolCallId::from("c2")]);
    assert_eq!(pending_calls(&[]), []);
}

/// A hundred thousand small messages: what stands around their words alone is too long.
#[test]
fn of_a_thread_longer_than_a_frame_the_latest_turns_are_shown() {
    let turn = |at: usize| {
        json!([{ "id": format!("u{at:06}"), "role": "user", "content": "hi" },
            { "id": format!("a{at:06}"), "role": "assistant", "content": "yes" }])
    };
    let mut thread: Vec<Value> =
        (0..100_000).flat_map(|at| turn(at).as_array().expect("turn").clone()).collect();
    // The client has the last one.
    thread[199_998]["id"] = "u1".into();
    let original = json!(thread).to_string().len();
    let snapshot = Snapshot { messages: messages(json!(thread)), state: None };
    let events = show(Peer::Current, AdapterOptions::default(), snapshot, success(&[]));
    let shown = events[1]["messages"].as_array().expect("messages");
    assert_eq!(shown[..], thread[thread.len() - shown.len()..]);
    assert_eq!((&shown[0]["role"], shown.len()), (&json!("user"), 122_602));
    assert_eq!(
        events[1]["metadata"],
        json!({ "agentscope.truncated": { "originalBytes": original } })
    );
    assert!(events[1].to_string().len() <= agui_adapter::truncate::MAX_FRAME);
    assert_eq!(events.len(), 3);
}

/// What the client has itself is not taken away from it.
#[test]
fn a_snapshot_without_what_the_client_holds_is_not_shown() {
    let words = json!([{ "id": "u1", "role": "user", "content": "hi" }]);
    let mut thread = messages(words);
    let first = thread[0].clone();
    thread.extend((0..200_000).map(|at| {
        let mut message = first.clone();
        if let Message::User { id, .. } = &mut message {
            *id = format!("v{at}").as_str().into();
        }
        message
    }));
    let snapshot = Snapshot { messages: thread, state: None };
    let events = show(Peer::Current, AdapterOptions::default(), snapshot, success(&[]));
    assert_eq!(events, [started(), finished(json!({ "type": "success" }))]);
}

/// One turn that cannot be cut is not torn apart; that it is missing stands in the log.
#[test]
fn a_last_turn_that_no_frame_holds_is_not_shown() {
    let long = json!([{ "id": "u1", "role": "user", "content": "hi" },
        { "id": "p1", "role": "activity", "activityType": "P", "content": { "x": "x".repeat(9 << 20) } }]);
    let snapshot = Snapshot { messages: messages(long), state: None };
    let events = show(Peer::Current, AdapterOptions::default(), snapshot, success(&[]));
    assert_eq!(events, [started(), finished(json!({ "type": "success" }))]);
}
