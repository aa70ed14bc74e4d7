use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::model::event::{
    ActivityChange, Call, DataChunk, EndReason, Failure, ModelUsage, ResultData, ResultState,
    StateChange, StepPhase,
};
use crate::model::msg::{Block, MediaKind, MediaSource};
use AgentEventKind as Kind;

fn read(value: Value) -> Result<AgentEvent, WireError> {
    decode_value(value, DecodeOptions::default())
}

fn kind(value: Value) -> Kind {
    read(value).unwrap().kind
}

#[test]
fn aliases_stand_for_their_types() {
    for (alias, canonical) in [
        ("RUN_STARTED", "AGENT_START"),
        ("REPLY_START", "AGENT_START"),
        ("RUN_FINISHED", "AGENT_END"),
        ("REPLY_END", "AGENT_END"),
        ("MODEL_CALL_STARTED", "MODEL_CALL_START"),
        ("MODEL_CALL_ENDED", "MODEL_CALL_END"),
        ("BINARY_BLOCK_START", "DATA_BLOCK_START"),
        ("BINARY_BLOCK_DELTA", "DATA_BLOCK_DELTA"),
        ("BINARY_BLOCK_END", "DATA_BLOCK_END"),
        ("TOOL_RESULT_BINARY_DELTA", "TOOL_RESULT_DATA_DELTA"),
        ("THREAD_EXPOSED", "SUBAGENT_EXPOSED"),
    ] {
        let event = json!({"type": alias, "replyId": "r", "delta": "d", "data": "d"});
        assert_eq!(read(event).unwrap().event_type().as_str(), canonical, "{alias}");
    }
}

#[test]
fn both_spellings_are_read_on_both_wires() {
    let expected = Kind::TextBlockDelta { reply: "r".into(), block: "b".into(), delta: "d".into() };
    for event in [
        json!({"type": "TEXT_BLOCK_DELTA", "reply_id": "r", "block_id": "b", "delta": "d"}),
        json!({"type": "TEXT_BLOCK_DELTA", "replyId": "r", "blockId": "b", "delta": "d"}),
        json!({"type": "TEXT_BLOCK_DELTA", "reply_id": "r", "blockId": "b", "delta": "d"}),
        json!({"type": "TEXT_BLOCK_DELTA", "replyId": "r", "block_id": "b", "delta": "d", "x": 1}),
        json!({"type": "TEXT_BLOCK_DELTA", "reply_id": null, "replyId": "r", "block_id": null,
               "blockId": "b", "delta": "d"}),
    ] {
        assert_eq!(kind(event), expected);
    }
}

#[test]
fn the_wire_is_told_by_spelling_then_by_type() {
    let origin = |value| read(value).unwrap().origin;
    assert_eq!(origin(json!({"type": "AGENT_END", "reply_id": "r"})), Origin::Python);
    assert_eq!(origin(json!({"type": "REPLY_END", "replyId": "r"})), Origin::Java);
    assert_eq!(origin(json!({"type": "REPLY_END"})), Origin::Python);
    assert_eq!(origin(json!({"type": "AGENT_END"})), Origin::Java);
    assert_eq!(origin(json!({"type": "NEW", "some_key": 1})), Origin::Python);
    assert_eq!(origin(json!({"type": "NEW", "someKey": 1})), Origin::Java);
}

#[test]
fn no_form_of_time_is_refused() {
    for time in [
        json!("2026-11-30T02:01:09.787418892Z"),
        json!("2026-11-30T02:07:43.151403"),
        json!("2026-11-30T02:07:43"),
        json!("yesterday"),
        json!(1_796_000_000),
        json!(null),
    ] {
        let event = json!({"type": "TEXT_BLOCK_START", "created_at": time, "createdAt": time});
        assert!(read(event).is_ok());
    }
}

