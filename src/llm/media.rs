//! Media as wires have them: inline or at a URL, with the type that they have in truth.

use agui_adapter::model::msg::MediaSource;

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
    /// Reads a source: a `data:` URL is inline, and a type that nobody told is read off the first
    /// bytes.
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
        Self::Inline { media_type: told.map(canonical).or_else(|| sniffed(data)), data }
    }

    /// The media type, if it is known.
    pub(super) fn media_type(self) -> Option<&'a str> {
        match self {
            Self::Inline { media_type, .. } | Self::Url { media_type, .. } => media_type,
        }
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
        return (data.get(12..16) == Some("RUJQ")).then_some("image/webp");
    }
    MAGIC.iter().find(|(magic, _)| data.starts_with(magic)).map(|(_, name)| *name)
}
