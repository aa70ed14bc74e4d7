//! One reader per group of event types. Only fields that the model has are taken.

use serde_json::Value;

use super::WireError;
use super::blocks::{decode_block, decode_call, decode_msg, hint_text, parse_object, state_of};
use super::custom::read_reserved;
use super::fields::{Fields, Key, count_of, object_of, take, text_of};
use crate::model::event::{
    AgentEventKind as Kind, AgentEventType as Type, Call, Confirmation, DataChunk, EndReason,
    ExternalResult, Failure, ModelUsage, Object, ResultData, ResultState,
};
use crate::model::msg::Block;

const REPLY: Key = Key::new("replyId", "reply_id");
const BLOCK: Key = Key::new("blockId", "block_id");
const CALL: Key = Key::new("toolCallId", "tool_call_id");
const CALL_NAME: Key = Key::new("toolCallName", "tool_call_name");
const CALLS: Key = Key::new("toolCalls", "tool_calls");
const CONFIRMS: Key = Key::new("confirmResults", "confirm_results");
const DATA: Key = Key::same("data");
const DELTA: Key = Key::same("delta");
const GENERATE_REASON: Key = Key::new("generateReason", "generate_reason");
const MEDIA_TYPE: Key = Key::new("mediaType", "media_type");
const MIME_TYPE: Key = Key::new("mimeType", "mime_type");
const NAME: Key = Key::same("name");
const RESULT: Key = Key::same("result");
// Java says `toolResults`, Python `execution_results`.
const RESULTS: Key = Key::new("toolResults", "execution_results");
const RESULTS_OTHER: Key = Key::new("executionResults", "tool_results");
const STATE: Key = Key::same("state");
const URL: Key = Key::same("url");

/// The type that a name on the wire stands for, aliases included.
pub(super) fn known_type(name: &str) -> Option<Type> {
    Some(match name {
        "AGENT_START" | "REPLY_START" | "RUN_STARTED" => Type::AgentStart,
        "AGENT_END" | "REPLY_END" | "RUN_FINISHED" => Type::AgentEnd,
        "AGENT_RESULT" => Type::AgentResult,
        "MODEL_CALL_START" | "MODEL_CALL_STARTED" => Type::ModelCallStart,
        "MODEL_CALL_END" | "MODEL_CALL_ENDED" => Type::ModelCallEnd,
        "TEXT_BLOCK_START" => Type::TextBlockStart,
        "TEXT_BLOCK_DELTA" => Type::TextBlockDelta,
        "TEXT_BLOCK_END" => Type::TextBlockEnd,
        "THINKING_BLOCK_START" => Type::ThinkingBlockStart,
        "THINKING_BLOCK_DELTA" => Type::ThinkingBlockDelta,
        "THINKING_BLOCK_END" => Type::ThinkingBlockEnd,
        "DATA_BLOCK_START" | "BINARY_BLOCK_START" => Type::DataBlockStart,
        "DATA_BLOCK_DELTA" | "BINARY_BLOCK_DELTA" => Type::DataBlockDelta,
        "DATA_BLOCK_END" | "BINARY_BLOCK_END" => Type::DataBlockEnd,
        "HINT_BLOCK" => Type::HintBlock,
        "TOOL_CALL_START" => Type::ToolCallStart,
        "TOOL_CALL_DELTA" => Type::ToolCallDelta,
        "TOOL_CALL_END" => Type::ToolCallEnd,
        "TOOL_RESULT_START" => Type::ToolResultStart,
        "TOOL_RESULT_TEXT_DELTA" => Type::ToolResultTextDelta,
        "TOOL_RESULT_DATA_DELTA" | "TOOL_RESULT_BINARY_DELTA" => Type::ToolResultDataDelta,
        "TOOL_RESULT_END" => Type::ToolResultEnd,
        "EXCEED_MAX_ITERS" => Type::ExceedMaxIters,
        "REQUIRE_USER_CONFIRM" => Type::RequireUserConfirm,
        "REQUIRE_EXTERNAL_EXECUTION" => Type::RequireExternalExecution,
        "USER_CONFIRM_RESULT" => Type::UserConfirmResult,
        "EXTERNAL_EXECUTION_RESULT" => Type::ExternalExecutionResult,
        "REQUEST_STOP" => Type::RequestStop,
        "ALL_TOOLS_DENIED" => Type::AllToolsDenied,
        "SUBAGENT_EXPOSED" | "THREAD_EXPOSED" => Type::SubagentExposed,
        "CUSTOM" => Type::Custom,
        _ => return None,
    })
}

