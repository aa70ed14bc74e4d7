//! Media as parts of a user's message.

use agui_adapter::model::msg::{MediaKind, MediaSource};
use serde_json::{Value, json};

use crate::llm::media::Medium;

/// A medium as a part; what has no form stands as a line of text.
pub(super) fn part(
    kind: MediaKind,
    source: &MediaSource,
    name: Option<&str>,
) -> Result<Value, String> {
    let medium = Medium::of(source);
    let media_type = medium.media_type().unwrap_or(likely(kind));
    Ok(match (kind, medium) {
        (MediaKind::Image, medium) => {
            json!({"type": "image_url", "image_url": {"url": url(media_type, medium)}})
        }
        (MediaKind::Video, medium) => {
            json!({"type": "video_url", "video_url": {"url": url(media_type, medium)}})
        }
        (MediaKind::Audio, Medium::Inline { data, .. }) => {
            let format = audio_format(media_type);
            json!({"type": "input_audio", "input_audio": {"data": data, "format": format}})
        }
        (MediaKind::Document, Medium::Inline { .. }) => {
            let file_data = url(media_type, medium);
            let filename = name.unwrap_or("document");
            json!({"type": "file", "file": {"filename": filename, "file_data": file_data}})
        }
        (MediaKind::Audio | MediaKind::Document, Medium::Url { url, .. }) => {
            let name = name.map(|name| format!(" {name}")).unwrap_or_default();
            return Err(format!("[{}{name}: {url}]", name_of(kind)));
        }
    })
}

/// What a kind of media is called.
pub(super) fn name_of(kind: MediaKind) -> &'static str {
    match kind {
        MediaKind::Image => "image",
        MediaKind::Audio => "audio",
        MediaKind::Video => "video",
        MediaKind::Document => "document",
    }
}

fn url(media_type: &str, medium: Medium<'_>) -> String {
    match medium {
        Medium::Inline { data, .. } => format!("data:{media_type};base64,{data}"),
        Medium::Url { url, .. } => url.to_owned(),
    }
}

/// The type of what nobody told the type of.
fn likely(kind: MediaKind) -> &'static str {
    match kind {
        MediaKind::Image => "image/png",
        MediaKind::Audio => "audio/wav",
        MediaKind::Video => "video/mp4",
        MediaKind::Document => "application/pdf",
    }
}

/// The provider's name of a format of sound.
fn audio_format(media_type: &str) -> &str {
    match media_type.rsplit('/').next().unwrap_or_default() {
        "x-wav" | "wave" | "vnd.wave" => "wav",
        "mpeg" => "mp3",
        "x-m4a" | "mp4" => "m4a",
        other => other,
    }
}
