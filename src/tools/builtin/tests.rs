use std::time::Duration;

use agui_adapter::{
    model::event::{ActivityChange, StateChange},
    runtime_context::RuntimeContext,
};
use futures_util::StreamExt as _;
use jiff::Timestamp;
use serde_json::json;
use tokio::sync::Semaphore;

use super::*;
use crate::tools::{ToolAnswer, ToolCall, ToolContext, schema::Arguments};

fn call(arguments: Value, state: Value, answer: Option<ToolAnswer>) -> ToolCall {
    let context = ToolContext {
        thread_id: serde_json::from_value(json!("t")).unwrap(),
        run_id: serde_json::from_value(json!("r")).unwrap(),
        request_id: "q".into(),
        runtime: Arc::new(RuntimeContext::default()),
    };
    let arguments = arguments.as_object().unwrap().clone();
    ToolCall {
        id: "c".to_owned(),
        arguments,
        state: Arc::new(state),
        context: Arc::new(context),
        answer,
    }
}

/// Calls it with arguments that fit its schema.
async fn events(tool: &dyn Tool, call: ToolCall) -> Vec<ToolEvent> {
    let schema = Arguments::compile(&tool.spec().parameters).unwrap();
    assert_eq!(schema.check(&call.arguments), Ok(()));
    tool.call(call).collect().await
}

async fn told(tool: &dyn Tool, arguments: Value) -> ToolEvent {
    let mut events = events(tool, call(arguments, json!({}), None)).await;
    assert_eq!(events.len(), 1);
    events.remove(0)
}

fn done(text: &str) -> ToolEvent {
    result(Ok(text.to_owned()))
}

fn failed(text: &str) -> ToolEvent {
    result(Err(text.to_owned()))
}

#[test]
fn every_built_in_tool_is_there_under_its_name() {
    for kind in Builtin::ALL {
        let tool = builtin(kind);
        let spec = tool.spec();
        assert_eq!(spec.name, kind.name());
        assert!(Arguments::compile(&spec.parameters).is_ok(), "{}", spec.name);
        assert_eq!(spec.read_only, kind != Builtin::UpdateState, "{}", spec.name);
        assert!(!spec.destructive, "{}", spec.name);
    }
}

fn christmas() -> Timestamp {
    "2026-12-24T18:30:05Z".parse().unwrap()
}

#[tokio::test]
async fn the_time_is_told_in_the_zone_that_was_asked_for() {
    let clock = get_current_time::GetCurrentTime::at(christmas);
    for (zone, text) in [
        ("Europe/Oslo", "2026-12-24T19:30:05+01:00 (Europe/Oslo, Thursday)"),
        ("europe/oslo", "2026-12-24T19:30:05+01:00 (Europe/Oslo, Thursday)"),
        ("Asia/Tokyo", "2026-12-25T03:30:05+09:00 (Asia/Tokyo, Friday)"),
        ("Asia/Kathmandu", "2026-12-25T00:15:05+05:45 (Asia/Kathmandu, Friday)"),
        ("America/New_York", "2026-12-24T13:30:05-05:00 (America/New_York, Thursday)"),
        ("UTC", "2026-12-24T18:30:05+00:00 (UTC, Thursday)"),
        ("", "2026-12-24T18:30:05+00:00 (UTC, Thursday)"),
    ] {
        assert_eq!(told(&clock, json!({"timezone": zone})).await, done(text), "{zone}");
    }
    let utc = done("2026-12-24T18:30:05+00:00 (UTC, Thursday)");
    assert_eq!(told(&clock, json!({})).await, utc);
}

#[tokio::test]
async fn a_zone_that_there_is_not_is_answered_with_those_like_it() {
    let clock = get_current_time::GetCurrentTime::at(christmas);
    for (zone, first) in [
        ("Oslo", "Europe/Oslo"),
        ("Europe/Olso", "Europe/Oslo"),
        ("new york", "America/New_York"),
        ("Asia/Tokio", "Asia/Tokyo"),
    ] {
        let ToolEvent::End(ToolEnd::Result { output, state }) =
            told(&clock, json!({"timezone": zone})).await
        else {
            panic!("{zone}")
        };
        assert_eq!(state, ResultState::Error);
        let [agui_adapter::model::msg::Block::Text { text }] = output.as_slice() else { panic!() };
        let (sentence, offered) = text.split_once(": ").unwrap();
        assert_eq!(sentence, "There is no such time zone. Did you mean one of these");
        assert_eq!(offered.split(", ").count(), 3);
        assert_eq!(offered.split(", ").next(), Some(first), "{zone}");
    }
}

