//! Events -> the body of the answer: SSE frames, everything that is ready in one chunk, a comment
//! line after every long silence.

use std::{convert::Infallible, time::Duration};

use agui_protocol::{Event, sse};
use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use tokio::{sync::mpsc, time::timeout};

/// Bytes after which a chunk is full although more events are ready.
const CHUNK: usize = 64 * 1024;

/// The body. It ends right after the terminal event, when the run closes the channel (SSE-13);
/// dropping it tells the run that the client is gone.
pub(super) fn body(events: mpsc::Receiver<Vec<Event>>, heartbeat: Option<Duration>) -> Body {
    Body::from_stream(frames(events, heartbeat))
}

fn frames(
    mut events: mpsc::Receiver<Vec<Event>>,
    heartbeat: Option<Duration>,
) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
    async_stream::stream! {
        let mut buffer = BytesMut::new();
        loop {
            match next(&mut events, heartbeat).await {
                Next::Batch(batch) => {
                    write(batch, &mut buffer);
                    while buffer.len() < CHUNK && let Ok(batch) = events.try_recv() {
                        write(batch, &mut buffer);
                    }
                    yield Ok(buffer.split().freeze());
                }
                Next::Silence => yield Ok(Bytes::from_static(sse::KEEP_ALIVE)),
                Next::End => break,
            }
        }
    }
}

enum Next {
    Batch(Vec<Event>),
    Silence,
    End,
}

async fn next(events: &mut mpsc::Receiver<Vec<Event>>, heartbeat: Option<Duration>) -> Next {
    let received = match heartbeat {
        None => events.recv().await,
        Some(interval) => match timeout(interval, events.recv()).await {
            Ok(received) => received,
            Err(_elapsed) => return Next::Silence,
        },
    };
    received.map_or(Next::End, Next::Batch)
}

fn write(batch: Vec<Event>, buffer: &mut BytesMut) {
    for event in batch {
        if let Err(error) = sse::write_frame(&event, buffer) {
            let kind = event.event_type().as_str();
            tracing::error!(event = kind, error = %error, "an event cannot be written as JSON");
        }
    }
}
