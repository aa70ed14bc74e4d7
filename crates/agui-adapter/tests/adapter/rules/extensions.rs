//! Converters and enrichers, of the configuration and of programs.

use std::sync::Arc;

use agui_adapter::{
    enrich::{AguiEventEnricher, EnrichContext, EnrichError},
    model::{AgentEvent, AgentEventKind as Kind, AgentEventType},
    options::{ConverterAction, ConverterSpec, EnricherSpec},
    outbound::{AgentEventConverter, ConvertError, Extensions, StreamContext},
};
use agui_protocol::Event;
use serde_json::json;

use super::scene::*;

fn converter(custom: &str, action: ConverterAction) -> ConverterSpec {
    ConverterSpec { custom: custom.into(), action }
}

#[test]
fn configured_converters_rename_drop_and_map() {
    let specs = vec![
        converter("old", ConverterAction::Rename("new".into())),
        converter("noisy", ConverterAction::Drop),
        converter("cart", ConverterAction::AsState),
        converter("card", ConverterAction::AsActivity),
        converter("phase", ConverterAction::AsStep),
    ];
    let events = [
        start(),
        custom("old", json!(1)),
        custom("noisy", json!(2)),
        custom("cart", json!({ "set": { "items": 1 } })),
        custom("card", json!({ "id": "k", "type": "card", "content": { "a": 1 } })),
        custom("phase", json!({ "name": "plan", "phase": "start" })),
        custom("phase", json!("odd")),
        end(),
    ];
    scene(events).with(|options| options.converters = specs).gives(
        r#"
            RUN_STARTED
            CUSTOM name=new value=1
            STATE_SNAPSHOT snapshot={"items":1}
            ACTIVITY_SNAPSHOT messageId=id-1 activityType=card content={"a":1}
            STEP_STARTED stepName=plan
            CUSTOM name=phase value=odd
            STEP_FINISHED stepName=plan
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn the_raw_event_never_leaks_thinking() {
    let raw = |mut event: AgentEvent, raw| {
        event.raw = Some(Arc::new(raw));
        event
    };
    let events = || {
        [
            start(),
            raw(think("R1", "K", "SECRET"), json!({ "type": "T", "delta": "SECRET" })),
            raw(text("R1", "B", "ok"), json!({ "type": "T", "delta": "ok" })),
            raw(
                result_message("MODEL_STOP", "hi"),
                json!({ "type": "AGENT_RESULT", "result": { "content": [
                    { "type": "thinking", "thinking": "SECRET" },
                    { "type": "text", "text": "hi" },
                ] } }),
            ),
            end(),
        ]
    };
    scene(events()).with(|options| options.enrichers = vec![EnricherSpec::RawEvent]).gives(
        r#"
            RUN_STARTED
            TEXT_MESSAGE_START messageId=id-1 role=assistant rawEvent={"type":"T","delta":"ok"}
            TEXT_MESSAGE_CONTENT messageId=id-1 delta=ok rawEvent={"type":"T","delta":"ok"}
            TEXT_MESSAGE_END messageId=id-1
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn timestamps_stand_on_every_event() {
    scene([start(), text("R", "B", "x"), end()]).with(|options| options.timestamps = true).gives(
        r#"
            RUN_STARTED timestamp=1790000000000
            TEXT_MESSAGE_START messageId=id-1 role=assistant timestamp=1790000000000
            TEXT_MESSAGE_CONTENT messageId=id-1 delta=x timestamp=1790000000000
            TEXT_MESSAGE_END messageId=id-1 timestamp=1790000000000
            RUN_FINISHED outcome={"type":"success"} timestamp=1790000000000
        "#,
    );
}

struct Replaces(AgentEventType, Result<&'static str, &'static str>);

impl AgentEventConverter for Replaces {
    fn event_types(&self) -> &[AgentEventType] {
        std::slice::from_ref(&self.0)
    }

    fn convert(&self, event: &AgentEvent, context: &mut StreamContext) -> Result<(), ConvertError> {
        let name = self.1.map_err(|error| ConvertError(error.to_owned()))?;
        context.emit_custom(event, name, json!(null));
        Ok(())
    }
}

#[test]
fn a_programs_converter_replaces_the_built_in_one() {
    let mut scene = scene([start(), event(Kind::AllToolsDenied {}), text("R", "B", "x"), end()]);
    scene.extensions = Extensions::default()
        .converter(0, Arc::new(Replaces(AgentEventType::TextBlockDelta, Ok("mine"))));
    scene.gives(
        r#"
            RUN_STARTED
            CUSTOM name=mine value=null
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn a_failing_converter_ends_the_run_with_an_error_that_says_nothing_of_it() {
    let mut scene = scene([start(), text("R", "B", "x"), custom("c", json!(1)), end()]);
    scene.extensions = Extensions::default()
        .converter(0, Arc::new(Replaces(AgentEventType::Custom, Err("SECRET"))));
    scene.gives(r#"
            RUN_STARTED
            TEXT_MESSAGE_START messageId=id-1 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-1 delta=x
            TEXT_MESSAGE_END messageId=id-1
            RUN_ERROR message="The run failed because of a server error." code=INTERNAL_ERROR timestamp=1790000000000
        "#);
}

struct Fails;

impl AguiEventEnricher for Fails {
    fn enrich(
        &self,
        source: Option<&AgentEvent>,
        events: Vec<Event>,
        _context: &EnrichContext<'_>,
    ) -> Result<Vec<Event>, EnrichError> {
        match source.map(|event| &event.kind) {
            Some(Kind::Custom { .. }) => Err(EnrichError::new("SECRET")),
            _ => Ok(events),
        }
    }
}

#[test]
fn a_failing_enricher_ends_the_run_with_an_error_that_says_nothing_of_it() {
    let mut scene = scene([start(), text("R", "B", "x"), custom("c", json!(1)), end()]);
    scene.extensions = Extensions::default().enricher(0, Arc::new(Fails));
    scene.gives(r#"
            RUN_STARTED
            TEXT_MESSAGE_START messageId=id-1 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-1 delta=x
            TEXT_MESSAGE_END messageId=id-1
            RUN_ERROR message="The run failed because of a server error." code=INTERNAL_ERROR timestamp=1790000000000
        "#);
}
