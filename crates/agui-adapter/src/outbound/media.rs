//! Base64 that comes in pieces.

use base64::{Engine, engine::general_purpose::STANDARD};

use crate::model::event::DataChunk;

/// The pieces of one medium: base64 that may have been encoded piece by piece, or a URL.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum MediaData {
    /// Base64, piece by piece.
    Pieces(Vec<String>),
    /// A URL.
    Url(String),
}

impl MediaData {
    /// Adds a piece; a URL replaces what was there.
    pub(super) fn add(&mut self, chunk: &DataChunk) {
        match (self, chunk) {
            (Self::Pieces(pieces), DataChunk::Base64(more)) => pieces.push(more.clone()),
            (whole, chunk) => *whole = Self::from(chunk.clone()),
        }
    }

    /// The medium in one piece.
    pub(super) fn into_whole(self) -> DataChunk {
        match self {
            Self::Pieces(pieces) => DataChunk::Base64(join(pieces)),
            Self::Url(url) => DataChunk::Url(url),
        }
    }
}

impl From<DataChunk> for MediaData {
    fn from(chunk: DataChunk) -> Self {
        match chunk {
            DataChunk::Base64(piece) => Self::Pieces(vec![piece]),
            DataChunk::Url(url) => Self::Url(url),
        }
    }
}

/// Pieces that are cuts of one text are concatenated; pieces that were encoded each by itself
/// (padding before the end) are decoded first, since padding inside would end the medium there.
fn join(pieces: Vec<String>) -> String {
    let cut = pieces
        .split_last()
        .is_none_or(|(_, before)| !before.iter().any(|piece| piece.ends_with('=')));
    if cut {
        return pieces.concat();
    }
    let decoded: Result<Vec<_>, _> = pieces.iter().map(|piece| STANDARD.decode(piece)).collect();
    decoded.map_or_else(|_| pieces.concat(), |bytes| STANDARD.encode(bytes.concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_become_one_valid_base64_text() {
        let join = |pieces: &[&str]| join(pieces.iter().map(|p| (*p).to_owned()).collect());
        assert_eq!(join(&["QUJ", "DRA=="]), "QUJDRA==");
        assert_eq!(join(&["QQ==", "QkM=", "RA=="]), "QUJDRA==");
        assert_eq!(join(&["QQ==", "?"]), "QQ==?");
        assert_eq!(join(&[]), "");
    }
}
