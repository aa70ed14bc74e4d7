//! May a run begin on its thread, and what does it answer?

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

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
    store::{ActiveRun, AgentId, Claim, LastAnswer, Millis, Next, Parked, RunOwner, Thread},
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
        if let Some(last) = thread.last_answer.as_ref().filter(|_| thread.messages.is_empty()) {
            thread.messages = Arc::clone(&last.messages);
        }
        let repeat = Repeat { answered: already_answered, thread };
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
        kept: thread.kept.get(attempt.agent).cloned(),
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
    if resume.is_empty() {
        return (Vec::new(), Vec::new());
    }
    // None of these is named twice.
    let mut known: HashSet<InterruptId> = thread.parked.iter().flat_map(Parked::ids).collect();
    let answered: HashSet<&InterruptId> = thread.answered.iter().collect();
    let unknown = resume.iter().map(|entry| &entry.interrupt_id);
    let unknown = unknown.filter(|id| known.insert((*id).clone()));
    unknown.cloned().partition(|id| answered.contains(id))
}

/// A client that missed how its answers were taken can send nothing but them again. An agent may
/// raise an interrupt again under an id that was answered: what is open is never a repeated one.
fn only_repeats(thread: &Thread, input: &RunAgentInput, answered: &[InterruptId]) -> bool {
    let Some(last) = &thread.last_answer else { return false };
    let answered: HashSet<&InterruptId> = answered.iter().collect();
    !input.resume.is_empty()
        && input.resume.iter().all(|entry| answered.contains(&entry.interrupt_id))
        && !input.messages.iter().any(|message| is_new(message, &last.known, &last.calls))
        && !ends_with_new_words(thread, last, input)
}

/// A message of a person at the end of an input is new if it says something else than the stored
/// one of its id: simple clients use ids again.
fn ends_with_new_words(thread: &Thread, last: &LastAnswer, input: &RunAgentInput) -> bool {
    let Some(words @ Message::User { id, .. }) = input.messages.last() else { return false };
    let mut stored = thread.messages.iter().chain(last.messages.iter());
    let stored = stored.find(|stored| stored.message.id() == id);
    stored.is_some_and(|stored| stored.message.text_content() != words.text_content())
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
    let given = Given::of(attempt.input);
    let mut answers = Answers::default();
    for open in &parked.open {
        answers.collect(open, &given, abandons, now);
    }
    answers.checked(&parked.open)
}

/// What the input gives, by what it answers.
struct Given<'a> {
    entries: HashMap<&'a InterruptId, (&'a ResumeEntry, usize)>,
    /// Calls that tool messages answer.
    calls: HashSet<&'a str>,
}

impl<'a> Given<'a> {
    fn of(input: &'a RunAgentInput) -> Self {
        let mut entries: HashMap<&InterruptId, (&ResumeEntry, usize)> = HashMap::new();
        for entry in &input.resume {
            entries.entry(&entry.interrupt_id).or_insert((entry, 0)).1 += 1;
        }
        let calls = input.messages.iter().filter_map(Message::answered_call);
        Self { entries, calls: calls.map(ToolCallId::as_str).collect() }
    }

    /// The result of a tool of the client's own may also come as a message, as it would without
    /// an interrupt. Approvals and external calls are answered by resume alone.
    fn answers_by_message(&self, open: &OpenInterrupt) -> bool {
        let call = open.call.as_ref().filter(|_| open.kind == InterruptKind::FrontendTool);
        call.is_some_and(|call| self.calls.contains(call.wire_id.as_str()))
    }
}

#[derive(Default)]
struct Answers {
    entries: Vec<ResumeEntry>,
    missing: Vec<InterruptId>,
    duplicate: Vec<InterruptId>,
    expired: Vec<InterruptId>,
}

impl Answers {
    fn collect(&mut self, open: &OpenInterrupt, given: &Given<'_>, abandons: bool, now: Millis) {
        let id = &open.interrupt.id;
        let expired = is_expired(open, now);
        match given.entries.get(id) {
            Some((_, 2..)) => self.duplicate.push(id.clone()),
            Some((entry, _)) if expired && entry.status == ResumeStatus::Resolved => {
                self.expired.push(id.clone());
            }
            Some((entry, _)) => self.entries.push(ResumeEntry::clone(entry)),
            None if given.answers_by_message(open) => {}
            // A client that hides expired questions must not be locked out.
            None if expired || abandons => self.entries.push(cancelled(id)),
            None => self.missing.push(id.clone()),
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

fn cancelled(id: &InterruptId) -> ResumeEntry {
    ResumeEntry {
        interrupt_id: id.clone(),
        status: ResumeStatus::Cancelled,
        payload: None,
        metadata: None,
    }
}

impl Parked {
    /// The calls that these are about, as the client knows them.
    pub(super) fn calls(&self) -> impl Iterator<Item = ToolCallId> {
        let settled = self.settled.iter().map(|decision| &decision.open);
        let calls = self.open.iter().chain(settled).filter_map(|open| open.call.as_ref());
        calls.map(|call| ToolCallId::from(call.wire_id.as_str()))
    }
}
