//! Media as AG-UI shows them: a part where there are parts, else an activity. The same whether
//! they stream or stand in a history.

use agui_protocol::{ContentPart, PartSource, message::MediaPart};
use serde_json::{Value, json};

use crate::{
    model::{
        event::Object,
        msg::{MediaKind, MediaSource},
    },
    names::UNKNOWN_MEDIA,
};

/// A content part; `metadata` stands beside the source.
pub(crate) fn media_part(
    kind: MediaKind,
    source: MediaSource,
    id: Option<String>,
    metadata: Option<Value>,
) -> ContentPart {
    let part = MediaPart { id, source: part_source(source), metadata };
    match kind {
        MediaKind::Image => ContentPart::Image(part),
        MediaKind::Audio => ContentPart::Audio(part),
        MediaKind::Video => ContentPart::Video(part),
        MediaKind::Document => ContentPart::Document(part),
    }
}

/// The metadata of a part that has a file name (TOOL-12), under the key that AG-UI's own client
/// uses.
pub(crate) fn named(name: &str) -> Value {
    json!({ "filename": name })
}

/// Content of the activity that shows media which no message can hold.
pub(crate) fn media_activity(source: MediaSource, name: Option<&str>) -> Object {
    let mut content = unsendable_media(source.media_type().map(str::to_owned), name);
    let (key, value) = match source {
        MediaSource::Base64 { data, .. } => ("data", data),
        MediaSource::Url { url, .. } => ("url", url),
    };
    content.insert(key.to_owned(), value.into());
    content
}

/// The same without the media, for those that no frame can hold.
pub(crate) fn unsendable_media(media_type: Option<String>, name: Option<&str>) -> Object {
    let media_type = media_type.filter(|text| !text.is_empty());
    let mut content = Object::new();
    let media_type = media_type.unwrap_or_else(|| UNKNOWN_MEDIA.to_owned());
    content.insert("mediaType".to_owned(), media_type.into());
    if let Some(name) = name {
        content.insert("name".to_owned(), name.into());
    }
    content
}

fn part_source(source: MediaSource) -> PartSource {
    match source {
        // The protocol wants a type beside inline data, so the one for "unknown" stands in.
        MediaSource::Base64 { media_type, data } if media_type.is_empty() => {
            PartSource::Data { value: data, mime_type: UNKNOWN_MEDIA.to_owned() }
        }
        MediaSource::Base64 { media_type, data } => {
            PartSource::Data { value: data, mime_type: media_type }
        }
        MediaSource::Url { media_type, url } => {
            PartSource::Url { value: url, mime_type: media_type }
        }
    }
}
