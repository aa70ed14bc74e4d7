//! `streamGenerateContent` of Gemini.
//!
//! Its base URL ends before `/models`, e.g. `https://generativelanguage.googleapis.com/v1beta` or
//! `https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google`.
//! `parameters` are members of `generationConfig` (`temperature`, `thinkingConfig` and so on),
//! but for those that stand beside it in a request: `generationConfig` itself, `safetySettings`,
//! `toolConfig`, `tools`, `cachedContent` and the like. They go over our own, a null takes one of
//! ours out, `tools` of the provider's stand beside ours.

mod decode;
mod failure;
mod parts;
mod request;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

use super::{
    ModelErrorKind, ModelRequest,
    body::key_header,
    wire::{Decoder, Wire, WireRequest},
};
use crate::config::models::ModelConfig;

/// The envelope's name of this wire.
const WIRE: &str = "gemini";
/// Kind of the artefact that signs a thought or a call.
const SIGNATURE: &str = "signature";
/// Kind of the artefact that signs the text or medium before it.
const PART_SIGNATURE: &str = "part-signature";

/// What is escaped in the name of a model.
const ESCAPED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/').remove(b'@');

/// The wire, for one configured model.
pub(super) struct Gemini {
    model: String,
    key: Option<HeaderValue>,
    parameters: Map<String, Value>,
    vision: bool,
    /// It is Vertex AI, which refuses requests in which calls have ids.
    is_vertex: bool,
}

impl Gemini {
    /// The wire of this model.
    pub(super) fn new(config: &ModelConfig) -> Self {
        Self {
            model: config.model.clone(),
            key: key_header(config, ""),
            parameters: config.parameters.clone(),
            vision: config.vision,
            is_vertex: config.base_url.contains("aiplatform.googleapis.com"),
        }
    }

    /// A name with a path of its own, such as `tunedModels/mine`, brings the collection along.
    fn path(&self) -> String {
        let collection = if self.model.contains('/') { "" } else { "models/" };
        let model = utf8_percent_encode(&self.model, ESCAPED);
        format!("/{collection}{model}:streamGenerateContent?alt=sse")
    }
}

impl Wire for Gemini {
    fn request(&self, request: &ModelRequest) -> WireRequest {
        let mut headers = HeaderMap::new();
        if let Some(key) = &self.key {
            headers.insert(HeaderName::from_static("x-goog-api-key"), key.clone());
        }
        let body = Value::Object(self.body(request)).to_string().into_bytes();
        WireRequest { path: self.path(), headers, body }
    }

    fn decoder(&self, request: &ModelRequest) -> Box<dyn Decoder + Send> {
        Box::new(decode::Chunks::new(request))
    }

    fn failure(&self, status: StatusCode, body: &[u8]) -> ModelErrorKind {
        failure::of_answer(status, body)
    }
}

#[cfg(test)]
mod tests;
