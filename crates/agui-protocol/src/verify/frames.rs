//! The framing rules of the SSE binding: LF only, one `data:` line with one JSON object per
//! frame, only comments besides, a clean end.

use serde_json::Value;

use super::{Log, Violation, json};

/// Clients give up on a frame of this many characters (SSE-18).
const MAX_FRAME_CHARS: usize = 10 * 1024 * 1024;

/// The events of a body, and the faults of its framing.
pub(super) fn read(body: &[u8]) -> (Vec<Value>, Vec<Violation>) {
    let mut log = Log::default();
    let mut events = Vec::new();
    match std::str::from_utf8(body) {
        Ok("") => log.flag("SSE-16", "the body is empty"),
        Ok(text) => frames(text, &mut events, &mut log),
        Err(error) => log.flag("SER-11", format!("not UTF-8 after {} bytes", error.valid_up_to())),
    }
    (events, log.found)
}

fn frames(text: &str, events: &mut Vec<Value>, log: &mut Log) {
    if text.contains('\r') {
        log.flag("SSE-6", "a carriage return in the body");
    }
    let whole = text.strip_suffix("\n\n").unwrap_or_else(|| {
        log.index = text.matches("\n\n").count();
        log.flag("SSE-14", "the body ends inside a frame");
        log.index = 0;
        text
    });
    for frame in whole.split("\n\n") {
        log.index = events.len();
        events.extend(read_frame(frame, log));
    }
}

fn read_frame(frame: &str, log: &mut Log) -> Option<Value> {
    if frame.chars().count() > MAX_FRAME_CHARS {
        log.flag("SSE-18", "a frame of more than 10 Mi characters");
    }
    let mut data = None;
    for line in frame.split('\n') {
        if line.starts_with(':') {
            continue;
        }
        match line.strip_prefix("data:") {
            Some(_) if data.is_some() => log.flag("SSE-8", "more than one data line in a frame"),
            Some(rest) => data = Some(rest.strip_prefix(' ').unwrap_or(rest)),
            None if line.trim().is_empty() => log.flag("SSE-7", "a blank line inside a frame"),
            None => log.flag("SSE-9", "a line that is neither data nor a comment"),
        }
    }
    read_event(data?, log)
}

fn read_event(data: &str, log: &mut Log) -> Option<Value> {
    if data.trim() == "[DONE]" {
        log.flag("SSE-11", "a sentinel instead of an event");
        return None;
    }
    let (value, twice) = match json::read(data) {
        Ok(read) => read,
        Err(error) => {
            log.flag("SSE-5", format!("a frame that is not one JSON value: {error}"));
            return None;
        }
    };
    for name in twice {
        log.flag("SER-12", format!("the member {name} stands twice in one object"));
    }
    if !value.is_object() {
        log.flag("SSE-5", "a frame that is not a JSON object");
        return None;
    }
    Some(value)
}
