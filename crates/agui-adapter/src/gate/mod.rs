//! Makes sure that a program's enrichers did not break the stream.
//!
//! The gate follows what really leaves and lets pass what fits: it drops what belongs to nothing
//! open, puts back missing ends, corrects owners, and sees to it that the run's first and last
//! event leave as the sequencer meant them. It knows nothing of agents and adds nothing that no
//! rule of the protocol asks for.

mod item;

use std::collections::{HashMap, HashSet, VecDeque};

use agui_protocol::{Body, Event, EventType, Message, RunId, RunOutcome, SubagentRunId, ThreadId};
use serde_json::Value;

use crate::{enrich::RESERVED_METADATA_KEY, names::CANCELLED};

use self::item::{Effect, Item, Owner};

/// How far the run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// RUN_STARTED has not left.
    Before,
    /// Between the boundaries.
    Open,
    /// RUN_FINISHED has left; one late RUN_ERROR may follow (LIFE-4).
    Finished,
    /// RUN_ERROR has left; only old clients are sent a RUN_FINISHED behind it.
    Failed,
    /// Nothing may follow.
    Over,
}

#[derive(Clone, Debug)]
struct Open {
    item: Item,
    owner: Owner,
}

/// The state machine behind the enrichers; one per run.
#[derive(Debug)]
pub struct Gate {
    thread_id: ThreadId,
    run_id: RunId,
    finish_after_error: bool,
    phase: Phase,
    /// The sequencer's RUN_STARTED until it has left.
    expected_start: Option<Event>,
    /// The sequencer's terminal events until they have left.
    expected_ends: VecDeque<Event>,
    /// The sequencer's ends of invocations until they have left.
    expected_subagent_ends: HashMap<SubagentRunId, Event>,
    /// In order of opening. Few are open at once, so looking through them beats hashing.
    open: Vec<Open>,
    /// Who owns what was opened, or set, in this run.
    owners: HashMap<Item, Owner>,
    /// The invocations that are open, in order of opening.
    subagents: Vec<SubagentRunId>,
    /// The invocations that are over.
    ended: HashSet<SubagentRunId>,
    repairs: u32,
}

impl Gate {
    /// A gate before the first event. `finish_after_error` = `emit-run-finished-after-error`.
    pub fn new(thread_id: ThreadId, run_id: RunId, finish_after_error: bool) -> Self {
        Self {
            thread_id,
            run_id,
            finish_after_error,
            phase: Phase::Before,
            expected_start: None,
            expected_ends: VecDeque::new(),
            expected_subagent_ends: HashMap::new(),
            open: Vec::new(),
            owners: HashMap::new(),
            subagents: Vec::new(),
            ended: HashSet::new(),
            repairs: 0,
        }
    }

    /// Notes what of a batch must not get lost; to be called before the enrichers see it.
    pub fn expect(&mut self, batch: &[Event]) {
        for event in batch {
            match &event.body {
                Body::RunStarted { .. } => self.expected_start = Some(event.clone()),
                Body::RunFinished { .. } | Body::RunError { .. } => {
                    self.expected_ends.push_back(event.clone());
                }
                Body::SubagentFinished { subagent_run_id, .. }
                | Body::SubagentError { subagent_run_id, .. } => {
                    self.expected_subagent_ends.insert(subagent_run_id.clone(), event.clone());
                }
                _ => {}
            }
        }
    }

    /// Forgets the terminal events noted: the enrichers failed on them, and the run now ends in
    /// another way.
    pub fn forget_ends(&mut self) {
        self.expected_ends.clear();
    }

    /// Lets pass what fits, appending it to `out`; what [`Gate::expect`] noted of the run's
    /// boundaries leaves in any case.
    pub fn pass(&mut self, events: Vec<Event>, out: &mut Vec<Event>) {
        let starts = events.iter().any(|event| event.event_type() == EventType::RunStarted);
        if self.phase == Phase::Before && !starts {
            self.restore_start(out);
        }
        for event in events {
            self.admit(event, out);
        }
        while let Some(end) = self.expected_ends.front().cloned() {
            self.repaired(end.event_type(), "end of the run put back");
            let left = self.expected_ends.len();
            self.end(end, out);
            if self.expected_ends.len() == left {
                // Not even the sequencer's own fits, e.g. a finish behind an error.
                self.expected_ends.pop_front();
            }
        }
    }

