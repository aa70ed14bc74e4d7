//! From a source to a checked [`Config`]: find the text, read it, check it against the table of
//! keys, merge the environment over it, read the sections, check the rules between them. Reads
//! files; opens no socket and starts nothing.

use std::{
    collections::BTreeMap,
    fmt,
    io::Read,
    path::{Path, PathBuf},
};

use config::{Map, Source as _, Value, ValueKind};

use super::{
    Config, agents, agui,
    check::Checker,
    diagnostic::{ConfigError, ConfigErrors},
    embedded, env, keys, mcp_servers, models,
    place::{Places, SourceText, item},
    react::Shared,
    server,
    tree::{Block, Faults},
    yaml,
};

/// Where the configuration is looked for, in this order.
const SEARCH: &[&str] =
    &["./agentscope.yaml", "./config/agentscope.yaml", "/etc/agentscope-agui/agentscope.yaml"];

/// The variable that names the file.
pub(super) const CONFIG_FILE: &str = "AGENTSCOPE_CONFIG";

/// The environment variables of a process, or of a test.
#[derive(Clone, Debug, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// Those of this process. What is not Unicode is read as well as it can be.
    pub fn of_process() -> Self {
        let text = |part: std::ffi::OsString| part.to_string_lossy().into_owned();
        Self(std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect())
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Environment {
    fn from_iter<T: IntoIterator<Item = (K, V)>>(pairs: T) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

/// Where to load from.
#[derive(Clone, Debug)]
pub enum Source {
    /// `AGENTSCOPE_CONFIG`, else the usual places, else the built-in demo configuration.
    Search,
    /// This file; `-` = standard input.
    File(PathBuf),
    /// This text, as if it were the file of that name.
    Text {
        /// File name; paths in the text are relative to its folder.
        name: PathBuf,
        /// The YAML.
        text: String,
    },
}

/// Where a configuration came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A file.
    File(PathBuf),
    /// Standard input.
    Stdin,
    /// The program itself.
    BuiltIn,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::File(path) => path.display().fmt(f),
            Origin::Stdin => f.write_str("standard input"),
            Origin::BuiltIn => f.write_str("built-in demo configuration"),
        }
    }
}

/// A configuration that may be served.
#[derive(Debug)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// What deserves a line in the log.
    pub warnings: Vec<String>,
    /// Where it came from.
    pub origin: Origin,
    /// Where each value stands, for faults that are found later.
    pub places: Places,
}

/// What a configuration says as far as it can be read, and all that is wrong with it.
#[derive(Debug)]
pub struct Survey {
    /// The configuration; where something is wrong, a default stands in its place.
    pub loaded: Loaded,
    /// What is wrong; empty = it may be served as far as can be said without building the agents.
    pub faults: Vec<ConfigError>,
}

/// Loads and checks a configuration.
///
/// # Errors
///
/// All faults that were found.
pub fn load(source: Source, environment: &Environment) -> Result<Loaded, ConfigErrors> {
    let Survey { loaded, faults } = survey(source, environment)?;
    if faults.is_empty() { Ok(loaded) } else { Err(ConfigErrors::new(faults)) }
}

