use serde_json::{Map, Value, json};

use super::*;
use crate::{config::models::Secret, llm::turns::tests::*};

mod failure;
mod request;
mod round_trip;
mod stream;

/// The wire with these parameters.
fn wire(parameters: Value) -> Anthropic {
    let parameters = match parameters {
        Value::Object(parameters) => parameters,
        _ => Map::new(),
    };
    Anthropic::new(&ModelConfig {
        api_key: Some(Secret::new("sk-key")),
        model: "claude-sonnet-4-5".to_owned(),
        parameters,
        ..ModelConfig::default()
    })
}
