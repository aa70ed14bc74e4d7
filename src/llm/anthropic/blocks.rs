//! Blocks that stand in messages and in tool results alike.

use agui_adapter::model::msg::{MediaKind, MediaSource};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use super::super::media::{Medium, stand_in};

/// Image types that the API takes.
const IMAGES: &[&str] = &["image/jpeg", "image/png", "image/gif", "image/webp"];
/// The document type that it takes.
const PDF: &str = "application/pdf";

/// A block of text.
pub(super) fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// The block of a medium; text that stands for it where the API has none.
pub(super) fn media_block(kind: MediaKind, source: &MediaSource, name: Option<&str>) -> Value {
    let block = match Medium::of(source) {
        Medium::Inline { media_type, data } => data_block(media_type.unwrap_or_default(), data),
        Medium::Url { media_type, url } => url_block(kind, media_type, url),
    };
    block.unwrap_or_else(|| text_block(&stand_in(kind, source, name)))
}

fn data_block(media_type: &str, data: &str) -> Option<Value> {
    let block = if IMAGES.contains(&media_type) { "image" } else { "document" };
    let source = if block == "image" || media_type == PDF {
        json!({"type": "base64", "media_type": media_type, "data": data})
    } else {
        json!({"type": "text", "media_type": "text/plain", "data": plain_text(media_type, data)?})
    };
    Some(json!({"type": block, "source": source}))
}

fn url_block(kind: MediaKind, media_type: Option<&str>, url: &str) -> Option<Value> {
    let block = match (kind, media_type) {
        (MediaKind::Image, None) => "image",
        (_, Some(media_type)) if IMAGES.contains(&media_type) => "image",
        (MediaKind::Document, None) | (_, Some(PDF)) => "document",
        _ => return None,
    };
    Some(json!({"type": block, "source": {"type": "url", "url": url}}))
}

/// Documents of text go as such; the API refuses empty ones.
fn plain_text(media_type: &str, data: &str) -> Option<String> {
    if !media_type.starts_with("text/") && media_type != "application/json" {
        return None;
    }
    let text = String::from_utf8(BASE64_STANDARD.decode(data).ok()?).ok()?;
    Some(text).filter(|text| !text.trim().is_empty())
}
