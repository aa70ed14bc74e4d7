//! What the checker knows besides the stream: the run input, and how strict to be.

use serde_json::Value;

/// What the checker knows besides the stream.
///
/// The default knows nothing of the input, so rules that need it are not checked.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifyInput {
    /// The run input that the stream answers, as raw JSON.
    pub input: Option<Value>,
    /// Whether a new start of a closed message, which the protocol allows, is a finding (TXT-6).
    /// A producer that mints an id per block never needs it.
    pub forbid_reopen: bool,
    /// Whether chunk events, which the protocol allows, are a finding (CHK-9).
    pub forbid_chunks: bool,
}

impl Default for VerifyInput {
    fn default() -> Self {
        Self { input: None, forbid_reopen: true, forbid_chunks: true }
    }
}

impl From<Value> for VerifyInput {
    fn from(input: Value) -> Self {
        Self { input: Some(input), ..Self::default() }
    }
}

impl VerifyInput {
    /// Accepts everything that the protocol allows, also what this producer never does.
    #[must_use]
    pub fn lenient(mut self) -> Self {
        self.forbid_reopen = false;
        self.forbid_chunks = false;
        self
    }

    /// A string member of the input.
    pub(super) fn string(&self, name: &str) -> Option<&str> {
        self.input.as_ref()?.get(name)?.as_str()
    }

    /// The input's messages.
    pub(super) fn messages(&self) -> &[Value] {
        self.list("messages")
    }

    /// Whether the client runs the tool itself.
    pub(super) fn is_frontend_tool(&self, name: &str) -> bool {
        self.list("tools").iter().any(|tool| tool["name"] == name)
    }

    /// Whether the peer is older than 1.0 (VER-7).
    pub(super) fn is_legacy(&self) -> bool {
        self.input.is_some() && self.string("protocolVersion").is_none()
    }

    /// The state that the first delta builds on, if it is known (STATE-4).
    pub(super) fn state(&self) -> Option<Value> {
        let state = self.input.as_ref()?.get("state");
        Some(
            state
                .filter(|state| !state.is_null())
                .cloned()
                .unwrap_or_else(|| Value::Object(serde_json::Map::new())),
        )
    }

    fn list(&self, name: &str) -> &[Value] {
        let list = self.input.as_ref().and_then(|input| input.get(name)?.as_array());
        list.map_or(&[], Vec::as_slice)
    }
}
