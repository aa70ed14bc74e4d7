//! Programs that the server starts: found before they are needed, given little of the server's
//! environment, heard on stderr, ended with all that they started.
//!
//! What is said on stdin and stdout is the business of those who start them.

mod group;
mod log;
mod program;

use std::{pin::pin, time::Duration};

use futures_util::future::FusedFuture;

pub use self::{
    group::Group,
    log::{Log, Speaker},
    program::{Missing, Program, Wanted},
};

/// How long the pipes of a program that has ended may stay open: somebody outside of its process
/// group may hold them.
pub const PIPES_CLOSE_WITHIN: Duration = Duration::from_secs(1);

/// How long the end of a program's stderr is waited for before its end is told: what it left
/// behind may hold it.
pub const LAST_WORDS_WITHIN: Duration = Duration::from_millis(100);

/// What `life` gives, `pipes` being served meanwhile.
pub async fn while_piping<T>(
    life: impl Future<Output = T>,
    pipes: &mut (impl FusedFuture<Output = ()> + Unpin),
) -> T {
    let mut life = pin!(life);
    loop {
        tokio::select! {
            biased;
            ended = &mut life => return ended,
            () = &mut *pipes, if !pipes.is_terminated() => {}
        }
    }
}
