//! Tool calls and their results.

use agui_adapter::model::{
    AgentEventKind as Kind,
    event::{DataChunk, ResultData, ResultState},
};
use serde_json::json;

use super::scene::*;

#[test]
fn arguments_are_passed_on_byte_for_byte() {
    let events = || {
        [
            start(),
            call("R1", "c1", "weather"),
            args("c1", "{\"city\""),
            args("c1", ":\"Oslo\""),
            args("c1", "}"),
            call_end("c1"),
            result_start("c1", "weather"),
            output("c1", "sun"),
            result_end("c1"),
            end(),
        ]
    };
    scene(events()).gives(
        r#"
            RUN_STARTED
            TOOL_CALL_START toolCallId=c1 toolCallName=weather parentMessageId=id-1
            TOOL_CALL_ARGS toolCallId=c1 delta="{\"city\""
            TOOL_CALL_ARGS toolCallId=c1 delta=":\"Oslo\""
            TOOL_CALL_ARGS toolCallId=c1 delta=}
            TOOL_CALL_END toolCallId=c1
            TOOL_CALL_RESULT messageId=id-2 toolCallId=c1 content=sun role=tool
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
    scene(events()).with(|options| options.emit_tool_call_args = false).gives(
        r#"
            RUN_STARTED
            TOOL_CALL_START toolCallId=c1 toolCallName=weather parentMessageId=id-1
            TOOL_CALL_END toolCallId=c1
            TOOL_CALL_RESULT messageId=id-2 toolCallId=c1 content=sun role=tool
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn a_call_without_arguments_gets_none() {
    scene([start(), call("R1", "c1", "now"), call_end("c1"), result_end("c1"), end()]).gives(
        r#"
            RUN_STARTED
            TOOL_CALL_START toolCallId=c1 toolCallName=now parentMessageId=id-1
            TOOL_CALL_END toolCallId=c1
            TOOL_CALL_RESULT messageId=id-2 toolCallId=c1 content= role=tool
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn a_repeated_start_or_end_is_the_same_call() {
    let events = [
        start(),
        call("R1", "c1", "find"),
        args("c1", "{\"q\":1}"),
        call_end("c1"),
        call("R1", "c1", "find"),
        call_end("c1"),
        result_start("c1", "find"),
        call("R1", "c1", "find"),
        output("c1", "x"),
        result_end("c1"),
        end(),
    ];
    scene(events).gives(
        r#"
            RUN_STARTED
            TOOL_CALL_START toolCallId=c1 toolCallName=find parentMessageId=id-1
            TOOL_CALL_ARGS toolCallId=c1 delta="{\"q\":1}"
            TOOL_CALL_END toolCallId=c1
            TOOL_CALL_RESULT messageId=id-2 toolCallId=c1 content=x role=tool
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn arguments_of_a_call_that_was_never_started_are_left_out() {
    scene([start(), args("c9", "{}"), call_end("c9"), end()]).gives(
        r#"
            RUN_STARTED
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn interleaved_calls_stay_in_order_and_end_in_start_order() {
    let events = [
        start(),
        call("R1", "c1", "a"),
        call("R1", "c2", "b"),
        args("c1", "1"),
        call_end("c1"),
        call("R1", "c1", "a"),
        args("c2", "2"),
        call_end("c2"),
        args("c1", "1"),
        call_end("c1"),
        model_end("R1"),
        result_start("c1", "a"),
        result_start("c2", "b"),
        output("c2", "two"),
        output("c1", "on"),
        result_end("c2"),
        output("c1", "e"),
        result_end("c1"),
        end(),
    ];
    scene(events).gives(
        r#"
            RUN_STARTED
            TOOL_CALL_START toolCallId=c1 toolCallName=a parentMessageId=id-1
            TOOL_CALL_START toolCallId=c2 toolCallName=b parentMessageId=id-1
            TOOL_CALL_ARGS toolCallId=c1 delta=1
            TOOL_CALL_ARGS toolCallId=c2 delta=2
            TOOL_CALL_ARGS toolCallId=c1 delta=1
            TOOL_CALL_END toolCallId=c1
            TOOL_CALL_END toolCallId=c2
            TOOL_CALL_RESULT messageId=id-2 toolCallId=c2 content=two role=tool
            TOOL_CALL_RESULT messageId=id-3 toolCallId=c1 content=one role=tool
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn a_result_before_the_calls_end_closes_the_call() {
    scene([start(), call("R1", "c1", "a"), output("c1", "x"), result_end("c1"), end()]).gives(
        r#"
            RUN_STARTED
            TOOL_CALL_START toolCallId=c1 toolCallName=a parentMessageId=id-1
            TOOL_CALL_END toolCallId=c1
            TOOL_CALL_RESULT messageId=id-2 toolCallId=c1 content=x role=tool
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn results_are_exact_text() {
    let result = |id: &str, parts: [&str; 2]| {
        [
            call("R", id, "f"),
            call_end(id),
            output(id, parts[0]),
            output(id, parts[1]),
            result_end(id),
        ]
    };
    let [a, b, c, d, e] = result("c1", ["Transferred.", ""]);
    let [f, g, h, i, j] = result("c2", ["{\"a\":", "[1,2]}"]);
    let [k, l, m, n, o] = result("c3", ["", ""]);
    scene([start(), a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, end()]).gives(
        r#"
            RUN_STARTED
            TOOL_CALL_START toolCallId=c1 toolCallName=f parentMessageId=id-1
            TOOL_CALL_END toolCallId=c1
            TOOL_CALL_RESULT messageId=id-2 toolCallId=c1 content=Transferred. role=tool
            TOOL_CALL_START toolCallId=c2 toolCallName=f parentMessageId=id-3
            TOOL_CALL_END toolCallId=c2
            TOOL_CALL_RESULT messageId=id-4 toolCallId=c2 content="{\"a\":[1,2]}" role=tool
            TOOL_CALL_START toolCallId=c3 toolCallName=f parentMessageId=id-5
            TOOL_CALL_END toolCallId=c3
            TOOL_CALL_RESULT messageId=id-6 toolCallId=c3 content= role=tool
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn results_of_one_reply_have_messages_of_their_own() {
    let events = [
        start(),
        call("R1", "c1", "a"),
        call("R1", "c2", "a"),
        output("c1", "A"),
        output("c2", "B"),
        result_end("c1"),
        result_end("c2"),
        end(),
    ];
    scene(events).gives(
        r#"
            RUN_STARTED
            TOOL_CALL_START toolCallId=c1 toolCallName=a parentMessageId=id-1
            TOOL_CALL_START toolCallId=c2 toolCallName=a parentMessageId=id-1
            TOOL_CALL_END toolCallId=c1
            TOOL_CALL_RESULT messageId=id-2 toolCallId=c1 content=A role=tool
            TOOL_CALL_END toolCallId=c2
            TOOL_CALL_RESULT messageId=id-3 toolCallId=c2 content=B role=tool
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn a_result_other_than_success_says_so() {
    let events = [
        start(),
        call("R1", "c1", "a"),
        output("c1", "no"),
        result_end_as("c1", ResultState::Error),
        end(),
    ];
    scene(events).gives(r#"
            RUN_STARTED
            TOOL_CALL_START toolCallId=c1 toolCallName=a parentMessageId=id-1
            TOOL_CALL_END toolCallId=c1
            TOOL_CALL_RESULT messageId=id-2 toolCallId=c1 content=no role=tool metadata={"agentscope.state":"error"}
            RUN_FINISHED outcome={"type":"success"}
        "#);
}

#[test]
fn a_result_of_a_call_that_nobody_started_gets_its_call() {
    scene([start(), result_start("c1", "find"), output("c1", "x"), result_end("c1"), end()]).gives(
        r#"
            RUN_STARTED
            TOOL_CALL_START toolCallId=c1 toolCallName=find parentMessageId=id-1
            TOOL_CALL_END toolCallId=c1
            TOOL_CALL_RESULT messageId=id-2 toolCallId=c1 content=x role=tool
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

fn picture(data: DataChunk, media_type: Option<&str>) -> ResultData {
    ResultData::Media { kind: None, media_type: media_type.map(str::to_owned), name: None, data }
}

#[test]
fn media_in_a_result_makes_parts_in_their_order() {
    let data = |block: &str, data| {
        event(Kind::ToolResultDataDelta { call: "c1".into(), block: Some(block.into()), data })
    };
    let events = || {
        [
            start(),
            call("R1", "c1", "draw"),
            output("c1", "here: "),
            data("p", picture(DataChunk::Base64("QUJ".into()), Some("image/png"))),
            data("p", picture(DataChunk::Base64("D".into()), None)),
            data("u", picture(DataChunk::Url("https://x/y.pdf".into()), None)),
            output("c1", "done"),
            result_end("c1"),
            end(),
        ]
    };
    scene(events()).gives(r#"
            RUN_STARTED
            TOOL_CALL_START toolCallId=c1 toolCallName=draw parentMessageId=id-1
            TOOL_CALL_END toolCallId=c1
            TOOL_CALL_RESULT messageId=id-2 toolCallId=c1 content=[{"type":"text","text":"here: "},{"type":"image","source":{"type":"data","value":"QUJD","mimeType":"image/png"}},{"type":"document","source":{"type":"url","value":"https://x/y.pdf"}},{"type":"text","text":"done"}] role=tool
            RUN_FINISHED outcome={"type":"success"}
        "#);
    scene(events()).legacy().gives(
        r#"
            RUN_STARTED
            TOOL_CALL_START toolCallId=c1 toolCallName=draw parentMessageId=id-1
            TOOL_CALL_END toolCallId=c1
            TOOL_CALL_RESULT messageId=id-2 toolCallId=c1 content="here: done" role=tool
            RUN_FINISHED
        "#,
    );
}

#[test]
fn text_in_a_data_delta_begins_a_line() {
    let data = event(Kind::ToolResultDataDelta {
        call: "c1".into(),
        block: None,
        data: ResultData::Text("structured".into()),
    });
    scene([
        start(),
        call("R1", "c1", "f"),
        output("c1", "hel"),
        data,
        output("c1", "lo"),
        result_end("c1"),
        end(),
    ])
    .gives(
        r#"
            RUN_STARTED
            TOOL_CALL_START toolCallId=c1 toolCallName=f parentMessageId=id-1
            TOOL_CALL_END toolCallId=c1
            TOOL_CALL_RESULT messageId=id-2 toolCallId=c1 content="hel\nstructuredlo" role=tool
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn an_id_used_again_by_a_later_model_call_is_another_call() {
    let events = [
        start(),
        model("R1"),
        call("R1", "call_0", "a"),
        args("call_0", "1"),
        model_end("R1"),
        output("call_0", "one"),
        result_end("call_0"),
        model("R2"),
        call("R2", "call_0", "a"),
        args("call_0", "2"),
        model_end("R2"),
        output("call_0", "two"),
        result_end("call_0"),
        end(),
    ];
    scene(events).gives(
        r#"
            RUN_STARTED
            TOOL_CALL_START toolCallId=call_0 toolCallName=a parentMessageId=id-1
            TOOL_CALL_ARGS toolCallId=call_0 delta=1
            TOOL_CALL_END toolCallId=call_0
            TOOL_CALL_RESULT messageId=id-2 toolCallId=call_0 content=one role=tool
            TOOL_CALL_START toolCallId=id-3 toolCallName=a parentMessageId=id-4
            TOOL_CALL_ARGS toolCallId=id-3 delta=2
            TOOL_CALL_END toolCallId=id-3
            TOOL_CALL_RESULT messageId=id-5 toolCallId=id-3 content=two role=tool
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn an_id_that_an_earlier_run_used_is_replaced() {
    let history = json!([
        { "id": "u1", "role": "user", "content": "hi" },
        { "id": "m1", "role": "assistant", "toolCalls": [
            { "id": "call_0", "type": "function", "function": { "name": "a", "arguments": "{}" } },
        ] },
        { "id": "m2", "role": "tool", "toolCallId": "call_0", "content": "old" },
    ]);
    let events = [
        start(),
        call("R1", "call_0", "a"),
        args("call_0", "{}"),
        output("call_0", "new"),
        result_end("call_0"),
        end(),
    ];
    scene(events).input("messages", history).gives(
        r#"
            RUN_STARTED
            TOOL_CALL_START toolCallId=id-1 toolCallName=a parentMessageId=id-2
            TOOL_CALL_ARGS toolCallId=id-1 delta={}
            TOOL_CALL_END toolCallId=id-1
            TOOL_CALL_RESULT messageId=id-3 toolCallId=id-1 content=new role=tool
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn blank_ids_are_replaced_and_one_blank_call_follows_another() {
    let events = [
        start(),
        call("R1", "", "a"),
        args("", "1"),
        call_end(""),
        output("", "one"),
        result_end(""),
        call("R1", "", "b"),
        args("", "2"),
        call_end(""),
        output("", "two"),
        result_end(""),
        end(),
    ];
    scene(events).gives(
        r#"
            RUN_STARTED
            TOOL_CALL_START toolCallId=id-1 toolCallName=a parentMessageId=id-2
            TOOL_CALL_ARGS toolCallId=id-1 delta=1
            TOOL_CALL_END toolCallId=id-1
            TOOL_CALL_RESULT messageId=id-3 toolCallId=id-1 content=one role=tool
            TOOL_CALL_START toolCallId=id-4 toolCallName=b parentMessageId=id-5
            TOOL_CALL_ARGS toolCallId=id-4 delta=2
            TOOL_CALL_END toolCallId=id-4
            TOOL_CALL_RESULT messageId=id-6 toolCallId=id-4 content=two role=tool
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn a_call_of_the_clients_tool_stays_pending() {
    let events = || {
        [
            start(),
            call("R1", "c1", "pick"),
            args("c1", "{}"),
            call_end("c1"),
            result_start("c1", "pick"),
            result_end_as("c1", ResultState::Running),
            outside("R1", &[listed("c1", "pick", "{}")]),
            end(),
        ]
    };
    let end = scene(events()).frontend_tool().gives(
        r#"
            RUN_STARTED
            TOOL_CALL_START toolCallId=c1 toolCallName=pick parentMessageId=id-1
            TOOL_CALL_ARGS toolCallId=c1 delta={}
            TOOL_CALL_END toolCallId=c1
            RUN_FINISHED outcome={"type":"success","pendingToolCallIds":["c1"]}
        "#,
    );
    assert!(end.open.is_empty() && end.deferred.is_empty());
    scene(events()).frontend_tool().legacy().gives(
        r#"
            RUN_STARTED
            TOOL_CALL_START toolCallId=c1 toolCallName=pick parentMessageId=id-1
            TOOL_CALL_ARGS toolCallId=c1 delta={}
            TOOL_CALL_END toolCallId=c1
            RUN_FINISHED
        "#,
    );
}