#[tokio::test]
async fn a_zone_of_any_length_is_answered_at_once() {
    let clock = get_current_time::GetCurrentTime::at(christmas);
    let long = |times: usize| format!("Europe/Olso{}", "x".repeat(times));
    let short = told(&clock, json!({"timezone": long(1000)})).await;
    assert_eq!(told(&clock, json!({"timezone": long(1_000_000)})).await, short);
}

/// With time enough on any machine.
fn patient() -> calculate::Calculate {
    calculate::Calculate::within(Duration::from_secs(600))
}

#[tokio::test]
async fn expressions_are_worked_out() {
    let calculate = patient();
    for (expression, text) in [
        ("0.1 + 0.2", "0.3"),
        ("2^100", "1267650600228229401496703205376"),
        ("1/3", "approx. 0.3333333333"),
        ("1/3 to 3 dp", "approx. 0.333"),
        ("1/3 to fraction", "1/3"),
        ("sqrt(2)", "approx. 1.4142135624"),
        ("15% of 80", "12"),
        ("17 mod 5", "2"),
        ("10 km to miles", "approx. 6.2137119224 miles"),
        ("20 °C to °F", "68 °F"),
        ("0x1f + 1 to decimal", "32"),
        ("1 == 1", "true"),
    ] {
        assert_eq!(
            told(&calculate, json!({"expression": expression})).await,
            done(text),
            "{expression}"
        );
    }
}

#[tokio::test]
async fn what_has_no_value_is_said_so() {
    let calculate = patient();
    for (expression, text) in [
        ("", "There is no expression."),
        ("1/0", "The expression cannot be worked out: division by zero"),
        ("foo", "The expression cannot be worked out: unknown identifier 'foo'"),
        ("5 USD to EUR", "The expression cannot be worked out: exchange rates are not available"),
        (
            "10^2000",
            "The result has 2001 characters, more than 1000; round it, for example with `to 10 sf`.",
        ),
        (
            "10^1000 to words",
            &format!("The expression cannot be worked out: 1{}", "0".repeat(199)),
        ),
        // The library panics.
        ("i^-1", "The expression could not be worked out."),
    ] {
        assert_eq!(
            told(&calculate, json!({"expression": expression})).await,
            failed(text),
            "{expression}"
        );
    }
}

#[tokio::test]
async fn what_cannot_be_stopped_is_not_begun() {
    let calculate = patient();
    for sign in ["\\", "λ", ":", ";", "=", "<", ">", "\"", "'", "@", "#", "\n"] {
        let shown: String = sign.chars().flat_map(char::escape_default).collect();
        let text = format!("`{shown}` is not supported: give one expression.");
        let expression = format!("1 {sign} 2");
        assert_eq!(told(&calculate, json!({"expression": expression})).await, failed(&text));
    }
    for dice in ["2d6", "d20", "1 + 1_0d6", "(d6)", "1,000d6"] {
        let said = told(&calculate, json!({"expression": dice})).await;
        assert_eq!(said, failed("Dice are not supported."), "{dice}");
    }
    let long = "1+".repeat(250) + "1";
    let said = told(&calculate, json!({"expression": long})).await;
    assert_eq!(said, failed("The expression is longer than 500 characters."));
}

#[tokio::test]
async fn the_deepest_expressions_do_not_exhaust_the_stack() {
    let calculate = patient();
    let nested = |open: &str, times: usize, close: &str| {
        format!("{}1{}", open.repeat(times), close.repeat(times))
    };
    for expression in [nested("(", 249, ")"), nested("-", 498, ""), nested("-(", 166, ")")] {
        assert_eq!(told(&calculate, json!({"expression": expression})).await, done("1"));
    }
}

#[tokio::test]
async fn a_calculation_ends_when_its_time_is_up() {
    let calculate = calculate::Calculate::within(Duration::ZERO);
    let said = told(&calculate, json!({"expression": "9^9^9"})).await;
    assert_eq!(said, failed("The expression takes too long."));
}

