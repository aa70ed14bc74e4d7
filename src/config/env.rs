//! Environment variables to keys, in Spring's relaxed form: `AGENTSCOPE_AGUI_PATH_PREFIX` and
//! `AGENTSCOPE_AGUI_PATHPREFIX` both mean `agentscope.agui.path-prefix`; lists by comma or by
//! `_0`, `_1`. Follows the table of keys and knows no key of its own.

use std::collections::BTreeMap;

use config::{Map, Value, ValueKind};

use super::{
    check::{comma_list, number_kind, unknown_type, wrong_value},
    diagnostic::{ConfigError, near},
    load::{CONFIG_FILE, Environment},
    place::{Place, Places, item, join},
    scalar,
    schema::{Key, Kind, variant},
};

/// Names with these beginnings are ours: an unknown one is an error. A slip in one of
/// authentication would leave the server open, `SERVER_AUTH` and `SERVER_AUTHTYPE` included.
const OWN: &[&str] = &[
    "AGENTSCOPE_AGUI_",
    "AGENTSCOPE_AGENTS_",
    "AGENTSCOPE_MODELS_",
    "AGENTSCOPE_MCP_SERVERS_",
    "AGENTSCOPE_MCPSERVERS_",
    "SERVER_AUTH",
];
/// Names with these beginnings may be ours; unknown ones are ignored with a warning.
const SHARED: &[&str] = &["AGENTSCOPE_", "SERVER_"];

/// What the environment sets.
#[derive(Debug, Default)]
pub struct EnvLayer {
    /// The layer for the merge.
    pub table: Map<String, Value>,
    /// Names that were ignored although they look like ours.
    pub ignored: Vec<String>,
}

/// Binds all names; `below` are the layers that it will lie on, for the names of map entries.
pub fn bind(
    env: &Environment,
    root: &Kind,
    below: &[&Map<String, Value>],
    places: &mut Places,
    errors: &mut Vec<ConfigError>,
) -> EnvLayer {
    let mut binder =
        Binder { below, places, errors, tree: Draft::default(), set_by: BTreeMap::new() };
    let mut layer = EnvLayer::default();
    for (name, text) in env.iter() {
        if name == CONFIG_FILE || !SHARED.iter().any(|prefix| name.starts_with(prefix)) {
            continue;
        }
        let foreign = name.ends_with("_PORT") && is_service_url(text);
        let tokens: Vec<&str> = name.split('_').collect();
        match binder.find(root, &tokens, &mut Vec::new()) {
            Some((steps, kind)) if !foreign => binder.set(name, text, &steps, kind),
            _ if foreign || is_service_name(name) => layer.ignored.push(name.to_owned()),
            _ => match OWN.iter().find(|prefix| name.starts_with(**prefix)) {
                Some(prefix) => {
                    let message = unknown_name(name, prefix, root);
                    binder.errors.push(ConfigError::variable(name, "", message));
                }
                None => layer.ignored.push(name.to_owned()),
            },
        }
    }
    layer.table = binder.finish();
    layer
}

/// What Kubernetes injects for a Service that happens to be named like one of our prefixes.
fn is_service_name(name: &str) -> bool {
    let numbered_port = name.match_indices("_PORT_").any(|(at, found)| {
        name.get(at + found.len()..).is_some_and(|rest| {
            rest.split_once('_').is_some_and(|(number, _)| {
                !number.is_empty() && number.chars().all(|c| c.is_ascii_digit())
            })
        })
    });
    numbered_port || name.ends_with("_SERVICE_HOST") || name.contains("_SERVICE_PORT")
}

fn is_service_url(text: &str) -> bool {
    text.starts_with("tcp://") || text.starts_with("udp://")
}

fn unknown_name(name: &str, prefix: &str, root: &Kind) -> String {
    let valid: Vec<String> = root.variables("").into_iter().map(unprefixed).collect();
    let prefix = prefix.replace('_', "");
    let is_mine = |valid: &&str| valid.replace('_', "").starts_with(&prefix);
    let mine: Vec<&str> = valid.iter().map(String::as_str).filter(is_mine).collect();
    let valid = mine.join(", ");
    match near(name, mine.iter().copied()) {
        Some(near) => {
            format!("no configuration key has this name; did you mean {near}? Valid names: {valid}")
        }
        None => format!("no configuration key has this name; valid names: {valid}"),
    }
}

fn unprefixed(name: String) -> String {
    name.strip_prefix('_').map(str::to_owned).unwrap_or(name)
}

/// One step from a value to a value in it.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Key(String),
    Index(usize),
}

/// The layer under construction.
#[derive(Debug, Default)]
enum Draft {
    #[default]
    Unset,
    Leaf(ValueKind),
    Table(BTreeMap<String, Draft>),
    List(BTreeMap<usize, Draft>),
}

