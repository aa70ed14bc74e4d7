//! Asks, suspended calls and questions become the run's interrupts.

use agui_adapter::{
    model::{
        AgentEventKind as Kind, Block,
        event::{Confirmation, ResultState},
    },
    options::FrontendToolOutcome,
    outbound::EndOutcome,
};
use serde_json::Map;

use super::scene::*;

#[test]
fn a_permission_ask_ends_the_run_with_an_interrupt() {
    let events = [
        start(),
        call("R1", "c1", "delete"),
        args("c1", "{\"f\":1}"),
        call_end("c1"),
        ask("R1", &[listed("c1", "delete", "{\"f\":1}")]),
        end(),
    ];
    let end = scene(events).gives(r#"
            RUN_STARTED
            TOOL_CALL_START toolCallId=c1 toolCallName=delete parentMessageId=id-1
            TOOL_CALL_ARGS toolCallId=c1 delta="{\"f\":1}"
            TOOL_CALL_END toolCallId=c1
            RUN_FINISHED outcome={"type":"interrupt","interrupts":[{"id":"R1:c1","reason":"tool_call","message":"Approve running delete?","toolCallId":"c1","responseSchema":{"type":"object","properties":{"approved":{"type":"boolean"},"editedArgs":{"type":"object","description":"Replaces all arguments of the call; nothing is merged."},"reason":{"type":"string","description":"Why the call was denied."}},"required":["approved"]},"metadata":{"agentscope.interruptKind":"permission_confirm","toolName":"delete","toolInput":{"f":1},"toolContent":"{\"f\":1}","replyId":"R1"}}]}
        "#);
    assert_eq!(end.outcome, EndOutcome::Interrupted);
    assert_eq!(end.open.len(), 1);
}

#[test]
fn a_python_pause_needs_no_end() {
    let events =
        [start(), call("a:b", "c", "x"), call_end("c"), ask("a:b", &[listed("c", "x", "{}")])];
    scene(events).gives(r#"
            RUN_STARTED
            TOOL_CALL_START toolCallId=c toolCallName=x parentMessageId=id-1
            TOOL_CALL_END toolCallId=c
            RUN_FINISHED outcome={"type":"interrupt","interrupts":[{"id":"a%3Ab:c","reason":"tool_call","message":"Approve running x?","toolCallId":"c","responseSchema":{"type":"object","properties":{"approved":{"type":"boolean"},"editedArgs":{"type":"object","description":"Replaces all arguments of the call; nothing is merged."},"reason":{"type":"string","description":"Why the call was denied."}},"required":["approved"]},"metadata":{"agentscope.interruptKind":"permission_confirm","toolName":"x","toolContent":"{}","replyId":"a:b"}}]}
        "#);
}

#[test]
fn ids_stay_apart_where_their_parts_hold_colons() {
    scene([start(), call("a", "b:c", "x"), ask("a", &[listed("b:c", "x", "{}")])]).gives(r#"
            RUN_STARTED
            TOOL_CALL_START toolCallId=b:c toolCallName=x parentMessageId=id-1
            TOOL_CALL_END toolCallId=b:c
            RUN_FINISHED outcome={"type":"interrupt","interrupts":[{"id":"a:b%3Ac","reason":"tool_call","message":"Approve running x?","toolCallId":"b:c","responseSchema":{"type":"object","properties":{"approved":{"type":"boolean"},"editedArgs":{"type":"object","description":"Replaces all arguments of the call; nothing is merged."},"reason":{"type":"string","description":"Why the call was denied."}},"required":["approved"]},"metadata":{"agentscope.interruptKind":"permission_confirm","toolName":"x","toolContent":"{}","replyId":"a"}}]}
        "#);
}

#[test]
fn an_ask_without_a_reply_about_a_call_that_was_never_announced() {
    scene([start(), ask("", &[listed("c1", "x", "")]), end()]).gives(r#"
            RUN_STARTED
            TOOL_CALL_START toolCallId=c1 toolCallName=x parentMessageId=id-1
            TOOL_CALL_END toolCallId=c1
            RUN_FINISHED outcome={"type":"interrupt","interrupts":[{"id":"c1","reason":"tool_call","message":"Approve running x?","toolCallId":"c1","responseSchema":{"type":"object","properties":{"approved":{"type":"boolean"},"editedArgs":{"type":"object","description":"Replaces all arguments of the call; nothing is merged."},"reason":{"type":"string","description":"Why the call was denied."}},"required":["approved"]},"metadata":{"agentscope.interruptKind":"permission_confirm","toolName":"x","toolContent":""}}]}
        "#);
}

#[test]
fn several_asks_keep_their_order() {
    let calls = [listed("c1", "x", "{}"), listed("c2", "y", "{}")];
    let (_, end) = scene([start(), ask("R1", &calls), end()]).run();
    let ids: Vec<_> = end.open.iter().map(|open| open.interrupt.id.as_str()).collect();
    assert_eq!(ids, ["R1:c1", "R1:c2"]);
}

#[test]
fn an_ask_that_is_answered_in_the_stream_is_gone() {
    let answer = event(Kind::UserConfirmResult {
        reply: "R1".into(),
        results: vec![Confirmation { confirmed: true, call: listed("c1", "x", "{}") }],
    });
    let events = [
        start(),
        call("R1", "c1", "x"),
        ask("R1", &[listed("c1", "x", "{}")]),
        answer,
        output("c1", "ok"),
        result_end("c1"),
        end(),
    ];
    scene(events).gives(
        r#"
            RUN_STARTED
            TOOL_CALL_START toolCallId=c1 toolCallName=x parentMessageId=id-1
            TOOL_CALL_END toolCallId=c1
            TOOL_CALL_RESULT messageId=id-2 toolCallId=c1 content=ok role=tool
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn a_running_result_is_a_suspended_call() {
    let suspended = Block::ToolResult {
        call_id: "c1".into(),
        name: "deploy".into(),
        output: vec![Block::Text { text: "[Awaiting external execution]".into() }],
        state: ResultState::Running,
        metadata: Map::new(),
    };
    let events = [
        start(),
        call("R1", "c1", "deploy"),
        args("c1", "{\"to\":\"x\"}"),
        call_end("c1"),
        result_start("c1", "deploy"),
        output("c1", "[Awaiting external execution]"),
        result_end_as("c1", ResultState::Running),
        outside("R2", &[listed("c1", "deploy", "{\"to\":\"x\"}")]),
        result_blocks("TOOL_SUSPENDED", vec![suspended]),
        end(),
    ];
    scene(events).gives(r#"
            RUN_STARTED
            TOOL_CALL_START toolCallId=c1 toolCallName=deploy parentMessageId=id-1
            TOOL_CALL_ARGS toolCallId=c1 delta="{\"to\":\"x\"}"
            TOOL_CALL_END toolCallId=c1
            RUN_FINISHED outcome={"type":"interrupt","interrupts":[{"id":"R2:c1","reason":"tool_call","message":"[Awaiting external execution]","toolCallId":"c1","metadata":{"agentscope.interruptKind":"external_execution","toolName":"deploy","toolInput":{"to":"x"},"toolContent":"{\"to\":\"x\"}","replyId":"R2"}}]}
        "#);
}

#[test]
fn a_finished_call_beside_a_suspended_one_keeps_its_result() {
    let events = [
        start(),
        call("R1", "c1", "a"),
        call("R1", "c2", "b"),
        output("c1", "done"),
        result_end("c1"),
        result_end_as("c2", ResultState::Running),
        end(),
    ];
    scene(events).gives(r#"
            RUN_STARTED
            TOOL_CALL_START toolCallId=c1 toolCallName=a parentMessageId=id-1
            TOOL_CALL_START toolCallId=c2 toolCallName=b parentMessageId=id-1
            TOOL_CALL_END toolCallId=c1
            TOOL_CALL_RESULT messageId=id-2 toolCallId=c1 content=done role=tool
            TOOL_CALL_END toolCallId=c2
            RUN_FINISHED outcome={"type":"interrupt","interrupts":[{"id":"R:c2","reason":"tool_call","message":"Run b and answer with its result","toolCallId":"c2","metadata":{"agentscope.interruptKind":"external_execution","toolName":"b","toolContent":"","replyId":"R"}}]}
        "#);
}

#[test]
fn a_question_is_an_interrupt_without_a_call() {
    let question =
        event(Kind::Question { id: "q1".into(), message: "Which one?".into(), schema: None });
    scene([start(), question.clone(), question, end()]).gives(r#"
            RUN_STARTED
            RUN_FINISHED outcome={"type":"interrupt","interrupts":[{"id":"r1:q1","reason":"input_required","message":"Which one?","metadata":{"agentscope.interruptKind":"input_required"}}]}
        "#);
}

#[test]
fn calls_of_the_client_come_before_asks() {
    let events = || {
        [
            start(),
            call("R1", "c1", "pick"),
            call("R1", "c2", "delete"),
            outside("R1", &[listed("c1", "pick", "{}")]),
            ask("R1", &[listed("c2", "delete", "{}")]),
            end(),
        ]
    };
    let end = scene(events()).frontend_tool().excuse(&["TOOL-15"]).gives(
        r#"
            RUN_STARTED
            TOOL_CALL_START toolCallId=c1 toolCallName=pick parentMessageId=id-1
            TOOL_CALL_START toolCallId=c2 toolCallName=delete parentMessageId=id-1
            TOOL_CALL_END toolCallId=c1
            TOOL_CALL_END toolCallId=c2
            RUN_FINISHED outcome={"type":"success","pendingToolCallIds":["c1","c2"]}
        "#,
    );
    assert_eq!(end.outcome, EndOutcome::Success);
    let deferred: Vec<_> = end.deferred.iter().map(|open| open.interrupt.id.as_str()).collect();
    assert_eq!(deferred, ["R1:c2"]);
    let (_, end) = scene(events())
        .frontend_tool()
        .with(|options| options.frontend_tool_outcome = FrontendToolOutcome::Interrupt)
        .run();
    let open: Vec<_> = end.open.iter().map(|open| open.interrupt.id.as_str()).collect();
    assert_eq!(open, ["R1:c1", "R1:c2"]);
}

#[test]
fn an_error_end_raises_no_interrupts() {
    let events =
        [start(), ask("R1", &[listed("c1", "x", "{}")]), end_with(failure("internal", ""))];
    let end = scene(events).gives(
        r#"
            RUN_STARTED
            TOOL_CALL_START toolCallId=c1 toolCallName=x parentMessageId=id-1
            TOOL_CALL_ARGS toolCallId=c1 delta={}
            TOOL_CALL_END toolCallId=c1
            RUN_ERROR message="The agent failed." code=UPSTREAM_ERROR timestamp=1790000000000
        "#,
    );
    assert!(end.open.is_empty());
}
