//! The messages API of Anthropic.
//!
//! Its base URL ends before `/messages`, e.g. `https://api.anthropic.com/v1`. `parameters` are
//! members of the body over our own, a null takes one of ours out, `tools` of the provider's stand
//! beside ours; `cache_control`, `thinking`
//! and whatever else the API has come in by them.

mod blocks;
mod decode;
mod failure;
mod messages;
mod request;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::{Map, Value};

use super::{
    ModelErrorKind, ModelRequest,
    body::key_header,
    wire::{Decoder, Wire, WireRequest},
};
use crate::config::models::ModelConfig;

/// The envelope's name of this wire.
const WIRE: &str = "anthropic";
/// Kind of the artefact that signs a block of thinking.
const SIGNATURE: &str = "signature";
/// Kind of the artefact that is a whole block of thinking, its text hidden.
const REDACTED: &str = "redacted";

/// The wire, for one configured model.
pub(super) struct Anthropic {
    model: String,
    key: Option<HeaderValue>,
    parameters: Map<String, Value>,
    vision: bool,
}

impl Anthropic {
    /// The wire of this model.
    pub(super) fn new(config: &ModelConfig) -> Self {
        Self {
            model: config.model.clone(),
            key: key_header(config, ""),
            parameters: config.parameters.clone(),
            vision: config.vision,
        }
    }
}

impl Wire for Anthropic {
    fn request(&self, request: &ModelRequest) -> WireRequest {
        let mut headers = HeaderMap::new();
        let version = HeaderName::from_static("anthropic-version");
        headers.insert(version, HeaderValue::from_static("2023-06-01"));
        if let Some(key) = &self.key {
            headers.insert(HeaderName::from_static("x-api-key"), key.clone());
        }
        let body = Value::Object(self.body(request)).to_string().into_bytes();
        WireRequest { path: "/messages".to_owned(), headers, body }
    }

    fn decoder(&self, request: &ModelRequest) -> Box<dyn Decoder + Send> {
        Box::new(decode::Messages::new(request))
    }

    fn failure(&self, status: StatusCode, body: &[u8]) -> ModelErrorKind {
        failure::of_answer(status, body)
    }
}

#[cfg(test)]
mod tests;
