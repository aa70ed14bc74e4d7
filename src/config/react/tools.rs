//! Key `tools`: MCP servers, built-ins, external tools and HTTP tools.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::{Builtin, Declared, HttpToolConfig, ToolConfig};
use crate::config::{
    McpServerConfig,
    adapter::missing,
    check::no_such,
    endpoint,
    tree::{Block, Faults},
};

/// Longest response body unless the configuration says another one.
const RESPONSE_LIMIT: usize = 1 << 20;

impl ToolConfig {
    /// The name of the only tool that it gives; MCP servers give several.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Mcp { .. } => None,
            Self::Builtin(builtin) => Some(builtin.name()),
            Self::External(declared) => Some(&declared.name),
            Self::Http(http) => Some(&http.declared.name),
        }
    }

    /// Where it comes from, as permission rules name it: the MCP server, or one of
    /// [`OTHER_SOURCES`](super::OTHER_SOURCES).
    pub fn source(&self) -> &str {
        match self {
            Self::Mcp { server, .. } => server,
            Self::Builtin(_) => "builtin",
            Self::External(_) => "external",
            Self::Http(_) => "http",
        }
    }

    /// Whether it can give a tool of this name, as far as that is known before it is asked.
    pub(super) fn may_provide(&self, tool: &str) -> bool {
        match self {
            Self::Mcp { include, exclude, .. } => {
                let named = |list: &[String]| list.iter().any(|other| other == tool);
                (include.is_empty() || named(include)) && !named(exclude)
            }
            _ => self.name() == Some(tool),
        }
    }
}

/// Reads the list.
pub(super) fn read(
    entry: &Block<'_>,
    servers: &BTreeMap<String, McpServerConfig>,
    faults: &mut Faults<'_>,
) -> Vec<ToolConfig> {
    let mut tools: Vec<ToolConfig> = Vec::new();
    for block in entry.blocks("tools").unwrap_or_default() {
        let Some(tool) = tool(&block, servers, faults) else { continue };
        if let Some(message) = twice(&tool, &tools) {
            faults.key(block.path(), message);
        }
        tools.push(tool);
    }
    tools
}

fn twice(tool: &ToolConfig, before: &[ToolConfig]) -> Option<String> {
    let Some(name) = tool.name() else {
        let mut servers = before.iter().filter(|other| other.name().is_none());
        let repeated = servers.any(|other| other.source() == tool.source());
        return repeated.then(|| "this MCP server stands in the list already".to_owned());
    };
    let repeated = !name.is_empty() && before.iter().any(|other| other.name() == Some(name));
    repeated.then(|| format!("an earlier tool of this list has the name `{name}`"))
}

fn tool(
    block: &Block<'_>,
    servers: &BTreeMap<String, McpServerConfig>,
    faults: &mut Faults<'_>,
) -> Option<ToolConfig> {
    let given = ["mcp", "builtin", "external", "http"];
    let mut given = given.into_iter().filter(|key| block.has(key));
    let (Some(kind), None) = (given.next(), given.next()) else {
        if !faults.within(block.path()) {
            let message = "exactly one of `mcp`, `builtin`, `external` and `http` is needed";
            faults.key(block.path(), message);
        }
        return None;
    };
    for key in ["include", "exclude"].into_iter().filter(|key| kind != "mcp" && block.has(key)) {
        faults.key(&block.at(key), "this key goes only with `mcp`");
    }
    match kind {
        "mcp" => mcp(block, servers, faults),
        "builtin" => builtin(block.text("builtin")?).map(ToolConfig::Builtin),
        "external" => Some(ToolConfig::External(declared(&block.block("external"), faults))),
        _ => Some(ToolConfig::Http(http(&block.block("http"), faults))),
    }
}

fn mcp(
    block: &Block<'_>,
    servers: &BTreeMap<String, McpServerConfig>,
    faults: &mut Faults<'_>,
) -> Option<ToolConfig> {
    let server = block.text("mcp")?;
    let path = block.at("mcp");
    if !servers.contains_key(server) {
        let known = servers.keys().map(String::as_str);
        faults.value(&path, no_such("MCP server", "MCP servers", server, &path, known));
    }
    let names = |key: &str| -> Vec<String> {
        let names = block.texts(key).unwrap_or_default();
        names.into_iter().map(|(_, name)| name.to_owned()).collect()
    };
    let (include, exclude) = (names("include"), names("exclude"));
    if !include.is_empty() && !exclude.is_empty() {
        faults.key(&block.at("exclude"), "`include` says already which tools there are");
    }
    Some(ToolConfig::Mcp { server: server.to_owned(), include, exclude })
}

