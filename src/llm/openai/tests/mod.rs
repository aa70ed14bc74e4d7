//! Requests compared whole, and answers of every habit.

mod request;
mod stream;

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::{config::models::Secret, llm::ModelEvent};

fn config() -> ModelConfig {
    ModelConfig {
        model: "qwen-plus".to_owned(),
        api_key: Some(Secret::new("sk-test")),
        ..ModelConfig::default()
    }
}

fn spec(name: &str, parameters: Value) -> FunctionSpec {
    FunctionSpec {
        name: name.to_owned(),
        description: "Finds.".to_owned(),
        parameters: Arc::new(parameters),
    }
}

#[test]
fn a_refusal_has_its_kind() {
    let wire = OpenAi::new(&config());
    let kind =
        |status, body: &str| wire.failure(StatusCode::from_u16(status).unwrap(), body.as_bytes());
    let limited = ModelErrorKind::RateLimited { retry_after: None };
    assert_eq!(kind(401, ""), ModelErrorKind::Auth);
    assert_eq!(kind(429, ""), limited);
    assert_eq!(kind(503, ""), ModelErrorKind::Unavailable);
    assert_eq!(kind(400, ""), ModelErrorKind::Other);
    let long = json!({"error": {"code": "context_length_exceeded", "message": "too long"}});
    assert_eq!(kind(400, &long.to_string()), ModelErrorKind::ContextExceeded);
}
