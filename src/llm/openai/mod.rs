//! The wire of chat completions, as OpenAI has them and many others do: DashScope, DeepSeek,
//! OpenRouter, vLLM, Ollama and more. Where they differ, all of them are understood.

mod calls;
mod chunk;
mod decoder;
mod media;
mod messages;
mod reasoning;

use std::sync::Arc;

use http::{HeaderMap, StatusCode, header::AUTHORIZATION};
use serde_json::{Map, Value, json};

use self::{
    decoder::ChatDecoder,
    messages::{Messages, Told},
    reasoning::ReasoningField,
};
use super::{
    FunctionSpec, ModelErrorKind, ModelRequest, ToolChoice,
    body::{key_header, merge, note_left_out},
    failure::ProviderError,
    names,
    wire::{Decoder, Wire, WireRequest},
};
use crate::config::models::ModelConfig;

/// Names the artefacts of this wire.
const WIRE: &str = "openai";

/// The wire of one model.
pub(super) struct OpenAi {
    model: String,
    headers: HeaderMap,
    parameters: Map<String, Value>,
    vision: bool,
    reasoning: Arc<ReasoningField>,
}

impl OpenAi {
    pub(super) fn new(config: &ModelConfig) -> Self {
        let mut headers = HeaderMap::new();
        if let Some(bearer) = key_header(config, "Bearer ") {
            headers.insert(AUTHORIZATION, bearer);
        }
        Self {
            model: config.model.clone(),
            headers,
            parameters: config.parameters.clone(),
            vision: config.vision,
            reasoning: Arc::default(),
        }
    }

    fn body(&self, request: &ModelRequest) -> Value {
        let Told { messages, left_out } =
            Messages::tell(request, self.vision, self.reasoning.name());
        note_left_out(left_out, &self.model, request);
        let mut body = Map::new();
        body.insert("model".to_owned(), self.model.clone().into());
        body.insert("messages".to_owned(), messages.into());
        if !request.tools.is_empty() {
            let tools: Vec<Value> = request.tools.iter().map(tool).collect();
            body.insert("tools".to_owned(), tools.into());
            if request.tool_choice == ToolChoice::None {
                body.insert("tool_choice".to_owned(), "none".into());
            }
        }
        body.insert("stream".to_owned(), true.into());
        body.insert("stream_options".to_owned(), json!({"include_usage": true}));
        merge(&mut body, &self.parameters);
        if body.get("stream") != Some(&Value::Bool(true)) {
            body.shift_remove("stream_options");
        }
        body.into()
    }
}

impl Wire for OpenAi {
    fn request(&self, request: &ModelRequest) -> WireRequest {
        WireRequest {
            path: "/chat/completions".to_owned(),
            headers: self.headers.clone(),
            body: self.body(request).to_string().into_bytes(),
        }
    }

    fn decoder(&self, request: &ModelRequest) -> Box<dyn Decoder + Send> {
        Box::new(ChatDecoder::new(names::Names::of(&request.tools), Arc::clone(&self.reasoning)))
    }

    fn failure(&self, status: StatusCode, body: &[u8]) -> ModelErrorKind {
        ProviderError::of_body(body).kind(Some(status))
    }
}

fn tool(tool: &FunctionSpec) -> Value {
    let mut function = Map::new();
    function.insert("name".to_owned(), names::encode(&tool.name).into());
    if !tool.description.is_empty() {
        function.insert("description".to_owned(), tool.description.as_str().into());
    }
    function.insert("parameters".to_owned(), parameters(&tool.parameters));
    json!({"type": "function", "function": function})
}

/// The schema of the arguments; providers want to see `type` and `properties`.
fn parameters(schema: &Value) -> Value {
    let mut schema = schema.as_object().cloned().unwrap_or_default();
    schema.entry("type").or_insert_with(|| "object".into());
    schema.entry("properties").or_insert_with(|| json!({}));
    schema.into()
}

#[cfg(test)]
mod tests;
