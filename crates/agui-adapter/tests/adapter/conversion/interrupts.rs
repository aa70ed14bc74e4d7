//! What stops a run to ask.

use agui_adapter::{
    model::{AgentEvent, AgentEventKind},
    options::{FrontendToolOutcome, SubagentEvents, ToolMergeMode},
    outbound::EndOutcome,
    resume::StoredCall,
};
use serde_json::{Value, json};

use super::{FRONTEND, Played, Run, SUCCESS, child_line, play, script::*, wire};

pub fn approval(id: &str, call: &str, tool: &str) -> Value {
    json!({
        "id": id, "reason": "tool_call", "message": format!("Approve running {tool}?"),
        "toolCallId": call,
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
        "metadata": { "agentscope.interruptKind": "permission_confirm", "toolName": tool,
            "toolInput": { "a": 1 }, "toolContent": "{\"a\":1}", "replyId": "R2" },
    })
}

pub fn execution(id: &str, call: &str, tool: &str) -> Value {
    json!({
        "id": id, "reason": "tool_call", "message": format!("Run {tool} and answer with its result"),
        "toolCallId": call,
        "metadata": { "agentscope.interruptKind": "external_execution", "toolName": tool,
            "toolInput": { "a": 1 }, "toolContent": "{\"a\":1}", "replyId": "R2" },
    })
}

/// The run ends with these interrupts, and keeps them.
#[track_caller]
pub fn interrupts(played: &Played, before: &[&str], interrupts: &[Value]) {
    let outcome = json!({ "type": "interrupt", "interrupts": interrupts });
    let end = format!("FINISHED {}", json!({ "outcome": outcome }));
    played.gives(&[before, &[end.as_str()]].concat());
    let open: Vec<_> = played.end.open.iter().map(|open| json!(open.interrupt)).collect();
    assert_eq!(open, interrupts);
    assert_eq!(played.end.outcome, EndOutcome::Interrupted);
}

#[test]
fn a_permission_ask_names_the_call_and_the_shape_of_the_answer() {
    let lines = joined![
        start(),
        call("c1", "find", "{\"a\":1}"),
        confirm(&[("c1", "find")]),
        any("REQUEST_STOP", json!({ "reason": "asking", "generateReason": "PERMISSION_ASKING" })),
        agent_result("", "PERMISSION_ASKING"),
        end(),
    ];
    let before = ["CALL c1 find id-1", "CALL+ c1 {\"a\":1}", "CALL. c1"];
    let played = play(&lines);
    interrupts(&played, &before, &[approval("R2:c1", "c1", "find")]);
    let call = played.end.open[0].call.as_ref().expect("a call");
    assert_eq!((call.id.as_str(), call.arguments.as_str()), ("c1", "{\"a\":1}"));
}

#[test]
fn several_asks_are_raised_in_their_order() {
    let lines = joined![
        start(),
        call("c1", "find", "{}"),
        call("c2", "send", "{}"),
        confirm(&[("c2", "send"), ("c1", "find")]),
        end(),
    ];
    let before = [
        "CALL c1 find id-1",
        "CALL+ c1 {}",
        "CALL c2 send id-1",
        "CALL+ c2 {}",
        "CALL. c1",
        "CALL. c2",
    ];
    let asks = [approval("R2:c2", "c2", "send"), approval("R2:c1", "c1", "find")];
    interrupts(&play(&lines), &before, &asks);
}

#[test]
fn a_call_that_was_never_announced_is_shown_before_it_is_asked_about() {
    let before = ["CALL c1 find id-1", "CALL+ c1 {\"a\":1}", "CALL. c1"];
    let played = play(&joined![start(), confirm(&[("c1", "find")]), end()]);
    interrupts(&played, &before, &[approval("R2:c1", "c1", "find")]);
}

