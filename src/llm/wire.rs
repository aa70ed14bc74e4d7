//! What a provider's wire has to say: how a request looks and what the stream of its answer means.
//! No I/O: the client sends the one and feeds the other.

use super::{ModelError, ModelErrorKind, ModelEvent, ModelRequest};

/// How many calls an answer may make. Whoever makes more never ends.
pub(super) const MAX_CALLS: usize = 1000;

/// One provider's wire.
pub(super) trait Wire: Send + Sync {
    /// The request, for the configured model; the client adds the base URL, configured headers
    /// and whatever HTTP needs.
    fn request(&self, request: &ModelRequest) -> WireRequest;

    /// What reads the answer to `request`.
    fn decoder(&self, request: &ModelRequest) -> Box<dyn Decoder + Send>;

    /// What kind of failure an answer is whose status is no success. `body` holds what came of
    /// it, at most 64 KiB. `Retry-After` is the client's.
    fn failure(&self, status: http::StatusCode, body: &[u8]) -> ModelErrorKind;
}

/// A request as the wire has it.
#[derive(Clone, Debug)]
pub(super) struct WireRequest {
    /// What follows the base URL, with its leading slash and its query.
    pub(super) path: String,
    /// Headers of the wire, the key's included (marked sensitive).
    pub(super) headers: http::HeaderMap,
    /// The JSON body.
    pub(super) body: Vec<u8>,
}

/// Reads one answer.
pub(super) trait Decoder {
    /// One SSE event: its `event:` name, if it has one, and its `data:`. Pushes what it means; an
    /// error ends the answer, and nothing is read behind [`ModelEvent::Finish`].
    fn on_event(
        &mut self,
        name: Option<&str>,
        data: &str,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError>;

    /// Whether the model said why it stops. What may follow (counts, the end) follows at once or
    /// not at all.
    fn is_complete(&self) -> bool;

    /// The stream ended cleanly, or is complete and ended anyhow: pushes what is still due, [`ModelEvent::Finish`] last.
    fn on_end(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError>;
}
