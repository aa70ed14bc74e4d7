//! Random runs: agent events over small alphabets, and random switches, peers and answers.

use std::sync::Arc;

use agui_adapter::{
    model::{
        AgentEvent, AgentEventKind as Kind, Block, Msg, Origin, Role,
        event::{
            ActivityChange, Call, Confirmation, DataChunk, EndReason, ExternalResult, Failure,
            ModelUsage, Object, ResultData, ResultState, StateChange, StepPhase,
        },
    },
    options::{
        AdapterOptions, ConverterAction, ConverterSpec, EnricherSpec, FrontendToolOutcome, Peer,
        SubagentEvents,
    },
};
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Value, json};

/// Paths of the agents: the root, a child, a child of the child.
pub const SOURCES: [Option<&str>; 3] = [None, Some("main/a"), Some("main/a/b")];
const REPLIES: [&str; 3] = ["R1", "R2", "R3"];
const BLOCKS: [&str; 2] = ["text", "B2"];
/// `front` is a tool of the client.
const TOOLS: [&str; 3] = ["search", "front", "a"];

/// What a run is made of.
#[derive(Clone, Debug)]
pub struct Run {
    pub events: Vec<AgentEvent>,
    pub options: AdapterOptions,
    pub peer: Peer,
    pub with_state: bool,
    pub denied: bool,
    pub end: End,
}

/// How the stream of events ends.
#[derive(Clone, Copy, Debug)]
pub enum End {
    Completed,
    Failed,
    Cancelled,
}

fn source() -> impl Strategy<Value = Option<&'static str>> {
    prop_oneof![4 => Just(SOURCES[0]), 2 => Just(SOURCES[1]), 1 => Just(SOURCES[2])]
}

fn reply() -> impl Strategy<Value = String> {
    select(&REPLIES[..]).prop_map(str::to_owned)
}

fn block() -> impl Strategy<Value = String> {
    select(&BLOCKS[..]).prop_map(str::to_owned)
}

fn call() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => Just("c1"), 4 => Just("c2"), 2 => Just(""), 1 => Just("h1"), 1 => Just("d1")
    ]
    .prop_map(str::to_owned)
}

fn tool() -> impl Strategy<Value = String> {
    select(&TOOLS[..]).prop_map(str::to_owned)
}

fn asked() -> impl Strategy<Value = Vec<Call>> {
    let one = (select(&["c1", "c2", "c9"][..]), tool()).prop_map(|(id, name)| Call {
        id: id.to_owned(),
        name,
        arguments: "{}".to_owned(),
        ..Call::default()
    });
    vec(one, 0..3)
}

/// A piece of text; numbered later, so that every one is told from all others.
fn delta() -> impl Strategy<Value = String> {
    prop_oneof![1 => Just(String::new()), 8 => Just("#".to_owned())]
}

fn state_of_result() -> impl Strategy<Value = ResultState> {
    prop_oneof![
        6 => Just(ResultState::Success),
        1 => Just(ResultState::Error),
        1 => Just(ResultState::Denied),
        1 => Just(ResultState::Running),
    ]
}

fn data() -> impl Strategy<Value = DataChunk> {
    select(&[0, 1][..]).prop_map(|kind| match kind {
        0 => DataChunk::Base64("QQ==".to_owned()),
        _ => DataChunk::Url("https://example.invalid/a".to_owned()),
    })
}

fn text_kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        2 => (reply(), block()).prop_map(|(reply, block)| Kind::TextBlockStart { reply, block }),
        8 => (reply(), block(), delta())
            .prop_map(|(reply, block, delta)| Kind::TextBlockDelta { reply, block, delta }),
        2 => (reply(), block())
            .prop_map(|(reply, block)| Kind::TextBlockEnd { reply, block, text: None }),
        1 => (reply(), block())
            .prop_map(|(reply, block)| Kind::ThinkingBlockStart { reply, block }),
        4 => (reply(), block(), delta())
            .prop_map(|(reply, block, delta)| Kind::ThinkingBlockDelta { reply, block, delta }),
        1 => (reply(), block(), select(vec![None, Some("sig".to_owned())])).prop_map(
            |(reply, block, encrypted)| Kind::ThinkingBlockEnd { reply, block, encrypted }
        ),
        1 => (reply(), block(), data()).prop_map(|(reply, block, data)| Kind::DataBlockDelta {
            reply, block, media_type: None, data
        }),
        1 => (reply(), block()).prop_map(|(reply, block)| Kind::DataBlockEnd { reply, block }),
    ]
}

fn call_kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        4 => (reply(), call(), tool())
            .prop_map(|(reply, call, name)| Kind::ToolCallStart { reply, call, name }),
        6 => (call(), delta()).prop_map(|(call, delta)| Kind::ToolCallDelta { call, delta }),
        3 => (call(), select(vec![None, Some("sig".to_owned())]))
            .prop_map(|(call, encrypted)| Kind::ToolCallEnd { call, encrypted }),
        2 => (reply(), call(), tool())
            .prop_map(|(reply, call, name)| Kind::ToolResultStart { reply, call, name }),
        4 => (call(), delta()).prop_map(|(call, delta)| Kind::ToolResultTextDelta { call, delta }),
        1 => (call(), data()).prop_map(|(call, data)| Kind::ToolResultDataDelta {
            call,
            block: None,
            data: ResultData::Media { kind: None, media_type: None, name: None, data },
        }),
        4 => (reply(), call(), state_of_result())
            .prop_map(|(reply, call, state)| Kind::ToolResultEnd { reply, call, state }),
    ]
}

