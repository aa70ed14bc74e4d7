//! Converters and enrichers, of the configuration and of a program.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use agui_adapter::{
    enrich::{EnrichContext, EnrichError},
    model::{
        AgentEvent, AgentEventKind, AgentEventType,
        wire::{DecodeOptions, decode},
    },
    options::{AdapterOptions, ConverterAction, ConverterSpec, Droppable, EnricherSpec, Peer},
    outbound::{
        AgentEventConverter, ConvertError, EndOutcome, Extensions, RunFailure, RunSetup,
        StreamContext, StreamEnd,
    },
};
use agui_protocol::{Event, EventType};
use serde_json::{Value, json};

use super::{
    Played, Run, SUCCESS,
    script::*,
    support::{NOW, adapter, input},
};

const BROKEN: &str = "ERROR INTERNAL_ERROR The run failed because of a server error.";

fn mapped(custom: &str, action: ConverterAction) -> ConverterSpec {
    ConverterSpec { custom: custom.to_owned(), action }
}

#[test]
fn custom_events_are_renamed_dropped_or_mapped_by_the_configuration() {
    let run = Run::with(|options| {
        options.converters = vec![
            mapped("old", ConverterAction::Rename("com.example.new".to_owned())),
            mapped("noisy", ConverterAction::Drop),
            mapped("my_state", ConverterAction::AsState),
            mapped("my_card", ConverterAction::AsActivity),
            mapped("my_step", ConverterAction::AsStep),
        ];
    });
    let lines = joined![
        start(),
        custom("old", json!({ "n": 1 })),
        custom("noisy", json!({})),
        custom("other", json!({})),
        custom("my_state", json!({ "set": { "a": 1 } })),
        custom("my_state", json!({ "nothing": true })),
        custom("my_card", json!({ "id": "x", "type": "CARD", "content": {} })),
        custom("my_step", json!({ "name": "s", "phase": "start" })),
        custom("my_step", json!("odd")),
        end(),
    ];
    run.play(&lines).gives(&[
        "CUSTOM {\"name\":\"com.example.new\",\"value\":{\"n\":1}}",
        "CUSTOM {\"name\":\"other\",\"value\":{}}",
        "STATE_SNAPSHOT {\"snapshot\":{\"a\":1}}",
        "CUSTOM {\"name\":\"my_state\",\"value\":{\"nothing\":true}}",
        "ACTIVITY_SNAPSHOT {\"messageId\":\"id-1\",\"activityType\":\"CARD\",\"content\":{}}",
        "STEP_STARTED {\"stepName\":\"s\"}",
        "CUSTOM {\"name\":\"my_step\",\"value\":\"odd\"}",
        "STEP_FINISHED {\"stepName\":\"s\"}",
        SUCCESS,
    ]);
}

#[test]
fn events_are_stamped_dropped_and_marked_by_the_configuration() {
    let run = Run::with(|options| {
        options.timestamps = true;
        let region = json!({ "region": "eu" }).as_object().cloned().unwrap_or_default();
        options.enrichers = vec![
            EnricherSpec::Metadata(Arc::new(region)),
            EnricherSpec::Drop { event: Droppable::Custom, name: Some("noisy".to_owned()) },
        ];
    });
    let lines = joined![start(), custom("noisy", json!({})), custom("kept", json!({})), end()];
    let base = json!({ "timestamp": NOW, "metadata": { "region": "eu" } });
    let events: Vec<_> = run.play(&lines).values();
    let kinds: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap_or("")).collect();
    assert_eq!(kinds, ["RUN_STARTED", "CUSTOM", "RUN_FINISHED"]);
    for event in events {
        assert_eq!(json!({ "timestamp": event["timestamp"], "metadata": event["metadata"] }), base);
    }
}

#[test]
fn timestamps_stand_on_every_event() {
    let run = Run::with(|options| options.timestamps = true);
    let at = |line: &str| format!("{line} {}", json!({ "timestamp": NOW }));
    let finished = json!({ "outcome": { "type": "success" }, "timestamp": NOW });
    run.play(&joined![start(), text("a"), end()]).gives_all(&[
        &at("RUN t1 r1 1.0"),
        &at("TEXT id-1"),
        &at("TEXT+ id-1 a"),
        &at("TEXT. id-1"),
        &format!("FINISHED {finished}"),
    ]);
}

