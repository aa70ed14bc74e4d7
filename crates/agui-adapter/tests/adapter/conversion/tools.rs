//! Tool calls.

use agui_adapter::{
    model::{AgentEvent, AgentEventKind},
    truncate::MAX_FRAME,
};
use serde_json::json;

use super::{FRONTEND, Run, SUCCESS, play, script::*, wire};

#[test]
fn arguments_arrive_byte_for_byte() {
    let lines = joined![
        start(),
        call_start("c1", "weather"),
        args("c1", "{\"city\""),
        args("c1", ":\"Oslo\""),
        args("c1", "}"),
        call_end("c1"),
        result("c1", "Cold"),
        end(),
    ];
    play(&lines).gives(&[
        "CALL c1 weather id-1",
        "CALL+ c1 {\"city\"",
        "CALL+ c1 :\"Oslo\"",
        "CALL+ c1 }",
        "CALL. c1",
        "RESULT id-2 c1 Cold",
        SUCCESS,
    ]);
    let run = Run::with(|options| options.emit_tool_call_args = false);
    run.play(&lines).gives(&["CALL c1 weather id-1", "CALL. c1", "RESULT id-2 c1 Cold", SUCCESS]);
}

#[test]
fn a_call_without_arguments_gets_none() {
    let lines = joined![
        start(),
        call_start("c1", "now"),
        call_end("c1"),
        result_end("c1", "success"),
        end()
    ];
    play(&lines).gives(&["CALL c1 now id-1", "CALL. c1", "RESULT id-2 c1 ", SUCCESS]);
}

#[test]
fn a_call_announced_again_has_its_arguments_once() {
    let lines = joined![
        start(),
        call("c1", "find", "{\"q\":1}"),
        call_start("c1", "find"),
        call_end("c1"),
        result_start("c1", "find"),
        call_start("c1", "find"),
        nameless_result("c1", "A"),
        end(),
    ];
    play(&lines).gives(&[
        "CALL c1 find id-1",
        "CALL+ c1 {\"q\":1}",
        "CALL. c1",
        "RESULT id-2 c1 A",
        SUCCESS,
    ]);
}

#[test]
fn interleaved_fragments_stay_one_call_each_and_end_in_start_order() {
    let lines = joined![
        start(),
        call_start("c1", "f"),
        args("c1", "1a"),
        call_start("c2", "g"),
        args("c2", "2a"),
        call_end("c1"),
        call_start("c1", "f"),
        args("c1", "1b"),
        call_end("c2"),
        call_end("c1"),
        args("c2", "2b"),
        model_end(),
        end(),
    ];
    play(&lines).gives(&[
        "CALL c1 f id-1",
        "CALL+ c1 1a",
        "CALL c2 g id-1",
        "CALL+ c2 2a",
        "CALL+ c1 1b",
        "CALL+ c2 2b",
        "CALL. c1",
        "CALL. c2",
        "FINISHED {\"outcome\":{\"type\":\"success\",\"pendingToolCallIds\":[\"c1\",\"c2\"]}}",
    ]);
}

#[test]
fn reasoning_text_and_calls_keep_the_order_of_the_source() {
    let run = Run::with(|options| options.enable_reasoning = true);
    let lines = joined![
        start(),
        think("t"),
        think_end(),
        text("a"),
        text_end(),
        call_start("c1", "f"),
        call_start("c2", "g"),
        args("c1", "1"),
        args("c2", "2"),
        call_end("c1"),
        call_end("c2"),
        end(),
    ];
    run.play(&lines).gives(&[
        "SPAN id-1",
        "THINK id-1",
        "THINK+ id-1 t",
        "THINK. id-1",
        "SPAN. id-1",
        "TEXT id-2",
        "TEXT+ id-2 a",
        "TEXT. id-2",
        "CALL c1 f id-2",
        "CALL c2 g id-2",
        "CALL+ c1 1",
        "CALL+ c2 2",
        "CALL. c1",
        "CALL. c2",
        "FINISHED {\"outcome\":{\"type\":\"success\",\"pendingToolCallIds\":[\"c1\",\"c2\"]}}",
    ]);
}

#[test]
fn calls_whose_results_come_the_other_way_round_do_not_mix() {
    let lines = joined![
        start(),
        call_start("c1", "f"),
        call_start("c2", "g"),
        args("c1", "1"),
        args("c2", "2"),
        call_end("c2"),
        result("c2", "B"),
        call_end("c1"),
        result("c1", "A"),
        end(),
    ];
    play(&lines).gives(&[
        "CALL c1 f id-1",
        "CALL c2 g id-1",
        "CALL+ c1 1",
        "CALL+ c2 2",
        "CALL. c2",
        "RESULT id-2 c2 B",
        "CALL. c1",
        "RESULT id-3 c1 A",
        SUCCESS,
    ]);
}