fn ask_kind() -> impl Strategy<Value = Kind> {
    let confirmed = (any::<bool>(), asked()).prop_map(|(confirmed, calls)| {
        calls.into_iter().map(|call| Confirmation { confirmed, call }).collect::<Vec<_>>()
    });
    let executed = (asked(), state_of_result()).prop_map(|(calls, state)| {
        let result = |call: Call| ExternalResult {
            call_id: call.id,
            name: call.name,
            output: vec![Block::Text { text: "done".to_owned() }],
            state,
        };
        calls.into_iter().map(result).collect::<Vec<_>>()
    });
    prop_oneof![
        2 => (reply(), asked()).prop_map(|(reply, calls)| Kind::RequireUserConfirm { reply, calls }),
        2 => (reply(), asked())
            .prop_map(|(reply, calls)| Kind::RequireExternalExecution { reply, calls }),
        1 => (reply(), confirmed)
            .prop_map(|(reply, results)| Kind::UserConfirmResult { reply, results }),
        1 => (reply(), executed)
            .prop_map(|(reply, results)| Kind::ExternalExecutionResult { reply, results }),
        1 => select(&["q1", "q2"][..]).prop_map(|id| Kind::Question {
            id: id.to_owned(), message: "What?".to_owned(), schema: None
        }),
    ]
}

fn patch() -> impl Strategy<Value = Value> {
    select(vec![
        json!([{ "op": "add", "path": "/a", "value": 1 }]),
        json!([{ "op": "replace", "path": "/a", "value": { "b": [1, 2] } }]),
        json!([{ "op": "remove", "path": "/a" }]),
        json!([{ "op": "replace", "path": "", "value": 7 }]),
        json!([{ "op": "what", "path": "/a" }]),
    ])
}

fn shared_kind() -> impl Strategy<Value = Kind> {
    let states = vec![json!({}), json!({ "a": 1, "b/c": [1] }), json!([1]), json!(null)];
    let activity = (select(&["x", "y"][..]), select(&["PLAN", "FORM"][..]), patch(), any::<bool>());
    prop_oneof![
        2 => select(states).prop_map(|state| Kind::State { change: StateChange::Set(state) }),
        2 => patch().prop_map(|patch| Kind::State { change: StateChange::Patch(patch) }),
        2 => activity.prop_map(|(id, activity_type, patch, whole)| Kind::Activity {
            id: id.to_owned(),
            activity_type: activity_type.to_owned(),
            change: if whole {
                ActivityChange::Content(Object::new())
            } else {
                ActivityChange::Patch(patch)
            },
        }),
        1 => (select(&["s1", "model_call"][..]), any::<bool>()).prop_map(|(name, start)| {
            let phase = if start { StepPhase::Start } else { StepPhase::Finish };
            Kind::Step { name: name.to_owned(), phase }
        }),
        1 => select(&["keep", "dropped", "old"][..])
            .prop_map(|name| Kind::Custom { name: name.to_owned(), value: Value::Null }),
        1 => Just(Kind::HintBlock {
            label: Some("team".to_owned()), sublabel: None, text: "hint".to_owned()
        }),
        1 => Just(Kind::HintBlock { label: None, sublabel: None, text: "#".to_owned() }),
        1 => Just(Kind::Unknown { type_name: "NEW".to_owned() }),
        1 => Just(Kind::SubagentExposed {}),
    ]
}

fn usage() -> impl Strategy<Value = Option<ModelUsage>> {
    (any::<bool>(), 0..200_u64, 0..200_u64, 0..200_u64).prop_map(|(known, input, output, part)| {
        known.then(|| ModelUsage {
            input: Some(input),
            output: Some(output),
            cache_read: Some(part),
            reasoning: Some(part),
            ..ModelUsage::default()
        })
    })
}

fn end_reason() -> impl Strategy<Value = EndReason> {
    prop_oneof![
        4 => Just(EndReason::Unstated),
        2 => Just(EndReason::Completed),
        1 => Just(EndReason::Interrupted),
        1 => Just(EndReason::MaxIterations),
        1 => Just(EndReason::Failed(Failure {
            class: "upstream".to_owned(), message: "The model failed.".to_owned()
        })),
    ]
}

