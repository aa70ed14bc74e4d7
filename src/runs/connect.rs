//! Showing a thread without calling its agent: what is stored, what is going on, how the last run
//! ended.

use std::{collections::HashSet, sync::Arc};

use agui_adapter::{
    history::{Incoming, Keep, Stored, reconcile},
    model::event::Object,
    outbound::EndOutcome,
    snapshot::{Snapshot, at_rest, under_way},
    view::View,
};
use agui_protocol::{Event, Message, MessageId, RunOutcome};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    core::{Core, Joined},
    joiner::End,
    ledger::Repeat,
    log,
    outlet::Outlet,
    pipeline::{Report, peer},
    refusal,
    service::{RunRequest, Shared},
};
use crate::store::Thread;

/// Answers a connect: joins the thread's run, or shows the thread at rest.
pub(super) async fn connect(shared: Arc<Shared>, request: RunRequest, outlet: Outlet) {
    let began = Instant::now();
    let key = request.key();
    let joined = shared.live.get(&key).and_then(|core| Some((core.join()?, core)));
    let was_joined = joined.is_some();
    match joined {
        Some((joined, _core)) => follow(&shared, &request, joined, outlet).await,
        None => {
            // A run that has just ended has its end in the store in a moment.
            if shared.live.get(&key).is_some() {
                shared.ledger.store().at_rest(&key).await;
            }
            show(&shared, &request, outlet).await;
        }
    }
    log::connected(&request, was_joined, began.elapsed());
}
