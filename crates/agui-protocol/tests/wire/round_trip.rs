//! Events keep everything on their way through the types and the wire.

use std::collections::BTreeSet;

use agui_protocol::{Event, EventType, sse, verify};
use bytes::BytesMut;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::samples;

fn event(value: &Value) -> Event {
    serde_json::from_value(value.clone()).unwrap()
}

#[test]
fn every_type_has_good_events_in_the_corpus() {
    let there: BTreeSet<String> =
        samples::good_events().iter().map(|e| e["type"].as_str().unwrap().to_owned()).collect();
    let all: BTreeSet<String> = EventType::ALL.iter().map(|t| t.as_str().to_owned()).collect();
    assert_eq!(there, all);
}

#[test]
fn events_are_written_as_they_were_read() {
    for value in samples::good_events() {
        let read = event(value);
        let written = serde_json::to_value(&read).unwrap();
        assert_eq!(written, *value);
        assert_eq!(event(&written), read);
        assert_eq!(value["type"], read.event_type().as_str());
    }
}

#[test]
fn a_null_is_kept_where_it_is_a_value() {
    for value in [
        json!({"type": "CUSTOM", "name": "n", "value": null}),
        json!({"type": "RAW", "event": null}),
        json!({"type": "STATE_SNAPSHOT", "snapshot": null}),
        json!({"type": "STATE_DELTA", "delta": [{"op": "add", "path": "", "value": null}]}),
    ] {
        assert_eq!(serde_json::to_string(&event(&value)).unwrap(), value.to_string());
    }
}

proptest! {
    #[test]
    fn frames_carry_any_event(values in proptest::collection::vec(samples::any_event(), 1..8)) {
        let mut body = BytesMut::new();
        for value in &values {
            sse::write_frame(&event(value), &mut body).unwrap();
            body.extend_from_slice(sse::KEEP_ALIVE);
        }
        let (read, faults) = verify::read_body(&body);
        prop_assert_eq!(faults, []);
        prop_assert_eq!(verify::check_schema(&read), []);
        prop_assert_eq!(read, values);
    }
}
