//! Agent events in small alphabets, so that they meet each other; every piece of content is a
//! token of its own, so that it can be found again.

use agui_adapter::model::{
    AgentEvent, AgentEventKind as Kind, Block, Msg, Origin, Role,
    event::{
        ActivityChange, Call, Confirmation, DataChunk, EndReason, ExternalResult, Failure,
        ModelUsage, ResultData, ResultState, StateChange, StepPhase,
    },
    msg::MediaKind,
};
use proptest::prelude::*;
use serde_json::{Map, json};

pub const SOURCES: [Option<&str>; 4] = [None, Some("main/a"), Some("main/b"), Some("main/a/c")];
const REPLIES: [&str; 3] = ["r1", "r2", ""];
const BLOCKS: [&str; 2] = ["text", "b"];
pub const CALLS: [&str; 4] = ["c1", "c2", " ", "h1"];
const NAMES: [&str; 4] = ["search", "pick", "a", ""];

/// One choice of the generator; a number means a place in an alphabet.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    pub kind: u8,
    pub source: u8,
    pub reply: u8,
    pub block: u8,
    pub call: u8,
    pub extra: u8,
}

pub fn op() -> impl Strategy<Value = Op> {
    (0..SINGLE + WHOLE * 2, 0..8u8, 0..3u8, 0..2u8, 0..8u8, any::<u8>()).prop_map(
        |(kind, source, reply, block, call, extra)| Op {
            kind,
            source: source.saturating_sub(4),
            reply,
            block,
            call: [0, 0, 0, 1, 1, 1, 2, 3][usize::from(call)],
            extra,
        },
    )
}

const SINGLE: u8 = 40;
const WHOLE: u8 = 6;

/// The events of a choice: one, or a sensible group.
pub fn events(ops: &[Op]) -> Vec<AgentEvent> {
    let mut all = Vec::new();
    for op in ops {
        match op.kind.checked_sub(SINGLE) {
            None => one(*op, op.kind, &mut all),
            Some(whole) => group(whole % WHOLE).iter().for_each(|kind| one(*op, *kind, &mut all)),
        }
    }
    all
}

/// Numbers of [`one`] that make sense in this order.
fn group(whole: u8) -> &'static [u8] {
    match whole {
        0 => &[5, 6, 6, 7],
        1 => &[8, 9, 9, 10],
        2 => &[15, 16, 16, 17, 18, 19, 21],
        3 => &[3, 15, 16, 17, 4, 18, 19, 20, 21],
        4 => &[3, 15, 16, 17, 4, 25],
        _ => &[0, 3, 5, 6, 7, 4],
    }
}

fn state(extra: u8) -> ResultState {
    match extra % 8 {
        0 => ResultState::Running,
        1 => ResultState::Error,
        2 => ResultState::Denied,
        3 => ResultState::Interrupted,
        _ => ResultState::Success,
    }
}

fn end_reason(extra: u8) -> EndReason {
    let failure = |class: &str| Failure { class: class.into(), message: "words".into() };
    match extra % 8 {
        0 => EndReason::Interrupted,
        1 => EndReason::MaxIterations,
        2 => EndReason::Failed(failure("rate_limit")),
        3 => EndReason::Failed(failure("odd")),
        4 | 5 => EndReason::Completed,
        _ => EndReason::Unstated,
    }
}

fn generate_reason(extra: u8) -> Option<String> {
    let reasons = ["MODEL_STOP", "TOOL_SUSPENDED", "PERMISSION_ASKING", "INTERRUPTED"];
    reasons.get(usize::from(extra % 6)).map(|reason| (*reason).to_owned())
}

fn usage(extra: u8) -> Option<ModelUsage> {
    let n = u64::from(extra);
    (!extra.is_multiple_of(4)).then(|| ModelUsage {
        input: (!extra.is_multiple_of(3)).then_some(n),
        output: (!extra.is_multiple_of(5)).then_some(n / 2),
        cache_read: (!extra.is_multiple_of(7)).then_some(n / 3),
        cache_write: (!extra.is_multiple_of(2)).then_some(n / 4),
        reasoning: (!extra.is_multiple_of(6)).then_some(n / 5),
        total: extra.is_multiple_of(9).then_some(n * 2),
        seconds: Some(0.5),
    })
}

