//! Invocations of agents that say what the test wants.

use agui_adapter::{
    model::event::{Call, StateChange},
    resume::{InterruptKind, OpenInterrupt, StoredCall, StoredResult, Verdict},
};
use agui_protocol::{Interrupt, ResumeStatus};
use futures_util::stream as streams;
use std::sync::Mutex;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::*;
use crate::agents::{AgentStream, registry::AgentInfo};

type Item = Result<AgentEvent, AgentError>;

/// Says the same in every run, and shows what it was asked.
struct Speaks {
    items: Vec<Item>,
    /// Stays open behind what it says.
    hangs: bool,
    asked: Mutex<Vec<AgentRequest>>,
}

impl Agent for Speaks {
    fn run(&self, request: AgentRequest) -> AgentStream {
        self.asked.lock().unwrap().push(request);
        let items = streams::iter(self.items.clone());
        if self.hangs { Box::pin(items.chain(streams::pending())) } else { Box::pin(items) }
    }
}

fn speaks(items: Vec<Item>) -> Arc<Speaks> {
    Arc::new(Speaks { items, hangs: false, asked: Mutex::default() })
}

fn events(kinds: Vec<AgentEventKind>) -> Vec<Item> {
    kinds.into_iter().map(|kind| Ok(AgentEvent::local(kind))).collect()
}

fn child(agent: &Arc<Speaks>) -> Child {
    let agent = Arc::clone(agent) as Arc<dyn Agent>;
    Child { id: "r".to_owned(), name: "Researcher".to_owned(), agent, run_timeout: None }
}

fn parent() -> AgentRequest {
    let input = json!({
        "threadId": "t", "runId": "run", "protocolVersion": "1.0",
        "messages": [{"id": "u1", "role": "user", "content": "secret"}],
        "tools": [{"name": "paint", "description": "d"}],
        "context": [{"description": "city", "value": "Rome"}],
        "forwardedProps": {"a": 1},
        "resume": [
            {"interruptId": "i-mine", "status": "cancelled"},
            {"interruptId": "i-other", "status": "cancelled"},
        ],
    });
    let input: RunAgentInput = serde_json::from_value(input).unwrap();
    AgentRequest {
        thread_id: "t".into(),
        run_id: "run".into(),
        input: Arc::new(input),
        messages: Vec::new(),
        decisions: Vec::new(),
        parked: Some(Arc::new(json!("the parent's"))),
        kept: Some(Arc::new(json!("the parent's"))),
        session: "session".into(),
        delegation: None,
        state: json!({"old": true}).into(),
        context: Arc::default(),
        cancel: CancellationToken::new(),
        request_id: "q1".into(),
        background: TaskTracker::new(),
    }
}

fn call() -> SubagentCall {
    SubagentCall {
        id: "c1".to_owned(),
        arguments: Object::from_iter([("task".to_owned(), json!("Look it up."))]),
        state: json!({"n": 1}).into(),
        depth_left: 2,
        denied: vec!["wipe".to_owned()],
        kept: Some(Arc::new(json!("the child's"))),
    }
}

async fn items(agent: &Arc<Speaks>, resumed: Option<Resumed>) -> Vec<ChildItem> {
    invoke(&parent(), &child(agent), &call(), resumed).collect().await
}

fn text(delta: &str) -> AgentEventKind {
    let (reply, block) = ("r".to_owned(), "b".to_owned());
    AgentEventKind::TextBlockDelta { reply, block, delta: delta.to_owned() }
}

fn end(reason: EndReason) -> AgentEventKind {
    AgentEventKind::AgentEnd { reply: None, reason }
}

fn result(call: &str) -> AgentEventKind {
    let (reply, call) = ("r".to_owned(), call.to_owned());
    AgentEventKind::ToolResultEnd { reply, call, state: ResultState::Success }
}

fn asks(call: &str) -> AgentEventKind {
    let calls = vec![Call { id: call.to_owned(), ..Call::default() }];
    AgentEventKind::RequireUserConfirm { reply: "r".to_owned(), calls }
}

