//! Model calls: usage of the run, `token_usage`, steps.

use agui_protocol::{Body, TokenUsage};
use serde_json::{Value, json};

use super::context::{StreamContext, object};
use crate::{
    model::{AgentEvent, AgentEventKind, event::ModelUsage, value::MAX_COUNT},
    sequencer::OwnerId,
};

/// Name of the step around a model call.
const MODEL_STEP: &str = "model_call";
/// Name of the step around a round of tools.
const TOOL_STEP: &str = "tool_round";

/// What the model calls of a run reported, children included (SUB-17).
#[derive(Default)]
pub(super) struct Usage {
    by_model: Vec<TokenUsage>,
    cumulative: ModelUsage,
    /// Model of the call under way, by reply.
    models: Vec<(String, String)>,
}

impl Usage {
    /// One entry per model, for the terminal event.
    pub(super) fn entries(&self) -> Vec<TokenUsage> {
        let mut entries = self.by_model.clone();
        entries.iter_mut().for_each(drop_contradictions);
        entries
    }

    fn add(&mut self, model: Option<&str>, usage: &ModelUsage) {
        let usage = &whole(usage);
        let at = self.by_model.iter().position(|entry| entry.model.as_deref() == model);
        let at = at.unwrap_or_else(|| {
            let model = model.map(str::to_owned);
            self.by_model.push(TokenUsage { model, ..TokenUsage::default() });
            self.by_model.len() - 1
        });
        let entry = &mut self.by_model[at];
        add(&mut entry.input_tokens, usage.input);
        add(&mut entry.output_tokens, usage.output);
        add(&mut entry.reasoning_tokens, usage.reasoning);
        add(&mut entry.cached_input_tokens, usage.cache_read);
        add(&mut entry.cache_write_input_tokens, usage.cache_write);
        entry.total_tokens = sum(entry.input_tokens, entry.output_tokens);
        let all = &mut self.cumulative;
        add(&mut all.input, usage.input);
        add(&mut all.output, usage.output);
        add(&mut all.cache_read, usage.cache_read);
        add(&mut all.total, total(usage));
        if let Some(seconds) = usage.seconds {
            *all.seconds.get_or_insert(0.0) += seconds;
        }
    }

    fn start(&mut self, reply: &str, model: Option<&str>) {
        self.models.retain(|(of, _)| of != reply);
        if let Some(model) = model {
            self.models.push((reply.to_owned(), model.to_owned()));
        }
    }

    fn model(&self, reply: &str) -> Option<String> {
        self.models.iter().find(|(of, _)| of == reply).map(|(_, model)| model.clone())
    }
}

/// Counts are integers up to 2^53-1 (LIFE-20); a sum beyond stays there.
fn add(to: &mut Option<u64>, more: Option<u64>) {
    if let Some(more) = more {
        *to = Some(to.unwrap_or(0).saturating_add(more).min(MAX_COUNT));
    }
}

fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    Some(a?.saturating_add(b?).min(MAX_COUNT))
}

/// A part cannot be more than its whole (LIFE-18). Where it is, because calls reported the part
/// without the whole, it is unknown.
fn drop_contradictions(entry: &mut TokenUsage) {
    let (cached, written) = (entry.cached_input_tokens, entry.cache_write_input_tokens);
    let parts = cached.unwrap_or(0).saturating_add(written.unwrap_or(0));
    if entry.input_tokens.is_some_and(|input| parts > input) {
        entry.cached_input_tokens = None;
        entry.cache_write_input_tokens = None;
    }
    if let (Some(reasoning), Some(output)) = (entry.reasoning_tokens, entry.output_tokens)
        && reasoning > output
    {
        entry.reasoning_tokens = None;
    }
}

/// Parts are counted in their wholes: where a model reports more of them than of the whole, it
/// counted them beside it (LIFE-19).
fn whole(usage: &ModelUsage) -> ModelUsage {
    let mut usage = usage.clone();
    let cached = usage.cache_read.unwrap_or(0).saturating_add(usage.cache_write.unwrap_or(0));
    for (whole, parts) in
        [(&mut usage.input, cached), (&mut usage.output, usage.reasoning.unwrap_or(0))]
    {
        *whole = whole.map(|all| if parts > all { all.saturating_add(parts) } else { all });
    }
    usage
}

fn total(usage: &ModelUsage) -> Option<u64> {
    usage.total.or_else(|| sum(usage.input, usage.output))
}

pub(super) fn convert(event: &AgentEvent, context: &mut StreamContext) {
    match &event.kind {
        AgentEventKind::ModelCallStart { reply, model } => {
            context.usage.start(reply, model.as_deref());
            let Some(owner) = context.owner_for_model_call(event) else { return };
            context.pay_owed();
            context.texts.new_model_call(owner);
            if !context.is_custom_child(owner) {
                start_model_call(owner, context);
            }
        }
        AgentEventKind::ModelCallEnd { reply, usage } => {
            let owner = context.owner_for_model_call(event);
            let owner = owner.filter(|owner| !context.is_custom_child(*owner));
            if let Some(owner) = owner {
                context.sequencer.flush_call_ends(owner);
            }
            if let Some(usage) = usage {
                report(event, owner.unwrap_or(OwnerId::ROOT), reply, usage, context);
            }
            if let (true, Some(owner)) = (context.options.emit_step_events, owner) {
                context.sequencer.finish_step(owner, MODEL_STEP);
            }
        }
        _ => {}
    }
}

/// Nothing that is open goes on, and calls from now on are other calls.
fn start_model_call(owner: OwnerId, context: &mut StreamContext) {
    context.sequencer.new_model_call(owner);
    if context.options.emit_step_events {
        context.sequencer.finish_step(owner, TOOL_STEP);
        context.sequencer.start_step(owner, MODEL_STEP);
    }
}

/// Counts a call, and says so as CUSTOM `token_usage` if that is on.
fn report(
    event: &AgentEvent,
    owner: OwnerId,
    reply: &str,
    usage: &ModelUsage,
    context: &mut StreamContext,
) {
    let model = context.usage.model(reply);
    context.usage.add(model.as_deref(), usage);
    if !context.options.emit_token_usage {
        return;
    }
    let value = json!({
        "delta": counts(usage),
        "cumulative": counts(&context.usage.cumulative),
        "modelCall": object([
            ("replyId", Some(Value::from(reply))),
            ("model", model.map(Value::from)),
            ("source", event.source.as_deref().map(Value::from)),
        ]),
    });
    let name = "token_usage".to_owned();
    context.sequencer.emit(owner, |subagent_run_id| Body::Custom { name, value, subagent_run_id });
}

fn counts(usage: &ModelUsage) -> Value {
    Value::Object(object([
        ("inputTokens", usage.input.map(Value::from)),
        ("outputTokens", usage.output.map(Value::from)),
        ("cachedTokens", usage.cache_read.map(Value::from)),
        ("totalTokens", total(usage).map(Value::from)),
        ("time", usage.seconds.map(Value::from)),
    ]))
}

impl StreamContext {
    /// The owner whose turn a model call begins or ends; a child that is not there is not made
    /// for it.
    fn owner_for_model_call(&mut self, event: &AgentEvent) -> Option<OwnerId> {
        match &event.source {
            None => Some(OwnerId::ROOT),
            Some(source) => self.known_child(event, source),
        }
    }

    /// A tool begins to answer.
    pub(super) fn start_tool_round(&mut self, owner: OwnerId) {
        if self.options.emit_step_events {
            self.sequencer.start_step(owner, TOOL_STEP);
        }
    }
}
