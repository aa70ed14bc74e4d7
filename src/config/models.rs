//! Key `agentscope.models`: the models, by name.

use std::{collections::BTreeMap, fmt, time::Duration};

use super::{
    adapter::missing,
    endpoint,
    tree::{Block, Faults},
};

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
    /// Where it is, without the last part of the path and its `/`, e.g.
    /// `https://example.invalid/v1`; default: the provider's own.
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

impl Provider {
    /// Where the provider itself serves this wire.
    pub fn base_url(self) -> &'static str {
        match self {
            Self::OpenAi => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta",
        }
    }
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

/// What requests hold in any case; `parameters` cannot replace it.
pub(super) const FIXED: [&str; 4] = ["model", "messages", "contents", "stream"];

/// Reads the section.
pub(super) fn read(block: &Block<'_>, faults: &mut Faults<'_>) -> BTreeMap<String, ModelConfig> {
    let models = block.entries().into_iter();
    models.map(|(name, entry)| (name.to_owned(), model(&entry, faults))).collect()
}

fn model(entry: &Block<'_>, faults: &mut Faults<'_>) -> ModelConfig {
    let default = ModelConfig::default();
    if entry.text("model").is_none_or(str::is_empty) {
        missing(entry, "model", faults);
    }
    let provider = match entry.text("provider") {
        Some("anthropic") => Provider::Anthropic,
        Some("gemini") => Provider::Gemini,
        _ => Provider::OpenAi,
    };
    ModelConfig {
        provider,
        base_url: base_url(entry, provider, faults),
        api_key: api_key(entry, faults),
        model: entry.text("model").unwrap_or_default().to_owned(),
        headers: endpoint::headers(&entry.block("headers"), &[], faults),
        parameters: parameters(&entry.block("parameters"), faults),
        timeout: entry.duration("timeout").unwrap_or(default.timeout),
        max_retries: entry.integer("max-retries").unwrap_or(default.max_retries),
        vision: entry.boolean("vision").unwrap_or(default.vision),
    }
}

fn base_url(entry: &Block<'_>, provider: Provider, faults: &mut Faults<'_>) -> String {
    let Some(url) = entry.text("base-url") else { return provider.base_url().to_owned() };
    let query = url.contains(['?', '#']).then_some(
        "the path of a request is appended to this address: it has neither a query nor a fragment",
    );
    if let Some(message) = endpoint::url_fault(url).or(query) {
        faults.value(&entry.at("base-url"), message);
    }
    url.trim_end_matches('/').to_owned()
}

/// A variable without a value is no key: local servers want none.
fn api_key(entry: &Block<'_>, faults: &mut Faults<'_>) -> Option<Secret> {
    let key = entry.text("api-key").filter(|key| !key.is_empty())?;
    endpoint::header_value(key, &entry.at("api-key"), faults);
    Some(Secret::new(key))
}

fn parameters(
    block: &Block<'_>,
    faults: &mut Faults<'_>,
) -> serde_json::Map<String, serde_json::Value> {
    for (name, entry) in block.entries().iter().filter(|(name, _)| FIXED.contains(name)) {
        faults.key(entry.path(), format!("`{name}` is the server's own and cannot be replaced"));
    }
    let names = block.entries().into_iter().map(|(name, _)| name);
    names.filter_map(|name| Some((name.to_owned(), block.json(name)?))).collect()
}
