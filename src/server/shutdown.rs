//! Serving until told to stop, and stopping although streams are open.

use std::{future::Future, io};

use axum::Router;

use super::builder::Listening;
use crate::runs::RunService;

/// Serves until `stop` resolves. Open streams would keep a graceful shutdown waiting for ever, so
/// every run is ended first; each stream then gets its terminal event and its end.
pub(super) async fn serve(
    listener: impl Listening,
    router: Router,
    runs: RunService,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let stopping = runs.clone();
    axum::serve(listener, router)
        .with_graceful_shutdown(async move {
            stop.await;
            stopping.stop();
        })
        .await?;
    runs.stop();
    runs.stopped().await;
    Ok(())
}