fn course_kind() -> impl Strategy<Value = Kind> {
    let models = select(vec![None, Some("m1".to_owned()), Some("m2".to_owned())]);
    let reasons = select(&["MODEL_STOP", "INTERRUPTED", "TOOL_SUSPENDED", "X_STOP_REQUESTED"][..]);
    prop_oneof![
        3 => Just(Kind::AgentStart { reply: None, session: None, name: "A".to_owned() }),
        4 => (reply(), models).prop_map(|(reply, model)| Kind::ModelCallStart { reply, model }),
        4 => (reply(), usage()).prop_map(|(reply, usage)| Kind::ModelCallEnd { reply, usage }),
        1 => (reasons, any::<bool>()).prop_map(|(reason, text)| Kind::AgentResult {
            result: Msg {
                id: "m1".to_owned(),
                name: String::new(),
                role: Role::Assistant,
                content: text
                    .then(|| Block::Text { text: "result".to_owned() })
                    .into_iter()
                    .collect(),
                metadata: Object::new(),
            },
            generate_reason: Some(reason.to_owned()),
        }),
        1 => Just(Kind::RequestStop { reason: None, generate_reason: None }),
        1 => Just(Kind::AllToolsDenied {}),
        1 => Just(Kind::ExceedMaxIters { max_iters: Some(3) }),
    ]
}

fn event() -> impl Strategy<Value = AgentEvent> {
    let any_kind = prop_oneof![
        20 => text_kind(), 24 => call_kind(), 4 => ask_kind(), 6 => shared_kind(), 8 => course_kind()
    ];
    let any_event = (source(), any_kind).prop_map(|(source, kind)| of(source, kind));
    let end = end_reason().prop_map(|reason| Kind::AgentEnd { reply: None, reason });
    let child = select(&SOURCES[1..]);
    let child_end = (child, end).prop_map(|(source, kind)| of(source, kind));
    prop_oneof![20 => any_event, 1 => child_end]
}

fn of(source: Option<&str>, kind: Kind) -> AgentEvent {
    let event = AgentEvent { origin: Origin::Python, ..AgentEvent::local(kind) };
    match source {
        Some(source) => event.from_source(source),
        None => event,
    }
}

/// Numbers the pieces of text.
fn number(events: &mut [AgentEvent]) {
    for (at, event) in events.iter_mut().enumerate() {
        let token = format!("<{at}>");
        let text = match &mut event.kind {
            Kind::TextBlockDelta { delta, .. }
            | Kind::ThinkingBlockDelta { delta, .. }
            | Kind::ToolCallDelta { delta, .. }
            | Kind::ToolResultTextDelta { delta, .. } => delta,
            Kind::HintBlock { text, .. } => text,
            _ => continue,
        };
        *text = text.replace('#', &token);
    }
}

fn options() -> impl Strategy<Value = AdapterOptions> {
    let modes = select(
        &[
            SubagentEvents::Auto,
            SubagentEvents::Attributed,
            SubagentEvents::Custom,
            SubagentEvents::Native,
        ][..],
    );
    let outcomes = select(&[FrontendToolOutcome::Pending, FrontendToolOutcome::Interrupt][..]);
    (modes, outcomes, any::<[bool; 7]>()).prop_map(|(subagent_events, outcome, on)| {
        AdapterOptions {
            frontend_tool_outcome: outcome,
            echo_input: on[0],
            emit_state_events: on[1],
            emit_step_events: on[2],
            emit_tool_call_args: on[3],
            emit_token_usage: on[4],
            enable_reasoning: on[5],
            enrichers: if on[6] { vec![EnricherSpec::RawEvent] } else { Vec::new() },
            subagent_events,
            converters: vec![
                spec("dropped", ConverterAction::Drop),
                spec("old", ConverterAction::Rename("new".to_owned())),
            ],
            ..AdapterOptions::default()
        }
    })
}

fn spec(custom: &str, action: ConverterAction) -> ConverterSpec {
    ConverterSpec { custom: custom.to_owned(), action }
}

/// Any run.
pub fn run() -> impl Strategy<Value = Run> {
    let end = prop_oneof![
        2 => end_reason()
            .prop_map(|reason| Some(of(None, Kind::AgentEnd { reply: None, reason }))),
        1 => Just(None),
    ];
    let stream_end = select(&[End::Completed, End::Failed, End::Cancelled][..]);
    let peer = prop_oneof![3 => Just(Peer::Current), 1 => Just(Peer::Legacy)];
    (vec(event(), 0..50), end, vec(event(), 0..3), options(), peer, any::<[bool; 2]>(), stream_end)
        .prop_map(|(mut events, end, after, options, peer, [with_state, denied], stream_end)| {
            if let Some(end) = end {
                events.push(end);
                events.extend(after);
            }
            number(&mut events);
            let raw = |mut event: AgentEvent| {
                // As if decoded with its wire form: whatever is in it may leak through it.
                event.raw = Some(Arc::new(json!({ "type": event.event_type().as_str(),
                    "thinking": thinking(&event.kind), "delta": thinking(&event.kind) })));
                event
            };
            let events = events.into_iter().map(raw).collect();
            Run { events, options, peer, with_state, denied, end: stream_end }
        })
}

fn thinking(kind: &Kind) -> Value {
    match kind {
        Kind::ThinkingBlockDelta { delta, .. } => Value::from(delta.as_str()),
        _ => Value::Null,
    }
}
