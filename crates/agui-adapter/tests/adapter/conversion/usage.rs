//! Tokens.

use serde_json::{Value, json};

use super::{Run, play, script::*};

fn java(input: u64, output: u64, cached: u64, time: f64) -> String {
    any(
        "MODEL_CALL_END",
        json!({ "replyId": "R1", "usage": { "inputTokens": input, "outputTokens": output,
            "cachedTokens": cached, "totalTokens": input + output, "time": time } }),
    )
}

fn finished(usage: Value) -> String {
    let mut end = json!({ "outcome": { "type": "success" } });
    end["usage"] = usage;
    format!("FINISHED {end}")
}

#[test]
fn the_runs_usage_is_told_at_its_end_and_nothing_before() {
    let lines = joined![start(), java(100, 20, 40, 1.5), java(50, 30, 10, 0.5), model_end(), end()];
    play(&lines).gives(&[&finished(json!([{
        "inputTokens": 150, "outputTokens": 50, "totalTokens": 200, "cachedInputTokens": 50 }]))]);
}

fn told(delta: Value, cumulative: Value, model_call: Value) -> String {
    let value = json!({ "delta": delta, "cumulative": cumulative, "modelCall": model_call });
    format!("CUSTOM {}", json!({ "name": "token_usage", "value": value }))
}

fn counts(input: u64, output: u64, cached: u64, total: u64, time: f64) -> Value {
    json!({ "inputTokens": input, "outputTokens": output, "cachedTokens": cached,
        "totalTokens": total, "time": time })
}

#[test]
fn each_model_call_is_told_on_demand() {
    let lines = joined![
        start(),
        java(100, 20, 40, 1.5),
        text("a"),
        java(50, 30, 10, 0.5),
        model_end(),
        end()
    ];
    let root = || json!({ "replyId": "R1" });
    Run::with(|options| options.emit_token_usage = true).play(&lines).gives(&[
        &told(counts(100, 20, 40, 120, 1.5), counts(100, 20, 40, 120, 1.5), root()),
        "TEXT id-1",
        "TEXT+ id-1 a",
        &told(counts(50, 30, 10, 80, 0.5), counts(150, 50, 50, 200, 2.0), root()),
        "TEXT. id-1",
        &finished(json!([{ "inputTokens": 150, "outputTokens": 50, "totalTokens": 200,
            "cachedInputTokens": 50 }])),
    ]);
}

#[test]
fn usage_of_all_calls_is_the_runs() {
    let lines = joined![
        start(),
        java(100, 20, 40, 1.5),
        model_end(),
        from("main/a", java(50, 30, 10, 0.5)),
        end(),
    ];
    let root = json!({ "replyId": "R1" });
    let child = json!({ "replyId": "R1", "source": "main/a" });
    let all = finished(json!([{ "inputTokens": 150, "outputTokens": 50, "totalTokens": 200,
        "cachedInputTokens": 50 }]));
    play(&lines).gives(&[&all]);
    Run::with(|options| options.emit_token_usage = true).play(&lines).gives(&[
        &told(counts(100, 20, 40, 120, 1.5), counts(100, 20, 40, 120, 1.5), root),
        &told(counts(50, 30, 10, 80, 0.5), counts(150, 50, 50, 200, 2.0), child),
        &all,
    ]);
}

fn model(source: Option<&str>, reply: &str, name: &str, input: u64, output: u64) -> Vec<String> {
    let lines = joined![
        python("MODEL_CALL_START", json!({ "reply_id": reply, "model_name": name })),
        python(
            "MODEL_CALL_END",
            json!({ "reply_id": reply, "input_tokens": input, "output_tokens": output,
                "cache_input_tokens": 0, "cache_creation_input_tokens": 0,
                "finished_reason": "completed" })
        ),
    ];
    match source {
        Some(source) => from(source, lines),
        None => lines,
    }
}

#[test]
fn there_is_one_entry_per_model_children_included() {
    let lines = joined![
        start(),
        model(None, "P", "big", 10, 5),
        model(Some("main/a"), "Q", "small", 7, 1),
        model(None, "P", "big", 1, 1),
        end(),
    ];
    play(&lines).gives(&[&finished(json!([
        { "model": "big", "inputTokens": 11, "outputTokens": 6, "totalTokens": 17 },
        { "model": "small", "inputTokens": 7, "outputTokens": 1, "totalTokens": 8 },
    ]))]);
}

#[test]
fn cached_tokens_counted_beside_the_input_are_added_to_it() {
    play(&joined![start(), java(3, 20, 40, 1.0), end()]).gives(&[&finished(json!([{
        "inputTokens": 43, "outputTokens": 20, "totalTokens": 63, "cachedInputTokens": 40 }]))]);
}

#[test]
fn a_failed_run_tells_what_it_spent() {
    let error =
        json!({ "finished_reason": "error", "error": { "type": "upstream", "message": "x" } });
    let lines = joined![start(), java(1, 2, 0, 1.0), python("REPLY_END", error)];
    let values = play(&lines).values();
    assert_eq!(values[1]["type"], "RUN_ERROR");
    assert_eq!(values[1]["usage"][0]["totalTokens"], 3);
}