/// Reads what happened out of an event's members.
pub(super) fn read(event_type: Type, f: &mut Fields) -> Result<Kind, WireError> {
    Ok(match event_type {
        Type::AgentStart => Kind::AgentStart {
            reply: f.optional_id(REPLY),
            session: f.optional_id(Key::new("sessionId", "session_id")),
            name: f.id(NAME),
        },
        Type::AgentEnd => Kind::AgentEnd { reply: f.optional_id(REPLY), reason: end_reason(f) },
        Type::AgentResult => agent_result(f)?,
        Type::ModelCallStart => Kind::ModelCallStart {
            reply: f.id(REPLY),
            model: f.text(Key::new("modelName", "model_name")),
        },
        Type::ModelCallEnd => Kind::ModelCallEnd { reply: f.id(REPLY), usage: usage(f) },
        Type::TextBlockStart
        | Type::TextBlockDelta
        | Type::TextBlockEnd
        | Type::ThinkingBlockStart
        | Type::ThinkingBlockDelta
        | Type::ThinkingBlockEnd
        | Type::DataBlockStart
        | Type::DataBlockDelta
        | Type::DataBlockEnd
        | Type::HintBlock => block_event(event_type, f)?,
        Type::ToolCallStart
        | Type::ToolCallDelta
        | Type::ToolCallEnd
        | Type::ToolResultStart
        | Type::ToolResultTextDelta
        | Type::ToolResultDataDelta
        | Type::ToolResultEnd => tool_event(event_type, f)?,
        Type::ExceedMaxIters => {
            Kind::ExceedMaxIters { max_iters: f.count(Key::new("maxIters", "max_iters")) }
        }
        Type::RequireUserConfirm => {
            Kind::RequireUserConfirm { reply: f.id(REPLY), calls: calls(f)? }
        }
        Type::RequireExternalExecution => {
            Kind::RequireExternalExecution { reply: f.id(REPLY), calls: calls(f)? }
        }
        Type::UserConfirmResult => {
            Kind::UserConfirmResult { reply: f.id(REPLY), results: confirmations(f)? }
        }
        Type::ExternalExecutionResult => {
            Kind::ExternalExecutionResult { reply: f.id(REPLY), results: external_results(f)? }
        }
        Type::RequestStop => Kind::RequestStop {
            reason: f.text(Key::same("reason")),
            generate_reason: f.text(GENERATE_REASON),
        },
        Type::AllToolsDenied => Kind::AllToolsDenied {},
        Type::SubagentExposed => Kind::SubagentExposed {},
        _ => custom(f)?,
    })
}

fn block_event(event_type: Type, f: &mut Fields) -> Result<Kind, WireError> {
    let (reply, block) = (f.id(REPLY), f.id(BLOCK));
    Ok(match event_type {
        Type::TextBlockStart => Kind::TextBlockStart { reply, block },
        Type::TextBlockDelta => {
            Kind::TextBlockDelta { reply, block, delta: f.required_text(DELTA)? }
        }
        Type::TextBlockEnd => Kind::TextBlockEnd { reply, block, text: f.text(Key::same("text")) },
        Type::ThinkingBlockStart => Kind::ThinkingBlockStart { reply, block },
        Type::ThinkingBlockDelta => {
            Kind::ThinkingBlockDelta { reply, block, delta: f.required_text(DELTA)? }
        }
        Type::ThinkingBlockEnd => Kind::ThinkingBlockEnd { reply, block, encrypted: None },
        Type::DataBlockStart => {
            Kind::DataBlockStart { reply, block, media_type: media_type(f), name: f.text(NAME) }
        }
        Type::DataBlockDelta => {
            Kind::DataBlockDelta { reply, block, media_type: media_type(f), data: chunk(f)? }
        }
        Type::DataBlockEnd => Kind::DataBlockEnd { reply, block },
        _ => hint(f),
    })
}

fn tool_event(event_type: Type, f: &mut Fields) -> Result<Kind, WireError> {
    let (reply, call) = (f.id(REPLY), f.id(CALL));
    Ok(match event_type {
        Type::ToolCallStart => Kind::ToolCallStart { reply, call, name: f.id(CALL_NAME) },
        Type::ToolCallDelta => Kind::ToolCallDelta { call, delta: f.required_text(DELTA)? },
        Type::ToolCallEnd => Kind::ToolCallEnd { call, encrypted: None },
        Type::ToolResultStart => Kind::ToolResultStart { reply, call, name: f.id(CALL_NAME) },
        Type::ToolResultTextDelta => {
            Kind::ToolResultTextDelta { call, delta: f.required_text(DELTA)? }
        }
        Type::ToolResultDataDelta => result_data(call, f)?,
        _ => Kind::ToolResultEnd { reply, call, state: required_state(f)? },
    })
}

