//! Tools run, and their results are the model's and the client's.

use agui_adapter::model::{
    event::StateChange,
    msg::{MediaKind, MediaSource},
};
use tokio::sync::Notify;

use super::*;

/// A tool that ends when it is told.
fn waiting(name: &str, told: &Arc<Notify>) -> Arc<dyn Tool> {
    let told = Arc::clone(told);
    let said = name.to_owned();
    tool(name, move |_call| {
        let (told, said) = (Arc::clone(&told), said.clone());
        Box::pin(stream::once(async move {
            told.notified().await;
            ToolEvent::End(ToolEnd::text(said, ResultState::Success))
        }))
    })
}

/// A tool that tells another one to end.
fn telling(name: &str, other: &Arc<Notify>) -> Arc<dyn Tool> {
    let other = Arc::clone(other);
    tool(name, move |_call| {
        other.notify_one();
        result("told")
    })
}

#[tokio::test]
async fn tools_of_one_answer_run_at_once_and_end_as_they_finish() {
    let told = Arc::new(Notify::new());
    let model = Script::new([calls(&[("c1", "slow", "{}"), ("c2", "quick", "{}")]), says("Ok")]);
    let tools = vec![waiting("slow", &told), telling("quick", &told)];
    let ran = run(parts(&model, tools), request()).await;
    assert_eq!(
        acting(&ran.lines)[..6],
        [
            "TOOL_RESULT_START r2 c1 slow",
            "TOOL_RESULT_START r2 c2 quick",
            "TOOL_RESULT_TEXT_DELTA c2 told",
            "TOOL_RESULT_END r2 c2 success",
            "TOOL_RESULT_TEXT_DELTA c1 slow",
            "TOOL_RESULT_END r2 c1 success",
        ]
    );
    let results = ["tool answers c1 success: slow", "tool answers c2 success: told"];
    assert_eq!(model.heard(1)[3..], results);
}

