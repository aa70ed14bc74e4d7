//! `sse-timeout`: the longest life of one response, whatever the run does.

use std::time::Duration;

use agentscope_agui::{agents::registry::Registered, config::Config};
use agui_protocol::verify::{VerifyInput, check_events};
use serde_json::{Value, json};

use super::{
    Given, all, at_rest, code, counting, remembering, request, server, service, told, user, with,
};
use crate::support::{
    agents::{agent, delta, end, start, then_silent},
    expected, input,
};

const MESSAGE: &str = "The response took longer than this server allows.";

/// Responses last that long at most.
fn limited(mut config: Config, limit: Duration, stops: bool) -> Config {
    config.agui.threads.sse_timeout = Some(limit);
    config.agui.threads.interrupt_on_disconnect = stops;
    config
}

fn silent() -> Registered {
    agent("a", |_request| then_silent(Vec::new()))
}

#[tokio::test]
async fn a_response_over_its_time_ends_with_an_error_and_its_run_with_it() {
    let (agent, mut tell) = told("a");
    let config = limited(Config::default(), Duration::from_millis(20), true);
    let server = server(config, vec![agent]).await;
    let expected = [expected::started("t", "r1"), expected::error("TIMEOUT_ERROR", MESSAGE)];
    assert_eq!(server.run("/agui/a", &input("t", "r1")).await, expected);
    tell.asked_to_stop().await;
    tell.dropped().await;
    // The thread is free.
    let mut expected = expected;
    expected[0]["runId"] = json!("r2");
    assert_eq!(server.run("/agui/a", &input("t", "r2")).await, expected);
}

#[tokio::test]
async fn a_response_over_its_time_ends_alone_where_a_disconnect_does_not_stop_the_run() {
    let (agent, tell) = told("a");
    let given = Given::default();
    let mut counting = counting(&given);
    counting.info.id = "b".to_owned();
    let config = limited(remembering(), Duration::from_millis(20), false);
    let server = server(config, vec![agent, counting]).await;
    let expected = [expected::started("t", "r1"), expected::error("TIMEOUT_ERROR", MESSAGE)];
    assert_eq!(server.run("/agui/a", &input("t", "r1")).await, expected);
    let refused = server.run("/agui/b", &input("t", "r2")).await;
    assert_eq!(code(&refused), "THREAD_BUSY");
    tell.say([start(), delta("at last"), end()]);
    at_rest(&server).await;
    // The client has not seen the answer: it is not cut.
    server.run("/agui/b", &with("t", "r3", &[user("u1", "hello"), user("u2", "well?")])).await;
    assert_eq!(given.last(), ["user: hello", "assistant: at last", "user: well?"]);
}

/// What the client of a run that talks and then hangs is sent.
async fn cut(stops: bool) -> Vec<Value> {
    let talking = agent("a", |_request| then_silent(vec![start(), delta("Hel")]));
    let service = service(&limited(Config::default(), Duration::from_secs(60), stops));
    let began = tokio::time::Instant::now();
    let events = all(service.start(request(&talking, &input("t", "r1"))).unwrap()).await;
    assert_eq!(began.elapsed(), Duration::from_secs(60));
    service.stop();
    service.stopped().await;
    events
}

#[tokio::test(start_paused = true)]
async fn a_run_that_ends_with_its_response_closes_what_is_open_and_one_that_goes_on_does_not() {
    for (stops, shown) in [(true, 3), (false, 2)] {
        let mut expected = vec![expected::started("t", "r1")];
        expected.extend(expected::text("id-1", &["Hel"]).into_iter().take(shown));
        expected.push(expected::error("TIMEOUT_ERROR", MESSAGE));
        let events = cut(stops).await;
        assert_eq!(check_events(&events, &VerifyInput::from(input("t", "r1"))), []);
        assert_eq!(events, expected, "interrupt-on-disconnect: {stops}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_that_ends_in_time_is_left_alone() {
    let quick = agent("a", |_request| {
        futures_util::stream::iter([Ok(start()), Ok(delta("hi")), Ok(end())])
    });
    let service = service(&limited(Config::default(), Duration::from_secs(60), true));
    let events = all(service.start(request(&quick, &input("t", "r1"))).unwrap()).await;
    assert_eq!(events.last(), Some(&expected::success("t", "r1")));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_says_nothing_still_gets_the_run_begun_and_ended() {
    let service = service(&limited(Config::default(), Duration::from_secs(60), false));
    let events = all(service.start(request(&silent(), &input("t", "r1"))).unwrap()).await;
    let expected = [expected::started("t", "r1"), expected::error("TIMEOUT_ERROR", MESSAGE)];
    assert_eq!(events, expected);
}