fn required_state(f: &mut Fields) -> Result<ResultState, WireError> {
    let state = f.value(STATE).ok_or_else(|| f.missing(STATE))?;
    state_of(&state).ok_or_else(|| f.invalid(STATE))
}

fn end_reason(f: &mut Fields) -> EndReason {
    let reason = f.text(Key::new("finishedReason", "finished_reason"));
    let error = f.object(Key::same("error")).map(failure);
    match (reason.as_deref(), error) {
        (Some("error") | None, Some(failure)) => EndReason::Failed(failure),
        (Some("error"), None) => EndReason::Failed(failure(Object::new())),
        (Some("completed"), _) => EndReason::Completed,
        (Some("interrupted"), _) => EndReason::Interrupted,
        (Some("exceed_max_iters"), _) => EndReason::MaxIterations,
        _ => EndReason::Unstated,
    }
}

fn failure(mut error: Object) -> Failure {
    let class = take(&mut error, "type", "type").and_then(text_of);
    let message = take(&mut error, "message", "message").and_then(text_of);
    Failure {
        class: class.unwrap_or_else(|| "unknown".to_owned()),
        message: message.unwrap_or_default(),
    }
}

fn agent_result(f: &mut Fields) -> Result<Kind, WireError> {
    let result = f.value(RESULT).ok_or_else(|| f.missing(RESULT))?;
    let result = decode_msg(result).ok_or_else(|| f.invalid(RESULT))?;
    let reason = result.metadata.get("agentscope_generate_reason").and_then(Value::as_str);
    let generate_reason = reason.map(str::to_owned);
    Ok(Kind::AgentResult { result, generate_reason })
}

fn usage(f: &mut Fields) -> Option<ModelUsage> {
    match f.object(Key::same("usage")) {
        Some(usage) => Some(usage_object(usage)),
        None => flat_usage(f),
    }
}

/// Java's object: what it holds is a report, zeros included.
fn usage_object(mut usage: Object) -> ModelUsage {
    let mut count = |camel, snake| take(&mut usage, camel, snake).as_ref().and_then(count_of);
    ModelUsage {
        input: count("inputTokens", "input_tokens"),
        output: count("outputTokens", "output_tokens"),
        cache_read: count("cachedTokens", "cached_tokens"),
        cache_write: count("cacheCreationTokens", "cache_creation_tokens"),
        reasoning: count("reasoningTokens", "reasoning_tokens"),
        total: count("totalTokens", "total_tokens"),
        seconds: take(&mut usage, "time", "time")
            .and_then(|time| time.as_f64())
            .filter(|seconds| *seconds >= 0.0),
    }
}

/// Python's plain integers, which are 0 when nobody counted. A prompt never has 0 tokens, an
/// answer can.
fn flat_usage(f: &mut Fields) -> Option<ModelUsage> {
    let mut count = |camel, snake| f.count(Key::new(camel, snake));
    let counted = |count: Option<u64>| count.filter(|count| *count > 0);
    let input = counted(count("inputTokens", "input_tokens"));
    let output = count("outputTokens", "output_tokens");
    let cache_read = counted(count("cacheInputTokens", "cache_input_tokens"));
    let cache_write = counted(count("cacheCreationInputTokens", "cache_creation_input_tokens"));
    if input.is_none() && counted(output).is_none() {
        return None;
    }
    Some(ModelUsage { input, output, cache_read, cache_write, ..ModelUsage::default() })
}

fn media_type(f: &mut Fields) -> Option<String> {
    f.text(MEDIA_TYPE).or_else(|| f.text(MIME_TYPE)).filter(|media_type| !media_type.is_empty())
}

/// The bytes of a media block: Java's `delta`, or Python's `data` or `url`.
fn chunk(f: &mut Fields) -> Result<DataChunk, WireError> {
    if let Some(data) = f.text(DATA) {
        return Ok(DataChunk::Base64(data));
    }
    if let Some(url) = f.text(URL) {
        return Ok(DataChunk::Url(url));
    }
    match f.text(DELTA) {
        Some(data) => Ok(DataChunk::Base64(data)),
        None => Err(f.missing(if f.is_python() { DATA } else { DELTA })),
    }
}

