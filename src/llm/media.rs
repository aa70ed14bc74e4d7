//! Media as providers take them.

use agui_adapter::model::msg::{MediaKind, MediaSource};

/// A medium, with its bytes or the place where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Medium<'a> {
    /// Here.
    Data {
        /// Media type without parameters; a likely one when it is unknown.
        media_type: &'a str,
        /// Base64.
        data: &'a str,
    },
    /// Elsewhere.
    Url {
        /// Media type, if known.
        media_type: Option<&'a str>,
        /// The URL.
        url: &'a str,
    },
}

impl<'a> Medium<'a> {
    /// Of a block; a data URL counts as data.
    pub(super) fn of(kind: MediaKind, source: &'a MediaSource) -> Self {
        let media_type = source.media_type().map(bare);
        match source {
            MediaSource::Base64 { data, .. } => {
                Self::Data { media_type: media_type.unwrap_or(likely(kind)), data }
            }
            MediaSource::Url { url, .. } => match split_data_url(url) {
                Some((own, data)) => {
                    let own = Some(own).filter(|own| !own.is_empty()).or(media_type);
                    Self::Data { media_type: own.unwrap_or(likely(kind)), data }
                }
                None => Self::Url { media_type, url },
            },
        }
    }
}

/// A data URL.
pub(super) fn data_url(media_type: &str, data: &str) -> String {
    format!("data:{media_type};base64,{data}")
}

/// What a base64 data URL holds: media type without parameters, and data.
pub(super) fn split_data_url(url: &str) -> Option<(&str, &str)> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    Some((bare(head.strip_suffix(";base64")?), data))
}

/// What stands in the place of a medium that the provider does not take.
pub(super) fn stand_in(kind: MediaKind, source: &MediaSource, name: Option<&str>) -> String {
    let what = match kind {
        MediaKind::Image => "image",
        MediaKind::Audio => "audio",
        MediaKind::Video => "video",
        MediaKind::Document => "document",
    };
    let name = name.map(|name| format!(" {name}")).unwrap_or_default();
    match Medium::of(kind, source) {
        Medium::Url { url, .. } => format!("[{what}{name}: {url}]"),
        Medium::Data { media_type, .. } => format!("[{what}{name} ({media_type})]"),
    }
}

fn bare(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

fn likely(kind: MediaKind) -> &'static str {
    match kind {
        MediaKind::Image => "image/png",
        MediaKind::Audio => "audio/wav",
        MediaKind::Video => "video/mp4",
        MediaKind::Document => "application/pdf",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(url: &str) -> MediaSource {
        MediaSource::Url { media_type: None, url: url.to_owned() }
    }

    #[test]
    fn a_data_url_is_data() {
        let source = at("data:image/gif;charset=x;base64,R0lG");
        let medium = Medium::Data { media_type: "image/gif", data: "R0lG" };
        assert_eq!(Medium::of(MediaKind::Image, &source), medium);
        let source = at("data:,plain");
        let medium = Medium::Url { media_type: None, url: "data:,plain" };
        assert_eq!(Medium::of(MediaKind::Image, &source), medium);
    }

    #[test]
    fn an_unknown_type_is_guessed() {
        let source = MediaSource::Base64 { media_type: String::new(), data: "AA==".to_owned() };
        let medium = Medium::Data { media_type: "audio/wav", data: "AA==" };
        assert_eq!(Medium::of(MediaKind::Audio, &source), medium);
    }

    #[test]
    fn a_stand_in_says_what_it_stands_for() {
        let url = at("https://example.invalid/a.ogg");
        let text = stand_in(MediaKind::Audio, &url, Some("a.ogg"));
        assert_eq!(text, "[audio a.ogg: https://example.invalid/a.ogg]");
        let data = at("data:video/webm;base64,AA==");
        assert_eq!(stand_in(MediaKind::Video, &data, None), "[video (video/webm)]");
    }
}
