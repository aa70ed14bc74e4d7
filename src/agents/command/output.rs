//! A line of a program's stdout as an agent event. Errors name the place, never what stood there.

use agui_adapter::model::{AgentEvent, wire::DecodeOptions};
use serde_json::Value;

use crate::agents::directive;

/// The directives that a program may write.
const DIRECTIVES: [&str; 5] = ["state", "activity", "ask", "park", "keep"];

/// The event of a line; `None` for a blank one.
pub(super) fn read(line: &[u8], options: DecodeOptions) -> Result<Option<AgentEvent>, String> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return Ok(None);
    }
    let value: Value = serde_json::from_slice(line).map_err(|error| {
        format!("not JSON (column {}); what is not an event belongs on stderr", error.column())
    })?;
    let Value::Object(members) = &value else { return Err("not a JSON object".to_owned()) };
    match members.get("@") {
        None if !members.contains_key("type") => {
            Err("neither an agent event (`type`) nor a directive (`@`)".to_owned())
        }
        None => directive::decode(value, options).map(Some),
        Some(name) if DIRECTIVES.iter().any(|known| name == known) => {
            directive::decode(value, options).map(Some).map_err(|error| without_content(&error))
        }
        Some(_) => Err(format!("not a directive of programs: {}", DIRECTIVES.join(", "))),
    }
}

/// Serde names members that are missing or unknown, which helps, and repeats wrong values, which
/// may be anybody's words.
fn without_content(error: &str) -> String {
    if error.starts_with("`patch` is no list") {
        return "directive: `patch` is no list of JSON Patch operations".to_owned();
    }
    if error.contains("invalid type") || error.contains("invalid value") {
        return "a member of the directive has a wrong type".to_owned();
    }
    format!("directive: {error}")
}

#[cfg(test)]
mod tests {
    use agui_adapter::model::AgentEventKind;
    use serde_json::json;

    use super::*;

    #[test]
    fn both_wires_and_the_directives_are_read_and_blank_lines_are_none() {
        let kind = |line: &str| {
            let event = read(line.as_bytes(), DecodeOptions::default()).unwrap();
            event.map(|event| event.kind)
        };
        assert_eq!(kind(" \r"), None);
        let text = |block: &str| {
            Some(AgentEventKind::TextBlockDelta {
                reply: "r".to_owned(),
                block: block.to_owned(),
                delta: "d".to_owned(),
            })
        };
        assert_eq!(
            kind(
                r#"{"type":"TEXT_BLOCK_DELTA","replyId":"r","blockId":"j","delta":"d","type":"TEXT_BLOCK_DELTA"}"#
            ),
            text("j")
        );
        assert_eq!(
            kind(r#"{"type":"TEXT_BLOCK_DELTA","reply_id":"r","block_id":"p","delta":"d"}"#),
            text("p")
        );
        assert_eq!(
            kind(r#"{"@":"park","state":null}"#),
            Some(AgentEventKind::Park { state: json!(null).into() })
        );
        assert_eq!(
            kind(r#"{"@":"keep","state":[1]}"#),
            Some(AgentEventKind::Keep { state: json!([1]).into() })
        );
    }

    #[test]
    fn errors_say_what_is_wrong_and_nothing_of_what_was_written() {
        for (line, expected) in [
            ("secret", "not JSON (column 1); what is not an event belongs on stderr"),
            ("\"secret\"", "not a JSON object"),
            ("{\"secret\":1}", "neither an agent event (`type`) nor a directive (`@`)"),
            (
                r#"{"type":"TEXT_BLOCK_DELTA","delta":["secret"]}"#,
                "agent event TEXT_BLOCK_DELTA has an unreadable `delta`",
            ),
            (
                r#"{"@":"sleep","ms":1}"#,
                "not a directive of programs: state, activity, ask, park, keep",
            ),
            (r#"{"@":"park"}"#, "directive: missing field `state`"),
            (
                r#"{"@":"state","patch":[{"op":"secret","path":"/a"}]}"#,
                "directive: `patch` is no list of JSON Patch operations",
            ),
            (
                r#"{"@":"ask","id":"q","message":{"secret":1}}"#,
                "a member of the directive has a wrong type",
            ),
        ] {
            let error = read(line.as_bytes(), DecodeOptions::default()).unwrap_err();
            assert_eq!(error, expected, "{line}");
        }
    }
}
