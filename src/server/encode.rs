//! A run's events as the body of a response: SSE frames and keep-alive comments.
//!
//! All batches that are ready leave in one chunk, and with a window those that come soon. The body
//! ends right behind the terminal event, which is the last of its batch.

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

/// When chunks leave.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    /// The silence after which a comment is sent; `None` = never.
    pub(super) heartbeat: Option<Duration>,
    /// How long the events of a chunk are gathered; `None` = not at all.
    pub(super) window: Option<Duration>,
}

/// The body of an answer; dropping it tells the run that the client is gone.
pub(super) fn body(batches: mpsc::Receiver<Vec<Event>>, pace: Pace) -> axum::body::Body {
    axum::body::Body::new(SseBody::new(batches, pace))
}

struct SseBody {
    batches: mpsc::Receiver<Vec<Event>>,
    buffer: BytesMut,
    heartbeat: Option<Heartbeat>,
    window: Option<Window>,
    ended: bool,
}

impl SseBody {
    fn new(batches: mpsc::Receiver<Vec<Event>>, pace: Pace) -> Self {
        let heartbeat = pace.heartbeat.map(Heartbeat::new);
        let window = pace.window.map(Window::new);
        Self { batches, buffer: BytesMut::new(), heartbeat, window, ended: false }
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

    /// Whether the chunk may wait for more events.
    fn gathers(&mut self) -> bool {
        let Some(window) = &mut self.window else { return false };
        window.open();
        !self.ended && self.buffer.len() < MAX_CHUNK
    }

    /// What was gathered; `None` = nothing.
    fn chunk(&mut self) -> Option<Result<Frame<Bytes>, Infallible>> {
        if self.buffer.is_empty() {
            return None;
        }
        if let Some(window) = &mut self.window {
            window.opened = false;
        }
        if let Some(heartbeat) = &mut self.heartbeat {
            heartbeat.last_sent = Instant::now();
        }
        Some(Ok(Frame::data(self.buffer.split().freeze())))
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
        while let Poll::Ready(batch) = self.batches.poll_recv(cx) {
            let Some(batch) = batch else { return Poll::Ready(self.chunk()) };
            self.encode_ready(&batch);
            // A batch of which this client is shown nothing is no end.
            if self.buffer.is_empty() || self.gathers() {
                continue;
            }
            return Poll::Ready(self.chunk());
        }
        if let Some(window) = self.window.as_mut().filter(|window| window.opened) {
            ready!(window.timer.as_mut().poll(cx));
            return Poll::Ready(self.chunk());
        }
        let Some(heartbeat) = &mut self.heartbeat else { return Poll::Pending };
        ready!(heartbeat.poll_due(cx));
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(sse::KEEP_ALIVE)))))
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

/// The time in which the events of a chunk are gathered, from the first one on.
struct Window {
    length: Duration,
    timer: Pin<Box<Sleep>>,
    /// Whether the chunk has begun.
    opened: bool,
}

impl Window {
    fn new(length: Duration) -> Self {
        Self { length, timer: Box::pin(sleep(length)), opened: false }
    }

    fn open(&mut self) {
        if !self.opened {
            self.opened = true;
            self.timer.as_mut().reset(Instant::now() + self.length);
        }
    }
}

#[cfg(test)]
mod tests {
    use agui_protocol::{Body as Said, MessageId};

    use super::*;

    const WINDOW: Duration = Duration::from_millis(20);

    fn says(delta: &str) -> Event {
        let (message_id, subagent_run_id) = (MessageId::from("m"), None);
        Event::new(Said::TextMessageContent {
            message_id,
            delta: delta.to_owned(),
            subagent_run_id,
        })
    }

    fn failed() -> Event {
        Event::new(Said::RunError { message: "no".to_owned(), code: None, usage: Vec::new() })
    }

    fn frames(events: &[Event]) -> String {
        let mut bytes = BytesMut::new();
        for event in events {
            sse::write_frame(event, &mut bytes).unwrap();
        }
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    /// The chunks of a body, each with the milliseconds after which it left. The events are sent
    /// at the given milliseconds; the channel stays open behind them for `open` more.
    async fn chunks(pace: Pace, events: &[(u64, Event)], open: u64) -> Vec<(u128, String)> {
        let (sender, batches) = mpsc::channel(100);
        let mut body = SseBody::new(batches, pace);
        let began = Instant::now();
        let sending = async move {
            for (ms, event) in events {
                tokio::time::sleep_until(began + Duration::from_millis(*ms)).await;
                sender.send(vec![event.clone()]).await.unwrap();
            }
            sleep(Duration::from_millis(open)).await;
        };
        let reading = async {
            let mut chunks = Vec::new();
            let next = |body: &mut SseBody, cx: &mut Context<'_>| Pin::new(body).poll_frame(cx);
            while let Some(frame) = std::future::poll_fn(|cx| next(&mut body, cx)).await {
                let bytes = frame.unwrap().into_data().unwrap();
                let text = String::from_utf8(bytes.to_vec()).unwrap();
                chunks.push((began.elapsed().as_millis(), text));
            }
            chunks
        };
        tokio::join!(sending, reading).1
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_window_a_chunk_holds_what_is_ready() {
        let events = [(0, says("a")), (0, says("b")), (1, says("c")), (2, failed())];
        let left = chunks(Pace::default(), &events, 5).await;
        let [a, b, c, end] = events.map(|(_, event)| event);
        assert_eq!(left, [(0, frames(&[a, b])), (1, frames(&[c])), (2, frames(&[end]))]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_window_begins_with_the_first_event_and_the_terminal_one_ends_it() {
        let pace = Pace { heartbeat: None, window: Some(WINDOW) };
        let events =
            [(0, says("a")), (19, says("b")), (21, says("c")), (39, says("d")), (40, failed())];
        let left = chunks(pace, &events, 5).await;
        let [a, b, c, d, end] = events.map(|(_, event)| event);
        assert_eq!(left, [(20, frames(&[a, b])), (40, frames(&[c, d, end]))]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_chunk_does_not_wait_for_its_window() {
        let pace = Pace { heartbeat: None, window: Some(WINDOW) };
        let long = says(&"x".repeat(MAX_CHUNK));
        let events = [(3, says("a")), (7, long), (9, says("b")), (50, failed())];
        let left = chunks(pace, &events, 5).await;
        let [a, long, b, end] = events.map(|(_, event)| event);
        let expected = [(7, frames(&[a, long])), (29, frames(&[b])), (50, frames(&[end]))];
        assert!(left == expected, "other chunks than expected");
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_gathered_leaves_when_the_run_is_gone() {
        let pace = Pace { heartbeat: None, window: Some(WINDOW) };
        let left = chunks(pace, &[(0, says("a"))], 5).await;
        assert_eq!(left, [(5, frames(&[says("a")]))]);
    }

    #[tokio::test(start_paused = true)]
    async fn comments_fill_silence_but_no_window() {
        let interval = Duration::from_millis(15);
        let pace = Pace { heartbeat: Some(interval), window: Some(WINDOW) };
        let left = chunks(pace, &[(16, says("a")), (53, failed())], 0).await;
        let comment = String::from_utf8(sse::KEEP_ALIVE.to_vec()).unwrap();
        assert_eq!(
            left,
            [
                (15, comment.clone()),
                (36, frames(&[says("a")])),
                (51, comment),
                (53, frames(&[failed()])),
            ]
        );
    }
}
