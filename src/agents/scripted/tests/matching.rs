//! Which turn is played.

use agui_adapter::model::event::{Call, ResultState};
use serde_json::json;

use super::*;
use crate::{agents::scripted::matching::holds, config::agents::ResumeCondition};

fn resume(condition: ResumeCondition) -> When {
    When { resume: Some(condition), ..When::default() }
}

fn resumed(decisions: Vec<Decision>) -> AgentRequest {
    AgentRequest { decisions, ..request() }
}

fn result(call_id: &str, name: &str) -> Msg {
    let block = Block::ToolResult {
        call_id: call_id.to_owned(),
        name: name.to_owned(),
        output: Vec::new(),
        state: ResultState::Success,
        metadata: Object::new(),
    };
    message(Role::Tool, block)
}

#[test]
fn text_is_looked_for_in_the_last_user_message_whatever_its_case() {
    let when = When { text: Some("Ümlaut".to_owned()), ..When::default() };
    assert!(holds(&when, &saying("an üMLAUT here")));
    assert!(!holds(&when, &saying("nothing")));
    assert!(!holds(&when, &request()));
    let mut later = saying("Ümlaut");
    later.messages.push(message(Role::User, Block::Text { text: "other".to_owned() }));
    assert!(!holds(&when, &later));
    later.messages.pop();
    later.messages.push(message(Role::Assistant, Block::Text { text: "other".to_owned() }));
    assert!(holds(&when, &later));
}

#[test]
fn answers_are_told_apart() {
    use ResumeCondition::{Answered, Any, Approved, Cancelled, Denied};
    let result = |status, answered| {
        let verdict = Verdict::Result { call: call("c1", "{}"), text: String::new(), answered };
        decision(status, None, verdict)
    };
    let declined = decision(ResumeStatus::Cancelled, None, Verdict::Answer { payload: None });
    let cases = [
        (vec![], vec![]),
        (vec![approved("c1", "{}")], vec![Approved, Any]),
        (vec![approved("c1", "{}"), approved("c2", "{}")], vec![Approved, Any]),
        (vec![denied(ResumeStatus::Resolved)], vec![Denied, Any]),
        (vec![denied(ResumeStatus::Cancelled)], vec![Cancelled, Any]),
        (vec![approved("c2", "{}"), denied(ResumeStatus::Resolved)], vec![Denied, Any]),
        (vec![answered(json!("blue"))], vec![Answered, Any]),
        (vec![declined], vec![Cancelled, Any]),
        (vec![result(ResumeStatus::Resolved, true)], vec![Answered, Any]),
        (vec![result(ResumeStatus::Cancelled, false)], vec![Cancelled, Any]),
    ];
    for (decisions, expected) in cases {
        let request = resumed(decisions);
        let holding: Vec<_> = [Approved, Denied, Cancelled, Answered, Any]
            .into_iter()
            .filter(|condition| holds(&resume(*condition), &request))
            .collect();
        assert_eq!(holding, expected, "{:?}", request.decisions);
    }
}

#[test]
fn a_tool_result_counts_only_as_the_last_message() {
    let when = When { tool_result: Some("paint".to_owned()), ..When::default() };
    let with = |messages| AgentRequest { messages, ..request() };
    let called = || {
        let call = Call { id: "c1".to_owned(), name: "paint".to_owned(), ..Call::default() };
        message(Role::Assistant, Block::ToolUse { call, encrypted: None })
    };
    assert!(holds(&when, &with(vec![result("c1", "paint")])));
    assert!(holds(&when, &with(vec![called(), result("c1", "")])));
    assert!(!holds(&when, &with(vec![called(), result("c2", "")])));
    assert!(!holds(&when, &with(vec![result("c1", "other")])));
    let user = message(Role::User, Block::Text { text: "hi".to_owned() });
    assert!(!holds(&when, &with(vec![result("c1", "paint"), user])));
    assert!(!holds(&when, &request()));
}

#[test]
fn all_given_conditions_must_hold() {
    let when = When {
        text: Some("a".to_owned()),
        resume: Some(ResumeCondition::Approved),
        tool_result: None,
        always: true,
    };
    let both = AgentRequest { decisions: vec![approved("c1", "{}")], ..saying("a") };
    assert!(holds(&when, &both));
    assert!(!holds(&when, &saying("a")));
    assert!(!holds(&when, &resumed(vec![approved("c1", "{}")])));
    assert!(holds(&When { always: true, ..When::default() }, &request()));
}

#[tokio::test]
async fn the_first_match_is_played_and_without_a_match_the_last_turn() {
    let says = |text: &str| When { text: Some(text.to_owned()), ..When::default() };
    let event = |name: &str| json!({"type": "CUSTOM", "name": name}).to_string();
    let turns = vec![
        turn(says("one"), &[&event("first")]),
        turn(says("o"), &[&event("second")]),
        turn(says("zzz"), &[&event("third")]),
    ];
    let agent = ScriptedAgent::compile("test", &config(turns)).unwrap();
    for (text, name) in
        [("one", "first"), ("too", "second"), ("nothing", "second"), ("hi", "third")]
    {
        let expected = agui_adapter::model::AgentEventKind::Custom {
            name: name.to_owned(),
            value: Value::Null,
        };
        let kinds: Vec<_> = played(&agent, saying(text))
            .await
            .into_iter()
            .map(|event| event.unwrap().kind)
            .collect();
        assert_eq!(kinds, [expected], "{text}");
    }
}