/// Only agents inside this process have artefacts.
#[test]
fn an_encrypted_artefact_of_a_call_follows_its_end() {
    let artefact = AgentEvent::local(AgentEventKind::ToolCallEnd {
        call: "c1".to_owned(),
        encrypted: Some("sig".to_owned()),
    });
    let events = [wire(call_start("c1", "f")), artefact, wire(end())];
    Run::default().play_events(&events).gives(&[
        "CALL c1 f id-1",
        "CALL. c1",
        "REASONING_ENCRYPTED_VALUE {\"subtype\":\"tool-call\",\"entityId\":\"c1\",\"encryptedValue\":\"sig\"}",
        "FINISHED {\"outcome\":{\"type\":\"success\",\"pendingToolCallIds\":[\"c1\"]}}",
    ]);
}

#[test]
fn arguments_of_a_call_that_never_started_are_left_out() {
    let lines = joined![start(), args("c9", "{}"), call_end("c9"), end()];
    play(&lines).gives(&[SUCCESS]);
}

#[test]
fn late_arguments_open_the_call_again() {
    let lines = joined![
        start(),
        call("c1", "f", "{\"a\""),
        text("b"),
        args("c1", ":1}"),
        text("c"),
        end(),
    ];
    let run = Run { excused: &["TOOL-24"], ..Run::default() };
    run.play(&lines).gives(&[
        "CALL c1 f id-1",
        "CALL+ c1 {\"a\"",
        "CALL. c1",
        "TEXT id-2",
        "TEXT+ id-2 b",
        "TEXT. id-2",
        "CALL c1 f id-1",
        "CALL+ c1 :1}",
        "CALL. c1",
        "TEXT id-3",
        "TEXT+ id-3 c",
        "TEXT. id-3",
        "FINISHED {\"outcome\":{\"type\":\"success\",\"pendingToolCallIds\":[\"c1\"]}}",
    ]);
}

#[test]
fn calls_of_one_model_call_share_a_message_and_those_of_the_next_do_not() {
    let lines = joined![
        start(),
        model_start(),
        call("c1", "f", "{}"),
        call("c2", "f", "{}"),
        model_end(),
        result("c1", "A"),
        result("c2", "B"),
        model_start(),
        call("c3", "f", "{}"),
        model_end(),
        result("c3", "C"),
        end(),
    ];
    play(&lines).gives(&[
        "CALL c1 f id-1",
        "CALL+ c1 {}",
        "CALL c2 f id-1",
        "CALL+ c2 {}",
        "CALL. c1",
        "CALL. c2",
        "RESULT id-2 c1 A",
        "RESULT id-3 c2 B",
        "CALL c3 f id-4",
        "CALL+ c3 {}",
        "CALL. c3",
        "RESULT id-5 c3 C",
        SUCCESS,
    ]);
}

#[test]
fn a_blank_id_is_replaced_by_a_minted_one() {
    let lines = joined![
        start(),
        call("", "f", "1"),
        call(" ", "g", "2"),
        result(" ", "B"),
        result("", "A"),
        end(),
    ];
    play(&lines).gives(&[
        "CALL id-1 f id-2",
        "CALL+ id-1 1",
        "CALL id-3 g id-2",
        "CALL+ id-3 2",
        "CALL. id-1",
        "CALL. id-3",
        "RESULT id-4 id-3 B",
        "RESULT id-5 id-1 A",
        SUCCESS,
    ]);
}

#[test]
fn several_blank_ids_are_answered_in_call_order() {
    let lines = joined![
        start(),
        call("", "find", "1"),
        call("", "find", "2"),
        result("", "A"),
        result("", "B"),
        end()
    ];
    play(&lines).gives(&[
        "CALL id-1 find id-2",
        "CALL+ id-1 1",
        "CALL id-3 find id-2",
        "CALL+ id-3 2",
        "CALL. id-1",
        "CALL. id-3",
        "RESULT id-4 id-1 A",
        "RESULT id-5 id-3 B",
        SUCCESS,
    ]);
}

#[test]
fn blank_ids_are_replaced_and_one_blank_call_follows_another() {
    let lines = joined![
        start(),
        call("", "f", "1"),
        nameless_result("", "A"),
        call("", "g", "2"),
        nameless_result("", "B"),
        end(),
    ];
    play(&lines).gives(&[
        "CALL id-1 f id-2",
        "CALL+ id-1 1",
        "CALL. id-1",
        "RESULT id-3 id-1 A",
        "CALL id-4 g id-5",
        "CALL+ id-4 2",
        "CALL. id-4",
        "RESULT id-6 id-4 B",
        SUCCESS,
    ]);
}

