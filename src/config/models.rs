//! Key `agentscope.models`: the models, by name.

use std::{collections::BTreeMap, fmt, time::Duration};

/// A value that neither logs nor errors show.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps a value.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value; to be sent to whom it belongs and shown to nobody.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// One model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelConfig {
    /// Which wire it speaks.
    pub provider: Provider,
    /// Where it is, without the last part of the path, e.g. `https://example.invalid/v1`.
    pub base_url: String,
    /// The key, if it needs one.
    pub api_key: Option<Secret>,
    /// The provider's name of the model.
    pub model: String,
    /// Headers of every request.
    pub headers: BTreeMap<String, Secret>,
    /// Members of every request's body, over our own.
    pub parameters: serde_json::Map<String, serde_json::Value>,
    /// Longest time without a byte; `None` = no limit; default 2 minutes.
    pub timeout: Option<Duration>,
    /// How often a request is repeated that failed before the first delta; default 2.
    pub max_retries: u32,
    /// Whether it takes images; default true.
    pub vision: bool,
}

/// Wires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Provider {
    /// Chat completions, as OpenAI has them and many others do.
    #[default]
    OpenAi,
    /// The messages API of Anthropic.
    Anthropic,
    /// `streamGenerateContent` of Gemini.
    Gemini,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            provider: Provider::default(),
            base_url: String::new(),
            api_key: None,
            model: String::new(),
            headers: BTreeMap::new(),
            parameters: serde_json::Map::new(),
            timeout: Some(Duration::from_secs(120)),
            max_retries: 2,
            vision: true,
        }
    }
}
