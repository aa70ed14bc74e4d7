//! An independent checker of event streams.
//!
//! Works on raw JSON and raw bytes, never on this crate's own event types: a fault in those
//! types must not hide itself. Every finding names the rule of the protocol that it breaks.
//! Meant for tests and diagnosis; it never repairs anything and never runs on the way of a
//! served stream.

mod chunks;
mod context;
mod ending;
mod frames;
mod items;
mod json;
mod schema;
mod sequence;
mod tables;
mod thread;

use std::fmt;

use serde_json::Value;

pub use context::VerifyInput;

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Index of the event; the number of events for a fault of the stream's end.
    pub index: usize,
    /// The rule, e.g. `LIFE-6`.
    pub rule: &'static str,
    /// What is wrong. For people who read tests: it may repeat ids and names of the stream.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "event {}: {}: {}", self.index, self.rule, self.message)
    }
}

/// The violations found so far, and where the checker stands.
#[derive(Default)]
struct Log {
    index: usize,
    found: Vec<Violation>,
}

impl Log {
    fn flag(&mut self, rule: &'static str, message: impl Into<String>) {
        self.found.push(Violation { index: self.index, rule, message: message.into() });
    }
}

/// Checks the events of one response: the schema of each, then their sequence.
///
/// The findings are in the order of the events.
pub fn check_events(events: &[Value], context: &VerifyInput) -> Vec<Violation> {
    let mut found = check_schema(events);
    found.extend(sequence::check(events, context));
    found.sort_by_key(|violation| violation.index);
    found
}

/// Checks every event on its own: members, types, closed objects.
pub fn check_schema(events: &[Value]) -> Vec<Violation> {
    let mut log = Log::default();
    for event in events {
        schema::check_event(event, &mut log);
        log.index += 1;
    }
    log.found
}

/// Checks the bytes of one SSE response: the framing, then what [`check_events`] checks.
pub fn check_body(body: &[u8], context: &VerifyInput) -> Vec<Violation> {
    let (events, mut found) = read_body(body);
    found.extend(check_events(&events, context));
    found.sort_by_key(|violation| violation.index);
    found
}

/// Takes the events out of the bytes of one SSE response, with the faults of its framing.
pub fn read_body(body: &[u8]) -> (Vec<Value>, Vec<Violation>) {
    frames::read(body)
}

#[cfg(test)]
mod tests;
