//! Sub-agents.

use serde_json::json;

use super::{
    FORGETFUL, REMEMBERING, Said, Stage, Talk, calls, forgetting, judge, report, resume, says,
    user, wipes,
};

fn delegates(id: &str, task: &str) -> Said {
    calls(&[(id, "worker", json!({"task": task}))])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sub_agent_speaks_works_and_asks() {
    let talk = |name| Talk::new(name, "boss").steps([user("Have it done")]);
    let told = |last| ["user: Have it done", r#"assistant: worker({"task":"do it"}) as k1"#, last];
    let boss = || [delegates("k1", "do it"), says(&["All is done."])];
    let asking = |name| talk(name).says(boss());
    let talks = [
        talk("speaks")
            .steps([user("Again")])
            .says([
                delegates("k1", "do it"),
                says(&["All is done."]),
                delegates("k2", "do more"),
                says(&["More is done."]),
            ])
            .says_of("worker", [says(&["I ", "did it."]), says(&["I did ", "more."])])
            .hears_of("worker", ["user: do more"])
            .hears([
                "user: Have it done",
                r#"assistant: worker({"task":"do it"}) as k1"#,
                "tool k1: I did it.",
                "assistant: All is done.",
                "user: Again",
                r#"assistant: worker({"task":"do more"}) as k2"#,
                "tool k2: I did more.",
            ]),
        talk("works")
            .says(boss())
            .says_of("worker", [calls(&[("w1", "look", json!({"at": "a"}))]), says(&["I looked."])])
            .executes([r#"/look {"at":"a"}"#])
            .hears(told("tool k1: I looked.")),
        asking("asks-approved")
            .steps([resume("approve")])
            .says_of("worker", [wipes("w1", "a"), says(&["I wiped it."])])
            .executes([r#"/wipe {"disk":"a"}"#])
            .hears_of(
                "worker",
                ["user: do it", r#"assistant: wipe({"disk":"a"}) as w1"#, "tool w1: wipe is done"],
            )
            .hears(told("tool k1: I wiped it.")),
        asking("asks-approved-without-messages")
            .steps([forgetting(resume("approve"))])
            .says_of("worker", [wipes("w1", "a"), says(&["I wiped it."])])
            .executes([r#"/wipe {"disk":"a"}"#])
            .hears(told("tool k1: I wiped it.")),
        asking("asks-denied")
            .steps([resume(json!({"deny": "too early"}))])
            .says_of("worker", [wipes("w1", "a"), says(&["I did not."])])
            .hears_of(
                "worker",
                [
                    "user: do it",
                    r#"assistant: wipe({"disk":"a"}) as w1"#,
                    "tool w1: Permission denied by user: too early",
                ],
            )
            .hears(told("tool k1: I did not.")),
        asking("asks-edited")
            .steps([
                resume(json!({"approve": {"disk": 1}})),
                resume(json!({"approve": {"disk": "b"}})),
            ])
            .says_of("worker", [wipes("w1", "a"), says(&["I wiped b."])])
            .executes([r#"/wipe {"disk":"b"}"#])
            .hears_of(
                "worker",
                ["user: do it", r#"assistant: wipe({"disk":"b"}) as w1"#, "tool w1: wipe is done"],
            )
            .hears(told("tool k1: I wiped b.")),
        asking("asks-twice")
            .steps([resume("approve"), resume("approve")])
            .says_of("worker", [wipes("w1", "a"), wipes("w2", "b"), says(&["I wiped both."])])
            .executes([r#"/wipe {"disk":"a"}"#, r#"/wipe {"disk":"b"}"#])
            .hears(told("tool k1: I wiped both.")),
        asking("asks-a-question")
            .steps([resume(json!({"answer": {"answer": "fast"}}))])
            .says_of(
                "worker",
                [
                    calls(&[("w1", "ask_user", json!({"question": "How?"}))]),
                    says(&["I did it fast."]),
                ],
            )
            .hears_of(
                "worker",
                [
                    "user: do it",
                    r#"assistant: ask_user({"question":"How?"}) as w1"#,
                    "tool w1: fast",
                ],
            )
            .hears(told("tool k1: I did it fast.")),
        asking("changes-the-state")
            .says_of(
                "worker",
                [
                    calls(&[(
                        "w1",
                        "update_state",
                        json!({"set": [{"path": "/done", "value": true}]}),
                    )]),
                    says(&["I noted it."]),
                ],
            )
            .hears(told("tool k1: I noted it.")),
        // A rule that is accepted for the sub-agent holds when it is called again.
        talk("asks-once")
            .steps([resume("always"), user("Again")])
            .says([
                delegates("k1", "do it"),
                says(&["All is done."]),
                delegates("k2", "do more"),
                says(&["More is done."]),
            ])
            .says_of(
                "worker",
                [wipes("w1", "a"), says(&["I wiped a."]), wipes("w2", "b"), says(&["I wiped b."])],
            )
            .executes([r#"/wipe {"disk":"a"}"#, r#"/wipe {"disk":"b"}"#]),
        // The front end's tools are the root agent's.
        asking("calls-a-tool-of-the-front-end")
            .offers("paint")
            .says_of(
                "worker",
                [calls(&[("w1", "paint", json!({"colour": "blue"}))]), says(&["I cannot."])],
            )
            .hears_of(
                "worker",
                [
                    "user: do it",
                    r#"assistant: paint({"colour":"blue"}) as w1"#,
                    "tool w1: There is no tool `paint`. Tools: wipe, look, ask_user, update_state",
                ],
            )
            .hears(told("tool k1: I cannot.")),
        // The approved call is done when the child's model fails, and stays so.
        talk("fails-behind-the-approval")
            .steps([resume("approve")])
            .says(boss())
            .says_of("worker", [wipes("w1", "a"), Said::Fails(500)])
            .executes([r#"/wipe {"disk":"a"}"#])
            .hears(told("tool k1: The sub-agent failed.")),
        // What the sub-agent has said is kept with what it did: it is not asked again.
        talk("boss-fails-behind-the-approval")
            .steps([resume("approve"), resume("approve")])
            .says([delegates("k1", "do it"), Said::Fails(500), says(&["All is done."])])
            .says_of("worker", [wipes("w1", "a"), says(&["I wiped it."])])
            .executes([r#"/wipe {"disk":"a"}"#])
            .hears(told("tool k1: I wiped it.")),
    ];
    let records = judge("children", &talks, &[FORGETFUL, REMEMBERING]).await;
    for record in records.iter().filter(|record| record.name == "changes-the-state") {
        assert_eq!(record.state, json!({"done": true}));
    }
}

/// Who comes first is a matter of time, so nothing is compared that depends on it.
#[tokio::test(flavor = "multi_thread")]
async fn sub_agents_that_work_at_once_ask_at_once() {
    let both = calls(&[
        ("k1", "worker", json!({"task": "do one"})),
        ("k2", "worker", json!({"task": "do two"})),
    ]);
    let talk = Talk::new("ask-at-once", "boss")
        .steps([user("Have both done"), resume("approve")])
        .says([both, says(&["Both are done."])])
        // Both ask under the same id.
        .says_of("worker", [wipes("w", "a"), wipes("w", "b"), says(&["It is done."])])
        .says_of("worker", [says(&["It is done."])])
        .executes([r#"/wipe {"disk":"a"}"#, r#"/wipe {"disk":"b"}"#])
        .hears([
            "user: Have both done",
            r#"assistant: worker({"task":"do one"}) as k1 | worker({"task":"do two"}) as k2"#,
            "tool k1: It is done.",
            "tool k2: It is done.",
        ]);
    let stage = Stage::new(&FORGETFUL).await;
    let mut faults = Vec::new();
    let records = stage.play(&[talk], &mut faults);
    report(faults, &stage.server.log());
    for record in &records {
        let [asked, done] = &record.runs[..] else { panic!("{record:#?}") };
        assert_eq!(asked.pending_interrupts.as_array().unwrap().len(), 2, "{}", record.thread_id);
        assert_eq!(done.pending_tool_calls, json!([]), "{}", record.thread_id);
        let last = record.messages.as_array().unwrap().last().unwrap();
        assert_eq!(last["content"], "Both are done.", "{}", record.thread_id);
    }
}