fn placed(kind: AgentEventKind, source: &str, task: &str) -> ChildItem {
    let mut event = AgentEvent::local(kind).from_source(source);
    event.metadata.insert("taskId".to_owned(), task.into());
    ChildItem::Event(Box::new(event))
}

fn of_child(kind: AgentEventKind) -> ChildItem {
    placed(kind, "main/r", "c1")
}

fn begins() -> ChildItem {
    let name = "Researcher".to_owned();
    of_child(AgentEventKind::AgentStart { reply: None, session: None, name })
}

fn done(texts: &[&str], state: ResultState) -> ChildItem {
    let output = texts.iter().map(|text| Block::Text { text: (*text).to_owned() }).collect();
    ChildItem::Done { output, state }
}

fn failed(class: &str, message: &str) -> ChildItem {
    let failure = Failure { class: class.to_owned(), message: message.to_owned() };
    of_child(end(EndReason::Failed(failure)))
}

/// The last item of a child that says this and completes.
async fn result_of(kinds: Vec<AgentEventKind>) -> ChildItem {
    let kinds = kinds.into_iter().chain([end(EndReason::Completed)]).collect();
    items(&speaks(events(kinds)), None).await.pop().unwrap()
}

#[tokio::test]
async fn a_childs_events_are_put_in_their_place_and_its_text_is_the_result() {
    let start =
        AgentEventKind::AgentStart { reply: None, session: None, name: "own name".to_owned() };
    let state = || AgentEventKind::State { change: StateChange::Set(json!({"n": 2})) };
    let agent = speaks(events(vec![
        start,
        text("found "),
        state(),
        text("it"),
        end(EndReason::Completed),
        text("never heard"),
    ]));
    assert_eq!(
        items(&agent, None).await,
        [
            begins(),
            of_child(text("found ")),
            of_child(state()),
            of_child(text("it")),
            of_child(end(EndReason::Completed)),
            done(&["found it"], ResultState::Success),
        ]
    );
}

#[tokio::test]
async fn a_child_sees_its_task_and_what_is_the_runs_but_nothing_of_its_parent() {
    let agent = speaks(events(vec![end(EndReason::Completed)]));
    let parent = parent();
    let run = invoke(&parent, &child(&agent), &call(), None);
    run.collect::<Vec<_>>().await;
    let request = agent.asked.lock().unwrap().pop().unwrap();
    assert_eq!((request.thread_id.as_str(), request.run_id.as_str()), ("t", "run"));
    assert_eq!(
        serde_json::to_value(&*request.input).unwrap(),
        json!({
            "threadId": "t", "runId": "run", "protocolVersion": "1.0", "state": {"n": 1},
            "messages": [{"id": "c1", "role": "user", "content": "Look it up."}],
            "tools": [], "context": [{"description": "city", "value": "Rome"}],
            "forwardedProps": {"a": 1},
        })
    );
    let [message] = &*request.messages else { panic!("{:?}", request.messages) };
    assert_eq!((message.id.as_str(), message.role), ("c1", Role::User));
    assert_eq!(message.text_content(), "Look it up.");
    assert_eq!((request.decisions.len(), request.parked), (0, None));
    assert_eq!(request.kept.as_deref(), Some(&json!("the child's")));
    assert_eq!((&*request.session, &*request.request_id), ("session", "q1"));
    assert_eq!(*request.state, json!({"n": 1}));
    assert_eq!(
        request.delegation.as_deref(),
        Some(&Delegation {
            source: "main/r".into(),
            depth: 1,
            depth_left: 1,
            denied: vec!["wipe".to_owned()],
        })
    );
    parent.cancel.cancel();
    assert!(request.cancel.is_cancelled());
}

#[tokio::test]
async fn a_child_of_a_child_stands_one_deeper() {
    let above = Delegation { source: "main/a".into(), depth: 1, depth_left: 5, denied: Vec::new() };
    let parent = AgentRequest { delegation: Some(Arc::new(above)), ..parent() };
    assert_eq!((depth_left(&parent, 3), depth_left(&parent, 9)), (3, 5));
    let agent = speaks(Vec::new());
    invoke(&parent, &child(&agent), &call(), None).collect::<Vec<_>>().await;
    let request = agent.asked.lock().unwrap().pop().unwrap();
    let delegation = request.delegation.unwrap();
    assert_eq!((&*delegation.source, delegation.depth, delegation.depth_left), ("main/a/r", 2, 1));
}

