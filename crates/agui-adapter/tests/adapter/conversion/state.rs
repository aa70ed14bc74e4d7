//! Shared state.

use agui_adapter::model::{AgentEvent, AgentEventKind, event::StateChange};
use serde_json::{Value, json};

use super::{Played, Run, SUCCESS, play, script::*, wire};

fn set(state: Value) -> String {
    custom("agui.state", json!({ "set": state }))
}

fn patch(operations: Value) -> String {
    custom("agui.state", json!({ "patch": operations }))
}

fn with_state(state: Value) -> Run {
    Run::with_input(&json!({ "state": state }).to_string())
}

/// The state of a client that applies everything strictly.
fn client(mut state: Value, played: &Played) -> Value {
    for event in played.values() {
        match event["type"].as_str() {
            Some("STATE_SNAPSHOT") => state = event["snapshot"].clone(),
            Some("STATE_DELTA") => {
                let patch: json_patch::Patch =
                    serde_json::from_value(event["delta"].clone()).expect("a patch");
                json_patch::patch(&mut state, &patch).expect("a patch that applies");
            }
            _ => {}
        }
    }
    state
}

#[test]
fn changes_are_deltas_against_what_the_client_has() {
    let rest = "x".repeat(60);
    let lines = joined![
        start(),
        set(json!({ "rest": rest, "steps": [1] })),
        set(json!({ "rest": rest, "steps": [1, 2] })),
        set(json!({ "rest": rest, "steps": [1, 2], "title": "x" })),
        end(),
    ];
    let played = with_state(json!({ "rest": rest })).play(&lines);
    played.gives(&[
        "STATE_DELTA {\"delta\":[{\"op\":\"add\",\"path\":\"/steps\",\"value\":[1]}]}",
        "STATE_DELTA {\"delta\":[{\"op\":\"add\",\"path\":\"/steps/1\",\"value\":2}]}",
        "STATE_DELTA {\"delta\":[{\"op\":\"add\",\"path\":\"/title\",\"value\":\"x\"}]}",
        SUCCESS,
    ]);
    let end = json!({ "rest": rest, "steps": [1, 2], "title": "x" });
    assert_eq!(client(json!({ "rest": rest }), &played), end);
    assert_eq!(played.end.state, Some(end.into()));
}

#[test]
fn a_delta_longer_than_the_state_is_a_snapshot() {
    let lines = joined![start(), set(json!({ "steps": [1] })), end()];
    with_state(json!({}))
        .play(&lines)
        .gives(&["STATE_SNAPSHOT {\"snapshot\":{\"steps\":[1]}}", SUCCESS]);
}

#[test]
fn the_first_change_without_a_known_state_is_a_snapshot() {
    let rest = "x".repeat(60);
    let lines = joined![
        start(),
        patch(json!([{ "op": "add", "path": "/rest", "value": rest }])),
        patch(json!([{ "op": "add", "path": "/a", "value": 1 }])),
        end(),
    ];
    let snapshot = format!("STATE_SNAPSHOT {{\"snapshot\":{{\"rest\":\"{rest}\"}}}}");
    play(&lines).gives(&[
        &snapshot,
        "STATE_DELTA {\"delta\":[{\"op\":\"add\",\"path\":\"/a\",\"value\":1}]}",
        SUCCESS,
    ]);
}

#[test]
fn a_root_of_another_type_is_a_snapshot() {
    let lines = joined![start(), set(json!([1])), set(json!(null)), set(json!({})), end()];
    with_state(json!({ "a": 1 })).play(&lines).gives(&[
        "STATE_SNAPSHOT {\"snapshot\":[1]}",
        "STATE_SNAPSHOT {\"snapshot\":null}",
        "STATE_SNAPSHOT {\"snapshot\":{}}",
        SUCCESS,
    ]);
}

#[test]
fn keys_are_escaped_in_pointers() {
    let rest = "x".repeat(80);
    let base = json!({ "rest": rest });
    let lines = joined![
        start(),
        set(json!({ "rest": rest, "user/name": "n" })),
        set(json!({ "rest": rest, "user/name": "n", "a~b": 1 })),
        set(json!({ "rest": rest, "user/name": "n", "a~b": 1, "": 2 })),
        set(json!({ "rest": rest, "a~b": 1, "": 2 })),
        end(),
    ];
    let played = with_state(base.clone()).play(&lines);
    played.gives(&[
        "STATE_DELTA {\"delta\":[{\"op\":\"add\",\"path\":\"/user~1name\",\"value\":\"n\"}]}",
        "STATE_DELTA {\"delta\":[{\"op\":\"add\",\"path\":\"/a~0b\",\"value\":1}]}",
        "STATE_DELTA {\"delta\":[{\"op\":\"add\",\"path\":\"/\",\"value\":2}]}",
        "STATE_DELTA {\"delta\":[{\"op\":\"remove\",\"path\":\"/user~1name\"}]}",
        SUCCESS,
    ]);
    assert_eq!(client(base, &played), json!({ "rest": rest, "a~b": 1, "": 2 }));
}

#[test]
fn the_change_comes_before_the_text_that_follows_it() {
    let lines = joined![
        start(),
        text("a"),
        set(json!({ "n": 1 })),
        text("b"),
        set(json!({ "n": 2 })),
        end()
    ];
    let played = with_state(json!({})).play(&lines);
    played.gives(&[
        "TEXT id-1",
        "TEXT+ id-1 a",
        "STATE_SNAPSHOT {\"snapshot\":{\"n\":1}}",
        "TEXT+ id-1 b",
        "STATE_SNAPSHOT {\"snapshot\":{\"n\":2}}",
        "TEXT. id-1",
        SUCCESS,
    ]);
}

