//! Key `agentscope.agents`: what each agent is.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{
    AguiConfig, adapter,
    command::{self, CommandConfig},
    embedded, keys,
    load::Folder,
    react::{self, ReactConfig, Shared},
    tree::{Block, Faults},
};

/// One agent.
#[derive(Clone, Debug)]
pub struct AgentConfig {
    /// Name shown to people; empty = the agent id.
    pub name: String,
    /// Shown to people.
    pub description: String,
    /// Adapter switches that hold for this agent only (`agui:` inside its block), merged over
    /// the server's.
    pub adapter: agui_adapter::options::AdapterOptions,
    /// Longest run of this agent; `None` = no limit.
    pub run_timeout: Option<std::time::Duration>,
    /// Whether client system and developer messages reach this agent.
    pub accept_client_system_messages: bool,
    /// `history-limit`: messages of the history given to a model; 0 = all.
    pub history_limit: usize,
    /// What it is.
    pub kind: AgentKind,
}

impl AgentConfig {
    /// The turns of a scripted agent; other agents have none.
    pub fn turns(&self) -> &[Turn] {
        match &self.kind {
            AgentKind::Scripted(scripted) => &scripted.turns,
            AgentKind::Command(_) | AgentKind::React(_) => &[],
        }
    }
}

/// What an agent is (`type`).
#[derive(Clone, Debug)]
pub enum AgentKind {
    /// Events from a file.
    Scripted(ScriptedConfig),
    /// A program, started for each run.
    Command(CommandConfig),
    /// A model with tools.
    React(Box<ReactConfig>),
}

impl AgentKind {
    /// The value of `type`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Scripted(_) => "scripted",
            Self::Command(_) => "command",
            Self::React(_) => "react",
        }
    }
}

/// `type: scripted`.
#[derive(Clone, Debug, Default)]
pub struct ScriptedConfig {
    /// The turns; the first that matches is played, without a match the last one.
    pub turns: Vec<Turn>,
}

/// One turn of a scripted agent.
#[derive(Clone, Debug, Default)]
pub struct Turn {
    /// When it is played.
    pub when: When,
    /// The script, already read: one JSON value per line with its line number, comments and
    /// blank lines left out.
    pub lines: Vec<(usize, String)>,
    /// Where the lines came from, for messages.
    pub origin: PathBuf,
}

/// Conditions of a turn; all that are given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct When {
    /// The last user message contains it, case ignored.
    pub text: Option<String>,
    /// How the run's resume answers.
    pub resume: Option<ResumeCondition>,
    /// The last message is a tool result for the tool of this name.
    pub tool_result: Option<String>,
    /// Always holds.
    pub always: bool,
}

/// What a run's resume must say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumeCondition {
    /// All entries approve.
    Approved,
    /// Any entry denies.
    Denied,
    /// Any entry is cancelled.
    Cancelled,
    /// Any other payload.
    Answered,
    /// Any resume.
    Any,
}

/// First path segments that are kept for the server's own routes; an agent of that name could not
/// be reached.
pub const RESERVED_IDS: [&str; 5] = ["run", "agents", "threads", "connect", "cancel"];

/// Reads the section; what an agent does not set is the server's.
pub(super) fn read(
    block: &Block<'_>,
    agui: &AguiConfig,
    shared: Shared<'_>,
    folder: &Folder,
    faults: &mut Faults<'_>,
) -> BTreeMap<String, AgentConfig> {
    let mut agents = BTreeMap::new();
    if block.entries().is_empty() {
        faults.key(block.path(), "no agent is declared; without this key the demo agents are");
    }
    for (id, entry) in block.entries() {
        if let Some(message) = id_fault(id) {
            faults.key(entry.path(), message);
        }
        agents.insert(id.to_owned(), agent(&entry, agui, shared, folder, faults));
    }
    react::check_subagents(&agents, faults);
    agents
}

/// What is wrong with an agent id.
pub(crate) fn id_fault(id: &str) -> Option<String> {
    if RESERVED_IDS.contains(&id) {
        return Some(format!("`{id}` is kept for a route of the server and cannot be an agent id"));
    }
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if matches!(id, "." | "..") {
        return Some(format!("`{id}` means a folder in a path and cannot be an agent id"));
    }
    let fits = (1..=64).contains(&id.len()) && id.bytes().all(legal);
    (!fits).then(|| {
        "an agent id has 1 to 64 characters out of A-Z, a-z, 0-9, `.`, `_` and `-`".to_owned()
    })
}

fn agent(
    entry: &Block<'_>,
    agui: &AguiConfig,
    shared: Shared<'_>,
    folder: &Folder,
    faults: &mut Faults<'_>,
) -> AgentConfig {
    let switches = entry.block("agui");
    if !entry.has("type") {
        adapter::missing(entry, "type", faults);
    }
    AgentConfig {
        name: entry.text("name").unwrap_or_default().to_owned(),
        description: entry.text("description").unwrap_or_default().to_owned(),
        adapter: adapter::read(&switches, &agui.adapter, faults),
        run_timeout: switches.duration("run-timeout").unwrap_or(agui.run_timeout),
        accept_client_system_messages: switches
            .boolean("accept-client-system-messages")
            .unwrap_or(agui.accept_client_system_messages),
        history_limit: switches.integer("history-limit").unwrap_or(agui.history_limit),
        kind: kind(entry, shared, folder, faults),
    }
}

