//! Words, thinking, tools, pictures, usage, the limit.

use serde_json::{Value, json};

use super::{FORGETFUL, Said, Talk, calls, judge, openai, says, user};

/// A picture of one point.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn looks(id: &str, at: &str) -> Said {
    calls(&[(id, "look", json!({"at": at}))])
}

fn with_usage(said: Said, usage: Value) -> Said {
    let Said::Chunks(mut chunks) = said else { panic!("no chunks") };
    chunks.push(openai::usage(usage));
    Said::Chunks(chunks)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_model_says_and_does_reaches_the_clients() {
    let thinks = Said::Chunks(vec![
        openai::reasoning_content("Where "),
        openai::reasoning_content("is it?"),
        openai::text("Let me see."),
        openai::call(0, "k1", "look", r#"{"at":"the sky"}"#),
        openai::finish("tool_calls"),
    ]);
    let thinks_again = Said::Chunks(vec![
        openai::reasoning_content("There."),
        openai::text("It is blue."),
        openai::finish("stop"),
    ]);
    let picture = json!({"user": [
        {"type": "text", "text": "What is it?"},
        {"type": "image", "source": {"type": "data", "value": PNG, "mimeType": "image/png"}},
    ]});
    let talks = [
        Talk::new("words", "looker")
            .steps([user("Hello")])
            .says([says(&["Good ", "day."])])
            .hears(["user: Hello"]),
        Talk::new("tool", "looker")
            .steps([user("Look up")])
            .says([looks("k1", "the sky"), says(&["It is blue."])])
            .executes([r#"/look {"at":"the sky"}"#])
            .hears([
                "user: Look up",
                r#"assistant: look({"at":"the sky"}) as k1"#,
                "tool k1: look is done",
            ]),
        Talk::new("wrong-arguments", "looker")
            .steps([user("Look up")])
            .says([
                calls(&[("k1", "look", json!({"to": "the sky"}))]),
                looks("k2", "the sky"),
                says(&["It is blue."]),
            ])
            .executes([r#"/look {"at":"the sky"}"#]),
        Talk::new("reasoning", "thinker")
            .steps([user("Look up")])
            .says([thinks, thinks_again])
            .executes([r#"/look {"at":"the sky"}"#]),
        Talk::new("picture", "looker").steps([picture]).says([says(&["A point."])]).hears([
            r#"user: [{"type":"text","text":"What is it?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}}]"#,
        ]),
        Talk::new("limit", "hasty")
            .steps([user("Look everywhere"), user("And now?")])
            .says([
                looks("k1", "the sky"),
                looks("k2", "the sea"),
                says(&["Sky and sea."]),
                says(&["That was all."]),
            ])
            .executes([r#"/look {"at":"the sea"}"#, r#"/look {"at":"the sky"}"#])
            .hears([
                "user: Look everywhere",
                r#"assistant: look({"at":"the sky"}) as k1"#,
                "tool k1: look is done",
                r#"assistant: look({"at":"the sea"}) as k2"#,
                "tool k2: look is done",
                "assistant: Sky and sea.",
                "user: And now?",
            ]),
    ];
    judge("plain", &talks, &[FORGETFUL]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_run_costs_stands_at_its_end() {
    let first = json!({
        "prompt_tokens": 20, "completion_tokens": 8, "total_tokens": 28,
        "prompt_tokens_details": {"cached_tokens": 5},
        "completion_tokens_details": {"reasoning_tokens": 2},
    });
    let then = json!({"prompt_tokens": 30, "completion_tokens": 4, "total_tokens": 34});
    let talk = Talk::new("usage", "looker")
        .steps([user("Look up")])
        .says([with_usage(looks("k1", "the sky"), first), with_usage(says(&["Blue."]), then)])
        .executes([r#"/look {"at":"the sky"}"#]);
    let usage = json!([{
        "model": "m", "inputTokens": 50, "outputTokens": 12, "totalTokens": 62,
        "cachedInputTokens": 5, "reasoningTokens": 2,
    }]);
    for record in judge("usage", &[talk], &[FORGETFUL]).await {
        let end = record.runs[0].events.last().unwrap();
        assert_eq!((&end["type"], &end["usage"]), (&json!("RUN_FINISHED"), &usage));
    }
}
