//! Where the invocations of a run are found. There may be thousands, and each event names one.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use agui_protocol::SubagentRunId;

use super::subagent::Invocation;
use crate::{
    resume::{Decision, Suspended},
    sequencer::{CallIndex, OwnerId},
};

/// The invocations of a run.
pub(super) struct Children {
    pub(super) list: Vec<Invocation>,
    by_owner: HashMap<OwnerId, usize>,
    /// Those that events may belong to, by what tells them apart on the wire.
    active: HashMap<String, Vec<usize>>,
    /// The same by the length of their paths and by these, so that looking for a beginning of a
    /// path reads no more of it than known paths are long.
    by_source: HashMap<usize, HashMap<Arc<str>, BTreeSet<usize>>>,
    /// Those that are parked.
    waiting: HashMap<String, BTreeSet<usize>>,
    /// How many active ones each call spawned.
    taken: HashMap<CallIndex, usize>,
    /// Invocations that an earlier run suspended; they go on under their ids (SUB-2).
    suspended: Vec<Suspended>,
}

impl Children {
    pub(super) fn new(answered: &[Decision]) -> Self {
        let suspended = answered.iter().flat_map(|Decision { open, .. }| {
            let asker = open.source.clone().zip(open.interrupt.subagent_run_id.clone());
            let asker = asker.map(|(source, id)| Suspended { source, task: open.task.clone(), id });
            open.above.iter().cloned().chain(asker)
        });
        Self {
            list: Vec::new(),
            by_owner: HashMap::new(),
            active: HashMap::new(),
            by_source: HashMap::new(),
            waiting: HashMap::new(),
            taken: HashMap::new(),
            suspended: suspended.collect(),
        }
    }

    /// The id under which an invocation goes on.
    pub(super) fn resumed_id(&mut self, source: &str, task: Option<&str>) -> Option<SubagentRunId> {
        let of_source = |suspended: &&Suspended| suspended.source == source;
        let mut suspended = self.suspended.iter().filter(of_source);
        // Who has no `taskId` in one of the two runs is told apart by nothing else.
        let is_it = |of: Option<&str>| of == task || of.is_none() || task.is_none();
        let id = suspended.find(|suspended| is_it(suspended.task.as_deref()))?.id.clone();
        self.suspended.retain(|suspended| suspended.id != id);
        Some(id)
    }

    /// Adds one that begins; its place.
    pub(super) fn add(&mut self, child: Invocation) -> usize {
        let at = self.list.len();
        self.by_owner.insert(child.owner, at);
        self.list.push(child);
        self.enter(at);
        at
    }

    /// Events may belong to it from now on.
    fn enter(&mut self, at: usize) {
        let child = &self.list[at];
        self.active.entry(child.key.clone()).or_default().push(at);
        let of_length = self.by_source.entry(child.source.len()).or_default();
        of_length.entry(Arc::clone(&child.source)).or_default().insert(at);
        if let Some(call) = child.delegated_by {
            *self.taken.entry(call).or_default() += 1;
        }
    }

    /// No further event is its own, unless it `waits` and is woken.
    pub(super) fn leave(&mut self, at: usize, waits: bool) -> OwnerId {
        let child = &mut self.list[at];
        let was_active = !std::mem::replace(&mut child.ended, true);
        let was_waiting = std::mem::replace(&mut child.waiting, waits);
        let child = &self.list[at];
        if was_active {
            // The latest mostly ends first.
            let active = self.active.get_mut(&child.key);
            if let Some(active) = active
                && let Some(place) = active.iter().rposition(|other| *other == at)
            {
                active.remove(place);
            }
            if let Some(of_length) = self.by_source.get_mut(&child.source.len())
                && let Some(places) = of_length.get_mut(&child.source)
            {
                places.remove(&at);
            }
            if let Some(count) = child.delegated_by.and_then(|call| self.taken.get_mut(&call)) {
                *count -= 1;
            }
        }
        if waits {
            self.waiting.entry(child.key.clone()).or_default().insert(at);
        } else if was_waiting && let Some(places) = self.waiting.get_mut(&child.key) {
            places.remove(&at);
        }
        child.owner
    }

    /// The first of those that are parked under a key goes on.
    pub(super) fn wake(&mut self, key: &str) -> Option<usize> {
        let at = self.waiting.get_mut(key)?.pop_first()?;
        let child = &mut self.list[at];
        // Its AGENT_END was seen; whether there will be another one nobody can say.
        (child.waiting, child.ended, child.started) = (false, false, false);
        self.enter(at);
        Some(at)
    }

    /// The active ones under a key, in the order in which they began or went on.
    pub(super) fn active(&self, key: &str) -> &[usize] {
        self.active.get(key).map_or(&[], Vec::as_slice)
    }

    /// The latest active one of a path.
    pub(super) fn latest(&self, source: &str) -> Option<&Invocation> {
        self.of_path(source).next_back()
    }

    /// The active ones of a path, in the order in which they began.
    pub(super) fn of_path(&self, source: &str) -> impl DoubleEndedIterator<Item = &Invocation> {
        let places = self.by_source.get(&source.len()).and_then(|paths| paths.get(source));
        places.into_iter().flatten().map(|at| &self.list[*at])
    }

    /// Whether an active one belongs to the call.
    pub(super) fn is_taken(&self, call: CallIndex) -> bool {
        self.taken.get(&call).is_some_and(|count| *count > 0)
    }

    /// The place of an owner that is a child.
    pub(super) fn place(&self, owner: OwnerId) -> Option<usize> {
        self.by_owner.get(&owner).copied()
    }
}
