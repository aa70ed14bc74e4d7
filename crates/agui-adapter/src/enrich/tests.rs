use crate::model::event::Object;
use std::sync::Arc;

use agui_protocol::{Body, Event, RunId, ThreadId};
use serde_json::{Value, json};

use super::*;
use crate::{
    model::{
        event::{AgentEventKind, EndReason, Failure},
        msg::{Msg, Role},
    },
    options::{Droppable, EnricherSpec},
};

fn options(enrichers: Vec<EnricherSpec>) -> AdapterOptions {
    AdapterOptions { enrichers, ..AdapterOptions::default() }
}

fn decorate(
    options: &AdapterOptions,
    source: Option<&AgentEvent>,
    events: Vec<Event>,
) -> Vec<Event> {
    let mut events = events;
    let runtime_context = crate::runtime_context::RuntimeContext::default();
    let context = EnrichContext {
        thread_id: &ThreadId::from("t1"),
        run_id: &RunId::from("r1"),
        now_ms: 1234,
        runtime_context: &runtime_context,
    };
    EnricherChain::new(options, Enrichers::default()).decorate(source, &mut events, &context);
    events
}

fn custom(name: &str) -> Event {
    Body::Custom { name: name.into(), value: Value::Null, subagent_run_id: None }.into()
}

fn step(name: &str) -> Event {
    Body::StepStarted { step_name: name.into(), subagent_run_id: None }.into()
}

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        other => panic!("not an object: {other}"),
    }
}

fn source(kind: AgentEventKind) -> AgentEvent {
    AgentEvent { raw: Some(Arc::new(json!({"type": "X"}))), ..AgentEvent::local(kind) }
}

#[test]
fn timestamp_fills_only_what_is_missing_and_never_the_raw_event() {
    let options = AdapterOptions { timestamps: true, ..AdapterOptions::default() };
    let agent = source(AgentEventKind::AllToolsDenied {});
    let events = decorate(&options, Some(&agent), vec![step("a"), step("b").with_timestamp(7)]);
    assert_eq!(events, [step("a").with_timestamp(1234), step("b").with_timestamp(7)]);
}

#[test]
fn raw_event_is_the_source_unless_the_event_has_its_own() {
    let options = options(vec![EnricherSpec::RawEvent]);
    let agent = source(AgentEventKind::AllToolsDenied {});
    let own = Event { raw_event: Some(json!(1)), ..step("b") };
    let events = decorate(&options, Some(&agent), vec![step("a"), own.clone()]);
    assert_eq!(events, [Event { raw_event: Some(json!({"type": "X"})), ..step("a") }, own]);
    assert_eq!(decorate(&options, None, vec![step("a")]), [step("a")]);
    let without = AgentEvent { raw: None, ..agent.clone() };
    assert_eq!(decorate(&options, Some(&without), vec![step("a")]), [step("a")]);
    let null = AgentEvent { raw: Some(Arc::new(Value::Null)), ..agent };
    assert_eq!(decorate(&options, Some(&null), vec![step("a")]), [step("a")]);
}

#[test]
fn raw_event_keeps_thinking_and_failures_inside() {
    let block = || ("r".to_owned(), "b".to_owned());
    let (reply, id) = block();
    let result = Msg {
        id: "m".into(),
        name: String::new(),
        role: Role::Assistant,
        content: vec![],
        metadata: Object::new(),
    };
    let confidential = [
        AgentEventKind::ThinkingBlockStart { reply: reply.clone(), block: id.clone() },
        AgentEventKind::ThinkingBlockDelta {
            reply: reply.clone(),
            block: id.clone(),
            delta: "x".into(),
        },
        AgentEventKind::ThinkingBlockEnd { reply: reply.clone(), block: id, encrypted: None },
        AgentEventKind::HintBlock { label: None, sublabel: None, text: "x".into() },
        AgentEventKind::AgentResult { result, generate_reason: None },
    ];
    let off = options(vec![EnricherSpec::RawEvent]);
    let on = AdapterOptions { enable_reasoning: true, ..off.clone() };
    let shown = Event { raw_event: Some(json!({"type": "X"})), ..step("a") };
    for kind in confidential {
        let agent = source(kind);
        assert_eq!(decorate(&off, Some(&agent), vec![step("a")]), [step("a")]);
        assert_eq!(decorate(&on, Some(&agent), vec![step("a")]), std::slice::from_ref(&shown));
    }
    let failure = Failure { class: "internal".into(), message: "secret".into() };
    let failed =
        source(AgentEventKind::AgentEnd { reply: None, reason: EndReason::Failed(failure) });
    assert_eq!(decorate(&on, Some(&failed), vec![step("a")]), [step("a")]);
}

#[test]
fn metadata_is_merged_per_key_and_never_touches_the_reserved_one() {
    let first = object(json!({"region": "eu", "tier": {"a": 1}, "ag-ui": 1}));
    let second = object(json!({"region": "us"}));
    let options = options(vec![
        EnricherSpec::Metadata(Arc::new(first)),
        EnricherSpec::Metadata(Arc::new(second)),
    ]);
    let event = step("a").with_metadata("own", true).with_metadata("tier", json!({"b": 2}));
    let events = decorate(&options, None, vec![event]);
    let merged = object(json!({"own": true, "tier": {"a": 1}, "region": "us"}));
    assert_eq!(events, [Event { metadata: Some(merged), ..step("a") }]);
}

