//! Text messages.

use agui_adapter::options::SubagentEvents;
use serde_json::json;

use super::{Run, SUCCESS, child_line, play, script::*};

#[test]
fn a_block_is_one_message() {
    play(&joined![start(), text_start(), text("hel"), text("lo"), text_end(), end()]).gives(&[
        "TEXT id-1",
        "TEXT+ id-1 hel",
        "TEXT+ id-1 lo",
        "TEXT. id-1",
        SUCCESS,
    ]);
}

#[test]
fn a_block_without_characters_is_nothing() {
    let lines =
        joined![start(), text_start(), text(""), text_end(), text_start(), text_end(), end()];
    play(&lines).gives(&[SUCCESS]);
}

#[test]
fn an_empty_delta_splits_nothing_and_white_space_is_kept() {
    play(&joined![start(), text("a"), text(""), text(" \n"), text_end(), end()]).gives(&[
        "TEXT id-1",
        "TEXT+ id-1 a",
        "TEXT+ id-1  \n",
        "TEXT. id-1",
        SUCCESS,
    ]);
}

#[test]
fn deltas_are_passed_on_byte_for_byte() {
    let deltas = ["cafe", "\u{301}", "\u{200b}", "man\u{200d}"];
    let lines = joined![start(), deltas.map(text).to_vec(), end()];
    let values = play(&lines).values();
    let sent: Vec<_> = values.iter().filter_map(|event| event["delta"].as_str()).collect();
    assert_eq!(sent, deltas);
}

#[test]
fn text_after_a_tool_is_a_message_of_its_own() {
    let lines = joined![
        start(),
        text("one "),
        call("c1", "find", "{}"),
        result("c1", "A"),
        text("two "),
        call("c2", "find", "{}"),
        result("c2", "B"),
        text("three"),
        end(),
    ];
    play(&lines).gives(&[
        "TEXT id-1",
        "TEXT+ id-1 one ",
        "TEXT. id-1",
        "CALL c1 find id-1",
        "CALL+ c1 {}",
        "CALL. c1",
        "RESULT id-2 c1 A",
        "TEXT id-3",
        "TEXT+ id-3 two ",
        "TEXT. id-3",
        "CALL c2 find id-3",
        "CALL+ c2 {}",
        "CALL. c2",
        "RESULT id-4 c2 B",
        "TEXT id-5",
        "TEXT+ id-5 three",
        "TEXT. id-5",
        SUCCESS,
    ]);
}

#[test]
fn text_closes_before_a_call_opens_and_closes_once() {
    let lines = joined![start(), text("Looking… "), call("c1", "find", "{}"), end()];
    play(&lines).gives(&[
        "TEXT id-1",
        "TEXT+ id-1 Looking… ",
        "TEXT. id-1",
        "CALL c1 find id-1",
        "CALL+ c1 {}",
        "CALL. c1",
        "FINISHED {\"outcome\":{\"type\":\"success\",\"pendingToolCallIds\":[\"c1\"]}}",
    ]);
}

#[test]
fn parallel_blocks_stay_apart_and_both_close() {
    let lines = joined![
        start(),
        text_of("RA", "A", "a1"),
        text_of("RB", "B", "b1"),
        text_of("RA", "A", "a2"),
        text_of("RB", "B", "b2"),
        end(),
    ];
    play(&lines).gives(&[
        "TEXT id-1",
        "TEXT+ id-1 a1",
        "TEXT id-2",
        "TEXT+ id-2 b1",
        "TEXT+ id-1 a2",
        "TEXT+ id-2 b2",
        "TEXT. id-1",
        "TEXT. id-2",
        SUCCESS,
    ]);
}

#[test]
fn a_late_delta_opens_a_new_message() {
    let lines = joined![start(), text("a"), call_start("c1", "f"), text("b"), text_end(), end()];
    play(&lines).gives(&[
        "TEXT id-1",
        "TEXT+ id-1 a",
        "TEXT. id-1",
        "CALL c1 f id-1",
        "TEXT id-2",
        "TEXT+ id-2 b",
        "TEXT. id-2",
        "CALL. c1",
        "FINISHED {\"outcome\":{\"type\":\"success\",\"pendingToolCallIds\":[\"c1\"]}}",
    ]);
}

#[test]
fn the_constant_block_id_of_java_opens_a_new_message_each_time() {
    let lines = joined![
        start(),
        text_start(),
        text("a"),
        text_end(),
        text_start(),
        text("b"),
        text_start(),
        text("c"),
        end(),
    ];
    play(&lines).gives(&[
        "TEXT id-1",
        "TEXT+ id-1 a",
        "TEXT. id-1",
        "TEXT id-2",
        "TEXT+ id-2 b",
        "TEXT. id-2",
        "TEXT id-3",
        "TEXT+ id-3 c",
        "TEXT. id-3",
        SUCCESS,
    ]);
}

fn python_delta(text: &str) -> String {
    python("TEXT_BLOCK_DELTA", json!({ "block_id": "b", "delta": text }))
}

fn python_end(text: &str) -> String {
    python("TEXT_BLOCK_END", json!({ "block_id": "b", "text": text }))
}

fn python_block(deltas: &[&str], last: &str) -> Vec<String> {
    joined![
        python("REPLY_START", json!({ "name": "Friday" })),
        deltas.iter().map(|delta| python_delta(delta)).collect::<Vec<_>>(),
        python_end(last),
        python("REPLY_END", json!({ "finished_reason": "completed" })),
    ]
}

