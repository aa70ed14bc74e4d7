//! Key `agentscope.mcp-servers`: the MCP servers, by name.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use super::{
    command, endpoint,
    load::Folder,
    models::Secret,
    react::OTHER_SOURCES,
    tree::{Block, Faults},
};

/// One MCP server.
#[derive(Clone, Debug, PartialEq)]
pub struct McpServerConfig {
    /// How it is reached.
    pub transport: McpTransport,
    /// Longest time that starting it or one of its calls may take without progress; default 60 s.
    pub timeout: Duration,
    /// Who shares it.
    pub scope: McpScope,
    /// Whether a run goes on without it; default false.
    pub optional: bool,
    /// What becomes of its questions in the middle of a call.
    pub elicitation: Elicitation,
}

/// How an MCP server is reached.
#[derive(Clone, Debug, PartialEq)]
pub enum McpTransport {
    /// A program, over its stdin and stdout.
    Stdio {
        /// The program: a name, which is looked up on the PATH, or a path.
        command: PathBuf,
        /// Its arguments.
        args: Vec<String>,
        /// Environment variables of its own, over PATH, HOME, LANG and TMPDIR of the server,
        /// which are all it has else.
        env: BTreeMap<String, Secret>,
        /// The folder it runs in.
        cwd: PathBuf,
    },
    /// Streamable HTTP.
    Http {
        /// The endpoint.
        url: String,
        /// Headers of every request.
        headers: BTreeMap<String, Secret>,
    },
}

/// Who shares an MCP server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum McpScope {
    /// All threads.
    #[default]
    Server,
    /// Each thread has its own process or session.
    Thread,
}

/// What becomes of questions that an MCP server of the older protocol asks in the middle of a
/// call, which cannot outlast the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Elicitation {
    /// Declined.
    #[default]
    Decline,
    /// The run ends with the question. The call stays open in this process until the run that
    /// brings the answer, for the server's timeout at most; a restart loses it.
    Wait,
}

/// Keys of one way to reach a server, none of which the other has.
const OF_COMMAND: [&str; 3] = ["args", "env", "cwd"];
const OF_URL: [&str; 1] = ["headers"];

/// Headers of the protocol.
const OF_PROTOCOL: [&str; 4] =
    ["accept", "last-event-id", "mcp-protocol-version", "mcp-session-id"];

/// Reads the section.
pub(super) fn read(
    block: &Block<'_>,
    folder: &Folder,
    faults: &mut Faults<'_>,
) -> BTreeMap<String, McpServerConfig> {
    let mut servers = BTreeMap::new();
    for (name, entry) in block.entries() {
        if let Some(message) = name_fault(name) {
            faults.key(entry.path(), message);
        }
        servers.insert(name.to_owned(), server(&entry, folder, faults));
    }
    servers
}

/// Rules say `server:tool`, and a tool may be called `server_tool`.
fn name_fault(name: &str) -> Option<String> {
    if OTHER_SOURCES.contains(&name) {
        return Some(format!("`{name}` stands for other tools in permission rules"));
    }
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let fits = (1..=64).contains(&name.len()) && name.bytes().all(legal);
    (!fits).then(|| {
        "the name of a server has 1 to 64 characters out of A-Z, a-z, 0-9, `.`, `_` and `-`"
            .to_owned()
    })
}

fn server(entry: &Block<'_>, folder: &Folder, faults: &mut Faults<'_>) -> McpServerConfig {
    McpServerConfig {
        transport: transport(entry, folder, faults),
        timeout: timeout(entry, faults),
        scope: match entry.text("scope") {
            Some("thread") => McpScope::Thread,
            _ => McpScope::Server,
        },
        optional: entry.boolean("optional").unwrap_or(false),
        elicitation: match entry.text("elicitation") {
            Some("wait") => Elicitation::Wait,
            _ => Elicitation::Decline,
        },
    }
}

fn timeout(entry: &Block<'_>, faults: &mut Faults<'_>) -> Duration {
    match entry.duration("timeout") {
        Some(Some(timeout)) => timeout,
        Some(None) => {
            let message = "expected more than 0: a server that hangs must not hold a run for ever";
            faults.value(&entry.at("timeout"), message);
            Duration::ZERO
        }
        None => Duration::from_secs(60),
    }
}

fn transport(entry: &Block<'_>, folder: &Folder, faults: &mut Faults<'_>) -> McpTransport {
    if entry.has("command") == entry.has("url") && !faults.within(entry.path()) {
        faults.key(entry.path(), "exactly one of `command` and `url` is needed");
    }
    let Some(url) = entry.text("url") else {
        refuse(entry, &OF_URL, "url", faults);
        return stdio(entry, folder, faults);
    };
    refuse(entry, &OF_COMMAND, "command", faults);
    if let Some(message) = endpoint::url_fault(url) {
        faults.value(&entry.at("url"), message);
    }
    let headers = endpoint::headers(&entry.block("headers"), &OF_PROTOCOL, faults);
    McpTransport::Http { url: url.to_owned(), headers }
}

fn stdio(entry: &Block<'_>, folder: &Folder, faults: &mut Faults<'_>) -> McpTransport {
    let env = command::env(&entry.block("env"), faults).into_iter();
    McpTransport::Stdio {
        command: command::program(entry, folder, faults),
        args: command::args(entry, faults),
        env: env.map(|(name, value)| (name, Secret::new(value))).collect(),
        cwd: command::cwd(entry, folder, faults),
    }
}

fn refuse(entry: &Block<'_>, keys: &[&str], of: &str, faults: &mut Faults<'_>) {
    for key in keys.iter().filter(|key| entry.has(key)) {
        faults.key(&entry.at(key), format!("this key goes only with `{of}`"));
    }
}