#[tokio::test(start_paused = true)]
async fn a_calculation_that_does_not_look_up_keeps_its_turn() {
    let turns = Arc::new(Semaphore::new(1));
    let (go_on, waits) = std::sync::mpsc::channel::<()>();
    let late = calculate::in_turn(Arc::clone(&turns), Duration::ZERO, move |_| {
        waits.recv().map(|()| "late".to_owned()).map_err(|_| "gone".to_owned())
    });
    assert_eq!(late.await, Err("The expression takes too long.".to_owned()));
    assert_eq!(turns.available_permits(), 0);
    go_on.send(()).unwrap();
    assert!(turns.acquire().await.is_ok());
}

async fn change(state: Value, arguments: Value) -> (Vec<ToolEvent>, Value) {
    let tool = builtin(Builtin::UpdateState);
    let events = events(&*tool, call(arguments, state.clone(), None)).await;
    let mut changed = Arc::new(state);
    for event in &events {
        if let ToolEvent::State(change) = event {
            change.apply(&mut changed).unwrap();
        }
    }
    (events, Value::clone(&changed))
}

#[tokio::test]
async fn values_of_the_state_are_set_and_removed() {
    let state = json!({"customer": {"name": "Ann"}, "items": ["a"], "old": 1});
    let (events, changed) = change(
        state,
        json!({
            "set": [
                {"path": "/customer/name", "value": "Bo"},
                {"path": "/items/0", "value": "A"},
                {"path": "/items/-", "value": "b"},
                {"path": "/a/b", "value": {"c": 1}},
            ],
            "remove": ["/old"],
        }),
    )
    .await;
    let patch = json!([
        {"op": "replace", "path": "/customer/name", "value": "Bo"},
        {"op": "replace", "path": "/items/0", "value": "A"},
        {"op": "add", "path": "/items/-", "value": "b"},
        {"op": "add", "path": "/a", "value": {}},
        {"op": "add", "path": "/a/b", "value": {"c": 1}},
        {"op": "remove", "path": "/old"},
    ]);
    let text = "Done: /customer/name is now \"Bo\"; /items/0 is now \"A\"; /items/- is now \"b\"; \
                /a/b is now {\"c\":1}; /old is removed.";
    assert_eq!(events, [ToolEvent::State(StateChange::Patch(patch)), done(text)]);
    assert_eq!(
        changed,
        json!({"customer": {"name": "Bo"}, "items": ["A", "b"], "a": {"b": {"c": 1}}})
    );
}

#[tokio::test]
async fn a_state_that_is_not_there_yet_comes_about() {
    let (_, changed) = change(json!(null), json!({"set": [{"path": "/a", "value": 1}]})).await;
    assert_eq!(changed, json!({"a": 1}));
    let (events, changed) =
        change(json!({"a": 1}), json!({"set": [{"path": "", "value": [1]}]})).await;
    assert_eq!(events.last(), Some(&done("Done: the whole state is now [1].")));
    assert_eq!(changed, json!([1]));
    let items = json!({"items": [null, 2]});
    let (_, changed) = change(items, json!({"set": [{"path": "/items/0/a", "value": 1}]})).await;
    assert_eq!(changed, json!({"items": [{"a": 1}, 2]}));
}

#[tokio::test]
async fn a_change_that_fails_leaves_the_state_as_it_was() {
    for (arguments, text) in [
        (json!({}), "The state is as it was: there is nothing to set or to remove"),
        (
            json!({"set": [{"path": "a", "value": 1}]}),
            "The state is as it was: a is no JSON Pointer: it must begin with /",
        ),
        (
            json!({"set": [{"path": "/b", "value": 1}, {"path": "/a/b", "value": 1}]}),
            "The state is as it was: /a/b cannot be changed",
        ),
        (json!({"remove": ["/nothing"]}), "The state is as it was: /nothing cannot be changed"),
        (
            json!({"set": vec![json!({"path": "/b", "value": 1}); 200], "remove": ["/b"]}),
            "The state is as it was: more than 200 changes at once are not supported",
        ),
    ] {
        let (events, changed) = change(json!({"a": 1}), arguments).await;
        assert_eq!(events, [failed(text)]);
        assert_eq!(changed, json!({"a": 1}));
    }
}

