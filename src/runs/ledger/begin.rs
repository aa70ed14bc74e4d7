//! May a run begin on its thread, and what does it answer?

use std::{collections::HashSet, sync::Arc, time::Duration};

use agui_adapter::{
    history::is_new,
    resume::{InterruptKind, OpenInterrupt},
};
use agui_protocol::{
    InterruptId, Message, MessageId, ResumeEntry, ResumeStatus, RunAgentInput, ToolCallId,
};

use super::{Begun, Policy, Refusal, Repeat, end::reopened};
use crate::{
    config::OnUnanswered,
    store::{ActiveRun, AgentId, Claim, Millis, Next, Parked, RunOwner, Thread},
};

/// A request to run.
pub(super) struct Attempt<'a> {
    pub(super) owner: RunOwner,
    pub(super) agent: &'a AgentId,
    pub(super) input: &'a RunAgentInput,
    pub(super) policy: Policy,
    pub(super) lease: Option<Duration>,
}

/// What the request may do.
pub(super) enum Outcome {
    Begun(Box<Begun>),
    Repeat(Box<Repeat>),
}

/// The rule: one run per thread, and a run answers everything that is open or nothing.
pub(super) fn begin(
    thread: Option<&Thread>,
    attempt: &Attempt<'_>,
    now: Millis,
) -> (Next, Result<Outcome, Refusal>) {
    if thread.is_some_and(|thread| thread.is_active(now)) {
        return (Next::Keep, Err(Refusal::Busy));
    }
    // A run that was lost gives back what it claimed.
    let mut thread = thread.cloned().map_or_else(|| Thread::new(now), reopened);
    let (already_answered, never_raised) = unknown(&thread, &attempt.input.resume);
    if only_repeats(&thread, attempt.input, &already_answered) {
        let outcome = thread.outcome.clone();
        if let Some(last) = thread.last_answer.as_ref().filter(|_| thread.messages.is_empty()) {
            thread.messages = Arc::clone(&last.messages);
        }
        let repeat = Repeat { outcome, answered: already_answered, thread };
        return (Next::Keep, Ok(Outcome::Repeat(Box::new(repeat))));
    }
    let entries = match answers(&thread, attempt, now) {
        Ok(entries) => entries,
        Err(refusal) => return (Next::Keep, Err(refusal)),
    };
    let parked_ids = thread.parked.iter().flat_map(Parked::ids);
    let taken = thread.answered.iter().cloned().chain(parked_ids).collect();
    let parked = match thread.parked.take() {
        // Nobody but the agent that asked could go on with it.
        Some(parked) if parked.raised && parked.agent != *attempt.agent => {
            thread.give_up(&parked);
            None
        }
        parked => parked,
    };
    let begun = Begun {
        parked: parked.clone(),
        entries,
        messages: Arc::clone(&thread.messages),
        state: thread.state.clone(),
        already_answered,
        never_raised,
        taken,
    };
    thread.name_after(&attempt.input.messages);
    thread.agent = Some(attempt.agent.clone());
    thread.active = Some(ActiveRun {
        owner: attempt.owner,
        run_id: attempt.input.run_id.clone(),
        agent: attempt.agent.clone(),
        claim: parked.map(|parked| Claim { known: known(&parked, &thread, attempt.input), parked }),
        cancel: false,
        lease_ends_ms: attempt.lease.map(|lease| super::control::later(now, lease)),
    });
    thread.updated_ms = now;
    (Next::Put(Box::new(thread)), Ok(Outcome::Begun(Box::new(begun))))
}

/// The messages of the thread and of an input that answers.
fn known(parked: &Parked, thread: &Thread, input: &RunAgentInput) -> Arc<HashSet<MessageId>> {
    if !parked.raised {
        return Arc::default();
    }
    let sent = input.messages.iter().map(Message::id);
    Arc::new(thread.message_ids().chain(sent).cloned().collect())
}

impl Thread {
    /// The record of a thread that nobody knew.
    pub(super) fn new(now: Millis) -> Self {
        Self { created_ms: now, updated_ms: now, ..Self::default() }
    }
}

/// Entries that answer nothing of what is parked: those answered before, and those that nobody
/// asked for.
fn unknown(thread: &Thread, resume: &[ResumeEntry]) -> (Vec<InterruptId>, Vec<InterruptId>) {
    let parked = thread.parked.as_ref();
    let mut seen = HashSet::new();
    let unknown = resume.iter().map(|entry| &entry.interrupt_id);
    let unknown = unknown.filter(|id| !parked.is_some_and(|parked| parked.knows(id)));
    unknown.filter(|id| seen.insert(*id)).cloned().partition(|id| thread.answered.contains(id))
}

