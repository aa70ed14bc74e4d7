use agui_protocol::{
    Body, Content, ContentPart, Event, Interrupt, PatchOperation, message::MediaPart,
    message::MessageBase,
};
use serde_json::{Value, json};

use super::*;

const MIB: usize = 1024 * 1024;

fn apply(event: Event) -> Vec<Event> {
    let mut out = Vec::new();
    Truncate::new("t1".into(), "r1".into()).apply(event, &mut out);
    for event in &out {
        assert!(serde_json::to_string(event).unwrap().len() <= MAX_FRAME);
    }
    out
}

fn text(delta: String) -> Event {
    Body::TextMessageContent { message_id: "m".into(), delta, subagent_run_id: None }.into()
}

fn args(delta: String) -> Event {
    Body::ToolCallArgs { tool_call_id: "c".into(), delta, subagent_run_id: Some("s".into()) }.into()
}

fn result(content: Content) -> Event {
    Body::ToolCallResult {
        message_id: "m".into(),
        tool_call_id: "c".into(),
        content,
        role: None,
        subagent_run_id: None,
    }
    .into()
}

fn image(bytes: usize) -> ContentPart {
    let source = PartSource::Data { value: "A".repeat(bytes), mime_type: "image/png".into() };
    ContentPart::Image(MediaPart { id: None, source, metadata: None })
}

fn marked(event: Event, original: usize) -> Event {
    event.with_metadata("agentscope.truncated", json!({"originalBytes": original}))
}

#[test]
fn what_is_short_enough_is_left_alone() {
    let unescaped = result(Content::Text("x".repeat(8 * MIB - 200)));
    for event in [text("x".repeat(MIB)), text("\u{1}".repeat(MIB)), text(String::new()), unescaped]
    {
        assert!(Truncate::fits(&event));
        assert_eq!(apply(event.clone()), [event]);
    }
}

#[test]
fn long_deltas_are_split_at_characters_and_nothing_is_lost() {
    // Two bytes each, behind one byte: the limit falls into the middle of a character.
    let delta = format!("x{}", "é".repeat(MIB));
    let (first, rest) = delta.split_at(MIB - 1);
    let (second, third) = rest.split_at(MIB);
    let first = text(first.to_owned()).with_timestamp(7).with_metadata("k", 1);
    let others = [second, third].map(|piece| text(piece.to_owned()).with_timestamp(7));
    let whole = text(delta.clone()).with_timestamp(7).with_metadata("k", 1);
    let [second, third] = others;
    assert_eq!(apply(whole), [first, second, third]);
}

#[test]
fn long_arguments_and_thoughts_are_split_too() {
    let delta = "a".repeat(MIB + 1);
    assert_eq!(apply(args(delta.clone())), [args("a".repeat(MIB)), args("a".into())]);
    let thought = |delta: String| -> Event {
        Body::ReasoningMessageContent { message_id: "m".into(), delta, subagent_run_id: None }
            .into()
    };
    assert_eq!(apply(thought(delta)), [thought("a".repeat(MIB)), thought("a".into())]);
}

#[test]
fn a_raw_event_or_metadata_too_long_is_left_out_before_any_content() {
    let huge = Value::String("x".repeat(9 * MIB));
    let raw = Event { raw_event: Some(huge.clone()), ..text("hi".into()) };
    assert_eq!(apply(raw), [marked(text("hi".into()), 9 * MIB + 2)]);
    let empty = Event { raw_event: Some(huge.clone()), ..text(String::new()) };
    assert_eq!(apply(empty), [marked(text(String::new()), 9 * MIB + 2)]);
    let answer = result(Content::Text("hi".into()));
    let raw = Event { raw_event: Some(huge.clone()), ..answer.clone() }.with_metadata("k", 1);
    assert_eq!(apply(raw), [marked(answer.clone().with_metadata("k", 1), 9 * MIB + 2)]);
    assert_eq!(apply(answer.clone().with_metadata("k", huge)), [marked(answer, 9 * MIB + 8)]);
}

#[test]
fn a_long_result_is_cut_at_a_character() {
    let budget = MAX_FRAME - MAX_FRAME / 8 - RESERVE;
    let content = Content::Text("é".repeat(5 * MIB));
    let cut = result(Content::Text("é".repeat(budget / 2)));
    assert_eq!(apply(result(content)), [marked(cut, 10 * MIB)]);
}

#[test]
fn escapes_count() {
    let budget = MAX_FRAME - MAX_FRAME / 8 - RESERVE;
    let content = Content::Text("\u{1}".repeat(2 * MIB));
    let cut = result(Content::Text("\u{1}".repeat(budget / 6)));
    assert_eq!(apply(result(content)), [marked(cut, 2 * MIB)]);
}

#[test]
fn media_of_a_result_go_the_largest_first() {
    let parts = vec![image(3 * MIB), ContentPart::plain("seen"), image(6 * MIB), image(1)];
    let rest = vec![image(3 * MIB), ContentPart::plain("seen"), image(1)];
    let original = 9 * MIB + 5;
    assert_eq!(
        apply(result(Content::Parts(parts))),
        [marked(result(Content::Parts(rest)), original)]
    );
}

