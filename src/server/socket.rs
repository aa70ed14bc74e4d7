//! The sockets of connections: how they are set, and the time that a client may take nothing.
//! Knows no HTTP.

use std::{
    future::Future,
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, Sleep, sleep},
};

/// A connection's two directions of bytes.
pub(super) trait Transport: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// From here on, closing throws away what was not sent yet.
    fn discard(&self);
}

impl Transport for TcpStream {
    /// Else the kernel would keep it, for minutes, for a client that does not read.
    fn discard(&self) {
        if let Err(error) = self.set_zero_linger() {
            tracing::debug!(error = %error, "SO_LINGER cannot be set");
        }
    }
}

/// Unsent bytes at which a socket takes no more. The kernel's own limit is megabytes, of which it
/// wants a third to be free before it says that there is room: a slow reader would seem to take
/// nothing for minutes.
#[cfg(target_os = "linux")]
const MAX_UNSENT: u32 = 128 << 10;

/// Sets up the socket of a new connection.
pub(super) fn tune(stream: &TcpStream) {
    // A delta is small and must not wait for the acknowledgement of the one before.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(error = %error, "TCP_NODELAY cannot be set");
    }
    #[cfg(target_os = "linux")]
    if let Err(error) = socket2::SockRef::from(stream).set_tcp_notsent_lowat(MAX_UNSENT) {
        tracing::debug!(error = %error, "TCP_NOTSENT_LOWAT cannot be set");
    }
}

/// A transport that fails once it has taken nothing for too long, although there is something to
/// write. A busy or silent connection costs no timer.
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

    /// What a write that gave `polled` gives in the end.
    fn watch<R>(
        &mut self,
        cx: &mut Context<'_>,
        polled: Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        let (true, Some(limit)) = (polled.is_pending(), self.limit) else {
            self.waiting = false;
            return polled;
        };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(limit)));
        if !self.waiting {
            self.waiting = true;
            timer.as_mut().reset(Instant::now() + limit);
        }
        if timer.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        tracing::info!("a client took nothing for write-timeout and is cut off");
        self.io.discard();
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
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
        self.watch(cx, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write_vectored(cx, pieces);
        self.watch(cx, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.io).poll_flush(cx);
        self.watch(cx, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.io).poll_shutdown(cx);
        self.watch(cx, polled)
    }
}

#[cfg(test)]
impl Transport for tokio::io::DuplexStream {
    fn discard(&self) {}
}

#[cfg(test)]
mod tests {
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
}
