//! What providers say when they fail, and which kind of failure that is.

use http::StatusCode;
use serde_json::Value;

use super::{ModelError, ModelErrorKind};

/// Texts of messages that say that the conversation is too long, in lower case.
const TOO_LONG: &[&str] = &[
    "context length",
    "context window",
    "context size",
    "context limit",
    "maximum model length",
    "maximum prompt length",
    "model token limit",
    "range of input length",
    "input is too long",
    "input tokens exceed",
    "input token count",
    "prompt is too long",
    "prompt too long",
    "prompt exceeds max length",
    "reduce the length of the messages",
    "tokens + `max_new_tokens`",
];

/// Words in types and codes of errors, and what they mean; the first that is found counts.
const WORDS: &[(&str, Word)] = &[
    ("context_length", Word::TooLong),
    ("context_window", Word::TooLong),
    ("context_size", Word::TooLong),
    ("quota", Word::Limited),
    ("rate_limit", Word::Limited),
    ("ratelimit", Word::Limited),
    ("throttling", Word::Limited),
    ("resource_exhausted", Word::Limited),
    ("too_many_requests", Word::Limited),
    ("api_key", Word::Auth),
    ("apikey", Word::Auth),
    ("authentication", Word::Auth),
    ("unauthenticated", Word::Auth),
    ("unauthorized", Word::Auth),
    ("permission", Word::Auth),
    ("forbidden", Word::Auth),
    ("overloaded", Word::Unavailable),
    ("unavailable", Word::Unavailable),
    ("timeout", Word::Unavailable),
    ("deadline_exceeded", Word::Unavailable),
];

#[derive(Clone, Copy)]
enum Word {
    TooLong,
    Limited,
    Auth,
    Unavailable,
}

/// What a provider says of a failure, in whichever form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ProviderError {
    /// Its own kind, e.g. `invalid_request_error` or Gemini's `RESOURCE_EXHAUSTED`.
    kind: Option<String>,
    /// Its code, where that is a word.
    code: Option<String>,
    /// Its code, where that is an HTTP status.
    status: Option<StatusCode>,
    /// For people. May quote keys and messages: it is read, and neither kept nor shown.
    message: String,
}

impl ProviderError {
    /// Of an answer's body.
    pub(super) fn of_body(body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        match super::json::parse::<Value>(&text) {
            Ok(value) => Self::of(&value),
            Err(_) => Self { message: text.into_owned(), ..Self::default() },
        }
    }

    /// Of JSON that says that something failed: the error itself, or what holds it as `error`.
    pub(super) fn of(value: &Value) -> Self {
        // Gemini's comes in a list.
        let value = value.as_array().and_then(|list| list.first()).unwrap_or(value);
        let error = value.get("error").filter(|error| !error.is_null()).unwrap_or(value);
        if let Some(message) = error.as_str() {
            return Self { message: message.to_owned(), ..Self::default() };
        }
        let text = |name: &str| error.get(name).and_then(Value::as_str).map(str::to_owned);
        let code = error.get("code").or_else(|| error.get("error_code"));
        let number = code.and_then(|code| match code {
            Value::String(digits) => digits.parse().ok(),
            number => number.as_u64(),
        });
        Self {
            kind: text("type").or_else(|| text("status")),
            code: text("code").filter(|_| number.is_none()),
            status: number
                .and_then(|number| u16::try_from(number).ok())
                .and_then(|number| StatusCode::from_u16(number).ok()),
            message: text("message").or_else(|| text("detail")).unwrap_or_default(),
        }
    }

    /// The kind of failure; `status` = the answer's, `None` for an error inside of an answer that
    /// began well.
    pub(super) fn kind(&self, status: Option<StatusCode>) -> ModelErrorKind {
        match status.or(self.status).and_then(kind_of_status) {
            // Some say so with the wrong status.
            Some(ModelErrorKind::Unavailable) if self.says_too_long() => {
                ModelErrorKind::ContextExceeded
            }
            Some(kind) => kind,
            None if self.says_too_long() => ModelErrorKind::ContextExceeded,
            // A server that fails is no limit and no wrong key, whatever it calls itself.
            None if status.is_some_and(|status| status.is_server_error()) => ModelErrorKind::Other,
            None => match self.word() {
                Some(Word::Limited) => ModelErrorKind::RateLimited { retry_after: None },
                // 400 with a word about keys is what Gemini says, 400 about time nobody.
                Some(Word::Auth) => ModelErrorKind::Auth,
                Some(Word::Unavailable) if status.is_none() => ModelErrorKind::Unavailable,
                _ => ModelErrorKind::Other,
            },
        }
    }

    /// The failure of an answer that began well.
    pub(super) fn in_band(&self) -> ModelError {
        let kind = self.kind(None);
        ModelError { kind, cause: format!("the answer holds an error{}", self.described()) }
    }

    /// That asking again is of no use until somebody pays.
    pub(super) fn is_out_of_quota(&self) -> bool {
        [&self.kind, &self.code].into_iter().flatten().any(|word| word == "insufficient_quota")
    }

    /// Type and code for the log, with a comma before each.
    pub(super) fn described(&self) -> String {
        let mut text = String::new();
        for (name, value) in [("type", &self.kind), ("code", &self.code)] {
            if let Some(value) = value.as_deref().filter(|value| is_word(value)) {
                text.push_str(", ");
                text.push_str(name);
                text.push(' ');
                text.push_str(value);
            }
        }
        if let Some(status) = self.status {
            text.push_str(", code ");
            text.push_str(status.as_str());
        }
        text
    }

