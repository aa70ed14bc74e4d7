//! The bytes of an answer, with a limit on silence.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::Stream;
use tokio::time::{Instant, Sleep};

/// The longest event. Pictures come in one piece.
const MAX_EVENT: usize = 32 * 1024 * 1024;

/// The longest answer. Each word has some hundred bytes of frame around it.
const MAX_ANSWER: usize = 256 * 1024 * 1024;

/// What an answer's bytes come from.
pub(super) type Chunks<E> = Pin<Box<dyn Stream<Item = Result<Bytes, E>> + Send>>;

/// Why reading ended early.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError<E: std::error::Error + 'static> {
    /// Nothing came for too long.
    #[error("nothing came for {} ms", _0.as_millis())]
    Silent(Duration),
    /// An event without an end.
    #[error("an event is longer than {MAX_EVENT} bytes")]
    TooLong,
    /// An answer without an end.
    #[error("the answer is longer than {MAX_ANSWER} bytes")]
    Endless,
    /// The connection broke.
    #[error("the answer broke off")]
    Cut(#[source] E),
}

/// How much was read since it was last set to zero.
#[derive(Clone, Debug, Default)]
pub(super) struct Unread(Arc<AtomicUsize>);

impl Unread {
    /// An event is complete.
    pub(super) fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    fn add(&self, length: usize) -> bool {
        self.0.fetch_add(length, Ordering::Relaxed).saturating_add(length) <= MAX_EVENT
    }
}

/// Reads chunks; each may take as long as the limit says. The clock is looked at only when there
/// is nothing to read.
pub(super) struct Source<E> {
    chunks: Chunks<E>,
    /// Goes first.
    pushed_back: Option<Bytes>,
    limit: Option<Duration>,
    clock: Option<Pin<Box<Sleep>>>,
    waiting: bool,
    unread: Unread,
    /// Length of all that was read.
    read: usize,
    ended: bool,
}

impl<E> Source<E> {
    pub(super) fn new(chunks: Chunks<E>, limit: Option<Duration>) -> Self {
        Self {
            chunks,
            pushed_back: None,
            limit,
            clock: None,
            waiting: false,
            unread: Unread::default(),
            read: 0,
            ended: false,
        }
    }

    /// Gives bytes back, to be read again.
    pub(super) fn push_back(&mut self, bytes: Bytes) {
        self.pushed_back = Some(bytes);
    }

    /// What counts the length of events.
    pub(super) fn unread(&self) -> Unread {
        self.unread.clone()
    }

    /// Whether the silence is over the limit; registers to be woken when it is.
    fn is_silent(&mut self, cx: &mut Context<'_>) -> Option<Duration> {
        let limit = self.limit?;
        if !self.waiting {
            self.waiting = true;
            let until = Instant::now() + limit;
            match &mut self.clock {
                Some(clock) => clock.as_mut().reset(until),
                None => self.clock = Some(Box::pin(tokio::time::sleep_until(until))),
            }
        }
        let clock = self.clock.as_mut()?;
        clock.as_mut().poll(cx).is_ready().then_some(limit)
    }
}

