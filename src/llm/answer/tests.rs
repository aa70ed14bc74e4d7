//! Answers whose bytes come when the test wants it.

use std::{io, sync::Arc};

use futures_util::stream;
use serde_json::json;
use tokio::time::Instant;

use super::*;
use crate::{
    config::models::ModelConfig,
    llm::{
        FinishReason, ModelRequest, anthropic::Anthropic, gemini::Gemini, openai::OpenAi,
        wire::Wire,
    },
};

type Piece = Result<Bytes, io::Error>;

const LIMIT: Duration = Duration::from_secs(120);

/// What each wire says of an answer that is complete, without what says that it is over.
fn complete() -> Vec<(Box<dyn Wire>, &'static str)> {
    let config = ModelConfig::default();
    vec![
        (
            Box::new(OpenAi::new(&config)),
            "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n",
        ),
        (
            Box::new(Anthropic::new(&config)),
            "data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"text\",\"text\":\"Hi\"}}\n\n\
             data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n",
        ),
        (
            Box::new(Gemini::new(&config)),
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hi\"}]},\"finishReason\":\"STOP\"}]}\n\n",
        ),
    ]
}

fn answer(wire: &dyn Wire, pieces: Vec<Piece>, is_held: bool) -> Answer {
    let pieces = stream::iter(pieces);
    let body = if is_held {
        reqwest::Body::wrap_stream(pieces.chain(stream::pending()))
    } else {
        reqwest::Body::wrap_stream(pieces)
    };
    let response = http::Response::new(body).into();
    Answer::new(response, wire.decoder(&ModelRequest::default()), Some(LIMIT))
}

async fn all(mut answer: Answer) -> Result<Vec<ModelEvent>, String> {
    let mut all = Vec::new();
    loop {
        let read = answer.read().await;
        all.extend(answer.events());
        match read {
            Ok(true) => {}
            Ok(false) => return Ok(all),
            Err(failure) => return Err(failure.error.cause),
        }
    }
}

fn hi() -> Result<Vec<ModelEvent>, String> {
    Ok(vec![ModelEvent::Text("Hi".to_owned()), ModelEvent::Finish(FinishReason::Stop)])
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_complete_is_over_though_its_connection_stays_open() {
    for (wire, text) in complete() {
        let began = Instant::now();
        assert_eq!(all(answer(&*wire, vec![Ok(text.into())], true)).await, hi());
        assert_eq!(began.elapsed().as_secs(), LINGER.as_secs());
    }
}

#[tokio::test]
async fn an_answer_that_is_complete_is_whole_though_its_connection_breaks() {
    for (wire, text) in complete() {
        let broken = vec![Ok(text.into()), Err(io::Error::other("reset"))];
        assert_eq!(all(answer(&*wire, broken, false)).await, hi());
    }
}

#[tokio::test]
async fn white_space_in_front_of_an_answer_says_nothing() {
    let (wire, text) = complete().remove(0);
    let blank = || Ok(Bytes::from_static(b" \r\n"));
    assert_eq!(all(answer(&*wire, vec![blank(), blank(), Ok(text.into())], false)).await, hi());
    let whole = text.trim_start_matches("data: ");
    assert_eq!(all(answer(&*wire, vec![blank(), Ok(whole.into())], false)).await, hi());
}

#[tokio::test]
async fn an_answer_that_makes_calls_without_end_is_a_failure() {
    let calls: Vec<_> = (0..=MAX_CALLS)
        .map(|n| json!({"index": n, "id": n.to_string(), "function": {"name": "f"}}))
        .collect();
    let nameless: Vec<_> =
        (0..2 * MAX_CALLS).map(|n| json!({"index": n, "function": {"arguments": "{}"}})).collect();
    let wire: Arc<dyn Wire> = Arc::new(OpenAi::new(&ModelConfig::default()));
    for calls in [calls, nameless] {
        let choice = json!({"delta": {"tool_calls": calls}, "finish_reason": "tool_calls"});
        let text = format!("data: {}\n\ndata: [DONE]\n\n", json!({"choices": [choice]}));
        let failed = Err("the answer makes more than 1000 calls".to_owned());
        assert_eq!(all(answer(&*wire, vec![Ok(text.into())], false)).await, failed);
    }
}
