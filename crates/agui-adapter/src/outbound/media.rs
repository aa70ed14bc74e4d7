//! Base64 that comes in pieces.

use base64::{Engine, engine::general_purpose::STANDARD};

use crate::model::event::DataChunk;

/// The pieces of one medium: base64 that may have been encoded piece by piece, or a URL.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum MediaData {
    /// Base64.
    Base64(Pieces),
    /// A URL.
    Url(String),
    /// More than may be kept, and of a medium a part is worth nothing: how long it was, in bytes.
    TooLong(usize),
}

impl MediaData {
    /// The first piece; of more than `room` bytes only the length is kept.
    pub(super) fn new(chunk: &DataChunk, room: usize) -> Self {
        match chunk {
            DataChunk::Url(url) if url.len() <= room => Self::Url(url.clone()),
            DataChunk::Url(url) => Self::TooLong(url.len()),
            DataChunk::Base64(piece) => {
                let mut whole = Self::Base64(Pieces::default());
                whole.more(piece, room);
                whole
            }
        }
    }

    /// Adds a piece; a URL replaces what was there. `room` = how many more bytes may be kept.
    pub(super) fn add(&mut self, chunk: &DataChunk, room: usize) {
        match (&self, chunk) {
            (Self::Base64(_) | Self::TooLong(_), DataChunk::Base64(piece)) => {
                self.more(piece, room);
            }
            _ => *self = Self::new(chunk, room + self.kept()),
        }
    }

    fn more(&mut self, piece: &str, room: usize) {
        match self {
            Self::Base64(pieces) if piece.len() + PLACE <= room => pieces.push(piece),
            whole => *whole = Self::TooLong(whole.original() + piece.len()),
        }
    }

    /// About how many bytes are kept.
    pub(super) fn kept(&self) -> usize {
        match self {
            Self::Base64(pieces) => pieces.text.len() + pieces.padded.len() * PLACE,
            Self::Url(url) => url.len(),
            Self::TooLong(_) => 0,
        }
    }

    /// How many bytes came.
    pub(super) fn original(&self) -> usize {
        match self {
            Self::Base64(pieces) => pieces.text.len(),
            Self::Url(url) => url.len(),
            Self::TooLong(bytes) => *bytes,
        }
    }

    /// The medium in one piece; `Err` = it was too long, by its length.
    pub(super) fn into_whole(self) -> Result<DataChunk, usize> {
        match self {
            Self::Base64(pieces) => Ok(DataChunk::Base64(pieces.join())),
            Self::Url(url) => Ok(DataChunk::Url(url)),
            Self::TooLong(bytes) => Err(bytes),
        }
    }
}

/// What the place of a padded piece takes.
const PLACE: usize = size_of::<usize>();

/// Pieces of base64, one behind the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Pieces {
    text: String,
    /// Where pieces end that end with padding.
    padded: Vec<usize>,
    /// A piece is no base64 by itself.
    cut: bool,
}

impl Pieces {
    fn push(&mut self, piece: &str) {
        self.text.push_str(piece);
        self.cut |= !piece.len().is_multiple_of(4);
        if piece.ends_with('=') {
            self.padded.push(self.text.len());
        }
    }

    /// Pieces that are cuts of one text are concatenated; pieces that were encoded each by itself
    /// (padding before the end) are decoded first, since padding inside would end the medium
    /// there.
    fn join(self) -> String {
        let inside = self.padded.first().is_some_and(|at| *at < self.text.len());
        if self.cut || !inside {
            return self.text;
        }
        let mut bytes = Vec::with_capacity(self.text.len() / 4 * 3);
        let ends = self.padded.iter().copied().chain([self.text.len()]);
        let mut from = 0;
        for end in ends {
            if STANDARD.decode_vec(&self.text.as_bytes()[from..end], &mut bytes).is_err() {
                return self.text;
            }
            from = end;
        }
        STANDARD.encode(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathered(pieces: &[&str], room: usize) -> MediaData {
        let mut whole = MediaData::Base64(Pieces::default());
        for piece in pieces {
            let left = room.saturating_sub(whole.kept());
            whole.add(&DataChunk::Base64((*piece).to_owned()), left);
        }
        whole
    }

    #[test]
    fn pieces_become_one_valid_base64_text() {
        let join = |pieces: &[&str]| match gathered(pieces, 1000).into_whole() {
            Ok(DataChunk::Base64(text)) => text,
            other => panic!("{other:?}"),
        };
        assert_eq!(join(&["QUJ", "DRA=="]), "QUJDRA==");
        assert_eq!(join(&["QQ==", "QkM=", "RA=="]), "QUJDRA==");
        assert_eq!(join(&["QUJD", "QQ==", "QUJD"]), "QUJDQUFCQw==");
        assert_eq!(join(&["QQ==", "?"]), "QQ==?");
        assert_eq!(join(&["QQ==", "????"]), "QQ==????");
        assert_eq!(join(&["QQ==QQ==", "QQ=="]), "QQ==QQ==QQ==");
        assert_eq!(join(&[]), "");
    }

    #[test]
    fn of_a_medium_that_is_too_long_only_the_length_is_kept() {
        let mut whole = gathered(&["QUJD", "QUJD", "QUJD", "QUJD"], 16);
        assert_eq!((whole.kept(), whole.original()), (0, 16));
        assert_eq!(whole.clone().into_whole(), Err(16));
        whole.add(&DataChunk::Url("http://a".to_owned()), 8);
        assert_eq!(whole.into_whole(), Ok(DataChunk::Url("http://a".to_owned())));
    }
}