#[test]
fn an_ask_under_the_id_of_an_answered_call_is_about_another_call() {
    let lines = joined![start(), confirm(&[("c1", "find")]), end()];
    let played = Run::default().knowing(&[("c1", "find", Some("A"))]).play(&lines);
    let before = ["CALL id-1 find id-2", "CALL+ id-1 {\"a\":1}", "CALL. id-1"];
    interrupts(&played, &before, &[approval("R2:id-1", "id-1", "find")]);
    let call = played.end.open[0].call.as_ref().expect("a call");
    assert_eq!(call.id.as_str(), "c1");
}

#[test]
fn an_ask_under_the_id_of_a_call_that_waits_is_about_that_call() {
    let lines = joined![start(), confirm(&[("c1", "find")]), end()];
    let played = Run::default().knowing(&[("c1", "find", None)]).play(&lines);
    interrupts(&played, &[], &[approval("R2:c1", "c1", "find")]);
}

#[test]
fn parts_of_an_interrupts_id_cannot_be_confused() {
    let ask = |reply: &str, call: Value| {
        any("REQUIRE_USER_CONFIRM", json!({ "replyId": reply, "toolCalls": [call] }))
    };
    let tool_use = |id: &str| json!({ "type": "tool_use", "id": id, "name": "f" });
    let mut with_input = tool_use("c");
    with_input["input"] = json!({});
    let played = play(&joined![
        start(),
        ask("a:b", with_input),
        ask("a", tool_use("b:c")),
        ask("", tool_use("d")),
        end()
    ]);
    let approval = |id: &str, call: &str, metadata: Value| {
        let mut approval = approval(id, call, "f");
        approval["metadata"] = metadata;
        approval
    };
    let kind = "permission_confirm";
    let before = [
        "CALL c f id-1",
        "CALL+ c {}",
        "CALL. c",
        "CALL b:c f id-1",
        "CALL. b:c",
        "CALL d f id-1",
        "CALL. d",
    ];
    let asks = [
        approval(
            "a%3Ab:c",
            "c",
            json!({ "agentscope.interruptKind": kind, "toolName": "f", "toolContent": "{}",
                "replyId": "a:b" }),
        ),
        approval(
            "a:b%3Ac",
            "b:c",
            json!({ "agentscope.interruptKind": kind, "toolName": "f", "toolContent": "",
                "replyId": "a" }),
        ),
        approval(
            "d",
            "d",
            json!({ "agentscope.interruptKind": kind, "toolName": "f", "toolContent": "" }),
        ),
    ];
    interrupts(&played, &before, &asks);
}

#[test]
fn nobody_asks_when_there_is_nothing_to_ask() {
    let lines = joined![
        start(),
        any("REQUIRE_USER_CONFIRM", json!({ "replyId": "R", "toolCalls": [] })),
        end()
    ];
    play(&lines).gives(&[SUCCESS]);
}

#[test]
fn an_external_tool_of_the_agent_interrupts() {
    let lines =
        joined![start(), call("c1", "print", "{\"a\":1}"), external(&[("c1", "print")]), end()];
    let before = ["CALL c1 print id-1", "CALL+ c1 {\"a\":1}", "CALL. c1"];
    interrupts(&play(&lines), &before, &[execution("R2:c1", "c1", "print")]);
}

/// Java says it three times.
#[test]
fn a_suspended_call_is_one_interrupt_however_often_it_is_said() {
    let suspended = json!({ "result": { "id": "m", "name": "n", "role": "ASSISTANT",
        "metadata": { "agentscope_generate_reason": "TOOL_SUSPENDED" },
        "content": [
            { "type": "tool_use", "id": "c1", "name": "print", "input": { "a": 1 },
                "content": "{\"a\":1}" },
            { "type": "tool_result", "id": "c1", "name": "print", "state": "running",
                "output": [{ "type": "text", "text": "[Awaiting]" }] },
        ] } });
    let lines = joined![
        start(),
        call("c1", "print", "{\"a\":1}"),
        call("c2", "find", "{}"),
        result_start("c1", "print"),
        result_text("c1", "[Awaiting]"),
        result_end("c1", "running"),
        result("c2", "B"),
        external(&[("c1", "print")]),
        any("AGENT_RESULT", suspended.clone()),
        end(),
    ];
    let before = [
        "CALL c1 print id-1",
        "CALL+ c1 {\"a\":1}",
        "CALL c2 find id-1",
        "CALL+ c2 {}",
        "CALL. c1",
        "CALL. c2",
        "RESULT id-2 c2 B",
    ];
    let mut interrupt = execution("R2:c1", "c1", "print");
    interrupt["message"] = "[Awaiting]".into();
    interrupts(&play(&lines), &before, std::slice::from_ref(&interrupt));
    // The finished message alone is enough.
    let only = joined![start(), any("AGENT_RESULT", suspended), end()];
    let before = ["CALL c1 print id-1", "CALL+ c1 {\"a\":1}", "CALL. c1"];
    interrupt["id"] = "c1".into();
    interrupt["metadata"].as_object_mut().expect("object").shift_remove("replyId");
    interrupts(&play(&only), &before, &[interrupt]);
}

