use crate::model::event::Object;
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use agui_protocol::{Body, Content, ContentPart, Event};
use serde_json::{Value, json};

use super::*;
use crate::{
    enrich::AguiEventEnricher,
    model::event::AgentEventKind,
    options::{Droppable, EnricherSpec},
};

fn event(value: Value) -> Event {
    serde_json::from_value(value).unwrap()
}

fn started() -> Event {
    event(json!({"type": "RUN_STARTED", "threadId": "t1", "runId": "r1"}))
}

fn finished() -> Event {
    event(
        json!({"type": "RUN_FINISHED", "threadId": "t1", "runId": "r1", "outcome": {"type": "success"}}),
    )
}

fn error() -> Event {
    event(json!({"type": "RUN_ERROR", "message": "m", "code": "INTERNAL_ERROR", "timestamp": 5}))
}

fn text(kind: &str) -> Event {
    let mut value = json!({"type": format!("TEXT_MESSAGE_{kind}"), "messageId": "m"});
    if kind == "CONTENT" {
        value["delta"] = "x".into();
    }
    event(value)
}

fn custom(value: &str) -> Event {
    Body::Custom { name: "n".into(), value: value.into(), subagent_run_id: None }.into()
}

fn tail(options: &AdapterOptions, peer: Peer, user: Enrichers) -> Tail {
    let values = Object::from_iter([("tenantId".to_owned(), "acme".into())]);
    let setup = TailSetup {
        guarded: false,
        thread_id: "t1".into(),
        run_id: "r1".into(),
        peer,
        runtime_context: Arc::new(values.into()),
    };
    Tail::new(options, user, setup)
}

fn push(tail: &mut Tail, batch: Vec<Event>) -> Vec<Event> {
    let (mut batch, mut out) = (batch, Vec::new());
    tail.push(None, &mut batch, 1234, &mut out).unwrap();
    assert_eq!(batch, []);
    out
}

fn with(enricher: impl AguiEventEnricher + 'static) -> Enrichers {
    let mut user = Enrichers::default();
    user.register(0, Arc::new(enricher));
    user
}

#[test]
fn without_enrichers_events_only_move() {
    let mut tail = tail(&AdapterOptions::default(), Peer::Current, Enrichers::default());
    // Out of order on purpose: nobody checks what nobody can have broken.
    let batch = vec![text("END"), started(), finished()];
    assert_eq!(push(&mut tail, batch.clone()), batch);
    assert_eq!(tail.repairs(), 0);
}

#[test]
fn a_legacy_peer_gets_the_downgraded_stream() {
    let mut tail = tail(&AdapterOptions::default(), Peer::Legacy, Enrichers::default());
    let result = |content: Content| -> Event {
        Body::ToolCallResult {
            message_id: "m".into(),
            tool_call_id: "c".into(),
            content,
            role: None,
            subagent_run_id: None,
        }
        .into()
    };
    let parts = Content::Parts(vec![ContentPart::plain("a"), ContentPart::plain("b")]);
    let bare = event(json!({"type": "RUN_FINISHED", "threadId": "t1", "runId": "r1"}));
    assert_eq!(
        push(&mut tail, vec![result(parts), finished()]),
        [result(Content::Text("ab".into())), bare]
    );
}

#[test]
fn what_the_gate_puts_back_is_decorated_too() {
    let swallows = |_: Option<&AgentEvent>, _: Vec<Event>, _: &EnrichContext<'_>| {
        Ok::<_, EnrichError>(Vec::new())
    };
    let options = AdapterOptions { timestamps: true, ..AdapterOptions::default() };
    let mut tail = tail(&options, Peer::Current, with(swallows));
    let out = push(&mut tail, vec![started(), custom("lost"), finished()]);
    assert_eq!(out, [started().with_timestamp(1234), finished().with_timestamp(1234)]);
    assert_eq!(tail.repairs(), 2);
}