fn state_change(extra: u8) -> StateChange {
    let at = format!("/k{}", extra % 3);
    match extra % 6 {
        0 => StateChange::Set(json!({ "k0": extra, "long": "x".repeat(40) })),
        1 => StateChange::Set(json!([extra])),
        2 => StateChange::Set(json!(extra)),
        3 => StateChange::Patch(json!([{ "op": "add", "path": at, "value": extra }])),
        4 => StateChange::Patch(json!([{ "op": "remove", "path": at }])),
        _ => StateChange::Patch(json!("nonsense")),
    }
}

fn activity_change(extra: u8) -> ActivityChange {
    let content = || json!({ "k": extra }).as_object().cloned().unwrap_or_default();
    match extra % 5 {
        0 | 1 => ActivityChange::Content(content()),
        2 => ActivityChange::Patch(json!([{ "op": "add", "path": "/n", "value": extra }])),
        3 => ActivityChange::Patch(json!([{ "op": "replace", "path": "", "value": extra }])),
        _ => ActivityChange::Patch(json!([{ "op": "remove", "path": "/n" }])),
    }
}

fn result_data(extra: u8, token: &str) -> ResultData {
    match extra % 3 {
        0 => ResultData::Text(token.to_owned()),
        1 => ResultData::Media {
            kind: Some(MediaKind::Image),
            media_type: Some("image/png".into()),
            name: None,
            data: DataChunk::Base64(token.to_owned()),
        },
        _ => ResultData::Media {
            kind: None,
            media_type: None,
            name: Some("file".into()),
            data: DataChunk::Url(token.to_owned()),
        },
    }
}

fn message(op: Op, token: &str) -> Msg {
    let call = CALLS[usize::from(op.call)].to_owned();
    let mut content = vec![Block::Text { text: token.to_owned() }];
    if op.extra.is_multiple_of(2) {
        content.push(Block::ToolResult {
            call_id: call,
            name: NAMES[usize::from(op.extra / 2 % 4)].into(),
            output: vec![Block::Text { text: "waits".into() }],
            state: ResultState::Running,
            metadata: Map::new(),
        });
    }
    Msg {
        id: REPLIES[usize::from(op.reply)].into(),
        name: String::new(),
        role: Role::Assistant,
        content,
        metadata: Map::new(),
    }
}

