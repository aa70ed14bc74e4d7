//! Text and thinking.

use agui_adapter::model::AgentEventKind as Kind;
use serde_json::json;

use super::scene::*;

#[test]
fn blocks_without_a_character_give_nothing() {
    let events = [
        start(),
        text_start("R1", "B1"),
        text("R1", "B1", ""),
        text_end("R1", "B1"),
        think("R1", "K", ""),
        think_end("R1", "K"),
        end(),
    ];
    scene(events).reasoning().gives(
        r#"
            RUN_STARTED
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn the_first_character_opens_the_message_without_a_block_start() {
    let events = [
        start(),
        text("R1", "B1", "hel"),
        text("R1", "B1", ""),
        text("R1", "B1", "lo"),
        text_end("R1", "B1"),
        end(),
    ];
    scene(events).gives(
        r#"
            RUN_STARTED
            TEXT_MESSAGE_START messageId=id-1 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-1 delta=hel
            TEXT_MESSAGE_CONTENT messageId=id-1 delta=lo
            TEXT_MESSAGE_END messageId=id-1
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn text_after_a_result_is_another_message_and_calls_hang_on_the_text_before_them() {
    let tool = |id: &str| {
        [
            call("R1", id, "find"),
            call_end(id),
            result_start(id, "find"),
            output(id, "x"),
            result_end(id),
        ]
    };
    let [a, b, c, d, e] = tool("c1");
    let [f, g, h, i, j] = tool("c2");
    let events = [
        start(),
        text("R1", "B1", "one "),
        a,
        b,
        c,
        d,
        e,
        text("R1", "B1", "two "),
        f,
        g,
        h,
        i,
        j,
        text("R1", "B1", "three"),
        end(),
    ];
    scene(events).gives(
        r#"
            RUN_STARTED
            TEXT_MESSAGE_START messageId=id-1 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-1 delta="one "
            TEXT_MESSAGE_END messageId=id-1
            TOOL_CALL_START toolCallId=c1 toolCallName=find parentMessageId=id-1
            TOOL_CALL_END toolCallId=c1
            TOOL_CALL_RESULT messageId=id-2 toolCallId=c1 content=x role=tool
            TEXT_MESSAGE_START messageId=id-3 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-3 delta="two "
            TEXT_MESSAGE_END messageId=id-3
            TOOL_CALL_START toolCallId=c2 toolCallName=find parentMessageId=id-3
            TOOL_CALL_END toolCallId=c2
            TOOL_CALL_RESULT messageId=id-4 toolCallId=c2 content=x role=tool
            TEXT_MESSAGE_START messageId=id-5 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-5 delta=three
            TEXT_MESSAGE_END messageId=id-5
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn text_closes_before_a_call_opens() {
    let events = [
        start(),
        text("R1", "B1", "Looking "),
        call("R1", "c1", "find"),
        args("c1", "{}"),
        call_end("c1"),
        end(),
    ];
    scene(events).excuse(&["TOOL-15"]).gives(
        r#"
            RUN_STARTED
            TEXT_MESSAGE_START messageId=id-1 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-1 delta="Looking "
            TEXT_MESSAGE_END messageId=id-1
            TOOL_CALL_START toolCallId=c1 toolCallName=find parentMessageId=id-1
            TOOL_CALL_ARGS toolCallId=c1 delta={}
            TOOL_CALL_END toolCallId=c1
            RUN_FINISHED outcome={"type":"success","pendingToolCallIds":["c1"]}
        "#,
    );
}

#[test]
fn two_blocks_at_once_stay_apart() {
    let events = [
        start(),
        text("RA", "A", "a1"),
        text("RB", "B", "b1"),
        text("RA", "A", "a2"),
        text("RB", "B", "b2"),
        end(),
    ];
    scene(events).gives(
        r#"
            RUN_STARTED
            TEXT_MESSAGE_START messageId=id-1 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-1 delta=a1
            TEXT_MESSAGE_START messageId=id-2 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-2 delta=b1
            TEXT_MESSAGE_CONTENT messageId=id-1 delta=a2
            TEXT_MESSAGE_CONTENT messageId=id-2 delta=b2
            TEXT_MESSAGE_END messageId=id-1
            TEXT_MESSAGE_END messageId=id-2
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn a_reopened_block_id_is_another_message() {
    let events = [
        start(),
        text("R1", "text", "one"),
        text_end("R1", "text"),
        text_start("R1", "text"),
        text("R1", "text", "two"),
        text_start("R1", "text"),
        text("R1", "text", "three"),
        text_end("R1", "text"),
        end(),
    ];
    scene(events).gives(
        r#"
            RUN_STARTED
            TEXT_MESSAGE_START messageId=id-1 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-1 delta=one
            TEXT_MESSAGE_END messageId=id-1
            TEXT_MESSAGE_START messageId=id-2 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-2 delta=two
            TEXT_MESSAGE_END messageId=id-2
            TEXT_MESSAGE_START messageId=id-3 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-3 delta=three
            TEXT_MESSAGE_END messageId=id-3
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn thinking_is_silent_unless_it_is_switched_on() {
    let events = || {
        [start(), think("R1", "K", "SECRET"), think_end("R1", "K"), text("R1", "B1", "hi"), end()]
    };
    scene(events()).gives(
        r#"
            RUN_STARTED
            TEXT_MESSAGE_START messageId=id-1 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-1 delta=hi
            TEXT_MESSAGE_END messageId=id-1
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
    scene(events()).reasoning().gives(
        r#"
            RUN_STARTED
            REASONING_START messageId=id-1
            REASONING_MESSAGE_START messageId=id-1 role=reasoning
            REASONING_MESSAGE_CONTENT messageId=id-1 delta=SECRET
            REASONING_MESSAGE_END messageId=id-1
            REASONING_END messageId=id-1
            TEXT_MESSAGE_START messageId=id-2 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-2 delta=hi
            TEXT_MESSAGE_END messageId=id-2
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn hidden_thinking_is_not_in_raw_either() {
    let mut unknown = event(Kind::Unknown { type_name: "NEW".into() });
    let raw = json!({
        "type": "NEW",
        "thinking": "SECRET",
        "content": [{ "type": "thinking", "thinking": "SECRET" }, { "type": "text", "text": "ok" }],
        "hint": "SECRET",
    });
    unknown.raw = Some(raw.into());
    scene([start(), unknown, end()]).gives(
        r#"
            RUN_STARTED
            RAW event={"type":"NEW","content":[{"type":"text","text":"ok"}]}
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn thinking_and_text_take_turns() {
    let events = [
        start(),
        think("R1", "K", "a"),
        text("R1", "B", "b"),
        think("R1", "K", "c"),
        call("R1", "c1", "find"),
        end(),
    ];
    scene(events).reasoning().excuse(&["TOOL-15"]).gives(
        r#"
            RUN_STARTED
            REASONING_START messageId=id-1
            REASONING_MESSAGE_START messageId=id-1 role=reasoning
            REASONING_MESSAGE_CONTENT messageId=id-1 delta=a
            REASONING_MESSAGE_END messageId=id-1
            REASONING_END messageId=id-1
            TEXT_MESSAGE_START messageId=id-2 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-2 delta=b
            TEXT_MESSAGE_END messageId=id-2
            REASONING_START messageId=id-3
            REASONING_MESSAGE_START messageId=id-3 role=reasoning
            REASONING_MESSAGE_CONTENT messageId=id-3 delta=c
            REASONING_MESSAGE_END messageId=id-3
            REASONING_END messageId=id-3
            TOOL_CALL_START toolCallId=c1 toolCallName=find parentMessageId=id-2
            TOOL_CALL_END toolCallId=c1
            RUN_FINISHED outcome={"type":"success","pendingToolCallIds":["c1"]}
        "#,
    );
}

#[test]
fn an_opaque_artefact_stands_inside_the_reasoning() {
    let end_block = event(Kind::ThinkingBlockEnd {
        reply: "R1".into(),
        block: "K".into(),
        encrypted: Some("opaque".into()),
    });
    scene([start(), think("R1", "K", "a"), end_block.clone(), end()]).reasoning().gives(
        r#"
            RUN_STARTED
            REASONING_START messageId=id-1
            REASONING_MESSAGE_START messageId=id-1 role=reasoning
            REASONING_MESSAGE_CONTENT messageId=id-1 delta=a
            REASONING_MESSAGE_END messageId=id-1
            REASONING_ENCRYPTED_VALUE subtype=message entityId=id-1 encryptedValue=opaque
            REASONING_END messageId=id-1
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
    scene([start(), end_block, end()]).reasoning().gives(
        r#"
            RUN_STARTED
            REASONING_START messageId=id-1
            REASONING_MESSAGE_START messageId=id-1 role=reasoning
            REASONING_MESSAGE_END messageId=id-1
            REASONING_ENCRYPTED_VALUE subtype=message entityId=id-1 encryptedValue=opaque
            REASONING_END messageId=id-1
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn pythons_final_text_adds_what_was_not_streamed() {
    let finish = |final_text: &str| {
        python(event(Kind::TextBlockEnd {
            reply: "R1".into(),
            block: "B".into(),
            text: Some(final_text.into()),
        }))
    };
    let streamed = || python(text("R1", "B", "hel"));
    scene([start(), streamed(), finish("hello"), end()]).gives(
        r#"
            RUN_STARTED
            TEXT_MESSAGE_START messageId=id-1 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-1 delta=hel
            TEXT_MESSAGE_CONTENT messageId=id-1 delta=lo
            TEXT_MESSAGE_END messageId=id-1
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
    scene([start(), streamed(), finish("other"), end()]).gives(
        r#"
            RUN_STARTED
            TEXT_MESSAGE_START messageId=id-1 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-1 delta=hel
            TEXT_MESSAGE_END messageId=id-1
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
    scene([start(), finish("whole"), end()]).gives(
        r#"
            RUN_STARTED
            TEXT_MESSAGE_START messageId=id-1 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-1 delta=whole
            TEXT_MESSAGE_END messageId=id-1
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn the_result_message_speaks_only_where_nothing_was_streamed() {
    let streamed = [
        start(),
        model("R1"),
        text("R1", "B", "hello"),
        text_end("R1", "B"),
        model_end("R1"),
        result_message("MODEL_STOP", "hello"),
        end(),
    ];
    scene(streamed).gives(
        r#"
            RUN_STARTED
            TEXT_MESSAGE_START messageId=id-1 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-1 delta=hello
            TEXT_MESSAGE_END messageId=id-1
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
    scene([start(), model("R1"), model_end("R1"), result_message("MODEL_STOP", "hello"), end()])
        .gives(
            r#"
            RUN_STARTED
            TEXT_MESSAGE_START messageId=id-1 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-1 delta=hello
            TEXT_MESSAGE_END messageId=id-1
            RUN_FINISHED outcome={"type":"success"}
        "#,
        );
    let later = [
        start(),
        model("R1"),
        text("R1", "B", "let me see"),
        model_end("R1"),
        model("R2"),
        model_end("R2"),
        result_message("MODEL_STOP", "done"),
        end(),
    ];
    scene(later).gives(
        r#"
            RUN_STARTED
            TEXT_MESSAGE_START messageId=id-1 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-1 delta="let me see"
            TEXT_MESSAGE_START messageId=id-2 role=assistant
            TEXT_MESSAGE_CONTENT messageId=id-2 delta=done
            TEXT_MESSAGE_END messageId=id-2
            TEXT_MESSAGE_END messageId=id-1
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}

#[test]
fn only_labelled_hints_are_shown() {
    let hint = |label: Option<&str>| {
        event(Kind::HintBlock {
            label: label.map(str::to_owned),
            sublabel: None,
            text: "remember".into(),
        })
    };
    scene([start(), hint(None), hint(Some("System")), hint(Some("team")), end()]).gives(
        r#"
            RUN_STARTED
            CUSTOM name=agentscope.hint value={"label":"team","text":"remember"}
            RUN_FINISHED outcome={"type":"success"}
        "#,
    );
}
