//! Children that were delegated to inside this server: their `taskId` names the parent's call.

use agui_adapter::{
    model::{
        AgentEvent, AgentEventKind,
        event::{EndReason, Failure, Origin},
    },
    options::SubagentEvents,
};
use serde_json::{Value, json};

use super::{
    FRONTEND, Played, Run, SUCCESS,
    resume::answers,
    script::*,
    subagents::{mode, told},
    wire,
};

const R: &str = "main/r";
const DEEP: &str = "main/r/deep";

fn root(lines: impl Lines) -> Vec<AgentEvent> {
    let mut all = Vec::new();
    lines.add(&mut all);
    all.into_iter().map(wire).collect()
}

/// Events of an invocation.
fn of(source: &str, task: &str, lines: impl Lines) -> Vec<AgentEvent> {
    let put = |event: AgentEvent| {
        let mut event = event.from_source(source);
        event.metadata.insert("taskId".to_owned(), task.into());
        event
    };
    root(lines).into_iter().map(put).collect()
}

fn local(source: &str, task: &str, kind: AgentEventKind) -> Vec<AgentEvent> {
    let mut event = AgentEvent::local(kind).from_source(source);
    event.metadata.insert("taskId".to_owned(), task.into());
    vec![event]
}

fn begins(source: &str, task: &str) -> Vec<AgentEvent> {
    let start = AgentEventKind::AgentStart { reply: None, session: None, name: "R".to_owned() };
    let events = local(source, task, start);
    assert_eq!(events[0].origin, Origin::Local);
    events
}

fn ends(source: &str, task: &str) -> Vec<AgentEvent> {
    of(source, task, any("AGENT_END", json!({})))
}

/// Two calls of one agent, whose arguments and order say nothing of which child is whose.
fn two_calls() -> Vec<AgentEvent> {
    root(joined![start(), call("c1", "r", "{}"), call("c2", "r", "{}")])
}

const TWO_CALLS: [&str; 6] =
    ["CALL c1 r id-1", "CALL+ c1 {}", "CALL c2 r id-1", "CALL+ c2 {}", "CALL. c1", "CALL. c2"];

fn started(id: &str, call: &str) -> String {
    format!(
        "SUBAGENT_STARTED @{id} {{\"name\":\"R\",\"parentToolCallId\":\"{call}\",\
         \"parentMessageId\":\"id-1\"}}"
    )
}

fn all(before: &[&str], lines: &[String]) -> Vec<String> {
    before.iter().map(|line| (*line).to_owned()).chain(lines.iter().cloned()).collect()
}

#[track_caller]
fn gives(played: &Played, expected: &[String]) {
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    played.gives(&expected);
}

/// The second one begins first; both make the same call under the same reply.
fn parallel() -> Vec<AgentEvent> {
    [
        two_calls(),
        begins(R, "c2"),
        begins(R, "c1"),
        of(R, "c1", joined![text("one"), call("k", "find", "{}")]),
        of(R, "c2", joined![text("two"), call("k", "find", "{}")]),
        of(R, "c2", result("k", "2")),
        of(R, "c1", result("k", "1")),
        ends(R, "c1"),
        ends(R, "c2"),
        root(joined![result("c1", "first"), result("c2", "second"), end()]),
    ]
    .concat()
}

#[test]
fn parallel_children_of_one_agent_belong_each_to_its_own_call() {
    let lines = [
        started("id-2", "c2"),
        started("id-3", "c1"),
        "TEXT id-4 @id-3".to_owned(),
        "TEXT+ id-4 one @id-3".to_owned(),
        "TEXT. id-4 @id-3".to_owned(),
        "CALL k find id-4 @id-3".to_owned(),
        "CALL+ k {} @id-3".to_owned(),
        "TEXT id-5 @id-2".to_owned(),
        "TEXT+ id-5 two @id-2".to_owned(),
        "TEXT. id-5 @id-2".to_owned(),
        "CALL id-6 find id-5 @id-2".to_owned(),
        "CALL+ id-6 {} @id-2".to_owned(),
        "CALL. id-6 @id-2".to_owned(),
        "RESULT id-7 id-6 2 @id-2".to_owned(),
        "CALL. k @id-3".to_owned(),
        "RESULT id-8 k 1 @id-3".to_owned(),
        "SUBAGENT_FINISHED @id-3".to_owned(),
        "SUBAGENT_FINISHED @id-2".to_owned(),
        "RESULT id-9 c1 first".to_owned(),
        "RESULT id-10 c2 second".to_owned(),
        SUCCESS.to_owned(),
    ];
    gives(&Run::default().play_events(&parallel()), &all(&TWO_CALLS, &lines));
}

