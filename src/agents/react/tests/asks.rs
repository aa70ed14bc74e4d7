//! What stops a run: consents, calls that others run, questions.

use super::*;

#[tokio::test]
async fn a_consent_holds_back_the_whole_batch() {
    let model = Script::new([calls(&[
        ("c1", "free", "{}"),
        ("c2", "kept", r#"{"n":2}"#),
        ("c3", "bad", "{oops"),
        ("c4", "kept", "{}"),
    ])]);
    let never = |name: &str| tool(name, |_call| panic!("it runs"));
    let parts = asking(parts(&model, vec![never("free"), never("kept"), never("bad")]), &["kept"]);
    let ran = run(parts, request()).await;
    let lines = acting(&ran.lines);
    assert_eq!(lines[0], "TOOL_RESULT_START r2 c3 bad");
    assert_eq!(
        lines[2..],
        [
            "TOOL_RESULT_END r2 c3 error",
            r#"REQUIRE_USER_CONFIRM r2 c2 kept({"n":2}) 1, c4 kept({}) 1"#,
            "REQUEST_STOP PERMISSION_ASKING",
            "agui.park",
            "AGENT_END r0 Completed",
        ]
    );
    let parked = ran.parked.unwrap();
    assert_eq!(parked["version"], 1);
    assert_eq!((&parked["anchor"], &parked["iterations"]), (&json!("m1"), &json!(1)));
    let standings: Vec<&str> = parked["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| call["standing"].as_str().unwrap())
        .collect();
    assert_eq!(standings, ["allowed", "asked", "done", "asked"]);
}

#[tokio::test]
async fn calls_of_the_clients_tools_stay_pending_while_the_others_run() {
    let model = Script::new([calls(&[("c1", "page", "{oops"), ("c2", "echo", "{}")])]);
    let ran = run(parts(&model, vec![echo("echo")]), offering(request(), &["page"])).await;
    assert_eq!(
        acting(&ran.lines),
        [
            "TOOL_RESULT_START r2 c2 echo",
            "TOOL_RESULT_TEXT_DELTA c2 echo {}",
            "TOOL_RESULT_END r2 c2 success",
            "REQUIRE_EXTERNAL_EXECUTION r2 c1 page({oops) 0",
            "agui.park",
            "AGENT_END r0 Completed",
        ]
    );
}

#[tokio::test]
async fn a_batch_with_a_consent_and_a_call_of_the_client_announces_both_and_runs_nothing() {
    let model = Script::new([calls(&[
        ("c1", "page", "{}"),
        ("c2", "kept", "{}"),
        ("c3", "print", "{}"),
        ("c4", "free", "{}"),
    ])]);
    let never = |name: &str| tool(name, |_call| panic!("it runs"));
    let mut parts = asking(parts(&model, vec![never("kept"), never("free")]), &["kept"]);
    parts.external = vec![external("print")];
    let ran = run(parts, offering(request(), &["page"])).await;
    assert_eq!(
        acting(&ran.lines),
        [
            "REQUIRE_USER_CONFIRM r2 c2 kept({}) 1",
            "REQUIRE_EXTERNAL_EXECUTION r2 c1 page({}) 0, c3 print({}) 0",
            "REQUEST_STOP PERMISSION_ASKING",
            "agui.park",
            "AGENT_END r0 Completed",
        ]
    );
    let parked = ran.parked.unwrap();
    let standings: Vec<&str> = parked["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| call["standing"].as_str().unwrap())
        .collect();
    assert_eq!(standings, ["frontend", "asked", "external", "allowed"]);
}

#[tokio::test]
async fn a_question_waits_until_the_other_calls_are_done() {
    let asks = tool("ask", |_call| {
        events(vec![ToolEvent::End(ToolEnd::Asks {
            message: "Which?".to_owned(),
            schema: None,
            parked: Some(json!({"step": 1})),
        })])
    });
    let model = Script::new([calls(&[("c1", "ask", "{}"), ("c2", "echo", "{}")])]);
    let ran = run(parts(&model, vec![asks, echo("echo")]), request()).await;
    assert_eq!(
        acting(&ran.lines),
        [
            "TOOL_RESULT_START r2 c1 ask",
            "TOOL_RESULT_START r2 c2 echo",
            "agui.ask c1 Which?",
            "TOOL_RESULT_TEXT_DELTA c2 echo {}",
            "TOOL_RESULT_END r2 c2 success",
            "agui.park",
            "AGENT_END r0 Completed",
        ]
    );
    assert_eq!(
        ran.parked.unwrap()["calls"],
        json!([
            {"id": "c1", "name": "ask", "source": "builtin", "arguments": "{}",
             "standing": "question", "parked": {"step": 1}},
            {"id": "c2", "name": "echo", "source": "builtin", "arguments": "{}",
             "standing": "done", "output": [{"type": "text", "text": "echo {}"}], "state": "success"},
        ])
    );
}