    /// How often something had to be dropped, put back or corrected.
    pub fn repairs(&self) -> u32 {
        self.repairs
    }

    fn restore_start(&mut self, out: &mut Vec<Event>) {
        if let Some(start) = self.expected_start.take() {
            self.repaired(EventType::RunStarted, "start of the run put back");
            self.phase = Phase::Open;
            out.push(start);
        }
    }

    fn admit(&mut self, mut event: Event, out: &mut Vec<Event>) {
        self.clean_base(&mut event);
        match event.event_type() {
            EventType::RunStarted => self.start(event, out),
            EventType::RunFinished | EventType::RunError => self.end(event, out),
            kind if self.phase != Phase::Open => self.repaired(kind, "outside of the run"),
            _ => self.inside(event, out),
        }
    }

    /// The base members that no event may have (META-2, META-4).
    fn clean_base(&mut self, event: &mut Event) {
        if event.raw_event == Some(Value::Null) {
            event.raw_event = None;
            self.repaired(event.event_type(), "null as raw event");
        }
        let Some(metadata) = &mut event.metadata else { return };
        if metadata.shift_remove(RESERVED_METADATA_KEY).is_some() {
            self.repaired(event.event_type(), "reserved metadata key");
        }
    }

    fn start(&mut self, mut event: Event, out: &mut Vec<Event>) {
        if self.phase != Phase::Before || self.expected_start.take().is_none() {
            return self.repaired(EventType::RunStarted, "unexpected start");
        }
        if let Body::RunStarted { thread_id, run_id, .. } = &mut event.body {
            let same = *thread_id == self.thread_id && *run_id == self.run_id;
            thread_id.clone_from(&self.thread_id);
            run_id.clone_from(&self.run_id);
            if !same {
                self.repaired(EventType::RunStarted, "ids of the run");
            }
        }
        self.phase = Phase::Open;
        out.push(event);
    }

    /// The run may only end when the sequencer ended it, and as it did: what the client sees has
    /// to be what the ledger holds.
    fn end(&mut self, mut event: Event, out: &mut Vec<Event>) {
        let kind = event.event_type();
        let original = match self.expected_ends.front() {
            Some(original) if original.event_type() == kind => original.clone(),
            _ => return self.repaired(kind, "unexpected end"),
        };
        self.phase = match (self.phase, kind) {
            (Phase::Before, EventType::RunError) if self.expected_start.is_none() => Phase::Failed,
            (Phase::Open, EventType::RunError) => Phase::Failed,
            (Phase::Open, EventType::RunFinished) => Phase::Finished,
            (Phase::Finished, EventType::RunError) => Phase::Over,
            (Phase::Failed, EventType::RunFinished) if self.finish_after_error => Phase::Over,
            _ => return self.repaired(kind, "end out of place"),
        };
        self.expected_ends.pop_front();
        self.restore_outcome(&mut event, &original);
        if self.phase == Phase::Finished {
            self.close_all(&event, out);
        }
        out.push(event);
    }

    fn restore_outcome(&mut self, event: &mut Event, original: &Event) {
        let Body::RunFinished { outcome: meant, .. } = &original.body else { return };
        let Body::RunFinished { thread_id, run_id, result, outcome, .. } = &mut event.body else {
            return;
        };
        let mut changed = *thread_id != self.thread_id || *run_id != self.run_id;
        thread_id.clone_from(&self.thread_id);
        run_id.clone_from(&self.run_id);
        if *result == Some(Value::Null) {
            *result = None;
            changed = true;
        }
        if outcome != meant {
            outcome.clone_from(meant);
            changed = true;
        }
        if let Some(RunOutcome::Success { pending_tool_call_ids }) = outcome {
            // The client waits for answers to whatever is listed here, so a call that it never
            // saw must not be (LIFE-16).
            let listed = pending_tool_call_ids.len();
            pending_tool_call_ids.retain(|id| self.owners.contains_key(&Item::Call(id.clone())));
            changed |= listed != pending_tool_call_ids.len();
        }
        if changed {
            self.repaired(EventType::RunFinished, "end of the run corrected");
        }
    }

