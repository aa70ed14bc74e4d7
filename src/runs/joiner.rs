//! Clients that watch a run which another request started.
//!
//! A joiner never slows the run: what it has not read yet waits in its own buffer, and a joiner
//! that falls too far behind is let go.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use agui_adapter::truncate::weight;
use agui_protocol::{Body, Event};
use tokio::sync::Notify;

/// About how many bytes may wait for one joiner.
const MAX_WAITING: usize = 4 << 20;

/// The joiners of a run.
#[derive(Default)]
pub(super) struct Joiners(Vec<Entry>);

struct Entry {
    joiner: Weak<Shared>,
    /// Events of the next batch that the joiner has already.
    has: usize,
}

/// What waits for one joiner.
pub(super) struct Joiner(Arc<Shared>);

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    more: Notify,
}

#[derive(Default)]
struct Waiting {
    events: Vec<Event>,
    weight: usize,
    end: Option<End>,
}

/// Why nothing more comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The run is over; its terminal event was the last.
    Over,
    /// The joiner reads too slowly.
    TooSlow,
}

impl Joiners {
    /// One more; it gets everything that is sent from now on, but for the first `has` events.
    pub(super) fn join(&mut self, has: usize) -> Joiner {
        let joiner = Arc::<Shared>::default();
        self.0.push(Entry { joiner: Arc::downgrade(&joiner), has });
        Joiner(joiner)
    }

    /// Gives a batch to every joiner.
    pub(super) fn send(&mut self, batch: &[Event]) {
        if self.0.is_empty() || batch.is_empty() {
            return;
        }
        self.0.retain_mut(|entry| {
            let Some(joiner) = entry.joiner.upgrade() else { return false };
            let new = batch.get(std::mem::take(&mut entry.has)..).unwrap_or_default();
            let bytes = new.iter().map(held).fold(0, usize::saturating_add);
            let mut waiting = joiner.lock();
            // Who has read almost everything is not slow, however long the next event is.
            let fits = waiting.weight <= MAX_WAITING;
            waiting.weight = waiting.weight.saturating_add(bytes);
            if fits {
                waiting.events.extend_from_slice(new);
            } else {
                *waiting = Waiting { end: Some(End::TooSlow), ..Waiting::default() };
            }
            drop(waiting);
            joiner.more.notify_one();
            fits
        });
    }

    /// The run is over and everything was sent.
    pub(super) fn end(&mut self) {
        for joiner in self.0.drain(..).filter_map(|entry| entry.joiner.upgrade()) {
            joiner.lock().end = Some(End::Over);
            joiner.more.notify_one();
        }
    }
}

/// About how many bytes an event holds, counted as far as it matters here.
fn held(event: &Event) -> usize {
    let enough = match event.body {
        // Not walked, but for the rest counted as `enough`: one of each in a run at most.
        Body::RunStarted { .. } | Body::RunFinished { .. } | Body::MessagesSnapshot { .. } => {
            BOUNDARY
        }
        _ => MAX_WAITING,
    };
    weight(event, enough)
}

/// What a boundary event is taken to hold.
const BOUNDARY: usize = 64 << 10;

impl Joiner {
    /// What came since the last call, and whether that was all. Waits if nothing did.
    pub(super) async fn next(&self) -> (Vec<Event>, Option<End>) {
        loop {
            let more = self.0.more.notified();
            {
                let mut waiting = self.0.lock();
                if !waiting.events.is_empty() || waiting.end.is_some() {
                    waiting.weight = 0;
                    return (std::mem::take(&mut waiting.events), waiting.end);
                }
            }
            more.await;
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use serde_json::json;

    use super::*;

    fn custom(text: &str) -> Event {
        Event::new(Body::Custom { name: "n".to_owned(), value: json!(text), subagent_run_id: None })
    }

    #[tokio::test]
    async fn a_joiner_gets_what_is_sent_after_it_joined_and_the_end() {
        let mut joiners = Joiners::default();
        joiners.send(&[custom("before")]);
        let joiner = joiners.join(0);
        assert_eq!(joiner.next().now_or_never(), None);
        joiners.send(&[custom("a")]);
        joiners.send(&[custom("b"), custom("c")]);
        let came = joiner.next().await;
        assert_eq!(came, (vec![custom("a"), custom("b"), custom("c")], None));
        joiners.send(&[custom("d")]);
        joiners.end();
        assert_eq!(joiner.next().await, (vec![custom("d")], Some(End::Over)));
    }

    #[tokio::test]
    async fn a_joiner_does_not_get_again_what_it_has() {
        let mut joiners = Joiners::default();
        let joiner = joiners.join(2);
        joiners.send(&[custom("a"), custom("b"), custom("c")]);
        joiners.send(&[custom("d")]);
        assert_eq!(joiner.next().await, (vec![custom("c"), custom("d")], None));
    }

    #[tokio::test]
    async fn who_reads_too_slowly_is_let_go_and_nobody_else() {
        let mut joiners = Joiners::default();
        let (slow, quick) = (joiners.join(0), joiners.join(0));
        let chunk = custom(&"x".repeat(256 << 10));
        for _ in 0..17 {
            joiners.send(std::slice::from_ref(&chunk));
            assert_eq!(quick.next().await, (vec![chunk.clone()], None));
        }
        assert_eq!(slow.next().await, (Vec::new(), Some(End::TooSlow)));
        joiners.end();
        assert_eq!(quick.next().await, (Vec::new(), Some(End::Over)));
    }

    #[tokio::test]
    async fn who_left_is_forgotten() {
        let mut joiners = Joiners::default();
        drop(joiners.join(0));
        joiners.send(&[custom("a")]);
        assert!(joiners.0.is_empty());
    }
}