#[test]
fn switched_off_nothing_is_sent_but_the_state_is_kept() {
    let mut run = with_state(json!({}));
    run.options.emit_state_events = false;
    let played = run.play(&joined![start(), set(json!({ "n": 1 })), end()]);
    played.gives(&[SUCCESS]);
    assert_eq!(played.end.state, Some(json!({ "n": 1 }).into()));
}

#[test]
fn a_patch_that_does_not_apply_is_left_out() {
    let lines = joined![
        start(),
        patch(json!([{ "op": "remove", "path": "/none" }])),
        patch(
            json!([{ "op": "add", "path": "/a", "value": 2 }, { "op": "test", "path": "/a", "value": 3 }])
        ),
        patch(json!([{ "op": "what" }])),
        text("on"),
        end(),
    ];
    let played = with_state(json!({ "a": 1 })).play(&lines);
    played.gives(&["TEXT id-1", "TEXT+ id-1 on", "TEXT. id-1", SUCCESS]);
    assert_eq!(played.end.state, None);
}

/// The wires let no such patch through.
#[test]
fn a_patch_that_is_no_list_is_left_out() {
    let change = StateChange::Patch(json!("nonsense"));
    let events = [
        wire(start()),
        AgentEvent::local(AgentEventKind::State { change }),
        wire(text("on")),
        wire(end()),
    ];
    let played = with_state(json!({ "a": 1 })).play_events(&events);
    played.gives(&["TEXT id-1", "TEXT+ id-1 on", "TEXT. id-1", SUCCESS]);
    assert_eq!(played.end.state, None);
}

#[test]
fn a_change_to_the_same_is_not_sent() {
    with_state(json!({ "a": 1 }))
        .play(&joined![start(), set(json!({ "a": 1 })), end()])
        .gives(&[SUCCESS]);
}

#[test]
fn a_stored_state_is_told_first() {
    let stored = || Run { stored_state: Some(json!({ "a": 1 })), ..Run::default() };
    stored()
        .play(&joined![start(), end()])
        .gives(&["STATE_SNAPSHOT {\"snapshot\":{\"a\":1}}", SUCCESS]);
    let mut off = stored();
    off.options.emit_state_events = false;
    off.play(&joined![start(), end()]).gives(&[SUCCESS]);
    // What the client sends is the state, whatever the server remembers.
    let mut sent = stored();
    sent.input.state = Some(json!({ "a": 2 }).into());
    let lines = joined![start(), patch(json!([{ "op": "add", "path": "/b", "value": 3 }])), end()];
    let played = sent.play(&lines);
    played.gives(&["STATE_SNAPSHOT {\"snapshot\":{\"a\":2,\"b\":3}}", SUCCESS]);
    assert_eq!(played.end.state, Some(json!({ "a": 2, "b": 3 }).into()));
}

#[test]
fn a_childs_change_is_tagged() {
    let lines = joined![start(), from("main/a", set(json!({ "n": 1 }))), end()];
    with_state(json!({})).play(&lines).gives(&[
        "SUBAGENT_STARTED @id-1 {\"name\":\"a\"}",
        "STATE_SNAPSHOT @id-1 {\"snapshot\":{\"n\":1}}",
        "SUBAGENT_FINISHED @id-1",
        SUCCESS,
    ]);
}

/// More than a frame may hold.
fn huge() -> String {
    "x".repeat(9 << 20)
}

#[test]
fn a_state_too_long_to_be_sent_is_skipped_and_later_changes_start_from_what_the_client_has() {
    let rest = "x".repeat(60);
    let lines = joined![
        start(),
        set(json!({ "rest": rest, "big": huge() })),
        patch(json!([{ "op": "add", "path": "/n", "value": 1 }])),
        patch(json!([{ "op": "remove", "path": "/big" }])),
        patch(json!([{ "op": "add", "path": "/m", "value": 2 }])),
        end(),
    ];
    let played = with_state(json!({ "rest": rest })).play(&lines);
    played.gives(&[
        "STATE_DELTA {\"delta\":[{\"op\":\"add\",\"path\":\"/n\",\"value\":1}]}",
        "STATE_DELTA {\"delta\":[{\"op\":\"add\",\"path\":\"/m\",\"value\":2}]}",
        SUCCESS,
    ]);
    let last = json!({ "rest": rest, "n": 1, "m": 2 });
    assert_eq!(client(json!({ "rest": rest }), &played), last);
    assert_eq!(played.end.state, Some(last.into()));
    // Where nothing is known of the client's state, it stays so.
    let lines = joined![
        start(),
        set(json!({ "big": huge() })),
        patch(json!([{ "op": "add", "path": "/n", "value": 1 }])),
        set(json!({ "n": 2 })),
        end(),
    ];
    play(&lines).gives(&["STATE_SNAPSHOT {\"snapshot\":{\"n\":2}}", SUCCESS]);
}

#[test]
fn a_change_of_a_long_state_that_the_client_sent_is_a_delta() {
    let big = json!({ "big": huge() });
    let lines = joined![
        start(),
        patch(json!([{ "op": "add", "path": "/n", "value": 1 }])),
        patch(json!([{ "op": "move", "from": "/big", "path": "/large" }])),
        patch(json!([{ "op": "add", "path": "/n", "value": 2 }])),
        patch(json!([{ "op": "move", "from": "/large", "path": "/big" }])),
        end(),
    ];
    with_state(big).play(&lines).gives(&[
        "STATE_DELTA {\"delta\":[{\"op\":\"add\",\"path\":\"/n\",\"value\":1}]}",
        "STATE_DELTA {\"delta\":[{\"op\":\"replace\",\"path\":\"/n\",\"value\":2}]}",
        SUCCESS,
    ]);
}
