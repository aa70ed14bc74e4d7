//! A YAML tree against the table of keys: unknown keys, wrong types, repeated keys, placeholders.
//! What is right becomes a layer for the merge; rules between keys are not its business.

use std::sync::Arc;

use config::{Map, Value, ValueKind};

use super::{
    diagnostic::{ConfigError, MASK, is_secret_path, near},
    expand::expand,
    keys,
    load::Environment,
    place::{Place, Places, Pos, SourceText, item, join},
    scalar::{self, Looks},
    schema::{Key, Kind, Variant, canonical, variant},
    yaml::{Content, Name, Node},
};

/// Longest part of a wrong value that an error repeats.
const SHOWN: usize = 40;

/// Checks one text against the table.
pub struct Checker<'a> {
    /// The text, for places.
    pub text: &'a Arc<SourceText>,
    /// Where placeholders are looked up.
    pub env: &'a Environment,
    /// Where each value stands.
    pub places: &'a mut Places,
    /// What is wrong.
    pub errors: &'a mut Vec<ConfigError>,
}

impl Checker<'_> {
    /// The value of a node, or `None` when nothing was written or it is wrong.
    pub fn value(&mut self, kind: &Kind, node: &Node, path: &str) -> Option<ValueKind> {
        if node.is_null() {
            return match kind {
                Kind::Struct(_) | Kind::Variants(_) => Some(ValueKind::Table(Map::new())),
                Kind::Any => Some(ValueKind::Nil),
                _ => None,
            };
        }
        match (kind, &node.content) {
            (Kind::Struct(keys), Content::Map(entries)) => {
                let keys: Vec<&Key> = keys.iter().collect();
                Some(ValueKind::Table(self.fields(&keys, entries, path)))
            }
            (Kind::Variants(variants), Content::Map(entries)) => {
                self.variant(variants, node, entries, path)
            }
            (Kind::Map(inner), Content::Map(entries)) => {
                Some(ValueKind::Table(self.map(inner, entries, path)))
            }
            (Kind::List(inner), Content::List(items)) => {
                Some(ValueKind::Array(self.list(inner, items, path)))
            }
            (_, Content::Scalar { text, .. }) if kind.is_comma_list() => {
                let text = self.expanded(text, node.pos, path)?;
                Some(ValueKind::Array(comma_list(&text)))
            }
            (Kind::Any, _) => self.any(node, path),
            (_, Content::Scalar { text, plain }) if kind.is_scalar() => {
                self.scalar(kind, text, *plain, node.pos, path)
            }
            (_, content) => {
                let found = match content {
                    Content::Scalar { text, plain } => found_scalar(text, *plain, path),
                    Content::List(_) => "a list".to_owned(),
                    Content::Map(_) => "a map of keys".to_owned(),
                };
                self.fail(node.pos, path, format!("expected {}, found {found}", kind.expected()))
            }
        }
    }

    fn fail<T>(&mut self, pos: Pos, path: &str, message: String) -> Option<T> {
        self.errors.push(ConfigError::at(self.text, pos, path, message));
        None
    }

    fn note(&mut self, path: &str, key: Pos, value: Pos) {
        self.places.note(path, Place::File { text: Arc::clone(self.text), key, value });
    }

    /// Reports keys that stand twice in one map.
    fn check_repeats(&mut self, entries: &[(Name, Node)], path: &str) {
        for (index, (name, _)) in entries.iter().enumerate() {
            let first = entries.iter().take(index).find(|(other, _)| other.text == name.text);
            if let Some((first, _)) = first {
                let message = format!("the key stands twice; first in line {}", first.pos.line);
                self.fail::<()>(name.pos, &join(path, &name.text), message);
            }
        }
    }

    fn fields(
        &mut self,
        keys: &[&Key],
        entries: &[(Name, Node)],
        path: &str,
    ) -> Map<String, Value> {
        self.check_repeats(entries, path);
        let mut table = Map::new();
        for (name, node) in entries {
            let inner_path = join(path, &name.text);
            self.note(&inner_path, name.pos, node.pos);
            match keys.iter().find(|key| key.name == name.text) {
                Some(key) => {
                    if let Some(value) = self.value(&key.kind, node, &inner_path) {
                        table.insert(name.text.clone(), Value::new(None, value));
                    }
                }
                None => {
                    let message = unknown_key(&name.text, keys, path);
                    self.fail::<()>(name.pos, &inner_path, message);
                }
            }
        }
        table
    }

    fn map(&mut self, kind: &Kind, entries: &[(Name, Node)], path: &str) -> Map<String, Value> {
        self.check_repeats(entries, path);
        let mut table = Map::new();
        for (name, node) in entries {
            let inner_path = join(path, &name.text);
            self.note(&inner_path, name.pos, node.pos);
            // An entry stays known when its value is wrong, so that what refers to it by name
            // is not reported as well.
            let value = self.value(kind, node, &inner_path).unwrap_or(ValueKind::Nil);
            table.insert(name.text.clone(), Value::new(None, value));
        }
        table
    }

    fn list(&mut self, kind: &Kind, items: &[Node], path: &str) -> Vec<Value> {
        let mut values = Vec::new();
        for (index, node) in items.iter().enumerate() {
            let inner_path = item(path, index);
            self.note(&inner_path, node.pos, node.pos);
            if node.is_null() && !matches!(kind, Kind::Any) {
                let message = format!("expected {}, found nothing", kind.expected());
                self.fail::<()>(node.pos, &inner_path, message);
            }
            // A wrong item keeps its place, so that the paths of later ones stay right.
            let value = self.value(kind, node, &inner_path).unwrap_or(ValueKind::Nil);
            values.push(Value::new(None, value));
        }
        values
    }

    /// A block whose `type` decides about its keys. Without `type` all keys are allowed here; that
    /// it is missing is found after the merge.
    fn variant(
        &mut self,
        variants: &[Variant],
        node: &Node,
        entries: &[(Name, Node)],
        path: &str,
    ) -> Option<ValueKind> {
        let tag = Key { name: "type", kind: Kind::Text, doc: "" };
        let mut keys = vec![&tag];
        let mut chosen = None;
        if let Some(type_node) = node.get("type").filter(|node| !node.is_null()) {
            let type_path = join(path, "type");
            let Content::Scalar { text, .. } = &type_node.content else {
                let names: Vec<&str> = variants.iter().map(|variant| variant.name).collect();
                let message = format!("expected one of {}", names.join(", "));
                return self.fail(type_node.pos, &type_path, message);
            };
            let text = self.expanded(text, type_node.pos, &type_path)?;
            let variant = match variant(variants, &text) {
                Ok(variant) => variant,
                Err(names) => {
                    let message = unknown_type(&text, &type_path, &names);
                    return self.fail(type_node.pos, &type_path, message);
                }
            };
            chosen = Some(variant.name);
            keys.extend(variant.keys);
        } else {
            for key in variants.iter().flat_map(|variant| variant.keys) {
                if keys.iter().all(|known| known.name != key.name) {
                    keys.push(key);
                }
            }
        }
        let mut table = self.fields(&keys, entries, path);
        if let Some(name) = chosen {
            table.insert("type".to_owned(), Value::new(None, name));
        }
        Some(ValueKind::Table(table))
    }

    fn expanded(&mut self, text: &str, pos: Pos, path: &str) -> Option<String> {
        match expand(text, self.env) {
            Ok(text) => Some(text),
            Err(message) if !is_secret_path(path) || is_one_variable(text) => {
                self.fail(pos, path, message)
            }
            Err(_) => {
                let message =
                    "a placeholder in this value cannot be filled in; see `${VAR}` and `$${`";
                self.fail(pos, path, message.to_owned())
            }
        }
    }

    fn scalar(
        &mut self,
        kind: &Kind,
        text: &str,
        plain: bool,
        pos: Pos,
        path: &str,
    ) -> Option<ValueKind> {
        if plain && matches!(kind, Kind::Text | Kind::Verbatim) && looks(text) {
            let found = found_scalar(text, plain, path);
            return self.fail(pos, path, format!("expected text, found {found}: quote this value"));
        }
        let text = match kind {
            Kind::Verbatim => text.to_owned(),
            _ => self.expanded(text, pos, path)?,
        };
        match scalar::parse(kind, &text) {
            Some(value) => Some(value),
            None => {
                let message = wrong_value(kind, &text, path);
                self.fail(pos, path, message)
            }
        }
    }

    fn any(&mut self, node: &Node, path: &str) -> Option<ValueKind> {
        match &node.content {
            Content::Scalar { text, plain: true } => match scalar::looks(text) {
                Looks::Null => Some(ValueKind::Nil),
                Looks::Bool(value) => Some(ValueKind::Boolean(value)),
                Looks::Number(number) => Some(number_kind(&number)),
                Looks::OddNumber => {
                    let message = "the number would be changed by reading it: quote this value";
                    self.fail(node.pos, path, message.to_owned())
                }
                Looks::Text => self.expanded(text, node.pos, path).map(written_plain),
            },
            Content::Scalar { text, .. } => {
                self.expanded(text, node.pos, path).map(ValueKind::String)
            }
            Content::List(items) => Some(ValueKind::Array(self.list(&Kind::Any, items, path))),
            Content::Map(entries) => Some(ValueKind::Table(self.map(&Kind::Any, entries, path))),
        }
    }
}

