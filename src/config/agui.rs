//! Key `agentscope.agui`.

use std::{collections::BTreeMap, time::Duration};

use agui_adapter::{options::AdapterOptions, runtime_context::RuntimeContext};

use super::{
    adapter,
    place::item,
    threads::{self, ThreadsConfig},
    tree::{Block, Faults},
};

/// The AG-UI surface.
#[derive(Clone, Debug)]
pub struct AguiConfig {
    /// Prefix of all routes; default `/agui`.
    pub path_prefix: String,
    /// Whether CORS headers are sent; default true.
    pub cors_enabled: bool,
    /// Origins allowed; default `["*"]`.
    pub cors_allowed_origins: Vec<String>,
    /// Whether browsers may send credentials; default false.
    pub cors_allow_credentials: bool,
    /// Longest run; `None` = no limit; default 10 minutes.
    pub run_timeout: Option<Duration>,
    /// A comment line after this long a silence; `None` = off; default 15 s.
    pub heartbeat_interval: Option<Duration>,
    /// A connection that takes no byte for this long, although there are some to write, is closed;
    /// `None` = never; default 30 s.
    pub write_timeout: Option<Duration>,
    /// How long events are gathered before a write; `None` = they leave at once; default `None`.
    pub coalesce_window: Option<Duration>,
    /// Agent for requests that name none; `None` = unset.
    pub default_agent_id: Option<String>,
    /// Whether the agent may stand in the path; default true.
    pub enable_path_routing: bool,
    /// Header that names the agent; default `X-Agent-Id`.
    pub agent_id_header: String,
    /// Whether client system and developer messages reach the agent; default false.
    pub accept_client_system_messages: bool,
    /// `history-limit`: messages of the history given to a model; 0 = all; default 200.
    pub history_limit: usize,
    /// Runtime context values, by key.
    pub runtime_context: BTreeMap<String, ContextSource>,
    /// What is remembered of threads.
    pub threads: ThreadsConfig,
    /// Adapter switches.
    pub adapter: AdapterOptions,
}

/// Where a runtime context value comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum ContextSource {
    /// A request header.
    Header(String),
    /// A query parameter.
    Query(String),
    /// Who asks, as established by authentication.
    Principal,
    /// A constant.
    Value(serde_json::Value),
}

impl Default for AguiConfig {
    fn default() -> Self {
        Self {
            path_prefix: "/agui".to_owned(),
            cors_enabled: true,
            cors_allowed_origins: vec!["*".to_owned()],
            cors_allow_credentials: false,
            run_timeout: Some(Duration::from_secs(600)),
            heartbeat_interval: Some(Duration::from_secs(15)),
            write_timeout: Some(Duration::from_secs(30)),
            coalesce_window: None,
            default_agent_id: None,
            enable_path_routing: true,
            agent_id_header: "X-Agent-Id".to_owned(),
            accept_client_system_messages: false,
            history_limit: 200,
            runtime_context: BTreeMap::new(),
            threads: ThreadsConfig::default(),
            adapter: AdapterOptions::default(),
        }
    }
}

/// Reads the section. Whether there is an agent of the default id is known when all are built.
pub(super) fn read(block: &Block<'_>, faults: &mut Faults<'_>) -> AguiConfig {
    let default = AguiConfig::default();
    let flag = |key: &str, default| block.boolean(key).unwrap_or(default);
    let threads = threads::read(block);
    let config = AguiConfig {
        path_prefix: path_prefix(block, default.path_prefix, faults),
        cors_enabled: flag("cors-enabled", default.cors_enabled),
        cors_allowed_origins: origins(block, default.cors_allowed_origins, faults),
        cors_allow_credentials: flag("cors-allow-credentials", default.cors_allow_credentials),
        run_timeout: block.duration("run-timeout").unwrap_or(default.run_timeout),
        heartbeat_interval: block
            .duration("heartbeat-interval")
            .unwrap_or(default.heartbeat_interval),
        write_timeout: block.duration("write-timeout").unwrap_or(default.write_timeout),
        coalesce_window: block.duration("coalesce-window").unwrap_or(default.coalesce_window),
        default_agent_id: block.text("default-agent-id").map(str::to_owned),
        enable_path_routing: flag("enable-path-routing", default.enable_path_routing),
        agent_id_header: header(block, "agent-id-header", faults)
            .unwrap_or(default.agent_id_header),
        history_limit: block.integer("history-limit").unwrap_or(default.history_limit),
        accept_client_system_messages: flag(
            "accept-client-system-messages",
            default.accept_client_system_messages,
        ),
        runtime_context: runtime_context(&block.block("runtime-context"), faults),
        adapter: AdapterOptions {
            interrupt_ttl: threads.interrupt_ttl,
            ..adapter::read(block, &default.adapter, faults)
        },
        threads,
    };
    let any_origin = config.cors_allowed_origins.iter().any(|origin| origin == "*")
        && !faults.within(&block.at("cors-allowed-origins"));
    if config.cors_allow_credentials && any_origin {
        faults.value(
            &block.at("cors-allow-credentials"),
            "browsers refuse credentials from any origin: name the origins in \
             cors-allowed-origins, or set this to false",
        );
    }
    config
}

