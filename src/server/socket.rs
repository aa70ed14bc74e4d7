//! The time for which a client may take nothing of what is written to it. Knows no HTTP.

use std::{
    future::Future,
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use socket2::SockRef;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, Sleep, sleep},
};

/// A connection's two directions of bytes.
pub(super) trait Transport: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Writes what there is room for at this moment, though it be little.
    fn write_now(&self, bytes: &[u8]) -> io::Result<usize>;

    /// From here on, closing throws away what was not sent yet.
    fn discard(&self);
}

impl Transport for TcpStream {
    /// Asks the system itself: it says that there is room only when a third of its buffer is free,
    /// which may be a megabyte, and so minutes of a slow reader.
    fn write_now(&self, bytes: &[u8]) -> io::Result<usize> {
        SockRef::from(self).send(bytes)
    }

    /// Else the system would keep it, for minutes, for a client that does not read.
    fn discard(&self) {
        if let Err(error) = self.set_zero_linger() {
            tracing::debug!(error = %error, "SO_LINGER cannot be set");
        }
    }
}

/// A transport that fails once it has taken nothing for too long, although there is something to
/// write. A connection that never waits costs no timer.
pub(super) struct Impatient<T> {
    io: T,
    limit: Option<Duration>,
    /// Made when a write has to wait for the first time.
    timer: Option<Pin<Box<Sleep>>>,
    /// Whether a write waits, and the timer with it.
    waiting: bool,
}

impl<T: Transport> Impatient<T> {
    /// `limit` = the longest wait; `None` = none.
    pub(super) fn new(io: T, limit: Option<Duration>) -> Self {
        Self { io, limit, timer: None, waiting: false }
    }

    /// What a write of `bytes` that gave `polled` gives in the end.
    fn written(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        polled: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if !self.is_late(cx, &polled) {
            return polled;
        }
        match self.io.write_now(bytes) {
            Ok(0) => Poll::Ready(Err(self.give_up())),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Poll::Ready(Err(self.give_up()))
            }
            written => {
                self.waiting = false;
                Poll::Ready(written)
            }
        }
    }

    /// The same for what is no write of bytes.
    fn done(&mut self, cx: &mut Context<'_>, polled: Poll<io::Result<()>>) -> Poll<io::Result<()>> {
        if self.is_late(cx, &polled) { Poll::Ready(Err(self.give_up())) } else { polled }
    }

    /// Whether what gave `polled` has waited for as long as it may.
    fn is_late<R>(&mut self, cx: &mut Context<'_>, polled: &Poll<R>) -> bool {
        let (true, Some(limit)) = (polled.is_pending(), self.limit) else {
            self.waiting = false;
            return false;
        };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(limit)));
        if !self.waiting {
            self.waiting = true;
            timer.as_mut().reset(Instant::now() + limit);
        }
        timer.as_mut().poll(cx).is_ready()
    }

    fn give_up(&self) -> io::Error {
        tracing::info!("a client took nothing for as long as write-timeout allows and is cut off");
        self.io.discard();
        io::ErrorKind::TimedOut.into()
    }
}

impl<T: Transport> AsyncRead for Impatient<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl<T: Transport> AsyncWrite for Impatient<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.written(cx, bytes, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write_vectored(cx, pieces);
        let first = pieces.iter().find(|piece| !piece.is_empty());
        self.written(cx, first.map(|piece| &**piece).unwrap_or_default(), polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.io).poll_flush(cx);
        self.done(cx, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.io).poll_shutdown(cx);
        self.done(cx, polled)
    }
}

