//! Where a run's events go: a bounded channel with a place kept free for the end.

use agui_protocol::Event;
use tokio::sync::mpsc::{OwnedPermit, Permit, Receiver, Sender, channel};

/// Batches that may wait for the reader before the sender has to wait.
const WAITING_BATCHES: usize = 4;

/// The sending side of a response.
///
/// A reader that is slow or does not read at all stops the agent, never the end of the run: the
/// place of the last batch is taken from the start, so a run gives back its thread and its slot
/// at once when it ends.
pub(super) struct Outlet {
    events: Sender<Vec<Event>>,
    last: Option<OwnedPermit<Vec<Event>>>,
}

/// What [`Outlet::sender`] gives: for all batches but the last.
#[derive(Clone)]
pub(super) struct Batches(Sender<Vec<Event>>);

impl Outlet {
    /// An outlet, and what its reader reads.
    pub(super) fn new() -> (Self, Receiver<Vec<Event>>) {
        // One place more: the last batch's.
        let (events, reader) = channel(WAITING_BATCHES + 1);
        let last = events.clone().try_reserve_owned().ok();
        (Self { events, last }, reader)
    }

    /// For all batches but the last.
    pub(super) fn sender(&self) -> Batches {
        Batches(self.events.clone())
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

impl Batches {
    /// Waits for a place; `None` = nobody receives the events any more.
    pub(super) async fn place(&self) -> Option<Permit<'_, Vec<Event>>> {
        self.0.reserve().await.ok()
    }
}