#[test]
fn the_last_of_two_types_counts() {
    let event =
        decode(r#"{"type":"NEW","blockId":"b","type":"DATA_BLOCK_END"}"#, DecodeOptions::default());
    assert_eq!(event.unwrap().kind, Kind::DataBlockEnd { reply: String::new(), block: "b".into() });
}

#[test]
fn unknown_types_keep_everything() {
    let wire = json!({"type": "NEW", "source": "main/a", "metadata": {"taskId": "t"}, "x": [1]});
    assert_eq!(
        read(wire.clone()),
        Ok(AgentEvent {
            origin: Origin::Java,
            source: Some("main/a".into()),
            metadata: json!({"taskId": "t"}).as_object().cloned().unwrap(),
            kind: Kind::Unknown { type_name: "NEW".into() },
            raw: Some(Arc::new(wire)),
        })
    );
    for odd in ["UNKNOWN", "agui.state", "USER_INTERRUPT", ""] {
        let event = read(json!({"type": odd})).unwrap();
        assert_eq!(event.kind, Kind::Unknown { type_name: odd.into() });
    }
}

#[test]
fn errors_name_the_field_and_never_what_is_in_it() {
    let error = |value: Value| read(value).unwrap_err().to_string();
    assert_eq!(error(json!([1])), "agent event is not a JSON object");
    assert_eq!(error(json!({"typ": "X"})), "agent event has no `type`");
    assert_eq!(error(json!({"type": 3})), "agent event has no `type`");
    assert_eq!(
        decode(r#"{"type": secret"#, DecodeOptions::default()).unwrap_err().to_string(),
        "agent event is not JSON (column 10)"
    );
    for (event, message) in [
        (json!({"type": "TEXT_BLOCK_DELTA"}), "TEXT_BLOCK_DELTA lacks `delta`"),
        (
            json!({"type": "THINKING_BLOCK_DELTA", "delta": null}),
            "THINKING_BLOCK_DELTA lacks `delta`",
        ),
        (
            json!({"type": "TOOL_CALL_DELTA", "delta": 1}),
            "TOOL_CALL_DELTA has an unreadable `delta`",
        ),
        (json!({"type": "TOOL_RESULT_TEXT_DELTA"}), "TOOL_RESULT_TEXT_DELTA lacks `delta`"),
        (json!({"type": "DATA_BLOCK_DELTA"}), "DATA_BLOCK_DELTA lacks `delta`"),
        (json!({"type": "DATA_BLOCK_DELTA", "reply_id": "r"}), "DATA_BLOCK_DELTA lacks `data`"),
        (json!({"type": "TOOL_RESULT_DATA_DELTA"}), "TOOL_RESULT_DATA_DELTA lacks `data`"),
        (
            json!({"type": "TOOL_RESULT_DATA_DELTA", "data": {"type": "odd"}}),
            "TOOL_RESULT_DATA_DELTA has an unreadable `data`",
        ),
        (json!({"type": "TOOL_RESULT_END"}), "TOOL_RESULT_END lacks `state`"),
        (
            json!({"type": "TOOL_RESULT_END", "state": "odd"}),
            "TOOL_RESULT_END has an unreadable `state`",
        ),
        (
            json!({"type": "REQUIRE_USER_CONFIRM", "replyId": "r"}),
            "REQUIRE_USER_CONFIRM lacks `toolCalls`",
        ),
        (
            json!({"type": "REQUIRE_USER_CONFIRM", "reply_id": "r"}),
            "REQUIRE_USER_CONFIRM lacks `tool_calls`",
        ),
        (
            json!({"type": "REQUIRE_EXTERNAL_EXECUTION", "toolCalls": [{}, 1]}),
            "REQUIRE_EXTERNAL_EXECUTION has an unreadable `toolCalls`",
        ),
        (json!({"type": "USER_CONFIRM_RESULT"}), "USER_CONFIRM_RESULT lacks `confirmResults`"),
        (
            json!({"type": "EXTERNAL_EXECUTION_RESULT", "toolResults": 1}),
            "EXTERNAL_EXECUTION_RESULT has an unreadable `toolResults`",
        ),
        (json!({"type": "AGENT_RESULT"}), "AGENT_RESULT lacks `result`"),
        (json!({"type": "CUSTOM", "value": 1}), "CUSTOM lacks `name`"),
    ] {
        assert_eq!(error(event), format!("agent event {message}"));
    }
}

#[test]
fn missing_ids_are_empty() {
    assert_eq!(
        kind(json!({"type": "TOOL_CALL_START"})),
        Kind::ToolCallStart { reply: String::new(), call: String::new(), name: String::new() }
    );
    assert_eq!(
        kind(json!({"type": "TOOL_CALL_END", "toolCallId": 7})),
        Kind::ToolCallEnd { call: "7".into(), encrypted: None }
    );
}

#[test]
fn reasons_of_an_end() {
    let reason = |value: Value| match kind(value) {
        Kind::AgentEnd { reason, .. } => reason,
        other => panic!("{other:?}"),
    };
    let failed = |class: &str, message: &str| {
        EndReason::Failed(Failure { class: class.into(), message: message.into() })
    };
    for (finished, error, expected) in [
        (json!("completed"), json!(null), EndReason::Completed),
        (json!("interrupted"), json!(null), EndReason::Interrupted),
        (json!("exceed_max_iters"), json!(null), EndReason::MaxIterations),
        (json!("error"), json!({"type": "setup", "message": "m"}), failed("setup", "m")),
        (json!("error"), json!(null), failed("unknown", "")),
        (json!(null), json!({"type": "setup"}), failed("setup", "")),
        (json!("new"), json!(null), EndReason::Unstated),
        (json!(null), json!(null), EndReason::Unstated),
    ] {
        let end = json!({"type": "REPLY_END", "finished_reason": finished, "error": error});
        assert_eq!(reason(end), expected);
    }
}

#[test]
fn counts_that_nobody_made_are_absent() {
    let usage = |value: Value| match kind(value) {
        Kind::ModelCallEnd { usage, .. } => usage,
        other => panic!("{other:?}"),
    };
    let python = |input: u64, output: u64, read: u64, write: u64| {
        usage(json!({"type": "MODEL_CALL_END", "reply_id": "r", "input_tokens": input,
            "output_tokens": output, "cache_input_tokens": read,
            "cache_creation_input_tokens": write}))
    };
    let counted = |input, output, cache_read, cache_write| {
        Some(ModelUsage { input, output, cache_read, cache_write, ..ModelUsage::default() })
    };
    assert_eq!(python(0, 0, 0, 0), None);
    assert_eq!(python(5, 0, 0, 0), counted(Some(5), Some(0), None, None));
    assert_eq!(python(0, 5, 0, 0), counted(None, Some(5), None, None));
    assert_eq!(python(5, 6, 3, 2), counted(Some(5), Some(6), Some(3), Some(2)));
    // What stands in Java's object is a report, a zero too.
    assert_eq!(
        usage(json!({"type": "MODEL_CALL_END", "replyId": "r",
            "usage": {"inputTokens": 1, "cachedTokens": 0, "outputTokens": -1, "time": 0.5}})),
        Some(ModelUsage {
            input: Some(1),
            cache_read: Some(0),
            seconds: Some(0.5),
            ..ModelUsage::default()
        })
    );
    assert_eq!(usage(json!({"type": "MODEL_CALL_END", "replyId": "r"})), None);
}

#[test]
fn labels_of_hints() {
    let hint = |value: Value| match kind(value) {
        Kind::HintBlock { label, sublabel, text } => (label, sublabel, text),
        other => panic!("{other:?}"),
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        hint(json!({"type": "HINT_BLOCK", "reply_id": "r", "hint": "h",
            "source": "{\"label\":\"team\",\"sublabel\":\"bob\"}"})),
        (some("team"), some("bob"), "h".into())
    );
    assert_eq!(
        hint(json!({"type": "HINT_BLOCK", "reply_id": "r", "source": "plain",
            "hint": [{"type": "text", "text": "a"}, {"type": "odd"}, {"type": "text", "text": "b"}]})),
        (some("plain"), None, "a\nb".into())
    );
    // On the Java wire `source` is a child's path, for a hint as well.
    let java = json!({"type": "HINT_BLOCK", "replyId": "r", "source": "main/a",
        "hintSource": "system", "hint": "h"});
    assert_eq!(read(java.clone()).unwrap().source.as_deref(), Some("main/a"));
    assert_eq!(hint(java), (some("system"), None, "h".into()));
    assert_eq!(
        hint(json!({"type": "HINT_BLOCK", "reply_id": "r", "source": null})),
        (None, None, String::new())
    );
}

#[test]
fn reserved_names_and_what_only_looks_like_them() {
    let custom =
        |name: &str, value: Value| kind(json!({"type": "CUSTOM", "name": name, "value": value}));
    let state = |change| Kind::State { change };
    assert_eq!(custom("agui.state", json!({"set": null})), state(StateChange::Set(Value::Null)));
    assert_eq!(custom("agui.state", json!({"patch": []})), state(StateChange::Patch(json!([]))));
    let activity = |change| Kind::Activity { id: "a".into(), activity_type: "PLAN".into(), change };
    assert_eq!(
        custom("agui.activity", json!({"id": "a", "type": "PLAN", "content": {}})),
        activity(ActivityChange::Content(Object::new()))
    );
    assert_eq!(
        custom("agui.activity", json!({"id": "a", "type": "PLAN", "patch": [1]})),
        activity(ActivityChange::Patch(json!([1])))
    );
    for (phase, expected) in [("start", StepPhase::Start), ("finish", StepPhase::Finish)] {
        assert_eq!(
            custom("agui.step", json!({"name": "s", "phase": phase})),
            Kind::Step { name: "s".into(), phase: expected }
        );
    }
    for (name, value) in [
        ("agui.state", json!({"set": 1, "patch": []})),
        ("agui.state", json!({"patch": {}})),
        ("agui.state", json!(1)),
        ("agui.activity", json!({"id": "", "type": "PLAN", "content": {}})),
        ("agui.activity", json!({"id": "a", "type": "PLAN", "content": []})),
        ("agui.activity", json!({"id": "a", "type": "PLAN"})),
        ("agui.step", json!({"name": "s", "phase": "begin"})),
        ("agui.step", json!({"phase": "start"})),
        ("agui.other", json!({"set": 1})),
        ("mine", json!(null)),
    ] {
        let expected = Kind::Custom { name: name.into(), value: value.clone() };
        assert_eq!(custom(name, value), expected);
    }
}

#[test]
fn blocks_of_both_wires() {
    let media = |kind, source, name: Option<&str>| {
        Some(Block::Media { kind, source, name: name.map(str::to_owned), metadata: None })
    };
    let base64 = |media_type: &str| MediaSource::Base64 {
        media_type: media_type.into(),
        data: "AA==".into(),
    };
    let url = |media_type: Option<&str>| MediaSource::Url {
        media_type: media_type.map(str::to_owned),
        url: "u".into(),
    };
    for (wire, expected) in [
        (
            json!({"type": "image", "source": {"type": "url", "url": "u", "mime_type": "image/png"}}),
            media(MediaKind::Image, url(Some("image/png")), None),
        ),
        (
            json!({"type": "audio", "source": {"type": "base64", "mediaType": "audio/wav", "data": "AA=="}}),
            media(MediaKind::Audio, base64("audio/wav"), None),
        ),
        (
            json!({"type": "video", "source": {"type": "url", "url": "u"}}),
            media(MediaKind::Video, url(None), None),
        ),
        (
            json!({"type": "data", "name": "n", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}),
            media(MediaKind::Image, base64("image/png"), Some("n")),
        ),
        (
            json!({"type": "data", "source": {"type": "url", "url": "u", "media_type": "application/pdf"}}),
            media(MediaKind::Document, url(Some("application/pdf")), None),
        ),
        (json!({"type": "image", "source": {"type": "url"}}), None),
        (json!({"type": "new"}), None),
        (json!("text"), None),
        (json!({"type": "hint", "hint": "h"}), Some(Block::Hint { text: "h".into() })),
        (
            json!({"type": "tool_result", "id": "c", "name": "f", "output": "out", "state": "ERROR"}),
            Some(Block::ToolResult {
                call_id: "c".into(),
                name: "f".into(),
                output: vec![Block::Text { text: "out".into() }],
                state: ResultState::Error,
                metadata: Object::new(),
            }),
        ),
    ] {
        assert_eq!(decode_block(wire.clone()), expected, "{wire}");
    }
}

#[test]
fn calls_of_both_wires() {
    let call = |wire: Value| {
        let call: Call = decode_call(wire).unwrap();
        (call.arguments, call.input.map(Value::Object))
    };
    let input = || Some(json!({"a": 1}));
    assert_eq!(
        call(json!({"input": {"a": 1}, "content": "{ \"a\": 1 }"})),
        ("{ \"a\": 1 }".into(), input())
    );
    assert_eq!(call(json!({"input": {"a": 1}, "content": null})), ("{\"a\":1}".into(), input()));
    assert_eq!(call(json!({"input": "{\"a\": 1}"})), ("{\"a\": 1}".into(), input()));
    assert_eq!(call(json!({"input": "{\"a\""})), ("{\"a\"".into(), None));
    assert_eq!(call(json!({"content": "{\"a\": 1}"})), ("{\"a\": 1}".into(), input()));
    assert_eq!(call(json!({})), (String::new(), None));
}

#[test]
fn a_python_result_part_can_be_a_url() {
    assert_eq!(
        kind(json!({"type": "TOOL_RESULT_DATA_DELTA", "reply_id": "r", "tool_call_id": "c",
            "block_id": "b", "media_type": "image/png", "data": null, "url": "u"})),
        Kind::ToolResultDataDelta {
            call: "c".into(),
            block: Some("b".into()),
            data: ResultData::Media {
                kind: None,
                media_type: Some("image/png".into()),
                name: None,
                data: DataChunk::Url("u".into()),
            },
        }
    );
}

/// Names that the readers look for, so that arbitrary objects reach deep into them.
const KEYS: &[&str] = &[
    "type",
    "replyId",
    "reply_id",
    "blockId",
    "block_id",
    "toolCallId",
    "toolCalls",
    "tool_calls",
    "confirmResults",
    "confirmed",
    "toolCall",
    "toolResults",
    "execution_results",
    "delta",
    "data",
    "url",
    "state",
    "source",
    "metadata",
    "usage",
    "inputTokens",
    "input_tokens",
    "time",
    "hint",
    "hintSource",
    "name",
    "value",
    "result",
    "content",
    "output",
    "input",
    "error",
    "finished_reason",
    "set",
    "patch",
    "phase",
    "id",
    "role",
];

fn any_json() -> impl Strategy<Value = Value> {
    let words = prop_oneof![
            proptest::sample::select(AgentEventType::ALL).prop_map(|known| json!(known.as_str())),
            proptest::sample::select(
                &[
                    "text",
                    "image",
                    "data",
                    "tool_use",
                    "tool_result",
                    "hint",
                    "agui.state",
                    "{}",
                    ""
                ][..]
            )
            .prop_map(|word| json!(word)),
            ".{0,8}".prop_map(|text| json!(text)),
        ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        words,
    ];
    leaf.prop_recursive(4, 48, 8, |inner| {
        let key = prop_oneof![
            proptest::sample::select(KEYS).prop_map(str::to_owned),
            ".{0,4}".prop_map(String::from),
        ];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            proptest::collection::vec((key, inner), 0..8)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_json_never_panics(
        value in any_json(),
        event_type in proptest::sample::select(AgentEventType::ALL),
    ) {
        let mut event = value.clone();
        if let Value::Object(map) = &mut event {
            map.insert("type".to_owned(), json!(event_type.as_str()));
        }
        drop(decode(&value.to_string(), DecodeOptions { keep_raw: true }));
        drop(decode_value(event, DecodeOptions::default()));
        drop((decode_block(value.clone()), decode_call(value.clone()), decode_msg(value)));
    }

    #[test]
    fn arbitrary_text_never_panics(line in ".{0,64}") {
        drop(decode(&line, DecodeOptions::default()));
    }
}