fn kind(
    entry: &Block<'_>,
    shared: Shared<'_>,
    folder: &Folder,
    faults: &mut Faults<'_>,
) -> AgentKind {
    let kind = match entry.text("type") {
        Some("react") => AgentKind::React(Box::new(react::read(entry, shared, faults))),
        Some("command") => AgentKind::Command(command::read(entry, folder, faults)),
        _ => AgentKind::Scripted(scripted(entry, folder, faults)),
    };
    refuse_keys_of_other_types(entry, &kind, faults);
    kind
}

/// A variable can set any agent's key of any type; in a file the check before found it.
fn refuse_keys_of_other_types(entry: &Block<'_>, kind: &AgentKind, faults: &mut Faults<'_>) {
    let own = keys::AGENTS.iter().find(|variant| variant.name == kind.name());
    let own = own.map_or(&[][..], |variant| variant.keys);
    let others = keys::AGENTS.iter().filter(|variant| variant.name != kind.name());
    for variant in others {
        let foreign = variant.keys.iter().filter(|key| own.iter().all(|own| own.name != key.name));
        for key in foreign.filter(|key| entry.has(key.name)) {
            let message = format!("only agents of type `{}` have this key", variant.name);
            faults.value(&entry.at(key.name), message);
        }
    }
}

fn scripted(entry: &Block<'_>, folder: &Folder, faults: &mut Faults<'_>) -> ScriptedConfig {
    let turns = match (entry.blocks("turns"), entry.text("script")) {
        (Some(turns), None) if !turns.is_empty() => {
            turns.iter().map(|turn| read_turn(turn, folder, faults)).collect()
        }
        (None, Some(_)) => {
            let when = When { always: true, ..When::default() };
            let (lines, origin) = script(entry, folder, faults);
            vec![Turn { when, lines, origin }]
        }
        _ => {
            if !faults.within(entry.path()) {
                faults.key(entry.path(), "exactly one of `turns` and `script` is needed");
            }
            Vec::new()
        }
    };
    ScriptedConfig { turns }
}

fn read_turn(turn: &Block<'_>, folder: &Folder, faults: &mut Faults<'_>) -> Turn {
    let when = when(&turn.block("when"), faults);
    let (lines, origin) = match (turn.texts("events"), turn.text("script")) {
        (Some(events), None) => {
            let lines = events.into_iter().map(|(at, line)| (at + 1, line.to_owned())).collect();
            (lines, PathBuf::from(turn.at("events")))
        }
        (None, Some(_)) => script(turn, folder, faults),
        _ => {
            if !faults.within(turn.path()) {
                faults.key(turn.path(), "exactly one of `script` and `events` is needed");
            }
            (Vec::new(), PathBuf::new())
        }
    };
    Turn { when, lines, origin }
}

/// A turn without `when` always matches, so `always: false` could only be a mistake.
fn when(block: &Block<'_>, faults: &mut Faults<'_>) -> When {
    if block.boolean("always") == Some(false) {
        faults.value(&block.at("always"), "only true means something here");
    }
    When {
        text: block.text("text").map(str::to_owned),
        resume: block.text("resume").map(|name| match name {
            "approved" => ResumeCondition::Approved,
            "denied" => ResumeCondition::Denied,
            "cancelled" => ResumeCondition::Cancelled,
            "answered" => ResumeCondition::Answered,
            _ => ResumeCondition::Any,
        }),
        tool_result: block.text("tool-result").map(str::to_owned),
        always: block.boolean("always").unwrap_or(false),
    }
}

/// Reads the file that `script` names, relative to the file that says so; what a variable says is
/// relative to the working directory.
fn script(
    block: &Block<'_>,
    folder: &Folder,
    faults: &mut Faults<'_>,
) -> (Vec<(usize, String)>, PathBuf) {
    let name = block.text("script").unwrap_or_default();
    let here = Folder::Disk(PathBuf::new());
    let folder = if faults.is_variables(&block.at("script")) { &here } else { folder };
    let (path, content) = match folder {
        Folder::Disk(folder) => {
            let path = folder.join(name);
            let content = std::fs::read_to_string(&path).map_err(|error| error.to_string());
            (path, content)
        }
        Folder::Embedded => {
            let content = embedded::find(name).map(str::to_owned);
            (Path::new(name).to_owned(), content.ok_or_else(|| "no such file".to_owned()))
        }
    };
    match content {
        Ok(content) => (script_lines(&content), path),
        Err(error) => {
            let message = format!("the file {} cannot be read: {error}", path.display());
            faults.value(&block.at("script"), message);
            (Vec::new(), path)
        }
    }
}

/// The lines with their numbers; blank lines and lines that begin with `#` are left out.
fn script_lines(content: &str) -> Vec<(usize, String)> {
    let content = content.strip_prefix('\u{feff}').unwrap_or(content);
    let lines = content.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(number, line)| (number, line.to_owned()))
        .collect()
}