/// Whether a text is `${NAME}` and nothing else: a reference, of which nothing is secret.
fn is_one_variable(text: &str) -> bool {
    let name = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    name.is_some_and(|name| {
        name.starts_with(|c: char| c.is_ascii_uppercase())
            && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    })
}

/// Whether YAML gives an unquoted scalar another type than text.
fn looks(text: &str) -> bool {
    scalar::looks(text) != Looks::Text
}

/// What a text is that stands without quotes once its placeholders are filled in.
fn written_plain(text: String) -> ValueKind {
    match scalar::looks(&text) {
        Looks::Bool(value) => ValueKind::Boolean(value),
        Looks::Number(number) => number_kind(&number),
        Looks::Null | Looks::OddNumber | Looks::Text => ValueKind::String(text),
    }
}

/// A number as the layers hold it.
pub fn number_kind(number: &serde_json::Number) -> ValueKind {
    if let Some(value) = number.as_i64() {
        ValueKind::I64(value)
    } else if let Some(value) = number.as_u64() {
        ValueKind::U64(value)
    } else {
        ValueKind::Float(number.as_f64().unwrap_or_default())
    }
}

/// The items of a list that is written as one text.
pub fn comma_list(text: &str) -> Vec<Value> {
    text.split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(|part| Value::new(None, part))
        .collect()
}

