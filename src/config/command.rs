//! An agent of `type: command`: the program, how it is started, and its limits.
//!
//! Data and what is wrong with the values themselves. Whether the program exists is seen when the
//! agent is built.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use super::{
    adapter,
    load::Folder,
    place::item,
    tree::{Block, Faults},
};

/// `type: command`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandConfig {
    /// The program: a name, which is looked up on the PATH, or a path, told from a name by its
    /// `/`; a relative path starts at the configuration file's folder.
    pub command: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Environment variables of its own, over PATH, HOME, LANG and TMPDIR of the server, which are
    /// all it has else.
    pub env: BTreeMap<String, String>,
    /// The folder it runs in; default: the configuration file's.
    pub cwd: PathBuf,
    /// Longest line that it may write, in bytes; default 16 MiB.
    pub line_limit: usize,
    /// Longest time without a line; `None` = no limit; default 5 minutes.
    pub silence_timeout: Option<Duration>,
    /// How long it may take to end after SIGTERM before it is killed, and after its reply
    /// is complete before it is told to end; default 5 s.
    pub kill_grace: Duration,
}

impl Default for CommandConfig {
    fn default() -> Self {
        Self {
            command: PathBuf::new(),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: PathBuf::new(),
            line_limit: 16 << 20,
            silence_timeout: Some(Duration::from_secs(300)),
            kill_grace: Duration::from_secs(5),
        }
    }
}

/// Reads the keys of the type.
pub(super) fn read(entry: &Block<'_>, folder: &Folder, faults: &mut Faults<'_>) -> CommandConfig {
    let default = CommandConfig::default();
    if !entry.has("command") {
        adapter::missing(entry, "command", faults);
    }
    CommandConfig {
        command: program(entry, folder, faults),
        args: args(entry, faults),
        env: env(&entry.block("env"), faults),
        cwd: cwd(entry, folder, faults),
        line_limit: entry.integer("line-limit").unwrap_or(default.line_limit),
        silence_timeout: entry.duration("silence-timeout").unwrap_or(default.silence_timeout),
        kill_grace: entry
            .duration("kill-grace")
            .map_or(default.kill_grace, |grace| grace.unwrap_or_default()),
    }
}

/// The program that `command` names.
pub(super) fn program(entry: &Block<'_>, folder: &Folder, faults: &mut Faults<'_>) -> PathBuf {
    let Some(command) = entry.text("command") else { return PathBuf::new() };
    if command.is_empty() || command.contains('\0') {
        faults.value(&entry.at("command"), "expected the name or the path of a program");
    }
    if command.contains('/') {
        return base(entry, "command", folder, faults).join(command);
    }
    PathBuf::from(command)
}

/// Its arguments.
pub(super) fn args(entry: &Block<'_>, faults: &mut Faults<'_>) -> Vec<String> {
    let args = entry.texts("args").unwrap_or_default();
    for (at, _) in args.iter().filter(|(_, arg)| arg.contains('\0')) {
        let path = item(&entry.at("args"), *at);
        faults.value(&path, "an argument cannot hold a NUL character");
    }
    args.into_iter().map(|(_, arg)| arg.to_owned()).collect()
}

/// Its environment variables.
pub(super) fn env(block: &Block<'_>, faults: &mut Faults<'_>) -> BTreeMap<String, String> {
    let names: Vec<&str> = block.entries().into_iter().map(|(name, _)| name).collect();
    let mut env = BTreeMap::new();
    for name in names {
        if name.is_empty() || name.contains(['=', '\0']) {
            faults.key(&block.at(name), "this cannot be the name of an environment variable");
        }
        let value = block.text(name).unwrap_or_default();
        if value.contains('\0') {
            faults.value(&block.at(name), "a variable cannot hold a NUL character");
        }
        env.insert(name.to_owned(), value.to_owned());
    }
    env
}

/// The folder it runs in.
pub(super) fn cwd(entry: &Block<'_>, folder: &Folder, faults: &Faults<'_>) -> PathBuf {
    let base = base(entry, "cwd", folder, faults);
    entry.text("cwd").map_or_else(|| base.clone(), |cwd| base.join(cwd))
}

fn base(entry: &Block<'_>, key: &str, folder: &Folder, faults: &Faults<'_>) -> PathBuf {
    faults.base(&entry.at(key), folder)
}