#[cfg(test)]
impl Transport for tokio::io::DuplexStream {
    fn write_now(&self, _bytes: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn discard(&self) {}
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    };

    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);
    const MOMENT: Duration = Duration::from_millis(1);

    #[tokio::test(start_paused = true)]
    async fn who_takes_nothing_is_given_up_after_the_limit() {
        let (_client, server) = duplex(4);
        let mut server = Impatient::new(server, Some(LIMIT));
        let began = Instant::now();
        assert_eq!(server.write(b"123456").await.unwrap(), 4);
        let failed = server.write(b"56").await.unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::TimedOut);
        assert_eq!(began.elapsed(), LIMIT);
    }

    #[tokio::test(start_paused = true)]
    async fn every_byte_that_is_taken_begins_the_time_anew() {
        let (mut client, server) = duplex(1);
        let mut server = Impatient::new(server, Some(LIMIT));
        let began = Instant::now();
        let reading = async {
            let mut taken = Vec::new();
            for _ in 0..5 {
                sleep(LIMIT - MOMENT).await;
                taken.push(client.read_u8().await.unwrap());
            }
            taken
        };
        let (taken, written) = tokio::join!(reading, server.write_all(b"12345"));
        written.unwrap();
        assert_eq!(taken, b"12345");
        assert_eq!(began.elapsed(), (LIMIT - MOMENT) * 5);
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_no_wait_and_an_old_wait_is_forgotten() {
        let (mut client, server) = duplex(1);
        let mut server = Impatient::new(server, Some(LIMIT));
        let reading = async {
            sleep(LIMIT - MOMENT).await;
            client.read_u8().await.unwrap();
            client.read_u8().await.unwrap();
        };
        tokio::join!(reading, async { server.write_all(b"12").await.unwrap() });
        // Nothing to write for long, then a wait of its own.
        sleep(LIMIT * 3).await;
        server.write_all(b"3").await.unwrap();
        let began = Instant::now();
        let failed = server.write(b"4").await.unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::TimedOut);
        assert_eq!(began.elapsed(), LIMIT);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_limit_a_write_waits_for_ever() {
        let (_client, server) = duplex(1);
        let mut server = Impatient::new(server, None);
        server.write_all(b"1").await.unwrap();
        let waited = tokio::time::timeout(LIMIT * 1000, server.write(b"2")).await;
        assert!(waited.is_err());
    }

    /// Takes bytes, one at a time, only when it is asked at once; never says that it has room.
    struct Shy {
        room: AtomicUsize,
        discards: Arc<AtomicBool>,
    }

    impl Transport for Shy {
        fn write_now(&self, _bytes: &[u8]) -> io::Result<usize> {
            let room = self.room.load(Ordering::Relaxed);
            self.room.store(room.saturating_sub(1), Ordering::Relaxed);
            if room > 0 { Ok(1) } else { Err(io::ErrorKind::WouldBlock.into()) }
        }

        fn discard(&self) {
            self.discards.store(true, Ordering::Relaxed);
        }
    }

    impl AsyncRead for Shy {
        fn poll_read(
            self: Pin<&mut Self>,
            _cx: &mut Context<'_>,
            _buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    impl AsyncWrite for Shy {
        fn poll_write(
            self: Pin<&mut Self>,
            _cx: &mut Context<'_>,
            _bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Poll::Pending
        }

        fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn at_the_limit_the_system_is_asked_once_more() {
        let discards = Arc::new(AtomicBool::new(false));
        let shy = Shy { room: AtomicUsize::new(2), discards: Arc::clone(&discards) };
        let mut server = Impatient::new(shy, Some(LIMIT));
        let began = Instant::now();
        assert_eq!(server.write(b"12").await.unwrap(), 1);
        let pieces = [IoSlice::new(b""), IoSlice::new(b"2")];
        assert_eq!(server.write_vectored(&pieces).await.unwrap(), 1);
        assert_eq!(began.elapsed(), LIMIT * 2);
        assert!(!discards.load(Ordering::Relaxed));
        let failed = server.write(b"3").await.unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::TimedOut);
        assert_eq!(began.elapsed(), LIMIT * 3);
        assert!(discards.load(Ordering::Relaxed));
    }
}
