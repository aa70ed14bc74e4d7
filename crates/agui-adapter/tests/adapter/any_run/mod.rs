//! Any sequence of agent events gives a stream that the checker accepts, and loses nothing that
//! no rule says is left out.

pub mod generate;
mod model;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use self::generate::{End, Run};
use self::model::{Expected, Place};
use agui_adapter::{
    options::{FrontendToolOutcome, Peer, SubagentEvents},
    outbound::{EndOutcome, Extensions, RunEnd, RunFailure, RunSetup, StreamEnd},
    resume::{Decision, InterruptKind, OpenInterrupt, StoredCall, Verdict},
};
use agui_protocol::{
    Interrupt, ResumeStatus, RunAgentInput,
    verify::{VerifyInput, Violation, check_events},
};
use proptest::{prelude::*, test_runner::RngSeed};
use serde_json::{Value, json};

pub fn input(run: &Run) -> Value {
    let mut input = json!({
        "threadId": "t1", "runId": "r2",
        "messages": [
            { "id": "u1", "role": "user", "content": "hi" },
            { "id": "m1", "role": "assistant", "toolCalls": [
                { "id": "h1", "type": "function", "function": { "name": "f", "arguments": "{}" } },
                { "id": "d1", "type": "function", "function": { "name": "f", "arguments": "{}" } },
            ] },
            { "id": "m2", "role": "tool", "toolCallId": "h1", "content": "done" },
        ],
        "tools": [{ "name": "front", "description": "Runs at the client." }],
    });
    if run.peer == Peer::Current {
        input["protocolVersion"] = json!("1.0");
    }
    if run.with_state {
        input["state"] = json!({ "a": 0 });
    }
    input
}

pub fn denied() -> Decision {
    let call = StoredCall {
        id: "d1".to_owned(),
        wire_id: "d1".to_owned(),
        name: "f".to_owned(),
        arguments: "{}".to_owned(),
        input: None,
    };
    let interrupt = Interrupt {
        subagent_run_id: None,
        id: "R0:d1".into(),
        reason: "tool_call".to_owned(),
        message: None,
        tool_call_id: Some("d1".into()),
        response_schema: None,
        expires_at: None,
        metadata: None,
    };
    Decision {
        open: OpenInterrupt {
            interrupt,
            kind: InterruptKind::PermissionConfirm,
            reply: "R0".to_owned(),
            source: None,
            task: None,
            above: Vec::new(),
            call: Some(call.clone()),
            question: None,
            expires_ms: None,
        },
        status: ResumeStatus::Resolved,
        payload: Some(json!({ "approved": false })),
        verdict: Verdict::Denied { call, reason: None },
        settled: false,
        result: None,
    }
}

struct Played {
    events: Vec<Value>,
    end: RunEnd,
    expected: Expected,
}

fn play(run: &Run, input: &Value) -> Played {
    let parsed = RunAgentInput::from_value(input.clone()).expect("input").input;
    let mut setup = RunSetup::new(Arc::new(parsed), run.peer);
    if run.denied {
        setup.answered.push(denied());
    }
    let mut adapter = crate::support::adapter(setup, run.options.clone(), Extensions::default());
    let (mut out, mut end, mut expected) = (Vec::new(), None, Expected::default());
    for event in &run.events {
        if end.is_none() {
            expected.feed(event, run);
            end = adapter.on_event(event, &mut out);
        } else {
            let before = out.len();
            assert!(adapter.on_event(event, &mut out).is_none(), "a second end");
            assert_eq!(out.len(), before, "something after the end");
        }
    }
    let end = end.unwrap_or_else(|| {
        let how = match run.end {
            End::Completed => StreamEnd::Completed,
            End::Failed => StreamEnd::Failed(RunFailure::new("TIMEOUT_ERROR", "Too slow.")),
            End::Cancelled => StreamEnd::Cancelled("cancelled"),
        };
        adapter.finish(how, &mut out)
    });
    let events = out.iter().map(|event| serde_json::to_value(event).expect("json")).collect();
    Played { events, end, expected }
}

