//! One answer of a model: from bytes to events.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use http::header::CONTENT_TYPE;
use sse_stream::SseByteStream;

use super::{
    ModelErrorKind, ModelEvent,
    retry::Failure,
    source::{ReadError, Source, Unread},
    wire::{Decoder, MAX_CALLS},
};

/// How long the end of a connection's answer is waited for behind the last event. It follows at
/// once, as a rule, and a connection that is read to its end can be used for the next call.
const GRACE: Duration = Duration::from_millis(20);

/// How long an answer that is complete is read on: counts may follow, but some never say the end,
/// and some keep the connection.
const LINGER: Duration = Duration::from_secs(10);

type Body = Source<reqwest::Error>;
type Error = ReadError<reqwest::Error>;

/// Reads one answer.
pub(super) struct Answer {
    form: Form,
    decoder: Box<dyn Decoder + Send>,
    /// `Content-Type`, for the log.
    content_type: String,
    events: Vec<ModelEvent>,
}

enum Form {
    /// Not looked at yet.
    Unknown(Box<Body>),
    /// Server-sent events.
    Events { frames: Box<SseByteStream<Body>>, unread: Unread },
    /// Nothing is left.
    Over,
}

impl Answer {
    pub(super) fn new(
        response: reqwest::Response,
        decoder: Box<dyn Decoder + Send>,
        limit: Option<Duration>,
    ) -> Self {
        let content_type = response.headers().get(CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok()).unwrap_or("unknown");
        Self {
            content_type: content_type.chars().take(64).collect(),
            form: Form::Unknown(Box::new(Source::new(Box::pin(response.bytes_stream()), limit))),
            decoder,
            events: Vec::new(),
        }
    }

    /// Reads on until there are events, or the answer ends (`false`), or fails. What was read
    /// before a failure counts.
    pub(super) async fn read(&mut self) -> Result<bool, Failure> {
        if matches!(self.form, Form::Unknown(_)) {
            self.look().await?;
        }
        while self.events.is_empty() {
            if !self.read_event().await? {
                self.form = Form::Over;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The events read so far.
    pub(super) fn events(&mut self) -> std::vec::Drain<'_, ModelEvent> {
        self.events.drain(..)
    }

    /// Finds out what came: events, or one JSON value of a server that does not stream, or a page.
    /// Servers name the wrong content type too often to go by it.
    async fn look(&mut self) -> Result<(), Failure> {
        let Form::Unknown(mut body) = std::mem::replace(&mut self.form, Form::Over) else {
            return Ok(());
        };
        let (chunk, first) = loop {
            let Some(chunk) = body.next().await else { break (Bytes::new(), None) };
            let chunk = chunk.map_err(|error| broken(&error))?;
            let first = chunk.iter().copied().find(|byte| !byte.is_ascii_whitespace());
            // White space in front of everything says nothing in any form.
            if first.is_some() {
                break (chunk, first);
            }
        };
        match first {
            Some(b'{' | b'[') => self.whole(chunk.into(), *body).await,
            Some(b'<') => Err(Failure::lasting(
                ModelErrorKind::Other,
                format!("the answer is no stream of events, but {}", self.content_type),
            )),
            _ => {
                body.push_back(chunk);
                let unread = body.unread();
                self.form = Form::Events { frames: Box::new(SseByteStream::new(*body)), unread };
                Ok(())
            }
        }
    }

    /// The answer of a server that does not stream.
    async fn whole(&mut self, mut read: BytesMut, mut body: Body) -> Result<(), Failure> {
        while let Some(chunk) = body.next().await {
            read.extend_from_slice(&chunk.map_err(|error| broken(&error))?);
        }
        let text = String::from_utf8_lossy(&read);
        self.decode(None, text.trim())?;
        if !self.is_finished() {
            self.decoder.on_end(&mut self.events)?;
        }
        Ok(())
    }

    /// Reads one event of the stream; `false` = there are no more.
    async fn read_event(&mut self) -> Result<bool, Failure> {
        let Form::Events { frames, unread } = &mut self.form else {
            return Ok(false);
        };
        let next = frames.next();
        let next = if self.decoder.is_complete() {
            // Whatever breaks now, breaks nothing of the answer.
            tokio::time::timeout(LINGER, next).await.ok().flatten().filter(Result::is_ok)
        } else {
            next.await
        };
        let Some(frame) = next else {
            self.form = Form::Over;
            self.decoder.on_end(&mut self.events)?;
            return Ok(!self.events.is_empty());
        };
        unread.reset();
        let frame = frame.map_err(|error| match &error {
            sse_stream::Error::Body(source) => match source.downcast_ref::<Error>() {
                Some(error) => broken(error),
                None => Failure::lasting(ModelErrorKind::Other, "the answer cannot be read"),
            },
            _ => Failure::lasting(ModelErrorKind::Other, "the answer is not UTF-8"),
        })?;
        let data = frame.data.as_deref().unwrap_or_default().trim_ascii();
        if data.is_empty() {
            return Ok(true);
        }
        self.decode(frame.event.as_deref(), data)?;
        if self.is_finished() {
            self.drain().await;
        }
        Ok(true)
    }

    fn decode(&mut self, name: Option<&str>, data: &str) -> Result<(), Failure> {
        self.decoder.on_event(name, data, &mut self.events)?;
        let is_beyond = |event: &ModelEvent| match event {
            ModelEvent::CallStart { index, .. } => *index >= MAX_CALLS,
            _ => false,
        };
        if self.events.iter().any(is_beyond) {
            let cause = format!("the answer makes more than {MAX_CALLS} calls");
            return Err(Failure::lasting(ModelErrorKind::Other, cause));
        }
        Ok(())
    }

    fn is_finished(&self) -> bool {
        matches!(self.events.last(), Some(ModelEvent::Finish(_)))
    }

    /// Takes the end of the connection's answer along if it is there.
    async fn drain(&mut self) {
        if let Form::Events { frames, .. } = &mut self.form {
            let end = async { while let Some(Ok(_)) = frames.next().await {} };
            // Without it the connection is closed, which is all right as well.
            drop(tokio::time::timeout(GRACE, end).await);
        }
        self.form = Form::Over;
    }
}

/// The failure of an answer that breaks off.
fn broken(error: &Error) -> Failure {
    match error {
        // Whoever waited that long does not want to wait again.
        ReadError::Silent(_) => Failure::lasting(ModelErrorKind::Unavailable, error.to_string()),
        ReadError::TooLong | ReadError::Endless => {
            Failure::lasting(ModelErrorKind::Other, error.to_string())
        }
        ReadError::Cut(source) => {
            let causes = super::client::causes(source);
            Failure::passing(ModelErrorKind::Other, format!("{error}: {causes}"))
        }
    }
}

/// What came of a body, up to a length and a time.
pub(super) async fn beginning(
    mut response: reqwest::Response,
    length: usize,
    time: Duration,
) -> Bytes {
    let mut read = BytesMut::new();
    let reading = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            let room = length - read.len();
            read.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
            if read.len() == length {
                break;
            }
        }
    };
    // What came in time has to do.
    drop(tokio::time::timeout(time, reading).await);
    read.freeze()
}

#[cfg(test)]
mod tests;