/// Loads a configuration and goes on past its faults, so that what else is wrong, in scripts for
/// example, can be told together with them.
///
/// # Errors
///
/// When there is nothing to go on with: the source cannot be read, or is no YAML.
pub fn survey(source: Source, environment: &Environment) -> Result<Survey, ConfigErrors> {
    let document = open(source, environment)?;
    let mut places = Places::default();
    let mut errors = Vec::new();

    let file = read_layer(&document, environment, &mut places, &mut errors)?;
    // A file without agents gets the demo agents, so that a file of switches alone can be served.
    let (demo, folder) = if has_agents(&file) {
        (Map::new(), &document.folder)
    } else {
        let demo = Document::built_in();
        let mut demo_places = Places::default();
        let layer = read_layer(&demo, environment, &mut demo_places, &mut errors)?;
        places.adopt(demo_places, "agentscope.agents");
        (agents_only(layer), &Folder::Embedded)
    };
    let from_env = env::bind(environment, &keys::ROOT, &[&demo, &file], &mut places, &mut errors);
    let merged = merge([demo, file, from_env.table])?;

    let mut faults = Faults::new(&places, errors);
    let root = Block::root(&merged);
    let folders = Folders { file: &document.folder, agents: folder };
    let config = read_sections(&root, &folders, &mut faults);
    let faults = faults.into_errors();
    let mut warnings = config.warnings();
    if !from_env.ignored.is_empty() {
        warnings.push(format!(
            "ignored environment variables that name no configuration key: {}",
            from_env.ignored.join(", ")
        ));
    }
    let loaded = Loaded { config, warnings, origin: document.origin, places };
    Ok(Survey { loaded, faults })
}

/// What paths are relative to.
#[derive(Debug)]
pub(super) struct Folders<'a> {
    /// Those of the file.
    pub(super) file: &'a Folder,
    /// Those of the agents, which are the program's own where the file has none.
    pub(super) agents: &'a Folder,
}

/// Reads the sections of the merged layers.
pub(super) fn read_sections(
    root: &Block<'_>,
    folders: &Folders<'_>,
    faults: &mut Faults<'_>,
) -> Config {
    let scope = root.block("agentscope");
    let agui = agui::read(&scope.block("agui"), faults);
    let models = models::read(&scope.block("models"), faults);
    let mcp_servers = mcp_servers::read(&scope.block("mcp-servers"), folders.file, faults);
    let shared = Shared { models: &models, servers: &mcp_servers };
    let agents = agents::read(&scope.block("agents"), &agui, shared, folders.agents, faults);
    Config {
        server: server::read(&root.block("server"), faults),
        agui,
        ca_files: ca_files(&scope, folders.file, faults),
        models,
        mcp_servers,
        agents,
    }
}

/// Whether a file holds certificates is seen when the first client is built.
fn ca_files(scope: &Block<'_>, folder: &Folder, faults: &mut Faults<'_>) -> Vec<PathBuf> {
    let files = scope.texts("ca-files").unwrap_or_default();
    let mut paths = Vec::new();
    for (at, file) in files {
        let key = item(&scope.at("ca-files"), at);
        let path = faults.base(&key, folder).join(file);
        if let Err(error) = std::fs::File::open(&path) {
            let message = format!("the file {} cannot be read: {error}", path.display());
            faults.value(&key, message);
        }
        paths.push(path);
    }
    paths
}

/// A text to load.
struct Document {
    name: String,
    text: String,
    folder: Folder,
    origin: Origin,
}

/// What paths in a text are relative to.
#[derive(Clone, Debug)]
pub(super) enum Folder {
    /// A folder of the file system; files that it lacks are not looked for elsewhere.
    Disk(PathBuf),
    /// The files in the program.
    Embedded,
}

impl Document {
    fn built_in() -> Self {
        Self {
            name: "built-in configuration".to_owned(),
            text: embedded::CONFIG.to_owned(),
            folder: Folder::Embedded,
            origin: Origin::BuiltIn,
        }
    }

    fn of_file(path: &Path, text: String) -> Self {
        Self {
            name: path.strip_prefix("./").unwrap_or(path).display().to_string(),
            text,
            folder: Folder::Disk(path.parent().unwrap_or(Path::new("")).to_owned()),
            origin: Origin::File(path.to_owned()),
        }
    }
}

fn open(source: Source, environment: &Environment) -> Result<Document, ConfigErrors> {
    match source {
        Source::Search => match environment.get(CONFIG_FILE).filter(|p| !p.is_empty()) {
            Some(path) => open_file(Path::new(path)),
            None => match SEARCH.iter().map(Path::new).find(|path| is_there(path)) {
                Some(path) => open_file(path),
                None => Ok(Document::built_in()),
            },
        },
        Source::File(path) => open_file(&path),
        Source::Text { name, text } => Ok(Document::of_file(&name, text)),
    }
}