/// AGENT_RESULT repeats the thinking, so it is not shown either.
#[test]
fn the_raw_event_never_leaks_thinking() {
    let result = json!({ "result": { "id": "m", "name": "n", "role": "ASSISTANT", "content": [
        { "type": "thinking", "thinking": "SECRET" }, { "type": "text", "text": "b" }] } });
    let lines = joined![
        start(),
        think("SECRET"),
        text("a"),
        model_start(),
        any("AGENT_RESULT", result),
        end(),
    ];
    let mut run = Run::with(|options| options.enrichers = vec![EnricherSpec::RawEvent]);
    run.keep_raw = true;
    let json = |line: &str| serde_json::from_str::<Value>(line).expect("json");
    let raw = |sent: &str, of: String| format!("{sent} {}", json!({ "rawEvent": json(&of) }));
    let finished = json!({ "outcome": { "type": "success" }, "rawEvent": json(&end()) });
    run.play(&lines).gives_all(&[
        &raw("RUN t1 r1 1.0", start()),
        &raw("TEXT id-1", text("a")),
        &raw("TEXT+ id-1 a", text("a")),
        "TEXT id-2",
        "TEXT+ id-2 b",
        "TEXT. id-2",
        &raw("TEXT. id-1", end()),
        &format!("FINISHED {finished}"),
    ]);
}

/// Converts, or fails, in place of the built-in converter.
struct Converter {
    types: Vec<AgentEventType>,
    what: fn(&AgentEvent, &mut StreamContext) -> Result<(), ConvertError>,
}

impl AgentEventConverter for Converter {
    fn event_types(&self) -> &[AgentEventType] {
        &self.types
    }

    fn convert(&self, event: &AgentEvent, context: &mut StreamContext) -> Result<(), ConvertError> {
        (self.what)(event, context)
    }
}

fn converting(
    types: &[AgentEventType],
    what: fn(&AgentEvent, &mut StreamContext) -> Result<(), ConvertError>,
) -> Run {
    let converter = Arc::new(Converter { types: types.to_vec(), what });
    Run { extensions: Extensions::default().converter(0, converter), ..Run::default() }
}

#[test]
fn a_converter_of_the_program_takes_the_place_of_the_built_in_one() {
    let run = converting(&[AgentEventType::TextBlockDelta], |event, context| {
        if let AgentEventKind::TextBlockDelta { delta, .. } = &event.kind {
            context.emit_custom(event, "com.example.text", json!(delta.to_uppercase()));
        }
        Ok(())
    });
    run.play(&joined![start(), text("a"), from("main/a", text("b")), end()]).gives(&[
        "CUSTOM {\"name\":\"com.example.text\",\"value\":\"A\"}",
        "SUBAGENT_STARTED @id-1 {\"name\":\"a\"}",
        "CUSTOM @id-1 {\"name\":\"com.example.text\",\"value\":\"B\"}",
        "SUBAGENT_FINISHED @id-1",
        SUCCESS,
    ]);
    let quiet = converting(&[AgentEventType::RequireExternalExecution], |_, _| Ok(()));
    quiet.play(&joined![start(), external(&[("c1", "print")]), end()]).gives(&[SUCCESS]);
    let beside = converting(&[AgentEventType::AgentStart], |event, context| {
        context.convert_built_in(event);
        context.emit_custom(event, "com.example.started", json!(null));
        Ok(())
    });
    beside
        .play(&joined![start(), end()])
        .gives(&["CUSTOM {\"name\":\"com.example.started\",\"value\":null}", SUCCESS]);
}

#[test]
fn a_converter_that_fails_ends_the_run() {
    let run = converting(&[AgentEventType::Custom], |_, _| {
        Err(ConvertError("database down at db.internal".to_owned()))
    });
    let played = run.play(&joined![start(), text("a"), custom("x", json!({})), text("b"), end()]);
    played.gives(&["TEXT id-1", "TEXT+ id-1 a", "TEXT. id-1", BROKEN]);
    assert_eq!(played.end.outcome, EndOutcome::Error("INTERNAL_ERROR".to_owned()));
}

