//! The scripted agent: plays agent events from a file. Deterministic, needs no key; for demos,
//! tests and front-end development.
//!
//! A script is JSON lines: agent events in either wire form, and directives. Scripts are compiled
//! when the server starts (`script`), the turn to play is chosen by the run (`matching`), strings
//! may hold placeholders (`placeholder`). Nothing here knows AG-UI events.

mod capabilities;
mod matching;
mod placeholder;
mod script;
#[cfg(test)]
mod tests;

use std::{collections::HashSet, sync::Arc, time::Duration};

use agui_adapter::{
    model::{AgentEvent, AgentEventKind, event::EndReason, wire::DecodeOptions},
    options::EnricherSpec,
};
use tokio_util::sync::CancellationToken;

use self::{
    placeholder::Values,
    script::{Action, Script},
};
use super::{
    Agent, AgentError, AgentRequest, AgentStream,
    registry::{AgentFactory, BuildError, Built, agent_path},
};
use crate::config::{AgentConfig, AgentKind, When};

/// Builds scripted agents.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScriptedFactory;

impl AgentFactory for ScriptedFactory {
    fn build(&self, id: &str, config: &AgentConfig) -> Result<Built, Vec<BuildError>> {
        let agent = ScriptedAgent::compile(id, config)?;
        let capabilities = capabilities::derive(id, config, agent.scripts());
        Ok(Built { agent: Arc::new(agent), capabilities })
    }
}

/// An agent that plays scripts.
#[derive(Clone, Debug)]
pub struct ScriptedAgent {
    turns: Vec<(When, Arc<Script>)>,
}

impl ScriptedAgent {
    /// Compiles the scripts of the agent `id`.
    ///
    /// # Errors
    ///
    /// Every bad line of every script, and an agent without turns.
    pub fn compile(id: &str, config: &AgentConfig) -> Result<Self, Vec<BuildError>> {
        let path = agent_path(id);
        let AgentKind::Scripted(scripted) = &config.kind else {
            let message = format!("an agent of type `{}` plays no script", config.kind.name());
            return Err(vec![BuildError::at(path, message)]);
        };
        if scripted.turns.is_empty() {
            let message = "a scripted agent has `turns` or a `script`";
            return Err(vec![BuildError::at(path, message)]);
        }
        let keep_raw = config.adapter.enrichers.contains(&EnricherSpec::RawEvent);
        let options = DecodeOptions { keep_raw };
        let mut turns = Vec::with_capacity(scripted.turns.len());
        let mut errors = Vec::new();
        for turn in &scripted.turns {
            match Script::compile(turn, &path, options) {
                Ok(script) => turns.push((turn.when.clone(), Arc::new(script))),
                Err(faults) => errors.extend(faults),
            }
        }
        if errors.is_empty() { Ok(Self { turns }) } else { Err(errors) }
    }

    fn scripts(&self) -> impl Iterator<Item = &Script> {
        self.turns.iter().map(|(_, script)| &**script)
    }

    /// The script of the first turn that matches, without a match of the last one.
    fn script_for(&self, request: &AgentRequest) -> Option<Arc<Script>> {
        let matching = self.turns.iter().find(|(when, _)| matching::holds(when, request));
        matching.or(self.turns.last()).map(|(_, script)| script.clone())
    }
}

impl Agent for ScriptedAgent {
    fn run(&self, request: AgentRequest) -> AgentStream {
        match self.script_for(&request) {
            Some(script) => play(script, request),
            None => Box::pin(futures_util::stream::empty()),
        }
    }
}

fn play(script: Arc<Script>, request: AgentRequest) -> AgentStream {
    Box::pin(async_stream::stream! {
        let cancel = request.cancel.clone();
        let mut values = Values::new(request);
        let mut pace = Pace::default();
        let mut skipped = Skipped::default();
        for (step, n) in script.play() {
            if pace.step(&cancel).await == Told::Stop {
                yield Ok(interrupted());
                return;
            }
            values.n = n;
            match &step.action {
                Action::Emit(source) => {
                    match source.event(&mut values).and_then(|event| follow(event, &mut values)) {
                        Ok(event) => yield Ok(event),
                        Err(fault) => skipped.note(step.line, &fault),
                    }
                }
                Action::Sleep(duration) => {
                    if sleep(*duration, &cancel).await == Told::Stop {
                        yield Ok(interrupted());
                        return;
                    }
                }
                Action::Hang => {
                    cancel.cancelled().await;
                    yield Ok(interrupted());
                    return;
                }
                Action::Fail(message) => {
                    yield Err(failure(values.text(message)));
                    return;
                }
                Action::Panic => die(),
                Action::End => return,
                // The cursor unrolls repetitions.
                Action::Repeat { .. } => {}
            }
        }
    })
}

/// Whether the run was told to stop.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    GoOn,
    Stop,
}

impl Told {
    fn by(cancel: &CancellationToken) -> Self {
        if cancel.is_cancelled() { Self::Stop } else { Self::GoOn }
    }
}

/// Keeps a long row of ready lines from starving other tasks, and looks at the token now and
/// then: asking it takes a lock, which is too much for every line.
#[derive(Default)]
struct Pace {
    lines: u32,
}

impl Pace {
    const LOOK_EVERY: u32 = 16;
    const YIELD_EVERY: u32 = 256;

    async fn step(&mut self, cancel: &CancellationToken) -> Told {
        let count = self.lines;
        self.lines = count.wrapping_add(1);
        if !count.is_multiple_of(Self::LOOK_EVERY) {
            return Told::GoOn;
        }
        if count != 0 && count.is_multiple_of(Self::YIELD_EVERY) {
            tokio::task::yield_now().await;
        }
        Told::by(cancel)
    }
}

async fn sleep(duration: Duration, cancel: &CancellationToken) -> Told {
    if duration.is_zero() {
        return Told::GoOn;
    }
    match tokio::time::timeout(duration, cancel.cancelled()).await {
        Ok(()) => Told::Stop,
        Err(_) => Told::GoOn,
    }
}

/// Keeps the running state in step with the state events of the script. A patch that does not fit
/// is not sent: the script would contradict itself.
fn follow(event: AgentEvent, values: &mut Values) -> Result<AgentEvent, String> {
    if let AgentEventKind::State { change } = &event.kind {
        change.apply(&mut values.state).map_err(|error| error.to_string())?;
    }
    Ok(event)
}

/// The lines that a run skipped: each is a warning once, however often it is repeated.
#[derive(Default)]
struct Skipped(HashSet<usize>);

impl Skipped {
    fn note(&mut self, line: usize, fault: &str) {
        if self.0.insert(line) {
            tracing::warn!(script.line = line, fault, "a line of the script was skipped");
        } else {
            tracing::debug!(script.line = line, fault, "a line of the script was skipped again");
        }
    }
}

fn interrupted() -> AgentEvent {
    AgentEvent::local(AgentEventKind::AgentEnd { reply: None, reason: EndReason::Interrupted })
}

fn failure(message: String) -> AgentError {
    let cause = Some("the script asked for it".to_owned());
    AgentError { code: "INTERNAL_ERROR", message, cause }
}

/// The directive `panic`: shows what happens when an agent dies.
#[expect(clippy::panic, reason = "the script asks for exactly this")]
fn die() -> ! {
    panic!("the script asked for a panic")
}
