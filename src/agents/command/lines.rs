//! Lines of bounded length, read when somebody asks for them and not before.

use std::io;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes that are made room for at once.
const CHUNK: usize = 16 << 10;

/// A line was longer than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// What a source gave.
#[derive(Debug)]
pub(super) enum Read {
    /// So many more bytes: lines may be complete now.
    More(usize),
    /// The end.
    End,
}

/// Cuts what it reads into lines.
#[derive(Debug)]
pub(super) struct Lines<R> {
    source: R,
    buffer: BytesMut,
    /// The buffer's beginning that holds no end of a line.
    searched: usize,
    limit: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Lines of at most `limit` bytes, their ends not counted.
    pub(super) fn new(source: R, limit: usize) -> Self {
        Self { source, buffer: BytesMut::new(), searched: 0, limit }
    }

    /// The next line that was read completely, without its end.
    pub(super) fn complete(&mut self) -> Result<Option<BytesMut>, TooLong> {
        let new = self.buffer.iter().skip(self.searched);
        let Some(at) = new.copied().position(|byte| byte == b'\n') else {
            self.searched = self.buffer.len();
            return if self.searched > self.limit { Err(TooLong) } else { Ok(None) };
        };
        let end = self.searched + at;
        self.searched = 0;
        let mut line = self.buffer.split_to(end + 1);
        line.truncate(end);
        if line.len() > self.limit { Err(TooLong) } else { Ok(Some(line)) }
    }

    /// What stands behind the last end of a line.
    pub(super) fn rest(&mut self) -> BytesMut {
        self.searched = 0;
        self.buffer.split()
    }

    /// Reads once. Loses nothing when it is dropped.
    pub(super) async fn read(&mut self) -> io::Result<Read> {
        self.buffer.reserve(CHUNK);
        match self.source.read_buf(&mut self.buffer).await? {
            0 => Ok(Read::End),
            count => Ok(Read::More(count)),
        }
    }

    /// The source, to be looked at.
    pub(super) fn source(&self) -> &R {
        &self.source
    }

    /// The source; what was read of it and not asked for is lost.
    pub(super) fn into_source(self) -> R {
        self.source
    }
}

#[cfg(test)]
mod tests {
    use tokio_test_source::source;

    use super::*;

    /// A source that gives these pieces, one a read.
    mod tokio_test_source {
        use std::{
            collections::VecDeque,
            io,
            pin::Pin,
            task::{Context, Poll},
        };

        use tokio::io::{AsyncRead, ReadBuf};

        pub(super) struct Pieces(VecDeque<&'static [u8]>);

        pub(super) fn source(pieces: &[&'static str]) -> Pieces {
            Pieces(pieces.iter().map(|piece| piece.as_bytes()).collect())
        }

        impl AsyncRead for Pieces {
            fn poll_read(
                mut self: Pin<&mut Self>,
                _: &mut Context<'_>,
                into: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                into.put_slice(self.0.pop_front().unwrap_or_default());
                Poll::Ready(Ok(()))
            }
        }
    }

    /// Every line, then what is left, then whether a line was too long.
    async fn cut(pieces: &[&'static str], limit: usize) -> (Vec<String>, String, bool) {
        let text = |bytes: BytesMut| String::from_utf8(bytes.to_vec()).unwrap();
        let mut lines = Lines::new(source(pieces), limit);
        let mut found = Vec::new();
        loop {
            match lines.complete() {
                Ok(Some(line)) => found.push(text(line)),
                Err(TooLong) => return (found, text(lines.rest()), true),
                Ok(None) => match lines.read().await.unwrap() {
                    Read::More(_) => {}
                    Read::End => return (found, text(lines.rest()), false),
                },
            }
        }
    }

    #[tokio::test]
    async fn lines_are_put_together_over_reads_and_the_last_may_lack_its_end() {
        let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
        assert_eq!(
            cut(&["a\n", "b", "c\n\nd", "\ne"], 10).await,
            (lines(&["a", "bc", "", "d"]), "e".to_owned(), false)
        );
        assert_eq!(cut(&[], 10).await, (lines(&[]), String::new(), false));
    }

    #[tokio::test]
    async fn a_line_is_too_long_from_the_first_byte_beyond_the_limit() {
        let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
        assert_eq!(cut(&["abc\n", "abcd\n"], 3).await, (lines(&["abc"]), String::new(), true));
        assert_eq!(cut(&["abc", "d"], 3).await, (lines(&[]), "abcd".to_owned(), true));
        assert_eq!(cut(&["abc"], 3).await, (lines(&[]), "abc".to_owned(), false));
    }
}
