//! The table of keys as a JSON Schema, for editors: accepts what the loader accepts and refuses
//! what it refuses, as far as a schema can say it. What the table cannot say stands in
//! [`rules`]. Decides nothing.

mod rules;

use serde_json::{Map, Value, json};

use super::{
    keys, scalar,
    schema::{Key, Kind, Variant, canonical},
};

/// Matches a text that holds a placeholder: what comes of it is not known yet.
const PLACEHOLDER: &str = r"\$\{";
const TRUE: &str = r"^\s*([tT][rR][uU][eE]|[yY][eE][sS]|[oO][nN]|1)\s*$";
const FALSE: &str = r"^\s*([fF][aA][lL][sS][eE]|[nN][oO]|[oO][fF][fF]|0)\s*$";
/// No key takes a negative number.
const INTEGER: &str = r"^\s*\+?[0-9]+\s*$";
const DURATION: &str = r"^\s*(\+?[0-9]+|([0-9]+(\.[0-9]{1,3})?([mM][sS]|[sSmMhHdD]))+|[pP](?=.)([0-9]+(\.[0-9]{1,3})?[dD])?([tT]([0-9]+(\.[0-9]{1,3})?[hHmMsS])+)?)\s*$";
/// So many digits of a unit that it is more than ten years, unless a placeholder comes before.
const TOO_LONG: &str = r"^[^$]*([1-9][0-9]{4,}(\.[0-9]+)?[dD]|[1-9][0-9]{5,}(\.[0-9]+)?[hH]|[1-9][0-9]{7,}(\.[0-9]+)?[mM](?![sS])|[1-9][0-9]{9,}(\.[0-9]+)?[sS]|[1-9][0-9]{12,}(\.[0-9]+)?[mM][sS]|[1-9][0-9]{12,}\s*$)";
const SIZE: &str = r"^\s*0*[1-9][0-9]*\s*([kKmMgG]?[bB]|[kKmMgG][iI][bB])?\s*$";

/// JSON Schema (2020-12) of the configuration file.
pub fn json_schema() -> Value {
    let mut schema = of(&keys::ROOT, "");
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "agentscope-agui configuration".into();
    schema
}

/// The schema of a value at `path`; `.*` stands for the entries of a map, `[]` for the items of a
/// list, and the name of a variant in parentheses for the block that it makes.
fn of(kind: &Kind, path: &str) -> Value {
    let schema = match kind {
        Kind::Bool => json!({ "anyOf": [
            { "type": "boolean" }, { "enum": [0, 1] }, written_as(&format!("{TRUE}|{FALSE}")),
        ] }),
        Kind::Int { min, max } => json!({ "anyOf": [
            { "type": "integer", "minimum": min, "maximum": max }, written_as(INTEGER),
        ] }),
        Kind::Duration => {
            let mut text = written_as(DURATION);
            text["not"] = json!({ "pattern": TOO_LONG });
            json!({ "anyOf": [
                { "type": "integer", "minimum": 0, "maximum": scalar::LONGEST_MS }, text,
            ] })
        }
        Kind::Size => json!({ "anyOf": [{ "type": "integer", "minimum": 1 }, written_as(SIZE)] }),
        Kind::Text | Kind::Verbatim => json!({ "type": "string" }),
        Kind::Choice(names) => choice(names),
        Kind::List(item) => {
            let list = json!({ "type": "array", "items": of(item, &format!("{path}[]")) });
            match kind.is_comma_list() {
                true => json!({ "anyOf": [list, { "type": "string" }] }),
                false => list,
            }
        }
        Kind::Map(value) => {
            json!({ "type": "object", "additionalProperties": of(value, &format!("{path}.*")) })
        }
        Kind::Struct(keys) => object(keys, path),
        Kind::Variants(variants) => by_type(variants, path),
        Kind::Any => json!({}),
    };
    with_rules(schema, path)
}

/// A text of this form, or one that a placeholder may give this form.
fn written_as(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": format!("{pattern}|{PLACEHOLDER}") })
}