#[test]
fn the_rest_of_a_final_text_goes_out_as_a_delta() {
    play(&python_block(&["ab", "c"], "abcd")).gives(&[
        "TEXT id-1",
        "TEXT+ id-1 ab",
        "TEXT+ id-1 c",
        "TEXT+ id-1 d",
        "TEXT. id-1",
        SUCCESS,
    ]);
    play(&python_block(&[], "whole")).gives(&[
        "TEXT id-1",
        "TEXT+ id-1 whole",
        "TEXT. id-1",
        SUCCESS,
    ]);
}

/// The second block is another one, though it begins like the first.
#[test]
fn a_block_that_starts_again_has_a_final_text_of_its_own() {
    let lines = joined![
        start(),
        python_delta("ab"),
        python("TEXT_BLOCK_START", json!({ "block_id": "b" })),
        python_end("abcd"),
        end(),
    ];
    play(&lines).gives(&[
        "TEXT id-1",
        "TEXT+ id-1 ab",
        "TEXT. id-1",
        "TEXT id-2",
        "TEXT+ id-2 abcd",
        "TEXT. id-2",
        SUCCESS,
    ]);
}

/// Only Python corrects a text at its end.
#[test]
fn a_final_text_of_java_changes_nothing() {
    let block_end = json!({ "replyId": "R1", "blockId": "text", "text": "abcd" });
    let lines = joined![start(), text("ab"), any("TEXT_BLOCK_END", block_end), end()];
    play(&lines).gives(&["TEXT id-1", "TEXT+ id-1 ab", "TEXT. id-1", SUCCESS]);
}

#[test]
fn a_final_text_that_contradicts_the_stream_changes_nothing() {
    play(&python_block(&["ab"], "x")).gives(&["TEXT id-1", "TEXT+ id-1 ab", "TEXT. id-1", SUCCESS]);
}

#[test]
fn a_result_message_is_text_only_if_nothing_was_streamed_since_the_model_call() {
    let silent = joined![
        start(),
        model_start(),
        text(""),
        model_end(),
        agent_result("x", "MODEL_STOP"),
        end()
    ];
    play(&silent).gives(&["TEXT id-1", "TEXT+ id-1 x", "TEXT. id-1", SUCCESS]);
    let spoken = joined![
        start(),
        model_start(),
        text("x"),
        text_end(),
        agent_result("x", "MODEL_STOP"),
        end()
    ];
    play(&spoken).gives(&["TEXT id-1", "TEXT+ id-1 x", "TEXT. id-1", SUCCESS]);
    let before = joined![
        start(),
        model_start(),
        text("x"),
        text_end(),
        model_start(),
        model_end(),
        agent_result("y", "MODEL_STOP"),
        end(),
    ];
    play(&before).gives(&[
        "TEXT id-1",
        "TEXT+ id-1 x",
        "TEXT. id-1",
        "TEXT id-2",
        "TEXT+ id-2 y",
        "TEXT. id-2",
        SUCCESS,
    ]);
    // The text before is still open.
    let open = joined![
        start(),
        model_start(),
        text("x"),
        model_end(),
        model_start(),
        model_end(),
        agent_result("y", "MODEL_STOP"),
        end(),
    ];
    play(&open).gives(&[
        "TEXT id-1",
        "TEXT+ id-1 x",
        "TEXT id-2",
        "TEXT+ id-2 y",
        "TEXT. id-2",
        "TEXT. id-1",
        SUCCESS,
    ]);
}

#[test]
fn the_sentence_of_a_recovery_is_sent_though_text_was_streamed() {
    let lines = joined![
        start(),
        model_start(),
        text("hal"),
        agent_result("Stopped.", "INTERRUPTED"),
        end()
    ];
    play(&lines).gives(&[
        "TEXT id-1",
        "TEXT+ id-1 hal",
        "TEXT. id-1",
        "TEXT id-2",
        "TEXT+ id-2 Stopped.",
        "TEXT. id-2",
        "FINISHED {\"outcome\":{\"type\":\"cancelled\"},\"metadata\":{\"agentscope.reason\":\"interrupted\"}}",
    ]);
}

/// The text of the finished message is news where nothing was streamed since the last model call.
#[test]
fn the_finished_message_of_a_child_in_custom_form_is_told_like_any_other() {
    let child = joined![
        any("AGENT_START", json!({ "name": "R" })),
        model_start(),
        text("first"),
        model_end(),
        call("c7", "f", "{}"),
        result("c7", "A"),
        model_start(),
        model_end(),
        agent_result("the answer", "MODEL_STOP"),
        agent_result("the answer", "MODEL_STOP"),
        agent_result("Stopped.", "INTERRUPTED"),
        any("AGENT_END", json!({})),
    ];
    let run = Run::with(|options| {
        options.subagent_events = SubagentEvents::Custom;
        options.emit_step_events = true;
        options.emit_token_usage = true;
    });
    let told = |text: &str| child_line("text", "TEXT_BLOCK_DELTA", json!({ "delta": text }));
    let call = json!({ "toolCallId": "c7", "toolName": "f" });
    let mut ended = call.clone();
    ended["arguments"] = "{}".into();
    let result = json!({ "toolCallId": "c7", "toolName": "f", "state": "SUCCESS", "content": "A" });
    run.play(&joined![start(), from("main/a", child), end()]).gives(&[
        &child_line("lifecycle", "AGENT_START", json!({ "name": "R" })),
        &told("first"),
        &child_line("tool_call", "TOOL_CALL_START", call),
        &child_line("tool_call", "TOOL_CALL_END", ended),
        &child_line("tool_result", "TOOL_RESULT_END", result),
        &told("the answer"),
        &told("Stopped."),
        &child_line("lifecycle", "AGENT_END", json!({ "name": "R" })),
        SUCCESS,
    ]);
}
