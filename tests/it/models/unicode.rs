//! Characters of more than one byte, and halves of them.

use serde_json::json;

use super::{Setup, events, said};
use crate::support::{
    input,
    model::{Answer, Endpoint, Frame, openai},
};

const WORDS: &str = "你好😀é";

#[tokio::test]
async fn characters_that_are_cut_anywhere_arrive_whole() {
    let spelled = openai::text(WORDS).to_string();
    let escaped = spelled
        .replace('你', r"\u4f60")
        .replace('好', r"\u597D")
        .replace('😀', r"\uD83D\uDE00")
        .replace('é', r"e\u0301");
    for (sent, expected) in [(spelled, WORDS), (escaped, "你好😀e\u{301}")] {
        let end = [openai::finish("stop").into(), Frame::raw("[DONE]")];
        let frames = [Frame::raw(&sent)].into_iter().chain(end);
        let model = Endpoint::answers([Answer::events(frames).bytewise()]).await;
        let events = Setup::new(&model).serve().await.run("/agui/a", &input("t", "r")).await;
        assert_eq!(events, events::whole([events::text("id-1", &[expected])]));
    }
}

#[tokio::test]
async fn arguments_that_are_cut_inside_of_a_character_arrive_whole() {
    let answer = openai::asks("c1", "paint", &format!(r#"{{"c":"{WORDS}"}}"#)).bytewise();
    let model = Endpoint::answers([answer]).await;
    let mut input = input("t", "r");
    input["tools"] = json!([super::frontend("paint")]);
    let events = Setup::new(&model).serve().await.run("/agui/a", &input).await;
    assert_eq!(events[2], events::args("c1", &format!(r#"{{"c":"{WORDS}"}}"#)));
}

#[tokio::test]
async fn half_a_character_from_a_model_ends_no_process() {
    // Alone, and split over two deltas.
    for halves in [&[r"\ud83c"][..], &[r"\ud83d", r"\ude00"]] {
        let chunk =
            |half: &&str| Frame::raw(&openai::text("HALF").to_string().replace("HALF", half));
        let end = [openai::finish("stop").into(), Frame::raw("[DONE]")];
        let half = Answer::events(halves.iter().map(chunk).chain(end));
        let model = Endpoint::answers([half, openai::says(&["alive"])]).await;
        let server = Setup::new(&model).serve().await;
        let events = server.run("/agui/a", &input("t", "r")).await;
        let last = events.last().unwrap();
        if last["type"] == "RUN_ERROR" {
            assert_eq!(*last, events::error("MODEL_ERROR", "The model failed."));
        } else {
            let said = said(&events);
            assert!(said == "😀" || said == "\u{fffd}".repeat(halves.len()), "{said:?}");
        }
        assert_eq!(said(&server.run("/agui/a", &input("t", "r2")).await), "alive");
    }
}

#[tokio::test]
async fn half_a_character_from_a_client_is_the_clients_fault() {
    let model = Endpoint::answers([openai::says(&["alive"])]).await;
    let server = Setup::new(&model).serve().await;
    let body = input("t", "r").to_string().replace("hello", r"\ud83c");
    let request = server.post("/agui/a").header("Content-Type", "application/json").body(body);
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 400);
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    assert_eq!(said(&server.run("/agui/a", &input("t", "r2")).await), "alive");
}