/// Appends the event that a number stands for.
fn one(op: Op, kind: u8, all: &mut Vec<AgentEvent>) {
    let (extra, at) = (op.extra, all.len());
    let reply = REPLIES[usize::from(op.reply)].to_owned();
    let block = BLOCKS[usize::from(op.block)].to_owned();
    let call = CALLS[usize::from(op.call)].to_owned();
    let name = NAMES[usize::from(extra % 4)].to_owned();
    let token = |letter: char| {
        if extra == 255 { String::new() } else { format!("{letter}{at};") }
    };
    let listed = || Call {
        id: call.clone(),
        name: name.clone(),
        arguments: if extra % 3 == 0 { String::new() } else { "{\"q\":1}".into() },
        ..Call::default()
    };
    let mut source = SOURCES[usize::from(op.source)];
    let kind = match kind {
        0 => Kind::AgentStart { reply: Some(reply), session: None, name },
        // The root's end is chosen by the test; here it would end nearly every run at once.
        1 | 2 => {
            source = source.or(Some("main/a"));
            Kind::AgentEnd { reply: Some(reply), reason: end_reason(extra) }
        }
        3 => Kind::ModelCallStart { reply, model: (extra % 2 == 0).then(|| "m".into()) },
        4 => Kind::ModelCallEnd { reply, usage: usage(extra) },
        5 => Kind::TextBlockStart { reply, block },
        6 | 37 => Kind::TextBlockDelta { reply, block, delta: token('t') },
        7 => Kind::TextBlockEnd { reply, block, text: (extra % 7 == 0).then(|| "other".into()) },
        8 => Kind::ThinkingBlockStart { reply, block },
        9 | 38 => Kind::ThinkingBlockDelta { reply, block, delta: token('k') },
        10 => {
            let encrypted = (extra % 3 == 0).then(|| "opaque".to_owned());
            Kind::ThinkingBlockEnd { reply, block, encrypted }
        }
        11 => Kind::DataBlockStart { reply, block, media_type: None, name: None },
        12 => {
            let media_type = (extra % 2 == 0).then(|| "image/png".to_owned());
            Kind::DataBlockDelta { reply, block, media_type, data: DataChunk::Base64(token('m')) }
        }
        13 => Kind::DataBlockEnd { reply, block },
        14 => Kind::HintBlock {
            label: (extra % 2 == 0).then(|| "team".into()),
            sublabel: None,
            text: "hint".into(),
        },
        15 => Kind::ToolCallStart { reply, call, name },
        16 | 39 => Kind::ToolCallDelta { call, delta: token('g') },
        17 => Kind::ToolCallEnd { call, encrypted: (extra % 3 == 0).then(|| "opaque".to_owned()) },
        18 => Kind::ToolResultStart { reply, call, name },
        19 => Kind::ToolResultTextDelta { call, delta: token('o') },
        20 => {
            let block = (extra % 2 == 0).then_some(block);
            Kind::ToolResultDataDelta { call, block, data: result_data(extra, &token('d')) }
        }
        21 => Kind::ToolResultEnd { reply, call, state: state(extra) },
        22 => Kind::ExceedMaxIters { max_iters: Some(3) },
        23 | 25 => Kind::RequireUserConfirm { reply, calls: vec![listed()] },
        24 => Kind::RequireExternalExecution { reply, calls: vec![listed()] },
        26 => Kind::UserConfirmResult {
            reply,
            results: vec![Confirmation { confirmed: extra % 2 == 0, call: listed() }],
        },
        27 => Kind::ExternalExecutionResult {
            reply,
            results: vec![ExternalResult {
                call_id: call,
                name,
                output: vec![Block::Text { text: token('e') }],
                state: state(extra),
            }],
        },
        28 => Kind::RequestStop { reason: None, generate_reason: generate_reason(extra) },
        29 => Kind::AllToolsDenied {},
        30 => Kind::SubagentExposed {},
        31 => Kind::Custom { name: "mine".into(), value: json!(token('u')) },
        32 => Kind::State { change: state_change(extra) },
        33 => Kind::Activity {
            id: block,
            activity_type: if extra % 11 == 0 { "other" } else { "plan" }.into(),
            change: activity_change(extra),
        },
        34 => Kind::Step {
            name: ["s", "model_call"][usize::from(op.block)].into(),
            phase: if extra % 2 == 0 { StepPhase::Start } else { StepPhase::Finish },
        },
        35 => Kind::Question { id: block, message: "Which?".into(), schema: None },
        36 if extra % 2 == 0 => Kind::Unknown { type_name: "NEW".into() },
        _ => Kind::AgentResult {
            result: message(op, &token('a')),
            generate_reason: generate_reason(extra),
        },
    };
    let origin = [Origin::Local, Origin::Java, Origin::Python][usize::from(extra % 3)];
    let mut event = AgentEvent { origin, ..AgentEvent::local(kind) };
    if let Some(source) = source {
        event = event.from_source(source);
    }
    all.push(event);
}

/// How the agent's stream ends: by an event of the root agent, or without one.
pub fn root_end(extra: u8) -> Option<AgentEvent> {
    (extra >= 60).then(|| {
        AgentEvent::local(Kind::AgentEnd { reply: Some("r1".into()), reason: end_reason(extra) })
    })
}
