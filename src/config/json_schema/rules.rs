//! What the loader refuses beyond types and unknown keys, in the words of JSON Schema. Each rule
//! has its twin in the reader of its section; a test compares the two on broken files.

use serde_json::{Value, json};

use super::{FALSE, TRUE, choice, written_as};
use crate::config::{agents::RESERVED_IDS, models::FIXED, react::OTHER_SOURCES};

/// Makes a piece of the schema.
type Rule = fn() -> Value;

/// The rules by the end of the path at which they hold.
const RULES: &[(&str, Rule)] = &[
    ("server.host", host),
    ("agui.path-prefix", path_prefix),
    ("agui.agent-id-header", header_name),
    ("auth(trusted-header).header", header_name),
    ("runtime-context.*.header", header_name),
    ("cors-allowed-origins[]", origin),
    ("agui.cors-allowed-origins", origins),
    ("agentscope.agui", credentials),
    ("agui", native),
    ("agui.runtime-context", context_names),
    ("runtime-context.*", one_source),
    ("runtime-context.*.principal", not_false),
    ("enrichers[](metadata)", metadata),
    ("enrichers[](drop)", dropped),
    ("converters[]", one_action),
    ("agentscope.agents", agent_ids),
    ("agents.*(scripted)", || one_of(&["turns", "script"])),
    ("agents.*(scripted).turns", || json!({ "minItems": 1 })),
    ("agents.*(command)", || present("command")),
    ("agents.*(command).command", || json!({ "minLength": 1 })),
    ("models.*", || present("model")),
    ("models.*.model", || json!({ "minLength": 1 })),
    ("models.*.base-url", || written_as(r"^https?://[^\s/?#@]+(/[^\s?#]*)?$")),
    ("models.*.api-key", header_value),
    ("models.*.parameters", || json!({ "propertyNames": { "not": { "enum": FIXED } } })),
    ("headers", || json!({ "propertyNames": header_name() })),
    ("headers.*", header_value),
    ("agentscope.mcp-servers", server_names),
    ("mcp-servers.*", one_transport),
    ("mcp-servers.*.command", || json!({ "minLength": 1 })),
    ("mcp-servers.*.url", || written_as(r"^https?://[^\s/?#@]+([/?#]\S*)?$")),
    (
        "mcp-servers.*.timeout",
        || json!({ "not": { "anyOf": [{ "const": 0 }, { "type": "string", "pattern": ZERO }] } }),
    ),
    ("agents.*(react)", || present("model")),
    ("tools[]", one_tool),
    ("tools[].external", || present("name")),
    ("tools[].http", || json!({ "allOf": [present("name"), present("url")] })),
    ("external.name", tool_name),
    ("http.name", tool_name),
    ("external.parameters", arguments),
    ("http.parameters", arguments),
    ("http.url", || written_as(r"^https?://[^\s/?#@{}]+([/?#]([^\s{}]|\{[^{}]+\})*)?$")),
    ("permission.allow[]", rule),
    ("permission.ask[]", rule),
    ("permission.deny[]", rule),
    ("turns[]", || one_of(&["script", "events"])),
    ("when.always", not_false),
];

/// The rules that hold at a path.
pub(super) fn at(path: &str) -> impl Iterator<Item = Value> {
    RULES.iter().filter(move |(place, _)| names(place, path)).map(|(_, rule)| rule())
}

/// The places that rules name.
#[cfg(test)]
pub(super) fn places() -> impl Iterator<Item = &'static str> {
    RULES.iter().map(|(place, _)| *place)
}

