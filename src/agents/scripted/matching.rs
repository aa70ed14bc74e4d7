//! Which turn of a scripted agent a run plays. Knows conditions only, not what is played.

use agui_adapter::{
    model::{Block, Msg, Role},
    resume::{Decision, Verdict},
};
use agui_protocol::ResumeStatus;

use crate::{
    agents::AgentRequest,
    config::agents::{ResumeCondition, When},
};

/// Whether every condition that `when` gives holds.
pub(super) fn holds(when: &When, request: &AgentRequest) -> bool {
    let text = when.text.as_deref().is_none_or(|text| says(&request.messages, text));
    let resume = when.resume.is_none_or(|resume| answers(&request.decisions, resume));
    let result =
        when.tool_result.as_deref().is_none_or(|tool| ends_with_result_of(&request.messages, tool));
    text && resume && result
}

/// The text of the last user message.
pub(super) fn last_user_text(messages: &[Msg]) -> Option<String> {
    messages.iter().rfind(|message| message.role == Role::User).map(Msg::text_content)
}

fn says(messages: &[Msg], text: &str) -> bool {
    last_user_text(messages).is_some_and(|said| said.to_lowercase().contains(&text.to_lowercase()))
}

fn answers(decisions: &[Decision], condition: ResumeCondition) -> bool {
    let resolved = |decision: &Decision| decision.status == ResumeStatus::Resolved;
    match condition {
        ResumeCondition::Any => !decisions.is_empty(),
        ResumeCondition::Approved => {
            let approved =
                |decision: &Decision| matches!(decision.verdict, Verdict::Approved { .. });
            !decisions.is_empty() && decisions.iter().all(approved)
        }
        // A cancelled approval is a denial too, for the agent; here it is told apart, else no
        // script could tell "no" from "never mind".
        ResumeCondition::Denied => decisions.iter().any(|decision| {
            resolved(decision) && matches!(decision.verdict, Verdict::Denied { .. })
        }),
        ResumeCondition::Cancelled => {
            decisions.iter().any(|decision| decision.status == ResumeStatus::Cancelled)
        }
        ResumeCondition::Answered => decisions.iter().any(|decision| {
            resolved(decision)
                && matches!(decision.verdict, Verdict::Result { .. } | Verdict::Answer { .. })
        }),
    }
}

fn ends_with_result_of(messages: &[Msg], tool: &str) -> bool {
    let Some((last, earlier)) = messages.split_last() else { return false };
    last.content.iter().any(|block| match block {
        Block::ToolResult { call_id, name, .. } if name.is_empty() => {
            called_name(earlier, call_id) == Some(tool)
        }
        Block::ToolResult { name, .. } => name == tool,
        _ => false,
    })
}

/// The name under which a call was made; results need not repeat it.
fn called_name<'a>(messages: &'a [Msg], call_id: &str) -> Option<&'a str> {
    let blocks = messages.iter().rev().flat_map(|message| &message.content);
    blocks.into_iter().find_map(|block| match block {
        Block::ToolUse { call, .. } if call.id == call_id => Some(call.name.as_str()),
        _ => None,
    })
}