struct Binder<'a> {
    below: &'a [&'a Map<String, Value>],
    places: &'a mut Places,
    errors: &'a mut Vec<ConfigError>,
    tree: Draft,
    /// Path of each leaf and the variable that set it.
    set_by: BTreeMap<String, (String, String)>,
}

impl Binder<'_> {
    /// The key that the tokens spell, if any.
    fn find<'k>(
        &self,
        kind: &'k Kind,
        tokens: &[&str],
        steps: &mut Vec<Step>,
    ) -> Option<(Vec<Step>, &'k Kind)> {
        match kind {
            Kind::Struct(keys) => self.find_key(keys.iter(), tokens, steps),
            Kind::Variants(variants) => {
                if tokens == ["TYPE"] {
                    steps.push(Step::Key("type".to_owned()));
                    return Some((steps.clone(), kind));
                }
                self.find_key(variants.iter().flat_map(|variant| variant.keys), tokens, steps)
            }
            Kind::Map(inner) => self.find_entry(inner, tokens, steps),
            Kind::List(inner) => match tokens.split_first() {
                None => kind.is_comma_list().then(|| (steps.clone(), kind)),
                Some((index, rest)) => {
                    steps.push(Step::Index(index.parse().ok().filter(|index| *index < 1_000)?));
                    let found = self.find(inner, rest, steps);
                    steps.pop();
                    found
                }
            },
            _ => tokens.is_empty().then(|| (steps.clone(), kind)),
        }
    }

    fn find_key<'k>(
        &self,
        keys: impl Iterator<Item = &'k Key>,
        tokens: &[&str],
        steps: &mut Vec<Step>,
    ) -> Option<(Vec<Step>, &'k Kind)> {
        for key in keys {
            let Some(used) = spelled(key.name, tokens) else { continue };
            steps.push(Step::Key(key.name.to_owned()));
            let found = self.find(&key.kind, tokens.get(used..)?, steps);
            steps.pop();
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// An entry of a map: one that exists, the longest name first, else a new one. Its name is one
    /// token in lower case, but names of a program's variables are taken as they are, and members
    /// of JSON are all tokens, as in `enable_thinking`.
    fn find_entry<'k>(
        &self,
        kind: &'k Kind,
        tokens: &[&str],
        steps: &mut Vec<Step>,
    ) -> Option<(Vec<Step>, &'k Kind)> {
        let mut names: Vec<(usize, String)> = self
            .below
            .iter()
            .filter_map(|layer| table_at(layer, steps))
            .flat_map(|table| table.keys())
            .filter_map(|name| Some((spelled(name, tokens)?, name.clone())))
            .collect();
        names.sort_by(|a, b| b.cmp(a));
        match tokens.first() {
            Some(_) if matches!(kind, Kind::Text) => names.push((tokens.len(), tokens.join("_"))),
            Some(_) if matches!(kind, Kind::Any) => {
                names.push((tokens.len(), tokens.join("_").to_ascii_lowercase()));
            }
            Some(first) if !first.is_empty() => names.push((1, first.to_ascii_lowercase())),
            _ => {}
        }
        for (used, name) in names {
            steps.push(Step::Key(name));
            let found = self.find(kind, tokens.get(used..)?, steps);
            steps.pop();
            if found.is_some() {
                return found;
            }
        }
        None
    }

    fn set(&mut self, name: &str, text: &str, steps: &[Step], kind: &Kind) {
        let path = path_of(steps);
        if let Some((other, before)) = self.set_by.get(&path) {
            if before != text {
                let message = format!("{other} sets the same key to another value");
                self.errors.push(ConfigError::variable(name, &path, message));
            }
            return;
        }
        let Some(value) = self.value(name, text, &path, kind) else { return };
        self.set_by.insert(path.clone(), (name.to_owned(), text.to_owned()));
        self.places.note(&path, Place::Variable(name.to_owned()));
        if !insert(&mut self.tree, steps, value) {
            let message = "another variable sets the whole list of which this is an item";
            self.errors.push(ConfigError::variable(name, &path, message));
        }
    }

    fn value(&mut self, name: &str, text: &str, path: &str, kind: &Kind) -> Option<ValueKind> {
        let value = match kind {
            Kind::List(_) => {
                let items = comma_list(text);
                for index in 0..items.len() {
                    self.places.note(&item(path, index), Place::Variable(name.to_owned()));
                }
                Some(ValueKind::Array(items))
            }
            Kind::Variants(variants) => match variant(variants, text) {
                Ok(variant) => Some(ValueKind::String(variant.name.to_owned())),
                Err(names) => {
                    let message = unknown_type(text, path, &names);
                    self.errors.push(ConfigError::variable(name, path, message));
                    return None;
                }
            },
            Kind::Any => Some(any(text)),
            _ => scalar::parse(kind, text),
        };
        if value.is_none() {
            let message = wrong_value(kind, text, path);
            self.errors.push(ConfigError::variable(name, path, message));
        }
        value
    }

    fn finish(self) -> Map<String, Value> {
        let mut gaps = Vec::new();
        let kind = finish(self.tree, "", &mut gaps);
        for path in gaps {
            let name = self
                .places
                .find(&path)
                .map(|place| match place {
                    Place::Variable(name) => name.clone(),
                    Place::File { .. } => String::new(),
                })
                .unwrap_or_default();
            let message = "items of a list are numbered from 0 without a gap";
            self.errors.push(ConfigError::variable(&name, &path, message));
        }
        match kind {
            ValueKind::Table(table) => table,
            _ => Map::new(),
        }
    }
}

