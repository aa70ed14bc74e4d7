//! Which call a piece belongs to.

use serde::de::IgnoredAny;
use serde_json::Value;

use super::{
    chunk::Piece,
    reasoning::{EXTRA, seal},
};
use crate::llm::{ModelEvent, names::Names, wire::MAX_CALLS};

/// The calls of an answer, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<Slot>);

#[derive(Debug, Default)]
struct Slot {
    /// The provider's index; several calls may share one.
    index: Option<u64>,
    id: Option<String>,
    /// Whether its name is known, and so whether it was told.
    started: bool,
    /// Arguments that came before the name.
    held: String,
    /// The arguments of a call without an id, which only they tell from the next one.
    told: String,
    extra: Option<Value>,
}

impl Slot {
    /// Whether a piece that says nothing of another call begins one nevertheless: a second whole
    /// call under the index of a whole one, from a provider without ids.
    fn is_whole_beside(&self, piece: &Piece) -> bool {
        self.id.is_none()
            && piece.name.is_some()
            && piece.arguments.is_some()
            // Most are not, and that is told without reading them again for every piece.
            && self.told.trim_end().ends_with('}')
            && serde_json::from_str::<IgnoredAny>(&self.told).is_ok()
    }
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes a piece.
    pub(super) fn take(&mut self, piece: Piece, names: &Names, out: &mut Vec<ModelEvent>) {
        let found = self.find(&piece);
        if found.is_none()
            && piece.name.is_none()
            && piece.id.is_none()
            && piece.arguments.is_none()
        {
            return;
        }
        // One more than there may be, so that the client sees that there are too many.
        if found.is_none() && self.0.len() > MAX_CALLS {
            return;
        }
        let index = found.unwrap_or_else(|| {
            self.0.push(Slot { index: piece.index, ..Slot::default() });
            self.0.len() - 1
        });
        let Some(slot) = self.0.get_mut(index) else { return };
        slot.id = slot.id.take().or(piece.id);
        slot.extra = piece.extra.or(slot.extra.take());
        if let (false, Some(name)) = (slot.started, piece.name) {
            slot.started = true;
            let id = slot.id.clone().unwrap_or_default();
            out.push(ModelEvent::CallStart { index, id, name: names.decode(&name) });
        }
        slot.held.push_str(&piece.arguments.unwrap_or_default());
        if slot.started && !slot.held.is_empty() {
            let delta = std::mem::take(&mut slot.held);
            if slot.id.is_none() {
                slot.told.push_str(&delta);
            }
            out.push(ModelEvent::CallDelta { index, delta });
        }
    }

    /// The end of the answer: what was held back, and what belongs to a call as a whole.
    pub(super) fn finish(&mut self, out: &mut Vec<ModelEvent>) {
        for (index, slot) in self.0.iter_mut().enumerate() {
            if !slot.started {
                let id = slot.id.clone().unwrap_or_default();
                out.push(ModelEvent::CallStart { index, id, name: String::new() });
                let delta = std::mem::take(&mut slot.held);
                if !delta.is_empty() {
                    out.push(ModelEvent::CallDelta { index, delta });
                }
            }
            let encrypted = slot.extra.take().map(|extra| seal(EXTRA, &extra));
            out.push(ModelEvent::CallEnd { index, encrypted });
        }
    }

    /// The call that a piece continues; `None` = it begins one.
    fn find(&self, piece: &Piece) -> Option<usize> {
        let last = |fits: &dyn Fn(&Slot) -> bool| self.0.iter().rposition(fits);
        let begins = |at: usize| match self.0.get(at) {
            Some(slot) => match (&slot.id, &piece.id) {
                // A name with another id: another call. An id alone, of those that invent a new
                // one for each piece, is none.
                (Some(own), Some(id)) => own != id && piece.name.is_some(),
                // The id of a call that began without one, unless it comes with a name again.
                (None, Some(_)) => slot.started && piece.name.is_some(),
                (_, None) => slot.is_whole_beside(piece),
            },
            None => true,
        };
        let place = match (piece.index, &piece.id) {
            (Some(index), id) => {
                let same = |slot: &Slot| slot.index == Some(index);
                let known = id
                    .as_ref()
                    .and_then(|id| last(&|slot| same(slot) && slot.id.as_ref() == Some(id)));
                known.or_else(|| last(&same))
            }
            (None, Some(id)) => {
                // An unknown id without an index begins a call, unless the last one waits for it.
                let known = last(&|slot| slot.id.as_ref() == Some(id));
                known.or_else(|| {
                    let waits = self.0.last().is_some_and(|slot| slot.id.is_none());
                    (waits || piece.name.is_none()).then(|| self.0.len().checked_sub(1)).flatten()
                })
            }
            (None, None) if piece.name.is_some() => {
                let waits = self.0.last().is_some_and(|slot| !slot.started);
                waits.then(|| self.0.len() - 1)
            }
            (None, None) => self.0.len().checked_sub(1),
        };
        place.filter(|at| !begins(*at))
    }
}
