//! Usage, shared state, activities, the agent's own events.

use agui_adapter::model::{
    AgentEvent, AgentEventKind as Kind,
    event::{ActivityChange, DataChunk, ModelUsage, StateChange},
};
use serde_json::{Value, json};

use super::scene::*;

fn used(input: u64, output: u64, cached: u64, seconds: f64) -> AgentEvent {
    let usage = ModelUsage {
        input: Some(input),
        output: Some(output),
        cache_read: Some(cached),
        seconds: Some(seconds),
        ..ModelUsage::default()
    };
    event(Kind::ModelCallEnd { reply: "R1".into(), usage: Some(usage) })
}

#[test]
fn usage_of_all_calls_is_the_runs() {
    let events = || {
        [
            start(),
            model("R1"),
            used(100, 20, 40, 1.5),
            model_end("R1"),
            of("main/a", used(50, 30, 10, 0.5)),
            end(),
        ]
    };
    scene(events()).gives(r#"
            RUN_STARTED
            RUN_FINISHED outcome={"type":"success"} usage=[{"inputTokens":150,"outputTokens":50,"totalTokens":200,"cachedInputTokens":50}]
        "#);
    scene(events()).with(|options| options.emit_token_usage = true).gives(r#"
            RUN_STARTED
            CUSTOM name=token_usage value={"delta":{"inputTokens":100,"outputTokens":20,"cachedTokens":40,"totalTokens":120,"time":1.5},"cumulative":{"inputTokens":100,"outputTokens":20,"cachedTokens":40,"totalTokens":120,"time":1.5},"modelCall":{"replyId":"R1"}}
            CUSTOM name=token_usage value={"delta":{"inputTokens":50,"outputTokens":30,"cachedTokens":10,"totalTokens":80,"time":0.5},"cumulative":{"inputTokens":150,"outputTokens":50,"cachedTokens":50,"totalTokens":200,"time":2.0},"modelCall":{"replyId":"R1","source":"main/a"}}
            RUN_FINISHED outcome={"type":"success"} usage=[{"inputTokens":150,"outputTokens":50,"totalTokens":200,"cachedInputTokens":50}]
        "#);
}

#[test]
fn a_part_that_was_counted_beside_its_whole_is_added_to_it() {
    scene([start(), used(10, 5, 40, 1.0), end()]).gives(r#"
            RUN_STARTED
            RUN_FINISHED outcome={"type":"success"} usage=[{"inputTokens":50,"outputTokens":5,"totalTokens":55,"cachedInputTokens":40}]
        "#);
}

#[test]
fn state_leaves_as_the_difference_to_what_the_client_has() {
    let long = "a text that is long enough to make a patch the shorter form";
    let events = || {
        [
            start(),
            state(json!({ "long": long, "steps": [1] })),
            state(json!({ "long": long, "steps": [1, 2] })),
            state(json!({ "long": long, "steps": [1, 2], "title": "x" })),
            text("R1", "B", "after"),
            end(),
        ]
    };
    let end = scene(events()).input("state", json!({ "long": long })).gives(
        r#"
            RUN_STARTED
            STATE_DELTA delta=[{"op":"add","path":"/steps","value":[1]}]
            STATE_DELTA delta=[{"op":"add","path":"/steps/1","value":2}]
            STATE_DELTA delta=[{"op":"add","path":"/title","value":"x"}]
            TEXT_MESSAGE_START messageId=id-1 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-1 delta=after
            TEXT_MESSAGE_END messageId=id-1
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
    assert_eq!(end.state, Some(json!({ "long": long, "steps": [1, 2], "title": "x" }).into()));
    scene(events()).with(|options| options.emit_state_events = false).gives(
        r#"
            RUN_STARTED
            TEXT_MESSAGE_START messageId=id-1 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-1 delta=after
            TEXT_MESSAGE_END messageId=id-1
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn without_a_known_base_state_leaves_whole() {
    scene([start(), state(json!({ "a": 1 })), state(json!({ "a": 1 })), end()]).gives(
        r#"
            RUN_STARTED
            STATE_SNAPSHOT snapshot={"a":1}
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn pointers_are_escaped() {
    let filler = "something long that stays as it is, so that patches are shorter";
    let base = |more: Value| {
        let mut state = json!({ "filler": filler });
        for (key, value) in more.as_object().expect("object") {
            state[key] = value.clone();
        }
        state
    };
    let events = [
        start(),
        state(base(json!({ "user/name": "n" }))),
        state(base(json!({ "user/name": "n", "a~b": 1 }))),
        state(base(json!({ "user/name": "n", "a~b": 1, "": 2 }))),
        state(base(json!({ "a~b": 1, "": 2 }))),
        end(),
    ];
    scene(events).input("state", base(json!({}))).gives(
        r#"
            RUN_STARTED
            STATE_DELTA delta=[{"op":"add","path":"/user~1name","value":"n"}]
            STATE_DELTA delta=[{"op":"add","path":"/a~0b","value":1}]
            STATE_DELTA delta=[{"op":"add","path":"/","value":2}]
            STATE_DELTA delta=[{"op":"remove","path":"/user~1name"}]
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn a_patch_that_does_not_apply_changes_nothing_and_fails_nothing() {
    let patch = |operations: Value| event(Kind::State { change: StateChange::Patch(operations) });
    let events = [
        start(),
        patch(json!([{ "op": "replace", "path": "/none", "value": 1 }])),
        patch(json!("nonsense")),
        text("R1", "B", "on"),
        end(),
    ];
    scene(events).input("state", json!({})).gives(
        r#"
            RUN_STARTED
            TEXT_MESSAGE_START messageId=id-1 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-1 delta=on
            TEXT_MESSAGE_END messageId=id-1
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn a_stored_state_that_the_client_did_not_send_comes_first() {
    scene([start(), end()])
        .setup(|setup| setup.stored_state = Some(json!({ "kept": 1 }).into()))
        .gives(
            r#"
            RUN_STARTED
            STATE_SNAPSHOT snapshot={"kept":1}
            RUN_FINISHED outcome={"type":"success"}
        "#,
        );
}

#[test]
fn activities_are_shown_and_patched() {
    let activity = |activity_type: &str, change| {
        event(Kind::Activity { id: "p".into(), activity_type: activity_type.into(), change })
    };
    let patch = json!([{ "op": "add", "path": "/done", "value": true }]);
    let content = json!({ "steps": 2 }).as_object().cloned().expect("object");
    let events = [
        start(),
        activity("plan", ActivityChange::Patch(patch.clone())),
        activity("plan", ActivityChange::Content(content)),
        activity("other", ActivityChange::Patch(patch)),
        activity(
            "plan",
            ActivityChange::Patch(json!([{ "op": "replace", "path": "", "value": 1 }])),
        ),
        end(),
    ];
    scene(events).gives(r#"
            RUN_STARTED
            ACTIVITY_SNAPSHOT messageId=id-1 activityType=plan content={"steps":2}
            ACTIVITY_DELTA messageId=id-1 activityType=plan patch=[{"op":"add","path":"/done","value":true}]
            RUN_FINISHED outcome={"type":"success"}
        "#);
}

#[test]
fn the_assistants_media_are_one_activity() {
    let (reply, block) = (|| "R1".to_owned(), || "D".to_owned());
    let piece = |data: &str| {
        event(Kind::DataBlockDelta {
            reply: reply(),
            block: block(),
            media_type: Some("audio/wav".into()),
            data: DataChunk::Base64(data.into()),
        })
    };
    let begin = event(Kind::DataBlockStart {
        reply: reply(),
        block: block(),
        media_type: None,
        name: Some("voice".into()),
    });
    let finish = event(Kind::DataBlockEnd { reply: reply(), block: block() });
    scene([start(), begin, piece("QUJD"), piece("REVG"), finish, end()]).gives(r#"
            RUN_STARTED
            ACTIVITY_SNAPSHOT messageId=id-1 activityType=agentscope.media content={"mediaType":"audio/wav","name":"voice","data":"QUJDREVG"}
            RUN_FINISHED outcome={"type":"success"}
        "#);
}

#[test]
fn own_events_are_custom_and_unknown_ones_raw() {
    let mut unknown = event(Kind::Unknown { type_name: "NEW".into() });
    unknown.raw = Some(json!({ "type": "NEW", "x": 1 }).into());
    scene([start(), custom("mine", json!({ "a": null })), unknown, end()]).gives(
        r#"
            RUN_STARTED
            CUSTOM name=mine value={"a":null}
            RAW event={"type":"NEW","x":1}
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}
