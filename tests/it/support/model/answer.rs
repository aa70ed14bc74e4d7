//! Answers: a head and a body in steps, which the test cuts, slows down or withholds.

use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

/// What the endpoint sends back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    /// The head is sent when it opens.
    pub(super) held: Option<Gate>,
    pub(super) steps: Vec<Step>,
    /// Whether the socket stays when the client has left.
    pub(super) stubborn: bool,
}

/// A step of a body.
#[derive(Debug)]
pub(super) enum Step {
    /// One write, which is one chunk of HTTP.
    Write(Vec<u8>),
    /// Nothing until it opens.
    Wait(Gate),
    /// What the test sends, until it drops its end.
    Fed(UnboundedReceiver<Vec<u8>>),
    /// The connection ends here, inside the body.
    Cut,
}

/// Closed until the test opens it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gate(CancellationToken);

impl Gate {
    pub(crate) fn open(&self) {
        self.0.cancel();
    }

    pub(super) async fn opened(&self) {
        self.0.cancelled().await;
    }
}

/// The test's end of a body that it sends itself; the body ends when it is dropped.
pub(crate) struct Feed(UnboundedSender<Vec<u8>>);

impl Feed {
    /// Sends frames.
    pub(crate) fn say<F: Into<Frame>>(&self, frames: impl IntoIterator<Item = F>) {
        for frame in frames {
            self.bytes(frame.into().lines(Framing::Lf));
        }
    }

    /// Sends these bytes.
    pub(crate) fn bytes(&self, bytes: impl Into<Vec<u8>>) {
        // Nobody listens any more when the client has left.
        self.0.send(bytes.into()).ok();
    }
}

/// A server-sent event.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    name: Option<String>,
    data: String,
}

impl Frame {
    /// An event with a name.
    pub(crate) fn named(name: &str, data: &Value) -> Self {
        Self { name: Some(name.to_owned()), data: data.to_string() }
    }

    /// Any text in the place of the JSON.
    pub(crate) fn raw(data: &str) -> Self {
        Self { name: None, data: data.to_owned() }
    }

    fn lines(&self, framing: Framing) -> String {
        let (end, space, before) = match framing {
            Framing::Lf => ("\n", " ", ""),
            Framing::CrLf => ("\r\n", " ", ""),
            Framing::Tight => ("\n", "", ""),
            Framing::Talkative => ("\r\n", " ", ": keep-alive\r\n\r\n:\r\n"),
        };
        let named = self.name.as_deref().or((framing == Framing::Talkative).then_some("message"));
        let name = named.map(|name| format!("event:{space}{name}{end}")).unwrap_or_default();
        format!("{before}{name}data:{space}{}{end}{end}", self.data)
    }
}

impl From<Value> for Frame {
    fn from(value: Value) -> Self {
        Self { name: None, data: value.to_string() }
    }
}

/// Spellings of server-sent events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Lf,
    CrLf,
    /// No space behind the colon.
    Tight,
    /// With comments and names between CRLFs.
    Talkative,
}

impl Answer {
    fn new(status: u16, content_type: &str) -> Self {
        let headers = vec![("Content-Type".to_owned(), content_type.to_owned())];
        Self { status, headers, held: None, steps: Vec::new(), stubborn: false }
    }

    /// An event stream of these frames, one write for each.
    pub(crate) fn events<F: Into<Frame>>(frames: impl IntoIterator<Item = F>) -> Self {
        Self::framed(Framing::Lf, frames)
    }

    /// The same, spelled so.
    pub(crate) fn framed<F: Into<Frame>>(
        framing: Framing,
        frames: impl IntoIterator<Item = F>,
    ) -> Self {
        let frames = frames.into_iter().map(Into::into);
        frames.fold(Self::new(200, "text/event-stream"), |answer, frame| {
            answer.then(frame.lines(framing))
        })
    }

    /// An event stream that the test sends itself.
    pub(crate) fn fed() -> (Self, Feed) {
        let (feed, fed) = unbounded_channel();
        let mut answer = Self::new(200, "text/event-stream");
        answer.steps.push(Step::Fed(fed));
        (answer, Feed(feed))
    }

    /// A document of JSON.
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::new(status, "application/json").then(body.to_string())
    }

    /// A document of text.
    pub(crate) fn text(status: u16, body: &str) -> Self {
        Self::new(status, "text/plain").then(body)
    }

    /// Never an answer: not even a head, and the socket stays when the client has left.
    pub(crate) fn never() -> Self {
        let mut answer = Self::new(200, "text/event-stream").held_until(&Gate::default());
        answer.stubborn = true;
        answer
    }

    /// A header more.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// No byte, no head before the gate opens.
    pub(crate) fn held_until(mut self, gate: &Gate) -> Self {
        self.held = Some(gate.clone());
        self
    }

    /// One more write.
    pub(crate) fn then(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.steps.push(Step::Write(bytes.into()));
        self
    }

    /// What follows comes when the gate opens.
    pub(crate) fn wait(mut self, gate: &Gate) -> Self {
        self.steps.push(Step::Wait(gate.clone()));
        self
    }

    /// What the other answer has, behind this one's.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.steps.extend(other.steps);
        self
    }

    /// The connection ends behind what was said so far.
    pub(crate) fn cut(mut self) -> Self {
        self.steps.push(Step::Cut);
        self
    }

    /// The connection ends after so many bytes of the body.
    pub(crate) fn cut_after(mut self, bytes: usize) -> Self {
        let mut left = bytes;
        self.each_write(|mut write| {
            write.truncate(left);
            left -= write.len();
            vec![write]
        });
        self.cut()
    }

    /// The same, but with the end that a whole answer has.
    pub(crate) fn ended_after(self, bytes: usize) -> Self {
        let mut answer = self.cut_after(bytes);
        answer.steps.pop();
        answer
    }

    /// A write for every byte.
    pub(crate) fn bytewise(mut self) -> Self {
        self.each_write(|write| write.into_iter().map(|byte| vec![byte]).collect());
        self
    }

    fn each_write(&mut self, mut change: impl FnMut(Vec<u8>) -> Vec<Vec<u8>>) {
        let change = |step| match step {
            Step::Write(write) => change(write).into_iter().map(Step::Write).collect(),
            other => vec![other],
        };
        self.steps = std::mem::take(&mut self.steps).into_iter().flat_map(change).collect();
    }

    /// How many bytes of the body stand before these words.
    pub(crate) fn len_before(&self, words: &str) -> usize {
        let writes = self.steps.iter().map(|step| match step {
            Step::Write(write) => write.as_slice(),
            _ => &[],
        });
        let body = writes.collect::<Vec<_>>().concat();
        let found = body.windows(words.len()).position(|seen| seen == words.as_bytes());
        found.unwrap()
    }
}
