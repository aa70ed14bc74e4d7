//! A reply goes on when its answers come.

use super::*;

/// A run that parked, and what it takes to go on with it.
struct Waiting {
    model: Arc<Script>,
    parked: Arc<Value>,
}

/// Parks with `first` and then says what the script holds.
async fn parked(make: impl Fn(&Arc<Script>) -> Parts, offers: &[&str], first: Said) -> Waiting {
    let model = Script::new([first]);
    let ran = run(make(&model), offering(request(), offers)).await;
    Waiting { model, parked: ran.parked.unwrap() }
}

impl Waiting {
    /// Goes on with these decisions and these messages behind the history, on a replica.
    async fn go_on(
        &self,
        make: impl Fn(&Arc<Script>) -> Parts,
        decisions: Vec<Decision>,
        later: Vec<Msg>,
        answers: impl IntoIterator<Item = Said>,
    ) -> Ran {
        self.model.answers.lock().unwrap().extend(answers);
        let mut request = request();
        request.parked = Some(Arc::clone(&self.parked));
        request.decisions = decisions;
        // As clients have the reply.
        request.messages.push(said("a1", Role::Assistant, "Let me see."));
        request.messages.extend(later);
        run(make(&self.model), request).await
    }

    fn heard(&self) -> Vec<String> {
        self.model.heard(self.model.requests().len() - 1)
    }
}

fn two(model: &Arc<Script>) -> Parts {
    asking(parts(model, vec![echo("kept"), echo("free")]), &["kept"])
}