#[test]
fn parallel_children_of_one_agent_stay_apart_in_native_and_custom_form() {
    let played = mode(SubagentEvents::Native).play_events(&parallel());
    let tags: Vec<(Value, Value)> = played
        .values()
        .iter()
        .filter(|event| event.get("subagentRunId").is_some() && event.get("content").is_some())
        .map(|event| (event["subagentRunId"].clone(), event["content"].clone()))
        .collect();
    assert_eq!(tags, [(json!("id-2"), json!("2")), (json!("id-3"), json!("1"))]);

    let played = mode(SubagentEvents::Custom).play_events(&parallel());
    let result = |id: &str, content: &str| {
        let members = json!({ "type": "TOOL_RESULT_END", "toolCallId": "k", "toolName": "find",
            "state": "SUCCESS", "content": content });
        told((R, Some(id)), "tool_result", members)
    };
    let results: Vec<String> =
        played.lines().into_iter().filter(|line| line.contains("TOOL_RESULT_END")).collect();
    assert_eq!(results, [result("id-2", "2"), result("id-3", "1")]);
}

/// Both children of one agent delegate to one agent under the same call id.
#[test]
fn the_parent_of_a_nested_child_is_the_one_whose_task_it_has() {
    let events = [
        two_calls(),
        begins(R, "c1"),
        begins(R, "c2"),
        of(R, "c2", call("k", "deep", "{}")),
        of(R, "c1", call("k", "deep", "{}")),
        begins(DEEP, "c1/k"),
        begins(DEEP, "c2/k"),
        ends(DEEP, "c2/k"),
        ends(DEEP, "c1/k"),
        of(R, "c1", joined![result("k", "1")]),
        of(R, "c2", joined![result("k", "2")]),
        ends(R, "c1"),
        ends(R, "c2"),
        root(joined![result("c1", "first"), result("c2", "second"), end()]),
    ]
    .concat();
    let nested = |id: &str, parent: &str, call: &str, message: &str| {
        format!(
            "SUBAGENT_STARTED @{id} {{\"name\":\"R\",\"parentSubagentRunId\":\"{parent}\",\
             \"parentToolCallId\":\"{call}\",\"parentMessageId\":\"{message}\"}}"
        )
    };
    let lines = [
        started("id-2", "c1"),
        started("id-3", "c2"),
        "CALL k deep id-4 @id-3".to_owned(),
        "CALL+ k {} @id-3".to_owned(),
        "CALL id-5 deep id-6 @id-2".to_owned(),
        "CALL+ id-5 {} @id-2".to_owned(),
        "CALL. id-5 @id-2".to_owned(),
        nested("id-7", "id-2", "id-5", "id-6"),
        "CALL. k @id-3".to_owned(),
        nested("id-8", "id-3", "k", "id-4"),
        "SUBAGENT_FINISHED @id-8".to_owned(),
        "SUBAGENT_FINISHED @id-7".to_owned(),
        "RESULT id-9 id-5 1 @id-2".to_owned(),
        "RESULT id-10 k 2 @id-3".to_owned(),
        "SUBAGENT_FINISHED @id-2".to_owned(),
        "SUBAGENT_FINISHED @id-3".to_owned(),
        "RESULT id-11 c1 first".to_owned(),
        "RESULT id-12 c2 second".to_owned(),
        SUCCESS.to_owned(),
    ];
    gives(&Run::default().play_events(&events), &all(&TWO_CALLS, &lines));
}

fn asks(source: &str, task: &str, call_id: &str) -> Vec<AgentEvent> {
    let lines = joined![call(call_id, "send", "{\"a\":1}"), confirm(&[(call_id, "send")])];
    of(source, task, lines)
}

