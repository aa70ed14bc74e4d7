//! Server-sent event frames, written straight into the connection's buffer.
//!
//! One event is one frame: `data: `, the event's JSON on one line, an empty line; line ends are
//! LF only (SSE-5 to SSE-8). No `event:`, `id:` or `retry:` lines, and nothing that knows of
//! sockets.

use bytes::{BufMut, BytesMut};

use crate::Event;

/// A comment that keeps an idle connection open; clients skip it (SSE-10).
pub const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

const PREFIX: &[u8] = b"data: ";
const END: &[u8] = b"\n\n";

/// Appends one event as one frame to `out`.
///
/// JSON escapes every control character, so the frame holds no line end besides its own.
///
/// # Errors
///
/// When the event cannot be written as JSON; `out` is then as it was before the call.
pub fn write_frame(event: &Event, out: &mut BytesMut) -> Result<(), serde_json::Error> {
    let before = out.len();
    out.put_slice(PREFIX);
    if let Err(error) = serde_json::to_writer((&mut *out).writer(), event) {
        out.truncate(before);
        return Err(error);
    }
    out.put_slice(END);
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Body;

    #[test]
    fn a_frame_is_one_data_line_and_an_empty_line() {
        let mut out = BytesMut::new();
        let first = Body::TextMessageContent {
            message_id: "m1".into(),
            delta: "a\nb\r\u{2028}\u{0}é".to_owned(),
            subagent_run_id: None,
        };
        let second =
            Body::Custom { name: "n".to_owned(), value: json!(null), subagent_run_id: None };
        write_frame(&first.into(), &mut out).unwrap();
        out.extend_from_slice(KEEP_ALIVE);
        write_frame(&second.into(), &mut out).unwrap();
        assert_eq!(
            std::str::from_utf8(&out).unwrap(),
            "data: {\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"m1\",\
             \"delta\":\"a\\nb\\r\u{2028}\\u0000é\"}\n\n: keep-alive\n\n\
             data: {\"type\":\"CUSTOM\",\"name\":\"n\",\"value\":null}\n\n"
        );
    }
}