    fn inside(&mut self, mut event: Event, out: &mut Vec<Event>) {
        let kind = event.event_type();
        let fits = match item::effect(&event.body) {
            Effect::Opens(item) => self.open(item, &mut event.body),
            Effect::Continues(item) => match self.position(&item, &mut event.body) {
                Some(index) => {
                    self.set_owner(&mut event.body, self.open_owner(index));
                    true
                }
                None => false,
            },
            Effect::Closes(item) => match self.position(&item, &mut event.body) {
                Some(index) => {
                    self.set_owner(&mut event.body, self.open_owner(index));
                    self.open.remove(index);
                    true
                }
                None => false,
            },
            Effect::Names(items) => {
                let known = items.iter().find_map(|item| self.owners.get(item)).cloned();
                if let Some(owner) = known {
                    self.set_owner(&mut event.body, owner);
                }
                true
            }
            Effect::Sets { item, keeps_existing } => {
                self.set_activity(item, keeps_existing, &mut event.body);
                true
            }
            Effect::Patches(item) => match self.owners.get(&item).cloned() {
                Some(owner) => {
                    self.set_owner(&mut event.body, owner);
                    true
                }
                None => false,
            },
            Effect::SubagentStarts(id) => self.start_subagent(id, &mut event.body),
            Effect::SubagentEnds(id) => self.end_subagent(&id, &mut event.body, out),
            Effect::Restates => {
                self.restate(&event.body);
                true
            }
            Effect::Free => true,
            Effect::Chunk | Effect::Boundary => false,
        };
        if fits {
            out.push(event);
        } else {
            self.repaired(kind, "does not fit");
        }
    }

    fn open(&mut self, item: Item, body: &mut Body) -> bool {
        let own = item::owner_mut(body).cloned().flatten();
        let is_step = matches!(item, Item::Step(_));
        let taken = |open: &Open| open.item == item && (!is_step || open.owner == own);
        if self.open.iter().any(taken) {
            return false;
        }
        // A message or call that is opened again still belongs to whoever opened it first.
        let owner = self.owners.get(&item).cloned().unwrap_or(own);
        self.set_owner(body, owner.clone());
        self.check_parent_message(body, &owner);
        if !matches!(item, Item::Step(_) | Item::Span(_)) {
            self.owners.insert(item.clone(), owner.clone());
        }
        self.open.push(Open { item, owner });
        true
    }

    /// A call may only hang on a message of its own owner (TOOL-5, SUB-7).
    fn check_parent_message(&mut self, body: &mut Body, owner: &Owner) {
        let Body::ToolCallStart { parent_message_id, .. } = body else { return };
        let Some(parent) = parent_message_id.clone() else { return };
        if self.owners.entry(Item::Text(parent)).or_insert_with(|| owner.clone()) != owner {
            *parent_message_id = None;
            self.repaired(EventType::ToolCallStart, "message of another owner");
        }
    }

    /// Where an open item stands. A step is looked for under the event's own tag first, since two
    /// owners may have steps of one name; otherwise the tag does not count.
    fn position(&self, item: &Item, body: &mut Body) -> Option<usize> {
        let same = |open: &&Open| open.item == *item;
        let first = self.open.iter().position(|open| same(&open))?;
        if !matches!(item, Item::Step(_)) {
            return Some(first);
        }
        let own = item::owner_mut(body).cloned().flatten();
        let exact = self.open.iter().position(|open| same(&open) && open.owner == own);
        let ambiguous = self.open.iter().filter(same).count() > 1;
        exact.or((!ambiguous).then_some(first))
    }

    fn open_owner(&self, index: usize) -> Owner {
        self.open.get(index).and_then(|open| open.owner.clone())
    }

    fn set_owner(&mut self, body: &mut Body, owner: Owner) {
        let kind = body.event_type();
        let Some(tag) = item::owner_mut(body) else { return };
        if *tag != owner {
            *tag = owner;
            self.repaired(kind, "owner");
        }
    }

    fn set_activity(&mut self, item: Item, keeps_existing: bool, body: &mut Body) {
        match self.owners.get(&item).cloned() {
            Some(owner) if keeps_existing => self.set_owner(body, owner),
            _ => {
                let owner = item::owner_mut(body).cloned().flatten();
                self.owners.insert(item, owner);
            }
        }
    }

