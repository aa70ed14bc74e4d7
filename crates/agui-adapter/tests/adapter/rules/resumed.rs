//! Runs that go on from interrupts.

use agui_adapter::{
    model::{
        AgentEventKind as Kind, Block,
        event::{ExternalResult, ResultState},
    },
    options::FrontendToolOutcome,
    resume::OpenInterrupt,
};
use serde_json::{Value, json};

use super::scene::*;

/// What a run that asked about `c1` (tool `delete`) left open.
fn asked() -> Vec<OpenInterrupt> {
    scene([start(), ask("R1", &[listed("c1", "delete", "{\"f\":1}")]), end()]).run().1.open
}

fn waiting() -> Vec<OpenInterrupt> {
    scene([start(), outside("R1", &[listed("c1", "deploy", "{}")]), end()]).run().1.open
}

fn history(name: &str) -> Value {
    json!([
        { "id": "u1", "role": "user", "content": "hi" },
        { "id": "m1", "role": "assistant", "toolCalls": [
            { "id": "c1", "type": "function", "function": { "name": name, "arguments": "{}" } },
        ] },
    ])
}

fn approve(approved: Value) -> Value {
    json!([{ "interruptId": "R1:c1", "status": "resolved", "payload": approved }])
}

#[test]
fn an_approved_call_gets_its_result_and_no_second_start() {
    let events = [
        start(),
        call("R1", "c1", "delete"),
        args("c1", "{\"f\":1}"),
        call_end("c1"),
        result_start("c1", "delete"),
        output("c1", "gone"),
        result_end("c1"),
        text("R2", "B", "Done."),
        end(),
    ];
    scene(events)
        .resumes(&asked(), approve(json!({ "approved": true })))
        .input("messages", history("delete"))
        .gives(
            r#"
            RUN_STARTED
            TOOL_CALL_RESULT messageId=id-1 toolCallId=c1 content=gone role=tool
            TEXT_MESSAGE_START messageId=id-2 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-2 delta=Done.
            TEXT_MESSAGE_END messageId=id-2
            RUN_FINISHED outcome={"type":"success"}
        "#,
        );
}

