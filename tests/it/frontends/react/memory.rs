//! Several turns with the memory of the server.

use serde_json::{Value, json};

use super::{
    FORGETFUL, REMEMBERING, Said, Talk, calls, forgetting, judge, results, resume, says, user,
    wipes,
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
