//! Runs that fail behind what a tool has done.

use serde_json::json;

use super::{
    FORGETFUL, REMEMBERING, Said, Talk, calls, forgetting, judge, openai, resume, says, user, wipes,
};

#[tokio::test(flavor = "multi_thread")]
async fn an_approved_call_is_executed_once_though_the_run_failed_behind_it() {
    let talk = |name| Talk::new(name, "wiper").steps([user("Wipe it")]);
    let fails = || [wipes("k1", "a"), Said::Fails(500), says(&["Done."])];
    let read = ["user: Wipe it", r#"assistant: wipe({"disk":"a"}) as k1"#, "tool k1: wipe is done"];
    let answer = || resume(json!({"answer": {"answer": "a"}}));
    let edited = || resume(json!({"approve": {"disk": "b"}}));
    let both = calls(&[("k1", "wipe", json!({"disk": "a"})), ("k2", "look", json!({"at": "a"}))]);
    let talks = [
        talk("retried")
            .steps([resume("approve"), resume("approve")])
            .says(fails())
            .executes([r#"/wipe {"disk":"a"}"#])
            .hears(read),
        talk("retried-without-messages")
            .steps([forgetting(resume("approve")), forgetting(resume("approve"))])
            .says(fails())
            .executes([r#"/wipe {"disk":"a"}"#])
            .hears(read),
        talk("retried-twice")
            .steps([resume("approve"), resume("approve"), resume("approve"), user("Thanks")])
            .says([wipes("k1", "a"), Said::Fails(500), Said::Fails(503), says(&["Done."])])
            .says([says(&["Welcome."])])
            .executes([r#"/wipe {"disk":"a"}"#])
            .hears([read[0], read[1], read[2], "assistant: Done.", "user: Thanks"]),
        talk("retried-and-asked-again")
            .steps([resume("approve"), resume("approve"), resume("approve")])
            .says([wipes("k1", "a"), Said::Fails(500), wipes("k2", "b"), says(&["Done."])])
            .executes([r#"/wipe {"disk":"a"}"#, r#"/wipe {"disk":"b"}"#])
            .hears([
                read[0],
                read[1],
                read[2],
                r#"assistant: wipe({"disk":"b"}) as k2"#,
                "tool k2: wipe is done",
            ]),
        // The rule is there although the run that took it failed.
        talk("retried-with-a-rule")
            .steps([resume("always"), resume("always"), user("More")])
            .says([wipes("k1", "a"), Said::Fails(500), says(&["Done."])])
            .says([wipes("k2", "b"), says(&["Done again."])])
            .executes([r#"/wipe {"disk":"a"}"#, r#"/wipe {"disk":"b"}"#]),
        // What ran cannot be denied any more.
        talk("denied-afterwards")
            .steps([resume("approve"), resume(json!({"deny": "no"}))])
            .says(fails())
            .executes([r#"/wipe {"disk":"a"}"#])
            .hears(read),
        talk("retried-with-an-edit")
            .steps([edited(), edited()])
            .says(fails())
            .executes([r#"/wipe {"disk":"b"}"#])
            .hears([read[0], r#"assistant: wipe({"disk":"b"}) as k1"#, read[2]]),
        // The free call of the batch is done as well.
        Talk::new("retried-with-a-free-call", "orderly")
            .steps([user("Wipe it"), resume("approve"), resume("approve")])
            .says([both, Said::Fails(500), says(&["Done."])])
            .executes([r#"/look {"at":"a"}"#, r#"/wipe {"disk":"a"}"#])
            .hears([
                read[0],
                r#"assistant: wipe({"disk":"a"}) as k1 | look({"at":"a"}) as k2"#,
                read[2],
                "tool k2: look is done",
            ]),
        // The model had said something before, which is told once.
        talk("retried-behind-words")
            .steps([resume("approve"), resume("approve")])
            .says([
                Said::Chunks(vec![
                    openai::text("One moment."),
                    openai::call(0, "k1", "wipe", r#"{"disk":"a"}"#),
                    openai::finish("tool_calls"),
                ]),
                Said::Fails(500),
                says(&["Done."]),
            ])
            .executes([r#"/wipe {"disk":"a"}"#])
            .hears([read[0], r#"assistant: One moment. | wipe({"disk":"a"}) as k1"#, read[2]]),
        // The answer to a question is given again.
        talk("question-retried")
            .steps([answer(), answer()])
            .says([
                calls(&[("k1", "ask_user", json!({"question": "Which?"}))]),
                Said::Fails(500),
                says(&["Done."]),
            ])
            .hears([read[0], r#"assistant: ask_user({"question":"Which?"}) as k1"#, "tool k1: a"]),
        // It failed before anything was asked: the person says it again.
        talk("failed-before")
            .steps([user("Please"), resume("approve")])
            .says([Said::Fails(500), wipes("k1", "a"), says(&["Done."])])
            .executes([r#"/wipe {"disk":"a"}"#])
            .hears([
                "user: Wipe it",
                "user: Please",
                r#"assistant: wipe({"disk":"a"}) as k1"#,
                "tool k1: wipe is done",
            ]),
    ];
    judge("failures", &talks, &[FORGETFUL, REMEMBERING]).await;
}