#[test]
fn an_id_used_again_by_a_later_model_call_is_another_call() {
    let once = |n: &str| {
        joined![
            model_start(),
            call_start("call_0", "f"),
            args("call_0", n),
            model_end(),
            nameless_result("call_0", n)
        ]
    };
    play(&joined![start(), once("1"), once("2"), end()]).gives(&[
        "CALL call_0 f id-1",
        "CALL+ call_0 1",
        "CALL. call_0",
        "RESULT id-2 call_0 1",
        "CALL id-3 f id-4",
        "CALL+ id-3 2",
        "CALL. id-3",
        "RESULT id-5 id-3 2",
        SUCCESS,
    ]);
}

#[test]
fn one_id_in_two_model_calls_is_two_calls_though_the_first_has_no_result() {
    let once = |n: &str| joined![model_start(), call("call_0", "f", n), model_end()];
    let lines = joined![start(), once("1"), once("2"), result("call_0", "B"), end()];
    play(&lines).gives(&[
        "CALL call_0 f id-1",
        "CALL+ call_0 1",
        "CALL. call_0",
        "CALL id-2 f id-3",
        "CALL+ id-2 2",
        "CALL. id-2",
        "RESULT id-4 id-2 B",
        "FINISHED {\"outcome\":{\"type\":\"success\",\"pendingToolCallIds\":[\"call_0\"]}}",
    ]);
}

#[test]
fn an_id_used_before_on_the_thread_is_replaced() {
    let run = Run::default().knowing(&[("call_0", "f", Some("A"))]);
    let once =
        |n: &str| joined![model_start(), call("call_0", "f", n), model_end(), result("call_0", n)];
    run.play(&joined![start(), once("1"), once("2"), end()]).gives(&[
        "CALL id-1 f id-2",
        "CALL+ id-1 1",
        "CALL. id-1",
        "RESULT id-3 id-1 1",
        "CALL id-4 f id-5",
        "CALL+ id-4 2",
        "CALL. id-4",
        "RESULT id-6 id-4 2",
        SUCCESS,
    ]);
}

#[test]
fn one_id_for_two_tools_of_one_batch_is_two_calls() {
    let lines = joined![
        start(),
        call("call_0", "f", "1"),
        call("call_0", "g", "2"),
        result_start("call_0", "g"),
        result_text("call_0", "B"),
        result_end("call_0", "success"),
        result_start("call_0", "f"),
        result_text("call_0", "A"),
        result_end("call_0", "success"),
        end(),
    ];
    play(&lines).gives(&[
        "CALL call_0 f id-1",
        "CALL+ call_0 1",
        "CALL id-2 g id-1",
        "CALL+ id-2 2",
        "CALL. call_0",
        "CALL. id-2",
        "RESULT id-3 id-2 B",
        "RESULT id-4 call_0 A",
        SUCCESS,
    ]);
}

#[test]
fn a_call_of_the_clients_tool_stays_pending() {
    let lines = joined![start(), call("c1", "paint", "{}"), external(&[("c1", "paint")]), end()];
    let played = Run::with_input(FRONTEND).play(&lines);
    played.gives(&[
        "CALL c1 paint id-1",
        "CALL+ c1 {}",
        "CALL. c1",
        "FINISHED {\"outcome\":{\"type\":\"success\",\"pendingToolCallIds\":[\"c1\"]}}",
    ]);
    assert_eq!((&played.end.open, &played.end.deferred), (&vec![], &vec![]));
}

/// As AgentScope says it: a running result, the request, and the finished message.
#[test]
fn a_suspended_result_of_the_clients_tool_is_no_answer() {
    let lines = joined![
        start(),
        call("c1", "paint", "{}"),
        call("c2", "find", "{}"),
        result_start("c1", "paint"),
        result_text("c1", "[Awaiting external execution]"),
        result_end("c1", "running"),
        result("c2", "B"),
        external(&[("c1", "paint")]),
        agent_result("", "TOOL_SUSPENDED"),
        end(),
    ];
    Run::with_input(FRONTEND).play(&lines).gives(&[
        "CALL c1 paint id-1",
        "CALL+ c1 {}",
        "CALL c2 find id-1",
        "CALL+ c2 {}",
        "CALL. c1",
        "CALL. c2",
        "RESULT id-2 c2 B",
        "FINISHED {\"outcome\":{\"type\":\"success\",\"pendingToolCallIds\":[\"c1\"]}}",
    ]);
}

