//! Reading the run input itself, with its tools, context and answers to interrupts.

use std::sync::Arc;

use serde_json::Value;

use super::{
    Context, InputError, Parsed, RunAgentInput, Tool,
    cursor::{Members, Null, Path, Warnings, list},
    message::message,
};
use crate::{ResumeEntry, ResumeStatus};

/// Reads a whole run input.
pub(super) fn run_agent_input(value: Value) -> Result<Parsed, InputError> {
    let mut warnings = Warnings::default();
    let root = Path::Root;
    let mut members = Members::open(value, &root)?;
    let input = RunAgentInput {
        thread_id: members.string("threadId")?.into(),
        run_id: members.string("runId")?.into(),
        protocol_version: protocol_version(&mut members)?,
        parent_run_id: members.optional_string("parentRunId")?.map(Into::into),
        state: members.optional_any("state", Null::Absent)?.map(Arc::new),
        messages: {
            let value = members.required("messages", "a list of messages")?;
            list(value, &members.at("messages"), |value, path| message(value, path, &mut warnings))?
        },
        tools: optional_list(&mut members, "tools", &mut warnings, tool)?,
        context: optional_list(&mut members, "context", &mut warnings, context)?,
        forwarded_props: members.optional_any("forwardedProps", Null::Absent)?,
        resume: optional_list(&mut members, "resume", &mut warnings, resume_entry)?,
    };
    members.finish(&mut warnings);
    Ok(Parsed { input, warnings: warnings.into_vec() })
}

/// A `null` is a client that has nothing to declare, which is what leaving it out means (VER-7).
fn protocol_version(members: &mut Members<'_>) -> Result<Option<String>, InputError> {
    match members.take("protocolVersion") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(version)) => Ok(Some(version)),
        Some(other) => Err(members.at("protocolVersion").wrong_type("a string", &other)),
    }
}

fn optional_list<T>(
    members: &mut Members<'_>,
    key: &'static str,
    warnings: &mut Warnings,
    read: fn(Value, &Path<'_>, &mut Warnings) -> Result<T, InputError>,
) -> Result<Vec<T>, InputError> {
    let Some(value) = members.take(key) else { return Ok(Vec::new()) };
    list(value, &members.at(key), |value, path| read(value, path, warnings).map(Some))
}

fn tool(value: Value, path: &Path<'_>, warnings: &mut Warnings) -> Result<Tool, InputError> {
    let mut members = Members::open(value, path)?;
    let tool = Tool {
        name: members.string("name")?,
        description: members.string("description")?,
        parameters: members.optional_any("parameters", Null::Absent)?,
        metadata: members.optional_object("metadata")?,
    };
    members.finish(warnings);
    Ok(tool)
}

fn context(value: Value, path: &Path<'_>, warnings: &mut Warnings) -> Result<Context, InputError> {
    let mut members = Members::open(value, path)?;
    let context =
        Context { description: members.string("description")?, value: members.string("value")? };
    members.finish(warnings);
    Ok(context)
}

fn resume_entry(
    value: Value,
    path: &Path<'_>,
    warnings: &mut Warnings,
) -> Result<ResumeEntry, InputError> {
    let mut members = Members::open(value, path)?;
    let interrupt_id = members.string("interruptId")?.into();
    let status = match members.string("status")?.as_str() {
        "resolved" => ResumeStatus::Resolved,
        "cancelled" => ResumeStatus::Cancelled,
        _ => {
            return Err(members
                .at("status")
                .invalid("expected \"resolved\" or \"cancelled\", found another string"));
        }
    };
    let entry = ResumeEntry {
        interrupt_id,
        status,
        payload: members.optional_any("payload", Null::Absent)?,
        metadata: members.optional_object("metadata")?,
    };
    members.finish(warnings);
    Ok(entry)
}
