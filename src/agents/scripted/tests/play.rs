//! What each line of a script does.

use std::{panic::AssertUnwindSafe, time::Duration};

use agui_adapter::model::{
    AgentEventKind as Kind, Origin,
    event::{ActivityChange, EndReason, StateChange},
};
use futures_util::FutureExt;
use serde_json::json;

use super::*;

fn local(kind: Kind) -> Result<AgentEvent, AgentError> {
    Ok(AgentEvent::local(kind))
}

fn interrupted() -> Result<AgentEvent, AgentError> {
    local(Kind::AgentEnd { reply: None, reason: EndReason::Interrupted })
}

fn text(delta: &str) -> Result<AgentEvent, AgentError> {
    let kind = Kind::TextBlockDelta {
        reply: "r".to_owned(),
        block: "b".to_owned(),
        delta: delta.to_owned(),
    };
    Ok(AgentEvent { origin: Origin::Java, ..AgentEvent::local(kind) })
}

fn line(delta: &str) -> String {
    json!({"type": "TEXT_BLOCK_DELTA", "replyId": "r", "blockId": "b", "delta": delta}).to_string()
}

/// What the text `template` becomes, both in a delta and deep inside another event.
async fn filled(template: &str, request: AgentRequest) -> String {
    let deep = json!({"type": "CUSTOM", "name": "c", "value": {"a": [template]}}).to_string();
    let agent = agent(&[&line(template), &deep]);
    let mut events = played(&agent, request).await.into_iter().map(|event| event.unwrap().kind);
    let Some(Kind::TextBlockDelta { delta, .. }) = events.next() else { panic!("no delta") };
    let Some(Kind::Custom { value, .. }) = events.next() else { panic!("no custom event") };
    assert_eq!(value, json!({"a": [delta]}));
    delta
}