#[tokio::test]
async fn what_stands_below_a_child_keeps_its_path_and_its_task_behind_the_childs() {
    let below = |source: &str, task: Option<&str>| {
        let mut event = AgentEvent::local(text("x")).from_source(source);
        event.metadata.extend(task.map(|task| ("taskId".to_owned(), task.into())));
        Ok(event)
    };
    let agent = speaks(vec![
        below("main/b", Some("k")),
        below("main/b/c", Some("k/j")),
        below("session/b", None),
        Ok(AgentEvent::local(end(EndReason::Completed))),
    ]);
    let items = items(&agent, None).await;
    assert_eq!(
        items[1..4],
        [
            placed(text("x"), "main/r/b", "c1/k"),
            placed(text("x"), "main/r/b/c", "c1/k/j"),
            placed(text("x"), "main/r/b", "c1/"),
        ]
    );
    // It is not the child's own text.
    assert_eq!(
        items[5],
        done(&["The sub-agent finished without an answer."], ResultState::Success)
    );
}

#[tokio::test]
async fn the_result_is_what_the_child_said_after_its_last_tool() {
    let said = vec![text("Let me see."), result("k"), text("one"), text(" two")];
    assert_eq!(result_of(said).await, done(&["one two"], ResultState::Success));
    let block = |block: &str, delta: &str| AgentEventKind::TextBlockDelta {
        reply: "r".to_owned(),
        block: block.to_owned(),
        delta: delta.to_owned(),
    };
    let whole = AgentEventKind::TextBlockEnd {
        reply: "r".to_owned(),
        block: "2".to_owned(),
        text: Some("whole".to_owned()),
    };
    let said = vec![block("1", "first"), block("2", "par"), whole];
    assert_eq!(result_of(said).await, done(&["first\nwhole"], ResultState::Success));
    let message = |text: &str| AgentEventKind::AgentResult {
        result: Msg {
            id: "m".to_owned(),
            name: String::new(),
            role: Role::Assistant,
            content: vec![Block::Text { text: text.to_owned() }],
            metadata: Object::new(),
        },
        generate_reason: None,
    };
    assert_eq!(result_of(vec![message("all")]).await, done(&["all"], ResultState::Success));
    assert_eq!(
        result_of(vec![text("streamed"), message("all")]).await,
        done(&["streamed"], ResultState::Success)
    );
}

#[tokio::test]
async fn a_child_that_fails_gives_a_sentence_and_never_the_cause() {
    let error = AgentError {
        code: "MODEL_UNAVAILABLE",
        message: "The model cannot be reached.".to_owned(),
        cause: Some("secret host".to_owned()),
    };
    let agent = speaks(vec![Ok(AgentEvent::local(text("half"))), Err(error)]);
    let sentence = || done(&["The sub-agent failed."], ResultState::Error);
    assert_eq!(
        items(&agent, None).await,
        [
            begins(),
            of_child(text("half")),
            failed("MODEL_UNAVAILABLE", "The model cannot be reached."),
            sentence(),
        ]
    );
    let failure = Failure { class: "upstream".to_owned(), message: "secret".to_owned() };
    let agent = speaks(events(vec![end(EndReason::Failed(failure))]));
    assert_eq!(items(&agent, None).await.pop(), Some(sentence()));
    let agent = speaks(events(vec![text("half")]));
    let early = failed("AGENT_ENDED_EARLY", "The agent stopped before it had finished.");
    assert_eq!(items(&agent, None).await[2..], [early, sentence()]);
}

#[tokio::test]
async fn an_answer_that_cannot_be_taken_fails_the_run() {
    let error = AgentError {
        code: "INVALID_INPUT_ERROR",
        message: "`editedArgs` does not fit the tool".to_owned(),
        cause: None,
    };
    let agent = speaks(vec![Err(error.clone())]);
    assert_eq!(items(&agent, None).await, [begins(), ChildItem::Failed(error)]);
}

