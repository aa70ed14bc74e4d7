//! Reading messages, content parts and tool calls of a run input.

use serde_json::Value;

use super::{
    InputError,
    cursor::{Members, Null, Path, Warnings, list},
};
use crate::{
    Content, ContentPart, Message, PartSource, ToolCall,
    message::{FunctionCall, MediaPart, MessageBase, ToolCallKind},
};

/// One message, or `None` when its role is unknown (IN-4).
pub(super) fn message(
    value: Value,
    path: &Path<'_>,
    warnings: &mut Warnings,
) -> Result<Option<Message>, InputError> {
    let mut members = Members::open(value, path)?;
    let role = members.string("role")?;
    let message = match role.as_str() {
        "user" => user(&mut members, warnings)?,
        "assistant" => assistant(&mut members, warnings)?,
        "tool" => tool(&mut members, warnings)?,
        "system" => {
            let (id, name, content) = instructions(&mut members)?;
            Message::System { id: id.into(), name, content, base: base(&mut members)? }
        }
        "developer" => {
            let (id, name, content) = instructions(&mut members)?;
            Message::Developer { id: id.into(), name, content, base: base(&mut members)? }
        }
        "reasoning" => Message::Reasoning {
            id: members.string("id")?.into(),
            content: members.string("content")?,
            base: base(&mut members)?,
        },
        "activity" => Message::Activity {
            id: members.string("id")?.into(),
            activity_type: members.string("activityType")?,
            content: members.object("content")?,
            base: activity_base(&mut members)?,
        },
        _ => {
            warnings.add(path, "message with an unknown role, ignored");
            return Ok(None);
        }
    };
    members.finish(warnings);
    Ok(Some(message))
}

fn user(members: &mut Members<'_>, warnings: &mut Warnings) -> Result<Message, InputError> {
    Ok(Message::User {
        id: members.string("id")?.into(),
        name: members.optional_string("name")?,
        content: content(members, warnings)?,
        base: base(members)?,
    })
}

fn assistant(members: &mut Members<'_>, warnings: &mut Warnings) -> Result<Message, InputError> {
    let calls_path = members.at("toolCalls");
    Ok(Message::Assistant {
        id: members.string("id")?.into(),
        name: members.optional_string("name")?,
        content: members.optional_string("content")?,
        tool_calls: match members.take("toolCalls") {
            Some(calls) => {
                list(calls, &calls_path, |value, path| tool_call(value, path, warnings).map(Some))?
            }
            None => Vec::new(),
        },
        base: base(members)?,
    })
}

fn tool(members: &mut Members<'_>, warnings: &mut Warnings) -> Result<Message, InputError> {
    Ok(Message::Tool {
        id: members.string("id")?.into(),
        tool_call_id: members.string("toolCallId")?.into(),
        content: content(members, warnings)?,
        error: members.optional_string("error")?,
        base: base(members)?,
    })
}

/// Id, name and content of a system or developer message.
fn instructions(members: &mut Members<'_>) -> Result<(String, Option<String>, String), InputError> {
    Ok((members.string("id")?, members.optional_string("name")?, members.string("content")?))
}

fn base(members: &mut Members<'_>) -> Result<MessageBase, InputError> {
    let encrypted_value = members.optional_string("encryptedValue")?;
    Ok(MessageBase { encrypted_value, ..activity_base(members)? })
}

/// Activity messages have no `encryptedValue`.
fn activity_base(members: &mut Members<'_>) -> Result<MessageBase, InputError> {
    Ok(MessageBase {
        encrypted_value: None,
        subagent_run_id: members.optional_string("subagentRunId")?.map(Into::into),
        metadata: members.optional_object("metadata")?,
    })
}

fn tool_call(
    value: Value,
    path: &Path<'_>,
    warnings: &mut Warnings,
) -> Result<ToolCall, InputError> {
    let mut members = Members::open(value, path)?;
    let id = members.string("id")?.into();
    if members.string("type")? != "function" {
        return Err(members.at("type").invalid("expected \"function\", found another string"));
    }
    let function_path = members.at("function");
    let function = members.required("function", "an object with name and arguments")?;
    let function = function_call(function, &function_path, warnings)?;
    let call = ToolCall {
        id,
        kind: ToolCallKind::Function,
        function,
        encrypted_value: members.optional_string("encryptedValue")?,
        metadata: members.optional_object("metadata")?,
    };
    members.finish(warnings);
    Ok(call)
}

fn function_call(
    value: Value,
    path: &Path<'_>,
    warnings: &mut Warnings,
) -> Result<FunctionCall, InputError> {
    let mut members = Members::open(value, path)?;
    let call =
        FunctionCall { name: members.string("name")?, arguments: members.string("arguments")? };
    members.finish(warnings);
    Ok(call)
}

const CONTENT: &str = "a string or a list of content parts";

/// Text or parts (IN-13).
fn content(members: &mut Members<'_>, warnings: &mut Warnings) -> Result<Content, InputError> {
    let value = members.required("content", CONTENT)?;
    let path = members.at("content");
    match value {
        Value::String(text) => Ok(Content::Text(text)),
        Value::Array(_) => {
            list(value, &path, |value, path| part(value, path, warnings)).map(Content::Parts)
        }
        other => Err(path.wrong_type(CONTENT, &other)),
    }
}

/// One part, or `None` when its type, or the type of its source, is unknown (IN-4).
fn part(
    value: Value,
    path: &Path<'_>,
    warnings: &mut Warnings,
) -> Result<Option<ContentPart>, InputError> {
    let mut members = Members::open(value, path)?;
    let kind = members.string("type")?;
    let build: fn(MediaPart) -> ContentPart = match kind.as_str() {
        "text" => return text_part(members, warnings).map(Some),
        "image" => ContentPart::Image,
        "audio" => ContentPart::Audio,
        "video" => ContentPart::Video,
        "document" => ContentPart::Document,
        _ => {
            warnings.add(path, "content part of an unknown type, ignored");
            return Ok(None);
        }
    };
    let source_path = members.at("source");
    let source = members.required("source", "an object with the part's source")?;
    let Some(source) = source_of(source, &source_path, warnings)? else {
        warnings.add(path, "content part with a source of an unknown type, ignored");
        return Ok(None);
    };
    let id = members.optional_string("id")?;
    let metadata = members.optional_any("metadata", Null::Absent)?;
    members.finish(warnings);
    Ok(Some(build(MediaPart { id, source, metadata })))
}

fn text_part(mut members: Members<'_>, warnings: &mut Warnings) -> Result<ContentPart, InputError> {
    let part = ContentPart::Text {
        id: members.optional_string("id")?,
        text: members.string("text")?,
        metadata: members.optional_any("metadata", Null::Refused)?,
    };
    members.finish(warnings);
    Ok(part)
}

/// The source of a media part, or `None` when its type is unknown.
fn source_of(
    value: Value,
    path: &Path<'_>,
    warnings: &mut Warnings,
) -> Result<Option<PartSource>, InputError> {
    let mut members = Members::open(value, path)?;
    let kind = members.string("type")?;
    let source = match kind.as_str() {
        "data" => PartSource::Data {
            value: members.string("value")?,
            mime_type: members.string("mimeType")?,
        },
        "url" => PartSource::Url {
            value: members.string("value")?,
            mime_type: members.optional_string("mimeType")?,
        },
        "file" => PartSource::File {
            value: members.string("value")?,
            provider: members.optional_string("provider")?,
            mime_type: members.optional_string("mimeType")?,
        },
        _ => return Ok(None),
    };
    members.finish(warnings);
    Ok(Some(source))
}
