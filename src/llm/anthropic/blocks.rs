//! Blocks that stand in messages and in tool results alike.

use agui_adapter::model::msg::{MediaKind, MediaSource};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use super::super::media::Medium;

/// Image types that the API takes.
const IMAGES: &[&str] = &["image/jpeg", "image/png", "image/gif", "image/webp"];
/// The document type that it takes.
const PDF: &str = "application/pdf";

/// A block of text.
pub(super) fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// The block of a medium; `None` = the API has none for it, or the model sees no images.
pub(super) fn media_block(kind: MediaKind, source: &MediaSource, vision: bool) -> Option<Value> {
    let (block, source) = match Medium::of(source) {
        Medium::Inline { media_type: Some(media_type), data } if IMAGES.contains(&media_type) => {
            ("image", json!({"type": "base64", "media_type": media_type, "data": data}))
        }
        Medium::Inline { media_type: Some(PDF), data } => {
            ("document", json!({"type": "base64", "media_type": PDF, "data": data}))
        }
        Medium::Inline { media_type: Some(media_type), data } if is_text(media_type) => {
            let text = String::from_utf8(BASE64_STANDARD.decode(data).ok()?).ok()?;
            if text.trim().is_empty() {
                return None;
            }
            ("document", json!({"type": "text", "media_type": "text/plain", "data": text}))
        }
        Medium::Inline { .. } => return None,
        Medium::Url { media_type, url } => match (kind, media_type) {
            (MediaKind::Image, None) => ("image", json!({"type": "url", "url": url})),
            (_, Some(media_type)) if IMAGES.contains(&media_type) => {
                ("image", json!({"type": "url", "url": url}))
            }
            (MediaKind::Document, None) | (_, Some(PDF)) => {
                ("document", json!({"type": "url", "url": url}))
            }
            _ => return None,
        },
    };
    (vision || block != "image").then(|| json!({"type": block, "source": source}))
}

fn is_text(media_type: &str) -> bool {
    media_type.starts_with("text/") || media_type == "application/json"
}