#[tokio::test]
async fn a_child_that_was_stopped_says_so_beside_what_it_said() {
    let said = |reason| speaks(events(vec![text("half"), end(reason)]));
    assert_eq!(
        items(&said(EndReason::Interrupted), None).await.pop(),
        Some(done(
            &["half", "The sub-agent was stopped before it had finished."],
            ResultState::Interrupted
        ))
    );
    assert_eq!(
        items(&said(EndReason::MaxIterations), None).await.pop(),
        Some(done(&["half", "The sub-agent stopped at its limit of steps."], ResultState::Error))
    );
}

#[tokio::test(start_paused = true)]
async fn a_child_that_takes_too_long_is_dropped() {
    let items = events(vec![text("half")]);
    let agent = Arc::new(Speaks { items, hangs: true, asked: Mutex::default() });
    let child = Child { run_timeout: Some(Duration::from_secs(5)), ..child(&agent) };
    let items: Vec<_> = invoke(&parent(), &child, &call(), None).collect().await;
    assert_eq!(
        items[2..],
        [
            failed("TIMEOUT_ERROR", "The sub-agent took too long."),
            done(&["The sub-agent failed."], ResultState::Error),
        ]
    );
}

#[tokio::test]
async fn a_child_that_asks_waits_and_what_it_parks_and_keeps_is_its_parents_affair() {
    let park = |state: Value| AgentEventKind::Park { state: state.into() };
    let keep = |state: Value| AgentEventKind::Keep { state: state.into() };
    let agent = speaks(events(vec![
        asks("k"),
        park(json!(1)),
        keep(json!("rule")),
        park(json!(2)),
        end(EndReason::Completed),
    ]));
    assert_eq!(
        items(&agent, None).await,
        [
            begins(),
            of_child(asks("k")),
            ChildItem::Kept(Arc::new(json!("rule"))),
            of_child(end(EndReason::Completed)),
            ChildItem::Waits { parked: json!(2) },
        ]
    );
    // A pause without an end is one too, and who parks nothing waits all the same.
    let agent = speaks(events(vec![asks("k")]));
    let paused = [
        begins(),
        of_child(asks("k")),
        of_child(end(EndReason::Unstated)),
        ChildItem::Waits { parked: json!(null) },
    ];
    assert_eq!(items(&agent, None).await, paused);
}

#[tokio::test]
async fn what_is_answered_within_the_run_is_not_waited_for() {
    let answered = vec![asks("k"), result("k"), text("done")];
    assert_eq!(result_of(answered).await, done(&["done"], ResultState::Success));
    // One below asks and then fails: nobody waits for that.
    let below = |kind| AgentEvent::local(kind).from_source("main/b");
    let failure = Failure { class: "internal".to_owned(), message: String::new() };
    let agent = speaks(vec![
        Ok(below(asks("k"))),
        Ok(below(end(EndReason::Failed(failure)))),
        Ok(AgentEvent::local(text("without it"))),
        Ok(AgentEvent::local(end(EndReason::Completed))),
    ]);
    let last = items(&agent, None).await.pop();
    assert_eq!(last, Some(done(&["without it"], ResultState::Success)));
    // One below waits, so the child does.
    let agent = speaks(vec![
        Ok(below(asks("k"))),
        Ok(below(end(EndReason::Completed))),
        Ok(AgentEvent::local(end(EndReason::Completed))),
    ]);
    let last = items(&agent, None).await.pop();
    assert_eq!(last, Some(ChildItem::Waits { parked: json!(null) }));
}

/// An approval of the call `k`.
fn decision(interrupt: &str, source: Option<&str>, task: Option<&str>) -> Decision {
    let call = StoredCall {
        id: "k".to_owned(),
        wire_id: format!("wire-{interrupt}"),
        name: "wipe".to_owned(),
        ..StoredCall::default()
    };
    let open = OpenInterrupt {
        interrupt: Interrupt {
            subagent_run_id: None,
            id: interrupt.into(),
            reason: "tool_call".to_owned(),
            message: None,
            tool_call_id: None,
            response_schema: None,
            expires_at: None,
            metadata: None,
        },
        kind: InterruptKind::PermissionConfirm,
        reply: "r".to_owned(),
        source: source.map(str::to_owned),
        task: task.map(str::to_owned),
        above: Vec::new(),
        call: Some(call.clone()),
        question: None,
        expires_ms: None,
    };
    Decision {
        open,
        status: ResumeStatus::Resolved,
        payload: None,
        verdict: Verdict::Approved { call, edited: false, rules: Vec::new() },
        settled: false,
        result: None,
    }
}

