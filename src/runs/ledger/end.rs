//! What becomes of a thread when a run ends, in whatever way.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use agui_adapter::{
    history::Stored,
    outbound::EndOutcome,
    resume::{Decision, OpenInterrupt},
};
use agui_protocol::{InterruptId, Message, ToolCallId};
use serde_json::Value;

use super::{Ended, Policy, Settled, kept};
use crate::store::{
    AgentId, Claim, LastAnswer, Millis, Next, Parked, RunOwner, Thread, messages_weight,
};

/// How many answered interrupts are remembered per thread, besides those that were answered last
/// with one another; an older one counts as never raised.
const MAX_ANSWERED: usize = 64;

/// A run that leaves its thread.
pub(super) struct Leaving<'a> {
    pub(super) owner: RunOwner,
    /// The agent to which what is open belongs.
    pub(super) agent: &'a AgentId,
    pub(super) ended: &'a Ended<'a>,
    pub(super) policy: Policy,
}

/// The rule: RUN_FINISHED makes claims to answers; every other end opens them again, but for the
/// calls that have their result. What the agent keeps may stem from an answer, so it counts on the
/// same terms.
pub(super) fn ended(thread: Option<&Thread>, leaving: &Leaving<'_>, now: Millis) -> Next {
    let Some((mut thread, claim)) = taken(thread, leaving.owner) else { return Next::Keep };
    let Leaving { ended, .. } = leaving;
    thread.failure = match &ended.end.outcome {
        EndOutcome::Error(code) => Some(code.clone()),
        _ => None,
    };
    if thread.failure.is_some() {
        let parked = claim.map(|claim| claim.parked);
        thread.parked = parked.and_then(|parked| parked.without_settled(ended));
    } else {
        finish(&mut thread, claim, leaving);
    }
    remember(&mut thread, leaving);
    thread.updated_ms = now;
    kept(thread)
}

/// The run was given up and nobody knows more than the store.
pub(super) fn given_up(
    thread: Option<&Thread>,
    owner: RunOwner,
    policy: Policy,
    now: Millis,
) -> Next {
    let Some((mut thread, claim)) = taken(thread, owner) else { return Next::Keep };
    thread.parked = claim.map(|claim| claim.parked);
    if thread.parked.is_none() && !policy.keep_history {
        thread.messages = Arc::default();
        thread.state = None;
    }
    thread.updated_ms = now;
    kept(thread)
}

/// A record whose run was lost, as its next run finds it.
pub(super) fn reopened(mut thread: Thread) -> Thread {
    if let Some(claim) = thread.active.take().and_then(|run| run.claim) {
        thread.parked = Some(claim.parked);
    }
    thread
}

/// Results of claimed calls, stored before anybody sees them.
pub(super) fn settled(thread: Option<&Thread>, owner: RunOwner, results: &[Settled]) -> Next {
    let Some(mut thread) = thread.filter(|thread| is_owner(thread, owner)).cloned() else {
        return Next::Keep;
    };
    let Some(claim) = thread.active.as_mut().and_then(|run| run.claim.as_mut()) else {
        return Next::Keep;
    };
    let messages = Arc::make_mut(&mut thread.messages);
    for (decision, message) in results {
        if claim.parked.settle(decision) {
            messages.extend(message.clone().map(Stored::seen));
        }
    }
    Next::Put(Box::new(thread))
}

/// The record without the run, and what the run had claimed; `None` = the thread is another
/// run's by now.
fn taken(thread: Option<&Thread>, owner: RunOwner) -> Option<(Thread, Option<Claim>)> {
    let mut thread = thread.filter(|thread| is_owner(thread, owner))?.clone();
    let claim = thread.active.take()?.claim;
    Some((thread, claim))
}

fn is_owner(thread: &Thread, owner: RunOwner) -> bool {
    thread.active.as_ref().is_some_and(|run| run.owner == owner)
}

fn finish(thread: &mut Thread, claim: Option<Claim>, leaving: &Leaving<'_>) {
    let end = leaving.ended.end;
    let mut state = end.parked.clone();
    match claim {
        Some(Claim { parked, known }) if parked.raised => {
            let calls = parked.calls().collect();
            thread.answer(parked.ids());
            let messages = told_again(leaving);
            thread.last_answer = Some(LastAnswer { known, calls, messages });
        }
        // Only raised: the agent was not called and handed over nothing new.
        Some(Claim { parked, .. }) => state = parked.state,
        None => {}
    }
    let (open, raised) = match (&*end.open, &*end.deferred) {
        ([], deferred) => (deferred, false),
        (open, _) => (open, true),
    };
    if let Some(state) = &end.kept {
        thread.keep(leaving.agent, state);
    }
    thread.outcome.clone_from(&end.finished);
    thread.parked = (!open.is_empty()).then(|| Parked {
        agent: leaving.agent.clone(),
        open: open.to_vec(),
        settled: Vec::new(),
        raised,
        state,
    });
}

