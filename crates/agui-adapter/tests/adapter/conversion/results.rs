//! Tool results.

use serde_json::{Value, json};

use super::{Run, SUCCESS, play, script::*};

#[test]
fn content_is_the_text_as_the_tool_said_it() {
    let lines = joined![
        start(),
        call("c1", "a", "{}"),
        call("c2", "b", "{}"),
        call("c3", "c", "{}"),
        result_start("c1", "a"),
        result_text("c1", "Transferred."),
        nameless_result("c1", ""),
        result_start("c2", "b"),
        result_text("c2", "{\"a\":"),
        nameless_result("c2", "[1,2]}"),
        result_start("c3", "c"),
        nameless_result("c3", ""),
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
        nameless_result("b:c", "B"),
        nameless_result("c", "C"),
    ];
    play(&joined![start(), round.clone(), round, end()]).gives(&[
        "CALL b:c f id-1",
        "CALL+ b:c {}",
        "CALL c f id-1",
        "CALL+ c {}",
        "CALL. b:c",
        "CALL. c",
        "RESULT id-2 b:c B",
        "RESULT id-3 c CC",
        "CALL id-4 f id-5",
        "CALL+ id-4 {}",
        "CALL id-6 f id-5",
        "CALL+ id-6 {}",
        "CALL. id-4",
        "CALL. id-6",
        "RESULT id-7 id-4 B",
        "RESULT id-8 id-6 CC",
        SUCCESS,
    ]);
}

/// A result closes its own call; the other stays open.
#[test]
fn results_of_one_reply_have_messages_of_their_own() {
    let lines = joined![
        start(),
        call_start("c1", "f"),
        call_start("c2", "f"),
        result_text("c1", "A"),
        result_text("c2", "B"),
        result_end("c1", "success"),
        result_end("c2", "success"),
        end(),
    ];
    play(&lines).gives(&[
        "CALL c1 f id-1",
        "CALL c2 f id-1",
        "CALL. c1",
        "RESULT id-2 c1 A",
        "CALL. c2",
        "RESULT id-3 c2 B",
        SUCCESS,
    ]);
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
        nameless_result("c1", "done"),
        end(),
    ];
    play(&lines).gives(&[
        "CALL c1 shot id-1",
        "CALL+ c1 {}",
        "CALL. c1",
        &parts(json!([
            { "type": "text", "text": "Here: " },
            { "type": "image",
              "source": { "type": "data", "value": "QUJD", "mimeType": "image/png" } },
            { "type": "text", "text": "done" },
        ])),
        SUCCESS,
    ]);
}

/// The first result of a run, if it is one of parts.
fn parts(parts: Value) -> String {
    format!("RESULT id-2 c1 {}", json!({ "content": parts }))
}

fn python_data(mut members: Value) -> String {
    members["tool_call_id"] = "c1".into();
    python("TOOL_RESULT_DATA_DELTA", members)
}

/// Python sends a picture piece by piece, and a link without saying what is behind it.
#[test]
fn media_in_a_result_makes_parts_in_their_order() {
    let lines = joined![
        start(),
        call_start("c1", "draw"),
        result_text("c1", "Here: "),
        python_data(json!({ "block_id": "p", "media_type": "image/png", "data": "QUJ" })),
        python_data(json!({ "block_id": "p", "data": "D" })),
        python_data(json!({ "block_id": "u", "url": "https://example.invalid/a.pdf" })),
        nameless_result("c1", "done"),
        end(),
    ];
    play(&lines).gives(&[
        "CALL c1 draw id-1",
        "CALL. c1",
        &parts(json!([
            { "type": "text", "text": "Here: " },
            { "type": "image",
              "source": { "type": "data", "value": "QUJD", "mimeType": "image/png" } },
            { "type": "document",
              "source": { "type": "url", "value": "https://example.invalid/a.pdf" } },
            { "type": "text", "text": "done" },
        ])),
        SUCCESS,
    ]);
}

#[test]
fn the_name_of_a_medium_stands_in_its_metadata() {
    let lines = joined![
        start(),
        call_start("c1", "draw"),
        python_data(json!({ "media_type": "image/png", "name": "a.png", "data": "QUJD" })),
        result_end("c1", "success"),
        end(),
    ];
    play(&lines).gives(&[
        "CALL c1 draw id-1",
        "CALL. c1",
        &parts(json!([
            { "type": "image",
              "source": { "type": "data", "value": "QUJD", "mimeType": "image/png" },
              "metadata": { "filename": "a.png" } },
        ])),
        SUCCESS,
    ]);
}

#[test]
fn a_text_block_of_a_result_stands_on_a_line_of_its_own() {
    let lines = joined![
        start(),
        call("c1", "a", "{}"),
        result_text("c1", "hel"),
        result_data("c1", json!({ "type": "text", "text": "structured" })),
        nameless_result("c1", "lo"),
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
    let data =
        |_| python_data(json!({ "block_id": "b", "media_type": "image/png", "data": base64 }));
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
    let run = Run::default().knowing(&[("c0", "f", None)]);
    run.play(&joined![start(), result("c0", "A"), end()]).gives(&["RESULT id-1 c0 A", SUCCESS]);
}

#[test]
fn a_second_result_for_a_call_is_left_out() {
    let lines =
        joined![start(), call("c1", "f", "{}"), result("c1", "A"), result("c1", "B"), end()];
    play(&lines).gives(&["CALL c1 f id-1", "CALL+ c1 {}", "CALL. c1", "RESULT id-2 c1 A", SUCCESS]);
}

#[test]
fn a_finished_call_beside_a_suspended_one_keeps_its_result() {
    let lines = joined![
        start(),
        call_start("c1", "f"),
        call_start("c2", "g"),
        nameless_result("c1", "A"),
        result_end("c2", "running"),
        end(),
    ];
    let outcome = json!({ "type": "interrupt", "interrupts": [{
        "id": "R2:c2", "reason": "tool_call", "message": "Run g and answer with its result",
        "toolCallId": "c2",
        "metadata": { "agentscope.interruptKind": "external_execution", "toolName": "g",
            "toolContent": "", "replyId": "R2" } }] });
    play(&lines).gives(&[
        "CALL c1 f id-1",
        "CALL c2 g id-1",
        "CALL. c1",
        "RESULT id-2 c1 A",
        "CALL. c2",
        &format!("FINISHED {}", json!({ "outcome": outcome })),
    ]);
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
