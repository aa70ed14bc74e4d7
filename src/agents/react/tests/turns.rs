//! What a model says becomes the agent's events.

use agui_adapter::model::{event::ModelUsage, msg::MediaSource};

use super::*;
use crate::llm::ModelErrorKind;

#[tokio::test]
async fn text_is_streamed_as_it_comes() {
    let usage = ModelUsage { output: Some(7), ..ModelUsage::default() };
    let model = Script::new([vec![
        text("Hel"),
        text(""),
        text("lo"),
        Ok(ModelEvent::Usage(usage)),
        finish(FinishReason::Stop),
    ]]);
    assert_eq!(
        lines(parts(&model, Vec::new()), request()).await,
        [
            "AGENT_START r0 Assistant",
            "MODEL_CALL_START r1 script",
            "TEXT_BLOCK_START r1-1",
            "TEXT_BLOCK_DELTA r1-1 Hel",
            "TEXT_BLOCK_DELTA r1-1 lo",
            "TEXT_BLOCK_END r1-1",
            "MODEL_CALL_END r1 7",
            "AGENT_END r0 Completed",
        ]
    );
    assert_eq!(model.heard(0), ["user: Hello"]);
    assert_eq!(model.requests()[0].system, "Help.");
}

#[tokio::test]
async fn thinking_text_and_media_are_blocks_of_their_own() {
    let image = MediaSource::Base64 { media_type: "image/png".to_owned(), data: "AAAA".to_owned() };
    let model = Script::new([vec![
        Ok(ModelEvent::Thinking("Hm".to_owned())),
        Ok(ModelEvent::ThinkingEnd { encrypted: Some("a.b:c".to_owned()) }),
        Ok(ModelEvent::ThinkingEnd { encrypted: Some("a.b:d".to_owned()) }),
        text("One"),
        Ok(ModelEvent::Thinking("Well".to_owned())),
        Ok(ModelEvent::Media(image)),
        text("Two"),
        finish(FinishReason::Stop),
    ]]);
    let lines = lines(parts(&model, Vec::new()), request()).await;
    assert_eq!(
        lines[2..lines.len() - 2],
        [
            "THINKING_BLOCK_START r1-1",
            "THINKING_BLOCK_DELTA r1-1 Hm",
            "THINKING_BLOCK_END r1-1 a.b:c",
            "THINKING_BLOCK_START r1-2",
            "THINKING_BLOCK_END r1-2 a.b:d",
            "TEXT_BLOCK_START r1-3",
            "TEXT_BLOCK_DELTA r1-3 One",
            "TEXT_BLOCK_END r1-3",
            "THINKING_BLOCK_START r1-4",
            "THINKING_BLOCK_DELTA r1-4 Well",
            "THINKING_BLOCK_END r1-4",
            "DATA_BLOCK_START r1-5 image/png",
            "DATA_BLOCK_DELTA r1-5 AAAA",
            "DATA_BLOCK_END r1-5",
            "TEXT_BLOCK_START r1-6",
            "TEXT_BLOCK_DELTA r1-6 Two",
            "TEXT_BLOCK_END r1-6",
        ]
    );
}

#[tokio::test]
async fn an_answer_without_calls_ends_the_reply_even_if_it_says_nothing() {
    for said in [
        vec![finish(FinishReason::Stop)],
        vec![Ok(ModelEvent::Thinking("Hm".to_owned())), finish(FinishReason::Length)],
        vec![finish(FinishReason::ContentFilter)],
        vec![finish(FinishReason::ToolCalls)],
    ] {
        let lines = lines(parts(&Script::new([said]), Vec::new()), request()).await;
        assert_eq!(lines.last().unwrap(), "AGENT_END r0 Completed");
    }
}