#[tokio::test]
async fn a_child_gets_the_answers_to_what_it_and_those_below_it_asked_and_no_others() {
    let agent = speaks(events(vec![end(EndReason::Completed)]));
    let decisions = vec![
        decision("i-root", None, None),
        decision("i-mine", Some("main/r"), Some("c1")),
        decision("i-other", Some("main/r"), Some("c2")),
        decision("i-agent", Some("main/r2"), Some("c1")),
        decision("i-below", Some("main/r/b"), Some("c1/k")),
        decision("i-deep", Some("main/r/b/c"), Some("c1/k/j")),
        decision("i-below-other", Some("main/r/b"), Some("c2/k")),
        decision("i-foreign", Some("main/r/b"), Some("c1/")),
        decision("i-old", Some("main/r"), None),
    ];
    items(&agent, Some(Resumed { parked: json!({"at": 1}), decisions })).await;
    let request = agent.asked.lock().unwrap().pop().unwrap();
    let got: Vec<_> = request
        .decisions
        .iter()
        .map(|got| {
            let open = &got.open;
            (open.interrupt.id.as_str(), open.source.as_deref(), open.task.as_deref())
        })
        .collect();
    assert_eq!(
        got,
        [
            ("i-mine", None, None),
            ("i-below", Some("main/b"), Some("k")),
            ("i-deep", Some("main/b/c"), Some("k/j")),
            ("i-foreign", Some("main/b"), None),
        ]
    );
    assert_eq!(request.parked.as_deref(), Some(&json!({"at": 1})));
    let resume: Vec<_> =
        request.input.resume.iter().map(|entry| entry.interrupt_id.as_str()).collect();
    assert_eq!(resume, ["i-mine"]);
    // The task is the same message as in the first run.
    assert_eq!((request.messages.len(), request.messages[0].id.as_str()), (1, "c1"));
}

#[tokio::test]
async fn a_settled_call_of_the_child_has_its_result_in_the_childs_history() {
    let agent = speaks(events(vec![end(EndReason::Completed)]));
    let mut settled = decision("i-mine", Some("main/r"), Some("c1"));
    settled.settled = true;
    settled.result = Some(StoredResult { text: "wiped".to_owned(), state: "error".to_owned() });
    let mut below = settled.clone();
    below.open.source = Some("main/r/b".to_owned());
    below.open.task = Some("c1/k".to_owned());
    items(&agent, Some(Resumed { parked: json!(1), decisions: vec![settled, below] })).await;
    let request = agent.asked.lock().unwrap().pop().unwrap();
    assert_eq!(request.decisions.len(), 2);
    let [_, message] = &*request.messages else { panic!("{:?}", request.messages) };
    let result = Block::ToolResult {
        call_id: "wire-i-mine".to_owned(),
        name: "wipe".to_owned(),
        output: vec![Block::Text { text: "wiped".to_owned() }],
        state: ResultState::Error,
        metadata: Object::new(),
    };
    assert_eq!((message.role, &*message.content), (Role::Tool, &[result][..]));
}

#[test]
fn an_agent_is_described_by_its_configuration_else_by_its_name() {
    let registered = |description: &str| Registered {
        info: AgentInfo {
            id: "r".to_owned(),
            name: "Researcher".to_owned(),
            description: description.to_owned(),
            capabilities: Default::default(),
        },
        agent: speaks(Vec::new()),
        options: Arc::default(),
        run_timeout: None,
        accept_client_system_messages: false,
    };
    assert_eq!(description(&registered("Looks things up.")), "Looks things up.");
    assert_eq!(
        description(&registered("")),
        "Hands a task to the agent Researcher and gives back its answer."
    );
}