/// The names, and every other way to write them.
fn choice(names: &[&str]) -> Value {
    let spellings: Vec<String> = names.iter().map(|name| spellings(name)).collect();
    let pattern = format!(r"^\s*({})\s*$", spellings.join("|"));
    json!({ "anyOf": [{ "enum": names }, written_as(&pattern)] })
}

/// A pattern for all ways to write a name: case, `-` and `_` do not count.
fn spellings(name: &str) -> String {
    let letter = |c: char| match c.is_ascii_alphabetic() {
        true => format!("[{}{}][-_]*", c.to_ascii_lowercase(), c.to_ascii_uppercase()),
        false => format!("{c}[-_]*"),
    };
    format!("[-_]*{}", canonical(name).chars().map(letter).collect::<String>())
}

fn object(keys: &[Key], path: &str) -> Value {
    let properties = properties(keys, path);
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn properties(keys: &[Key], path: &str) -> Map<String, Value> {
    keys.iter()
        .map(|key| {
            let mut schema = of(&key.kind, &path_of(path, key));
            // A key with nothing behind it counts as absent; a block with a `type` needs it.
            if !matches!(key.kind, Kind::Variants(_) | Kind::Any) {
                schema = json!({ "anyOf": [schema, { "type": "null" }] });
            }
            schema["description"] = key.doc.into();
            (key.name.to_owned(), schema)
        })
        .collect()
}

fn path_of(path: &str, key: &Key) -> String {
    if path.is_empty() { key.name.to_owned() } else { format!("{path}.{}", key.name) }
}

/// A block whose `type` decides about its keys.
fn by_type(variants: &[Variant], path: &str) -> Value {
    let names: Vec<&str> = variants.iter().map(|variant| variant.name).collect();
    let cases = variants.iter().map(|variant| {
        let path = format!("{path}({})", variant.name);
        let mut properties = properties(variant.keys, &path);
        properties.insert("type".to_owned(), json!(true));
        let block = json!({ "properties": properties, "additionalProperties": false });
        json!({
            "if": { "required": ["type"], "properties": { "type": { "anyOf": [
                { "const": variant.name }, { "type": "string", "pattern": format!("^{}$", spellings(variant.name)) },
            ] } } },
            "then": with_rules(block, &path),
        })
    });
    json!({
        "type": "object",
        "required": ["type"],
        "properties": { "type": choice(&names) },
        "allOf": cases.collect::<Vec<_>>(),
    })
}

/// Adds what [`rules`] says of this place.
fn with_rules(mut schema: Value, path: &str) -> Value {
    let found: Vec<Value> = rules::at(path).collect();
    if found.is_empty() {
        return schema;
    }
    match schema.get_mut("allOf").and_then(Value::as_array_mut) {
        Some(all) => all.extend(found),
        None => schema["allOf"] = found.into(),
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paths of the table, as rules name them.
    fn paths(kind: &Kind, path: &str, found: &mut Vec<String>) {
        found.push(path.to_owned());
        match kind {
            Kind::Struct(keys) => paths_of_keys(keys, path, found),
            Kind::Variants(variants) => {
                for variant in *variants {
                    let path = format!("{path}({})", variant.name);
                    paths_of_keys(variant.keys, &path, found);
                    found.push(path);
                }
            }
            Kind::Map(value) => paths(value, &format!("{path}.*"), found),
            Kind::List(item) => paths(item, &format!("{path}[]"), found),
            _ => {}
        }
    }

    fn paths_of_keys(keys: &[Key], path: &str, found: &mut Vec<String>) {
        for key in keys {
            paths(&key.kind, &path_of(path, key), found);
        }
    }

    #[test]
    fn every_rule_has_a_place() {
        let mut found = Vec::new();
        paths(&keys::ROOT, "", &mut found);
        for place in rules::places() {
            assert!(found.iter().any(|path| rules::names(place, path)), "{place}");
        }
    }
}
