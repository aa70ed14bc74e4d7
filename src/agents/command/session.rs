//! The talk with the program of one run, as its stream sees it.

use std::{
    os::{fd::AsFd, unix::process::ExitStatusExt},
    process::ExitStatus,
    time::Duration,
};

use agui_adapter::model::{AgentEvent, AgentEventKind, event::EndReason, wire::DecodeOptions};
use bytes::BytesMut;
use rustix::io::ioctl_fionread;
use tokio::{
    process::ChildStdout,
    sync::oneshot,
    time::{Instant, timeout, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    fault::Fault,
    keeper::Ended,
    lines::{Lines, Read, TooLong},
    output,
    speaker::Speaker,
};
use crate::process::{LAST_WORDS_WITHIN, PIPES_CLOSE_WITHIN};

/// Lines that are taken without a look at the cancel token: asking it takes a lock.
const LOOK_EVERY: u64 = 64;

/// A longer line is parsed where it does not hold up other runs.
pub(super) const PARSED_IN_PLACE: usize = 256 << 10;

/// What is still read, in bytes, behind what was in the pipe when the program was gone: as much as
/// a pipe holds.
const READ_BEYOND: u64 = 64 << 10;

/// What holds for every run of an agent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) line: usize,
    pub(super) silence: Option<Duration>,
    pub(super) grace: Duration,
}

/// What the stream has of a program.
pub(super) struct Program {
    pub(super) stdout: Lines<ChildStdout>,
    /// Tells the keeper to end it.
    pub(super) stop: CancellationToken,
    /// Tells the keeper that nobody reads any more.
    pub(super) left: oneshot::Sender<ChildStdout>,
    /// How it ended.
    pub(super) ended: oneshot::Receiver<Ended>,
    /// Names it in the log.
    pub(super) speaker: Speaker,
}

/// One run's talk. Dropped, it ends the program.
pub(super) struct Session {
    /// `None` = the talk is over.
    program: Option<Program>,
    limits: Limits,
    options: DecodeOptions,
    cancel: CancellationToken,
    /// Where long lines are parsed.
    background: TaskTracker,
    /// Lines read so far.
    line: u64,
    end: Ending,
    /// How the program ended, once that is known.
    ended: Option<Ended>,
}

/// How far the end has come.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ending {
    Open,
    /// The program was told to stop and has until then.
    Stopping(Instant),
    /// The program is gone.
    Gone(Patience),
    /// The root agent's reply has ended.
    Complete,
}

impl Ending {
    /// The program has had its time to stop.
    fn is_over(self) -> bool {
        matches!(self, Self::Stopping(until) if Instant::now() >= until)
    }
}

/// With a stdout whose program is gone. All that the program said is in the pipe and is read,
/// however slowly; somebody else may hold the pipe and go on for ever.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Patience {
    /// What is read at most.
    bytes: u64,
    /// How long more is waited for, in all.
    time: Duration,
}

impl Patience {
    fn with(stdout: &impl AsFd) -> Self {
        // Every pipe can say what it holds.
        let there = ioctl_fionread(stdout).unwrap_or_default();
        Self { bytes: there.saturating_add(READ_BEYOND), time: PIPES_CLOSE_WITHIN }
    }

    fn take(&mut self, bytes: usize, time: Duration) {
        self.bytes = self.bytes.saturating_sub(bytes as u64);
        self.time = self.time.saturating_sub(time);
    }
}

/// What came next.
enum Heard {
    Line(BytesMut),
    /// Nothing more comes.
    Nothing,
    /// More may come from somebody who holds the pipe, and is not waited for.
    Cut,
}

impl Session {
    pub(super) fn new(
        program: Program,
        limits: Limits,
        options: DecodeOptions,
        cancel: CancellationToken,
        background: TaskTracker,
    ) -> Self {
        let (line, end, ended) = (0, Ending::Open, None);
        Self { program: Some(program), limits, options, cancel, background, line, end, ended }
    }

    /// The next event; `None` = the program has ended well. After an error or `None` there is
    /// nothing more.
    pub(super) async fn next(&mut self) -> Result<Option<AgentEvent>, Fault> {
        let next = self.read_on().await;
        match next {
            Ok(Some(event)) => return Ok(Some(event)),
            // Whatever a program says or does not say while it is being stopped is no failure.
            _ if matches!(self.end, Ending::Stopping(_)) => {
                self.program = None;
                self.end = Ending::Complete;
                return Ok(Some(interrupted()));
            }
            Ok(None) => self.program = None,
            Err(_) => self.leave(),
        }
        next
    }

    async fn read_on(&mut self) -> Result<Option<AgentEvent>, Fault> {
        loop {
            match self.hear().await? {
                Heard::Line(line) => {
                    if let Some(event) = self.read(line).await? {
                        return Ok(Some(event));
                    }
                }
                Heard::Nothing => return self.hang_up().await,
                // Where it was cut says nothing about the agent.
                Heard::Cut => {
                    return match self.hang_up().await {
                        Err(Fault::BadLine { .. }) => Ok(None),
                        heard => heard,
                    };
                }
            }
        }
    }