fn enriching<E>(enricher: E) -> Run
where
    E: Fn(Option<&AgentEvent>, Vec<Event>, &EnrichContext<'_>) -> Result<Vec<Event>, EnrichError>
        + Send
        + Sync
        + 'static,
{
    Run { extensions: Extensions::default().enricher(0, Arc::new(enricher)), ..Run::default() }
}

#[test]
fn an_enricher_sees_every_event_the_boundaries_too() {
    let run = enriching(|_, events, _| {
        Ok(events.into_iter().map(|event| event.with_metadata("seen", true)).collect())
    });
    let values = run.play(&joined![start(), text("a"), end()]).values();
    let seen = values.iter().filter(|event| event["metadata"]["seen"] == true);
    assert_eq!((values.len(), seen.count()), (5, 5));
}

#[test]
fn an_enricher_that_fails_ends_the_run() {
    let run = enriching(|source, events, _| match source.map(AgentEvent::event_type) {
        Some(AgentEventType::Custom) => Err(EnrichError::new("broken")),
        _ => Ok(events),
    });
    let lines = joined![start(), text("a"), custom("x", json!({})), text("b"), end()];
    run.play(&lines).gives(&["TEXT id-1", "TEXT+ id-1 a", "TEXT. id-1", BROKEN]);
    let late = enriching(|source, events, _| match source.map(AgentEvent::event_type) {
        Some(AgentEventType::AgentEnd) => Err(EnrichError::new("broken")),
        _ => Ok(events),
    });
    let played = late.play(&joined![start(), text("a"), end()]);
    assert_eq!(played.end.outcome, EndOutcome::Error("INTERNAL_ERROR".to_owned()));
    assert_eq!(played.lines().last().map(String::as_str), Some(BROKEN));
}

#[test]
fn a_converter_that_fails_after_it_ended_the_run_takes_nothing_away_but_the_end() {
    let failing = || {
        converting(&[AgentEventType::AgentEnd], |event, context| {
            context.convert_built_in(event);
            Err(ConvertError("too late".to_owned()))
        })
    };
    let failed = EndOutcome::Error("INTERNAL_ERROR".to_owned());
    // One event is the whole run.
    let played = failing().play(&joined![end()]);
    played.gives(&[BROKEN]);
    assert_eq!(played.end.outcome, failed);
    // Everything that is open is closed, the child's invocation too.
    let lines =
        joined![start(), from("main/a", text("b")), text("a"), call("c1", "f", "{}"), end()];
    let played = failing().play(&lines);
    played.gives(&[
        "SUBAGENT_STARTED @id-1 {\"name\":\"a\"}",
        "TEXT id-2 @id-1",
        "TEXT+ id-2 b @id-1",
        "TEXT id-3",
        "TEXT+ id-3 a",
        "TEXT. id-3",
        "CALL c1 f id-3",
        "CALL+ c1 {}",
        "TEXT. id-2 @id-1",
        "SUBAGENT_FINISHED @id-1",
        "CALL. c1",
        BROKEN,
    ]);
    assert_eq!(played.end.outcome, failed);
    // What old clients expect stands behind the error only.
    let mut old = failing();
    old.options.emit_run_finished_after_error = true;
    old.excused = &["LIFE-3"];
    old.play(&joined![start(), end()]).gives(&[BROKEN, "FINISHED"]);
}

#[test]
fn a_run_whose_end_was_taken_back_tells_its_tokens_all_the_same() {
    let run = converting(&[AgentEventType::AgentEnd], |event, context| {
        context.convert_built_in(event);
        Err(ConvertError("too late".to_owned()))
    });
    let used = json!({ "replyId": "R1", "usage": { "inputTokens": 2, "outputTokens": 1 } });
    let usage = json!({ "usage": [{ "inputTokens": 2, "outputTokens": 1, "totalTokens": 3 }] });
    run.play(&joined![start(), any("MODEL_CALL_END", used), end()])
        .gives(&[&format!("{BROKEN} {usage}")]);
}

/// Plays lines to an enricher that panics on the run's end; what panicked is not asked again.
fn panicking(lines: &[String], options: AdapterOptions) -> Played {
    let enricher = |_: Option<&AgentEvent>, events: Vec<Event>, _: &EnrichContext<'_>| {
        let ends = events.iter().any(|event| event.event_type() == EventType::RunFinished);
        assert!(!ends, "on purpose");
        Ok::<_, EnrichError>(events)
    };
    let setup = RunSetup::new(Arc::new(input("{}")), Peer::Current);
    let extensions = Extensions::default().enricher(0, Arc::new(enricher));
    let mut adapter = adapter(setup, options, extensions);
    let mut events = Vec::new();
    for line in lines {
        let event = decode(line, DecodeOptions::default()).expect(line);
        let fed = catch_unwind(AssertUnwindSafe(|| adapter.on_event(&event, &mut events)));
        assert_eq!(fed.ok().flatten(), None);
    }
    let failure = RunFailure::new("INTERNAL_ERROR", "The agent panicked.");
    let end = adapter.finish(StreamEnd::Failed(failure), &mut events);
    Played { events, end }
}

#[test]
fn an_enricher_that_panics_on_the_end_of_the_run_does_not_keep_it_from_the_client() {
    const PANICKED: &str = "ERROR INTERNAL_ERROR The agent panicked.";
    let failed = EndOutcome::Error("INTERNAL_ERROR".to_owned());
    let played = panicking(&joined![start(), text("a"), end()], AdapterOptions::default());
    played.gives(&["TEXT id-1", "TEXT+ id-1 a", PANICKED]);
    assert_eq!(played.end.outcome, failed);
    // The start was lost with the end.
    let played = panicking(&joined![end()], AdapterOptions::default());
    played.gives(&[PANICKED]);
    assert_eq!(played.end.outcome, failed);
    let options =
        AdapterOptions { emit_run_finished_after_error: true, ..AdapterOptions::default() };
    let played = panicking(&joined![start(), end()], options);
    played.gives(&[PANICKED, "FINISHED"]);
    assert_eq!(played.end.outcome, failed);
}