#[tokio::test]
async fn placeholders_are_filled_in() {
    let context = json!({"who": "user-1", "agui.threadId": "t1", "list": [1, "a"], "null": null});
    let full = || AgentRequest {
        decisions: vec![approved("c1", r#"{"to": "x"}"#), answered(json!({"color": "\"red\""}))],
        state: json!({"n": 3, "name": "list \"x\"", "todos": [{"t": "a"}]}).into(),
        context: Arc::new(context.as_object().cloned().unwrap().into()),
        ..saying("say \"hi\"\n")
    };
    let cases = [
        ("plain", "plain"),
        ("", ""),
        ("${threadId}/${runId}", "t1/r1"),
        ("<${lastUserText}>", "<say \"hi\"\n>"),
        ("${context.who} ${context.agui.threadId}", "user-1 t1"),
        ("${context.list} ${context.null}", "[1,\"a\"] null"),
        ("${state./n} ${state./name} ${state./todos/0/t}", "3 list \"x\" a"),
        ("${state.}", r#"{"n":3,"name":"list \"x\"","todos":[{"t":"a"}]}"#),
        ("${resume.q1}", r#"{"color":"\"red\""}"#),
        ("${resume.c1} ${resume.wire-c1}", r#"{"approved":true} {"approved":true}"#),
        ("${args.c1}", r#"{"to": "x"}"#),
        // Without a value.
        ("<${n}${args.q1}${args.c9}${resume.c9}${context.x}${state./x}>", "<>"),
        // Escaped.
        ("$${threadId} $$${n}", "${threadId} $${n}"),
    ];
    for (template, expected) in cases {
        assert_eq!(filled(template, full()).await, expected, "{template}");
    }
    assert_eq!(filled("<${lastUserText}>", request()).await, "<>");
}

#[tokio::test]
async fn arguments_are_those_of_an_approved_call_only() {
    let with = |decisions| AgentRequest { decisions, ..request() };
    let denied = with(vec![denied(ResumeStatus::Resolved)]);
    assert_eq!(filled("<${args.c1}>", denied).await, "<>");
    let mut from_object = approved("c1", r#"{"a":1}"#);
    if let Verdict::Approved { call, .. } = &mut from_object.verdict {
        call.arguments.clear();
    }
    assert_eq!(filled("<${args.c1}>", with(vec![from_object])).await, r#"<{"a":1}>"#);
}

#[tokio::test]
async fn directives_of_state_activity_and_ask_become_events() {
    let agent = agent(&[
        r#"{"@":"state","set":{"count":1,"run":"${runId}"}}"#,
        r#"{"@":"state","patch":[{"op":"replace","path":"/count","value":2}]}"#,
        r#"{"@":"state","set":null}"#,
        r#"{"@":"activity","id":"a1","type":"PLAN","content":{"s":["${threadId}"]}}"#,
        r#"{"@":"activity","id":"a1","type":"PLAN","patch":[{"op":"remove","path":"/s/0"}]}"#,
        r#"{"@":"ask","id":"q1","message":"Which, ${threadId}?","schema":{"type":"string"}}"#,
        r#"{"@":"ask","id":"q2","message":"And?"}"#,
        r#"{"@":"park","state":{"left":"${parked./left}"}}"#,
        r#"{"@":"keep","state":{"rules":"${kept./rules}"}}"#,
    ]);
    let parked = Some(json!({"left": "two"}).into());
    let kept = Some(json!({"rules": [1]}).into());
    let request = AgentRequest { parked, kept, ..request() };
    let object = |value: Value| value.as_object().cloned().unwrap();
    let activity =
        |change| Kind::Activity { id: "a1".to_owned(), activity_type: "PLAN".to_owned(), change };
    let question = |id: &str, message: &str, schema| Kind::Question {
        id: id.to_owned(),
        message: message.to_owned(),
        schema,
    };
    let state = |change| local(Kind::State { change });
    assert_eq!(
        played(&agent, request).await,
        [
            state(StateChange::Set(json!({"count": 1, "run": "r1"}))),
            state(StateChange::Patch(json!([{"op": "replace", "path": "/count", "value": 2}]))),
            state(StateChange::Set(json!(null))),
            local(activity(ActivityChange::Content(object(json!({"s": ["t1"]}))))),
            local(activity(ActivityChange::Patch(json!([{"op": "remove", "path": "/s/0"}])))),
            local(question("q1", "Which, t1?", Some(object(json!({"type": "string"}))))),
            local(question("q2", "And?", None)),
            local(Kind::Park { state: json!({"left": "two"}).into() }),
            local(Kind::Keep { state: json!({"rules": "[1]"}).into() }),
        ]
    );
}

#[tokio::test]
async fn the_running_state_follows_directives_and_custom_events_and_a_bad_patch_is_skipped() {
    let custom = json!({
        "type": "CUSTOM", "name": "agui.state",
        "value": {"patch": [{"op": "add", "path": "/b", "value": 2}]},
    });
    let agent = agent(&[
        &line("${state./a}"),
        r#"{"@":"state","patch":[{"op":"replace","path":"/a","value":1}]}"#,
        r#"{"@":"state","patch":[{"op":"add","path":"/c","value":3},{"op":"remove","path":"/x"}]}"#,
        &custom.to_string(),
        &line("${state.}"),
    ]);
    let request = AgentRequest { state: json!({"a": 0}).into(), ..request() };
    let events = played(&agent, request).await;
    assert_eq!(events.len(), 4);
    assert_eq!(events[0], text("0"));
    assert_eq!(
        events[1],
        local(Kind::State {
            change: StateChange::Patch(json!([{"op": "replace", "path": "/a", "value": 1}])),
        })
    );
    assert_eq!(events[3], text(r#"{"a":1,"b":2}"#));
}

#[tokio::test]
async fn fail_ends_the_stream_with_its_message() {
    let agent = agent(&[&line("a"), r#"{"@":"fail","message":"run ${runId} broke"}"#, &line("b")]);
    let events = played(&agent, request()).await;
    assert_eq!(events.len(), 2);
    assert_eq!(events[0], text("a"));
    let error = events[1].as_ref().unwrap_err();
    assert_eq!(error.to_string(), "INTERNAL_ERROR: run r1 broke");
}

#[tokio::test]
async fn end_completes_the_stream() {
    let agent = agent(&[&line("a"), r#"{"@":"end"}"#, &line("b")]);
    assert_eq!(played(&agent, request()).await, [text("a")]);
}

#[tokio::test]
async fn panic_panics_in_the_stream() {
    let agent = agent(&[r#"{"@":"panic"}"#]);
    let outcome = AssertUnwindSafe(played(&agent, request())).catch_unwind().await;
    let cause = outcome.unwrap_err();
    assert_eq!(cause.downcast_ref(), Some(&"the script asked for a panic"));
}

#[tokio::test(start_paused = true)]
async fn sleep_waits_its_time() {
    let agent = agent(&[&line("a"), r#"{"@":"sleep","ms":1500}"#, &line("b")]);
    let start = tokio::time::Instant::now();
    assert_eq!(played(&agent, request()).await, [text("a"), text("b")]);
    assert_eq!(start.elapsed(), Duration::from_millis(1500));
}

#[tokio::test(start_paused = true)]
async fn sleeping_no_time_never_touches_the_timer() {
    let agent = agent(&[r#"{"@":"sleep","ms":0}"#, &line("a")]);
    let mut stream = agent.run(request());
    assert_eq!(stream.next().now_or_never(), Some(Some(text("a"))));
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_a_sleep_and_a_hang_in_order() {
    for waiting in [r#"{"@":"sleep","ms":3600000}"#, r#"{"@":"hang"}"#] {
        let agent = agent(&[&line("a"), waiting, &line("b")]);
        let request = request();
        let cancel = request.cancel.clone();
        let mut stream = agent.run(request);
        assert_eq!(stream.next().await, Some(text("a")));
        assert_eq!(stream.next().now_or_never(), None, "still waiting");
        cancel.cancel();
        let rest: Played = stream.collect().await;
        assert_eq!(rest, [interrupted()], "{waiting}");
    }
}

#[tokio::test]
async fn cancelling_stops_a_row_of_ready_events_soon() {
    let agent = agent(&[&format!(r#"{{"@":"repeat","times":1000000,"line":{}}}"#, line("a"))]);
    let request = request();
    let cancel = request.cancel.clone();
    let mut stream = agent.run(request);
    assert_eq!(stream.next().await, Some(text("a")));
    cancel.cancel();
    let rest: Played = stream.collect().await;
    assert_eq!(rest.len(), 16);
    assert_eq!(rest.last(), Some(&interrupted()));
}

#[tokio::test]
async fn a_cancelled_request_plays_nothing() {
    let agent = agent(&[&line("a")]);
    let request = request();
    request.cancel.cancel();
    assert_eq!(played(&agent, request).await, [interrupted()]);
}

#[tokio::test]
async fn repetitions_count_from_zero_and_nest() {
    let inner = json!({"@": "repeat", "times": 2, "line": serde_json::from_str::<Value>(&line("${n} ")).unwrap()});
    let agent = agent(&[
        &json!({"@": "repeat", "times": 2, "line": inner}).to_string(),
        &json!({"@": "repeat", "times": 0, "line": {"@": "panic"}}).to_string(),
        &line("<${n}>"),
    ]);
    assert_eq!(
        played(&agent, request()).await,
        [text("0 "), text("1 "), text("0 "), text("1 "), text("<>")]
    );
}

#[tokio::test]
async fn many_repetitions_arrive_whole_and_in_order() {
    let agent = agent(&[&format!(r#"{{"@":"repeat","times":200000,"line":{}}}"#, line("${n}"))]);
    let mut stream = agent.run(request());
    for n in 0..200_000 {
        assert_eq!(stream.next().await, Some(text(&n.to_string())));
    }
    assert_eq!(stream.next().await, None);
}

#[tokio::test]
async fn a_row_of_ready_events_lets_other_tasks_run() {
    let agent = agent(&[&format!(r#"{{"@":"repeat","times":300,"line":{}}}"#, line("a"))]);
    let mut stream = agent.run(request());
    for _ in 0..256 {
        assert_eq!(stream.next().now_or_never(), Some(Some(text("a"))));
    }
    assert_eq!(stream.next().now_or_never(), None, "the task gives way");
    assert_eq!(stream.next().await, Some(text("a")));
}

#[tokio::test]
async fn lines_without_an_event_let_other_tasks_run_too() {
    let endless = u64::MAX;
    let misfit = r#"{"@":"state","patch":[{"op":"remove","path":"/x"}]}"#;
    for row in [r#"{"@":"sleep","ms":0}"#, misfit] {
        let agent = agent(&[&format!(r#"{{"@":"repeat","times":{endless},"line":{row}}}"#)]);
        let request = request();
        let cancel = request.cancel.clone();
        let mut stream = agent.run(request);
        assert_eq!(stream.next().now_or_never(), None, "the task gives way: {row}");
        cancel.cancel();
        let rest: Played = stream.collect().await;
        assert_eq!(rest, [interrupted()], "{row}");
    }
}

#[tokio::test]
async fn nothing_repeated_is_nothing_however_often() {
    let nothing = r#"{"@":"repeat","times":0,"line":{"@":"sleep","ms":0}}"#;
    let row = format!(r#"{{"@":"repeat","times":{},"line":{nothing}}}"#, u64::MAX);
    let agent = agent(&[&row, &line("a")]);
    assert_eq!(agent.run(request()).next().now_or_never(), Some(Some(text("a"))));
}

#[tokio::test]
async fn placeholders_beside_the_strings_of_a_delta_are_filled_in_too() {
    let agent = agent(&[
        r#"{"type":"TEXT_BLOCK_DELTA","replyId":"${runId}","blockId":"b","delta":"x","source":"${threadId}/child","metadata":{"k":"${n}"}}"#,
        r#"{"type":"TOOL_CALL_DELTA","toolCallId":"c-${runId}","delta":"$${x} ${threadId}"}"#,
    ]);
    let kinds: Vec<_> =
        played(&agent, request()).await.into_iter().map(|event| event.unwrap()).collect();
    assert_eq!(kinds[0].source.as_deref(), Some("t1/child"));
    assert_eq!(kinds[0].metadata, json!({"k": ""}).as_object().cloned().unwrap());
    assert_eq!(
        kinds[0].kind,
        Kind::TextBlockDelta { reply: "r1".into(), block: "b".into(), delta: "x".into() }
    );
    assert_eq!(kinds[1].kind, Kind::ToolCallDelta { call: "c-r1".into(), delta: "${x} t1".into() });
}