#[test]
fn what_enrichers_add_passes_the_configured_ones() {
    let appends = |_: Option<&AgentEvent>, mut events: Vec<Event>, context: &EnrichContext<'_>| {
        let tenant = context.runtime_context.get("tenantId").unwrap();
        events.push(custom(tenant.as_str().unwrap()));
        events.push(event(json!({"type": "RAW", "event": 1})));
        Ok::<_, EnrichError>(events)
    };
    let set = json!({"region": "eu"}).as_object().unwrap().clone();
    let options = AdapterOptions {
        enrichers: vec![
            EnricherSpec::Metadata(Arc::new(set)),
            EnricherSpec::Drop { event: Droppable::Raw, name: None },
        ],
        ..AdapterOptions::default()
    };
    let mut tail = tail(&options, Peer::Current, with(appends));
    let out = push(&mut tail, vec![started()]);
    assert_eq!(
        out,
        [started().with_metadata("region", "eu"), custom("acme").with_metadata("region", "eu")]
    );
}

#[test]
fn enrichers_see_the_source_and_empty_batches_that_have_one() {
    let names = |source: Option<&AgentEvent>, mut events: Vec<Event>, _: &EnrichContext<'_>| {
        events.extend(source.map(|source| custom(source.event_type().as_str())));
        Ok::<_, EnrichError>(events)
    };
    let mut tail = tail(&AdapterOptions::default(), Peer::Current, with(names));
    let agent = AgentEvent::local(AgentEventKind::AllToolsDenied {});
    let mut out = Vec::new();
    tail.push(Some(&agent), &mut vec![started()], 0, &mut out).unwrap();
    tail.push(Some(&agent), &mut Vec::new(), 0, &mut out).unwrap();
    tail.push(None, &mut Vec::new(), 0, &mut out).unwrap();
    assert_eq!(out, [started(), custom("ALL_TOOLS_DENIED"), custom("ALL_TOOLS_DENIED")]);
}

/// An enricher that fails at its call number `at`, from 0.
fn fails(at: u32) -> Enrichers {
    let calls = AtomicU32::new(0);
    with(move |_: Option<&AgentEvent>, events: Vec<Event>, _: &EnrichContext<'_>| {
        if calls.fetch_add(1, Ordering::Relaxed) >= at {
            return Err(EnrichError::new("broken"));
        }
        Ok(events)
    })
}

/// Pushes a batch that fails, then the RUN_ERROR with which the caller ends the run.
fn push_failing(tail: &mut Tail, batch: Vec<Event>) -> Vec<Event> {
    let mut batch = batch;
    let mut out = Vec::new();
    let error_text = tail.push(None, &mut batch, 0, &mut out).unwrap_err().to_string();
    assert_eq!((error_text.as_str(), batch, out), ("broken", vec![], vec![]));
    push(tail, vec![error()])
}

#[test]
fn a_broken_enricher_ends_the_run_wherever_it_breaks() {
    let options = AdapterOptions::default();

    let mut first = tail(&options, Peer::Current, fails(0));
    assert_eq!(push_failing(&mut first, vec![started(), text("START")]), [started(), error()]);

    let mut middle = tail(&options, Peer::Current, fails(1));
    assert_eq!(push(&mut middle, vec![started(), text("START")]), [started(), text("START")]);
    assert_eq!(push_failing(&mut middle, vec![text("CONTENT")]), [error()]);

    let mut last = tail(&options, Peer::Current, fails(1));
    assert_eq!(push(&mut last, vec![started()]), [started()]);
    assert_eq!(push_failing(&mut last, vec![finished()]), [error()]);
}

#[test]
fn closers_of_what_got_lost_with_a_failed_batch_do_not_leave() {
    let mut tail = tail(&AdapterOptions::default(), Peer::Current, fails(1));
    assert_eq!(push(&mut tail, vec![started()]), [started()]);
    let mut out = Vec::new();
    tail.push(None, &mut vec![text("START")], 0, &mut out).unwrap_err();
    assert_eq!(push(&mut tail, vec![text("END"), error()]), [error()]);
}

#[test]
fn long_events_are_split_before_they_leave() {
    let mut tail = tail(&AdapterOptions::default(), Peer::Current, Enrichers::default());
    let content = |delta: String| -> Event {
        Body::TextMessageContent { message_id: "m".into(), delta, subagent_run_id: None }.into()
    };
    let limit = crate::truncate::MAX_DELTA;
    assert_eq!(
        push(&mut tail, vec![started(), content("x".repeat(limit + 2)), text("END")]),
        [started(), content("x".repeat(limit)), content("xx".into()), text("END")]
    );
}
