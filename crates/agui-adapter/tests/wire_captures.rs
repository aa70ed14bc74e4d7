//! Decoding of recorded streams of both wires: every line has a type that is known, and single
//! events have exactly the values that stand in them.

#![expect(clippy::expect_used, clippy::panic, reason = "a test file; its helpers may fail a test")]

use std::{fs, path::Path};

use agui_adapter::model::event::{
    AgentEventKind as Kind, AgentEventType as Type, Call, Confirmation, DataChunk, EndReason,
    ExternalResult, Failure, ModelUsage, ResultData, ResultState,
};
use agui_adapter::model::msg::MediaKind;
use agui_adapter::model::wire::{DecodeOptions, decode, decode_msg};
use agui_adapter::model::{AgentEvent, Block, Msg, Origin, Role};
use serde_json::{Value, json};

fn lines(name: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures").join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
}

fn events(name: &str) -> Vec<AgentEvent> {
    lines(name)
        .iter()
        .map(|line| decode(line, DecodeOptions::default()).expect("the line decodes"))
        .collect()
}

fn kinds(name: &str, event_type: Type) -> Vec<Kind> {
    let kinds = events(name).into_iter().map(|event| event.kind);
    kinds.filter(|kind| kind.event_type() == event_type).collect()
}

fn streams(folder: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures").join(folder);
    let mut names: Vec<String> = fs::read_dir(path)
        .expect("the folder is there")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .filter(|name| name.ends_with(".jsonl"))
        .map(|name| format!("{folder}/{name}"))
        .collect();
    names.sort();
    names
}

#[test]
fn every_recorded_line_decodes_to_a_known_type_of_its_wire() {
    let mut seen = std::collections::BTreeSet::new();
    let mut counted = 0;
    for (folder, origin) in
        [("service", Origin::Python), ("library", Origin::Python), ("java", Origin::Java)]
    {
        for name in streams(folder) {
            for event in events(&name) {
                assert_eq!(event.origin, origin, "{name}");
                assert_ne!(event.event_type(), Type::Unknown, "{name}");
                let raw_kept = event.event_type() == Type::SubagentExposed;
                assert_eq!(event.raw.is_some(), raw_kept, "{name}");
                seen.insert(event.event_type());
                counted += 1;
            }
        }
    }
    assert_eq!(counted, 1109);
    let local_only = [
        Type::State,
        Type::Activity,
        Type::Step,
        Type::Question,
        Type::Park,
        Type::Keep,
        Type::Unknown,
    ];
    let expected: std::collections::BTreeSet<Type> =
        Type::ALL.iter().copied().filter(|kind| !local_only.contains(kind)).collect();
    assert_eq!(seen, expected);
}

#[test]
fn the_events_inside_agent_protocol_frames_decode_too() {
    for (name, payloads) in [("status", 7), ("full", 7), ("verbose", 13)] {
        let lines = lines(&format!("java/agent_protocol_permission_ask_{name}.sse"));
        let mut decoded = 0;
        for data in lines.iter().filter_map(|line| line.strip_prefix("data:")) {
            let frame: Value = serde_json::from_str(data).expect("a frame");
            let Some(payload) = frame["payload"].as_str() else { continue };
            let event = decode(payload, DecodeOptions::default()).expect("a payload");
            assert_eq!(event.origin, Origin::Java);
            assert_eq!(Some(event.event_type().as_str()), frame["eventType"].as_str());
            decoded += 1;
        }
        assert_eq!(decoded, payloads, "{name}");
    }
}

#[test]
fn kept_raw_is_the_event_with_one_type() {
    let line = &lines("java/all_event_wire_forms.jsonl")[5];
    let event = decode(line, DecodeOptions { keep_raw: true }).expect("it decodes");
    let raw = event.raw.expect("raw is kept");
    assert_eq!(
        serde_json::to_string(&*raw).expect("raw is JSON"),
        r#"{"type":"TEXT_BLOCK_START","id":"772a658ee37f4714bd0bece13f4c4590","createdAt":"2026-11-30T02:01:10.748257633Z","replyId":"reply-1","blockId":"b1"}"#
    );
}

fn oslo() -> Call {
    Call {
        id: "call-1".into(),
        name: "get_weather".into(),
        arguments: r#"{"city":"Oslo"}"#.into(),
        input: json!({"city": "Oslo"}).as_object().cloned(),
        suggested_rules: vec![],
    }
}

