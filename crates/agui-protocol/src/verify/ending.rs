//! The rules about a run's end: what must be closed, outcomes, usage.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    sequence::{Sequence, text},
    thread::Origin,
};

impl Sequence<'_> {
    pub(super) fn run_finished(&mut self, event: &Value) {
        for (name, mine) in [("threadId", &self.run.thread_id), ("runId", &self.run.run_id)] {
            let ended = text(event, name);
            if ended.is_some() && mine.is_some() && ended != mine.as_deref() {
                self.log.flag("LIFE-8", format!("{name} is not that of RUN_STARTED"));
            }
        }
        self.everything_is_closed();
        self.usage(event);
        let outcome = &event["outcome"];
        let kind = outcome["type"].as_str().unwrap_or("success");
        if kind == "cancelled" && event.get("result").is_some() {
            self.log.flag("LIFE-14", "a cancelled run with a result");
        }
        if kind == "success" {
            self.pending_calls(outcome);
        }
        let interrupts =
            if kind == "interrupt" { self.interrupts(outcome) } else { HashSet::new() };
        self.suspended_subagents(kind, &interrupts);
    }

    fn everything_is_closed(&mut self) {
        for item in &self.run.items.open {
            self.log.flag("LIFE-6", format!("{} {} is open", item.family.name(), item.id));
        }
        for (_, name) in &self.run.steps {
            self.log.flag("LIFE-6", format!("step {name} is open"));
        }
        for subagent in self.run.subagents.iter().filter(|subagent| subagent.open) {
            self.log.flag("LIFE-6", format!("sub-agent {} is open", subagent.id));
        }
    }

    /// Calls without an answer must be the client's, and must be named (LIFE-16, TOOL-15). Those
    /// of a run that was joined may be known by the snapshot only.
    fn pending_calls(&mut self, outcome: &Value) {
        let run = &self.run;
        let restated = |id: &String| self.thread.calls.get(id).is_some_and(|call| call.answered);
        let is_pending = |id: &&String| !run.answered.contains(*id) && !restated(id);
        let pending: Vec<&str> = run.calls.iter().filter(is_pending).map(String::as_str).collect();
        if self.context.input.is_some() {
            for id in &pending {
                let call = self.thread.calls.get(*id);
                if !call.is_some_and(|call| self.context.is_frontend_tool(&call.name)) {
                    self.log.flag("TOOL-15", format!("call {id} of the agent has no result"));
                }
            }
        }
        let named = outcome.get("pendingToolCallIds").and_then(Value::as_array);
        let named: Option<Vec<&str>> =
            named.map(|ids| ids.iter().filter_map(Value::as_str).collect());
        let good = match named {
            Some(named) => {
                let of_run = |id: &&str| !self.is_restated(id);
                let mut named: Vec<&str> = named.into_iter().filter(of_run).collect();
                let mut pending = pending.clone();
                if self.thread.is_restated {
                    // The order in which restated calls began is not known.
                    named.sort_unstable();
                    pending.sort_unstable();
                }
                named == pending
            }
            None => pending.is_empty() || self.context.is_legacy(),
        };
        if !good {
            self.log.flag("LIFE-16", format!("pendingToolCallIds should be {pending:?}"));
        }
    }

    /// Whether a call came by a snapshot, did not begin in this run, and has no answer.
    fn is_restated(&self, id: &str) -> bool {
        let call = self.thread.calls.get(id);
        !self.run.calls.iter().any(|own| own == id)
            && call.is_some_and(|call| call.origin == Origin::Snapshot && !call.answered)
    }

    /// Ids of the interrupts.
    fn interrupts(&mut self, outcome: &Value) -> HashSet<String> {
        let mut ids = HashSet::new();
        for interrupt in outcome["interrupts"].as_array().into_iter().flatten() {
            if let Some(id) = text(interrupt, "id")
                && !ids.insert(id.to_owned())
            {
                self.log.flag("INT-2", format!("two interrupts with the id {id}"));
            }
            let call = text(interrupt, "toolCallId").and_then(|id| self.thread.calls.get(id));
            if call.is_some_and(|call| self.context.is_frontend_tool(&call.name)) {
                self.log.flag("INT-24", "an interrupt for a call of a tool of the client");
            }
        }
        ids
    }

    fn suspended_subagents(&mut self, kind: &str, interrupts: &HashSet<String>) {
        let Some(named) = &self.run.suspended else { return };
        if kind != "interrupt" {
            self.log.flag("SUB-13", "a sub-agent is suspended, but the run is not interrupted");
            return;
        }
        for id in named.iter().filter(|id| !interrupts.contains(*id)) {
            self.log.flag("SUB-13", format!("interrupt {id} of a sub-agent is not the run's"));
        }
    }

    /// One entry per provider and model, parts no greater than totals (LIFE-18).
    pub(super) fn usage(&mut self, event: &Value) {
        let mut labels = HashSet::new();
        for entry in event.get("usage").and_then(Value::as_array).into_iter().flatten() {
            if !labels.insert((text(entry, "provider"), text(entry, "model"))) {
                self.log.flag("LIFE-18", "two usage entries of one provider and model");
            }
            let count = |name: &str| entry.get(name).and_then(Value::as_u64);
            let (input, output) = (count("inputTokens"), count("outputTokens"));
            if let (Some(input), Some(output), Some(total)) = (input, output, count("totalTokens"))
                && input.checked_add(output) != Some(total)
            {
                self.log.flag("LIFE-18", "totalTokens is not inputTokens + outputTokens");
            }
            let cached = count("cachedInputTokens").unwrap_or(0);
            let parts = cached.saturating_add(count("cacheWriteInputTokens").unwrap_or(0));
            if input.is_some_and(|input| parts > input) {
                self.log.flag("LIFE-18", "the cached tokens are more than inputTokens");
            }
            let reasoning = count("reasoningTokens").unwrap_or(0);
            if output.is_some_and(|output| reasoning > output) {
                self.log.flag("LIFE-18", "reasoningTokens is more than outputTokens");
            }
        }
    }
}