/// Paths that every server answers itself.
const TAKEN: [&str; 2] = ["/healthz", "/readyz"];

fn path_prefix(block: &Block<'_>, default: String, faults: &mut Faults<'_>) -> String {
    let Some(prefix) = block.text("path-prefix") else { return default };
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_' | '.' | '~');
    let segments = prefix.strip_prefix('/').map(|rest| rest.split('/').all(|s| !s.is_empty()));
    if segments != Some(true) || !prefix.chars().all(legal) {
        faults.value(
            &block.at("path-prefix"),
            "a prefix begins with `/`, does not end with it, and has only letters, digits, `-`, \
             `_`, `.` and `~` between",
        );
        return default;
    }
    if prefix.split('/').any(|segment| matches!(segment, "." | "..")) {
        let message = "`.` and `..` mean folders in a path, and clients take them out";
        faults.value(&block.at("path-prefix"), message);
        return default;
    }
    if TAKEN.contains(&prefix) {
        let message = format!("{} are the server's own paths", TAKEN.join(" and "));
        faults.value(&block.at("path-prefix"), message);
        return default;
    }
    prefix.to_owned()
}

fn origins(block: &Block<'_>, default: Vec<String>, faults: &mut Faults<'_>) -> Vec<String> {
    let Some(origins) = block.texts("cors-allowed-origins") else { return default };
    for (index, origin) in &origins {
        if *origin != "*" && !is_origin(origin) {
            faults.value(
                &item(&block.at("cors-allowed-origins"), *index),
                "an origin is `*`, or scheme, host and port in lower case as in \
                 `http://localhost:3000`, without a path",
            );
        }
    }
    origins.into_iter().map(|(_, origin)| origin.to_owned()).collect()
}

/// Whether a browser can send this as the origin of a page: it sends scheme and host in lower case
/// and nothing behind the port, and is compared letter by letter.
fn is_origin(origin: &str) -> bool {
    let Some((scheme, host)) = origin.split_once("://") else { return false };
    let of_scheme =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '+' | '.' | '-');
    let of_host = |c: char| {
        !(c.is_ascii_uppercase() || c.is_whitespace() || matches!(c, '/' | '?' | '#' | '@'))
    };
    scheme.starts_with(|c: char| c.is_ascii_lowercase())
        && scheme.chars().all(of_scheme)
        && !host.is_empty()
        && host.chars().all(of_host)
}

/// The name of a header.
pub(super) fn header(block: &Block<'_>, key: &str, faults: &mut Faults<'_>) -> Option<String> {
    let name = block.text(key)?;
    if http::HeaderName::from_bytes(name.as_bytes()).is_err() {
        faults.value(&block.at(key), "this cannot be the name of a header");
    }
    Some(name.to_owned())
}

fn runtime_context(block: &Block<'_>, faults: &mut Faults<'_>) -> BTreeMap<String, ContextSource> {
    let entries = block.entries();
    entries
        .iter()
        .filter_map(|(name, entry)| {
            Some(((*name).to_owned(), context_source(name, entry, faults)?))
        })
        .collect()
}

fn context_source(name: &str, entry: &Block<'_>, faults: &mut Faults<'_>) -> Option<ContextSource> {
    if RuntimeContext::is_protocol_key(name) {
        faults.key(entry.path(), "this name is the protocol's own and cannot be set");
        return None;
    }
    if entry.boolean("principal") == Some(false) {
        faults.value(&entry.at("principal"), "only true means something here");
    }
    let sources = [
        header(entry, "header", faults).map(ContextSource::Header),
        entry.text("query").map(|name| ContextSource::Query(name.to_owned())),
        entry.boolean("principal").map(|_| ContextSource::Principal),
        entry.json("value").map(ContextSource::Value),
    ];
    let mut sources = sources.into_iter().flatten();
    match (sources.next(), sources.next()) {
        (Some(source), None) => Some(source),
        _ => {
            if !faults.within(entry.path()) {
                faults.key(
                    entry.path(),
                    "exactly one of `header`, `query`, `principal` and `value` is needed",
                );
            }
            None
        }
    }
}