#[tokio::test]
async fn tools_run_one_behind_the_other_if_that_is_wanted() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let noting = |name: &str| {
        let (order, said) = (Arc::clone(&order), name.to_owned());
        tool(name, move |call| {
            order.lock().unwrap().push(format!("{said} begins with {}", call.state));
            let (order, said) = (Arc::clone(&order), said.clone());
            let change = StateChange::Set(json!({"by": said}));
            Box::pin(stream::iter([ToolEvent::State(change)]).chain(stream::once(async move {
                tokio::task::yield_now().await;
                order.lock().unwrap().push(format!("{said} ends"));
                ToolEvent::End(ToolEnd::text("", ResultState::Success))
            })))
        })
    };
    let model = Script::new([calls(&[("c1", "a", "{}"), ("c2", "b", "{}")]), says("Ok")]);
    let mut parts = parts(&model, vec![noting("a"), noting("b")]);
    parts.parallel_tool_calls = false;
    let ran = run(parts, request()).await;
    assert_eq!(
        acting(&ran.lines)[..6],
        [
            "TOOL_RESULT_START r2 c1 a",
            r#"agui.state Set(Object {"by": String("a")})"#,
            "TOOL_RESULT_END r2 c1 success",
            "TOOL_RESULT_START r2 c2 b",
            r#"agui.state Set(Object {"by": String("b")})"#,
            "TOOL_RESULT_END r2 c2 success",
        ]
    );
    let order = order.lock().unwrap();
    assert_eq!(*order, ["a begins with {}", "a ends", r#"b begins with {"by":"a"}"#, "b ends"]);
}

#[tokio::test]
async fn arguments_that_do_not_fit_and_unknown_tools_are_answered_and_not_run() {
    let model = Script::new([
        calls(&[("c1", "echo", "{oops"), ("c2", "echo", r#"{"n":"x"}"#), ("c3", "nope", "{}")]),
        says("Ok"),
    ]);
    let never = tool("echo", |_call| panic!("it runs"));
    let ran = run(parts(&model, vec![never]), request()).await;
    let lines = acting(&ran.lines);
    assert_eq!(
        lines[..3],
        [
            "TOOL_RESULT_START r2 c1 echo",
            "TOOL_RESULT_START r2 c2 echo",
            "TOOL_RESULT_START r2 c3 nope",
        ]
    );
    let ends: Vec<_> = lines.iter().filter(|line| line.starts_with("TOOL_RESULT_END")).collect();
    let expected = [
        "TOOL_RESULT_END r2 c1 error",
        "TOOL_RESULT_END r2 c2 error",
        "TOOL_RESULT_END r2 c3 error",
    ];
    assert_eq!(ends, expected);
    assert!(
        lines
            .contains(&"TOOL_RESULT_TEXT_DELTA c3 There is no tool `nope`. Tools: echo".to_owned())
    );
}

#[tokio::test]
async fn what_a_rule_denies_is_answered_and_the_rest_runs() {
    let model = Script::new([calls(&[("c1", "no", "{}"), ("c2", "yes", "{}")]), says("Ok")]);
    let mut parts = parts(&model, vec![echo("no"), echo("yes")]);
    parts.permission.deny = vec!["no".to_owned()];
    let ran = run(parts, request()).await;
    assert_eq!(
        acting(&ran.lines)[..6],
        [
            "TOOL_RESULT_START r2 c1 no",
            "TOOL_RESULT_START r2 c2 yes",
            "TOOL_RESULT_TEXT_DELTA c1 Permission denied by rules",
            "TOOL_RESULT_END r2 c1 denied",
            "TOOL_RESULT_TEXT_DELTA c2 yes {}",
            "TOOL_RESULT_END r2 c2 success",
        ]
    );
}

#[tokio::test]
async fn a_result_may_hold_several_texts_and_media() {
    let image = MediaSource::Base64 { media_type: "image/png".to_owned(), data: "AAAA".to_owned() };
    let blocks = vec![
        Block::Text { text: String::new() },
        Block::Text { text: "one".to_owned() },
        Block::Text { text: "two".to_owned() },
        Block::Media { kind: MediaKind::Image, source: image, name: None, metadata: None },
    ];
    let output = blocks.clone();
    let shows = tool("show", move |_call| {
        let end = ToolEnd::Result { output: output.clone(), state: ResultState::Success };
        events(vec![ToolEvent::End(end)])
    });
    let model = Script::new([calls(&[("c1", "show", "{}")]), says("Ok")]);
    let ran = run(parts(&model, vec![shows]), request()).await;
    assert_eq!(
        acting(&ran.lines)[1..5],
        [
            "TOOL_RESULT_TEXT_DELTA c1 one",
            "TOOL_RESULT_DATA_DELTA c1 two",
            "TOOL_RESULT_DATA_DELTA c1 Some(Image) image/png AAAA",
            "TOOL_RESULT_END r2 c1 success",
        ]
    );
    let request = &model.requests()[1];
    let Some(Block::ToolResult { output, .. }) = request.messages[2].content.first() else {
        panic!("no result");
    };
    assert_eq!(*output, blocks);
}

#[tokio::test]
async fn progress_state_and_activities_are_told() {
    let says_much = tool("much", |_call| {
        let activity = agui_adapter::model::event::ActivityChange::Content(Object::new());
        events(vec![
            ToolEvent::Progress { progress: 0.5, total: None, message: None },
            ToolEvent::Progress {
                progress: 1.0,
                total: Some(2.0),
                message: Some("half".to_owned()),
            },
            ToolEvent::State(StateChange::Patch(json!([{"op": "add", "path": "/a", "value": 1}]))),
            ToolEvent::State(StateChange::Patch(json!([{"op": "remove", "path": "/none"}]))),
            ToolEvent::Activity {
                id: "plan".to_owned(),
                activity_type: "PLAN".to_owned(),
                change: activity,
            },
            ToolEvent::End(ToolEnd::text("done", ResultState::Success)),
        ])
    });
    let model = Script::new([calls(&[("c1", "much", "{}")]), says("Ok")]);
    let mut parts = parts(&model, vec![says_much]);
    parts.tells_state = true;
    let ran = run(parts, request()).await;
    let patch = StateChange::Patch(json!([{"op": "add", "path": "/a", "value": 1}]));
    assert_eq!(
        acting(&ran.lines)[1..5],
        [
            r#"CUSTOM mcp_progress {"toolCallId":"c1","progress":0.5}"#.to_owned(),
            r#"CUSTOM mcp_progress {"toolCallId":"c1","progress":1.0,"total":2.0,"message":"half"}"#
                .to_owned(),
            format!("agui.state {patch:?}"),
            "agui.activity plan PLAN".to_owned(),
        ]
    );
    let systems: Vec<String> = model.requests().into_iter().map(|request| request.system).collect();
    assert_eq!(systems, ["Help.\n\nShared state:\n{}", "Help.\n\nShared state:\n{\"a\":1}"]);
}

#[tokio::test]
async fn each_change_of_the_state_knows_those_before_it() {
    use crate::{config::react::Builtin, tools::builtin::builtin};
    let set = |path: &str, value: Value| json!({"set": [{"path": path, "value": value}]});
    let model = Script::new([
        calls(&[
            ("c1", "update_state", &set("/customer/name", json!("Ann")).to_string()),
            ("c2", "echo", "{}"),
            ("c3", "update_state", &set("/customer/age", json!(30)).to_string()),
            ("c4", "update_plan", r#"{"steps":[]}"#),
            ("c5", "update_state", &set("/customer/age", json!(31)).to_string()),
        ]),
        says("Ok"),
    ]);
    let tools = [Builtin::UpdateState, Builtin::UpdatePlan].map(builtin);
    let mut parts = parts(&model, tools.into_iter().chain([echo("echo")]).collect());
    parts.tells_state = true;
    let mut request = request();
    request.state = Arc::new(Value::Null);
    run(parts, request).await;
    let state = json!({"customer": {"name": "Ann", "age": 31}, "plan": {"steps": []}});
    assert_eq!(model.requests()[1].system, format!("Help.\n\nShared state:\n{state}"));
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_breaks_or_hangs_gives_an_error_and_no_more() {
    let tools = vec![
        tool("panics", |_call| panic!("now")),
        tool("later", |_call| Box::pin(stream::once(async { panic!("later") }))),
        tool("ends", |_call| events(Vec::new())),
        tool("hangs", |_call| Box::pin(stream::pending())),
        echo("works"),
    ];
    let model = Script::new([
        calls(&[
            ("c1", "panics", "{}"),
            ("c2", "later", "{}"),
            ("c3", "ends", "{}"),
            ("c4", "hangs", "{}"),
            ("c5", "works", "{}"),
        ]),
        says("Ok"),
    ]);
    lines(parts(&model, tools), request()).await;
    assert_eq!(
        model.heard(1)[6..],
        [
            "tool answers c1 error: The tool failed.",
            "tool answers c2 error: The tool failed.",
            "tool answers c3 error: The tool failed.",
            "tool answers c4 error: The tool timed out.",
            "tool answers c5 success: works {}",
        ]
    );
}

#[tokio::test]
async fn the_model_is_given_the_beginning_of_a_very_long_result() {
    let long = "é".repeat(200 << 10);
    let said = long.clone();
    let talks = tool("talks", move |_call| result(said.clone()));
    let model = Script::new([calls(&[("c1", "talks", "{}")]), says("Ok")]);
    let ran = run(parts(&model, vec![talks]), request()).await;
    assert_eq!(acting(&ran.lines)[1], format!("TOOL_RESULT_TEXT_DELTA c1 {long}"));
    let kept = "é".repeat(128 << 10);
    assert_eq!(
        model.heard(1)[2],
        format!("tool answers c1 success: {kept}\n[cut: 262144 of 409600 bytes]")
    );
}
