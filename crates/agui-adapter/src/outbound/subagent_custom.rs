//! A child shown as CUSTOM `subagent.*` events, for clients that know no sub-agents.

use agui_protocol::Body;
use serde_json::{Value, json};

use super::{
    context::{StreamContext, object},
    interrupt,
    subagent::{CustomCall, child_failure},
    tool::ResultContent,
};
use crate::{
    model::{
        AgentEvent, AgentEventKind,
        event::{Call, ResultState},
    },
    options::SubagentEvents,
    sequencer::{OwnerEnd, OwnerId},
};

/// Converts a child's event, if children are shown as CUSTOM events. `false` = the converter of
/// the event's type has to do it: usage and shared state are the run's, whoever reports them.
pub(super) fn convert_child_custom(event: &AgentEvent, context: &mut StreamContext) -> bool {
    let (SubagentEvents::Custom, Some(source)) = (context.subagents, &event.source) else {
        return false;
    };
    match &event.kind {
        AgentEventKind::ModelCallStart { .. }
        | AgentEventKind::ModelCallEnd { .. }
        | AgentEventKind::State { .. } => return false,
        AgentEventKind::AgentStart { name, .. } => {
            let at = context.begin_child(event, source, name);
            let name = context.children.list[at].name.clone();
            send(at, "lifecycle", "AGENT_START", &[("name", name.into())], context);
        }
        AgentEventKind::AgentEnd { reason, .. } => {
            if let Some(at) = context.find_child(event, source) {
                end_calls(at, context);
                let error = match reason {
                    crate::model::event::EndReason::Failed(failure) => {
                        let failure = child_failure(event.origin, failure);
                        Some(json!({ "message": failure.message, "code": failure.code }))
                    }
                    _ => None,
                };
                send_end(at, error, context);
                context.end_child(event, source, reason);
            }
        }
        _ => convert_content(event, context),
    }
    true
}

fn convert_content(event: &AgentEvent, context: &mut StreamContext) {
    let owner = context.owner_of(event);
    let Some(at) = context.children.place(owner) else {
        return;
    };
    match &event.kind {
        AgentEventKind::ToolCallStart { call, name, .. } => {
            context.pay_owed();
            start_call(at, call, name, context);
        }
        AgentEventKind::ToolCallDelta { call, delta } => {
            if let Some(known) = find_call(at, call, context) {
                known.arguments.push_str(delta);
                // Late arguments: the end is sent again, with all of them.
                known.end_held |= known.ended && !delta.is_empty();
                known.ended &= delta.is_empty();
            }
        }
        AgentEventKind::ToolCallEnd { call, .. } => {
            if let Some(known) = find_call(at, call, context) {
                known.end_held |= !known.ended;
            }
        }
        _ => {
            flush_ends(at, context);
            convert_other(at, owner, event, context);
        }
    }
}

fn convert_other(at: usize, owner: OwnerId, event: &AgentEvent, context: &mut StreamContext) {
    match &event.kind {
        AgentEventKind::TextBlockDelta { delta, .. } if !delta.is_empty() => {
            context.texts.mark_spoken(owner);
            say(at, "text", "TEXT_BLOCK_DELTA", delta, context);
        }
        AgentEventKind::ThinkingBlockDelta { delta, .. }
            if !delta.is_empty() && context.options.enable_reasoning =>
        {
            say(at, "thinking", "THINKING_BLOCK_DELTA", delta, context);
        }
        AgentEventKind::ToolResultStart { call, name, .. } => {
            context.results.start(owner, call, name);
        }
        AgentEventKind::ToolResultTextDelta { call, delta } => {
            context.results.add_text(owner, call, delta);
        }
        AgentEventKind::ToolResultDataDelta { call, block, data } => {
            context.results.add_data(owner, call, block.as_ref(), data);
        }
        AgentEventKind::ToolResultEnd { reply, call, state } => {
            end_result(at, reply, call, *state, context);
        }
        AgentEventKind::RequireUserConfirm { calls, .. } => {
            interrupt::convert(event, context);
            let listed: Vec<Value> = calls.iter().map(listed).collect();
            let members = [("toolCallCount", calls.len().into()), ("toolCalls", listed.into())];
            send(at, "require_confirm", "REQUIRE_USER_CONFIRM", &members, context);
        }
        AgentEventKind::RequireExternalExecution { .. }
        | AgentEventKind::UserConfirmResult { .. }
        | AgentEventKind::ExternalExecutionResult { .. }
        | AgentEventKind::Question { .. } => interrupt::convert(event, context),
        AgentEventKind::AgentResult { result, generate_reason } => {
            if let Some(text) = context.news(owner, result, generate_reason.as_deref()) {
                context.texts.mark_spoken(owner);
                say(at, "text", "TEXT_BLOCK_DELTA", &text, context);
            }
        }
        _ => {}
    }
}

fn listed(call: &Call) -> Value {
    json!({ "toolCallId": call.id, "toolName": call.name, "arguments": call.arguments })
}

fn find_call<'a>(
    at: usize,
    id: &str,
    context: &'a mut StreamContext,
) -> Option<&'a mut CustomCall> {
    context.children.list[at].calls.iter_mut().rev().find(|call| call.id == id)
}