fn builtin(name: &str) -> Option<Builtin> {
    Builtin::ALL.into_iter().find(|builtin| builtin.name() == name)
}

fn declared(block: &Block<'_>, faults: &mut Faults<'_>) -> Declared {
    Declared {
        name: name(block, faults),
        description: block.text("description").unwrap_or_default().to_owned(),
        parameters: Arc::new(parameters(block, faults)),
    }
}

/// What every provider takes.
fn name(block: &Block<'_>, faults: &mut Faults<'_>) -> String {
    let Some(name) = block.text("name") else {
        missing(block, "name", faults);
        return String::new();
    };
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !(1..=64).contains(&name.len()) || !name.bytes().all(legal) {
        let message = "the name of a tool has 1 to 64 characters out of A-Z, a-z, 0-9, `_` and `-`";
        faults.value(&block.at("name"), message);
    }
    name.to_owned()
}

/// The schema of the arguments; without it the tool takes none.
fn parameters(block: &Block<'_>, faults: &mut Faults<'_>) -> Value {
    if !block.has("parameters") {
        return json!({ "type": "object", "properties": {} });
    }
    let schema = block.json("parameters").unwrap_or_default();
    let path = block.at("parameters");
    if faults.within(&path) {
        return schema;
    }
    if schema.get("type") != Some(&Value::from("object")) {
        faults.value(&path, "the arguments of a tool are an object: `type: object` is needed");
    } else if let Err(error) = jsonschema::options().with_retriever(NoOthers).build(&schema) {
        let message = format!("not a JSON Schema: {error} (at `{}`)", error.instance_path());
        faults.value(&path, message);
    }
    schema
}

/// A schema stands for itself.
struct NoOthers;

impl jsonschema::Retrieve for NoOthers {
    fn retrieve(
        &self,
        _uri: &jsonschema::Uri<String>,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err("other documents are not read".into())
    }
}

fn http(block: &Block<'_>, faults: &mut Faults<'_>) -> HttpToolConfig {
    let declared = declared(block, faults);
    let url = block.text("url").unwrap_or_default();
    if url.is_empty() {
        missing(block, "url", faults);
    } else if let Some(message) = template_fault(url, &declared.parameters, &block.at("url")) {
        faults.value(&block.at("url"), message);
    }
    HttpToolConfig {
        declared,
        method: block.text("method").unwrap_or("GET").to_owned(),
        url: url.to_owned(),
        headers: endpoint::headers(&block.block("headers"), &[], faults),
        timeout: block.duration("timeout").flatten(),
        response_limit: block.integer("response-limit").unwrap_or(RESPONSE_LIMIT),
    }
}

/// What is wrong with a URL that has `{parameter}` in it.
fn template_fault(url: &str, parameters: &Value, path: &str) -> Option<String> {
    let properties = parameters.get("properties").and_then(Value::as_object);
    let known: Vec<&str> =
        properties.into_iter().flat_map(|known| known.keys()).map(String::as_str).collect();
    let (fixed, names) = match split_template(url) {
        Some(parts) => parts,
        None => return Some("a parameter stands in braces: `{name}`".to_owned()),
    };
    // With the parameters filled in, the address must be the one that it is without them.
    if let Some(fault) = endpoint::url_fault(&fixed.join("x")) {
        return Some(fault.to_owned());
    }
    if url.contains('#') {
        return Some("a request has no fragment (`#`)".to_owned());
    }
    let host_ends = |part: &&str| {
        part.split_once("://").is_some_and(|(_, rest)| rest.contains(['/', '?', '#']))
    };
    if !names.is_empty() && !fixed.first().is_some_and(host_ends) {
        return Some("a parameter cannot choose scheme, host or port".to_owned());
    }
    let unknown = names.into_iter().find(|name| !known.contains(name))?;
    let plural = "properties of `parameters`";
    Some(no_such("parameter", plural, unknown, path, known.into_iter()))
}

/// What stands between the parameters of a URL, and their names.
fn split_template(url: &str) -> Option<(Vec<&str>, Vec<&str>)> {
    let mut pieces = url.split('{');
    let (mut fixed, mut names) = (vec![pieces.next().unwrap_or_default()], Vec::new());
    for piece in pieces {
        let (name, rest) = piece.split_once('}')?;
        names.push(name);
        fixed.push(rest);
    }
    let is_plain =
        fixed.iter().all(|part| !part.contains('}')) && names.iter().all(|n| !n.is_empty());
    is_plain.then_some((fixed, names))
}
