//! An agent that is a program: started for each run, told everything in one line on stdin, heard
//! line by line on stdout.
//!
//! [`CommandAgent`] starts it, a keeper watches over the process, a session reads what it says.
//! The formats of both lines are public; README.md describes them.

mod fault;
mod keeper;
mod lines;
mod output;
mod request;
mod session;
mod speaker;
#[cfg(test)]
mod tests;

use std::{io, sync::Arc};

use agui_adapter::{
    model::wire::DecodeOptions,
    options::{EnricherSpec, ToolMergeMode},
};
use agui_protocol::capabilities::{AgentCapabilities, IdentityCapabilities, TransportCapabilities};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use self::{
    fault::Fault,
    keeper::{Keeper, Orders},
    lines::Lines,
    session::{Limits, Session, interrupted},
    speaker::Speaker,
};
use super::{
    Agent, AgentRequest, AgentStream,
    registry::{AgentFactory, BuildError, Built, Capabilities, agent_path},
};
use crate::{
    config::{AgentConfig, AgentKind, CommandConfig},
    process::{Group, Log, Missing, Program, Wanted},
};

/// Builds agents that are programs.
#[derive(Clone, Copy, Debug, Default)]
pub struct CommandFactory;

impl AgentFactory for CommandFactory {
    fn build(&self, id: &str, config: &AgentConfig) -> Result<Built, Vec<BuildError>> {
        let agent = CommandAgent::find(id, config)?;
        Ok(Built { agent: Arc::new(agent), capabilities: capabilities(id, config) })
    }
}

/// An agent that starts a program for each run.
#[derive(Clone, Debug)]
pub struct CommandAgent(Arc<Setup>);

/// What holds for every run.
#[derive(Debug)]
struct Setup {
    id: Arc<str>,
    program: Program,
    limits: Limits,
    tools: ToolMergeMode,
    options: DecodeOptions,
}

impl CommandAgent {
    /// Finds the program of the agent `id`.
    ///
    /// # Errors
    ///
    /// The program, or the folder that it runs in, does not exist.
    pub fn find(id: &str, config: &AgentConfig) -> Result<Self, Vec<BuildError>> {
        let path = agent_path(id);
        let AgentKind::Command(command) = &config.kind else {
            let message = format!("an agent of type `{}` is no program", config.kind.name());
            return Err(vec![BuildError::at(path, message)]);
        };
        Ok(Self(Arc::new(Setup {
            id: id.into(),
            program: find(command, &path)?,
            limits: Limits {
                line: command.line_limit,
                silence: command.silence_timeout,
                grace: command.kill_grace,
            },
            tools: config.adapter.tool_merge_mode,
            options: DecodeOptions {
                keep_raw: config.adapter.enrichers.contains(&EnricherSpec::RawEvent),
            },
        })))
    }
}

impl Agent for CommandAgent {
    fn run(&self, request: AgentRequest) -> AgentStream {
        let setup = Arc::clone(&self.0);
        Box::pin(async_stream::stream! {
            if request.cancel.is_cancelled() {
                yield Ok(interrupted());
                return;
            }
            let mut session = match setup.start(request) {
                Ok(session) => session,
                Err(fault) => {
                    yield Err(fault.into());
                    return;
                }
            };
            loop {
                match session.next().await {
                    Ok(Some(event)) => yield Ok(event),
                    Ok(None) => return,
                    Err(fault) => {
                        yield Err(fault.into());
                        return;
                    }
                }
            }
        })
    }
}

impl Setup {
    /// Starts the program and its keeper.
    fn start(&self, request: AgentRequest) -> Result<Session, Fault> {
        let failed = |error| Fault::Start { program: self.program.name(), error };
        let line = request::line(&request, self.tools).map_err(|error| failed(error.into()))?;
        let mut child = self.program.start().map_err(failed)?;
        let group = Group::of(&child);
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(failed(io::Error::other("it has no pipes")));
        };
        let speaker = Speaker {
            agent: Arc::clone(&self.id),
            request: request.request_id,
            thread: request.thread_id,
            run: request.run_id,
        };
        let log = Log::new(stderr, speaker.clone());
        let keeper = Keeper { child, group, stdin, line, log, grace: self.limits.grace };
        let stop = CancellationToken::new();
        let (left, leaving) = oneshot::channel();
        let (ends, ended) = oneshot::channel();
        let orders = Orders { stop: stop.clone(), left: leaving };
        request.background.spawn(keeper.keep(orders, ends));
        let stdout = Lines::new(stdout, self.limits.line);
        let program = session::Program { stdout, stop, left, ended, speaker };
        Ok(Session::new(program, self.limits, self.options, request.cancel, request.background))
    }
}

/// Finds the program; `at` is the agent's key path.
fn find(config: &CommandConfig, at: &str) -> Result<Program, Vec<BuildError>> {
    let CommandConfig { command, args, env, cwd, .. } = config.clone();
    let wanted = Wanted { command, args, env: env.into_iter().collect(), cwd };
    Program::find(wanted).map_err(|missing| {
        let fault = |fault: Missing| BuildError::at(format!("{at}.{}", fault.key), fault.message);
        missing.into_iter().map(fault).collect()
    })
}

/// What a program does is known to nobody before it does it.
fn capabilities(id: &str, config: &AgentConfig) -> Capabilities {
    let name = if config.name.is_empty() { id } else { &config.name };
    let description = Some(config.description.clone()).filter(|text| !text.is_empty());
    AgentCapabilities {
        identity: Some(IdentityCapabilities {
            name: Some(name.to_owned()),
            r#type: Some("command".to_owned()),
            description,
            ..Default::default()
        }),
        transport: Some(TransportCapabilities { streaming: Some(true), ..Default::default() }),
        ..Default::default()
    }
}