#[tokio::test]
async fn a_long_value_is_not_repeated_whole() {
    let long = "x".repeat(1000);
    let (events, _) = change(json!({}), json!({"set": [{"path": "/a", "value": long}]})).await;
    let text = format!("Done: /a is now \"{}….", "x".repeat(199));
    assert_eq!(events.last(), Some(&done(&text)));
}

#[tokio::test]
async fn a_plan_is_an_activity_and_a_part_of_the_state() {
    let tool = builtin(Builtin::UpdatePlan);
    let steps = json!([
        {"description": "look", "status": "completed"},
        {"description": "leap", "status": "in_progress"},
    ]);
    let plan = json!({"steps": steps});
    let activity = ToolEvent::Activity {
        id: "plan".to_owned(),
        activity_type: "PLAN".to_owned(),
        change: ActivityChange::Content(plan.as_object().unwrap().clone()),
    };
    let end = done("The plan is shown: 1 of 2 steps completed.");
    let patch = json!([{"op": "add", "path": "/plan", "value": plan}]);
    for (state, change) in [
        (json!({"plan": 1}), Some(StateChange::Patch(patch.clone()))),
        (json!({}), Some(StateChange::Patch(patch))),
        (json!(null), Some(StateChange::Set(json!({"plan": plan})))),
        (json!([]), None),
    ] {
        let mut expected = vec![activity.clone()];
        expected.extend(change.map(ToolEvent::State));
        expected.push(end.clone());
        assert_eq!(events(&*tool, call(plan.clone(), state, None)).await, expected);
    }
}

async fn asked(arguments: Value) -> (String, Value) {
    let said = told(&*builtin(Builtin::AskUser), arguments).await;
    let ToolEvent::End(ToolEnd::Asks { message, schema, parked: None }) = said else {
        panic!("{said:?}")
    };
    let schema = Value::Object(schema.unwrap());
    assert!(Arguments::compile(&schema).is_ok());
    (message, schema)
}

fn schema(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

#[tokio::test]
async fn a_question_brings_the_form_of_its_answer() {
    let text = schema(json!({"answer": {"type": "string"}}), &["answer"]);
    assert_eq!(asked(json!({"question": "Why?"})).await, ("Why?".to_owned(), text.clone()));
    assert_eq!(asked(json!({"question": "Why?", "fields": [], "options": []})).await.1, text);
    let choice = json!({"question": "Which?", "options": ["a", "b", "a"]});
    assert_eq!(
        asked(choice).await.1,
        schema(json!({"answer": {"type": "string", "enum": ["a", "b"]}}), &["answer"])
    );
    let many: Vec<String> = (0..100_000).map(|n| n.to_string()).collect();
    let (_, form) = asked(json!({"question": "Which?", "options": many})).await;
    assert_eq!(form["properties"]["answer"]["enum"], json!(many));
    let fields = json!([
        {"name": "city", "label": "City"},
        {"name": "people", "type": "integer"},
        {"name": "class", "type": "number", "options": ["first", "second"], "required": false},
        {"name": "city", "type": "boolean"},
        {"name": " "},
    ]);
    assert_eq!(
        asked(json!({"question": "Where?", "fields": fields})).await.1,
        schema(
            json!({
                "city": {"type": "string", "title": "City"},
                "people": {"type": "integer"},
                "class": {"type": "string", "enum": ["first", "second"]},
            }),
            &["city", "people"]
        )
    );
}

#[tokio::test]
async fn an_answer_reaches_the_model() {
    let tool = builtin(Builtin::AskUser);
    for (payload, text) in [
        (Some(json!({"answer": "because"})), "because"),
        (Some(json!({"answer": 5})), "5"),
        (Some(json!({"city": "Oslo", "people": 2})), r#"{"city":"Oslo","people":2}"#),
        (Some(json!("yes")), "yes"),
        (Some(json!(null)), "null"),
        (None, "The user declined to answer."),
    ] {
        let answer = ToolAnswer { parked: None, payload };
        let call = call(json!({"question": "Why?"}), json!({}), Some(answer));
        assert_eq!(events(&*tool, call).await, [done(text)]);
    }
}
