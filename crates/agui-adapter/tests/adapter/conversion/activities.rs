//! Activities, and media of the assistant, which are shown as such.

use serde_json::{Value, json};

use super::{Run, SUCCESS, play, script::*};

fn activity(id: &str, kind: &str, content: Value) -> String {
    custom("agui.activity", json!({ "id": id, "type": kind, "content": content }))
}

fn patch(id: &str, kind: &str, operations: Value) -> String {
    custom("agui.activity", json!({ "id": id, "type": kind, "patch": operations }))
}

#[test]
fn an_activity_keeps_its_message_and_its_type() {
    let add = json!([{ "op": "add", "path": "/b", "value": 2 }]);
    let lines = joined![
        start(),
        activity("p", "PLAN", json!({ "a": 1 })),
        patch("p", "PLAN", add.clone()),
        patch("p", "FORM", add),
        activity("p", "PLAN", json!({})),
        activity("q", "FORM", json!({})),
        end(),
    ];
    let delta = "ACTIVITY_DELTA {\"messageId\":\"id-1\",\"activityType\":\"PLAN\",\"patch\":[{\"op\":\"add\",\"path\":\"/b\",\"value\":2}]}";
    play(&lines).gives(&[
        "ACTIVITY_SNAPSHOT {\"messageId\":\"id-1\",\"activityType\":\"PLAN\",\"content\":{\"a\":1}}",
        delta,
        delta,
        "ACTIVITY_SNAPSHOT {\"messageId\":\"id-1\",\"activityType\":\"PLAN\",\"content\":{}}",
        "ACTIVITY_SNAPSHOT {\"messageId\":\"id-2\",\"activityType\":\"FORM\",\"content\":{}}",
        SUCCESS,
    ]);
}

#[test]
fn patches_that_do_not_apply_are_left_out() {
    let lines = joined![
        start(),
        patch("p", "PLAN", json!([{ "op": "add", "path": "/a", "value": 1 }])),
        activity("p", "PLAN", json!({})),
        patch("p", "PLAN", json!([{ "op": "remove", "path": "/a" }])),
        patch("p", "PLAN", json!([{ "op": "replace", "path": "", "value": 7 }])),
        end(),
    ];
    play(&lines).gives(&[
        "ACTIVITY_SNAPSHOT {\"messageId\":\"id-1\",\"activityType\":\"PLAN\",\"content\":{}}",
        SUCCESS,
    ]);
}

#[test]
fn media_of_the_assistant_are_one_activity_each() {
    let lines = joined![
        python("REPLY_START", json!({ "name": "Friday" })),
        python(
            "DATA_BLOCK_START",
            json!({ "block_id": "b", "media_type": "audio/wav", "name": "a.wav" })
        ),
        python(
            "DATA_BLOCK_DELTA",
            json!({ "block_id": "b", "media_type": "audio/wav", "data": "QUJD" })
        ),
        text("while it sounds"),
        python(
            "DATA_BLOCK_DELTA",
            json!({ "block_id": "b", "media_type": "audio/wav", "data": "REVG" })
        ),
        python("DATA_BLOCK_END", json!({ "block_id": "b" })),
        python(
            "DATA_BLOCK_DELTA",
            json!({ "block_id": "c", "media_type": "image/png", "url": "https://example.invalid/a.png" })
        ),
        // The type may come with the bytes only.
        python("DATA_BLOCK_START", json!({ "block_id": "d", "name": "voice" })),
        python(
            "DATA_BLOCK_DELTA",
            json!({ "block_id": "d", "media_type": "audio/wav", "data": "QUJD" })
        ),
        python("DATA_BLOCK_END", json!({ "block_id": "d" })),
        python("REPLY_END", json!({ "finished_reason": "completed" })),
    ];
    play(&lines).gives(&[
        "TEXT id-1",
        "TEXT+ id-1 while it sounds",
        "ACTIVITY_SNAPSHOT {\"messageId\":\"id-2\",\"activityType\":\"agentscope.media\",\"content\":{\"mediaType\":\"audio/wav\",\"name\":\"a.wav\",\"data\":\"QUJDREVG\"}}",
        "ACTIVITY_SNAPSHOT {\"messageId\":\"id-3\",\"activityType\":\"agentscope.media\",\"content\":{\"mediaType\":\"audio/wav\",\"name\":\"voice\",\"data\":\"QUJD\"}}",
        "ACTIVITY_SNAPSHOT {\"messageId\":\"id-4\",\"activityType\":\"agentscope.media\",\"content\":{\"mediaType\":\"image/png\",\"url\":\"https://example.invalid/a.png\"}}",
        "TEXT. id-1",
        SUCCESS,
    ]);
}

