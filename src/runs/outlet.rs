//! Where a run's events go: a bounded channel with a place kept free for the end.

use agui_protocol::Event;
use tokio::sync::mpsc::{OwnedPermit, Sender};

/// The sending side of a run's stream.
///
/// A reader that is slow or does not read at all stops the agent, never the end of the run: the
/// place of the last batch is taken from the start, so a run gives back its thread and its slot
/// at once when it ends.
pub(super) struct Outlet {
    events: Sender<Vec<Event>>,
    /// `None` = the reader was gone before the run began.
    last: Option<OwnedPermit<Vec<Event>>>,
}

impl Outlet {
    /// The outlet of a run; nothing was sent into the channel before.
    pub(super) fn new(events: Sender<Vec<Event>>) -> Self {
        let last = events.clone().try_reserve_owned().ok();
        Self { events, last }
    }

    /// For all batches but the last.
    pub(super) fn sender(&self) -> Sender<Vec<Event>> {
        self.events.clone()
    }

    /// Resolves when nobody receives the events any more.
    pub(super) async fn closed(&self) {
        self.events.closed().await;
    }

    /// Sends the last batch. Never waits.
    pub(super) fn end(self, batch: Vec<Event>) {
        if let Some(place) = self.last {
            place.send(batch);
        }
    }
}
