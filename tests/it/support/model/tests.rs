//! The endpoint itself: what it records and how it ends.

use serde_json::{Value, json};

use super::super::client;
use super::{Answer, Endpoint, Fate, Framing, Gate, Refusing, openai};

async fn post(endpoint: &Endpoint, body: &Value) -> reqwest::Response {
    client().post(format!("{}/v1/x?y=1", endpoint.url())).json(body).send().await.unwrap()
}

#[tokio::test]
async fn answers_come_in_order_and_requests_are_kept_whole() {
    let first = Answer::json(429, &json!({"a": 1})).header("Retry-After", "7");
    let endpoint = Endpoint::answers([first, openai::says(&["hi"])]).await;
    let response = post(&endpoint, &json!({"n": 1})).await;
    assert_eq!(response.status(), 429);
    assert_eq!(response.headers()["retry-after"], "7");
    assert_eq!(response.text().await.unwrap(), r#"{"a":1}"#);
    let text = post(&endpoint, &json!({"n": 2})).await.text().await.unwrap();
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    assert_eq!(post(&endpoint, &json!(3)).await.status(), 418);
    assert_eq!(endpoint.bodies(), [json!({"n": 1}), json!({"n": 2}), json!(3)]);
    let request = endpoint.request(1).await;
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/x?y=1"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.fate().await, Fate::Answered);
}

#[tokio::test]
async fn a_function_of_the_request_answers_it() {
    let endpoint = Endpoint::with(|request| Answer::text(200, &request.text)).await;
    assert_eq!(post(&endpoint, &json!("you")).await.text().await.unwrap(), r#""you""#);
}

#[tokio::test]
async fn every_byte_can_come_alone() {
    let frames = || [openai::text("é"), openai::finish("stop")];
    let whole = Answer::framed(Framing::CrLf, frames());
    let endpoint = Endpoint::answers([whole.bytewise()]).await;
    let mut response = post(&endpoint, &json!({})).await;
    let mut text = Vec::new();
    while let Some(chunk) = response.chunk().await.unwrap() {
        assert_eq!(chunk.len(), 1);
        text.extend_from_slice(&chunk);
    }
    let [first, last] = frames();
    assert_eq!(
        String::from_utf8(text).unwrap(),
        format!("data: {first}\r\n\r\ndata: {last}\r\n\r\n")
    );
    assert_eq!(endpoint.requests().len(), 1);
}

#[tokio::test]
async fn a_cut_answer_is_no_end() {
    let endpoint = Endpoint::answers([openai::says(&["hello"]).cut_after(10)]).await;
    let mut response = post(&endpoint, &json!({})).await;
    assert_eq!(response.chunk().await.unwrap().unwrap().as_ref(), br#"data: {"id"#);
    response.chunk().await.unwrap_err();
    assert_eq!(endpoint.request(0).await.fate().await, Fate::Answered);
    endpoint.connections(0).await;
}

#[tokio::test]
async fn a_fed_answer_is_as_slow_as_the_test() {
    let (answer, feed) = Answer::fed();
    let gate = Gate::default();
    let behind = Answer::text(200, "").wait(&gate).then("late");
    let endpoint = Endpoint::answers([answer.and(behind)]).await;
    let mut response = post(&endpoint, &json!({})).await;
    feed.bytes("one");
    assert_eq!(response.chunk().await.unwrap().unwrap(), "one");
    feed.say([json!(2)]);
    assert_eq!(response.chunk().await.unwrap().unwrap(), "data: 2\n\n");
    drop(feed);
    gate.open();
    assert_eq!(response.chunk().await.unwrap().unwrap(), "late");
    assert_eq!(response.chunk().await.unwrap(), None);
}

#[tokio::test]
async fn a_client_that_leaves_is_noticed() {
    let endpoint =
        Endpoint::answers([Answer::fed().0.wait(&Gate::default()), Answer::never()]).await;
    let response = post(&endpoint, &json!({})).await;
    endpoint.connections(1).await;
    drop(response);
    assert_eq!(endpoint.request(0).await.fate().await, Fate::Left);
    let request = client().get(endpoint.url()).send();
    tokio::select! {
        answered = request => panic!("{answered:?}"),
        request = endpoint.request(1) => assert_eq!(request.method, "GET"),
    }
    assert_eq!(endpoint.request(1).await.fate().await, Fate::Left);
    endpoint.connections(0).await;
}

#[tokio::test]
async fn nobody_listens_where_nobody_should() {
    client().get(Refusing::new().url()).send().await.unwrap_err();
}