#[test]
fn only_the_client_answers_its_tools() {
    for state in ["success", "error", "denied"] {
        let lines = joined![
            start(),
            call("c1", "paint", "{}"),
            result_text("c1", "made up"),
            result_end("c1", state),
            end(),
        ];
        Run::with_input(FRONTEND).play(&lines).gives(&[
            "CALL c1 paint id-1",
            "CALL+ c1 {}",
            "CALL. c1",
            "FINISHED {\"outcome\":{\"type\":\"success\",\"pendingToolCallIds\":[\"c1\"]}}",
        ]);
    }
}

#[test]
fn a_permission_ask_for_a_tool_of_the_client_leaves_it_pending() {
    let lines = joined![start(), confirm(&[("c1", "paint")]), end()];
    Run::with_input(FRONTEND).play(&lines).gives(&[
        "CALL c1 paint id-1",
        "CALL+ c1 {\"a\":1}",
        "CALL. c1",
        "FINISHED {\"outcome\":{\"type\":\"success\",\"pendingToolCallIds\":[\"c1\"]}}",
    ]);
}

#[test]
fn every_object_names_a_key_once_and_only_boundaries_carry_the_ids_of_the_run() {
    let lines = joined![
        start(),
        text("a"),
        call("c1", "f", "{}"),
        result("c1", "A"),
        custom("com.example.cart", json!({ "n": 1 })),
        any("NEW_KIND", json!({ "x": { "type": "y" } })),
        "{\"type\":\"SUBAGENT_EXPOSED\",\"subagentId\":\"s\",\"type\":\"SUBAGENT_EXPOSED\"}",
        end(),
    ];
    play(&lines).gives(&[
        "TEXT id-1",
        "TEXT+ id-1 a",
        "TEXT. id-1",
        "CALL c1 f id-1",
        "CALL+ c1 {}",
        "CALL. c1",
        "RESULT id-2 c1 A",
        "CUSTOM {\"name\":\"com.example.cart\",\"value\":{\"n\":1}}",
        "RAW {\"event\":{\"x\":{\"type\":\"y\"},\"type\":\"NEW_KIND\",\"createdAt\":\"2026-01-01T00:00:00Z\"}}",
        "RAW {\"event\":{\"type\":\"SUBAGENT_EXPOSED\",\"subagentId\":\"s\"}}",
        SUCCESS,
    ]);
}

#[test]
fn a_call_id_longer_than_clients_should_carry_is_replaced() {
    let (longest, longer) = ("c".repeat(1024), "c".repeat(1025));
    let lines = joined![
        start(),
        call(&longest, "f", "{}"),
        call(&longer, "f", "{}"),
        result(&longer, "A"),
        result(&longest, "B"),
        end(),
    ];
    play(&lines).gives(&[
        &format!("CALL {longest} f id-1"),
        &format!("CALL+ {longest} {{}}"),
        "CALL id-2 f id-1",
        "CALL+ id-2 {}",
        &format!("CALL. {longest}"),
        "CALL. id-2",
        "RESULT id-3 id-2 A",
        &format!("RESULT id-4 {longest} B"),
        "FINISHED {\"outcome\":{\"type\":\"success\"}}",
    ]);
}

/// A frame of that length would end the run for the client; without the start of the call its
/// arguments would.
#[test]
fn a_tool_name_longer_than_a_frame_is_cut() {
    let name = "n".repeat(9 << 20);
    let lines = joined![start(), call("c1", &name, "{}"), confirm(&[("c1", &name)]), end()];
    let room = MAX_FRAME - MAX_FRAME / 8 - (64 << 10);
    let cut = |original: usize| json!({ "agentscope.truncated": { "originalBytes": original } });
    let called = json!({ "metadata": cut(9 << 20) });
    let interrupt = json!({
        "id": "R2:c1", "reason": "tool_call",
        "message": format!("Approve running {}", "n".repeat(room - 16)),
        "toolCallId": "c1",
        "responseSchema": {
            "type": "object",
            "properties": {
                "approved": { "type": "boolean" },
                "editedArgs": { "type": "object",
                    "description": "Replaces all arguments of the call; nothing is merged." },
                "reason": { "type": "string", "description": "Why the call was denied." },
            },
            "required": ["approved"],
        },
    });
    let played = play(&lines);
    let metadata = played.end.open[0].interrupt.metadata.as_ref().expect("metadata");
    let original = json!(metadata).to_string().len() + "Approve running ?".len() + name.len();
    let outcome = json!({ "type": "interrupt", "interrupts": [interrupt] });
    let ended = json!({ "outcome": outcome, "metadata": cut(original) });
    played.gives(&[
        &format!("CALL c1 {} id-1 {called}", "n".repeat(room)),
        "CALL+ c1 {}",
        "CALL. c1",
        &format!("FINISHED {ended}"),
    ]);
}
