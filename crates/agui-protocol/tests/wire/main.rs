//! The wire format as a whole: held against the official schemas, and there and back.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod oracle;
mod round_trip;
mod samples;