    fn says_too_long(&self) -> bool {
        let message = self.message.to_lowercase();
        matches!(self.word(), Some(Word::TooLong))
            || TOO_LONG.iter().any(|text| message.contains(text))
    }

    fn word(&self) -> Option<Word> {
        let said = [&self.code, &self.kind].into_iter().flatten().map(|word| word.to_lowercase());
        let said: Vec<String> = said.collect();
        let found = WORDS.iter().find(|(word, _)| said.iter().any(|said| said.contains(word)));
        found.map(|(_, meaning)| *meaning)
    }
}

/// What a status says by itself; `None` = the body has to say.
fn kind_of_status(status: StatusCode) -> Option<ModelErrorKind> {
    match status.as_u16() {
        401 | 403 => Some(ModelErrorKind::Auth),
        429 => Some(ModelErrorKind::RateLimited { retry_after: None }),
        502 | 503 | 504 | 529 => Some(ModelErrorKind::Unavailable),
        _ => None,
    }
}

/// Whether a provider's word is one, and no sentence that may quote anything.
pub(super) fn is_word(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.:/".contains(c);
    !text.is_empty() && text.len() <= 64 && !text.starts_with("sk-") && text.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn kind(status: u16, body: &str) -> ModelErrorKind {
        let error = ProviderError::of_body(body.as_bytes());
        error.kind(Some(StatusCode::from_u16(status).unwrap()))
    }

    const LIMITED: ModelErrorKind = ModelErrorKind::RateLimited { retry_after: None::<Duration> };

    #[test]
    fn a_status_says_the_kind() {
        for (status, expected) in [
            (401, ModelErrorKind::Auth),
            (403, ModelErrorKind::Auth),
            (429, LIMITED),
            (502, ModelErrorKind::Unavailable),
            (503, ModelErrorKind::Unavailable),
            (504, ModelErrorKind::Unavailable),
            (529, ModelErrorKind::Unavailable),
            (400, ModelErrorKind::Other),
            (404, ModelErrorKind::Other),
            (302, ModelErrorKind::Other),
            (500, ModelErrorKind::Other),
        ] {
            assert_eq!(kind(status, "<html>"), expected, "{status}");
        }
        let quota = r#"{"error":{"message":"quota","type":"insufficient_quota"}}"#;
        assert_eq!(kind(429, quota), LIMITED);
        assert!(ProviderError::of_body(quota.as_bytes()).is_out_of_quota());
    }

    #[test]
    fn a_conversation_that_is_too_long_is_known_in_every_wording() {
        for body in [
            r#"{"error":{"message":"x","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens."}}"#,
            r#"{"error":{"code":"invalid_parameter_error","message":"Range of input length should be [1, 30720]"}}"#,
            r#"{"object":"error","message":"The decoder prompt (length 9) is longer than the maximum model length of 4","type":"BadRequestError","code":400}"#,
            r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#,
            r#"{"error":"prompt too long; exceeded max context length by 4 tokens"}"#,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}"#,
            r#"[{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"The input token count (9) exceeds the maximum number of tokens allowed (4)."}}]"#,
            "the input (9 tokens) is longer than the model's context length (4 tokens)",
        ] {
            assert_eq!(kind(400, body), ModelErrorKind::ContextExceeded, "{body}");
        }
        let per_minute = r#"{"error":{"message":"Request too large, context length"}}"#;
        assert_eq!(kind(429, per_minute), LIMITED);
    }

    #[test]
    fn an_error_inside_of_an_answer_says_its_kind_itself() {
        for (text, expected) in [
            (r#"{"error":{"code":429,"message":"m"}}"#, LIMITED),
            (r#"{"error":{"code":"429","message":"m"}}"#, LIMITED),
            (r#"{"error":{"code":"rate_limit_exceeded"}}"#, LIMITED),
            (r#"{"error":{"status":"RESOURCE_EXHAUSTED"}}"#, LIMITED),
            (r#"{"error":{"code":502}}"#, ModelErrorKind::Unavailable),
            (r#"{"error":{"type":"overloaded_error"}}"#, ModelErrorKind::Unavailable),
            (r#"{"error":{"code":"invalid_api_key"}}"#, ModelErrorKind::Auth),
            (r#"{"error":{"type":"authentication_error"}}"#, ModelErrorKind::Auth),
            (r#"{"error":{"code":"context_length_exceeded"}}"#, ModelErrorKind::ContextExceeded),
            (r#"{"error":{"code":1234,"message":"m"}}"#, ModelErrorKind::Other),
            (r#"{"error":{"type":"server_error"}}"#, ModelErrorKind::Other),
            (r#"{"error":"broken"}"#, ModelErrorKind::Other),
        ] {
            let error = ProviderError::of(&serde_json::from_str(text).unwrap());
            assert_eq!(error.in_band().kind, expected, "{text}");
        }
    }

    #[test]
    fn the_log_gets_words_and_no_sentence() {
        let body = r#"{"error":{"message":"Incorrect API key provided: sk-test-ABCDEF123",
                       "type":"invalid_request_error","code":"invalid_api_key"}}"#;
        let error = ProviderError::of_body(body.as_bytes());
        assert_eq!(error.described(), ", type invalid_request_error, code invalid_api_key");
        let odd = r#"{"error":{"type":"Incorrect API key","code":"sk-test-ABCDEF123"}}"#;
        assert_eq!(ProviderError::of_body(odd.as_bytes()).described(), "");
        let number = r#"{"error":{"code":429,"type":"x"}}"#;
        assert_eq!(ProviderError::of_body(number.as_bytes()).described(), ", type x, code 429");
    }
}
