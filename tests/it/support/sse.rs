//! A strict reader of server-sent events: one `data:` line or one comment per frame, LF only.

use reqwest::Response;
use serde_json::Value;

/// What stands between two empty lines.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Frame {
    Event(Value),
    Comment(String),
}

/// The frames of a whole body.
pub(crate) fn frames(body: &str) -> Vec<Frame> {
    let Some(body) = body.strip_suffix("\n\n") else {
        panic!("the body does not end with an empty line: {body:?}");
    };
    body.split("\n\n").map(frame).collect()
}

fn frame(text: &str) -> Frame {
    assert!(!text.contains(['\n', '\r']), "a frame of more than one line: {text:?}");
    if let Some(data) = text.strip_prefix("data: ") {
        return Frame::Event(serde_json::from_str(data).unwrap());
    }
    Frame::Comment(text.strip_prefix(": ").unwrap().to_owned())
}

/// Reads an answer frame by frame while it is still being sent.
pub(crate) struct Reader {
    response: Response,
    text: String,
}

impl Reader {
    pub(crate) fn new(response: Response) -> Self {
        Self { response, text: String::new() }
    }

    /// The next frame; `None` = the body has ended.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some((first, rest)) = self.text.split_once("\n\n") {
                let first = frame(first);
                self.text = rest.to_owned();
                return Some(first);
            }
            let Some(chunk) = self.response.chunk().await.unwrap() else {
                assert_eq!(self.text, "", "the body ended inside a frame");
                return None;
            };
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// The next event; comments are skipped.
    pub(crate) async fn event(&mut self) -> Option<Value> {
        loop {
            match self.next().await? {
                Frame::Event(event) => return Some(event),
                Frame::Comment(_) => {}
            }
        }
    }

    /// All events to the end.
    pub(crate) async fn rest(mut self) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(event) = self.event().await {
            events.push(event);
        }
        events
    }
}
