//! Calls that ask a person first.

use serde_json::json;

use super::{
    FORGETFUL, REMEMBERING, Stage, Talk, calls, entry, forgetting, judge, resume, says, user, wipes,
};
use crate::frontends::{expected, golden, report};

#[tokio::test(flavor = "multi_thread")]
async fn a_person_approves_edits_and_denies() {
    let talk = |name| Talk::new(name, "wiper");
    let asked = || [user("Wipe it")];
    let model = || [wipes("k1", "a"), says(&["Done."])];
    let both = calls(&[("k1", "wipe", json!({"disk": "a"})), ("k2", "wipe", json!({"disk": "b"}))]);
    let with_question = calls(&[
        ("k1", "wipe", json!({"disk": "a"})),
        ("k2", "ask_user", json!({"question": "When?"})),
    ]);
    let mixed = calls(&[("k1", "look", json!({"at": "a"})), ("k2", "wipe", json!({"disk": "a"}))]);
    let talks = [
        talk("approve")
            .steps(asked())
            .steps([resume("approve"), user("Thanks")])
            .says(model())
            .says([says(&["Welcome."])])
            .executes([r#"/wipe {"disk":"a"}"#])
            .hears([
                "user: Wipe it",
                r#"assistant: wipe({"disk":"a"}) as k1"#,
                "tool k1: wipe is done",
                "assistant: Done.",
                "user: Thanks",
            ]),
        talk("approve-without-messages")
            .steps(asked())
            .steps([forgetting(resume("approve"))])
            .says(model())
            .executes([r#"/wipe {"disk":"a"}"#])
            .hears([
                "user: Wipe it",
                r#"assistant: wipe({"disk":"a"}) as k1"#,
                "tool k1: wipe is done",
            ]),
        talk("deny")
            .steps(asked())
            .steps([resume(json!({"deny": "not on a Friday"})), user("Thanks")])
            .says(model())
            .says([says(&["Welcome."])])
            .hears([
                "user: Wipe it",
                r#"assistant: wipe({"disk":"a"}) as k1"#,
                "tool k1: Permission denied by user: not on a Friday",
                "assistant: Done.",
                "user: Thanks",
            ]),
        talk("cancel").steps(asked()).steps([resume("cancel")]).says(model()).hears([
            "user: Wipe it",
            r#"assistant: wipe({"disk":"a"}) as k1"#,
            "tool k1: Permission denied by user",
        ]),
        talk("edit")
            .steps(asked())
            .steps([resume(json!({"approve": {"disk": "b"}}))])
            .says(model())
            .executes([r#"/wipe {"disk":"b"}"#])
            .hears([
                "user: Wipe it",
                r#"assistant: wipe({"disk":"b"}) as k1"#,
                "tool k1: wipe is done",
            ]),
        talk("bad-edit")
            .steps(asked())
            .steps([
                resume(json!({"approve": {"disk": 7}})),
                resume(json!({"approve": {"disc": "b"}})),
                resume(json!({"approve": {"disk": "b"}})),
            ])
            .says(model())
            .executes([r#"/wipe {"disk":"b"}"#])
            .hears([
                "user: Wipe it",
                r#"assistant: wipe({"disk":"b"}) as k1"#,
                "tool k1: wipe is done",
            ]),
        talk("several")
            .steps(asked())
            .steps([resume(json!(["approve", {"deny": "not that one"}]))])
            .says([both, says(&["Done."])])
            .executes([r#"/wipe {"disk":"a"}"#])
            .hears([
                "user: Wipe it",
                r#"assistant: wipe({"disk":"a"}) as k1 | wipe({"disk":"b"}) as k2"#,
                "tool k1: wipe is done",
                "tool k2: Permission denied by user: not that one",
            ]),
        // What needs no consent waits for the consent to the other.
        talk("beside-a-free-call")
            .steps(asked())
            .steps([resume("deny")])
            .says([mixed, says(&["Done."])])
            .executes([r#"/look {"at":"a"}"#])
            .hears([
                "user: Wipe it",
                r#"assistant: look({"at":"a"}) as k1 | wipe({"disk":"a"}) as k2"#,
                "tool k1: look is done",
                "tool k2: Permission denied by user",
            ]),
        // The question comes when the consent is there.
        talk("beside-a-question")
            .steps(asked())
            .steps([resume("approve"), resume(json!({"answer": {"answer": "now"}}))])
            .says([with_question, says(&["Done."])])
            .executes([r#"/wipe {"disk":"a"}"#])
            .hears([
                "user: Wipe it",
                r#"assistant: wipe({"disk":"a"}) as k1 | ask_user({"question":"When?"}) as k2"#,
                "tool k1: wipe is done",
                "tool k2: now",
            ]),
        // Model calls are counted over the asks.
        Talk::new("up-to-the-limit", "hasty")
            .steps(asked())
            .steps([resume("approve"), resume("approve")])
            .says([wipes("k1", "a"), wipes("k2", "b"), says(&["Two."])])
            .executes([r#"/wipe {"disk":"a"}"#, r#"/wipe {"disk":"b"}"#]),
        // A model that numbers its calls anew: the second is a call of its own.
        talk("same-id")
            .steps(asked())
            .steps([resume("approve"), user("Once more"), resume("approve")])
            .says(model())
            .says(model())
            .executes([r#"/wipe {"disk":"a"}"#, r#"/wipe {"disk":"a"}"#]),
        talk("again")
            .steps(asked())
            .steps([resume("approve"), resume("deny")])
            .says([wipes("k1", "a"), wipes("k2", "b"), says(&["Done."])])
            .executes([r#"/wipe {"disk":"a"}"#])
            .hears([
                "user: Wipe it",
                r#"assistant: wipe({"disk":"a"}) as k1"#,
                "tool k1: wipe is done",
                r#"assistant: wipe({"disk":"b"}) as k2"#,
                "tool k2: Permission denied by user",
            ]),
    ];
    let records = judge("approvals", &talks, &[FORGETFUL, REMEMBERING]).await;
    for record in records.iter().filter(|record| record.name == "bad-edit") {
        let codes: Vec<_> = record.runs.iter().map(|run| run.error["code"].clone()).collect();
        let invalid = json!("INVALID_INPUT_ERROR");
        assert_eq!(codes, [json!(null), invalid.clone(), invalid, json!(null)]);
    }
}

/// Clients do not learn of the edit; only the server's memory has it later.
#[tokio::test(flavor = "multi_thread")]
async fn the_memory_has_the_arguments_that_were_edited() {
    let talk = Talk::new("edit-remembered", "wiper")
        .steps([user("Wipe it"), resume(json!({"approve": {"disk": "b"}})), user("Thanks")])
        .says([wipes("k1", "a"), says(&["Done."]), says(&["Welcome."])])
        .executes([r#"/wipe {"disk":"b"}"#])
        .hears([
            "user: Wipe it",
            r#"assistant: wipe({"disk":"b"}) as k1"#,
            "tool k1: wipe is done",
            "assistant: Done.",
            "user: Thanks",
        ]);
    judge("edits", &[talk], &[REMEMBERING]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_was_accepted_spares_the_ask_on_its_thread() {
    let (mut faults, mut entries, mut log) = (Vec::new(), Vec::new(), String::new());
    let always = Talk::new("always", "wiper")
        .steps([user("Wipe a"), resume("always"), user("Wipe b")])
        .says([wipes("k1", "a"), says(&["Done."]), wipes("k2", "b"), says(&["Done again."])])
        .executes([r#"/wipe {"disk":"a"}"#, r#"/wipe {"disk":"b"}"#]);
    let elsewhere =
        Talk::new("always-elsewhere", "wiper").steps([user("Wipe c")]).says([wipes("k1", "c")]);
    for kind in [FORGETFUL, REMEMBERING] {
        let stage = Stage::new(&kind).await;
        for talk in [&always, &elsewhere] {
            let records = stage.play(std::slice::from_ref(talk), &mut faults);
            entries.extend(records.iter().map(|record| entry(record, kind.name)));
            let asked = |run: &crate::frontends::driver::Run| {
                run.pending_interrupts.as_array().unwrap().len()
            };
            for record in &records {
                let asks: Vec<usize> = record.runs.iter().map(asked).collect();
                let right: &[usize] = if talk.name == "always" { &[1, 0, 0] } else { &[1] };
                if asks != right {
                    faults.push(format!("{} {}: asks {asks:?}", kind.name, record.thread_id));
                }
            }
        }
        log.push_str(&stage.server.log());
    }
    faults.extend(golden::compare(&expected("react").join("rules"), entries));
    report(faults, &log);
}