#[test]
fn hints_are_for_the_model_unless_they_are_labelled() {
    let hint = |source: Value| {
        python("HINT_BLOCK", json!({ "block_id": "h", "hint": "words", "source": source }))
    };
    let lines = joined![
        start(),
        hint(json!(null)),
        hint(json!("{\"label\":\"System\"}")),
        hint(json!("{\"label\":\"team\"}")),
        hint(json!("{\"label\":\"team\",\"sublabel\":\"bob\"}")),
        end(),
    ];
    play(&lines).gives(&[
        "CUSTOM {\"name\":\"agentscope.hint\",\"value\":{\"label\":\"team\",\"text\":\"words\"}}",
        "CUSTOM {\"name\":\"agentscope.hint\",\"value\":{\"label\":\"team\",\"sublabel\":\"bob\",\"text\":\"words\"}}",
        SUCCESS,
    ]);
}

#[test]
fn steps_by_name_are_balanced() {
    let step =
        |name: &str, phase: &str| custom("agui.step", json!({ "name": name, "phase": phase }));
    let lines = joined![
        start(),
        step("a", "start"),
        step("a", "start"),
        step("b", "finish"),
        step("b", "start"),
        step("a", "finish"),
        end(),
    ];
    play(&lines).gives(&[
        "STEP_STARTED {\"stepName\":\"a\"}",
        "STEP_STARTED {\"stepName\":\"b\"}",
        "STEP_FINISHED {\"stepName\":\"a\"}",
        "STEP_FINISHED {\"stepName\":\"b\"}",
        SUCCESS,
    ]);
}

#[test]
fn steps_stand_around_model_calls_and_tool_rounds_on_demand() {
    let lines = joined![
        start(),
        model_start(),
        call("c1", "f", "{}"),
        model_end(),
        result("c1", "A"),
        model_start(),
        model_end(),
        end(),
    ];
    Run::with(|options| options.emit_step_events = true).play(&lines).gives(&[
        "STEP_STARTED {\"stepName\":\"model_call\"}",
        "CALL c1 f id-1",
        "CALL+ c1 {}",
        "CALL. c1",
        "STEP_FINISHED {\"stepName\":\"model_call\"}",
        "STEP_STARTED {\"stepName\":\"tool_round\"}",
        "RESULT id-2 c1 A",
        "STEP_FINISHED {\"stepName\":\"tool_round\"}",
        "STEP_STARTED {\"stepName\":\"model_call\"}",
        "STEP_FINISHED {\"stepName\":\"model_call\"}",
        SUCCESS,
    ]);
}

/// More than a frame may hold.
fn huge() -> String {
    "x".repeat(9 << 20)
}

fn snapshot(id: &str, content: Value) -> String {
    format!(
        "ACTIVITY_SNAPSHOT {}",
        json!({ "messageId": id, "activityType": "PLAN", "content": content })
    )
}

#[test]
fn an_activity_too_long_to_be_sent_is_shown_once_it_is_short_enough() {
    let add = |key: &str, value: Value| json!([{ "op": "add", "path": key, "value": value }]);
    let lines = joined![
        start(),
        // A part of it that could be cut: a patch would not know of the cut.
        activity("p", "PLAN", json!({ "data": huge() })),
        patch("p", "PLAN", add("/n", json!(1))),
        patch("p", "PLAN", json!([{ "op": "remove", "path": "/data" }])),
        patch("p", "PLAN", add("/m", json!(2))),
        activity("p", "PLAN", json!({ "rows": huge() })),
        patch("p", "PLAN", add("/n", json!(1))),
        activity("p", "PLAN", json!({ "a": 1 })),
        patch("p", "PLAN", add("/b", json!(huge()))),
        patch("p", "PLAN", add("/c", json!(3))),
        patch("p", "PLAN", add("/b", json!(2))),
        patch("p", "PLAN", add("/d", json!(4))),
        end(),
    ];
    let delta = |path: &str, value: u32| {
        let patch = add(path, json!(value));
        let members = json!({ "messageId": "id-1", "activityType": "PLAN", "patch": patch });
        format!("ACTIVITY_DELTA {members}")
    };
    play(&lines).gives(&[
        &snapshot("id-1", json!({ "n": 1 })),
        &delta("/m", 2),
        &snapshot("id-1", json!({ "a": 1 })),
        &snapshot("id-1", json!({ "a": 1, "b": 2, "c": 3 })),
        &delta("/d", 4),
        SUCCESS,
    ]);
}

#[test]
fn a_patch_longer_than_its_activity_may_be_a_snapshot() {
    let replace = json!([
        { "op": "add", "path": "/a", "value": huge() },
        { "op": "replace", "path": "/a", "value": 2 },
    ]);
    let lines =
        joined![start(), activity("p", "PLAN", json!({})), patch("p", "PLAN", replace), end()];
    play(&lines).gives(&[
        &snapshot("id-1", json!({})),
        &snapshot("id-1", json!({ "a": 2 })),
        SUCCESS,
    ]);
}
