//! Tool results.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{Run, play, script::*};

const SUCCESS: &str = "FINISHED {\"outcome\":{\"type\":\"success\"}}";

#[test]
fn content_is_the_text_as_the_tool_said_it() {
    let lines = joined![
        start(),
        call("c1", "a", "{}"),
        call("c2", "b", "{}"),
        call("c3", "c", "{}"),
        result("c1", "Transferred."),
        result_start("c2", "b"),
        result_text("c2", "{\"a\":"),
        result_text("c2", "[1,2]}"),
        result_end("c2", "success"),
        result_start("c3", "c"),
        result_end("c3", "success"),
        end(),
    ];
    play(&lines).gives(&[
        "CALL c1 a id-1",
        "CALL+ c1 {}",
        "CALL c2 b id-1",
        "CALL+ c2 {}",
        "CALL c3 c id-1",
        "CALL+ c3 {}",
        "CALL. c1",
        "CALL. c2",
        "CALL. c3",
        "RESULT id-2 c1 Transferred.",
        "RESULT id-3 c2 {\"a\":[1,2]}",
        "RESULT id-4 c3 ",
        SUCCESS,
    ]);
}

#[test]
fn the_end_of_a_call_comes_before_its_result() {
    let lines = joined![start(), call_start("c1", "a"), result("c1", "A"), call_end("c1"), end()];
    play(&lines).gives(&["CALL c1 a id-1", "CALL. c1", "RESULT id-2 c1 A", SUCCESS]);
}

#[test]
fn every_result_has_an_id_of_its_own() {
    let round = joined![
        model_start(),
        call("b:c", "f", "{}"),
        call("c", "f", "{}"),
        result_start("c", "f"),
        result_start("b:c", "f"),
        result_text("c", "C"),
        result_text("b:c", "B"),
        result_end("c", "success"),
        result_end("b:c", "success"),
    ];
    let values = play(&joined![start(), round.clone(), round, end()]).values();
    let ids: HashSet<&str> = values
        .iter()
        .flat_map(|event| {
            let own = if event["type"] == "TOOL_CALL_RESULT" { "messageId" } else { "toolCallId" };
            event[own].as_str()
        })
        .collect();
    // Four calls and four results.
    assert_eq!(ids.len(), 8);
}

#[test]
fn a_state_other_than_success_stands_in_the_metadata() {
    let lines = joined![
        start(),
        call("c1", "a", "{}"),
        result_text("c1", "boom"),
        result_end("c1", "error"),
        end(),
    ];
    play(&lines).gives(&[
        "CALL c1 a id-1",
        "CALL+ c1 {}",
        "CALL. c1",
        "RESULT id-2 c1 boom {\"metadata\":{\"agentscope.state\":\"error\"}}",
        SUCCESS,
    ]);
}

#[test]
fn media_become_parts_and_text_around_them_too() {
    let image = json!({ "type": "image",
        "source": { "type": "base64", "media_type": "image/png", "data": "QUJD" } });
    let lines = joined![
        start(),
        call("c1", "shot", "{}"),
        result_text("c1", "Here: "),
        result_data("c1", image),
        result_text("c1", "done"),
        result_end("c1", "success"),
        end(),
    ];
    let played = play(&lines);
    assert_eq!(
        played.values()[4],
        json!({ "type": "TOOL_CALL_RESULT", "messageId": "id-2", "toolCallId": "c1", "role": "tool",
            "content": [
                { "type": "text", "text": "Here: " },
                { "type": "image",
                  "source": { "type": "data", "value": "QUJD", "mimeType": "image/png" } },
                { "type": "text", "text": "done" },
            ] })
    );
}

#[test]
fn a_text_block_of_a_result_stands_on_a_line_of_its_own() {
    let lines = joined![
        start(),
        call("c1", "a", "{}"),
        result_text("c1", "hel"),
        result_data("c1", json!({ "type": "text", "text": "structured" })),
        result_text("c1", "lo"),
        result_end("c1", "success"),
        end(),
    ];
    play(&lines).gives(&[
        "CALL c1 a id-1",
        "CALL+ c1 {}",
        "CALL. c1",
        "RESULT id-2 c1 hel\nstructuredlo",
        SUCCESS,
    ]);
}

/// Python sends one picture in many pieces under one block id.
#[test]
fn large_results_and_arguments_arrive_whole() {
    let piece = "x".repeat(5_000);
    let start_reply = python("REPLY_START", json!({ "name": "Friday" }));
    let mut lines = joined![start_reply, call_start("c1", "f")];
    lines.push(args("c1", &"a".repeat(1_000_000)));
    lines.extend((0..1_000).map(|_| result_text("c1", &piece)));
    let base64 = "QUJD".repeat(500);
    let data = |_| {
        python(
            "TOOL_RESULT_DATA_DELTA",
            json!({ "tool_call_id": "c1", "block_id": "b", "media_type": "image/png", "data": base64 }),
        )
    };
    lines.extend((0..1_000).map(data));
    lines.extend(joined![result_end("c1", "success"), text(&"t".repeat(1_000_000)), end()]);
    let values = play(&lines).values();
    let kinds: Vec<_> = values.iter().map(|event| event["type"].as_str().unwrap_or("")).collect();
    assert_eq!(
        kinds,
        [
            "RUN_STARTED",
            "TOOL_CALL_START",
            "TOOL_CALL_ARGS",
            "TOOL_CALL_END",
            "TOOL_CALL_RESULT",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "RUN_FINISHED",
        ]
    );
    assert_eq!(values[2]["delta"], Value::from("a".repeat(1_000_000)));
    let image = json!({ "type": "image",
        "source": { "type": "data", "value": "QUJD".repeat(500_000), "mimeType": "image/png" } });
    let text = json!({ "type": "text", "text": "x".repeat(5_000_000) });
    assert!(values[4]["content"] == json!([text, image]));
    assert_eq!(values[6]["delta"], Value::from("t".repeat(1_000_000)));
}

