//! Several turns with the memory of the server.

use serde_json::{Value, json};

use super::{
    FORGETFUL, REMEMBERING, Said, Talk, calls, forgetting, judge, reload, results, resume, says,
    user, wipes,
};

fn turns(name: &'static str, step: fn(Value) -> Value) -> Talk {
    Talk::new(name, "wiper")
        .offers("paint")
        .steps([
            user("Look"),
            step(user("Paint")),
            results(json!({"paint": "painted"})),
            step(user("Wipe")),
            step(resume("approve")),
            step(user("And now?")),
        ])
        .says(said())
        .executes([r#"/look {"at":"a"}"#, r#"/wipe {"disk":"a"}"#])
        .hears([
            "user: Look",
            r#"assistant: look({"at":"a"}) as k1"#,
            "tool k1: look is done",
            "assistant: Looked.",
            "user: Paint",
            r#"assistant: paint({"colour":"blue"}) as k2"#,
            "tool k2: painted",
            "assistant: Painted.",
            "user: Wipe",
            r#"assistant: wipe({"disk":"a"}) as k3"#,
            "tool k3: wipe is done",
            "assistant: Wiped.",
            "user: And now?",
        ])
}

fn said() -> Vec<Said> {
    vec![
        calls(&[("k1", "look", json!({"at": "a"}))]),
        says(&["Looked."]),
        calls(&[("k2", "paint", json!({"colour": "blue"}))]),
        says(&["Painted."]),
        wipes("k3", "a"),
        says(&["Wiped."]),
        says(&["All is done."]),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_send_everything_need_no_memory() {
    judge("turns", &[turns("full", |step| step)], &[FORGETFUL, REMEMBERING]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_send_what_is_new_alone_rely_on_the_memory() {
    judge("turns-remembered", &[turns("incremental", forgetting)], &[REMEMBERING]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_opened_anew_answers_what_was_asked() {
    let read = ["user: Wipe", r#"assistant: wipe({"disk":"a"}) as k1"#, "tool k1: wipe is done"];
    let asked = |name| {
        Talk::new(name, "wiper")
            .steps([user("Wipe"), reload(), resume("approve")])
            .says([wipes("k1", "a"), says(&["Wiped."])])
            .executes([r#"/wipe {"disk":"a"}"#])
    };
    let child = Talk::new("reloaded-while-a-sub-agent-asks", "boss")
        .steps([user("Wipe"), reload(), resume("approve")])
        .says([calls(&[("k1", "worker", json!({"task": "do it"}))]), says(&["All is done."])])
        .says_of("worker", [wipes("w1", "a"), says(&["I wiped it."])])
        .executes([r#"/wipe {"disk":"a"}"#])
        .hears([
            "user: Wipe",
            r#"assistant: worker({"task":"do it"}) as k1"#,
            "tool k1: I wiped it.",
        ]);
    judge(
        "reloaded",
        &[asked("reloaded-while-asked").hears(read), child],
        &[FORGETFUL, REMEMBERING],
    )
    .await;
    let again = asked("reloaded-again").steps([reload(), user("And now?"), reload()]);
    let again = again.says([says(&["All is done."])]).hears([
        read[0],
        read[1],
        read[2],
        "assistant: Wiped.",
        "user: And now?",
    ]);
    let state = Talk::new("reloaded-with-state", "helper")
        .steps([user("Count"), reload(), user("And?")])
        .says([
            calls(&[("k1", "update_state", json!({"set": [{"path": "/n", "value": 1}]}))]),
            calls(&[("k2", "update_plan", json!({"steps": [
                {"description": "count", "status": "completed"},
            ]}))]),
            says(&["One."]),
            says(&["Still one."]),
        ])
        .hears([
            "user: Count",
            r#"assistant: update_state({"set":[{"path":"/n","value":1}]}) as k1"#,
            "tool k1: Done: /n is now 1.",
            r#"assistant: update_plan({"steps":[{"description":"count","status":"completed"}]}) as k2"#,
            "tool k2: The plan is shown: 1 of 1 steps completed.",
            "assistant: One.",
            "user: And?",
        ]);
    judge("reloaded-remembered", &[again, state], &[REMEMBERING]).await;
}
