use serde_json::{Map, Value, json};

use super::*;
use crate::{config::models::Secret, llm::turns::tests::*};

mod failure;
mod request;
mod round_trip;
mod stream;

/// The wire of a model with these parameters.
fn wire(model: &str, parameters: Value) -> Gemini {
    let parameters = match parameters {
        Value::Object(parameters) => parameters,
        _ => Map::new(),
    };
    Gemini::new(&ModelConfig {
        api_key: Some(Secret::new("AIza-key")),
        model: model.to_owned(),
        parameters,
        ..ModelConfig::default()
    })
}