/// What a client gets that missed the end of the run which took its answers.
fn told_again(leaving: &Leaving<'_>) -> Arc<Vec<Stored>> {
    let messages = &leaving.ended.messages;
    let short = messages_weight(messages) <= LastAnswer::MAX_MESSAGES;
    if short && !leaving.policy.keep_history { Arc::clone(messages) } else { Arc::default() }
}

/// Keeps history and state as long as somebody may need them.
fn remember(thread: &mut Thread, leaving: &Leaving<'_>) {
    if thread.parked.is_some() || leaving.policy.keep_history {
        thread.messages = Arc::clone(&leaving.ended.messages);
        thread.state.clone_from(&leaving.ended.state);
    } else {
        thread.messages = Arc::default();
        thread.state = None;
    }
}

impl Thread {
    /// Interrupts are given up: whoever answers them later brings nothing new.
    pub(super) fn give_up(&mut self, parked: &Parked) {
        self.answer(parked.ids());
        let known = Arc::new(self.message_ids().cloned().collect());
        let (calls, messages) = (parked.calls().collect(), Arc::default());
        self.last_answer = Some(LastAnswer { known, calls, messages });
    }

    /// What an agent wants to know in its later runs; null = nothing any more.
    fn keep(&mut self, agent: &AgentId, state: &Arc<Value>) {
        if state.is_null() {
            self.kept.remove(agent);
        } else {
            self.kept.insert(agent.clone(), Arc::clone(state));
        }
    }

    /// Remembers that interrupts were answered.
    pub(super) fn answer(&mut self, ids: impl IntoIterator<Item = InterruptId>) {
        let before = self.answered.len();
        self.answered.extend(ids);
        // A resume that is sent again names all that it answered, however many.
        let last = self.answered.len() - before;
        let excess = self.answered.len().saturating_sub(last.max(MAX_ANSWERED));
        self.answered.drain(..excess);
    }

    /// Names the thread after the first words that a person said in it.
    pub(super) fn name_after(&mut self, messages: &[Message]) {
        if !self.name.is_empty() {
            return;
        }
        let said = messages.iter().filter_map(|message| match message {
            Message::User { content, .. } => Some(content.text_content()),
            _ => None,
        });
        let name = said.map(|text| name(&text)).find(|name| !name.is_empty());
        self.name = name.unwrap_or_default();
    }
}

/// The first line's worth of a text; looks at no more of it than may be needed.
fn name(text: &str) -> String {
    let start: String = text.trim_start().chars().take(4 * MAX_NAME).collect();
    let words = start.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().take(MAX_NAME).collect()
}

/// Longest name of a thread in characters.
const MAX_NAME: usize = 80;

impl Parked {
    /// The ids of these interrupts.
    pub(super) fn ids(&self) -> impl Iterator<Item = InterruptId> {
        let settled = self.settled.iter().map(|decision| &decision.open);
        self.open.iter().chain(settled).map(|open| open.interrupt.id.clone())
    }

    /// What is left to answer or to go on with after a run that failed; `None` = nothing.
    fn without_settled(mut self, ended: &Ended<'_>) -> Option<Self> {
        for (decision, _message) in ended.settled {
            self.settle(decision);
        }
        let results = ended.messages.iter().filter_map(|stored| stored.message.answered_call());
        let results: HashSet<&str> = results.map(ToolCallId::as_str).collect();
        // Calls of children that an old client was told of in its own way may share an id: a
        // message says which of them it answers only where there is one.
        let ids = ended.decisions.iter().filter_map(|decision| decision.open.call.as_ref());
        let mut calls: HashMap<&str, usize> = HashMap::new();
        ids.for_each(|call| *calls.entry(call.wire_id.as_str()).or_default() += 1);
        for decision in ended.decisions {
            let call = decision.open.call.as_ref().map(|call| call.wire_id.as_str());
            let only = call.filter(|call| calls.get(call) == Some(&1));
            if only.is_some_and(|call| results.contains(call)) {
                self.settle(decision);
            }
        }
        (!self.open.is_empty() || !self.settled.is_empty()).then_some(self)
    }

    /// The call of an open interrupt has its result. False = it was not open.
    fn settle(&mut self, decision: &Decision) -> bool {
        let id = &decision.open.interrupt.id;
        let is_it = |open: &OpenInterrupt| open.interrupt.id == *id;
        let Some(at) = self.open.iter().position(is_it) else { return false };
        self.open.remove(at);
        self.settled.push(Decision { settled: true, ..decision.clone() });
        true
    }
}