#[test]
fn asks_that_the_stream_answers_itself_are_gone() {
    let lines = joined![
        start(),
        call("c1", "find", "{}"),
        call("c2", "print", "{}"),
        confirm(&[("c1", "find")]),
        external(&[("c2", "print")]),
        confirmed("c1", "find", true),
        result("c1", "A"),
        executed("c2", "print", "B"),
        text("done"),
        end(),
    ];
    play(&lines).gives(&[
        "CALL c1 find id-1",
        "CALL+ c1 {}",
        "CALL c2 print id-1",
        "CALL+ c2 {}",
        "CALL. c1",
        "CALL. c2",
        "RESULT id-2 c1 A",
        "RESULT id-3 c2 B",
        "TEXT id-4",
        "TEXT+ id-4 done",
        "TEXT. id-4",
        SUCCESS,
    ]);
}

/// The Python wire has no end event at a pause.
#[test]
fn a_stream_that_stops_with_something_asked_is_a_pause() {
    let calls = json!([{ "type": "tool_call", "id": "c1", "name": "find", "input": "{\"a\":1}",
        "suggested_rules": [{ "tool_name": "find" }] }]);
    let lines = joined![
        python("REPLY_START", json!({ "name": "Friday" })),
        python("TOOL_CALL_START", json!({ "tool_call_id": "c1", "tool_call_name": "find" })),
        python("TOOL_CALL_END", json!({ "tool_call_id": "c1" })),
        python("REQUIRE_USER_CONFIRM", json!({ "tool_calls": calls })),
    ];
    let mut interrupt = approval("P:c1", "c1", "find");
    interrupt["metadata"]["replyId"] = "P".into();
    interrupt["metadata"]["agentscope.suggestedRules"] = json!([{ "tool_name": "find" }]);
    interrupts(&play(&lines), &["CALL c1 find id-1", "CALL. c1"], &[interrupt]);
}

#[test]
fn a_question_interrupts_without_a_call() {
    let question = |id: &str, schema: Value| {
        AgentEvent::local(AgentEventKind::Question {
            id: id.to_owned(),
            message: "Which size?".to_owned(),
            schema: schema.as_object().cloned(),
        })
    };
    let sized = || question("q1", json!({ "type": "object" }));
    // Asked again, a question replaces itself.
    let events = [wire(start()), sized(), sized(), question("q2", json!(null)), wire(end())];
    let metadata = json!({ "agentscope.interruptKind": "input_required" });
    let expected = [
        json!({ "id": "r1:q1", "reason": "input_required", "message": "Which size?",
            "responseSchema": { "type": "object" }, "metadata": metadata }),
        json!({ "id": "r1:q2", "reason": "input_required", "message": "Which size?",
            "metadata": metadata }),
    ];
    interrupts(&Run::default().play_events(&events), &[], &expected);
}