#[test]
fn texts_of_a_result_keep_what_has_room() {
    let parts =
        vec![ContentPart::plain("a".repeat(4 * MIB)), ContentPart::plain("b".repeat(6 * MIB))];
    let out = apply(result(Content::Parts(parts)));
    let Body::ToolCallResult { content: Content::Parts(parts), .. } = &out[0].body else {
        panic!("not a result with parts")
    };
    assert_eq!(parts[0], ContentPart::plain("a".repeat(4 * MIB)));
    let rest = parts[1].text().unwrap();
    assert!(rest.len() > 2 * MIB && rest.bytes().all(|byte| byte == b'b'));
    assert_eq!((out.len(), parts.len()), (1, 2));
    assert_eq!(out[0].metadata, marked(text(String::new()), 10 * MIB).metadata);
}

#[test]
fn the_assistants_own_media_keep_their_description() {
    let activity = |content: Value| -> Event {
        Body::ActivitySnapshot {
            message_id: "a".into(),
            activity_type: "agentscope.media".into(),
            content: content.as_object().unwrap().clone(),
            replace: None,
            subagent_run_id: None,
        }
        .into()
    };
    let whole =
        activity(json!({"mediaType": "image/png", "name": "n", "data": "A".repeat(9 * MIB)}));
    let rest = activity(json!({"mediaType": "image/png", "name": "n"}));
    assert_eq!(apply(whole), [marked(rest, 9 * MIB)]);
    assert_eq!(apply(activity(json!({"rows": "x".repeat(9 * MIB)}))), []);
}

#[test]
fn half_a_state_is_not_sent_and_passed_through_values_are_emptied() {
    let huge = Value::String("x".repeat(9 * MIB));
    let snapshot = Body::StateSnapshot { snapshot: huge.clone(), subagent_run_id: None };
    assert_eq!(apply(snapshot.into()), []);
    let operation =
        PatchOperation::Add { path: "/a".into(), value: huge.clone(), extra: Object::new() };
    assert_eq!(
        apply(Body::StateDelta { delta: vec![operation], subagent_run_id: None }.into()),
        []
    );
    let custom = |value: Value| -> Event {
        Body::Custom { name: "n".into(), value, subagent_run_id: None }.into()
    };
    assert_eq!(apply(custom(huge)), [marked(custom(Value::Null), 9 * MIB + 2)]);
}

#[test]
fn names_of_what_begins_and_ends_are_cut_alike() {
    let budget = MAX_FRAME - MAX_FRAME / 8 - RESERVE;
    let started = |name: String| -> Event {
        Body::StepStarted { step_name: name, subagent_run_id: None }.into()
    };
    let finished = |name: String| -> Event {
        Body::StepFinished { step_name: name, subagent_run_id: None }.into()
    };
    let child = |name: String, description: Option<String>| -> Event {
        Body::SubagentStarted {
            subagent_run_id: "s".into(),
            name,
            description,
            parent_subagent_run_id: None,
            parent_tool_call_id: None,
            parent_message_id: None,
        }
        .into()
    };
    let (long, cut) = ("x".repeat(9 * MIB), "x".repeat(budget));
    assert_eq!(apply(started(long.clone())), [marked(started(cut.clone()), 9 * MIB)]);
    assert_eq!(apply(finished(long.clone())), [marked(finished(cut.clone()), 9 * MIB)]);
    let described = child("n".into(), Some(long.clone()));
    assert_eq!(apply(described), [marked(child("n".into(), None), 9 * MIB + 1)]);
    assert_eq!(apply(child(long, None)), [marked(child(cut, None), 9 * MIB)]);
}

#[test]
fn what_stands_beside_a_state_yields_to_it() {
    let long = Value::String("x".repeat(8 * MIB - RESERVE - 1024));
    let body = Body::StateSnapshot { snapshot: long, subagent_run_id: None };
    assert!(leaves(&body));
    let raw = Value::String("y".repeat(MIB / 2));
    let whole = Event { raw_event: Some(raw), ..Event::new(body.clone()) }.with_metadata("k", 1);
    let expected = Event::new(body).with_metadata("k", 1);
    assert_eq!(apply(whole), [marked(expected, MIB / 2 + 2)]);
    let long = Value::String("x".repeat(8 * MIB - RESERVE));
    assert!(!leaves(&Body::StateSnapshot { snapshot: long, subagent_run_id: None }));
}

