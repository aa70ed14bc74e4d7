//! Clients that read slowly or not at all: what waits for them is bounded, and what ends does not
//! wait for them. Runs without HTTP: what sockets hold on the way would blur the figures.

use std::{sync::Arc, time::Duration};

use agentscope_agui::{
    agents::{RuntimeContext, registry::Registered},
    config::ThreadsConfig,
    runs::{AgentId, Principal, RunHandle, RunRequest, RunService, RunServiceSetup, StartError},
};
use agui_protocol::{Event, RunAgentInput};
use futures_util::{StreamExt, stream};
use serde_json::Value;

use super::support::{
    agents::{agent, delta, says_its_id, start},
    expected, input,
    server::counted,
};

const MIB: usize = 1 << 20;
const LIMIT: Duration = Duration::from_secs(5);

fn request(agent: &Registered, thread: &str) -> RunRequest {
    let input = RunAgentInput::from_value(input(thread, "r")).unwrap().input;
    RunRequest {
        agent: Arc::clone(&agent.agent),
        agent_id: AgentId::new(agent.info.id.as_str()),
        options: Arc::clone(&agent.options),
        principal: Principal::anonymous(),
        input: Arc::new(input),
        context: Arc::new(RuntimeContext::default()),
        run_timeout: Some(LIMIT),
        accept_client_system_messages: false,
        request_id: "q".into(),
    }
}

fn one_run_at_a_time() -> RunService {
    RunService::new(
        1,
        ThreadsConfig::default(),
        RunServiceSetup { sources: counted(), ..RunServiceSetup::default() },
    )
}

/// What waits in the stream of a run, to its end.
async fn rest(run: RunHandle) -> Vec<Value> {
    let mut batches = run.events();
    let mut events = Vec::new();
    while let Some(batch) = batches.recv().await {
        events.extend(batch.iter().map(|event: &Event| serde_json::to_value(event).unwrap()));
    }
    events
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_stops_the_agent_and_holds_up_no_end() {
    let piece = "x".repeat(MIB);
    let said = piece.clone();
    let endless = agent("endless", move |_request| {
        let said = said.clone();
        stream::iter([Ok(start())]).chain(stream::repeat_with(move || Ok(delta(&said))))
    });
    let runs = one_run_at_a_time();
    let unread = runs.start(request(&endless, "t1")).unwrap();
    let other = says_its_id("a");
    assert_eq!(runs.start(request(&other, "t2")).unwrap_err(), StartError::TooManyRuns);
    // The time limit ends the run, and its slot is free, although nobody has read a word.
    tokio::time::sleep(LIMIT + Duration::from_millis(1)).await;
    let read = rest(runs.start(request(&other, "t2")).unwrap()).await;
    assert_eq!(read.last(), Some(&expected::success("t2", "r")));
    // Four pieces in the stream and one that found no place are all that was kept.
    let mut expected = vec![expected::started("t1", "r")];
    expected.extend(expected::text("id-1", &[piece.as_str(); 5]));
    let message = "The run took longer than this server allows.";
    expected.push(expected::error("TIMEOUT_ERROR", message));
    assert!(rest(unread).await == expected, "other events than expected");
}

#[tokio::test]
async fn the_state_of_the_input_is_shared_and_not_copied() {
    let looks = agent("looks", |request| {
        let shared =
            request.input.state.as_ref().is_some_and(|sent| Arc::ptr_eq(sent, &request.state));
        stream::iter([Ok(start()), Ok(delta(&format!("{shared}")))])
    });
    let mut request = request(&looks, "t");
    Arc::make_mut(&mut request.input).state = Some(serde_json::json!({"a": [1, 2]}).into());
    let read = rest(one_run_at_a_time().start(request).unwrap()).await;
    assert_eq!(read[2]["delta"], "true");
}