    fn start_subagent(&mut self, id: SubagentRunId, body: &mut Body) -> bool {
        if self.subagents.contains(&id) || self.ended.contains(&id) {
            return false;
        }
        if let Body::SubagentStarted { parent_subagent_run_id: parent, .. } = body
            && parent.as_ref().is_some_and(|parent| {
                !self.subagents.contains(parent) && !self.ended.contains(parent)
            })
        {
            *parent = None;
            self.repaired(EventType::SubagentStarted, "parent never announced");
        }
        self.subagents.push(id);
        true
    }

    fn end_subagent(&mut self, id: &SubagentRunId, body: &mut Body, out: &mut Vec<Event>) -> bool {
        let Some(index) = self.subagents.iter().position(|open| open == id) else { return false };
        if let Body::SubagentFinished { result, .. } = body
            && *result == Some(Value::Null)
        {
            *result = None;
            self.repaired(EventType::SubagentFinished, "null as result");
        }
        let theirs = |open: &mut Open| open.owner.as_ref() == Some(id);
        let left: Vec<Open> = self.open.extract_if(.., theirs).collect();
        self.close(left, out);
        self.subagents.remove(index);
        self.expected_subagent_ends.remove(id);
        self.ended.insert(id.clone());
        true
    }

    fn restate(&mut self, body: &Body) {
        let Body::MessagesSnapshot { messages } = body else { return };
        for message in messages {
            let (id, owner) = (message.id().clone(), message.base().subagent_run_id.clone());
            let item = match message {
                Message::Tool { .. } => continue,
                Message::Reasoning { .. } => Item::Reasoning(id),
                Message::Activity { .. } => Item::Activity(id),
                _ => Item::Text(id),
            };
            if let Message::Assistant { tool_calls, .. } = message {
                for call in tool_calls {
                    self.owners.entry(Item::Call(call.id.clone())).or_insert(owner.clone());
                }
            }
            self.owners.entry(item).or_insert(owner);
        }
    }

    /// Whatever is open before RUN_FINISHED (LIFE-6).
    fn close_all(&mut self, end: &Event, out: &mut Vec<Event>) {
        let left = std::mem::take(&mut self.open);
        self.close(left, out);
        // Children before their parents.
        for id in std::mem::take(&mut self.subagents).into_iter().rev() {
            let meant = self.expected_subagent_ends.remove(&id);
            let event = meant.unwrap_or_else(|| invented_subagent_end(&id, end));
            self.repaired(event.event_type(), "end of a sub-agent put back");
            out.push(event);
            self.ended.insert(id);
        }
    }

    fn close(&mut self, mut left: Vec<Open>, out: &mut Vec<Event>) {
        left.sort_by_key(|open| open.item.closing_rank());
        for closer in left.into_iter().filter_map(|open| open.item.closer(open.owner)) {
            self.repaired(closer.event_type(), "missing end put back");
            out.push(closer);
        }
    }

    fn repaired(&mut self, kind: EventType, what: &'static str) {
        self.repairs = self.repairs.saturating_add(1);
        if self.repairs == 1 {
            tracing::warn!(
                thread.id = self.thread_id.as_str(),
                run.id = self.run_id.as_str(),
                event = kind.as_str(),
                what,
                "an enricher broke the order of events, which was repaired; further repairs of \
                 this run are not logged"
            );
        }
    }
}

/// The end of an invocation whose real end is not known: an enricher must have announced it. A
/// cancelled run is no place for a success.
fn invented_subagent_end(id: &SubagentRunId, end: &Event) -> Event {
    let subagent_run_id = id.clone();
    let cancelled =
        matches!(&end.body, Body::RunFinished { outcome: Some(RunOutcome::Cancelled), .. });
    let body = if cancelled {
        Body::SubagentError {
            subagent_run_id,
            message: "The run was cancelled.".to_owned(),
            code: Some(CANCELLED.to_owned()),
        }
    } else {
        Body::SubagentFinished { subagent_run_id, result: None, outcome: None }
    };
    body.into()
}

#[cfg(test)]
mod tests;
