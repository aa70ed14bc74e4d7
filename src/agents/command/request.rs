//! The one line that a program reads: the run, the history, the answers, what it parked and kept.
//!
//! A public format, described in README.md: members may be added, none may change.

use std::borrow::Cow;

use agui_adapter::{
    model::wire::python_msgs,
    options::ToolMergeMode,
    resume::{Decision, InterruptKind, StoredCall, Verdict},
    runtime_context::ContextValues,
};
use agui_protocol::RunAgentInput;
use serde::Serialize;
use serde_json::Value;

use crate::agents::AgentRequest;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    input: Cow<'a, RunAgentInput>,
    messages: Vec<Value>,
    state: &'a Value,
    context: &'a ContextValues,
    resume: Vec<Answer<'a>>,
    parked: Option<&'a Value>,
    kept: Option<&'a Value>,
}

/// One answered interrupt.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    interrupt_id: &'a str,
    kind: InterruptKind,
    reply_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    question_id: Option<&'a str>,
    #[serde(flatten)]
    call: Option<AnsweredCall<'a>>,
    #[serde(flatten)]
    verdict: Said<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<&'a Value>,
    /// An earlier run took this answer and the call has its result, which stands in `messages`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    settled: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AnsweredCall<'a> {
    tool_call_id: &'a str,
    tool_name: &'a str,
    arguments: &'a str,
}

#[derive(Serialize)]
#[serde(tag = "verdict", rename_all = "lowercase")]
enum Said<'a> {
    Approved {
        edited: bool,
        rules: &'a [Value],
    },
    Denied {
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<&'a str>,
    },
    Result {
        text: &'a str,
        cancelled: bool,
    },
    Answer {},
    Declined {},
}

/// The line, its end included.
pub(super) fn line(request: &AgentRequest, tools: ToolMergeMode) -> serde_json::Result<Vec<u8>> {
    let mut input = Cow::Borrowed(&*request.input);
    if tools == ToolMergeMode::AgentOnly && !input.tools.is_empty() {
        input.to_mut().tools.clear();
    }
    let mut line = serde_json::to_vec(&Line {
        input,
        messages: python_msgs(&request.messages),
        state: &request.state,
        context: request.context.resolved(),
        resume: request.decisions.iter().map(answer).collect(),
        parked: request.parked.as_deref(),
        kept: request.kept.as_deref(),
    })?;
    line.push(b'\n');
    Ok(line)
}

fn answer(decision: &Decision) -> Answer<'_> {
    let Decision { open, payload, verdict, settled, .. } = decision;
    let (call, verdict) = match verdict {
        Verdict::Approved { call, edited, rules } => {
            (Some(call), Said::Approved { edited: *edited, rules })
        }
        Verdict::Denied { call, reason } => {
            (Some(call), Said::Denied { reason: reason.as_deref() })
        }
        Verdict::Result { call, text, answered } => {
            (Some(call), Said::Result { text, cancelled: !answered })
        }
        Verdict::Answer { payload: Some(_) } => (None, Said::Answer {}),
        Verdict::Answer { payload: None } => (None, Said::Declined {}),
    };
    Answer {
        interrupt_id: open.interrupt.id.as_str(),
        kind: open.kind,
        reply_id: &open.reply,
        source: open.source.as_deref(),
        question_id: open.question.as_deref(),
        call: call.map(answered_call),
        verdict,
        payload: payload.as_ref(),
        settled: *settled,
    }
}

fn answered_call(call: &StoredCall) -> AnsweredCall<'_> {
    AnsweredCall { tool_call_id: &call.id, tool_name: &call.name, arguments: &call.arguments }
}

#[cfg(test)]
mod tests {
    use agui_adapter::resume::OpenInterrupt;
    use serde_json::json;

    use super::*;

    fn decision(payload: Option<Value>, verdict: Verdict) -> Decision {
        let open: OpenInterrupt = serde_json::from_value(json!({
            "interrupt": {"id": "i", "reason": "tool_call"}, "kind": "permission_confirm",
            "reply": "r", "source": "main/child",
        }))
        .unwrap();
        let status = serde_json::from_value(json!("resolved")).unwrap();
        Decision { open, status, payload, verdict, settled: false, result: None }
    }

    fn call() -> StoredCall {
        StoredCall { id: "c".to_owned(), name: "f".to_owned(), ..StoredCall::default() }
    }

    /// What the program is told beside the members that every answer has.
    fn told(decision: &Decision) -> Value {
        let mut told = serde_json::to_value(answer(decision)).unwrap();
        let members = told.as_object_mut().unwrap();
        for (key, value) in [
            ("interruptId", "i"),
            ("kind", "permission_confirm"),
            ("replyId", "r"),
            ("source", "main/child"),
        ] {
            assert_eq!(members.shift_remove(key), Some(value.into()), "{key}");
        }
        told
    }

    #[test]
    fn every_verdict_has_its_members() {
        let denied = |reason: Option<&str>| Verdict::Denied {
            call: call(),
            reason: reason.map(str::to_owned),
        };
        let of_call = json!({"toolCallId": "c", "toolName": "f", "arguments": ""});
        let with = |base: &Value, more: Value| {
            let mut members = base.as_object().unwrap().clone();
            members.extend(more.as_object().unwrap().clone());
            Value::Object(members)
        };
        for (decision, expected) in [
            (
                decision(Some(json!({"approved": false})), denied(Some("too late"))),
                with(
                    &of_call,
                    json!({"verdict": "denied", "reason": "too late",
                        "payload": {"approved": false}}),
                ),
            ),
            (decision(None, denied(None)), with(&of_call, json!({"verdict": "denied"}))),
            (
                decision(None, Verdict::Result { call: call(), text: "t".into(), answered: false }),
                with(&of_call, json!({"verdict": "result", "text": "t", "cancelled": true})),
            ),
            (
                decision(Some(json!(1)), Verdict::Answer { payload: Some(json!(1)) }),
                json!({"verdict": "answer", "payload": 1}),
            ),
            (decision(None, Verdict::Answer { payload: None }), json!({"verdict": "declined"})),
        ] {
            assert_eq!(told(&decision), expected);
        }
    }
}