#[test]
fn what_an_agent_parks_is_handed_on_and_never_sent() {
    let park = |state: Value| AgentEvent::local(AgentEventKind::Park { state: state.into() });
    let question = AgentEvent::local(AgentEventKind::Question {
        id: "q".to_owned(),
        message: "Which?".to_owned(),
        schema: None,
    });
    let events = [wire(start()), park(json!(1)), question, park(json!({ "at": 2 }))];
    let interrupt = json!({ "id": "r1:q", "reason": "input_required", "message": "Which?",
        "metadata": { "agentscope.interruptKind": "input_required" } });
    let played = Run::default().play_events(&events);
    interrupts(&played, &[], &[interrupt]);
    assert_eq!(played.end.parked.as_deref(), Some(&json!({ "at": 2 })));
    // Kept whatever the end: only the caller knows whether somebody still waits.
    let played = Run::default().play_events(&[park(json!(null)), wire(end())]);
    played.gives(&[SUCCESS]);
    assert_eq!(played.end.parked.as_deref(), Some(&json!(null)));
    assert_eq!(play(&joined![start(), end()]).end.parked, None);
}

#[test]
fn what_an_agent_keeps_is_handed_on_and_never_sent() {
    let keep = |state: Value| AgentEvent::local(AgentEventKind::Keep { state: state.into() });
    let kept = |events: &[AgentEvent]| {
        let events: Vec<AgentEvent> = events.iter().cloned().chain([wire(end())]).collect();
        let played = Run::default().play_events(&events);
        played.gives(&[SUCCESS]);
        played.end.kept.as_deref().cloned()
    };
    assert_eq!(kept(&[]), None);
    assert_eq!(kept(&[keep(json!(1)), keep(json!({ "at": 2 }))]), Some(json!({ "at": 2 })));
    assert_eq!(kept(&[keep(json!(1)), keep(json!(null))]), Some(json!(null)));
    // The child's own affairs are its parent's.
    assert_eq!(kept(&[keep(json!(1)), keep(json!(2)).from_source("main/child")]), Some(json!(1)));
    // 64 KiB, the quotes included.
    let longest = json!("x".repeat((64 << 10) - 2));
    let too_long = json!("x".repeat((64 << 10) - 1));
    assert_eq!(kept(&[keep(longest.clone()), keep(too_long)]), Some(longest));
}

#[test]
fn calls_of_the_client_come_before_asks() {
    let run = Run::with_input(FRONTEND);
    let lines = joined![
        start(),
        call("c1", "paint", "{}"),
        call("c2", "find", "{\"a\":1}"),
        external(&[("c1", "paint")]),
        confirm(&[("c2", "find")]),
        end(),
    ];
    let played = run.play(&lines);
    played.gives(&[
        "CALL c1 paint id-1",
        "CALL+ c1 {}",
        "CALL c2 find id-1",
        "CALL+ c2 {\"a\":1}",
        "CALL. c1",
        "CALL. c2",
        "FINISHED {\"outcome\":{\"type\":\"success\",\"pendingToolCallIds\":[\"c1\",\"c2\"]}}",
    ]);
    assert_eq!(played.end.open, []);
    let deferred: Vec<_> = played.end.deferred.iter().map(|open| json!(open.interrupt)).collect();
    assert_eq!(deferred, [approval("R2:c2", "c2", "find")]);
}

#[test]
fn the_earlier_form_interrupts_for_the_clients_tools_too() {
    let mut run = Run { excused: &["INT-24"], ..Run::with_input(FRONTEND) };
    run.options.frontend_tool_outcome = FrontendToolOutcome::Interrupt;
    let lines = joined![start(), confirm(&[("c2", "find")]), external(&[("c1", "paint")]), end(),];
    let mut paint = execution("R2:c1", "c1", "paint");
    paint["metadata"]["agentscope.interruptKind"] = "frontend_tool".into();
    let before = [
        "CALL c2 find id-1",
        "CALL+ c2 {\"a\":1}",
        "CALL. c2",
        "CALL c1 paint id-1",
        "CALL+ c1 {\"a\":1}",
        "CALL. c1",
    ];
    interrupts(&run.play(&lines), &before, &[approval("R2:c2", "c2", "find"), paint]);
}

