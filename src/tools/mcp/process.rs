//! The program of an MCP server over stdio.

use std::{io, pin::pin, sync::Arc, time::Duration};

use futures_util::future::{FusedFuture, FutureExt};
use tokio::{
    process::{Child, ChildStderr, ChildStdin, ChildStdout},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::{
    config::mcp_servers::{McpServerConfig, McpTransport},
    process::{Group, Log, Missing, PIPES_CLOSE_WITHIN, Program, Speaker, Wanted, while_piping},
};

/// How long a program may take to end by itself once its stdin is closed.
const FAREWELL: Duration = Duration::from_millis(200);
/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);

/// A program that runs.
pub(super) struct Process {
    child: Child,
    group: Group,
    log: Log<ChildStderr, Server>,
    server: Arc<str>,
}

/// Whose words they are.
pub(super) struct Server(Arc<str>);

impl Speaker for Server {
    fn says(&self, line: &str) {
        tracing::info!(mcp.server = &*self.0, "stderr: {line}");
    }

    fn was_cut(&self, lines: u64) {
        tracing::warn!(mcp.server = &*self.0, lines, "stderr was left out");
    }
}

/// Why the program of this server could not be started; empty = it could, or there is none.
pub fn program_faults(config: &McpServerConfig) -> Vec<Missing> {
    find(&config.transport).and_then(Result::err).unwrap_or_default()
}

fn words(missing: &[Missing]) -> String {
    let words: Vec<&str> = missing.iter().map(|missing| missing.message.as_str()).collect();
    words.join("; ")
}

fn find(transport: &McpTransport) -> Option<Result<Program, Vec<Missing>>> {
    let McpTransport::Stdio { command, args, env, cwd } = transport else { return None };
    let env = env.iter().map(|(name, value)| (name.clone(), value.expose().to_owned()));
    let (command, args, cwd) = (command.clone(), args.clone(), cwd.clone());
    Some(Program::find(Wanted { command, args, env: env.collect(), cwd }))
}

impl Process {
    /// Starts the program; gives its stdout and its stdin as well.
    pub(super) fn start(
        server: &Arc<str>,
        transport: &McpTransport,
    ) -> Result<(Self, ChildStdout, ChildStdin), String> {
        let program = find(transport).ok_or("it is no program")?;
        let program = program.map_err(|missing| words(&missing))?;
        let text = |error: io::Error| format!("its program cannot be started: {error}");
        let mut child = program.start().map_err(text)?;
        let group = Group::of(&child);
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err("its program has no pipes".to_owned());
        };
        let log = Log::new(stderr, Server(Arc::clone(server)));
        let server = Arc::clone(server);
        Ok((Self { child, group, log, server }, stdout, stdin))
    }

    /// Logs what it says until nothing is left of it. `stop` says that its stdin is closed and it
    /// has to end; `died` is told when it did.
    pub(super) async fn keep(self, stop: CancellationToken, died: CancellationToken) {
        let Self { mut child, group, mut log, server } = self;
        let mut words = pin!(log.follow().fuse());
        let status = while_piping(life(&mut child, &group, &stop), &mut words).await;
        if !stop.is_cancelled() {
            let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
            tracing::warn!(mcp.server = &*server, status, "the program of an MCP server ended");
        }
        died.cancel();
        while_piping(group.sweep(GRACE), &mut words).await;
        if !words.is_terminated() {
            // Whoever still holds it after that is none of ours.
            timeout(PIPES_CLOSE_WITHIN, words).await.ok();
        }
    }
}

async fn life(
    child: &mut Child,
    group: &Group,
    stop: &CancellationToken,
) -> io::Result<std::process::ExitStatus> {
    tokio::select! {
        biased;
        status = child.wait() => return status,
        () = stop.cancelled() => {}
    }
    if let Ok(status) = timeout(FAREWELL, child.wait()).await {
        return status;
    }
    group.terminate();
    match timeout(GRACE, child.wait()).await {
        Ok(status) => status,
        Err(_) => {
            group.kill();
            child.wait().await
        }
    }
}
