//! The process group of a program: the program and everything that it started.
//!
//! What leaves the group (`setsid`) is out of reach.

use std::time::Duration;

use rustix::process::{
    Pid, Signal, WaitOptions, kill_process_group, test_kill_process_group, waitpgid,
};
use tokio::{
    process::Child,
    time::{Instant, sleep},
};

/// How often a group that was told to end is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long the kernel may take to end what was killed.
const DEATH: Duration = Duration::from_secs(1);

/// A group that still has to be ended. Dropped, it is killed: a server that stops leaves no
/// program behind.
#[derive(Debug)]
pub struct Group {
    id: Option<Pid>,
}

impl Group {
    /// The group that `child` leads.
    pub fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self { id: id.and_then(Pid::from_raw) }
    }

    /// Asks all of it to end.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends all of it.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Ends what the leader left behind; only once the leader was waited for.
    ///
    /// The number of a group that is empty may be given to another one, but not before all other
    /// numbers were used up, which takes longer than [`LOOK_EVERY`].
    pub async fn sweep(mut self, grace: Duration) {
        self.terminate();
        if !self.is_gone_within(grace).await {
            self.kill();
            // A process that still counts then is dead, and not waited for by its new parent.
            self.is_gone_within(DEATH).await;
        }
        self.id = None;
    }

    async fn is_gone_within(&self, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        while self.exists() {
            if Instant::now() >= deadline {
                return false;
            }
            sleep(LOOK_EVERY).await;
        }
        true
    }

    fn exists(&self) -> bool {
        let Some(id) = self.id else { return false };
        // Orphans become children of the first process, which in a container is this one.
        while let Ok(Some(_)) = waitpgid(id, WaitOptions::NOHANG) {}
        test_kill_process_group(id).is_ok()
    }

    fn signal(&self, signal: Signal) {
        if let Some(id) = self.id {
            // Fails only when nobody is left.
            kill_process_group(id, signal).ok();
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
