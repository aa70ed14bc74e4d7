//! What is gathered until its end: of what is longer than a frame the length is told.

use agui_adapter::truncate::MAX_FRAME;
use serde_json::json;

use super::{Run, SUCCESS, play, script::*, wire};

const MIB: usize = 1 << 20;

/// What is kept of a text.
const ROOM: usize = MAX_FRAME - 256;

fn cut(original: usize) -> String {
    json!({ "metadata": { "agentscope.truncated": { "originalBytes": original } } }).to_string()
}

#[test]
fn a_result_longer_than_a_frame_is_cut_from_its_whole_length() {
    let more = wire(result_text("c1", &"x".repeat(MIB)));
    let mut events = vec![wire(start()), wire(call_start("c1", "f"))];
    events.extend(std::iter::repeat_n(more, 64));
    events.extend([wire(result_end("c1", "success")), wire(end())]);
    Run::default().play_events(&events).gives(&[
        "CALL c1 f id-1",
        "CALL. c1",
        &format!("RESULT id-2 c1 {} {}", "x".repeat(ROOM), cut(64 * MIB)),
        SUCCESS,
    ]);
}

#[test]
fn a_medium_longer_than_a_frame_is_left_out_of_its_result() {
    let data = |data: &str| {
        let members = json!({ "tool_call_id": "c1", "block_id": "p", "media_type": "image/png",
            "data": data });
        python("TOOL_RESULT_DATA_DELTA", members)
    };
    let long = "QUJD".repeat(MIB);
    let lines = joined![
        start(),
        call_start("c1", "f"),
        result_text("c1", "Here:"),
        data(&long),
        data(&long),
        data("QUJD"),
        result_text("c1", "done"),
        result_end("c1", "success"),
        end(),
    ];
    let content = json!([{ "type": "text", "text": "Here:" }, { "type": "text", "text": "done" }]);
    let told = json!({ "metadata":
        { "agentscope.truncated": { "originalBytes": 8 * MIB + 13 } }, "content": content });
    let lines = play(&lines).lines();
    let result: serde_json::Value =
        serde_json::from_str(lines[3].strip_prefix("RESULT id-2 c1 ").expect("result"))
            .expect("json");
    assert_eq!(result, told);
}

#[test]
fn a_medium_of_the_assistant_longer_than_a_frame_is_told_without_its_data() {
    let data = |data: &str| {
        python("DATA_BLOCK_DELTA", json!({ "block_id": "b", "media_type": "a/b", "data": data }))
    };
    let long = "QUJD".repeat(MIB);
    let lines = joined![start(), data(&long), data(&long), data(&long), end()];
    let lines = play(&lines).lines();
    let told: serde_json::Value =
        serde_json::from_str(lines[1].strip_prefix("ACTIVITY_SNAPSHOT ").expect("activity"))
            .expect("json");
    assert_eq!(
        told,
        json!({ "messageId": "id-1", "activityType": "agentscope.media",
            "content": { "mediaType": "a/b" },
            "metadata": { "agentscope.truncated": { "originalBytes": 12 * MIB } } })
    );
    assert_eq!(lines[2..], [SUCCESS]);
}

/// 32 MiB of all results without end, in the order in which they came.
#[test]
fn of_many_results_without_end_the_first_are_kept() {
    let text = "x".repeat(MIB);
    let id = |at: usize| format!("c{at}");
    let mut events = vec![wire(start())];
    events.extend((0..64).map(|at| wire(result_text(&id(at), &text))));
    events.extend((0..64).map(|at| wire(result_end(&id(at), "success"))));
    events.push(wire(end()));
    let lines = Run::default().play_events(&events).lines();
    let results: Vec<&String> = lines.iter().filter(|line| line.starts_with("RESULT")).collect();
    let whole = results.iter().filter(|line| line.ends_with(&text)).count();
    let cut = results.iter().filter(|line| line.contains("originalBytes\":1048576")).count();
    assert_eq!((results.len(), whole, cut), (64, 31, 33));
}

/// Each of these would take minutes if an event were compared with all children that are there.
#[test]
fn a_child_among_thousands_costs_no_more_than_a_child_alone() {
    const CHILDREN: usize = 60_000;
    let child = |at: usize, line: String| wire(from(&format!("main/s{at}"), line).remove(0));
    let mut events = vec![wire(start())];
    for at in 0..CHILDREN {
        events
            .push(child(at, python("TEXT_BLOCK_DELTA", json!({ "block_id": "b", "delta": "x" }))));
        events.push(child(at, call_start(&format!("c{at}"), "f")));
    }
    // The root speaks of a child's call, and a child goes on.
    events.extend([wire(result_end("c59999", "success")), child(7, text("y")), wire(end())]);
    let events = Run::default().convert(&events).events;
    let count =
        |kind: &str| events.iter().filter(|event| event.event_type().as_str() == kind).count();
    let counts = ["SUBAGENT_STARTED", "TEXT_MESSAGE_END", "TOOL_CALL_END", "SUBAGENT_FINISHED"];
    assert_eq!(counts.map(count), [CHILDREN, CHILDREN + 1, CHILDREN, CHILDREN]);
    let ends = events.iter().rev().skip(1).step_by(2).take(3).map(|event| json!(event));
    let ends: Vec<_> = ends.map(|event| event["subagentRunId"].clone()).collect();
    let begun = events.iter().filter(|event| event.event_type().as_str() == "SUBAGENT_STARTED");
    let begun: Vec<_> = begun.take(3).map(|event| json!(event)["subagentRunId"].clone()).collect();
    assert_eq!(ends, begun);
}
