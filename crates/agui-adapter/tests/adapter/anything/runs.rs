//! Runs: options, peers, inputs, answers, events and ends.

use std::sync::Arc;

use agui_adapter::{
    model::AgentEvent,
    options::{AdapterOptions, FrontendToolOutcome, Peer, SubagentEvents, ToolMergeMode},
    outbound::{Extensions, RunFailure, RunSetup, StreamEnd},
    resume::{Decision, InterruptKind, OpenInterrupt, StoredCall, Verdict},
};
use agui_protocol::{Interrupt, ResumeStatus};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::ops::{self, op};
use crate::support::{Converted, adapter, input};

#[derive(Clone, Debug)]
pub struct Run {
    pub events: Vec<AgentEvent>,
    /// How many of the events come before the run's end.
    pub end_at: usize,
    pub stream_end: StreamEnd,
    pub options: AdapterOptions,
    pub peer: Peer,
    pub input_json: Value,
    pub answered: Vec<Decision>,
}

fn options() -> impl Strategy<Value = AdapterOptions> {
    (any::<u16>(), 0..4u8, 0..2u8).prop_map(|(bits, children, merge)| {
        let on = |bit: u16| bits & (1 << bit) != 0;
        AdapterOptions {
            tool_merge_mode: if merge == 0 {
                ToolMergeMode::MergeFrontendPriority
            } else {
                ToolMergeMode::FrontendOnly
            },
            frontend_tool_outcome: if on(0) && on(9) {
                FrontendToolOutcome::Interrupt
            } else {
                FrontendToolOutcome::Pending
            },
            echo_input: on(1),
            emit_state_events: on(2),
            emit_step_events: on(3),
            emit_tool_call_args: on(4) || on(5),
            emit_token_usage: on(6),
            enable_reasoning: on(7),
            emit_run_finished_after_error: on(8) && on(9),
            subagent_events: [
                SubagentEvents::Auto,
                SubagentEvents::Attributed,
                SubagentEvents::Custom,
                SubagentEvents::Native,
            ][usize::from(children)],
            timestamps: on(10),
            ..AdapterOptions::default()
        }
    })
}

/// A decision about the call `c1`, which the history holds.
fn decision(choice: u8) -> Option<Decision> {
    let child = choice & 1 != 0;
    let call = StoredCall {
        id: "c1".into(),
        wire_id: if choice & 2 != 0 { "c1" } else { "w1" }.into(),
        name: "search".into(),
        arguments: "{}".into(),
        input: None,
    };
    let (kind, verdict) = match choice >> 2 & 7 {
        0 => (
            InterruptKind::PermissionConfirm,
            Verdict::Approved { call: call.clone(), edited: false, rules: Vec::new() },
        ),
        1 => (
            InterruptKind::PermissionConfirm,
            Verdict::Denied { call: call.clone(), reason: Some("no".into()) },
        ),
        2 => (
            InterruptKind::ExternalExecution,
            Verdict::Result { call: call.clone(), text: "answer".into(), answered: true },
        ),
        _ => return None,
    };
    let interrupt = Interrupt {
        subagent_run_id: child.then(|| "sub-1".into()),
        id: "i1".into(),
        reason: "tool_call".into(),
        message: None,
        tool_call_id: Some(call.wire_id.as_str().into()),
        response_schema: None,
        expires_at: None,
        metadata: None,
    };
    let open = OpenInterrupt {
        interrupt,
        kind,
        reply: "r1".into(),
        source: child.then(|| "main/a".into()),
        call: Some(call),
        question: None,
    };
    Some(Decision { open, status: ResumeStatus::Resolved, payload: None, verdict })
}

fn history(answered: Option<&Decision>) -> Vec<Value> {
    let call = |id: &str| json!({ "id": id, "type": "function", "function": { "name": "search", "arguments": "{}" } });
    let mut messages = vec![
        json!({ "id": "u1", "role": "user", "content": "hi" }),
        json!({ "id": "m1", "role": "assistant", "toolCalls": [call("h1")] }),
        json!({ "id": "m2", "role": "tool", "toolCallId": "h1", "content": "done" }),
    ];
    if let Some(decision) = answered
        && let Some(stored) = &decision.open.call
    {
        let mut carrier =
            json!({ "id": "m3", "role": "assistant", "toolCalls": [call(&stored.wire_id)] });
        if let Some(child) = &decision.open.interrupt.subagent_run_id {
            carrier["subagentRunId"] = json!(child);
        }
        messages.push(carrier);
    }
    messages
}

fn stream_end() -> impl Strategy<Value = StreamEnd> {
    prop_oneof![
        Just(StreamEnd::Completed),
        Just(StreamEnd::Failed(RunFailure::new("TIMEOUT_ERROR", "late"))),
        Just(StreamEnd::Cancelled("cancelled")),
    ]
}

pub fn run() -> impl Strategy<Value = Run> {
    (
        proptest::collection::vec(op(), 0..40),
        proptest::collection::vec(op(), 0..3),
        any::<u8>(),
        stream_end(),
        options(),
        any::<u8>(),
        any::<u8>(),
    )
        .prop_map(|(before, after, end, stream_end, options, peer, choice)| {
            let mut events = ops::events(&before);
            let end_at = events.len();
            if let Some(end) = ops::root_end(end) {
                events.push(end);
                // What comes after the end is left out; its tokens must not meet those before.
                let mut late = ops::events(&after);
                late.truncate(3);
                events.extend(late.into_iter().filter(|_| choice & 64 != 0));
            }
            let answered = decision(choice);
            let mut input_json = json!({
                "threadId": "t1",
                "runId": "r1",
                "messages": history(answered.as_ref()),
                "tools": [{ "name": "pick", "description": "", "parameters": {} }],
            });
            if peer & 3 != 0 {
                input_json["protocolVersion"] = json!("1.0");
            }
            if peer & 4 != 0 {
                input_json["state"] = json!({ "k1": 1 });
            }
            let peer = if peer & 3 != 0 { Peer::Current } else { Peer::Legacy };
            let answered = answered.into_iter().collect();
            Run { events, end_at, stream_end, options, peer, input_json, answered }
        })
}

pub fn is_custom(run: &Run) -> bool {
    match run.options.subagent_events {
        SubagentEvents::Auto => run.peer == Peer::Legacy,
        other => other == SubagentEvents::Custom,
    }
}

pub fn attributes_for_legacy(run: &Run) -> bool {
    run.options.subagent_events == SubagentEvents::Attributed && run.peer == Peer::Legacy
}

pub fn convert(run: &Run) -> Converted {
    let mut json = run.input_json.clone();
    if run.peer == Peer::Legacy {
        json["protocolVersion"] = Value::Null;
    }
    let mut setup = RunSetup::new(Arc::new(input(&json.to_string())), run.peer);
    setup.answered.clone_from(&run.answered);
    let mut adapter = adapter(setup, run.options.clone(), Extensions::default());
    let (mut events, mut ended) = (Vec::new(), None);
    for event in &run.events {
        let end = adapter.on_event(event, &mut events);
        assert!(ended.is_none() || end.is_none(), "a run ends once");
        ended = ended.or(end);
    }
    let end = ended.unwrap_or_else(|| adapter.finish(run.stream_end.clone(), &mut events));
    Converted { events, end }
}