/// Whether a rule's place names the path: its end, from the beginning of a key on.
pub(super) fn names(place: &str, path: &str) -> bool {
    path.strip_suffix(place).is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

/// Letters of all scripts make a name. Not every reader of patterns has a class for them, so what
/// is excluded is named; whether the rest are letters is for the loader to say, as is whether
/// something with colons is an address.
fn host() -> Value {
    written_as(r"^([^\s\x00-,/:-@\[-\^`{-\x7f]+|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*)$")
}

fn path_prefix() -> Value {
    let mut rule = written_as(r"^(/(?!\.{1,2}(/|$))[A-Za-z0-9._~-]+)+$");
    rule["not"] = json!({ "enum": ["/healthz", "/readyz"] });
    rule
}

fn header_name() -> Value {
    written_as("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
}

fn header_value() -> Value {
    written_as(r"^[\t\x20-\x7e]*$")
}

/// Nothing, whatever its unit.
const ZERO: &str = r"^\s*\+?0+(\.0+)?([mM][sS]|[sSmMhHdD])?\s*$";

fn server_names() -> Value {
    json!({ "propertyNames": {
        "pattern": "^[A-Za-z0-9._-]{1,64}$", "not": { "enum": OTHER_SOURCES },
    } })
}

/// Each way to reach a server has keys that the other has not.
fn one_transport() -> Value {
    let without = |keys: &[&str]| -> Value {
        let present: Vec<Value> = keys.iter().map(|key| present(key)).collect();
        json!({ "not": { "anyOf": present } })
    };
    json!({ "oneOf": [
        { "allOf": [present("command"), without(&["headers"])] },
        { "allOf": [present("url"), without(&["args", "env", "cwd"])] },
    ] })
}

fn one_tool() -> Value {
    let some = |key: &str| json!({ "required": [key], "properties": { key: { "minItems": 1 } } });
    json!({
        "allOf": [
            one_of(&["mcp", "builtin", "external", "http"]),
            { "not": { "allOf": [some("include"), some("exclude")] } },
        ],
        "if": { "anyOf": [present("include"), present("exclude")] },
        "then": present("mcp"),
    })
}

fn tool_name() -> Value {
    written_as("^[A-Za-z0-9_-]{1,64}$")
}

fn arguments() -> Value {
    json!({ "required": ["type"], "properties": { "type": { "const": "object" } } })
}

/// `tool` or `source:tool`.
fn rule() -> Value {
    written_as("^[^:]+(:.+)?$")
}

const ORIGIN: &str = r"(\*|[a-z][a-z0-9+.-]*://[^/?#@\sA-Z]+)";

fn origin() -> Value {
    written_as(&format!("^{ORIGIN}$"))
}

/// Several in one text, separated by commas.
fn origins() -> Value {
    let one = ORIGIN.replace("[^", "[^,");
    let text = written_as(&format!(r"^[\s,]*({one}[\s,]*(,[\s,]*{one}[\s,]*)*)?$"));
    json!({ "if": { "type": "string" }, "then": text })
}

fn credentials() -> Value {
    json!({
        "if": {
            "required": ["cors-allow-credentials"],
            "properties": { "cors-allow-credentials": is_true() },
        },
        "then": {
            "required": ["cors-allowed-origins"],
            "properties": { "cors-allowed-origins": { "not": { "contains": { "const": "*" } } } },
        },
    })
}

fn native() -> Value {
    json!({ "not": {
        "required": ["emit-subagent-events-as-native", "subagent-events"],
        "properties": {
            "emit-subagent-events-as-native": is_true(),
            "subagent-events": { "enum": ["attributed", "custom", "native"] },
        },
    } })
}

fn is_true() -> Value {
    json!({ "anyOf": [{ "enum": [true, 1] }, { "type": "string", "pattern": TRUE }] })
}

fn not_false() -> Value {
    json!({ "not": { "anyOf": [{ "enum": [false, 0] }, { "type": "string", "pattern": FALSE }] } })
}

fn context_names() -> Value {
    json!({ "propertyNames": { "not": { "pattern": r"^(sessionId$|agui\.)" } } })
}

/// A constant may be null; the other sources are absent then.
fn one_source() -> Value {
    let mut sources: Vec<Value> = ["header", "query", "principal"].map(present).into();
    sources.push(json!({ "required": ["value"] }));
    json!({ "oneOf": sources })
}

/// Exactly one of these keys.
fn one_of(keys: &[&str]) -> Value {
    let present: Vec<Value> = keys.iter().map(|key| present(key)).collect();
    json!({ "oneOf": present })
}

/// A key with something behind it.
fn present(key: &str) -> Value {
    json!({ "required": [key], "properties": { key: { "not": { "type": "null" } } } })
}

fn metadata() -> Value {
    json!({
        "required": ["set"],
        "properties": { "set": { "type": "object", "propertyNames": { "not": { "const": "ag-ui" } } } },
    })
}

fn dropped() -> Value {
    json!({
        "required": ["event"],
        "properties": { "event": choice(&["CUSTOM", "RAW", "REASONING", "STEP", "STATE", "ACTIVITY"]) },
        "if": { "required": ["name"], "properties": { "name": { "type": "string" } } },
        "then": { "properties": { "event": choice(&["CUSTOM"]) } },
    })
}

fn one_action() -> Value {
    json!({
        "allOf": [present("custom")],
        "oneOf": [
            present("rename"),
            { "allOf": [present("drop"), { "properties": { "drop": not_false() } }] },
            present("as"),
        ],
    })
}

fn agent_ids() -> Value {
    let taken: Vec<&str> = RESERVED_IDS.iter().copied().chain([".", ".."]).collect();
    json!({
        "minProperties": 1,
        "propertyNames": { "pattern": "^[A-Za-z0-9._-]{1,64}$", "not": { "enum": taken } },
    })
}