/// A part of a tool's answer: Java's `data` is a block, Python's `data` or `url` a text.
fn result_data(call: String, f: &mut Fields) -> Result<Kind, WireError> {
    let block = f.optional_id(BLOCK).filter(|block| !block.is_empty());
    let media_type = media_type(f);
    let name = f.text(NAME);
    let media = |data| ResultData::Media { kind: None, media_type, name, data };
    match f.value(DATA) {
        Some(Value::String(data)) => {
            let data = media(DataChunk::Base64(data));
            Ok(Kind::ToolResultDataDelta { call, block, data })
        }
        Some(value) => {
            // Each of Java's blocks is whole, whatever id it has.
            let data = result_block(value).ok_or_else(|| f.invalid(DATA))?;
            Ok(Kind::ToolResultDataDelta { call, block: None, data })
        }
        None => {
            let url = f.text(URL).ok_or_else(|| f.missing(DATA))?;
            Ok(Kind::ToolResultDataDelta { call, block, data: media(DataChunk::Url(url)) })
        }
    }
}

fn result_block(value: Value) -> Option<ResultData> {
    match decode_block(value)? {
        Block::Text { text } => Some(ResultData::Text(text)),
        Block::Media { kind, source, name, .. } => {
            let media_type = source.media_type().map(str::to_owned);
            let kind = media_type.is_none().then_some(kind);
            Some(ResultData::Media { kind, media_type, name, data: source.into() })
        }
        _ => None,
    }
}

fn hint(f: &mut Fields) -> Kind {
    let source = f
        .text(Key::new("hintSource", "hint_source"))
        .or_else(|| if f.is_python() { f.text(Key::same("source")) } else { None });
    let (label, sublabel) = source.map_or((None, None), hint_labels);
    Kind::HintBlock { label, sublabel, text: hint_text(f.value(Key::same("hint"))) }
}

/// Python's source is a text that often holds JSON with two labels.
fn hint_labels(source: String) -> (Option<String>, Option<String>) {
    if source.is_empty() {
        return (None, None);
    }
    match parse_object(&source) {
        Some(mut labels) => {
            let mut label = |key| take(&mut labels, key, key).and_then(text_of);
            (label("label"), label("sublabel"))
        }
        None => (Some(source), None),
    }
}

fn calls(f: &mut Fields) -> Result<Vec<Call>, WireError> {
    let calls: Option<Vec<Call>> = f.required_list(CALLS)?.into_iter().map(decode_call).collect();
    // A request that is left out would never be answered, so one bad call spoils the event.
    calls.ok_or_else(|| f.invalid(CALLS))
}

fn confirmations(f: &mut Fields) -> Result<Vec<Confirmation>, WireError> {
    let results: Option<Vec<Confirmation>> =
        f.required_list(CONFIRMS)?.into_iter().map(confirmation).collect();
    results.ok_or_else(|| f.invalid(CONFIRMS))
}

fn confirmation(value: Value) -> Option<Confirmation> {
    let mut map = object_of(value)?;
    let confirmed = take(&mut map, "confirmed", "confirmed") == Some(Value::Bool(true));
    let call = decode_call(take(&mut map, "toolCall", "tool_call")?)?;
    Some(Confirmation { confirmed, call })
}

fn external_results(f: &mut Fields) -> Result<Vec<ExternalResult>, WireError> {
    let list = match f.value(RESULTS).or_else(|| f.value(RESULTS_OTHER)) {
        Some(Value::Array(list)) => list,
        Some(_) => return Err(f.invalid(RESULTS)),
        None => return Err(f.missing(RESULTS)),
    };
    let results: Option<Vec<ExternalResult>> = list.into_iter().map(external_result).collect();
    results.ok_or_else(|| f.invalid(RESULTS))
}

fn external_result(value: Value) -> Option<ExternalResult> {
    match decode_block(value)? {
        Block::ToolResult { call_id, name, output, state, .. } => {
            Some(ExternalResult { call_id, name, output, state })
        }
        _ => None,
    }
}

fn custom(f: &mut Fields) -> Result<Kind, WireError> {
    let name = f.required_text(NAME)?;
    let value = f.value(Key::same("value")).unwrap_or(Value::Null);
    Ok(match read_reserved(&name, value) {
        Ok(kind) => kind,
        Err(value) => Kind::Custom { name, value },
    })
}