#[tokio::test]
async fn a_failure_of_the_model_is_the_runs_with_a_fixed_sentence() {
    let error = |kind| Err(ModelError { kind, cause: "secret".to_owned() });
    let said = [
        (error(ModelErrorKind::Auth), "MODEL_AUTH_ERROR"),
        (error(ModelErrorKind::RateLimited { retry_after: None }), "MODEL_RATE_LIMITED"),
        (error(ModelErrorKind::Unavailable), "MODEL_UNAVAILABLE"),
        (error(ModelErrorKind::ContextExceeded), "MODEL_CONTEXT_EXCEEDED"),
        (error(ModelErrorKind::Other), "MODEL_ERROR"),
    ];
    for (error, code) in said {
        let sentence = error.as_ref().unwrap_err().kind.sentence();
        let model = Script::new([vec![text("Hi"), error]]);
        assert_eq!(
            lines(parts(&model, Vec::new()), request()).await[2..],
            [
                "TEXT_BLOCK_START r1-1".to_owned(),
                "TEXT_BLOCK_DELTA r1-1 Hi".to_owned(),
                format!("error {code}: {sentence}"),
            ]
        );
    }
}

#[tokio::test]
async fn what_the_model_said_before_is_part_of_the_next_call() {
    let mut first = vec![
        Ok(ModelEvent::Thinking("Hm".to_owned())),
        Ok(ModelEvent::ThinkingEnd { encrypted: Some("a.b:c".to_owned()) }),
        text("Let me see."),
    ];
    first.extend(calls(&[("c1", "echo", r#"{"n":1}"#)]));
    let model = Script::new([first, says("Done.")]);
    lines(parts(&model, vec![echo("echo")]), request()).await;
    assert_eq!(
        model.heard(1),
        [
            "user: Hello",
            "assistant thinks: Hm a.b:c",
            "assistant: Let me see.",
            r#"assistant calls c1 echo({"n":1})"#,
            r#"tool answers c1 success: echo {"n":1}"#,
        ]
    );
}

#[tokio::test]
async fn a_call_keeps_the_models_id_unless_there_is_none_or_it_stands_for_another() {
    let first = calls(&[("c1", "echo", "{}"), ("", "echo", "{}"), ("c1", "echo", "{}")]);
    let model = Script::new([first, calls(&[("c1", "echo", "{}"), ("c2", "echo", "")]), says("")]);
    let ran = run(parts(&model, vec![echo("echo")]), request()).await;
    let started: Vec<&str> =
        ran.lines.iter().filter_map(|line| line.strip_prefix("TOOL_CALL_START ")).collect();
    let expected = ["r1 c1 echo", "r1 r2 echo", "r1 r3 echo", "r5 r6 echo", "r5 c2 echo"];
    assert_eq!(started, expected);
    let heard = model.heard(2);
    let ids = |begin: &str| -> Vec<String> {
        let lines = heard.iter().filter_map(|line| line.strip_prefix(begin));
        lines.map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    };
    assert_eq!(ids("assistant calls "), ids("tool answers "));
    assert_eq!(ids("assistant calls ").len(), 5);
    // Of an earlier reply, too.
    let model = Script::new([calls(&[("c1", "echo", "{}")]), says("")]);
    let mut request = request();
    let call = agui_adapter::model::event::Call { id: "c1".to_owned(), ..Default::default() };
    let earlier = msg("m0", Role::Assistant, Block::ToolUse { call, encrypted: None });
    request.messages.insert(0, earlier);
    let lines = lines(parts(&model, vec![echo("echo")]), request).await;
    assert_eq!(lines[2], "TOOL_CALL_START r1 r2 echo");
}

#[tokio::test]
async fn calls_that_are_made_at_once_do_not_mix() {
    let start = |index, id: &str| {
        let (id, name) = (id.to_owned(), "echo".to_owned());
        Ok(ModelEvent::CallStart { index, id, name })
    };
    let delta = |index, delta: &str| Ok(ModelEvent::CallDelta { index, delta: delta.to_owned() });
    let model = Script::new([
        vec![
            start(0, "a"),
            delta(0, r#"{"n""#),
            start(1, "b"),
            delta(1, r#"{"n":"#),
            delta(0, ":1}"),
            Ok(ModelEvent::CallEnd { index: 0, encrypted: Some("x.y:z".to_owned()) }),
            delta(1, "2}"),
            finish(FinishReason::ToolCalls),
        ],
        says(""),
    ]);
    let lines = lines(parts(&model, vec![echo("echo")]), request()).await;
    assert_eq!(
        lines[2..11],
        [
            "TOOL_CALL_START r1 a echo",
            r#"TOOL_CALL_DELTA a {"n""#,
            "TOOL_CALL_START r1 b echo",
            r#"TOOL_CALL_DELTA b {"n":"#,
            "TOOL_CALL_DELTA a :1}",
            "TOOL_CALL_END a x.y:z",
            "TOOL_CALL_DELTA b 2}",
            "TOOL_CALL_END b",
            "MODEL_CALL_END r1",
        ]
    );
    assert_eq!(
        model.heard(1)[1..],
        [
            r#"assistant calls a echo({"n":1})"#,
            r#"assistant calls b echo({"n":2})"#,
            r#"tool answers a success: echo {"n":1}"#,
            r#"tool answers b success: echo {"n":2}"#,
        ]
    );
}

#[tokio::test]
async fn a_call_that_the_length_limit_cut_is_answered_and_not_run() {
    let call = |arguments: &str, ended: bool| {
        let (id, name) = ("c1".to_owned(), "echo".to_owned());
        let end = ended.then_some(Ok(ModelEvent::CallEnd { index: 0, encrypted: None }));
        let begun = [
            Ok(ModelEvent::CallStart { index: 0, id, name }),
            Ok(ModelEvent::CallDelta { index: 0, delta: arguments.to_owned() }),
        ];
        begun.into_iter().chain(end).chain([finish(FinishReason::Length)]).collect::<Said>()
    };
    for (arguments, ended) in [("", false), (r#"{"n":"#, false), ("", true), (r#"{"n":"#, true)] {
        let model = Script::new([call(arguments, ended), says("")]);
        let ran = run(parts(&model, vec![echo("echo")]), request()).await;
        assert_eq!(
            acting(&ran.lines)[..3],
            [
                "TOOL_RESULT_START r2 c1 echo",
                "TOOL_RESULT_TEXT_DELTA c1 The call was not run: the answer reached its length \
                 limit before the arguments were complete. Call again with shorter arguments.",
                "TOOL_RESULT_END r2 c1 error",
            ]
        );
    }
    let model = Script::new([call(r#"{"n":1}"#, true), says("")]);
    let ran = run(parts(&model, vec![echo("echo")]), request()).await;
    assert_eq!(acting(&ran.lines)[1], r#"TOOL_RESULT_TEXT_DELTA c1 echo {"n":1}"#);
}

#[tokio::test]
async fn at_the_limit_of_iterations_the_model_sums_up_without_tools() {
    let mut last = says("So far: 1.");
    last.splice(1..1, calls(&[("c3", "echo", "{}")]).into_iter().take(3));
    let model = Script::new([calls(&[("c1", "echo", "{}")]), calls(&[("c2", "echo", "{}")]), last]);
    let mut parts = parts(&model, vec![echo("echo")]);
    parts.max_iters = 2;
    let lines = lines(parts, request()).await;
    let at = lines.iter().rposition(|line| line.starts_with("MODEL_CALL_START")).unwrap();
    assert_eq!(
        lines[at..],
        [
            "MODEL_CALL_START r5 script",
            "TEXT_BLOCK_START r5-1",
            "TEXT_BLOCK_DELTA r5-1 So far: 1.",
            "TEXT_BLOCK_END r5-1",
            "TOOL_CALL_START r5 c3 echo",
            "TOOL_CALL_DELTA c3 {}",
            "TOOL_CALL_END c3",
            "MODEL_CALL_END r5",
            "TOOL_RESULT_START r6 c3 echo",
            "TOOL_RESULT_TEXT_DELTA c3 The call was not run: the limit of iterations is reached.",
            "TOOL_RESULT_END r6 c3 error",
            "EXCEED_MAX_ITERS 2",
            "AGENT_END r0 MaxIterations",
        ]
    );
    let choices: Vec<_> = model.requests().iter().map(|request| request.tool_choice).collect();
    use crate::llm::ToolChoice::{Auto, None};
    assert_eq!(choices, [Auto, Auto, None]);
    assert_eq!(
        model.heard(2).last().unwrap(),
        "user hint: You have reached the limit of iterations for this reply. Call no more tools: \
         answer now, and say what you found and what is still open."
    );
}
