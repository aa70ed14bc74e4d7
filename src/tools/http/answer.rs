//! What a service answered, for the model.

use agui_adapter::model::{
    event::ResultState,
    msg::{Block, MediaKind, MediaSource},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{StatusCode, header::CONTENT_TYPE};

use crate::tools::ToolEnd;

/// How much of the body of a failure is told, in characters.
const MAX_FAILURE: usize = 2000;

/// Reads at most `limit` bytes.
///
/// # Errors
///
/// For the model: what failed.
pub(super) async fn read(
    response: reqwest::Response,
    limit: usize,
    request_id: &str,
) -> Result<ToolEnd, String> {
    let status = response.status();
    let media_type = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .map(|essence| essence.trim().to_ascii_lowercase())
        .unwrap_or_default();
    if status.is_redirection() {
        return Err(format!(
            "The service answered with status {status}: a redirect that is not followed."
        ));
    }
    let body = Body::read(response, limit, request_id).await?;
    if !status.is_success() {
        return Err(failure(status, &media_type, &body));
    }
    success(status, media_type, body, limit)
}

/// The beginning of a body.
struct Body {
    bytes: Vec<u8>,
    cut: bool,
}

impl Body {
    async fn read(
        mut response: reqwest::Response,
        limit: usize,
        request_id: &str,
    ) -> Result<Self, String> {
        let mut bytes = Vec::new();
        loop {
            let chunk = response.chunk().await.map_err(|error| {
                tracing::warn!(
                    request.id = request_id,
                    error = ?error.without_url(),
                    "the answer to an HTTP tool broke off"
                );
                "The answer of the service broke off.".to_owned()
            })?;
            let Some(chunk) = chunk else { return Ok(Self { bytes, cut: false }) };
            let room = limit - bytes.len();
            bytes.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
            if chunk.len() > room {
                return Ok(Self { bytes, cut: true });
            }
        }
    }

    /// The text, if it is one.
    fn text(&self, media_type: &str) -> Option<String> {
        let declared = is_text(media_type);
        match std::str::from_utf8(self.whole_characters()) {
            Ok(text) => (declared || media_type.is_empty()).then(|| text.to_owned()),
            // In another encoding than it should be.
            Err(_) => declared.then(|| String::from_utf8_lossy(&self.bytes).into_owned()),
        }
    }

    /// Without the beginning of a character that was cut.
    fn whole_characters(&self) -> &[u8] {
        match std::str::from_utf8(&self.bytes) {
            Err(error) if self.cut && error.error_len().is_none() => {
                self.bytes.get(..error.valid_up_to()).unwrap_or_default()
            }
            _ => &self.bytes,
        }
    }
}

fn is_text(media_type: &str) -> bool {
    const TEXTS: [&str; 8] = [
        "application/json",
        "application/xml",
        "application/yaml",
        "application/x-yaml",
        "application/javascript",
        "application/x-ndjson",
        "application/x-www-form-urlencoded",
        "application/graphql",
    ];
    media_type.starts_with("text/")
        || TEXTS.contains(&media_type)
        || media_type.ends_with("+json")
        || media_type.ends_with("+xml")
        || media_type.ends_with("+yaml")
}

fn success(
    status: StatusCode,
    media_type: String,
    body: Body,
    limit: usize,
) -> Result<ToolEnd, String> {
    if body.bytes.is_empty() {
        return Ok(done(format!("The service answered with status {status} and nothing else.")));
    }
    if let Some(mut text) = body.text(&media_type) {
        if body.cut {
            text.push_str(&format!("\n[cut: the answer is longer than {limit} bytes]"));
        }
        return Ok(done(text));
    }
    if !media_type.starts_with("image/") && !media_type.starts_with("audio/") {
        let kind = if media_type.is_empty() { "an unknown type" } else { &media_type };
        let length = body.bytes.len();
        let more = if body.cut { "more than " } else { "" };
        return Ok(done(format!(
            "The answer is {more}{length} bytes of {kind}, which cannot be shown."
        )));
    }
    if body.cut {
        return Err(format!("The answer is longer than {limit} bytes."));
    }
    let (kind, data) = (MediaKind::of(&media_type), STANDARD.encode(&body.bytes));
    let source = MediaSource::Base64 { media_type, data };
    let medium = Block::Media { kind, source, name: None, metadata: None };
    Ok(ToolEnd::Result { output: vec![medium], state: ResultState::Success })
}

fn failure(status: StatusCode, media_type: &str, body: &Body) -> String {
    let told = format!("The service answered with status {status}");
    let Some(text) = body.text(media_type).filter(|text| !text.trim().is_empty()) else {
        return format!("{told}.");
    };
    let text = text.trim();
    match text.char_indices().nth(MAX_FAILURE) {
        None => format!("{told}: {text}"),
        Some((end, _)) => format!("{told}: {}…", text.get(..end).unwrap_or_default()),
    }
}

fn done(text: String) -> ToolEnd {
    ToolEnd::text(text, ResultState::Success)
}