/// Findings that are no faults: what the checker cannot know, and what options ask for.
fn is_fault(violation: &Violation, run: &Run) -> bool {
    let interrupting = run.options.frontend_tool_outcome == FrontendToolOutcome::Interrupt;
    match violation.rule {
        // A call that nobody executed has no result and is pending (LIFE-16).
        "TOOL-15" => !violation.message.contains("has no result"),
        // The option asks for it.
        "INT-24" => !interrupting,
        "LIFE-16" => !interrupting,
        "VER-13" => run.options.subagent_events != SubagentEvents::Attributed,
        _ => true,
    }
}

fn check_order(run: &Run, input: Value, events: &[Value]) {
    let mut context = VerifyInput::from(input);
    // Late arguments open a call again; messages are checked below.
    context.forbid_reopen = false;
    let found = check_events(events, &context);
    let faults: Vec<_> = found.iter().filter(|violation| is_fault(violation, run)).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

fn text<'a>(event: &'a Value, member: &str) -> &'a str {
    event[member].as_str().unwrap_or_default()
}

fn pieces(text: &str) -> Vec<String> {
    text.split_inclusive('>').filter(|piece| piece.ends_with('>')).map(str::to_owned).collect()
}

/// The pieces of a family of messages, in order; every message holds those of one place.
fn check_messages(events: &[Value], family: &str, custom: &str, expected: &[(String, Place)]) {
    let places: HashMap<&str, &Place> =
        expected.iter().map(|(piece, place)| (piece.as_str(), place)).collect();
    let (mut shown, mut messages) = (Vec::new(), HashMap::new());
    let (mut opened, mut owners) = (HashSet::new(), HashMap::new());
    for event in events {
        let kind = text(event, "type");
        if kind == format!("{family}_START") {
            assert!(opened.insert(text(event, "messageId")), "a message opened twice");
        } else if kind == format!("{family}_CONTENT") {
            for piece in pieces(text(event, "delta")) {
                let place = *places.get(piece.as_str()).expect("a piece that was fed");
                let of = messages.entry(text(event, "messageId")).or_insert(place);
                assert_eq!(*of, place, "one message of two blocks");
                let owner = event["subagentRunId"].as_str();
                let source = owners.entry(owner.map(str::to_owned)).or_insert(&place.0);
                assert_eq!(*source, &place.0, "one owner of two sources");
                shown.push(piece);
            }
        } else if kind == "CUSTOM" && text(event, "name") == custom {
            for piece in pieces(text(&event["value"], "delta")) {
                let place = *places.get(piece.as_str()).expect("a piece that was fed");
                assert_eq!(event["value"]["source"].as_str(), place.0.as_deref());
                shown.push(piece);
            }
        }
    }
    let fed: Vec<String> = expected.iter().map(|(piece, _)| piece.clone()).collect();
    assert_eq!(shown, fed, "{family}");
}

/// Argument text as shown, by the client's id of the call.
fn shown_arguments(events: &[Value]) -> HashMap<String, Vec<String>> {
    let mut shown: HashMap<String, Vec<String>> = HashMap::new();
    for (at, event) in events.iter().enumerate() {
        let value = &event["value"];
        if text(event, "type") == "TOOL_CALL_ARGS" {
            let of = shown.entry(text(event, "toolCallId").to_owned()).or_default();
            of.extend(pieces(text(event, "delta")));
        } else if text(value, "type") == "TOOL_CALL_END" {
            // Each tells the whole arguments so far.
            let call = format!("{at} {}", text(value, "toolCallId"));
            shown.insert(call, pieces(text(value, "arguments")));
        }
    }
    shown
}

