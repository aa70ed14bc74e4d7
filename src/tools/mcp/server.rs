//! An MCP server of the configuration, and the ways to it: one for all, or one for each session.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use tokio::task::JoinHandle;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    McpStatus,
    call::McpTool,
    link::{Link, State, Use},
};
use crate::{
    config::mcp_servers::{McpScope, McpServerConfig},
    tools::{SourceError, Tool, ToolSource, ToolsFuture},
};

/// What never changes.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) name: Arc<str>,
    pub(super) config: McpServerConfig,
    pub(super) client: reqwest::Client,
    pub(super) limits: Limits,
}

/// Limits of sessions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// One that is not used for so long ends.
    pub(super) idle: Duration,
    /// So many at most; beyond, the one that is unused longest ends.
    pub(super) sessions: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { idle: Duration::from_secs(600), sessions: 100 }
    }
}

/// Where tasks belong, and what ends them.
#[derive(Clone, Debug)]
pub(super) struct Hub {
    pub(super) tasks: TaskTracker,
    pub(super) stop: CancellationToken,
}

impl Hub {
    /// Runs it as a task for which the shutdown waits.
    pub(super) fn run<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.tasks.spawn(task)
    }
}

/// An MCP server.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) setup: Setup,
    hub: OnceLock<Hub>,
    /// By session; without sessions all have the one under the empty name.
    links: Mutex<HashMap<Arc<str>, Arc<Link>>>,
}

impl Server {
    pub(super) fn new(setup: Setup) -> Self {
        Self { setup, hub: OnceLock::new(), links: Mutex::default() }
    }

    /// From now on it may connect; one that all share does so at once.
    pub(super) fn start(self: &Arc<Self>, hub: Hub) {
        if self.hub.set(hub).is_ok() && self.setup.config.scope == McpScope::Server {
            // Refused only when the server stops already.
            self.link("").ok();
        }
    }

    /// The link of this session, in use.
    pub(super) fn link(self: &Arc<Self>, session: &str) -> Result<Use, String> {
        let hub = self.hub.get().ok_or("it was not started")?;
        if hub.stop.is_cancelled() {
            return Err("the server is shutting down".to_owned());
        }
        let (key, idle) = match self.setup.config.scope {
            McpScope::Server => ("", None),
            McpScope::Thread => (session, Some(self.setup.limits.idle)),
        };
        let mut links = self.links();
        if let Some(link) = links.get(key).filter(|link| !link.stop.is_cancelled()) {
            return Ok(Use::new(Arc::clone(link)));
        }
        make_room(&mut links, self.setup.limits.sessions)?;
        let link = Arc::new(Link::new(hub.stop.child_token(), idle));
        let key: Arc<str> = key.into();
        links.insert(Arc::clone(&key), Arc::clone(&link));
        let used = Use::new(Arc::clone(&link));
        let (server, hub) = (Arc::clone(self), hub.clone());
        hub.clone().run(async move {
            while !server.has_ended(&key, &link) {
                link.keep(&server.setup, &hub).await;
            }
        });
        Ok(used)
    }

    /// Takes a link away that has ended; `false` = somebody came in the last moment.
    fn has_ended(&self, key: &Arc<str>, link: &Arc<Link>) -> bool {
        let mut links = self.links();
        let ends = link.stop.is_cancelled() || link.is_unused();
        if ends {
            link.end();
            if links.get(key).is_some_and(|other| Arc::ptr_eq(other, link)) {
                links.remove(key);
            }
        }
        ends
    }

    pub(super) fn status(&self) -> McpStatus {
        let per_thread = self.setup.config.scope == McpScope::Thread;
        let (mut ready, mut failed) = (per_thread && self.hub.get().is_some(), false);
        for link in self.links().values() {
            match link.state() {
                State::Failed(_) => failed = true,
                State::Ready(_) => ready = true,
                State::Starting | State::Ended => {}
            }
        }
        match (failed, ready) {
            (true, _) => McpStatus::Failed,
            (false, true) => McpStatus::Ready,
            (false, false) => McpStatus::Starting,
        }
    }

    pub(super) fn links(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Link>>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the session that is unused longest, if there are too many.
fn make_room(links: &mut HashMap<Arc<str>, Arc<Link>>, most: usize) -> Result<(), String> {
    if links.len() < most {
        return Ok(());
    }
    let unused = links.iter().filter_map(|(key, link)| Some((link.unused_since()?, key)));
    let oldest = unused.min().map(|(_, key)| Arc::clone(key));
    let link = oldest.and_then(|key| links.remove(&key));
    let link = link.ok_or("all of its sessions are in use")?;
    link.stop.cancel();
    Ok(())
}

/// The tools of a server.
#[derive(Debug)]
pub(super) struct Source(pub(super) Arc<Server>);

impl ToolSource for Source {
    fn name(&self) -> &str {
        &self.0.setup.name
    }

    fn is_optional(&self) -> bool {
        self.0.setup.config.optional
    }

    fn tools<'a>(&'a self, session: &'a str) -> ToolsFuture<'a> {
        Box::pin(async move {
            let server = &self.0;
            let failed = |cause| SourceError { source_name: server.setup.name.to_string(), cause };
            let used = server.link(session).map_err(failed)?;
            let McpServerConfig { timeout, optional, .. } = server.setup.config;
            let ready = used.link().ready(timeout, optional).await.map_err(failed)?;
            let session: Arc<str> = session.into();
            let tool = |spec| -> Arc<dyn Tool> {
                Arc::new(McpTool::new(Arc::clone(server), Arc::clone(&session), spec))
            };
            Ok(ready.tools.iter().cloned().map(tool).collect())
        })
    }
}