#[test]
fn the_end_of_a_run_always_leaves() {
    let finished = |result: Option<Value>, outcome: Option<RunOutcome>| -> Event {
        Body::RunFinished {
            thread_id: "t1".into(),
            run_id: "r1".into(),
            result,
            outcome,
            usage: vec![],
        }
        .into()
    };
    let huge = Value::String("x".repeat(9 * MIB));
    let out = apply(finished(Some(huge.clone()), None));
    assert_eq!(out, [marked(finished(None, None), 9 * MIB + 2)]);

    let interrupt = |metadata: Option<Object>| Interrupt {
        subagent_run_id: None,
        id: "i".into(),
        reason: "tool_call".into(),
        message: None,
        tool_call_id: Some("c".into()),
        response_schema: None,
        expires_at: None,
        metadata,
    };
    let asks = |metadata| {
        finished(None, Some(RunOutcome::Interrupt { interrupts: vec![interrupt(metadata)] }))
    };
    let metadata = json!({"k": huge}).as_object().unwrap().clone();
    assert_eq!(apply(asks(Some(metadata))), [marked(asks(None), 9 * MIB + 8)]);

    let error =
        |message: String| -> Event { Body::RunError { message, code: None, usage: vec![] }.into() };
    let budget = MAX_FRAME - MAX_FRAME / 8 - RESERVE;
    assert_eq!(apply(error("x".repeat(9 * MIB))), [marked(error("x".repeat(budget)), 9 * MIB)]);
}

#[test]
fn snapshots_lose_media_then_tool_answers_but_no_message() {
    let base = MessageBase::default;
    let user = |parts: Vec<ContentPart>| Message::User {
        id: "u".into(),
        name: None,
        content: Content::Parts(parts),
        base: base(),
    };
    let tool = |content: String| Message::Tool {
        id: "r".into(),
        tool_call_id: "c".into(),
        content: Content::Text(content),
        error: None,
        base: base(),
    };
    let snapshot = |messages: Vec<Message>| -> Event { Body::MessagesSnapshot { messages }.into() };

    let whole = vec![user(vec![image(5 * MIB), image(MIB)]), tool("x".repeat(4 * MIB))];
    let original = serde_json::to_string(&whole).unwrap().len();
    let rest = vec![user(vec![image(MIB)]), tool("x".repeat(4 * MIB))];
    assert_eq!(apply(snapshot(whole)), [marked(snapshot(rest), original)]);

    let whole = vec![user(vec![image(MIB)]), tool("x".repeat(9 * MIB))];
    let out = apply(snapshot(whole));
    let Body::MessagesSnapshot { messages } = &out[0].body else { panic!("not a snapshot") };
    assert_eq!(messages[0], user(vec![]));
    let text = messages[1].text_content();
    assert!(text.len() > 6 * MIB && text.bytes().all(|byte| byte == b'x'));
    assert_eq!(messages.len(), 2);
}

#[test]
fn the_longest_texts_of_a_snapshot_are_cut_alike() {
    let says = |id: &str, text: &str, arguments: &str| -> Message {
        let call = json!({"id": "c", "type": "function",
            "function": {"name": "f", "arguments": arguments}});
        serde_json::from_value(
            json!({"id": id, "role": "assistant", "content": text, "toolCalls": [call]}),
        )
        .unwrap()
    };
    let (text, arguments) = ("\n".repeat(3 * MIB), "y".repeat(5 * MIB));
    let whole = vec![says("a", "short", "{}"), says("b", &text, &arguments)];
    let original = serde_json::to_string(&whole).unwrap().len();
    let out = apply(Body::MessagesSnapshot { messages: whole }.into());
    let Body::MessagesSnapshot { messages } = &out[0].body else { panic!("not a snapshot") };
    assert_eq!(messages[0], says("a", "short", "{}"));
    let Message::Assistant { content, tool_calls, .. } = &messages[1] else { panic!("a role") };
    // As JSON a line break takes two bytes.
    let (text, arguments) =
        (content.as_ref().unwrap().len(), tool_calls[0].function.arguments.len());
    assert_eq!(text, arguments / 2);
    assert!(arguments > 3 * MIB, "{arguments}");
    let marker = json!({"originalBytes": original});
    assert_eq!(out[0].metadata.as_ref().unwrap()[TRUNCATED], marker);
    assert!(serde_json::to_string(&out[0]).unwrap().len() <= MAX_FRAME);
}

#[test]
fn the_guess_never_falls_short_of_the_exact_length() {
    let deep = json!({"a": [null, true, -1.5e300, {"b": "\u{1}\u{2}\"\\"}, [], {}], "": ""});
    let metadata = deep.as_object().unwrap().clone();
    let events = [
        result(Content::Parts(vec![image(10_000), ContentPart::plain("\u{1}".repeat(10_000))])),
        Body::Raw { event: deep.clone(), source: None, subagent_run_id: None }.into(),
        Event { raw_event: Some(deep), metadata: Some(metadata), ..text("\u{1}".repeat(10_000)) },
    ];
    for event in events {
        let guess = size::guess(&event, usize::MAX) * size::WORST_ESCAPE;
        assert!(guess >= size::exact(&event), "{guess} {event:?}");
    }
}

#[test]
fn lengths_are_those_of_the_json() {
    for text in ["", "\"\\\n\r\t\u{8}\u{c}", "\u{0}\u{1f}\u{7f}", "aé€𝄞\u{2028}"] {
        let exact = serde_json::to_string(text).unwrap().len();
        assert_eq!(size::exact(&text), exact);
        let mut fits = text.to_owned();
        assert!(!size::cut(&mut fits, exact - 2));
        assert_eq!(fits, text);
        if !text.is_empty() {
            assert!(size::cut(&mut fits, exact - 3));
        }
    }
}