impl<E: std::error::Error + 'static> Stream for Source<E> {
    type Item = Result<Bytes, ReadError<E>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(bytes) = self.pushed_back.take() {
            return Poll::Ready(Some(Ok(bytes)));
        }
        if self.ended {
            return Poll::Ready(None);
        }
        match self.chunks.as_mut().poll_next(cx) {
            Poll::Ready(Some(Ok(bytes))) => {
                self.waiting = false;
                self.read = self.read.saturating_add(bytes.len());
                Poll::Ready(Some(if !self.unread.add(bytes.len()) {
                    Err(ReadError::TooLong)
                } else if self.read > MAX_ANSWER {
                    Err(ReadError::Endless)
                } else {
                    Ok(bytes)
                }))
            }
            Poll::Ready(Some(Err(error))) => {
                self.ended = true;
                Poll::Ready(Some(Err(ReadError::Cut(error))))
            }
            Poll::Ready(None) => {
                self.ended = true;
                // Ends the last event, which some forget; behind one that is complete it is none.
                Poll::Ready(Some(Ok(Bytes::from_static(b"\n\n"))))
            }
            Poll::Pending => match self.is_silent(cx) {
                Some(limit) => {
                    self.ended = true;
                    Poll::Ready(Some(Err(ReadError::Silent(limit))))
                }
                None => Poll::Pending,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, io};

    use futures_util::{StreamExt, stream};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(120);

    /// Sends a piece after each pause, then says nothing.
    fn slow(pauses: &'static [u64]) -> Chunks<Infallible> {
        let pieces = stream::iter(pauses).then(|pause| async {
            tokio::time::sleep(Duration::from_secs(*pause)).await;
            Ok(Bytes::from_static(b": still here\n"))
        });
        Box::pin(pieces.chain(stream::pending()))
    }

    #[tokio::test(start_paused = true)]
    async fn silence_ends_the_answer_and_every_byte_breaks_it() {
        let began = Instant::now();
        let mut source = Source::new(slow(&[119, 119, 119]), Some(LIMIT));
        for _ in 0..3 {
            assert_eq!(source.next().await.unwrap().unwrap(), ": still here\n");
        }
        let error = source.next().await.unwrap().unwrap_err();
        assert!(matches!(error, ReadError::Silent(LIMIT)), "{error}");
        assert_eq!(began.elapsed().as_secs(), 3 * 119 + 120);
        assert!(source.next().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_limit_silence_may_last() {
        let mut source = Source::new(slow(&[86_400]), None);
        assert_eq!(source.next().await.unwrap().unwrap(), ": still here\n");
    }

    #[tokio::test]
    async fn an_end_ends_the_last_event_and_a_cut_does_not() {
        let whole = stream::iter([Ok::<_, io::Error>(Bytes::from_static(b"a"))]);
        let mut source = Source::new(Box::pin(whole), None);
        source.push_back(Bytes::from_static(b"first"));
        let mut read = Vec::new();
        while let Some(bytes) = source.next().await {
            read.push(bytes.unwrap());
        }
        assert_eq!(read, ["first", "a", "\n\n"]);
        let cut = stream::iter([Err(io::Error::other("reset"))]);
        let mut source = Source::new(Box::pin(cut), None);
        let error = source.next().await.unwrap().unwrap_err();
        assert!(matches!(error, ReadError::Cut(_)), "{error}");
        assert!(source.next().await.is_none());
    }

    #[tokio::test]
    async fn an_event_without_an_end_is_given_up() {
        let piece = Bytes::from(vec![b'x'; MAX_EVENT / 2]);
        let endless = stream::repeat(piece).map(Ok::<_, Infallible>);
        let mut source = Source::new(Box::pin(endless), None);
        let unread = source.unread();
        for _ in 0..4 {
            assert!(source.next().await.unwrap().is_ok());
            unread.reset();
        }
        assert!(source.next().await.unwrap().is_ok());
        assert!(source.next().await.unwrap().is_ok());
        let error = source.next().await.unwrap().unwrap_err();
        assert!(matches!(error, ReadError::TooLong), "{error}");
    }

    #[tokio::test]
    async fn an_answer_without_an_end_is_given_up() {
        let piece = Bytes::from(vec![b'x'; MAX_EVENT]);
        let endless = stream::repeat(piece).map(Ok::<_, Infallible>);
        let mut source = Source::new(Box::pin(endless), None);
        let unread = source.unread();
        for _ in 0..MAX_ANSWER / MAX_EVENT {
            assert!(source.next().await.unwrap().is_ok());
            unread.reset();
        }
        let error = source.next().await.unwrap().unwrap_err();
        assert!(matches!(error, ReadError::Endless), "{error}");
    }
}
