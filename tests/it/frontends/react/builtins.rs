//! The server's own tools: questions, the shared state, the plan.

use serde_json::{Value, json};

use super::{
    FORGETFUL, REMEMBERING, Said, Stage, Talk, calls, forgetting, judge, report, resume, says, user,
};

fn asks(arguments: Value) -> Said {
    calls(&[("k1", "ask_user", arguments)])
}

fn trip() -> Value {
    json!({"question": "Where to?", "fields": [
        {"name": "city", "label": "City"},
        {"name": "nights", "type": "integer"},
        {"name": "class", "options": ["first", "second"], "required": false},
    ]})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_asked_with_a_form() {
    let talk = |name| Talk::new(name, "helper").steps([user("Book")]);
    let rome = || resume(json!({"answer": {"city": "Rome", "nights": 2}}));
    let read = [
        "user: Book",
        r#"assistant: ask_user({"question":"Where to?","fields":[{"name":"city","label":"City"},{"name":"nights","type":"integer"},{"name":"class","options":["first","second"],"required":false}]}) as k1"#,
        r#"tool k1: {"city":"Rome","nights":2}"#,
    ];
    let declined = "tool k1: The user declined to answer.";
    let plain = || asks(json!({"question": "Which?", "options": ["red", "blue"]}));
    let beside = calls(&[
        ("k1", "ask_user", json!({"question": "Which?"})),
        ("k2", "look", json!({"at": "a"})),
    ]);
    let which = r#"assistant: ask_user({"question":"Which?","options":["red","blue"]}) as k1"#;
    let talks = [
        talk("form").steps([rome()]).says([asks(trip()), says(&["Booked."])]).hears(read),
        talk("form-without-messages")
            .steps([forgetting(rome())])
            .says([asks(trip()), says(&["Booked."])])
            .hears(read),
        talk("form-declined")
            .steps([resume("cancel")])
            .says([asks(trip()), says(&["Then not."])])
            .hears([read[0], read[1], declined]),
        // Refused, and open until a good answer comes.
        talk("form-not-filled-in")
            .steps([
                resume(json!({"answer": {"city": "Rome"}})),
                resume(json!({"answer": {"city": "Rome", "nights": "two"}})),
                rome(),
            ])
            .says([asks(trip()), says(&["Booked."])])
            .hears(read),
        talk("choice")
            .steps([resume(json!({"answer": {"answer": "red"}}))])
            .says([plain(), says(&["Red it is."])])
            .hears(["user: Book", which, "tool k1: red"]),
        talk("choice-that-is-none")
            .steps([
                resume(json!({"answer": {"answer": "green"}})),
                resume(json!({"answer": {"answer": "blue"}})),
            ])
            .says([plain(), says(&["Blue it is."])])
            .hears(["user: Book", which, "tool k1: blue"]),
        talk("question-beside-a-tool")
            .steps([resume(json!({"answer": {"answer": "anything"}}))])
            .says([beside, says(&["All right."])])
            .executes([r#"/look {"at":"a"}"#])
            .hears([
                "user: Book",
                r#"assistant: ask_user({"question":"Which?"}) as k1 | look({"at":"a"}) as k2"#,
                "tool k1: anything",
                "tool k2: look is done",
            ]),
    ];
    let records = judge("questions", &talks, &[FORGETFUL, REMEMBERING]).await;
    for record in &records {
        let codes: Vec<_> = record.runs.iter().map(|run| run.error["code"].clone()).collect();
        let refused = codes.iter().filter(|code| **code == "INVALID_INPUT_ERROR").count();
        let expected = match record.name.as_str() {
            "form-not-filled-in" => 2,
            "choice-that-is-none" => 1,
            _ => 0,
        };
        assert_eq!(refused, expected, "{}: {codes:?}", record.thread_id);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_client_has_the_state_and_the_plan_that_the_model_made() {
    let sets = |id: &str, changes: Value| calls(&[(id, "update_state", changes)]);
    let plans = |id: &str, first: &str, second: &str| {
        let steps = json!([
            {"description": "look", "status": first}, {"description": "tell", "status": second},
        ]);
        calls(&[(id, "update_plan", json!({"steps": steps}))])
    };
    let talks = [
        Talk::new("state", "helper").steps([user("Milk and bread"), user("No milk")]).says([
            sets(
                "k1",
                json!({"set": [
                    {"path": "/list/items", "value": ["milk", "bread"]},
                    {"path": "/list/open", "value": true},
                ]}),
            ),
            says(&["Noted."]),
            sets(
                "k2",
                json!({
                    "set": [{"path": "/list/items/-", "value": "eggs"}],
                    "remove": ["/list/items/0"],
                }),
            ),
            says(&["Removed."]),
        ]),
        Talk::new("plan", "helper")
            .steps([user("Look and tell")])
            .says([
                plans("k1", "in_progress", "pending"),
                calls(&[("k2", "look", json!({"at": "a"}))]),
                plans("k3", "completed", "in_progress"),
                says(&["It is done."]),
            ])
            .executes([r#"/look {"at":"a"}"#]),
    ];
    for record in judge("state", &talks, &[FORGETFUL, REMEMBERING]).await {
        let state = match record.name.as_str() {
            "state" => json!({"list": {"items": ["bread", "eggs"], "open": true}}),
            _ => json!({"plan": {"steps": [
                {"description": "look", "status": "completed"},
                {"description": "tell", "status": "in_progress"},
            ]}}),
        };
        assert_eq!(record.state, state, "{}", record.thread_id);
    }
}

/// The model reads the state that the client sent, and its own changes.
#[tokio::test(flavor = "multi_thread")]
async fn the_model_knows_the_state() {
    let stage = Stage::new(&FORGETFUL).await;
    let talk = Talk::new("told-state", "helper").steps([user("Count"), user("And?")]).says([
        calls(&[("k1", "update_state", json!({"set": [{"path": "/n", "value": 1}]}))]),
        says(&["One."]),
        says(&["Still one."]),
    ]);
    let mut faults = Vec::new();
    let records = stage.play(&[talk], &mut faults);
    report(faults, &stage.server.log());
    for record in records {
        assert_eq!(
            stage.instructions("helper", &record.thread_id),
            format!(
                "system: You are helper on {}!\n\nShared state:\n{{\"n\":1}}",
                record.thread_id
            ),
        );
    }
}