/// Two invocations of one agent, both of which ask under the same ids.
fn both_ask() -> Played {
    let events = [
        two_calls(),
        begins(R, "c1"),
        begins(R, "c2"),
        asks(R, "c1", "k"),
        asks(R, "c2", "k"),
        ends(R, "c1"),
        ends(R, "c2"),
        root(end()),
    ];
    Run::default().play_events(&events.concat())
}

#[test]
fn two_invocations_of_one_agent_that_ask_are_told_apart_by_their_tasks() {
    let first = both_ask();
    let open: Vec<_> = first
        .end
        .open
        .iter()
        .map(|open| {
            let id = open.interrupt.subagent_run_id.as_ref().map(|id| id.as_str());
            let call = open.call.as_ref().map(|call| (call.id.as_str(), call.wire_id.as_str()));
            (open.source.as_deref(), open.task.as_deref(), id, call, open.above.len())
        })
        .collect();
    assert_eq!(
        open,
        [
            (Some(R), Some("c1"), Some("id-2"), Some(("k", "k")), 0),
            (Some(R), Some("c2"), Some("id-3"), Some(("k", "id-5")), 0),
        ]
    );
    // They go on under their ids, whichever begins first.
    let events = [
        root(start()),
        begins(R, "c2"),
        begins(R, "c1"),
        of(R, "c1", result("k", "sent 1")),
        of(R, "c2", result("k", "sent 2")),
        ends(R, "c2"),
        ends(R, "c1"),
        root(joined![result("c1", "first"), result("c2", "second"), end()]),
    ];
    let answered = answers(&first.end, "resolved", &json!({ "approved": true }));
    let calls = [("c1", "r", None), ("c2", "r", None)];
    let again = Run { answered, excused: &["TOOL-14"], ..Run::default() }.knowing(&calls);
    again.play_events(&events.concat()).gives(&[
        "SUBAGENT_STARTED @id-3 {\"name\":\"R\"}",
        "SUBAGENT_STARTED @id-2 {\"name\":\"R\"}",
        "RESULT id-1 k sent 1 @id-2",
        "RESULT id-2 id-5 sent 2 @id-3",
        "SUBAGENT_FINISHED @id-3",
        "SUBAGENT_FINISHED @id-2",
        "RESULT id-3 c1 first",
        "RESULT id-4 c2 second",
        SUCCESS,
    ]);
}

#[test]
fn those_above_a_child_that_asks_are_suspended_with_it_and_go_on_under_their_ids() {
    let events = [
        two_calls(),
        begins(R, "c1"),
        of(R, "c1", call("k", "deep", "{}")),
        begins(DEEP, "c1/k"),
        asks(DEEP, "c1/k", "d"),
        ends(DEEP, "c1/k"),
        ends(R, "c1"),
        root(joined![result("c2", "second"), end()]),
    ];
    let first = Run::default().play_events(&events.concat());
    let ended: Vec<String> =
        first.lines().into_iter().filter(|line| line.starts_with("SUBAGENT_FINISHED")).collect();
    assert_eq!(
        ended,
        [
            "SUBAGENT_FINISHED @id-4 {\"outcome\":{\"type\":\"suspended\",\"interruptIds\":[\"R2:d\"]}}",
            "SUBAGENT_FINISHED @id-2 {\"outcome\":{\"type\":\"suspended\"}}",
        ]
    );
    let above = json!([{ "source": R, "task": "c1", "subagentRunId": "id-2" }]);
    assert_eq!(json!(first.end.open[0].above), above);

    let events = [
        root(start()),
        begins(R, "c1"),
        begins(DEEP, "c1/k"),
        of(DEEP, "c1/k", result("d", "sent")),
        ends(DEEP, "c1/k"),
        ends(R, "c1"),
        root(joined![result("c1", "first"), end()]),
    ];
    let answered = answers(&first.end, "resolved", &json!({ "approved": true }));
    let again = Run { answered, excused: &["TOOL-14"], ..Run::default() };
    again.knowing(&[("c1", "r", None)]).play_events(&events.concat()).gives(&[
        "SUBAGENT_STARTED @id-2 {\"name\":\"R\"}",
        "SUBAGENT_STARTED @id-4 {\"name\":\"R\",\"parentSubagentRunId\":\"id-2\"}",
        "RESULT id-1 d sent @id-4",
        "SUBAGENT_FINISHED @id-4",
        "SUBAGENT_FINISHED @id-2",
        "RESULT id-2 c1 first",
        SUCCESS,
    ]);
}