#[test]
fn every_java_form_has_its_exact_values() {
    let reply = || "reply-1".to_owned();
    let call = || "call-1".to_owned();
    let name = || "get_weather".to_owned();
    let end = |state| Kind::ToolResultEnd { reply: reply(), call: call(), state };
    let media = |media_type: Option<&str>, data| Kind::ToolResultDataDelta {
        call: call(),
        block: None,
        data: ResultData::Media {
            kind: media_type.is_none().then_some(MediaKind::Image),
            media_type: media_type.map(str::to_owned),
            name: None,
            data,
        },
    };
    let result = |text: &str, state| ExternalResult {
        call_id: call(),
        name: name(),
        output: vec![Block::Text { text: text.into() }],
        state,
    };
    let b1 = || "b1".to_owned();
    let expected = vec![
        Kind::AgentStart {
            reply: Some(reply()),
            session: Some("s-1".into()),
            name: "assistant".into(),
        },
        Kind::AgentEnd { reply: Some(reply()), reason: EndReason::Unstated },
        Kind::ModelCallStart { reply: reply(), model: None },
        Kind::ModelCallEnd {
            reply: reply(),
            usage: Some(ModelUsage {
                input: Some(10),
                output: Some(5),
                cache_read: Some(3),
                total: Some(15),
                seconds: Some(1.25),
                ..ModelUsage::default()
            }),
        },
        Kind::ModelCallEnd { reply: reply(), usage: None },
        Kind::TextBlockStart { reply: reply(), block: b1() },
        Kind::TextBlockDelta { reply: reply(), block: b1(), delta: "Hi".into() },
        Kind::TextBlockEnd { reply: reply(), block: b1(), text: None },
        Kind::ThinkingBlockStart { reply: reply(), block: "b0".into() },
        Kind::ThinkingBlockDelta { reply: reply(), block: "b0".into(), delta: "hmm".into() },
        Kind::ThinkingBlockEnd { reply: reply(), block: "b0".into(), encrypted: None },
        Kind::DataBlockStart { reply: reply(), block: "d1".into(), media_type: None, name: None },
        Kind::DataBlockDelta {
            reply: reply(),
            block: "d1".into(),
            media_type: None,
            data: DataChunk::Base64("AAAA".into()),
        },
        Kind::DataBlockEnd { reply: reply(), block: "d1".into() },
        Kind::ToolCallStart { reply: reply(), call: call(), name: name() },
        Kind::ToolCallDelta { call: call(), delta: r#"{"city""#.into() },
        Kind::ToolCallEnd { call: call(), encrypted: None },
        Kind::ToolResultStart { reply: reply(), call: call(), name: name() },
        Kind::ToolResultTextDelta { call: call(), delta: "sunny".into() },
        media(Some("image/png"), DataChunk::Base64("AAAA".into())),
        media(None, DataChunk::Url("https://example.com/a.png".into())),
        end(ResultState::Success),
        end(ResultState::Error),
        end(ResultState::Interrupted),
        end(ResultState::Denied),
        end(ResultState::Running),
        Kind::ExceedMaxIters { max_iters: Some(10) },
        Kind::RequireUserConfirm { reply: reply(), calls: vec![oslo()] },
        Kind::RequireExternalExecution { reply: reply(), calls: vec![oslo()] },
        Kind::UserConfirmResult {
            reply: reply(),
            results: vec![
                Confirmation { confirmed: true, call: oslo() },
                Confirmation { confirmed: false, call: oslo() },
            ],
        },
        Kind::ExternalExecutionResult {
            reply: reply(),
            results: vec![
                result("ok", ResultState::Success),
                result("[Awaiting external execution]", ResultState::Running),
            ],
        },
        Kind::RequestStop {
            reason: Some("budget".into()),
            generate_reason: Some("MIDDLEWARE_STOP_REQUESTED".into()),
        },
        Kind::SubagentExposed {},
        Kind::HintBlock { label: Some("system".into()), sublabel: None, text: "note".into() },
        Kind::AllToolsDenied {},
        Kind::Custom { name: "progress".into(), value: json!({"pct": 10}) },
        Kind::TextBlockDelta { reply: reply(), block: b1(), delta: "child".into() },
        Kind::AgentResult {
            result: Msg {
                id: "m1".into(),
                name: "assistant".into(),
                role: Role::Assistant,
                content: vec![
                    Block::Thinking { thinking: "x".into(), encrypted: None },
                    Block::Text { text: "Hi".into() },
                ],
                metadata: json!({"agentscope_generate_reason": "MODEL_STOP"})
                    .as_object()
                    .cloned()
                    .expect("an object"),
            },
            generate_reason: Some("MODEL_STOP".into()),
        },
    ];
    let events = events("java/all_event_wire_forms.jsonl");
    let child = &events[36];
    assert_eq!(child.source.as_deref(), Some("main/researcher"));
    assert_eq!(Value::Object(child.metadata.clone()), json!({"taskId": "t1"}));
    assert_eq!(events.into_iter().map(|event| event.kind).collect::<Vec<_>>(), expected);
}

#[test]
fn a_python_reply_has_its_exact_values() {
    let events = events("service/audio_output.jsonl");
    let reply = || "46128cd880d14b2792b8c17e48e65d96".to_owned();
    let data = || "921e39d7ee4d4d1ba1e0154706233436".to_owned();
    assert_eq!(
        events[0].kind,
        Kind::AgentStart {
            reply: Some(reply()),
            session: Some("6c84fbb4471441cf870a224494334780".into()),
            name: "assistant".into(),
        }
    );
    let Kind::HintBlock { label, sublabel, text } = &events[1].kind else { panic!("a hint") };
    assert_eq!((label.as_deref(), sublabel.as_deref()), (Some("System"), Some("Runtime State")));
    assert!(text.starts_with("<system-reminder>"));
    assert_eq!(events[1].source, None);
    assert_eq!(
        events[2].kind,
        Kind::ModelCallStart { reply: reply(), model: Some("mock-audio_output".into()) }
    );
    assert_eq!(
        events[5].kind,
        Kind::DataBlockStart {
            reply: reply(),
            block: data(),
            media_type: Some("audio/wav".into()),
            name: None,
        }
    );
    let chunks = kinds("service/audio_output.jsonl", Type::DataBlockDelta);
    assert_eq!(
        chunks[0],
        Kind::DataBlockDelta {
            reply: reply(),
            block: data(),
            media_type: Some("audio/wav".into()),
            data: DataChunk::Base64(
                "UklGRv////9XQVZFZm10IBAAAAABAAEAwF0AAIC7AAACABAAZGF0Yf////8AAAEAAgADAA==".into()
            ),
        }
    );
    assert_eq!(
        kinds("service/audio_output.jsonl", Type::ModelCallEnd),
        [Kind::ModelCallEnd {
            reply: reply(),
            usage: Some(ModelUsage { input: Some(20), output: Some(9), ..ModelUsage::default() }),
        }]
    );
    assert_eq!(
        events.last().map(|event| &event.kind),
        Some(&Kind::AgentEnd { reply: Some(reply()), reason: EndReason::Completed })
    );
}

#[test]
fn python_ends_and_counts() {
    let reasons = |name| -> Vec<EndReason> {
        kinds(name, Type::AgentEnd)
            .into_iter()
            .map(|kind| match kind {
                Kind::AgentEnd { reason, .. } => reason,
                _ => unreachable!(),
            })
            .collect()
    };
    assert_eq!(reasons("service/interrupt_running_text.jsonl"), [EndReason::Interrupted]);
    assert_eq!(reasons("service/max_iters.jsonl"), [EndReason::MaxIterations]);
    let [EndReason::Failed(Failure { class, .. })] = &reasons("service/model_error_401.jsonl")[..]
    else {
        panic!("one failure")
    };
    assert_eq!(class, "authentication");
    // The cut call reports zeros, which say nothing.
    let Some(Kind::ModelCallEnd { usage, .. }) =
        kinds("service/interrupt_running_text.jsonl", Type::ModelCallEnd).pop()
    else {
        panic!("an end")
    };
    assert_eq!(usage, None);
}

#[test]
fn a_python_ask_keeps_raw_arguments_and_rules() {
    let asks = kinds("service/confirm_approve.jsonl", Type::RequireUserConfirm);
    let arguments = r#"{"to": "a@example.com", "subject": "Hi"}"#;
    assert_eq!(
        asks,
        [Kind::RequireUserConfirm {
            reply: "35b3f83e980440f28b5523c1cc597a19".into(),
            calls: vec![Call {
                id: "call_c1".into(),
                name: "send_email".into(),
                arguments: arguments.into(),
                input: serde_json::from_str(arguments).ok(),
                suggested_rules: vec![json!({
                    "tool_name": "send_email",
                    "rule_content": null,
                    "behavior": "allow",
                    "source": "suggested",
                })],
            }],
        }]
    );
}

#[test]
fn python_results_of_external_and_streaming_tools() {
    let results = kinds("service/external_execution.jsonl", Type::ExternalExecutionResult);
    assert_eq!(
        results,
        [Kind::ExternalExecutionResult {
            reply: "14a9e99e0fc54152ac1eb3a59690d4cf".into(),
            results: vec![ExternalResult {
                call_id: "call_x1".into(),
                name: "pick_color".into(),
                output: vec![Block::Text { text: "blue".into() }],
                state: ResultState::Success,
            }],
        }]
    );
    let data = kinds("service/streaming_tool_result.jsonl", Type::ToolResultDataDelta);
    let [Kind::ToolResultDataDelta { call, block, data }] = &data[..] else { panic!("one part") };
    assert_eq!(call, "call_s1");
    assert_eq!(block.as_deref(), Some("e9e033cbc17c4cda8d8146474b6c5ead"));
    let ResultData::Media { media_type, name: None, kind: None, data: DataChunk::Base64(data) } =
        data
    else {
        panic!("inline media")
    };
    assert_eq!(media_type.as_deref(), Some("image/png"));
    assert_eq!(data.len(), 96);
}

#[test]
fn stored_python_messages_decode() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/captures/service/messages_two_turns.json");
    let text = fs::read_to_string(path).expect("the file is there");
    let value: Value = serde_json::from_str(&text).expect("JSON");
    let list = value.get("messages").unwrap_or(&value).as_array().cloned().expect("a list");
    let messages: Vec<Msg> = list.into_iter().filter_map(decode_msg).collect();
    let roles: Vec<Role> = messages.iter().map(|msg| msg.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::User, Role::Assistant]);
}
