//! Serving until told to stop, and stopping although streams are open.

use std::{future::Future, io, net::SocketAddr, time::Duration};

use axum::{Router, serve::Listener};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::runs::RunService;

/// How long clients may take to receive what their streams still hold, and agents to let go.
const GRACE: Duration = Duration::from_secs(5);

/// Serves until `stop` resolves. Open streams would keep a graceful shutdown waiting for ever, so
/// every run is ended first; each stream then gets its terminal event and its end. Neither a
/// client that does not read nor an agent that does not yield can hold the server for longer than
/// the grace.
pub(super) async fn serve(
    listener: impl Listener<Addr = SocketAddr>,
    router: Router,
    runs: RunService,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let told = CancellationToken::new();
    let (tell, stopping) = (told.clone(), runs.clone());
    let serving = axum::serve(listener, router).with_graceful_shutdown(async move {
        stop.await;
        stopping.stop();
        tell.cancel();
    });
    let in_order = async {
        serving.await?;
        runs.stop();
        runs.stopped().await;
        Ok(())
    };
    let out_of_time = async {
        told.cancelled().await;
        sleep(GRACE).await;
    };
    tokio::select! {
        served = in_order => served,
        () = out_of_time => {
            tracing::warn!("connections or runs were still under way and are cut");
            Ok(())
        }
    }
}