#[test]
fn a_second_invocation_after_a_resumed_one_is_another_one() {
    let first = both_ask();
    let events = [
        root(start()),
        begins(R, "c1"),
        of(R, "c1", result("k", "sent")),
        ends(R, "c1"),
        begins(R, "c2"),
        of(R, "c2", result("k", "sent")),
        ends(R, "c2"),
        root(joined![result("c1", "first"), result("c2", "second"), call("c1", "r", "{}")]),
        begins(R, "c1"),
        ends(R, "c1"),
        root(joined![result("c1", "again"), end()]),
    ];
    let answered = answers(&first.end, "resolved", &json!({ "approved": true }));
    let calls = [("c1", "r", None), ("c2", "r", None)];
    let again = Run { answered, excused: &["TOOL-14"], ..Run::default() }.knowing(&calls);
    let lines = again.play_events(&events.concat()).lines();
    let started: Vec<&str> = lines
        .iter()
        .filter(|line| line.starts_with("SUBAGENT_STARTED"))
        .map(String::as_str)
        .collect();
    assert_eq!(
        started,
        [
            "SUBAGENT_STARTED @id-2 {\"name\":\"R\"}",
            "SUBAGENT_STARTED @id-3 {\"name\":\"R\"}",
            "SUBAGENT_STARTED @id-7 {\"name\":\"R\",\"parentToolCallId\":\"id-5\",\"parentMessageId\":\"id-6\"}",
        ]
    );
}

#[test]
fn a_failure_inside_this_server_has_the_code_that_it_names() {
    let failed = |class: &str| {
        let failure = Failure { class: class.to_owned(), message: "A sentence.".to_owned() };
        let failed = AgentEventKind::AgentEnd { reply: None, reason: EndReason::Failed(failure) };
        let events = [
            root(joined![start(), call("c1", "r", "{}")]),
            begins(R, "c1"),
            local(R, "c1", failed),
            root(joined![result("c1", "failed"), end()]),
        ];
        events.concat()
    };
    let error = |played: Played| {
        let mut lines = played.lines().into_iter();
        lines.find(|line| line.starts_with("SUBAGENT_ERROR"))
    };
    let told_as = |code: &str, message: &str| {
        Some(format!("SUBAGENT_ERROR @id-2 {{\"message\":\"{message}\",\"code\":\"{code}\"}}"))
    };
    assert_eq!(
        error(Run::default().play_events(&failed("TOOLS_UNAVAILABLE"))),
        told_as("TOOLS_UNAVAILABLE", "A sentence.")
    );
    assert_eq!(
        error(Run::default().play_events(&failed("rate_limit"))),
        told_as("MODEL_RATE_LIMITED", "A sentence.")
    );
    // What an upstream writes there is not for people.
    let mut upstream = failed("SECRET");
    upstream.iter_mut().for_each(|event| event.origin = Origin::Python);
    assert_eq!(
        error(Run::default().play_events(&upstream)),
        told_as("UPSTREAM_ERROR", "The agent failed.")
    );
}

#[test]
fn a_childs_tool_may_have_the_name_of_one_of_the_clients() {
    let events = [
        root(joined![start(), call("c1", "r", "{}")]),
        begins(R, "c1"),
        of(R, "c1", joined![call("k", "paint", "{}"), result("k", "painted")]),
        ends(R, "c1"),
        root(joined![result("c1", "done"), end()]),
    ];
    // A checker cannot know whose tool it is.
    let run = Run { excused: &["TOOL-16"], ..Run::with_input(FRONTEND) };
    run.play_events(&events.concat()).gives(&[
        "CALL c1 r id-1",
        "CALL+ c1 {}",
        "CALL. c1",
        &started("id-2", "c1"),
        "CALL k paint id-3 @id-2",
        "CALL+ k {} @id-2",
        "CALL. k @id-2",
        "RESULT id-4 k painted @id-2",
        "SUBAGENT_FINISHED @id-2",
        "RESULT id-5 c1 done",
        SUCCESS,
    ]);
}
