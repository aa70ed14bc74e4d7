//! A run's events as the body of a response: SSE frames and keep-alive comments.
//!
//! All batches that are ready leave in one chunk. The body ends right behind the terminal event,
//! which is the last of its batch.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use agui_protocol::{Event, EventType, sse};
use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame};
use tokio::{
    sync::mpsc,
    time::{Instant, Sleep, sleep},
};

/// A chunk is sent at this length although more events are ready.
const MAX_CHUNK: usize = 256 << 10;

/// The body of an answer; dropping it tells the run that the client is gone. `heartbeat` = the
/// silence after which a comment is sent.
pub(super) fn body(
    batches: mpsc::Receiver<Vec<Event>>,
    heartbeat: Option<Duration>,
) -> axum::body::Body {
    axum::body::Body::new(SseBody::new(batches, heartbeat))
}

struct SseBody {
    batches: mpsc::Receiver<Vec<Event>>,
    buffer: BytesMut,
    heartbeat: Option<Heartbeat>,
    ended: bool,
}

impl SseBody {
    fn new(batches: mpsc::Receiver<Vec<Event>>, heartbeat: Option<Duration>) -> Self {
        let heartbeat = heartbeat.map(Heartbeat::new);
        Self { batches, buffer: BytesMut::new(), heartbeat, ended: false }
    }

    /// The terminal event ends the body, not the channel's end: an agent that blocks its thread
    /// keeps the channel open for longer than its run lasts (SSE-13).
    fn encode(&mut self, batch: &[Event]) {
        for event in batch {
            if let Err(error) = sse::write_frame(event, &mut self.buffer) {
                tracing::error!(%error, event = event.event_type().as_str(), "event not sent");
            }
        }
        let last = batch.last().map(Event::event_type);
        self.ended = matches!(last, Some(EventType::RunFinished | EventType::RunError));
    }

    fn encode_ready(&mut self, first: &[Event]) {
        self.encode(first);
        while !self.ended && self.buffer.len() < MAX_CHUNK {
            let Ok(batch) = self.batches.try_recv() else { break };
            self.encode(&batch);
        }
    }
}

impl Body for SseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        match self.batches.poll_recv(cx) {
            Poll::Ready(Some(batch)) => {
                self.encode_ready(&batch);
                if let Some(heartbeat) = &mut self.heartbeat {
                    heartbeat.last_sent = Instant::now();
                }
                let chunk = self.buffer.split().freeze();
                Poll::Ready(Some(Ok(Frame::data(chunk))))
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => {
                let Some(heartbeat) = &mut self.heartbeat else { return Poll::Pending };
                ready!(heartbeat.poll_due(cx));
                Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(sse::KEEP_ALIVE)))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }
}

/// Finds silence. The timer is not moved by every chunk: when it fires it looks at the time of
/// the last one, so that a busy stream costs no timer work.
struct Heartbeat {
    interval: Duration,
    last_sent: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Heartbeat {
    fn new(interval: Duration) -> Self {
        Self { interval, last_sent: Instant::now(), timer: Box::pin(sleep(interval)) }
    }

    /// Ready once per interval of silence.
    fn poll_due(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.timer.as_mut().poll(cx));
            let now = Instant::now();
            let due = self.last_sent + self.interval;
            if due <= now {
                self.last_sent = now;
                self.timer.as_mut().reset(now + self.interval);
                return Poll::Ready(());
            }
            self.timer.as_mut().reset(due);
        }
    }
}
