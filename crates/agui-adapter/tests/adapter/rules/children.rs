//! Sub-agents.

use agui_adapter::{model::AgentEvent, options::SubagentEvents};
use serde_json::json;

use super::scene::*;

fn a(event: AgentEvent) -> AgentEvent {
    of("main/a", event)
}

fn b(event: AgentEvent) -> AgentEvent {
    of("main/b", event)
}

/// The root delegates to `a`, which thinks, speaks and uses a tool.
fn delegation() -> [AgentEvent; 17] {
    [
        start(),
        call("R1", "c1", "agent_spawn"),
        args("c1", "{\"agent\":\"a\"}"),
        call_end("c1"),
        result_start("c1", "agent_spawn"),
        a(start()),
        a(think("RC", "K", "hm")),
        a(text("RC", "B", "I look.")),
        a(call("RC", "c7", "find")),
        a(args("c7", "{}")),
        a(call_end("c7")),
        a(output("c7", "found")),
        a(result_end("c7")),
        a(end()),
        output("c1", "report"),
        result_end("c1"),
        end(),
    ]
}

#[test]
fn a_child_is_announced_tagged_and_tied_to_its_call() {
    scene(delegation()).gives(
        r#"
            RUN_STARTED
            TOOL_CALL_START toolCallId=c1 toolCallName=agent_spawn parentMessageId=id-1
            TOOL_CALL_ARGS toolCallId=c1 delta="{\"agent\":\"a\"}"
            TOOL_CALL_END toolCallId=c1
            SUBAGENT_STARTED subagentRunId=id-2 name=helper parentToolCallId=c1 parentMessageId=id-1
            TEXT_MESSAGE_START messageId=id-3 role=assistant subagentRunId=id-2
            TEXT_MESSAGE_CONTENT messageId=id-3 delta="I look." subagentRunId=id-2
            TEXT_MESSAGE_END messageId=id-3 subagentRunId=id-2
            TOOL_CALL_START toolCallId=c7 toolCallName=find parentMessageId=id-3 subagentRunId=id-2
            TOOL_CALL_ARGS toolCallId=c7 delta={} subagentRunId=id-2
            TOOL_CALL_END toolCallId=c7 subagentRunId=id-2
            TOOL_CALL_RESULT messageId=id-4 toolCallId=c7 content=found role=tool subagentRunId=id-2
            SUBAGENT_FINISHED subagentRunId=id-2
            TOOL_CALL_RESULT messageId=id-5 toolCallId=c1 content=report role=tool
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn reasoning_of_children_follows_the_switch() {
    scene(delegation()).reasoning().gives(
        r#"
            RUN_STARTED
            TOOL_CALL_START toolCallId=c1 toolCallName=agent_spawn parentMessageId=id-1
            TOOL_CALL_ARGS toolCallId=c1 delta="{\"agent\":\"a\"}"
            TOOL_CALL_END toolCallId=c1
            SUBAGENT_STARTED subagentRunId=id-2 name=helper parentToolCallId=c1 parentMessageId=id-1
            REASONING_START messageId=id-3 subagentRunId=id-2
            REASONING_MESSAGE_START messageId=id-3 role=reasoning subagentRunId=id-2
            REASONING_MESSAGE_CONTENT messageId=id-3 delta=hm subagentRunId=id-2
            REASONING_MESSAGE_END messageId=id-3 subagentRunId=id-2
            REASONING_END messageId=id-3 subagentRunId=id-2
            TEXT_MESSAGE_START messageId=id-4 role=assistant subagentRunId=id-2
            TEXT_MESSAGE_CONTENT messageId=id-4 delta="I look." subagentRunId=id-2
            TEXT_MESSAGE_END messageId=id-4 subagentRunId=id-2
            TOOL_CALL_START toolCallId=c7 toolCallName=find parentMessageId=id-4 subagentRunId=id-2
            TOOL_CALL_ARGS toolCallId=c7 delta={} subagentRunId=id-2
            TOOL_CALL_END toolCallId=c7 subagentRunId=id-2
            TOOL_CALL_RESULT messageId=id-5 toolCallId=c7 content=found role=tool subagentRunId=id-2
            SUBAGENT_FINISHED subagentRunId=id-2
            TOOL_CALL_RESULT messageId=id-6 toolCallId=c1 content=report role=tool
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn an_old_client_gets_a_child_as_custom_events() {
    scene(delegation()).legacy().reasoning().gives(r#"
            RUN_STARTED
            TOOL_CALL_START toolCallId=c1 toolCallName=agent_spawn parentMessageId=id-1
            TOOL_CALL_ARGS toolCallId=c1 delta="{\"agent\":\"a\"}"
            TOOL_CALL_END toolCallId=c1
            CUSTOM name=subagent.lifecycle value={"source":"main/a","type":"AGENT_START","subagentRunId":"id-2","name":"helper"}
            CUSTOM name=subagent.thinking value={"source":"main/a","type":"THINKING_BLOCK_DELTA","subagentRunId":"id-2","delta":"hm"}
            CUSTOM name=subagent.text value={"source":"main/a","type":"TEXT_BLOCK_DELTA","subagentRunId":"id-2","delta":"I look."}
            CUSTOM name=subagent.tool_call value={"source":"main/a","type":"TOOL_CALL_START","subagentRunId":"id-2","toolCallId":"c7","toolName":"find"}
            CUSTOM name=subagent.tool_call value={"source":"main/a","type":"TOOL_CALL_END","subagentRunId":"id-2","toolCallId":"c7","toolName":"find","arguments":"{}"}
            CUSTOM name=subagent.tool_result value={"source":"main/a","type":"TOOL_RESULT_END","subagentRunId":"id-2","toolCallId":"c7","toolName":"find","state":"SUCCESS","content":"found"}
            CUSTOM name=subagent.lifecycle value={"source":"main/a","type":"AGENT_END","subagentRunId":"id-2","name":"helper"}
            TOOL_CALL_RESULT messageId=id-3 toolCallId=c1 content=report role=tool
            RUN_FINISHED
        "#);
}

#[test]
fn a_native_child_is_only_tagged() {
    scene(delegation()).children(SubagentEvents::Native).gives(
        r#"
            RUN_STARTED
            TOOL_CALL_START toolCallId=c1 toolCallName=agent_spawn parentMessageId=id-1
            TOOL_CALL_ARGS toolCallId=c1 delta="{\"agent\":\"a\"}"
            TOOL_CALL_END toolCallId=c1
            TEXT_MESSAGE_START messageId=id-3 role=assistant subagentRunId=id-2
            TEXT_MESSAGE_CONTENT messageId=id-3 delta="I look." subagentRunId=id-2
            TEXT_MESSAGE_END messageId=id-3 subagentRunId=id-2
            TOOL_CALL_START toolCallId=c7 toolCallName=find parentMessageId=id-3 subagentRunId=id-2
            TOOL_CALL_ARGS toolCallId=c7 delta={} subagentRunId=id-2
            TOOL_CALL_END toolCallId=c7 subagentRunId=id-2
            TOOL_CALL_RESULT messageId=id-4 toolCallId=c7 content=found role=tool subagentRunId=id-2
            TOOL_CALL_RESULT messageId=id-5 toolCallId=c1 content=report role=tool
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn a_childs_text_is_not_mixed_into_its_parents() {
    let events = || {
        [
            start(),
            text("R1", "B", "one "),
            a(start()),
            a(text("R1", "B", "child")),
            text("R1", "B", "two"),
            a(text("R1", "B", "ish")),
            a(end()),
            text("R1", "B", " three"),
            end(),
        ]
    };
    scene(events()).gives(
        r#"
            RUN_STARTED
            TEXT_MESSAGE_START messageId=id-1 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-1 delta="one "
            SUBAGENT_STARTED subagentRunId=id-2 name=helper
            TEXT_MESSAGE_START messageId=id-3 role=assistant subagentRunId=id-2
            TEXT_MESSAGE_CONTENT messageId=id-3 delta=child subagentRunId=id-2
            TEXT_MESSAGE_CONTENT messageId=id-1 delta=two
            TEXT_MESSAGE_CONTENT messageId=id-3 delta=ish subagentRunId=id-2
            TEXT_MESSAGE_END messageId=id-3 subagentRunId=id-2
            SUBAGENT_FINISHED subagentRunId=id-2
            TEXT_MESSAGE_CONTENT messageId=id-1 delta=" three"
            TEXT_MESSAGE_END messageId=id-1
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
    scene(events()).children(SubagentEvents::Native).gives(
        r#"
            RUN_STARTED
            TEXT_MESSAGE_START messageId=id-1 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-1 delta="one "
            TEXT_MESSAGE_START messageId=id-3 role=assistant subagentRunId=id-2
            TEXT_MESSAGE_CONTENT messageId=id-3 delta=child subagentRunId=id-2
            TEXT_MESSAGE_CONTENT messageId=id-1 delta=two
            TEXT_MESSAGE_CONTENT messageId=id-3 delta=ish subagentRunId=id-2
            TEXT_MESSAGE_END messageId=id-3 subagentRunId=id-2
            TEXT_MESSAGE_CONTENT messageId=id-1 delta=" three"
            TEXT_MESSAGE_END messageId=id-1
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn a_failing_child_does_not_end_the_run() {
    scene([start(), a(start()), a(end_with(failure("upstream", "Sorry."))), end()]).gives(
        r#"
            RUN_STARTED
            SUBAGENT_STARTED subagentRunId=id-1 name=helper
            SUBAGENT_ERROR subagentRunId=id-1 message=Sorry. code=MODEL_ERROR
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
    scene([start(), a(start()), a(end_with(failure("upstream", "Sorry."))), end()])
        .legacy()
        .gives(r#"
            RUN_STARTED
            CUSTOM name=subagent.lifecycle value={"source":"main/a","type":"AGENT_START","subagentRunId":"id-1","name":"helper"}
            CUSTOM name=subagent.lifecycle value={"source":"main/a","type":"AGENT_END","subagentRunId":"id-1","name":"helper","error":{"message":"Sorry.","code":"MODEL_ERROR"}}
            RUN_FINISHED
        "#);
}

#[test]
fn a_child_that_never_ends_is_closed_before_the_run_ends() {
    scene([start(), a(start()), a(text("R", "B", "half")), end()]).gives(r#"
            RUN_STARTED
            SUBAGENT_STARTED subagentRunId=id-1 name=helper
            TEXT_MESSAGE_START messageId=id-2 role=assistant subagentRunId=id-1
            TEXT_MESSAGE_CONTENT messageId=id-2 delta=half subagentRunId=id-1
            TEXT_MESSAGE_END messageId=id-2 subagentRunId=id-1
            SUBAGENT_ERROR subagentRunId=id-1 message="The sub-agent did not finish." code=AGENT_ENDED_EARLY
            RUN_FINISHED outcome={"type":"success"}
        "#);
}

#[test]
fn children_may_be_nested() {
    let c = |event| of("main/a/c", event);
    let events = [
        start(),
        a(start()),
        a(call("RA", "c1", "ask_c")),
        a(result_start("c1", "ask_c")),
        c(start()),
        c(text("RC", "B", "deep")),
        c(end()),
        a(result_end("c1")),
        a(end()),
        end(),
    ];
    scene(events).gives(r#"
            RUN_STARTED
            SUBAGENT_STARTED subagentRunId=id-1 name=helper
            TOOL_CALL_START toolCallId=c1 toolCallName=ask_c parentMessageId=id-2 subagentRunId=id-1
            SUBAGENT_STARTED subagentRunId=id-3 name=helper parentSubagentRunId=id-1 parentToolCallId=c1 parentMessageId=id-2
            TEXT_MESSAGE_START messageId=id-4 role=assistant subagentRunId=id-3
            TEXT_MESSAGE_CONTENT messageId=id-4 delta=deep subagentRunId=id-3
            TEXT_MESSAGE_END messageId=id-4 subagentRunId=id-3
            SUBAGENT_FINISHED subagentRunId=id-3
            TOOL_CALL_END toolCallId=c1 subagentRunId=id-1
            TOOL_CALL_RESULT messageId=id-5 toolCallId=c1 content= role=tool subagentRunId=id-1
            SUBAGENT_FINISHED subagentRunId=id-1
            RUN_FINISHED outcome={"type":"success"}
        "#);
}

#[test]
fn parallel_children_do_not_close_each_others_text() {
    let events = [
        start(),
        a(start()),
        b(start()),
        a(text("R", "B", "a1")),
        b(text("R", "B", "b1")),
        a(text("R", "B", "a2")),
        b(end()),
        a(text("R", "B", "a3")),
        a(end()),
        end(),
    ];
    scene(events).gives(
        r#"
            RUN_STARTED
            SUBAGENT_STARTED subagentRunId=id-1 name=helper
            SUBAGENT_STARTED subagentRunId=id-2 name=helper
            TEXT_MESSAGE_START messageId=id-3 role=assistant subagentRunId=id-1
            TEXT_MESSAGE_CONTENT messageId=id-3 delta=a1 subagentRunId=id-1
            TEXT_MESSAGE_START messageId=id-4 role=assistant subagentRunId=id-2
            TEXT_MESSAGE_CONTENT messageId=id-4 delta=b1 subagentRunId=id-2
            TEXT_MESSAGE_CONTENT messageId=id-3 delta=a2 subagentRunId=id-1
            TEXT_MESSAGE_END messageId=id-4 subagentRunId=id-2
            SUBAGENT_FINISHED subagentRunId=id-2
            TEXT_MESSAGE_CONTENT messageId=id-3 delta=a3 subagentRunId=id-1
            TEXT_MESSAGE_END messageId=id-3 subagentRunId=id-1
            SUBAGENT_FINISHED subagentRunId=id-1
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn two_invocations_of_one_agent_at_once_stay_apart() {
    let events = [
        start(),
        a(start()),
        a(model("R1")),
        a(text("R1", "text", "first")),
        a(start()),
        a(text("R1", "text", " still first")),
        a(model("R2")),
        a(text("R2", "text", "second")),
        a(call("R2", "c2", "find")),
        a(call("R1", "c1", "find")),
        a(args("c2", "2")),
        a(args("c1", "1")),
        a(model_end("R1")),
        a(model_end("R2")),
        a(output("c2", "two")),
        a(output("c1", "one")),
        a(result_end("c1")),
        a(result_end("c2")),
        a(end()),
        a(end()),
        end(),
    ];
    scene(events).gives(
        r#"
            RUN_STARTED
            SUBAGENT_STARTED subagentRunId=id-1 name=helper
            TEXT_MESSAGE_START messageId=id-2 role=assistant subagentRunId=id-1
            TEXT_MESSAGE_CONTENT messageId=id-2 delta=first subagentRunId=id-1
            SUBAGENT_STARTED subagentRunId=id-3 name=helper
            TEXT_MESSAGE_CONTENT messageId=id-2 delta=" still first" subagentRunId=id-1
            TEXT_MESSAGE_START messageId=id-4 role=assistant subagentRunId=id-3
            TEXT_MESSAGE_CONTENT messageId=id-4 delta=second subagentRunId=id-3
            TEXT_MESSAGE_END messageId=id-4 subagentRunId=id-3
            TOOL_CALL_START toolCallId=c2 toolCallName=find parentMessageId=id-4 subagentRunId=id-3
            TEXT_MESSAGE_END messageId=id-2 subagentRunId=id-1
            TOOL_CALL_START toolCallId=c1 toolCallName=find parentMessageId=id-2 subagentRunId=id-1
            TOOL_CALL_ARGS toolCallId=c2 delta=2 subagentRunId=id-3
            TOOL_CALL_ARGS toolCallId=c1 delta=1 subagentRunId=id-1
            TOOL_CALL_END toolCallId=c1 subagentRunId=id-1
            TOOL_CALL_RESULT messageId=id-5 toolCallId=c1 content=one role=tool subagentRunId=id-1
            TOOL_CALL_END toolCallId=c2 subagentRunId=id-3
            TOOL_CALL_RESULT messageId=id-6 toolCallId=c2 content=two role=tool subagentRunId=id-3
            SUBAGENT_FINISHED subagentRunId=id-1
            SUBAGENT_FINISHED subagentRunId=id-3
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn a_childs_ask_is_raised_by_the_run() {
    let events = || {
        [
            start(),
            a(start()),
            a(call("RC", "c7", "delete")),
            a(args("c7", "{}")),
            a(call_end("c7")),
            a(ask("RC", &[listed("c7", "delete", "{}")])),
            a(end()),
            end(),
        ]
    };
    let end = scene(events()).gives(r#"
            RUN_STARTED
            SUBAGENT_STARTED subagentRunId=id-1 name=helper
            TOOL_CALL_START toolCallId=c7 toolCallName=delete parentMessageId=id-2 subagentRunId=id-1
            TOOL_CALL_ARGS toolCallId=c7 delta={} subagentRunId=id-1
            TOOL_CALL_END toolCallId=c7 subagentRunId=id-1
            SUBAGENT_FINISHED subagentRunId=id-1 outcome={"type":"suspended","interruptIds":["RC:c7"]}
            RUN_FINISHED outcome={"type":"interrupt","interrupts":[{"subagentRunId":"id-1","id":"RC:c7","reason":"tool_call","message":"Approve running delete?","toolCallId":"c7","responseSchema":{"type":"object","properties":{"approved":{"type":"boolean"},"editedArgs":{"type":"object","description":"Replaces all arguments of the call; nothing is merged."},"reason":{"type":"string","description":"Why the call was denied."}},"required":["approved"]},"metadata":{"agentscope.interruptKind":"permission_confirm","toolName":"delete","toolContent":"{}","replyId":"RC","agentscope.source":"main/a"}}]}
        "#);
    assert_eq!(end.open[0].source.as_deref(), Some("main/a"));
    scene(events()).legacy().gives(r#"
            RUN_STARTED
            CUSTOM name=subagent.lifecycle value={"source":"main/a","type":"AGENT_START","subagentRunId":"id-1","name":"helper"}
            CUSTOM name=subagent.tool_call value={"source":"main/a","type":"TOOL_CALL_START","subagentRunId":"id-1","toolCallId":"c7","toolName":"delete"}
            CUSTOM name=subagent.tool_call value={"source":"main/a","type":"TOOL_CALL_END","subagentRunId":"id-1","toolCallId":"c7","toolName":"delete","arguments":"{}"}
            CUSTOM name=subagent.require_confirm value={"source":"main/a","type":"REQUIRE_USER_CONFIRM","subagentRunId":"id-1","toolCallCount":1,"toolCalls":[{"toolCallId":"c7","toolName":"delete","arguments":"{}"}]}
            CUSTOM name=subagent.lifecycle value={"source":"main/a","type":"AGENT_END","subagentRunId":"id-1","name":"helper"}
            RUN_FINISHED outcome={"type":"interrupt","interrupts":[{"id":"RC:c7","reason":"tool_call","message":"Approve running delete?","toolCallId":"c7","responseSchema":{"type":"object","properties":{"approved":{"type":"boolean"},"editedArgs":{"type":"object","description":"Replaces all arguments of the call; nothing is merged."},"reason":{"type":"string","description":"Why the call was denied."}},"required":["approved"]},"metadata":{"agentscope.interruptKind":"permission_confirm","toolName":"delete","toolContent":"{}","replyId":"RC","agentscope.source":"main/a"}}]}
        "#);
}

#[test]
fn a_child_that_waits_is_not_suspended_where_the_run_is_not_interrupted() {
    let events = [
        start(),
        a(start()),
        a(ask("RC", &[listed("c7", "delete", "{}")])),
        a(end()),
        call("R1", "c1", "pick"),
        outside("R1", &[listed("c1", "pick", "{}")]),
        end(),
    ];
    let end = scene(events).frontend_tool().excuse(&["TOOL-15"]).gives(r#"
            RUN_STARTED
            SUBAGENT_STARTED subagentRunId=id-1 name=helper
            TOOL_CALL_START toolCallId=c7 toolCallName=delete parentMessageId=id-2 subagentRunId=id-1
            TOOL_CALL_ARGS toolCallId=c7 delta={} subagentRunId=id-1
            TOOL_CALL_END toolCallId=c7 subagentRunId=id-1
            TOOL_CALL_START toolCallId=c1 toolCallName=pick parentMessageId=id-3
            SUBAGENT_FINISHED subagentRunId=id-1
            TOOL_CALL_END toolCallId=c1
            RUN_FINISHED outcome={"type":"success","pendingToolCallIds":["c7","c1"]}
        "#);
    assert_eq!(
        end.deferred[0].interrupt.subagent_run_id.as_ref().map(|id| id.as_str()),
        Some("id-1")
    );
}

#[test]
fn equal_ids_of_two_owners_make_two_interrupts() {
    let events = [
        start(),
        a(ask("R", &[listed("c1", "x", "{}")])),
        b(ask("R", &[listed("c1", "x", "{}")])),
        end(),
    ];
    let (_, end) = scene(events).run();
    let ids: Vec<_> = end.open.iter().map(|open| json!(open.interrupt.id)).collect();
    assert_eq!(ids.len(), 2);
    assert_ne!(ids[0], ids[1]);
}
