use std::time::Duration;

use ModelErrorKind::{Auth, ContextExceeded, Other, RateLimited, Unavailable};

use super::*;

fn of(status: u16, body: &Value) -> ModelErrorKind {
    let status = StatusCode::from_u16(status).unwrap();
    wire("gemini-2.5-flash", Value::Null).failure(status, body.to_string().as_bytes())
}

fn error(code: u16, status: &str, message: &str, details: Value) -> Value {
    json!({"error": {"code": code, "message": message, "status": status, "details": details}})
}

#[test]
fn a_wrong_key_is_told_in_the_details_of_a_400() {
    let info = json!([{
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "API_KEY_INVALID",
        "domain": "googleapis.com",
    }]);
    let message = "API key not valid. Please pass a valid API key.";
    assert_eq!(of(400, &error(400, "INVALID_ARGUMENT", message, info.clone())), Auth);
    assert_eq!(of(400, &json!([error(400, "INVALID_ARGUMENT", message, info)])), Auth);
    assert_eq!(of(403, &error(403, "PERMISSION_DENIED", "no", json!([]))), Auth);
    assert_eq!(of(401, &Value::Null), Auth);
    assert_eq!(of(400, &error(400, "INVALID_ARGUMENT", "bad part", json!([]))), Other);
}

#[test]
fn a_limit_says_how_long_to_wait() {
    let delay = |delay: Value| {
        let details = json!([
            {"@type": "type.googleapis.com/google.rpc.Help", "links": []},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay},
        ]);
        of(429, &error(429, "RESOURCE_EXHAUSTED", "quota", details))
    };
    let after = |ms| RateLimited { retry_after: Some(Duration::from_millis(ms)) };
    assert_eq!(delay(json!("34s")), after(34_000));
    assert_eq!(delay(json!("0.5s")), after(500));
    for unusable in [json!("soon"), json!("-1s"), json!("infs"), json!(3), Value::Null] {
        assert_eq!(delay(unusable), RateLimited { retry_after: None });
    }
    assert_eq!(of(429, &Value::Null), RateLimited { retry_after: None });
}

#[test]
fn a_conversation_that_is_too_long_is_told_from_other_bad_requests() {
    let message = "The input token count (1048577) exceeds the maximum number of tokens allowed \
                   (1048576).";
    let error = error(400, "INVALID_ARGUMENT", message, json!([]));
    assert_eq!(of(400, &error), ContextExceeded);
}

#[test]
fn an_overloaded_model_is_unavailable() {
    let error = error(503, "UNAVAILABLE", "The model is overloaded.", json!([]));
    assert_eq!(of(503, &error), Unavailable);
    assert_eq!(of(500, &json!({"error": {"code": 500, "status": "INTERNAL"}})), Other);
}
