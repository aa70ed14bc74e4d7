//! Media as wires have them: inline or at a URL, with the type that they have in truth.

use agui_adapter::model::msg::{MediaKind, MediaSource};

/// Where the bytes of a medium are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Medium<'a> {
    /// Base64.
    Inline {
        /// Media type, if it is known.
        media_type: Option<&'a str>,
        /// The base64.
        data: &'a str,
    },
    /// At a URL.
    Url {
        /// Media type, if it is known.
        media_type: Option<&'a str>,
        /// The URL.
        url: &'a str,
    },
}

/// How the base64 of media begins that tell their type by themselves.
const MAGIC: &[(&str, &str)] = &[
    ("/9j/", "image/jpeg"),
    ("iVBORw0KGgo", "image/png"),
    ("R0lGOD", "image/gif"),
    ("JVBERi0", "application/pdf"),
];

impl<'a> Medium<'a> {
    /// Reads a source: a `data:` URL is inline, and a type is read off the first bytes where these
    /// tell; providers refuse a wrong one, and clients often send such.
    pub(super) fn of(source: &'a MediaSource) -> Self {
        let told = source.media_type();
        match source {
            MediaSource::Base64 { data, .. } => Self::inline(told, data),
            MediaSource::Url { url, .. } => match data_url(url) {
                Some((media_type, data)) => Self::inline(told.or(media_type), data),
                None => Self::Url { media_type: told.map(canonical), url },
            },
        }
    }

    fn inline(told: Option<&'a str>, data: &'a str) -> Self {
        Self::Inline { media_type: sniffed(data).or(told.map(canonical)), data }
    }

    /// The media type, if it is known.
    pub(super) fn media_type(self) -> Option<&'a str> {
        match self {
            Self::Inline { media_type, .. } | Self::Url { media_type, .. } => media_type,
        }
    }
}

/// What stands for a medium that a provider does not take.
pub(super) fn stand_in(kind: MediaKind, source: &MediaSource, name: Option<&str>) -> String {
    let kind = match kind {
        MediaKind::Image => "image",
        MediaKind::Audio => "audio",
        MediaKind::Video => "video",
        MediaKind::Document => "document",
    };
    let name = name.map(|name| format!(" {name}")).unwrap_or_default();
    match Medium::of(source) {
        Medium::Url { url, .. } => format!("[{kind}{name}: {url}]"),
        Medium::Inline { media_type: Some(media_type), .. } => {
            format!("[{kind}{name} ({media_type})]")
        }
        Medium::Inline { media_type: None, .. } => format!("[{kind}{name}]"),
    }
}

/// Type and base64 of a `data:` URL.
pub(super) fn data_url(url: &str) -> Option<(Option<&str>, &str)> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    let media_type = head.strip_suffix(";base64")?.split(';').next();
    Some((media_type.filter(|media_type| !media_type.is_empty()), data))
}

/// The name that providers know a type by, without parameters.
fn canonical(media_type: &str) -> &str {
    match media_type.split(';').next().unwrap_or_default().trim() {
        "image/jpg" => "image/jpeg",
        other => other,
    }
}

fn sniffed(data: &str) -> Option<&'static str> {
    // RIFF says nothing by itself: what it holds stands behind the length.
    if data.starts_with("UklGR") {
        return match data.get(12..16) {
            Some("RUJQ") => Some("image/webp"),
            Some("QVZF") => Some("audio/wav"),
            _ => None,
        };
    }
    MAGIC.iter().find(|(magic, _)| data.starts_with(magic)).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_tell_the_type() {
        for (data, expected) in [
            ("/9j/4AAQSkZJRg==", Some("image/jpeg")),
            ("iVBORw0KGgoAAAANSUhEUg==", Some("image/png")),
            ("R0lGODlhAQABAA==", Some("image/gif")),
            ("UklGRiQAAABXRUJQVlA4", Some("image/webp")),
            ("UklGRiQAAABXQVZFZm10", Some("audio/wav")),
            ("UklGRiQAAABBVkkgTElT", None),
            ("JVBERi0xLjQ=", Some("application/pdf")),
            ("YSxiCg==", None),
            ("UklGR", None),
            ("", None),
        ] {
            assert_eq!(sniffed(data), expected, "{data}");
        }
    }

    #[test]
    fn a_stand_in_says_what_it_stands_for() {
        let url = "https://example.invalid/a.ogg".to_owned();
        let source = MediaSource::Url { media_type: None, url };
        let text = stand_in(MediaKind::Audio, &source, Some("a.ogg"));
        assert_eq!(text, "[audio a.ogg: https://example.invalid/a.ogg]");
        let url = "data:video/webm;base64,AA==".to_owned();
        let source = MediaSource::Url { media_type: None, url };
        assert_eq!(stand_in(MediaKind::Video, &source, None), "[video (video/webm)]");
    }
}
