//! What the adapter records of the demo agents' runs, against what the official client 1.0.0 held
//! at the end of the same conversation. Those that answer something are left to the tests of the
//! server's memory.

use std::{fs, sync::Arc};

use agentscope_agui::{
    agents::{
        AgentRequest,
        registry::{Registered, Registry},
    },
    config::{Source, load},
};
use agui_adapter::{
    inbound::{InboundOptions, for_agent},
    options::Peer,
    outbound::{Adapter, AdapterParts, Extensions, RunFailure, RunSetup, StreamEnd},
};
use agui_protocol::{Message, RunAgentInput};
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    conversations, driver,
    golden::Labels,
    joined::{CountedIds, StoppedClock},
};

/// Plays a run; gives the thread's messages and state after it.
async fn play(served: &Registered, input: RunAgentInput) -> (Vec<Message>, Value) {
    let input = Arc::new(input);
    let mut adapter = Adapter::new(AdapterParts {
        setup: RunSetup::new(Arc::clone(&input), Peer::Current),
        options: Arc::clone(&served.options),
        extensions: Arc::new(Extensions::default()),
        context: Arc::default(),
        // Another id in each run of the thread.
        ids: Box::new(CountedIds(100 * input.messages.len() as u64)),
        clock: Box::new(StoppedClock),
    });
    let request = AgentRequest {
        thread_id: input.thread_id.clone(),
        run_id: input.run_id.clone(),
        input: Arc::clone(&input),
        messages: for_agent(&input.messages, &InboundOptions::default()).msgs,
        decisions: Vec::new(),
        parked: None,
        kept: None,
        session: "session".into(),
        delegation: None,
        state: input.state.clone().expect("a state"),
        context: Arc::default(),
        cancel: CancellationToken::new(),
        request_id: "request".into(),
        background: tokio_util::task::TaskTracker::new(),
    };
    let (mut stream, mut end, mut out) = (served.agent.run(request), None, Vec::new());
    while let (None, Some(event)) = (&end, stream.next().await) {
        end = match event {
            Ok(event) => adapter.on_event(&event, &mut out),
            Err(_) => {
                let failure = StreamEnd::Failed(RunFailure::new("FAILED", "The agent failed."));
                Some(adapter.finish(failure, &mut out))
            }
        };
    }
    if end.is_none() {
        adapter.finish(StreamEnd::Completed, &mut out);
    }
    let state = Value::clone(adapter.state());
    (adapter.take_transcript().onto(input.messages.clone()), state)
}

#[tokio::test(start_paused = true)]
async fn the_record_of_every_demo_is_what_the_official_client_has() {
    let source = Source::File(super::root().join("config/agentscope.yaml"));
    let config = load(source, &Default::default()).expect("the configuration").config;
    let registry = Registry::from_config(&config).expect("the demo agents");
    let mut compared = Vec::new();
    for conversation in conversations() {
        let steps = conversation.value["steps"].as_array().expect("steps").clone();
        let plain = |step: &Value| step["user"].is_string() && step.get("abortAfter").is_none();
        // A panic is the pipeline's to catch.
        if !steps.iter().all(plain) || conversation.name.contains("panic") {
            continue;
        }
        let served = registry.get(&conversation.agent).expect("the agent");
        // As the driver names it, since some agents speak of it.
        let thread = format!("{}-1.0.0", conversation.name);
        let (mut messages, mut state) = (Vec::new(), json!({}));
        for (at, step) in steps.iter().enumerate() {
            let mut sent = json!(messages);
            let said = json!({ "id": format!("user-{}", at + 1), "role": "user",
                "content": step["user"] });
            sent.as_array_mut().expect("messages").push(said);
            let input = json!({ "threadId": thread, "messages": sent,
                "runId": format!("{thread}-r{}", at + 1),
                "protocolVersion": "1.0", "state": state,
                "tools": conversation.value.get("tools").cloned().unwrap_or_else(|| json!([])) });
            let input = RunAgentInput::from_value(input).expect("an input").input;
            (messages, state) = play(served, input).await;
        }
        let mut record = json!({ "messages": messages, "state": state });
        Labels::new(&thread).apply(&mut record, None);
        let path = driver::folder().join(format!("expected/demos/{}.json", conversation.name));
        let expected = fs::read_to_string(path).expect("what the client had");
        let expected: Value = serde_json::from_str(&expected).expect("JSON");
        for part in ["messages", "state"] {
            let (got, expected) = (&record[part], &expected["1.0.0"][part]);
            assert_eq!(got, expected, "{} of {}", part, conversation.name);
        }
        compared.push(conversation.name);
    }
    assert!(compared.len() > 20, "{compared:?}");
}