/// What a text is where anything may stand: JSON if it is some, else the text itself. A number that
/// reading would change stays a text.
fn any(text: &str) -> ValueKind {
    if scalar::looks(text) == scalar::Looks::OddNumber {
        return ValueKind::String(text.to_owned());
    }
    match serde_json::from_str(text) {
        Ok(json) => of_json(json),
        Err(_) => ValueKind::String(text.to_owned()),
    }
}

fn of_json(json: serde_json::Value) -> ValueKind {
    use serde_json::Value as Json;
    match json {
        Json::Null => ValueKind::Nil,
        Json::Bool(value) => ValueKind::Boolean(value),
        Json::Number(number) => number_kind(&number),
        Json::String(text) => ValueKind::String(text),
        Json::Array(items) => ValueKind::Array(
            items.into_iter().map(|item| Value::new(None, of_json(item))).collect(),
        ),
        Json::Object(members) => {
            let members = members.into_iter();
            ValueKind::Table(
                members.map(|(name, member)| (name, Value::new(None, of_json(member)))).collect(),
            )
        }
    }
}

/// How many tokens spell the name, if the tokens begin with it.
fn spelled(name: &str, tokens: &[&str]) -> Option<usize> {
    let bare = |text: &str| -> String {
        text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_uppercase()).collect()
    };
    let wanted = bare(name);
    let mut joined = String::new();
    for (index, token) in tokens.iter().enumerate() {
        joined.push_str(token);
        if joined == wanted && !wanted.is_empty() {
            return Some(index + 1);
        }
        if joined.len() > wanted.len() {
            return None;
        }
    }
    None
}

fn table_at<'a>(layer: &'a Map<String, Value>, steps: &[Step]) -> Option<&'a Map<String, Value>> {
    let mut table = layer;
    for step in steps {
        let Step::Key(key) = step else { return None };
        let ValueKind::Table(inner) = &table.get(key)?.kind else { return None };
        table = inner;
    }
    Some(table)
}

fn path_of(steps: &[Step]) -> String {
    steps.iter().fold(String::new(), |path, step| match step {
        Step::Key(key) => join(&path, key),
        Step::Index(index) => item(&path, *index),
    })
}

/// Puts a value in its place; false when a leaf is in the way.
fn insert(draft: &mut Draft, steps: &[Step], value: ValueKind) -> bool {
    let Some((step, rest)) = steps.split_first() else {
        let free = matches!(draft, Draft::Unset);
        if free {
            *draft = Draft::Leaf(value);
        }
        return free;
    };
    if matches!(draft, Draft::Unset) {
        *draft = match step {
            Step::Key(_) => Draft::Table(BTreeMap::new()),
            Step::Index(_) => Draft::List(BTreeMap::new()),
        };
    }
    match (draft, step) {
        (Draft::Table(table), Step::Key(key)) => {
            insert(table.entry(key.clone()).or_default(), rest, value)
        }
        (Draft::List(list), Step::Index(index)) => {
            insert(list.entry(*index).or_default(), rest, value)
        }
        _ => false,
    }
}

fn finish(draft: Draft, path: &str, gaps: &mut Vec<String>) -> ValueKind {
    match draft {
        Draft::Unset => ValueKind::Nil,
        Draft::Leaf(value) => value,
        Draft::Table(table) => ValueKind::Table(
            table
                .into_iter()
                .map(|(key, draft)| {
                    let value = finish(draft, &join(path, &key), gaps);
                    (key, Value::new(None, value))
                })
                .collect(),
        ),
        Draft::List(list) => {
            let mut values = Vec::new();
            for (index, draft) in list {
                let inner = item(path, index);
                let value = finish(draft, &inner, gaps);
                if index != values.len() {
                    gaps.push(first_leaf(&inner, &value));
                    break;
                }
                values.push(Value::new(None, value));
            }
            ValueKind::Array(values)
        }
    }
}

/// The path of the first leaf in a value: that is where a variable is known.
fn first_leaf(path: &str, value: &ValueKind) -> String {
    match value {
        ValueKind::Table(table) => match table.iter().next() {
            Some((key, value)) => first_leaf(&join(path, key), &value.kind),
            None => path.to_owned(),
        },
        _ => path.to_owned(),
    }
}