/// A client that missed how its answers were taken can send nothing but them again. An agent may
/// raise an interrupt again under an id that was answered: what is open is never a repeated one.
fn only_repeats(thread: &Thread, input: &RunAgentInput, answered: &[InterruptId]) -> bool {
    let Some(last) = &thread.last_answer else { return false };
    !input.resume.is_empty()
        && input.resume.iter().all(|entry| answered.contains(&entry.interrupt_id))
        && !input.messages.iter().any(|message| is_new(message, &last.known, &last.calls))
}

/// The entries by which the open interrupts are decided.
fn answers(
    thread: &Thread,
    attempt: &Attempt<'_>,
    now: Millis,
) -> Result<Vec<ResumeEntry>, Refusal> {
    let Some(parked) = thread.parked.as_ref().filter(|parked| parked.raised) else {
        return Ok(Vec::new());
    };
    let resume = &attempt.input.resume;
    let abandons = resume.is_empty() && attempt.policy.on_unanswered == OnUnanswered::Cancel;
    if parked.agent != *attempt.agent {
        // A thread on which nothing can be answered any more may change its agent.
        let over = resume.is_empty() && parked.open.iter().all(|open| is_expired(open, now));
        if abandons || over {
            return Ok(Vec::new());
        }
        let (agent, open) = (parked.agent.clone(), parked.open.clone());
        return Err(Refusal::OtherAgent { agent, open });
    }
    let mut answers = Answers::default();
    for open in &parked.open {
        answers.collect(open, attempt.input, abandons, now);
    }
    answers.checked(&parked.open)
}

#[derive(Default)]
struct Answers {
    entries: Vec<ResumeEntry>,
    missing: Vec<InterruptId>,
    duplicate: Vec<InterruptId>,
    expired: Vec<InterruptId>,
}

impl Answers {
    fn collect(
        &mut self,
        open: &OpenInterrupt,
        input: &RunAgentInput,
        abandons: bool,
        now: Millis,
    ) {
        let id = &open.interrupt.id;
        let expired = is_expired(open, now);
        let mut entries = input.resume.iter().filter(|entry| entry.interrupt_id == *id);
        match (entries.next(), entries.next()) {
            (Some(_), Some(_)) => self.duplicate.push(id.clone()),
            (Some(entry), None) if expired && entry.status == ResumeStatus::Resolved => {
                self.expired.push(id.clone());
            }
            (Some(entry), None) => self.entries.push(entry.clone()),
            (None, _) if answered_by_message(open, input) => {}
            // A client that hides expired questions must not be locked out.
            (None, _) if expired || abandons => self.entries.push(cancelled(id)),
            (None, _) => self.missing.push(id.clone()),
        }
    }

    fn checked(self, open: &[OpenInterrupt]) -> Result<Vec<ResumeEntry>, Refusal> {
        let Self { entries, missing, duplicate, expired } = self;
        if !missing.is_empty() || !duplicate.is_empty() {
            return Err(Refusal::Uncovered { missing, duplicate, open: open.to_vec() });
        }
        if !expired.is_empty() {
            return Err(Refusal::Expired { expired, open: open.to_vec() });
        }
        Ok(entries)
    }
}

fn is_expired(open: &OpenInterrupt, now: Millis) -> bool {
    open.expires_ms.is_some_and(|expires| expires <= now)
}

/// The result of a tool of the client's own may also come as a message, as it would without an
/// interrupt. Approvals and external calls are answered by resume alone.
fn answered_by_message(open: &OpenInterrupt, input: &RunAgentInput) -> bool {
    let Some(call) = &open.call else { return false };
    let answers = |message: &Message| {
        matches!(message, Message::Tool { tool_call_id, .. }
            if tool_call_id.as_str() == call.wire_id)
    };
    open.kind == InterruptKind::FrontendTool && input.messages.iter().any(answers)
}

fn cancelled(id: &InterruptId) -> ResumeEntry {
    ResumeEntry {
        interrupt_id: id.clone(),
        status: ResumeStatus::Cancelled,
        payload: None,
        metadata: None,
    }
}

impl Parked {
    /// Whether the interrupt is one of these.
    pub(super) fn knows(&self, id: &InterruptId) -> bool {
        self.open.iter().any(|open| open.interrupt.id == *id)
            || self.settled.iter().any(|decision| decision.open.interrupt.id == *id)
    }

    /// The calls that these are about, as the client knows them.
    pub(super) fn calls(&self) -> impl Iterator<Item = ToolCallId> {
        let settled = self.settled.iter().map(|decision| &decision.open);
        let calls = self.open.iter().chain(settled).filter_map(|open| open.call.as_ref());
        calls.map(|call| ToolCallId::from(call.wire_id.as_str()))
    }
}