/// What the client offers the agent never hears of.
#[test]
fn with_the_agents_tools_only_a_name_of_the_client_is_the_agents_tool() {
    let mut run = Run { excused: &["INT-24"], ..Run::with_input(FRONTEND) };
    run.options.tool_merge_mode = ToolMergeMode::AgentOnly;
    let lines =
        joined![start(), call("c1", "paint", "{\"a\":1}"), external(&[("c1", "paint")]), end()];
    let before = ["CALL c1 paint id-1", "CALL+ c1 {\"a\":1}", "CALL. c1"];
    interrupts(&run.play(&lines), &before, &[execution("R2:c1", "c1", "paint")]);
}

#[test]
fn a_cancelled_or_failed_run_raises_nothing() {
    let asked = joined![start(), confirm(&[("c1", "find")])];
    let call = ["CALL c1 find id-1", "CALL+ c1 {\"a\":1}", "CALL. c1"];
    let cancelled = play(&joined![asked.clone(), agent_result("", "INTERRUPTED"), end()]);
    let end = "FINISHED {\"outcome\":{\"type\":\"cancelled\"},\"metadata\":{\"agentscope.reason\":\"interrupted\"}}";
    cancelled.gives(&[&call[..], &[end]].concat());
    assert_eq!((cancelled.end.outcome, cancelled.end.open), (EndOutcome::Cancelled, Vec::new()));
    let error =
        json!({ "finished_reason": "error", "error": { "type": "upstream", "message": "x" } });
    let failed = play(&joined![asked, python("REPLY_END", error)]);
    failed.gives(&[&call[..], &["ERROR MODEL_ERROR x"]].concat());
    assert_eq!(failed.end.open, []);
}

/// However it is said, the interrupt holds the call as the child streamed it.
#[test]
fn a_suspended_call_of_a_child_in_custom_form_keeps_its_name_and_arguments() {
    let suspended = json!([{ "type": "tool_result", "id": "c7", "state": "running" }]);
    let listed = json!([{ "type": "tool_use", "id": "c7" }]);
    let ways = [
        (result_end("c7", "running"), "R2"),
        (any("EXTERNAL_EXECUTION_RESULT", json!({ "toolResults": suspended })), ""),
        (any("REQUIRE_EXTERNAL_EXECUTION", json!({ "replyId": "R2", "toolCalls": listed })), "R2"),
    ];
    let call_members = json!({ "toolCallId": "c7", "toolName": "deploy" });
    let mut end_members = call_members.clone();
    end_members["arguments"] = "{\"a\":1}".into();
    for (said, reply) in ways {
        let child = joined![
            any("AGENT_START", json!({ "name": "R" })),
            call("c7", "deploy", "{\"a\":1}"),
            said,
            any("AGENT_END", json!({})),
        ];
        let run = Run::with(|options| options.subagent_events = SubagentEvents::Custom);
        let id = if reply.is_empty() { "c7" } else { "R2:c7" };
        let mut interrupt = execution(id, "c7", "deploy");
        interrupt["metadata"]["agentscope.source"] = "main/a".into();
        if reply.is_empty() {
            interrupt["metadata"].as_object_mut().expect("object").shift_remove("replyId");
        }
        let before = [
            child_line("lifecycle", "AGENT_START", json!({ "name": "R" })),
            child_line("tool_call", "TOOL_CALL_START", call_members.clone()),
            child_line("tool_call", "TOOL_CALL_END", end_members.clone()),
            child_line("lifecycle", "AGENT_END", json!({ "name": "R" })),
        ];
        let before: Vec<&str> = before.iter().map(String::as_str).collect();
        let played = run.play(&joined![start(), from("main/a", child), end()]);
        interrupts(&played, &before, &[interrupt]);
        let stored = StoredCall {
            id: "c7".to_owned(),
            wire_id: "c7".to_owned(),
            name: "deploy".to_owned(),
            arguments: "{\"a\":1}".to_owned(),
            input: json!({ "a": 1 }).as_object().cloned(),
        };
        assert_eq!(played.end.open[0].call, Some(stored));
    }
}