/// Whether a file is meant to be here. A folder (which Docker makes of a file to mount that is
/// missing), a link to nothing and what may not be looked at are errors, not reasons to serve
/// something else.
fn is_there(path: &Path) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    match path.symlink_metadata() {
        Ok(_) => true,
        Err(error) => !matches!(error.kind(), NotFound | NotADirectory),
    }
}

fn open_file(path: &Path) -> Result<Document, ConfigErrors> {
    let stdin = path == Path::new("-");
    let name = if stdin { "standard input".to_owned() } else { path.display().to_string() };
    let mut bytes = Vec::new();
    let read = if stdin {
        std::io::stdin().read_to_end(&mut bytes).map(|_| ())
    } else {
        std::fs::read(path).map(|content| bytes = content)
    };
    read.map_err(|error| ConfigError::source(&name, "", format!("cannot be read: {error}")))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
        let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
        ConfigError::source(&name, "", format!("line {line} is not UTF-8 text"))
    })?;
    if stdin {
        let folder = Folder::Disk(PathBuf::new());
        return Ok(Document { name, text, folder, origin: Origin::Stdin });
    }
    Ok(Document::of_file(path, text))
}

fn read_layer(
    document: &Document,
    environment: &Environment,
    places: &mut Places,
    errors: &mut Vec<ConfigError>,
) -> Result<Map<String, Value>, ConfigErrors> {
    let body = document.text.strip_prefix('\u{feff}').unwrap_or(&document.text);
    let text = SourceText::new(&document.name, body);
    let Some(node) = yaml::parse(&text, body)? else { return Ok(Map::new()) };
    let mut checker = Checker { text: &text, env: environment, places, errors };
    match checker.value(&keys::ROOT, &node, "") {
        Some(ValueKind::Table(table)) => Ok(table),
        _ => Ok(Map::new()),
    }
}

/// The built-in configuration as a layer.
#[cfg(test)]
pub(super) fn built_in_layer() -> Map<String, Value> {
    let (mut places, mut errors) = (Places::default(), Vec::new());
    read_layer(&Document::built_in(), &Environment::default(), &mut places, &mut errors)
        .unwrap_or_default()
}

fn has_agents(layer: &Map<String, Value>) -> bool {
    Block::root(layer).block("agentscope").has("agents")
}

/// Of the built-in configuration only the agents lie below a file.
fn agents_only(layer: Map<String, Value>) -> Map<String, Value> {
    let agents = layer.get("agentscope").and_then(|scope| match &scope.kind {
        ValueKind::Table(scope) => scope.get("agents").cloned(),
        _ => None,
    });
    let Some(agents) = agents else { return Map::new() };
    let scope: Map<String, Value> = [("agents".to_owned(), agents)].into_iter().collect();
    [("agentscope".to_owned(), Value::new(None, scope))].into_iter().collect()
}

/// A layer as a source of the `config` crate.
#[derive(Clone, Debug)]
struct Layer(Map<String, Value>);

impl config::Source for Layer {
    fn clone_into_box(&self) -> Box<dyn config::Source + Send + Sync> {
        Box::new(self.clone())
    }

    fn collect(&self) -> Result<Map<String, Value>, config::ConfigError> {
        Ok(self.0.clone())
    }
}

/// Later layers win; maps are merged, lists and scalars replaced.
fn merge(layers: [Map<String, Value>; 3]) -> Result<Map<String, Value>, ConfigErrors> {
    layers
        .into_iter()
        .fold(config::Config::builder(), |builder, layer| builder.add_source(Layer(layer)))
        .build()
        .and_then(|merged| merged.collect())
        .map_err(|error| ConfigError::source("configuration", "", error.to_string()).into())
}