#[test]
fn a_result_for_an_unknown_call_brings_the_call_with_it() {
    play(&joined![start(), result("c9", "A"), end()]).gives(&[
        "CALL c9 find id-1",
        "CALL. c9",
        "RESULT id-2 c9 A",
        SUCCESS,
    ]);
    play(&joined![start(), result_text("c9", "A"), result_end("c9", "success"), end()]).gives(&[
        "CALL c9 unknown_tool id-1",
        "CALL. c9",
        "RESULT id-2 c9 A",
        SUCCESS,
    ]);
}

#[test]
fn a_result_for_a_call_of_the_history_comes_alone() {
    let run = Run::with_input(
        r#"{"messages":[
            {"id":"m1","role":"assistant","toolCalls":[
                {"id":"c0","type":"function","function":{"name":"f","arguments":"{}"}}]}]}"#,
    );
    run.play(&joined![start(), result("c0", "A"), end()]).gives(&["RESULT id-1 c0 A", SUCCESS]);
}

#[test]
fn a_second_result_for_a_call_is_left_out() {
    let lines =
        joined![start(), call("c1", "f", "{}"), result("c1", "A"), result("c1", "B"), end()];
    play(&lines).gives(&["CALL c1 f id-1", "CALL+ c1 {}", "CALL. c1", "RESULT id-2 c1 A", SUCCESS]);
}

#[test]
fn a_running_result_is_no_result() {
    let lines = joined![
        start(),
        call("c1", "f", "{}"),
        call("c2", "g", "{}"),
        result_start("c1", "f"),
        result_text("c1", "Waiting"),
        result_end("c1", "running"),
        result("c2", "B"),
        end(),
    ];
    let played = play(&lines);
    let outcome = json!({ "type": "interrupt", "interrupts": [{
        "id": "R2:c1", "reason": "tool_call", "message": "Waiting", "toolCallId": "c1",
        "metadata": { "agentscope.interruptKind": "external_execution", "toolName": "f",
            "toolContent": "{}", "replyId": "R2" } }] });
    let end = format!("FINISHED {}", json!({ "outcome": outcome }));
    played.gives(&[
        "CALL c1 f id-1",
        "CALL+ c1 {}",
        "CALL c2 g id-1",
        "CALL+ c2 {}",
        "CALL. c1",
        "CALL. c2",
        "RESULT id-2 c2 B",
        &end,
    ]);
}

#[test]
fn an_empty_media_type_is_an_unknown_one() {
    let source =
        |kind: &str, member: &str| json!({ "type": kind, member: "QQ==", "media_type": "" });
    let executed = |id: &str, source: Value| {
        let output = json!([{ "type": "image", "source": source }]);
        let results = json!([{ "type": "tool_result", "id": id, "name": "f", "state": "success",
            "output": output }]);
        any("EXTERNAL_EXECUTION_RESULT", json!({ "toolResults": results }))
    };
    let streamed = |id: &str, source: Value| {
        let image = json!({ "type": "image", "source": source });
        joined![result_data(id, image), result_end(id, "success")]
    };
    let lines = joined![
        start(),
        executed("c1", source("base64", "data")),
        executed("c2", source("url", "url")),
        streamed("c3", source("base64", "data")),
        streamed("c4", source("url", "url")),
        end(),
    ];
    let line = |ids: &str, source: Value| {
        let content = json!([{ "type": "image", "source": source }]);
        format!("RESULT {ids} {}", json!({ "content": content }))
    };
    let data = json!({ "type": "data", "value": "QQ==", "mimeType": "application/octet-stream" });
    let url = json!({ "type": "url", "value": "QQ==" });
    play(&lines).gives(&[
        "CALL c3 unknown_tool id-1",
        "CALL. c3",
        &line("id-2 c3", data.clone()),
        "CALL c4 unknown_tool id-3",
        "CALL. c4",
        &line("id-4 c4", url.clone()),
        "CALL c1 f id-5",
        "CALL. c1",
        &line("id-6 c1", data),
        "CALL c2 f id-7",
        "CALL. c2",
        &line("id-8 c2", url),
        SUCCESS,
    ]);
}

/// As in a history that is sent again.
#[test]
fn a_file_name_stands_in_the_metadata_of_its_part() {
    let data = json!({ "tool_call_id": "c1", "data": "QQ==", "media_type": "image/png",
        "name": "a.png" });
    let lines = joined![
        start(),
        call("c1", "f", "{}"),
        python("TOOL_RESULT_DATA_DELTA", data),
        result_end("c1", "success"),
        end(),
    ];
    let content = json!([{ "type": "image",
        "source": { "type": "data", "value": "QQ==", "mimeType": "image/png" },
        "metadata": { "filename": "a.png" } }]);
    play(&lines).gives(&[
        "CALL c1 f id-1",
        "CALL+ c1 {}",
        "CALL. c1",
        &format!("RESULT id-2 c1 {}", json!({ "content": content })),
        SUCCESS,
    ]);
}