    async fn hear(&mut self) -> Result<Heard, Fault> {
        let silent_at = self.limits.silence.map(|silence| Instant::now() + silence);
        loop {
            let Some(program) = &mut self.program else { return Ok(Heard::Nothing) };
            // Also when there is more.
            if self.end.is_over() {
                return Ok(Heard::Cut);
            }
            match program.stdout.complete() {
                Ok(Some(line)) if !self.line.is_multiple_of(LOOK_EVERY) => {
                    return Ok(Heard::Line(line));
                }
                Ok(Some(line)) => {
                    self.obey();
                    return Ok(Heard::Line(line));
                }
                Ok(None) => {}
                Err(TooLong) => {
                    let limit = self.limits.line;
                    return Err(Fault::LongLine { line: self.line + 1, limit });
                }
            }
            let stopping = matches!(self.end, Ending::Stopping(_));
            let asked = Instant::now();
            let until = match self.end {
                Ending::Stopping(until) => Some(until),
                Ending::Gone(Patience { bytes: 0, .. }) => return Ok(Heard::Cut),
                Ending::Gone(patience) => Some(asked + patience.time),
                Ending::Open | Ending::Complete => silent_at,
            };
            tokio::select! {
                biased;
                () = self.cancel.cancelled(), if !stopping => self.obey(),
                ended = &mut program.ended, if self.ended.is_none() => {
                    self.ended = Some(ended.unwrap_or_else(lost));
                    if !stopping {
                        self.end = Ending::Gone(Patience::with(program.stdout.source()));
                    }
                }
                // What is there comes before any deadline.
                read = program.stdout.read() => match read {
                    Ok(Read::More(count)) => {
                        if let Ending::Gone(patience) = &mut self.end {
                            patience.take(count, asked.elapsed());
                        }
                    }
                    Ok(Read::End) => return Ok(Heard::Nothing),
                    Err(error) => return Err(Fault::Unreadable(error)),
                },
                () = wait_until(until) => match self.end {
                    Ending::Stopping(_) | Ending::Gone(_) => return Ok(Heard::Cut),
                    Ending::Open | Ending::Complete => {
                        let limit = self.limits.silence.unwrap_or_default();
                        return Err(Fault::Silent { limit });
                    }
                },
            }
        }
    }

    /// Waits for a long line too: the next one is not read before.
    async fn read(&mut self, line: BytesMut) -> Result<Option<AgentEvent>, Fault> {
        self.line += 1;
        let options = self.options;
        let event = if line.len() > PARSED_IN_PLACE {
            let parsing = self.background.spawn_blocking(move || output::read(&line, options));
            // It panicked, or this process is about to end.
            parsing.await.unwrap_or_else(|error| Err(error.to_string()))
        } else {
            output::read(&line, options)
        };
        let event = event.map_err(|what| Fault::BadLine { line: self.line, what })?;
        // The end of a program that is gone stays bounded.
        let gone = matches!(self.end, Ending::Gone(_));
        if !gone && event.as_ref().is_some_and(ends_the_reply) {
            self.end = Ending::Complete;
        }
        Ok(event)
    }

    /// Nothing more comes: how did it end? A last line may lack its end.
    async fn hang_up(&mut self) -> Result<Option<AgentEvent>, Fault> {
        if matches!(self.end, Ending::Stopping(_)) {
            return Ok(None);
        }
        let Some(program) = &mut self.program else { return Ok(None) };
        if self.ended.is_none() {
            let time = self.limits.grace + LAST_WORDS_WITHIN;
            let ended = timeout(time, &mut program.ended).await;
            self.ended = ended.ok().map(|ended| ended.unwrap_or_else(lost));
        }
        match self.ended.take() {
            Some(ended) => judge(ended)?,
            // It said all it had to say.
            None => {
                let Speaker { agent, request, thread, run } = &program.speaker;
                tracing::warn!(
                    request.id = &**request,
                    thread.id = thread.as_str(),
                    run.id = run.as_str(),
                    agent.id = &**agent,
                    "a program closed its stdout and went on; it is ended"
                );
            }
        }
        let rest = program.stdout.rest();
        let event = self.read(rest).await?;
        if event.is_some() {
            // Asked again, it says that nothing more comes.
            self.program = None;
        }
        Ok(event)
    }

    /// Tells the program to stop if the run was told to.
    fn obey(&mut self) {
        if !self.cancel.is_cancelled() || matches!(self.end, Ending::Stopping(_)) {
            return;
        }
        if let Some(program) = &self.program {
            program.stop.cancel();
        }
        self.end = Ending::Stopping(Instant::now() + self.limits.grace + PIPES_CLOSE_WITHIN);
    }

    /// Leaves the program to its keeper: to end by itself if its reply is complete, else to be
    /// ended, which is what dropping the sender means.
    fn leave(&mut self) {
        let Some(Program { stdout, left, .. }) = self.program.take() else { return };
        if self.end == Ending::Complete {
            // Fails only when the keeper is done.
            left.send(stdout.into_source()).ok();
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.leave();
    }
}

async fn wait_until(deadline: Option<Instant>) {
    match deadline {
        // A pending future that is bounded is a sleep.
        Some(deadline) => drop(timeout_at(deadline, std::future::pending::<()>()).await),
        None => std::future::pending().await,
    }
}

fn ends_the_reply(event: &AgentEvent) -> bool {
    event.source.is_none() && matches!(event.kind, AgentEventKind::AgentEnd { .. })
}

/// The end of a run that was told to stop.
pub(super) fn interrupted() -> AgentEvent {
    AgentEvent::local(AgentEventKind::AgentEnd { reply: None, reason: EndReason::Interrupted })
}

/// The keeper is gone: this process is about to end.
fn lost(error: oneshot::error::RecvError) -> Ended {
    Ended { status: Err(std::io::Error::other(error)), last_words: None }
}

fn judge(ended: Ended) -> Result<(), Fault> {
    let Ended { status, last_words } = ended;
    let status: ExitStatus = status.map_err(|error| Fault::Lost(error.to_string()))?;
    match (status.code(), status.signal()) {
        (Some(0), _) => Ok(()),
        (Some(code), _) => Err(Fault::Exit { code, last_words }),
        (None, signal) => Err(Fault::Killed { signal: signal.unwrap_or_default(), last_words }),
    }
}
