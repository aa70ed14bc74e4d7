//! The table of keys as a JSON Schema, for editors. Follows the table; decides nothing.

use serde_json::{Map, Value, json};

use super::{
    keys,
    schema::{Key, Kind, Variant},
};

/// JSON Schema (2020-12) of the configuration file.
pub fn json_schema() -> Value {
    let mut schema = of(&keys::ROOT);
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "agentscope-agui configuration".into();
    schema
}

fn of(kind: &Kind) -> Value {
    match kind {
        Kind::Bool => json!({ "type": "boolean" }),
        Kind::Int { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Duration | Kind::Size => json!({ "type": ["string", "integer"] }),
        Kind::Text | Kind::Verbatim => json!({ "type": "string" }),
        Kind::Choice(names) => json!({ "enum": names }),
        Kind::List(item) => json!({ "type": "array", "items": of(item) }),
        Kind::Map(value) => json!({ "type": "object", "additionalProperties": of(value) }),
        Kind::Struct(keys) => object(keys, None),
        Kind::Variants(variants) => {
            json!({ "oneOf": variants.iter().map(variant).collect::<Vec<_>>() })
        }
        Kind::Any => json!({}),
    }
}

fn variant(variant: &Variant) -> Value {
    let mut schema = object(variant.keys, Some(variant.name));
    schema["required"] = json!(["type"]);
    schema
}

fn object(keys: &[Key], type_name: Option<&str>) -> Value {
    let mut properties = Map::new();
    if let Some(name) = type_name {
        properties.insert("type".to_owned(), json!({ "const": name }));
    }
    for key in keys {
        let mut schema = of(&key.kind);
        schema["description"] = key.doc.into();
        properties.insert(key.name.to_owned(), schema);
    }
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}
