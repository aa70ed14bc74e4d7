//! The same answer on every wire: for what has to come out alike wherever a model is.

use serde_json::{Value, json};

use super::{
    answer::{Answer, Frame},
    anthropic, gemini, openai,
};

/// The wires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    OpenAi,
    Anthropic,
    Gemini,
}

/// A piece of an answer that every wire can say.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Piece<'a> {
    /// A block of text.
    Text(&'a [&'a str]),
    /// A block of thinking.
    Thinking(&'a [&'a str]),
    /// A call of this id, name and arguments. Gemini has no ids.
    Call(&'a str, &'a str, &'a str),
    /// What it cost, before it finishes.
    Usage(Usage),
}

/// Counts as AG-UI has them: the parts are in the sums.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    pub(crate) input: u64,
    pub(crate) cached: Option<u64>,
    pub(crate) output: u64,
}

impl Dialect {
    pub(crate) const ALL: [Self; 3] = [Self::OpenAi, Self::Anthropic, Self::Gemini];

    /// What `provider` is in the configuration, and what it calls itself in usage.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    /// Where its paths begin.
    pub(crate) fn base(self) -> &'static str {
        match self {
            Self::OpenAi | Self::Anthropic => "/v1",
            Self::Gemini => "/v1beta",
        }
    }

    /// A whole answer. It finishes for tools if it calls one.
    pub(crate) fn answer(self, pieces: &[Piece<'_>]) -> Answer {
        let calls = pieces.iter().any(|piece| matches!(piece, Piece::Call(..)));
        match self {
            Self::OpenAi => openai(pieces, calls),
            Self::Anthropic => anthropic(pieces, calls),
            Self::Gemini => gemini(pieces),
        }
    }

    /// A whole answer of text alone.
    pub(crate) fn says(self, words: &[&str]) -> Answer {
        self.answer(&[Piece::Text(words)])
    }

    /// A failure with this status.
    pub(crate) fn failure(self, status: u16, message: &str) -> Answer {
        let body = match self {
            Self::OpenAi => json!({"error": {"message": message, "type": "x", "code": status}}),
            Self::Anthropic => anthropic::error("api_error", message),
            Self::Gemini => gemini::error(status, "UNKNOWN", message),
        };
        Answer::json(status, &body)
    }
}

fn openai(pieces: &[Piece<'_>], calls: bool) -> Answer {
    let (mut chunks, mut index) = (Vec::new(), 0);
    for piece in pieces {
        match *piece {
            Piece::Text(words) => chunks.extend(words.iter().map(|words| openai::text(words))),
            Piece::Thinking(words) => {
                chunks.extend(words.iter().map(|words| openai::reasoning_content(words)));
            }
            Piece::Call(id, name, arguments) => {
                chunks.push(openai::call(index, id, name, arguments));
                index += 1;
            }
            Piece::Usage(_) => {}
        }
    }
    chunks.push(openai::finish(if calls { "tool_calls" } else { "stop" }));
    if let Some(Usage { input, cached, output }) = usage_of(pieces) {
        let mut usage = json!({
            "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
        });
        if let Some(cached) = cached {
            usage["prompt_tokens_details"] = json!({"cached_tokens": cached});
        }
        chunks.push(openai::usage(usage));
    }
    openai::answer(chunks)
}

fn anthropic(pieces: &[Piece<'_>], calls: bool) -> Answer {
    let usage = usage_of(pieces);
    let input = usage.map(|Usage { input, cached, .. }| {
        let mut counts = json!({"input_tokens": input - cached.unwrap_or(0), "output_tokens": 1});
        if let Some(cached) = cached {
            counts["cache_read_input_tokens"] = cached.into();
        }
        counts
    });
    let mut frames = vec![anthropic::start(&input.unwrap_or(Value::Null))];
    let blocks = pieces.iter().filter(|piece| !matches!(piece, Piece::Usage(_)));
    for (index, piece) in blocks.enumerate() {
        frames.extend(match *piece {
            Piece::Text(words) => anthropic::text(index, words),
            Piece::Thinking(words) => anthropic::thinking(index, words, "signed"),
            Piece::Call(id, name, arguments) => anthropic::call(index, id, name, &[arguments]),
            Piece::Usage(_) => Vec::<Frame>::new(),
        });
    }
    let output = usage.map(|usage| json!({"output_tokens": usage.output}));
    let reason = if calls { "tool_use" } else { "end_turn" };
    frames.extend(anthropic::end(reason, &output.unwrap_or(Value::Null)));
    anthropic::answer(frames)
}

fn gemini(pieces: &[Piece<'_>]) -> Answer {
    let mut chunks = Vec::new();
    for piece in pieces {
        match *piece {
            Piece::Text(words) => chunks.extend(words.iter().map(|words| gemini::text(words))),
            Piece::Thinking(words) => {
                chunks.extend(words.iter().map(|words| gemini::thought(words)));
            }
            Piece::Call(_, name, arguments) => {
                let arguments = serde_json::from_str(arguments).unwrap();
                chunks.push(gemini::call(name, &arguments, None));
            }
            Piece::Usage(_) => {}
        }
    }
    let usage = usage_of(pieces).map(|Usage { input, cached, output }| {
        let mut usage = json!({
            "promptTokenCount": input, "candidatesTokenCount": output,
            "totalTokenCount": input + output,
        });
        if let Some(cached) = cached {
            usage["cachedContentTokenCount"] = cached.into();
        }
        usage
    });
    chunks.push(gemini::finish("STOP", usage.as_ref()));
    gemini::answer(chunks)
}

fn usage_of(pieces: &[Piece<'_>]) -> Option<Usage> {
    pieces.iter().find_map(|piece| match piece {
        Piece::Usage(usage) => Some(*usage),
        _ => None,
    })
}