/// Says what was expected in place of a text.
pub fn wrong_value(kind: &Kind, text: &str, path: &str) -> String {
    let near = match kind {
        Kind::Choice(names) => hint(near(text, names.iter().copied())),
        _ => String::new(),
    };
    format!("expected {}, found `{}`{near}", kind.expected(), shown(text, path))
}

fn found_scalar(text: &str, plain: bool, path: &str) -> String {
    let shown = shown(text, path);
    match scalar::looks(text) {
        Looks::Number(_) | Looks::OddNumber if plain => format!("the number {shown}"),
        Looks::Bool(_) if plain => format!("the truth value {shown}"),
        _ => format!("`{shown}`"),
    }
}

/// A value as an error may show it: short, on one line, no secret.
pub fn shown(text: &str, path: &str) -> String {
    if is_secret_path(path) {
        return MASK.to_owned();
    }
    let flat = |c: char| if c.is_control() { ' ' } else { c };
    let mut shown: String = text.chars().take(SHOWN).map(flat).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

/// Says which types there are.
pub fn unknown_type(text: &str, path: &str, names: &[&str]) -> String {
    let valid = names.join(", ");
    let near = near(text, names.iter().copied());
    let text = shown(text, path);
    match near {
        Some(near) => {
            format!("unknown type `{text}`; did you mean `{near}`? Valid types: {valid}")
        }
        None => format!("unknown type `{text}`; valid types: {valid}"),
    }
}

/// Says that a name names nothing, and what there is.
pub fn no_such<'n>(
    what: &str,
    plural: &str,
    name: &str,
    path: &str,
    known: impl Iterator<Item = &'n str>,
) -> String {
    let known: Vec<&str> = known.collect();
    let near = near(name, known.iter().copied());
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    let name = shown(name, path);
    match near {
        Some(near) => {
            format!("there is no {what} `{name}`; did you mean `{near}`? Valid {plural}: {known}")
        }
        None => format!("there is no {what} `{name}`; {plural}: {known}"),
    }
}

/// Says which name was meant, if one is near.
pub fn hint(near: Option<&str>) -> String {
    near.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

fn unknown_key(name: &str, keys: &[&Key], path: &str) -> String {
    let names: Vec<&str> = keys.iter().map(|key| key.name).collect();
    let valid = names.join(", ");
    if name == "<<" {
        return "merge keys are not supported; repeat the keys here".to_owned();
    }
    if let Some(right) = names.iter().find(|right| canonical(right) == canonical(name)) {
        return format!("unknown key; keys are written in kebab-case: `{right}`");
    }
    if let Some((first, _)) = name.split_once('.')
        && names.contains(&first)
    {
        return format!(
            "unknown key; names with dots are written as nested blocks: `{first}:`, and the rest \
             inside it"
        );
    }
    if path.ends_with(".agui") && keys::AGUI.iter().any(|key| key.name == name) {
        return format!(
            "this key holds for the whole server and stands only in agentscope.agui; valid keys \
             here: {valid}"
        );
    }
    if let Some(home) = home_of(name, &keys::ROOT, "") {
        return format!("this key belongs to {home}; valid keys here: {valid}");
    }
    match near(name, names.iter().copied()) {
        Some(near) => format!("unknown key; did you mean `{near}`? Valid keys: {valid}"),
        None => format!("unknown key; valid keys: {valid}"),
    }
}

/// The section that has a key of this name, among those that stand once.
fn home_of(name: &str, section: &Kind, path: &str) -> Option<String> {
    let Kind::Struct(keys) = section else { return None };
    keys.iter().find_map(|key| {
        let inner = join(path, key.name);
        if !path.is_empty() && canonical(key.name) == canonical(name) {
            return Some(path.to_owned());
        }
        home_of(name, &key.kind, &inner)
    })
}