#[test]
fn metadata_without_a_usable_key_adds_no_empty_object() {
    let options = options(vec![EnricherSpec::Metadata(Arc::new(object(json!({"ag-ui": 1}))))]);
    assert_eq!(decorate(&options, None, vec![step("a")]), [step("a")]);
}

#[test]
fn drop_takes_whole_families_or_custom_events_of_one_name() {
    let every: Vec<Event> = [
        json!({"type": "CUSTOM", "name": "noisy", "value": null}),
        json!({"type": "CUSTOM", "name": "kept", "value": null}),
        json!({"type": "RAW", "event": 1}),
        json!({"type": "REASONING_START", "messageId": "r"}),
        json!({"type": "REASONING_MESSAGE_START", "messageId": "r", "role": "reasoning"}),
        json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": "r", "delta": "x"}),
        json!({"type": "REASONING_MESSAGE_END", "messageId": "r"}),
        json!({"type": "REASONING_END", "messageId": "r"}),
        json!({"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "r", "encryptedValue": "e"}),
        json!({"type": "STEP_STARTED", "stepName": "s"}),
        json!({"type": "STEP_FINISHED", "stepName": "s"}),
        json!({"type": "STATE_SNAPSHOT", "snapshot": 1}),
        json!({"type": "STATE_DELTA", "delta": []}),
        json!({"type": "ACTIVITY_SNAPSHOT", "messageId": "a", "activityType": "P", "content": {}}),
        json!({"type": "ACTIVITY_DELTA", "messageId": "a", "activityType": "P", "patch": []}),
        json!({"type": "TEXT_MESSAGE_START", "messageId": "m"}),
    ]
    .into_iter()
    .map(|event| serde_json::from_value(event).unwrap())
    .collect();
    let cases = [
        (Droppable::Custom, None, 0..2),
        (Droppable::Custom, Some("noisy"), 0..1),
        (Droppable::Raw, None, 2..3),
        (Droppable::Reasoning, None, 3..9),
        (Droppable::Step, None, 9..11),
        (Droppable::State, None, 11..13),
        (Droppable::Activity, None, 13..15),
    ];
    for (event, name, dropped) in cases {
        let name = name.map(str::to_owned);
        let options = options(vec![EnricherSpec::Drop { event, name }]);
        let mut rest = every.clone();
        rest.drain(dropped);
        assert_eq!(decorate(&options, None, every.clone()), rest, "{event:?}");
    }
}

#[test]
fn an_empty_chain_is_empty_and_only_the_programs_enrichers_are_structural() {
    let chain = EnricherChain::new(&AdapterOptions::default(), Enrichers::default());
    assert!(chain.is_empty() && !chain.structural());
    let configured =
        EnricherChain::new(&options(vec![EnricherSpec::RawEvent]), Enrichers::default());
    assert!(!configured.is_empty() && !configured.structural());
    let mut user = Enrichers::default();
    user.register(0, Arc::new(appends("x")));
    let registered = EnricherChain::new(&AdapterOptions::default(), user);
    assert!(!registered.is_empty() && registered.structural());
}

fn appends(name: &'static str) -> impl AguiEventEnricher {
    move |_: Option<&AgentEvent>, mut events: Vec<Event>, _: &EnrichContext<'_>| {
        events.push(custom(name));
        Ok::<_, EnrichError>(events)
    }
}

fn run(user: Enrichers) -> Result<Vec<Event>, EnrichError> {
    let runtime_context = crate::runtime_context::RuntimeContext::default();
    let context = EnrichContext {
        thread_id: &ThreadId::from("t1"),
        run_id: &RunId::from("r1"),
        now_ms: 0,
        runtime_context: &runtime_context,
    };
    EnricherChain::new(&AdapterOptions::default(), user).enrich(None, Vec::new(), &context)
}

#[test]
fn lower_orders_run_first_and_equal_ones_as_registered() {
    let mut user = Enrichers::default();
    user.register(5, Arc::new(appends("c")));
    user.register(-1, Arc::new(appends("a")));
    user.register(5, Arc::new(appends("d")));
    user.register(0, Arc::new(appends("b")));
    let names = run(user).unwrap();
    assert_eq!(names, [custom("a"), custom("b"), custom("c"), custom("d")]);
}

#[test]
fn the_first_error_ends_the_chain() {
    let fails = |_: Option<&AgentEvent>, _: Vec<Event>, _: &EnrichContext<'_>| {
        Err(EnrichError::caused_by("no tenant", "missing key"))
    };
    let unreachable = |_: Option<&AgentEvent>, _: Vec<Event>, _: &EnrichContext<'_>| {
        panic!("runs after a failure")
    };
    let mut user = Enrichers::default();
    user.register(0, Arc::new(fails));
    user.register(1, Arc::new(unreachable));
    let error = run(user).unwrap_err();
    assert_eq!(error.to_string(), "no tenant");
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "missing key");
}