fn first() -> Said {
    let mut first = vec![
        Ok(ModelEvent::Thinking("Hm".to_owned())),
        Ok(ModelEvent::ThinkingEnd { encrypted: Some("a.b:c".to_owned()) }),
        text("Let me see."),
    ];
    first.extend(calls(&[
        ("c1", "kept", r#"{"n":1}"#),
        ("c2", "free", "{}"),
        ("c3", "kept", "{}"),
    ]));
    first
}

#[tokio::test]
async fn approved_and_allowed_calls_run_and_denied_ones_are_answered() {
    let waiting = parked(two, &[], first()).await;
    let decisions = vec![approved("c1", r#"{"n":1}"#), denied("c3", Some("not now"))];
    let ran = waiting.go_on(two, decisions, Vec::new(), [says("Done.")]).await;
    assert_eq!(
        ran.lines,
        [
            "AGENT_START r0 Assistant",
            "TOOL_RESULT_START r1 c1 kept",
            "TOOL_RESULT_START r1 c2 free",
            r#"TOOL_RESULT_TEXT_DELTA c1 kept {"n":1}"#,
            "TOOL_RESULT_END r1 c1 success",
            "TOOL_RESULT_TEXT_DELTA c2 free {}",
            "TOOL_RESULT_END r1 c2 success",
            "MODEL_CALL_START r2 script",
            "TEXT_BLOCK_START r2-1",
            "TEXT_BLOCK_DELTA r2-1 Done.",
            "TEXT_BLOCK_END r2-1",
            "MODEL_CALL_END r2",
            "AGENT_END r0 Completed",
        ]
    );
    assert_eq!(
        waiting.heard(),
        [
            "user: Hello",
            "assistant thinks: Hm a.b:c",
            "assistant: Let me see.",
            r#"assistant calls c1 kept({"n":1})"#,
            "assistant calls c2 free({})",
            "assistant calls c3 kept({})",
            r#"tool answers c1 success: kept {"n":1}"#,
            "tool answers c2 success: free {}",
            "tool answers c3 denied: Permission denied by user: not now",
        ]
    );
}

#[tokio::test]
async fn an_edited_call_runs_with_what_the_person_wrote() {
    let waiting = parked(two, &[], calls(&[("c1", "kept", r#"{"n":1}"#)])).await;
    let decisions = vec![edited("c1", r#"{"n":5}"#)];
    let ran = waiting.go_on(two, decisions, Vec::new(), [says("Done.")]).await;
    assert_eq!(ran.lines[2], r#"TOOL_RESULT_TEXT_DELTA c1 kept {"n":5}"#);
    assert_eq!(
        waiting.heard()[1..],
        [r#"assistant calls c1 kept({"n":5})"#, r#"tool answers c1 success: kept {"n":5}"#]
    );
}

#[tokio::test]
async fn an_edit_that_does_not_fit_fails_before_anything_runs() {
    let make = |model: &Arc<Script>| {
        let never = tool("free", |_call| panic!("it runs"));
        asking(parts(model, vec![echo("kept"), never]), &["kept"])
    };
    let waiting = parked(make, &[], first()).await;
    let decisions = vec![approved("c1", r#"{"n":1}"#), edited("c3", r#"{"n":"secret"}"#)];
    let ran = waiting.go_on(make, decisions, Vec::new(), []).await;
    assert_eq!(ran.lines.len(), 2);
    let error = &ran.lines[1];
    assert!(error.starts_with("error INVALID_INPUT_ERROR: `editedArgs` does not fit the tool: "));
    assert!(error.contains("/n") && !error.contains("secret"), "{error}");
}

#[tokio::test]
async fn what_ran_already_does_not_run_again() {
    let make = |model: &Arc<Script>| {
        let never = |name: &str| tool(name, |_call| panic!("it runs"));
        asking(parts(model, vec![never("kept"), never("free")]), &["kept"])
    };
    let waiting = parked(make, &[], first()).await;
    let mut settled = approved("c1", r#"{"n":1}"#);
    settled.settled = true;
    let later = vec![
        answered("c1", "it ran", ResultState::Success),
        answered("c2", "it ran too", ResultState::Success),
    ];
    let decisions = vec![settled, denied("c3", None)];
    let ran = waiting.go_on(make, decisions, later, [says("Done.")]).await;
    assert_eq!(ran.lines[1], "MODEL_CALL_START r1 script");
    assert_eq!(
        waiting.heard()[6..],
        [
            "tool answers c1 success: it ran",
            "tool answers c2 success: it ran too",
            "tool answers c3 denied: Permission denied by user",
        ]
    );
}

/// What becomes of the consent to `kept` and of the allowed `free`, if the agent is another one by
/// then.
async fn changed(change: impl Fn(Parts) -> Parts, offers: &[&str]) -> Vec<String> {
    let first = calls(&[("c1", "kept", "{}"), ("c2", "free", "{}")]);
    let waiting = parked(two, &[], first).await;
    waiting.model.answers.lock().unwrap().push_back(says("Done."));
    let mut request = offering(request(), offers);
    request.parked = Some(Arc::clone(&waiting.parked));
    request.decisions = vec![approved("c1", "{}")];
    run(change(two(&waiting.model)), request).await;
    waiting.heard()[3..].to_vec()
}

#[tokio::test]
async fn a_consent_holds_for_the_tool_that_was_called_and_no_other_of_its_name() {
    let moved = |mut parts: Parts| {
        parts.tools[0].0 = "http".into();
        parts
    };
    let text = "The call was not run: `kept` is another tool now.";
    let expected =
        [format!("tool answers c1 error: {text}"), "tool answers c2 success: free {}".to_owned()];
    assert_eq!(changed(moved, &[]).await, expected);
    assert_eq!(changed(|parts| parts, &["kept"]).await, expected);
}

#[tokio::test]
async fn tools_that_are_gone_or_denied_by_now_do_not_run() {
    let gone = |mut parts: Parts| {
        parts.tools.remove(0);
        parts
    };
    assert_eq!(
        changed(gone, &[]).await,
        [
            "tool answers c1 error: There is no tool `kept`. Tools: free",
            "tool answers c2 success: free {}",
        ]
    );
    let denied = |mut parts: Parts| {
        parts.permission.deny = vec!["kept".to_owned(), "free".to_owned()];
        parts
    };
    assert_eq!(
        changed(denied, &[]).await,
        [
            "tool answers c1 denied: Permission denied by rules",
            "tool answers c2 denied: Permission denied by rules",
        ]
    );
}

#[tokio::test]
async fn a_call_that_was_only_said_to_be_interrupted_runs() {
    let waiting = parked(two, &[], first()).await;
    let sentence = agui_adapter::inbound::INTERRUPTED_RESULT;
    let later = vec![answered("c2", sentence, ResultState::Interrupted)];
    let decisions = vec![denied("c1", None), denied("c3", None)];
    let ran = waiting.go_on(two, decisions, later, [says("Done.")]).await;
    assert_eq!(ran.lines[2], "TOOL_RESULT_TEXT_DELTA c2 free {}");
}

#[tokio::test]
async fn calls_that_others_ran_have_their_answers() {
    let make = |model: &Arc<Script>| {
        let mut parts = two(model);
        parts.external = vec![external("print")];
        parts
    };
    let first = calls(&[
        ("c1", "page", "{}"),
        ("c2", "print", "{}"),
        ("c3", "kept", "{}"),
        ("c4", "page", "{}"),
    ]);
    let waiting = parked(make, &["page"], first).await;
    let later = vec![answered("c1", "painted", ResultState::Success)];
    let decisions = vec![gave("c2", "printed"), denied("c3", None)];
    let ran = waiting.go_on(make, decisions, later, [says("Done.")]).await;
    assert_eq!(ran.lines[1], "MODEL_CALL_START r1 script");
    assert_eq!(
        waiting.heard()[5..],
        [
            "tool answers c1 success: painted",
            "tool answers c2 success: printed",
            "tool answers c3 denied: Permission denied by user",
            "tool answers c4 interrupted: The call was interrupted before it gave a result.",
        ]
    );
}

#[tokio::test]
async fn the_answer_to_a_question_goes_to_the_tool_that_asked() {
    let make = |model: &Arc<Script>| {
        let asks = tool("ask", |call| match call.answer {
            Some(answer) => result(format!("{:?} {:?}", answer.parked, answer.payload)),
            None => events(vec![ToolEvent::End(ToolEnd::Asks {
                message: "Which?".to_owned(),
                schema: None,
                parked: Some(json!(7)),
            })]),
        });
        parts(model, vec![asks, echo("echo")])
    };
    let first = || calls(&[("c1", "ask", "{}"), ("c2", "echo", "{}"), ("c3", "ask", "{}")]);
    let waiting = parked(make, &[], first()).await;
    let decisions = vec![replied("c1", Some(json!("red"))), replied("c3", None)];
    let ran = waiting.go_on(make, decisions, Vec::new(), [says("Done.")]).await;
    assert_eq!(
        ran.lines[1..7],
        [
            "TOOL_RESULT_START r1 c1 ask",
            "TOOL_RESULT_START r1 c3 ask",
            r#"TOOL_RESULT_TEXT_DELTA c1 Some(Number(7)) Some(String("red"))"#,
            "TOOL_RESULT_END r1 c1 success",
            "TOOL_RESULT_TEXT_DELTA c3 Some(Number(7)) None",
            "TOOL_RESULT_END r1 c3 success",
        ]
    );
    assert_eq!(waiting.heard()[5], "tool answers c2 success: echo {}");
}

#[tokio::test]
async fn what_the_person_said_meanwhile_follows_the_results() {
    let waiting = parked(two, &[], calls(&[("c1", "kept", "{}")])).await;
    let later = vec![said("m2", Role::User, "Hurry")];
    let decisions = vec![approved("c1", "{}")];
    let again = calls(&[("c2", "kept", "{}")]);
    let ran = waiting.go_on(two, decisions, later.clone(), [again]).await;
    let expected = [
        "user: Hello",
        "assistant calls c1 kept({})",
        "tool answers c1 success: kept {}",
        "user: Hurry",
    ];
    assert_eq!(waiting.heard(), expected);
    // And is not said again when the reply stops a second time.
    let waiting = Waiting { model: waiting.model, parked: ran.parked.unwrap() };
    waiting.go_on(two, vec![approved("c2", "{}")], later, [says("Done.")]).await;
    assert_eq!(waiting.heard()[..4], expected);
    assert_eq!(
        waiting.heard()[4..],
        ["assistant calls c2 kept({})", "tool answers c2 success: kept {}"]
    );
}

#[tokio::test]
async fn iterations_are_counted_over_the_whole_reply() {
    let make = |model: &Arc<Script>| {
        let mut parts = two(model);
        parts.max_iters = 1;
        parts
    };
    let waiting = parked(make, &[], calls(&[("c1", "kept", "{}")])).await;
    let ran = waiting.go_on(make, vec![approved("c1", "{}")], Vec::new(), [says("So.")]).await;
    let end = ["EXCEED_MAX_ITERS 1", "AGENT_END r0 MaxIterations"];
    assert_eq!(ran.lines[ran.lines.len() - 2..], end);
}

#[tokio::test]
async fn an_accepted_rule_is_kept_and_holds_in_later_runs() {
    let waiting = parked(two, &[], calls(&[("c1", "kept", "{}")])).await;
    let rule = json!({"tool_name": "kept", "rule_content": null, "behavior": "allow"});
    let mut call = stored("c1", "{}");
    call.name = "kept".to_owned();
    let verdict = Verdict::Approved { call, edited: false, rules: vec![rule] };
    let decisions = vec![decision(InterruptKind::PermissionConfirm, None, verdict)];
    let ran = waiting.go_on(two, decisions, Vec::new(), [says("Done.")]).await;
    assert_eq!(ran.lines[1], r#"agui.keep {"permissions":["builtin:kept"]}"#);

    let model = Script::new([calls(&[("c9", "kept", "{}")]), says("Done.")]);
    let mut request = request();
    request.kept = ran.kept;
    let ran = run(two(&model), request).await;
    assert_eq!(acting(&ran.lines)[1], "TOOL_RESULT_TEXT_DELTA c9 kept {}");
}

#[tokio::test]
async fn a_parked_state_of_another_form_is_refused() {
    for parked in [json!({"version": 2}), json!("?")] {
        let mut request = request();
        request.parked = Some(Arc::new(parked));
        let lines = lines(parts(&Script::new([]), Vec::new()), request).await;
        assert_eq!(
            lines[1..],
            ["error INTERNAL_ERROR: The agent cannot go on with what it had parked."]
        );
    }
}

#[tokio::test]
async fn what_a_provider_wants_back_is_there_when_the_client_answers_its_call() {
    let mut first = vec![
        Ok(ModelEvent::Thinking("Hm".to_owned())),
        Ok(ModelEvent::ThinkingEnd { encrypted: Some("a.b:c".to_owned()) }),
    ];
    first.extend(calls(&[("c1", "page", "{}"), ("c2", "free", "{}")]));
    let model = Script::new([first, says("Done."), says("Again."), says("Welcome.")]);
    let ran = run(two(&model), offering(request(), &["page"])).await;
    let kept = ran.kept.unwrap();

    let mut next = offering(request(), &["page"]);
    next.kept = Some(Arc::clone(&kept));
    // The client knows nothing of what was thought.
    let call = agui_adapter::model::event::Call { id: "c1".to_owned(), ..Default::default() };
    next.messages.push(msg("a1", Role::Assistant, Block::ToolUse { call, encrypted: None }));
    next.messages.push(answered("c1", "painted", ResultState::Success));
    let messages = next.messages.clone();
    let ran = run(two(&model), next).await;
    assert_eq!(ran.lines[1..3], ["agui.keep null", "MODEL_CALL_START r1 script"]);
    let expected = [
        "user: Hello",
        "assistant thinks: Hm a.b:c",
        "assistant calls c1 page({})",
        "assistant calls c2 free({})",
        "tool answers c1 success: painted",
        "tool answers c2 success: free {}",
    ];
    assert_eq!(model.heard(1), expected);

    // Of another conversation nothing is taken, nor when another agent has gone on with this one.
    let mut other = request();
    other.kept = Some(Arc::clone(&kept));
    other.messages = messages[..2].to_vec();
    run(two(&model), other).await;
    assert_eq!(model.heard(2).len(), 2);
    let mut later = request();
    later.kept = Some(kept);
    later.messages = messages;
    later.messages.push(said("a2", Role::Assistant, "It is painted."));
    later.messages.push(said("m2", Role::User, "Thanks"));
    run(two(&model), later).await;
    assert_eq!(
        model.heard(3),
        [
            "user: Hello",
            "assistant calls c1 ()",
            "tool answers c1 success: painted",
            "assistant: It is painted.",
            "user: Thanks",
        ]
    );
}