#[test]
fn a_denied_call_gets_exactly_one_result() {
    let denied = |scene: Scene| {
        scene
            .resumes(&asked(), approve(json!({ "approved": false, "reason": "too risky" })))
            .input("messages", history("delete"))
    };
    denied(scene([start(), model("R2"), text("R2", "B", "Fine."), end()])).gives(r#"
            RUN_STARTED
            TOOL_CALL_RESULT messageId=id-1 toolCallId=c1 content="Permission denied by user: too risky" role=tool metadata={"agentscope.state":"denied"}
            TEXT_MESSAGE_START messageId=id-2 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-2 delta=Fine.
            TEXT_MESSAGE_END messageId=id-2
            RUN_FINISHED outcome={"type":"success"}
        "#);
    let answered = [
        start(),
        result_start("c1", "delete"),
        output("c1", "denied by user"),
        result_end_as("c1", ResultState::Denied),
        model("R2"),
        text("R2", "B", "Fine."),
        end(),
    ];
    denied(scene(answered)).gives(r#"
            RUN_STARTED
            TOOL_CALL_RESULT messageId=id-1 toolCallId=c1 content="denied by user" role=tool metadata={"agentscope.state":"denied"}
            TEXT_MESSAGE_START messageId=id-2 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-2 delta=Fine.
            TEXT_MESSAGE_END messageId=id-2
            RUN_FINISHED outcome={"type":"success"}
        "#);
}

#[test]
fn a_cancelled_ask_is_a_denial() {
    scene([start(), end()])
        .resumes(&asked(), json!([{ "interruptId": "R1:c1", "status": "cancelled" }]))
        .input("messages", history("delete"))
        .gives(r#"
            RUN_STARTED
            TOOL_CALL_RESULT messageId=id-1 toolCallId=c1 content="Permission denied by user" role=tool metadata={"agentscope.state":"denied"}
            RUN_FINISHED outcome={"type":"success"}
        "#);
}

#[test]
fn an_external_result_is_sent_by_the_resumed_run() {
    let echo = || {
        event(Kind::ExternalExecutionResult {
            reply: "R1".into(),
            results: vec![ExternalResult {
                call_id: "c1".into(),
                name: "deploy".into(),
                output: vec![Block::Text { text: "live".into() }],
                state: ResultState::Success,
            }],
        })
    };
    let resolved = json!([{ "interruptId": "R1:c1", "status": "resolved", "payload": "live" }]);
    for events in [vec![start(), echo(), model("R2"), end()], vec![start(), model("R2"), end()]] {
        let mut scene = scene([]);
        scene.events = events;
        scene.resumes(&waiting(), resolved.clone()).input("messages", history("deploy")).gives(
            r#"
            RUN_STARTED
            TOOL_CALL_RESULT messageId=id-1 toolCallId=c1 content=live role=tool
            RUN_FINISHED outcome={"type":"success"}
        "#,
        );
    }
}

#[test]
fn a_cancelled_external_call_is_interrupted() {
    scene([start(), end()])
        .resumes(&waiting(), json!([{ "interruptId": "R1:c1", "status": "cancelled" }]))
        .input("messages", history("deploy"))
        .gives(r#"
            RUN_STARTED
            TOOL_CALL_RESULT messageId=id-1 toolCallId=c1 content="Interrupt cancelled by user" role=tool metadata={"agentscope.state":"interrupted"}
            RUN_FINISHED outcome={"type":"success"}
        "#);
}

#[test]
fn a_python_resume_goes_on_with_the_result() {
    let events = [output("c1", "live"), result_end("c1"), model("R2"), end()];
    scene(events)
        .resumes(
            &waiting(),
            json!([{ "interruptId": "R1:c1", "status": "resolved", "payload": "live" }]),
        )
        .input("messages", history("deploy"))
        .gives(
            r#"
            RUN_STARTED
            TOOL_CALL_RESULT messageId=id-1 toolCallId=c1 content=live role=tool
            RUN_FINISHED outcome={"type":"success"}
        "#,
        );
}

#[test]
fn the_clients_own_tool_message_is_not_repeated_as_a_result() {
    let first = scene([start(), outside("R1", &[listed("c1", "pick", "{}")]), end()])
        .frontend_tool()
        .with(|options| options.frontend_tool_outcome = FrontendToolOutcome::Interrupt)
        .run()
        .1;
    let mut messages = history("pick");
    let answer = json!({ "id": "m2", "role": "tool", "toolCallId": "c1", "content": "red" });
    messages.as_array_mut().expect("list").push(answer);
    scene([start(), text("R2", "B", "Red it is."), end()])
        .frontend_tool()
        .resumes(
            &first.open,
            json!([{ "interruptId": "R1:c1", "status": "resolved", "payload": "red" }]),
        )
        .input("messages", messages)
        .gives(
            r#"
            RUN_STARTED
            TEXT_MESSAGE_START messageId=id-1 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-1 delta="Red it is."
            TEXT_MESSAGE_END messageId=id-1
            RUN_FINISHED outcome={"type":"success"}
        "#,
        );
}

#[test]
fn after_its_answer_the_id_of_a_resumed_call_is_another_call() {
    let events = [
        start(),
        output("c1", "gone"),
        result_end("c1"),
        model("R2"),
        call("R2", "c1", "delete"),
        output("c1", "again"),
        result_end("c1"),
        end(),
    ];
    scene(events)
        .resumes(&asked(), approve(json!({ "approved": true })))
        .input("messages", history("delete"))
        .gives(
            r#"
            RUN_STARTED
            TOOL_CALL_RESULT messageId=id-1 toolCallId=c1 content=gone role=tool
            TOOL_CALL_START toolCallId=id-2 toolCallName=delete parentMessageId=id-3
            TOOL_CALL_END toolCallId=id-2
            TOOL_CALL_RESULT messageId=id-4 toolCallId=id-2 content=again role=tool
            RUN_FINISHED outcome={"type":"success"}
        "#,
        );
}

#[test]
fn a_childs_call_under_the_id_of_a_resumed_one_is_its_own() {
    let child = |event| of("main/a", event);
    let events = [
        start(),
        child(start()),
        child(call("R5", "c1", "delete")),
        child(output("c1", "childs")),
        child(result_end("c1")),
        child(end()),
        output("c1", "roots"),
        result_end("c1"),
        end(),
    ];
    scene(events)
        .resumes(&asked(), approve(json!({ "approved": true })))
        .input("messages", history("delete"))
        .gives(r#"
            RUN_STARTED
            SUBAGENT_STARTED subagentRunId=id-1 name=helper
            TOOL_CALL_START toolCallId=id-2 toolCallName=delete parentMessageId=id-3 subagentRunId=id-1
            TOOL_CALL_END toolCallId=id-2 subagentRunId=id-1
            TOOL_CALL_RESULT messageId=id-4 toolCallId=id-2 content=childs role=tool subagentRunId=id-1
            SUBAGENT_FINISHED subagentRunId=id-1
            TOOL_CALL_RESULT messageId=id-5 toolCallId=c1 content=roots role=tool
            RUN_FINISHED outcome={"type":"success"}
        "#);
}

#[test]
fn a_child_goes_on_under_its_own_id() {
    let child = |event| of("main/a", event);
    let first =
        scene([start(), child(start()), child(ask("R1", &[listed("c1", "delete", "{}")])), end()]);
    let open = first.run().1.open;
    let mut messages = history("delete");
    messages[1]["subagentRunId"] = json!("id-1");
    let events = [
        start(),
        child(start()),
        child(output("c1", "gone")),
        child(result_end("c1")),
        child(end()),
        end(),
    ];
    scene(events)
        .resumes(&open, approve(json!({ "approved": true })))
        .input("messages", messages.clone())
        .gives(
            r#"
            RUN_STARTED
            SUBAGENT_STARTED subagentRunId=id-1 name=helper
            TOOL_CALL_RESULT messageId=id-1 toolCallId=c1 content=gone role=tool subagentRunId=id-1
            SUBAGENT_FINISHED subagentRunId=id-1
            RUN_FINISHED outcome={"type":"success"}
        "#,
        );
    // The child does not come back: its call is answered all the same.
    scene([start(), end()])
        .resumes(&open, approve(json!({ "approved": false })))
        .input("messages", messages)
        .gives(r#"
            RUN_STARTED
            TOOL_CALL_RESULT messageId=id-1 toolCallId=c1 content="Permission denied by user" role=tool subagentRunId=id-1 metadata={"agentscope.state":"denied"}
            RUN_FINISHED outcome={"type":"success"}
        "#);
}