fn check_arguments(events: &[Value], expected: &Expected) {
    let shown = shown_arguments(events);
    for piece in &expected.no_args {
        assert!(!shown.values().any(|pieces| pieces.contains(piece)), "argument text {piece}");
    }
    let mut calls: HashMap<&String, &(Option<String>, String)> = HashMap::new();
    let mut at: HashMap<&String, usize> = HashMap::new();
    for (piece, call) in &expected.args {
        let of = shown.iter().filter(|(_, pieces)| pieces.contains(piece)).collect::<Vec<_>>();
        assert!(!of.is_empty(), "argument text {piece} of {call:?} is lost");
        for (id, pieces) in of {
            assert_eq!(*calls.entry(id).or_insert(call), call, "two calls under {id}");
            let position = pieces.iter().position(|other| other == piece).expect("there");
            let last = at.insert(id, position);
            assert!(last.is_none_or(|last| last < position), "arguments of {id} out of order");
            assert_eq!(pieces.iter().filter(|other| *other == piece).count(), 1, "doubled");
        }
    }
}

fn check_results(events: &[Value], expected: &Expected) {
    let content = |event: &Value| match text(event, "type") {
        "TOOL_CALL_RESULT" => event["content"].to_string(),
        _ if event["value"]["type"] == "TOOL_RESULT_END" => event["value"]["content"].to_string(),
        _ => String::new(),
    };
    let shown: String = events.iter().map(content).collect();
    for piece in &expected.results {
        assert_eq!(shown.matches(piece.as_str()).count(), 1, "result text {piece}");
    }
}

fn check_absent(events: &[Value], run: &Run, expected: &Expected) {
    let sent: String = events.iter().map(Value::to_string).collect();
    for piece in expected.absent.iter().filter(|piece| piece.contains('<')) {
        assert!(!sent.contains(piece.as_str()), "{piece} leaked");
    }
    if run.peer == Peer::Legacy && run.options.subagent_events != SubagentEvents::Attributed {
        let subagent = |event: &&Value| text(event, "type").starts_with("SUBAGENT_");
        assert_eq!(events.iter().find(subagent), None, "for a legacy peer");
    }
}

fn check_state(events: &[Value], run: &Run, end: &RunEnd) {
    if !run.options.emit_state_events {
        let state = |event: &&Value| text(event, "type").starts_with("STATE_");
        assert_eq!(events.iter().find(state), None);
        return;
    }
    let mut state = if run.with_state { json!({ "a": 0 }) } else { json!({}) };
    for event in events {
        match text(event, "type") {
            "STATE_SNAPSHOT" => state = event["snapshot"].clone(),
            "STATE_DELTA" => {
                let patch: json_patch::Patch =
                    serde_json::from_value(event["delta"].clone()).expect("a patch");
                json_patch::patch(&mut state, &patch).expect("a patch that applies");
            }
            _ => {}
        }
    }
    if let Some(own) = &end.state {
        assert_eq!(&state, &**own, "the client's state");
    }
}

fn check_denied(events: &[Value], run: &Run, end: &RunEnd) {
    if run.denied && !matches!(end.outcome, EndOutcome::Error(_)) {
        let result = |event: &&Value| {
            text(event, "type") == "TOOL_CALL_RESULT" && text(event, "toolCallId") == "d1"
        };
        assert_eq!(events.iter().filter(result).count(), 1, "the denied call's result");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, rng_seed: RngSeed::Fixed(2), max_shrink_iters: 20_000,
        ..ProptestConfig::default() })]

    #[test]
    fn any_run_gives_a_stream_in_order_that_loses_nothing(run in generate::run()) {
        let input = input(&run);
        let Played { events, end, expected } = play(&run, &input);
        check_order(&run, input, &events);
        check_messages(&events, "TEXT_MESSAGE", "subagent.text", &expected.texts);
        check_messages(&events, "REASONING_MESSAGE", "subagent.thinking", &expected.thinking);
        check_arguments(&events, &expected);
        check_results(&events, &expected);
        check_absent(&events, &run, &expected);
        check_state(&events, &run, &end);
        check_denied(&events, &run, &end);
    }
}
