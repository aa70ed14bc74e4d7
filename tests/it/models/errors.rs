//! Failures of a model: told by their kind, and nothing of their words.

use serde_json::json;

use super::{Setup, events};
use crate::support::{
    input,
    log::Captured,
    model::{Answer, Endpoint, Refusing, dialect::Dialect, openai},
    server::checked,
};

#[tokio::test]
async fn a_model_that_gives_no_answer_is_an_error_in_a_stream_that_began() {
    let quota = json!({"message": "quota", "type": "insufficient_quota"});
    let cases = [
        (429, "MODEL_RATE_LIMITED", "The model takes no more requests for now."),
        (401, "MODEL_AUTH_ERROR", "The model refused the server's credentials."),
        (500, "MODEL_ERROR", "The model failed."),
    ];
    for (status, code, message) in cases {
        let model = Endpoint::answers([openai::failure(status, &quota)]).await;
        // The status of the answer is 200 whatever comes of the model.
        let events = Setup::new(&model).serve().await.run("/agui/a", &input("t", "r")).await;
        assert_eq!(events, events::failed([], events::error(code, message)));
        assert_eq!(model.requests().len(), 1);
    }
    let refusing = Refusing::new();
    let server = Setup::at(Dialect::OpenAi, &refusing.url()).serve().await;
    let error = events::error("MODEL_UNAVAILABLE", "The model cannot be reached.");
    assert_eq!(server.run("/agui/a", &input("t", "r")).await, events::failed([], error));
}

#[tokio::test]
async fn what_a_model_says_of_a_failure_reaches_neither_clients_nor_the_log() {
    let log = Captured::start();
    let message = "Incorrect API key provided: sk-test-ABCDEF123";
    let refused = || openai::failure(401, &json!({"message": message}));
    let model = Endpoint::answers([refused()]).await;
    let setup = Setup::new(&model).model("api-key", "sk-test-ABCDEF123");
    let server = setup.serve().await;
    let request = server.post("/agui/a").header("X-Request-Id", "request-7");
    let input = input("t", "r");
    let events = checked(request.json(&input).send().await.unwrap(), &input).await;
    let error = events::error("MODEL_AUTH_ERROR", "The model refused the server's credentials.");
    assert_eq!(events, events::failed([], error));
    assert_eq!(model.request(0).await.header("authorization"), Some("Bearer sk-test-ABCDEF123"));
    // The failure can be found under the request, with its status and without the key.
    let log = log.text();
    assert!(!log.contains("ABCDEF123"), "{log}");
    let about = |line: &&str| line.contains("request-7") && line.contains("401");
    assert!(log.lines().any(|line| about(&line)), "{log}");
}

#[tokio::test]
async fn where_a_model_is_that_nobody_reaches_is_told_to_the_log_alone() {
    let log = Captured::at(tracing::Level::WARN);
    let refusing = Refusing::new();
    let server = Setup::at(Dialect::OpenAi, &refusing.url()).serve().await;
    let error = events::error("MODEL_UNAVAILABLE", "The model cannot be reached.");
    assert_eq!(server.run("/agui/a", &input("t", "r")).await, events::failed([], error));
    assert!(!log.text().contains("sk-test"), "{}", log.text());
    assert!(log.text().contains("MODEL_UNAVAILABLE"), "{}", log.text());
}

#[tokio::test]
async fn only_what_came_before_any_word_is_tried_again() {
    let busy = || Answer::json(503, &json!({})).header("Retry-After", "0");
    let model = Endpoint::answers([busy(), busy(), openai::says(&["hi"])]).await;
    let server = Setup::new(&model).model("max-retries", 2).serve().await;
    let events = server.run("/agui/a", &input("t", "r")).await;
    assert_eq!(events, events::whole([events::text("id-1", &["hi"])]));
    assert_eq!(model.requests().len(), 3);

    let model =
        Endpoint::answers([Answer::events([openai::text("half")]).cut(), openai::says(&["hi"])])
            .await;
    let server = Setup::new(&model).model("max-retries", 2).serve().await;
    let error = events::error("MODEL_ERROR", "The model failed.");
    assert_eq!(
        server.run("/agui/a", &input("t", "r")).await,
        events::failed([events::text("id-1", &["half"])], error)
    );
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test]
async fn a_model_that_sends_elsewhere_is_not_followed_with_the_key() {
    let elsewhere = Endpoint::answers([openai::says(&["got it"])]).await;
    for status in [302, 307, 308] {
        let to = format!("{}/v1/chat/completions", elsewhere.url());
        let model = Endpoint::answers([Answer::text(status, "").header("Location", &to)]).await;
        let events = Setup::new(&model).serve().await.run("/agui/a", &input("t", "r")).await;
        let error = events::error("MODEL_ERROR", "The model failed.");
        assert_eq!(events, events::failed([], error), "{status}");
    }
    assert_eq!(elsewhere.requests().len(), 0);
}
