use super::*;
use serde_json::json;

fn open(id: &str, kind: InterruptKind) -> OpenInterrupt {
    let call = StoredCall {
        id: "call_1".into(),
        wire_id: "call_1".into(),
        name: "send_email".into(),
        arguments: r#"{"to": "a", "cc": "b"}"#.into(),
        input: json!({"to": "a", "cc": "b"}).as_object().cloned(),
    };
    OpenInterrupt {
        interrupt: serde_json::from_value(json!({"id": id, "reason": "tool_call"})).unwrap(),
        kind,
        reply: "r1".into(),
        source: None,
        task: None,
        above: Vec::new(),
        call: (kind != InterruptKind::InputRequired).then_some(call),
        question: None,
        expires_ms: None,
    }
}

fn entry(value: Value) -> ResumeEntry {
    serde_json::from_value(value).unwrap()
}

fn verdict(kind: InterruptKind, answer: Value) -> Result<Verdict, AnswerError> {
    let mut answer = answer;
    answer["interruptId"] = json!("i1");
    answer.as_object_mut().unwrap().entry("status").or_insert(json!("resolved"));
    let decided = decide(&[entry(answer)], &[open("i1", kind)])?;
    let [decision] = &decided[..] else { panic!("one decision") };
    Ok(decision.verdict.clone())
}

fn permission_verdict(answer: Value) -> Result<Verdict, AnswerError> {
    verdict(InterruptKind::PermissionConfirm, answer)
}

fn call() -> StoredCall {
    open("i1", InterruptKind::PermissionConfirm).call.unwrap()
}

#[test]
fn only_a_boolean_true_approves() {
    assert_eq!(
        permission_verdict(json!({"payload": {"approved": true}})),
        Ok(Verdict::Approved { call: call(), edited: false, rules: vec![] })
    );
    let denied = Ok(Verdict::Denied { call: call(), reason: None });
    for payload in [
        json!({"approved": false}),
        json!({"approved": "true"}),
        json!({"approved": 1}),
        json!({"approved": null}),
        json!({}),
        json!(true),
        json!("yes"),
        json!([{"approved": true}]),
    ] {
        assert_eq!(permission_verdict(json!({"payload": payload})), denied, "{payload}");
    }
    assert_eq!(permission_verdict(json!({})), denied);
}

#[test]
fn a_cancelled_approval_is_a_denial_whatever_it_carries() {
    assert_eq!(
        permission_verdict(json!({
            "status": "cancelled",
            "payload": {"approved": true, "editedArgs": 1, "reason": "x"},
        })),
        Ok(Verdict::Denied { call: call(), reason: None })
    );
}

#[test]
fn a_denial_carries_its_reason() {
    assert_eq!(
        permission_verdict(json!({"payload": {"approved": false, "reason": "wrong address"}})),
        Ok(Verdict::Denied { call: call(), reason: Some("wrong address".into()) })
    );
}

#[test]
fn edited_arguments_replace_the_stored_ones_wholly() {
    let rule = json!({"tool_name": "send_email", "behavior": "allow"});
    let edited = StoredCall {
        arguments: r#"{"to":"c"}"#.into(),
        input: json!({"to": "c"}).as_object().cloned(),
        ..call()
    };
    assert_eq!(
        permission_verdict(
            json!({"payload": {"approved": true, "editedArgs": {"to": "c"}, "rules": [rule]}})
        ),
        Ok(Verdict::Approved { call: edited, edited: true, rules: vec![rule] })
    );
}

#[test]
fn edited_arguments_that_are_no_object_are_refused_before_anything() {
    let good = entry(json!({
        "interruptId": "i0", "status": "resolved", "payload": {"approved": true},
    }));
    for edited in [json!("{\"to\":\"c\"}"), json!(["c"]), json!(1), json!(false)] {
        let bad = entry(json!({
            "interruptId": "i1",
            "status": "resolved",
            "payload": {"approved": true, "editedArgs": edited},
        }));
        let kind = InterruptKind::PermissionConfirm;
        assert_eq!(
            decide(&[good.clone(), bad], &[open("i0", kind), open("i1", kind)]),
            Err(AnswerError {
                interrupt_id: "i1".into(),
                message: "`editedArgs` must be a JSON object".into(),
            })
        );
    }
    assert!(permission_verdict(json!({"payload": {"approved": true, "editedArgs": null}})).is_ok());
}

#[test]
fn an_external_payload_becomes_text() {
    let text = |answer| match verdict(InterruptKind::ExternalExecution, answer) {
        Ok(Verdict::Result { call: stored, text, answered }) => {
            assert_eq!(stored, call());
            (text, answered)
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(text(json!({"payload": "blue"})), ("blue".to_owned(), true));
    assert_eq!(
        text(json!({"payload": {"b": 1, "a": [true]}})),
        (r#"{"b":1,"a":[true]}"#.to_owned(), true)
    );
    assert_eq!(text(json!({"payload": 7})), ("7".to_owned(), true));
    assert_eq!(text(json!({})), (String::new(), true));
    assert_eq!(
        text(json!({"status": "cancelled", "payload": "blue"})),
        ("Interrupt cancelled by user".to_owned(), false)
    );
}

#[test]
fn a_question_is_answered_or_declined() {
    let kind = InterruptKind::InputRequired;
    assert_eq!(
        verdict(kind, json!({"payload": {"city": "Oslo"}})),
        Ok(Verdict::Answer { payload: Some(json!({"city": "Oslo"})) })
    );
    assert_eq!(verdict(kind, json!({})), Ok(Verdict::Answer { payload: Some(Value::Null) }));
    assert_eq!(
        verdict(kind, json!({"status": "cancelled", "payload": 1})),
        Ok(Verdict::Answer { payload: None })
    );
}

#[test]
fn an_interrupt_whose_call_is_lost_cannot_be_answered() {
    let mut lost = open("i1", InterruptKind::ExternalExecution);
    lost.call = None;
    let answer = entry(json!({"interruptId": "i1", "status": "resolved"}));
    let error = decide(&[answer], &[lost]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "answer to interrupt i1: the call that it belongs to is not stored"
    );
}

#[test]
fn decisions_come_in_the_order_of_the_open_interrupts() {
    let answer = |id: &str| entry(json!({"interruptId": id, "status": "resolved"}));
    let kind = InterruptKind::FrontendTool;
    let decided =
        decide(&[answer("b"), answer("gone"), answer("a")], &[open("a", kind), open("b", kind)]);
    let ids: Vec<String> =
        decided.unwrap().iter().map(|decision| decision.open.interrupt.id.to_string()).collect();
    assert_eq!(ids, ["a", "b"]);
}
