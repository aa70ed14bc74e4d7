//! Watches over the program of one run until nothing of it is left: feeds it, logs what it says
//! on stderr, ends it when it has to end.
//!
//! Works beside the stream, so that a stream can be dropped at any time and at once. It belongs to
//! the run's background work, for which shutdown waits.

use std::{io, pin::pin, process::ExitStatus, time::Duration};

use futures_util::future::{self, FusedFuture, FutureExt};
use tokio::{
    io::AsyncWriteExt,
    process::{Child, ChildStderr, ChildStdin, ChildStdout},
    sync::oneshot,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::speaker::Speaker;
use crate::process::{Group, LAST_WORDS_WITHIN, Log, PIPES_CLOSE_WITHIN, while_piping};

/// A program that runs, and what it needs.
#[derive(Debug)]
pub(super) struct Keeper {
    pub(super) child: Child,
    pub(super) group: Group,
    pub(super) stdin: ChildStdin,
    pub(super) line: Vec<u8>,
    pub(super) log: Log<ChildStderr, Speaker>,
    /// Time between SIGTERM and SIGKILL.
    pub(super) grace: Duration,
}

/// What the stream tells the keeper.
#[derive(Debug)]
pub(super) struct Orders {
    /// End it; its stdout is still being read.
    pub(super) stop: CancellationToken,
    /// The stream is gone. With the program's stdout: its reply is complete and it may finish
    /// what it does. Without: end it.
    pub(super) left: oneshot::Receiver<ChildStdout>,
}

/// How a program ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) status: io::Result<ExitStatus>,
    /// The last line of its stderr.
    pub(super) last_words: Option<String>,
}

impl Keeper {
    /// Watches until nothing is left. How the program itself ended is told to `ended` before what
    /// it left behind is ended, which may take the whole grace.
    pub(super) async fn keep(self, orders: Orders, ended: oneshot::Sender<Ended>) {
        let Self { mut child, group, stdin, line, mut log, grace } = self;
        let status = {
            let pipes = future::join(feed(stdin, line), log.follow());
            let mut pipes = pin!(pipes.map(drop).fuse());
            while_piping(leader(&mut child, &group, orders, grace), &mut pipes).await
        };
        timeout(LAST_WORDS_WITHIN, log.follow()).await.ok();
        // Nobody listens when the stream was dropped.
        ended.send(Ended { status, last_words: log.last() }).ok();
        let mut words = pin!(log.follow().fuse());
        while_piping(group.sweep(grace), &mut words).await;
        if !words.is_terminated() {
            // Whoever still holds it after that is none of ours.
            timeout(PIPES_CLOSE_WITHIN, words).await.ok();
        }
    }
}

/// The life of the program itself.
async fn leader(
    child: &mut Child,
    group: &Group,
    orders: Orders,
    grace: Duration,
) -> io::Result<ExitStatus> {
    let Orders { stop, left } = orders;
    let last = tokio::select! {
        biased;
        status = child.wait() => return status,
        () = stop.cancelled() => None,
        stdout = left => stdout.ok(),
    };
    if let Some(stdout) = last
        && let Ok(status) = timeout(grace, finish(child, stdout)).await
    {
        return status;
    }
    group.terminate();
    match timeout(grace, child.wait()).await {
        Ok(status) => status,
        Err(_) => {
            group.kill();
            child.wait().await
        }
    }
}

/// Lets a program whose reply is complete come to its end; what it still says is not read.
async fn finish(child: &mut Child, mut stdout: ChildStdout) -> io::Result<ExitStatus> {
    let mut nowhere = tokio::io::sink();
    let drain = tokio::io::copy(&mut stdout, &mut nowhere);
    tokio::select! {
        biased;
        status = child.wait() => status,
        never = drain.then(|_| std::future::pending()) => never,
    }
}

/// A program need not read what it is told.
async fn feed(mut stdin: ChildStdin, line: Vec<u8>) {
    if let Err(error) = stdin.write_all(&line).await {
        tracing::debug!(%error, "a program did not read its stdin to the end");
    }
}
