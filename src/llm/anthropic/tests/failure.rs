use ModelErrorKind::{Auth, ContextExceeded, Other, RateLimited, Unavailable};

use super::*;

fn of(status: u16, body: &str) -> ModelErrorKind {
    wire(Value::Null).failure(StatusCode::from_u16(status).unwrap(), body.as_bytes())
}

fn error(name: &str, message: &str) -> String {
    json!({"type": "error", "error": {"type": name, "message": message}}).to_string()
}

#[test]
fn the_status_tells_what_kind_of_failure_it_is() {
    let limited = RateLimited { retry_after: None };
    for (status, kind) in [
        (401, Auth),
        (403, Auth),
        (404, Other),
        (413, ContextExceeded),
        (429, limited),
        (500, Other),
        (502, Unavailable),
        (503, Unavailable),
        (504, Unavailable),
        (529, Unavailable),
    ] {
        assert_eq!(of(status, ""), kind, "{status}");
    }
}

#[test]
fn the_error_tells_where_the_status_does_not() {
    let long = "prompt is too long: 210000 tokens > 200000 maximum";
    assert_eq!(of(400, &error("invalid_request_error", long)), ContextExceeded);
    let room = "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000";
    assert_eq!(of(400, &error("invalid_request_error", room)), ContextExceeded);
    let other = "messages.0.content.0.text: is required";
    assert_eq!(of(400, &error("invalid_request_error", other)), Other);
    assert_eq!(of(400, "<html>"), Other);
}
