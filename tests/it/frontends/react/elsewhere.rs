//! Tools that others run: the front end's, alone and beside the server's, and external ones.

use serde_json::{Value, json};

use super::{FORGETFUL, REMEMBERING, Said, Talk, calls, judge, results, resume, says, user, wipes};

fn paints(id: &str) -> Said {
    calls(&[(id, "paint", json!({"colour": "blue"}))])
}

/// The result of one call.
fn painted(call: &str) -> Value {
    json!({"messages": [
        {"id": "painted", "role": "tool", "toolCallId": call, "content": "painted"},
    ]})
}

/// The same and what the person says with it.
fn painted_and(call: &str, text: &str) -> Value {
    let mut step = painted(call);
    let words = json!({"id": "words", "role": "user", "content": text});
    step["messages"].as_array_mut().unwrap().push(words);
    step
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clients_tools_are_called_and_answered() {
    let talk = |name, agent| Talk::new(name, agent).offers("paint");
    let with_look =
        calls(&[("k1", "paint", json!({"colour": "blue"})), ("k2", "look", json!({"at": "a"}))]);
    let twice = calls(&[
        ("k1", "paint", json!({"colour": "blue"})),
        ("k2", "paint", json!({"colour": "red"})),
    ]);
    let with_ask =
        calls(&[("k1", "paint", json!({"colour": "blue"})), ("k2", "wipe", json!({"disk": "a"}))]);
    let answered = || results(json!({"paint": "painted"}));
    let talks = [
        talk("alone", "looker")
            .steps([user("Paint it"), answered(), user("Thanks")])
            .says([paints("k1"), says(&["It is blue."]), says(&["Welcome."])])
            .hears([
                "user: Paint it",
                r#"assistant: paint({"colour":"blue"}) as k1"#,
                "tool k1: painted",
                "assistant: It is blue.",
                "user: Thanks",
            ]),
        talk("one-after-the-other", "looker")
            .steps([user("Paint it"), answered(), answered()])
            .says([paints("k1"), paints("k2"), says(&["Done."])])
            .hears([
                "user: Paint it",
                r#"assistant: paint({"colour":"blue"}) as k1"#,
                "tool k1: painted",
                r#"assistant: paint({"colour":"blue"}) as k2"#,
                "tool k2: painted",
            ]),
        talk("two-at-once", "looker")
            .steps([user("Paint it"), answered()])
            .says([twice, says(&["Done."])])
            .hears([
                "user: Paint it",
                r#"assistant: paint({"colour":"blue"}) as k1 | paint({"colour":"red"}) as k2"#,
                "tool k1: painted",
                "tool k2: painted",
            ]),
        talk("beside-a-tool-of-the-server", "looker")
            .steps([user("Paint and look"), answered()])
            .says([with_look, says(&["Done."])])
            .executes([r#"/look {"at":"a"}"#])
            .hears([
                "user: Paint and look",
                r#"assistant: paint({"colour":"blue"}) as k1 | look({"at":"a"}) as k2"#,
                "tool k2: look is done",
                "tool k1: painted",
            ]),
        // The person speaks instead: the call was interrupted.
        talk("not-answered", "looker")
            .steps([user("Paint it"), user("Leave it")])
            .says([paints("k1"), says(&["All right."])])
            .hears([
                "user: Paint it",
                r#"assistant: paint({"colour":"blue"}) as k1"#,
                "tool k1: The call was interrupted before it gave a result.",
                "user: Leave it",
            ]),
        // The ask waits until the front end has answered its own call.
        talk("beside-an-ask", "wiper")
            .steps([user("Paint and wipe"), painted("k1"), resume("approve")])
            .says([with_ask.clone(), says(&["Done."])])
            .executes([r#"/wipe {"disk":"a"}"#])
            .hears([
                "user: Paint and wipe",
                r#"assistant: paint({"colour":"blue"}) as k1 | wipe({"disk":"a"}) as k2"#,
                "tool k1: painted",
                "tool k2: wipe is done",
            ]),
        talk("beside-an-ask-that-is-denied", "wiper")
            .steps([user("Paint and wipe"), painted("k1"), resume(json!({"deny": "no"}))])
            .says([with_ask.clone(), says(&["Done."])])
            .hears([
                "user: Paint and wipe",
                r#"assistant: paint({"colour":"blue"}) as k1 | wipe({"disk":"a"}) as k2"#,
                "tool k1: painted",
                "tool k2: Permission denied by user: no",
            ]),
        // The person speaks instead: the ask comes all the same, and the words behind its answer.
        talk("beside-an-ask-not-answered", "wiper")
            .steps([user("Paint and wipe"), user("Leave it"), resume("deny")])
            .says([with_ask.clone(), says(&["All right."])])
            .hears([
                "user: Paint and wipe",
                r#"assistant: paint({"colour":"blue"}) as k1 | wipe({"disk":"a"}) as k2"#,
                "tool k1: The call was interrupted before it gave a result.",
                "tool k2: Permission denied by user",
                "user: Leave it",
            ]),
        // The person answers and speaks: the ask comes first, the words are not lost.
        talk("beside-an-ask-answered-with-words", "wiper")
            .steps([user("Paint and wipe"), painted_and("k1", "Hurry"), resume("approve")])
            .says([with_ask.clone(), says(&["Done."])])
            .executes([r#"/wipe {"disk":"a"}"#])
            .hears([
                "user: Paint and wipe",
                r#"assistant: paint({"colour":"blue"}) as k1 | wipe({"disk":"a"}) as k2"#,
                "tool k1: painted",
                "tool k2: wipe is done",
                "user: Hurry",
            ]),
        talk("as-an-interrupt", "waiter")
            .steps([user("Paint it"), resume(json!({"answer": "painted"})), user("Thanks")])
            .says([paints("k1"), says(&["It is blue."]), says(&["Welcome."])])
            .hears([
                "user: Paint it",
                r#"assistant: paint({"colour":"blue"}) as k1"#,
                "tool k1: painted",
                "assistant: It is blue.",
                "user: Thanks",
            ]),
        // The client is asked, then its tool is called.
        talk("behind-an-ask", "wiper")
            .steps([user("Wipe and paint"), resume("approve"), answered()])
            .says([wipes("k1", "a"), paints("k2"), says(&["Done."])])
            .executes([r#"/wipe {"disk":"a"}"#])
            .hears([
                "user: Wipe and paint",
                r#"assistant: wipe({"disk":"a"}) as k1"#,
                "tool k1: wipe is done",
                r#"assistant: paint({"colour":"blue"}) as k2"#,
                "tool k2: painted",
            ]),
    ];
    judge("frontend-tools", &talks, &[FORGETFUL, REMEMBERING]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn external_calls_are_answered_from_outside() {
    let prints = || calls(&[("k1", "label", json!({"text": "42"}))]);
    let called = r#"assistant: label({"text":"42"}) as k1"#;
    let answered = || resume(json!({"answer": {"printer": 2}}));
    let talks = [
        Talk::new("answered", "printer")
            .steps([user("Print"), answered(), user("Thanks")])
            .says([prints(), says(&["Printed."]), says(&["Welcome."])])
            .hears([
                "user: Print",
                called,
                r#"tool k1: {"printer":2}"#,
                "assistant: Printed.",
                "user: Thanks",
            ]),
        Talk::new("given-up", "printer")
            .steps([user("Print"), resume("cancel")])
            .says([prints(), says(&["Then not."])])
            .hears(["user: Print", called, "tool k1: Interrupt cancelled by user"]),
        Talk::new("answered-before-a-failure", "printer")
            .steps([user("Print"), answered(), answered()])
            .says([prints(), Said::Fails(500), says(&["Printed."])])
            .hears(["user: Print", called, r#"tool k1: {"printer":2}"#]),
        // First the consent, with other arguments, then the call.
        Talk::new("approved-and-answered", "careful")
            .steps([user("Print"), resume(json!({"approve": {"text": "43"}})), answered()])
            .says([prints(), says(&["Printed."])])
            .hears([
                "user: Print",
                r#"assistant: label({"text":"43"}) as k1"#,
                r#"tool k1: {"printer":2}"#,
            ]),
        Talk::new("denied", "careful")
            .steps([user("Print"), resume(json!({"deny": "no paper"}))])
            .says([prints(), says(&["Then not."])])
            .hears(["user: Print", called, "tool k1: Permission denied by user: no paper"]),
    ];
    judge("external", &talks, &[FORGETFUL, REMEMBERING]).await;
}