fn start_call(at: usize, id: &str, name: &str, context: &mut StreamContext) {
    if find_call(at, id, context).is_some_and(|call| !call.answered && call.name == name) {
        return;
    }
    context.children.list[at].calls.push(CustomCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: String::new(),
        end_held: false,
        ended: false,
        answered: false,
    });
    let members = [("toolCallId", id.into()), ("toolName", name.into())];
    send(at, "tool_call", "TOOL_CALL_START", &members, context);
}

/// No call goes on behind the end of its child.
fn end_calls(at: usize, context: &mut StreamContext) {
    for call in &mut context.children.list[at].calls {
        call.end_held |= !call.ended;
    }
    flush_ends(at, context);
}

/// Sends the ends of calls whose arguments are complete; once more if arguments came later.
fn flush_ends(at: usize, context: &mut StreamContext) {
    let calls = &mut context.children.list[at].calls;
    let mut ended = Vec::new();
    for call in calls.iter_mut().filter(|call| call.end_held) {
        call.end_held = false;
        call.ended = true;
        ended.push((call.id.clone(), call.name.clone(), call.arguments.clone()));
    }
    for (id, name, arguments) in ended {
        let members =
            [("toolCallId", id.into()), ("toolName", name.into()), ("arguments", arguments.into())];
        send(at, "tool_call", "TOOL_CALL_END", &members, context);
    }
}

fn end_result(at: usize, reply: &str, call: &str, state: ResultState, context: &mut StreamContext) {
    let owner = context.children.list[at].owner;
    if state == ResultState::Running {
        let (name, text) = context.results.suspended(owner, call);
        context.suspend(owner, reply, call, &name, text);
        return;
    }
    let (name, content) = context.results.take(owner, call).unwrap_or_default();
    let known = find_call(at, call, context).map(|call| {
        call.answered = true;
        call.end_held |= !call.ended;
        call.name.clone()
    });
    flush_ends(at, context);
    context.asks.answered(owner, call);
    context.forget_owed(owner, call);
    context.note_child_result(owner, call, &content, state);
    let name = known.unwrap_or(name);
    send(at, "tool_result", "TOOL_RESULT_END", &result(call, &name, content, state), context);
}

fn result(
    call: &str,
    name: &str,
    content: ResultContent,
    state: ResultState,
) -> [(&'static str, Value); 4] {
    let content = serde_json::to_value(content.into_content()).unwrap_or_default();
    [
        ("toolCallId", call.into()),
        ("toolName", name.into()),
        ("state", state.as_str().to_ascii_uppercase().into()),
        ("content", content),
    ]
}

fn send_end(at: usize, error: Option<Value>, context: &mut StreamContext) {
    let mut members = vec![("name", Value::from(context.children.list[at].name.as_str()))];
    members.extend(error.map(|error| ("error", error)));
    send(at, "lifecycle", "AGENT_END", &members, context);
}

/// Sends more of what the child says, behind the answers that it left out.
fn say(at: usize, event: &str, agent_event: &str, delta: &str, context: &mut StreamContext) {
    context.pay_owed();
    send(at, event, agent_event, &[("delta", delta.into())], context);
}

fn send(
    at: usize,
    event: &str,
    agent_event: &str,
    members: &[(&str, Value)],
    context: &mut StreamContext,
) {
    let child = &context.children.list[at];
    let (source, id) = (child.source_text().to_owned(), child.id.as_str().to_owned());
    send_for(&source, Some(&id), event, agent_event, members, context);
}

fn send_for(
    source: &str,
    id: Option<&str>,
    event: &str,
    agent_event: &str,
    members: &[(&str, Value)],
    context: &mut StreamContext,
) {
    let mut value = object([
        ("source", Some(source.into())),
        ("type", Some(agent_event.into())),
        ("subagentRunId", id.map(Value::from)),
    ]);
    value.extend(members.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
    let (name, value) = (format!("subagent.{event}"), Value::Object(value));
    let tag = |subagent_run_id| Body::Custom { name, value, subagent_run_id };
    context.sequencer.emit(OwnerId::ROOT, tag);
}

impl StreamContext {
    /// The answer to a child's call that the child did not send itself.
    pub(super) fn send_owed_by_custom_child(
        &mut self,
        source: &str,
        call: &str,
        name: &str,
        content: ResultContent,
        state: ResultState,
    ) {
        let child = self.children.latest(source);
        let id = child.map(|child| child.id.as_str().to_owned());
        let members = result(call, name, content, state);
        send_for(source, id.as_deref(), "tool_result", "TOOL_RESULT_END", &members, self);
    }

    /// A child shown as CUSTOM events that is still open at the end of the run ends there.
    pub(super) fn end_child_shown_as_custom(&mut self, at: usize, end: &OwnerEnd) {
        if self.subagents != SubagentEvents::Custom {
            return;
        }
        end_calls(at, self);
        let error = match end {
            OwnerEnd::Failed { message, code } => Some(json!({ "message": message, "code": code })),
            _ => None,
        };
        send_end(at, error, self);
    }
}
