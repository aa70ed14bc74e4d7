//! A question to the person.

use std::collections::HashSet;

use agui_adapter::model::event::Object;
use serde_json::{Value, json};

use super::{result, said, spec};
use crate::{
    config::react::Builtin,
    tools::{Tool, ToolAnswer, ToolCall, ToolEnd, ToolEvent, ToolSpec, ToolStream},
};

/// The member of an answer to a plain question.
const ANSWER: &str = "answer";

/// Asks, and gives the model the answer in a later run. The model describes a form in simple
/// words; the JSON Schema that front ends draw it from is made here.
pub(super) struct AskUser {
    spec: ToolSpec,
}

impl Default for AskUser {
    fn default() -> Self {
        let options = json!({
            "type": "array",
            "items": {"type": "string"},
            "description": "The answers to choose from. Leave it out for free text.",
        });
        let parameters = json!({
            "type": "object",
            "properties": {
                "question": {"type": "string", "description": "What to ask."},
                "options": options,
                "fields": {
                    "type": "array",
                    "description": "A form, for questions that need more than one answer.",
                    "items": {
                        "type": "object",
                        "properties": {
                            "name": {"type": "string", "description": "Short name of the field."},
                            "label": {"type": "string", "description": "What the user sees."},
                            "type": {
                                "type": "string",
                                "enum": ["string", "number", "integer", "boolean"],
                                "description": "Default: string.",
                            },
                            "options": options,
                            "required": {"type": "boolean", "description": "Default: true."},
                        },
                        "required": ["name"],
                    },
                },
            },
            "required": ["question"],
        });
        let description = "Asks the user a question and waits for the answer.";
        Self { spec: spec(Builtin::AskUser, description, parameters, true) }
    }
}

impl Tool for AskUser {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, call: ToolCall) -> ToolStream {
        said(vec![match call.answer {
            Some(answer) => result(Ok(answered(answer))),
            None => ToolEvent::End(ToolEnd::Asks {
                message: text(&call.arguments, "question").unwrap_or_default().to_owned(),
                schema: Some(form(&call.arguments)),
                parked: None,
            }),
        }])
    }
}

fn answered(answer: ToolAnswer) -> String {
    match answer.payload {
        None => "The user declined to answer.".to_owned(),
        Some(Value::Object(form)) if form.len() == 1 && form.contains_key(ANSWER) => {
            form.get(ANSWER).map(plain).unwrap_or_default()
        }
        Some(payload) => plain(&payload),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The schema of the answer: the fields, or one text.
fn form(arguments: &Object) -> Object {
    let fields = arguments.get("fields").and_then(Value::as_array);
    let fields = fields.into_iter().flatten().filter_map(Value::as_object);
    let (mut properties, mut required) = (Object::new(), Vec::new());
    for field in fields {
        let Some(name) = text(field, "name").filter(|name| !properties.contains_key(*name)) else {
            continue;
        };
        properties.insert(name.to_owned(), property(field));
        if field.get("required") != Some(&Value::Bool(false)) {
            required.push(name);
        }
    }
    if properties.is_empty() {
        properties.insert(ANSWER.to_owned(), property(arguments));
        required.push(ANSWER);
    }
    let required = json!(required);
    Object::from_iter([
        ("type".to_owned(), json!("object")),
        ("properties".to_owned(), Value::Object(properties)),
        ("required".to_owned(), required),
    ])
}

/// One field: its type, what is shown, and what can be chosen. Choices are always text.
fn property(field: &Object) -> Value {
    let options = field.get("options").and_then(Value::as_array);
    let mut seen = HashSet::new();
    let options: Vec<&str> = options
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(|option| seen.insert(*option))
        .collect();
    let kind = text(field, "type").filter(|_| options.is_empty()).unwrap_or("string");
    let mut property = Object::from_iter([("type".to_owned(), json!(kind))]);
    if let Some(label) = text(field, "label") {
        property.insert("title".to_owned(), json!(label));
    }
    if !options.is_empty() {
        property.insert("enum".to_owned(), json!(options));
    }
    Value::Object(property)
}

fn text<'a>(object: &'a Object, key: &str) -> Option<&'a str> {
    object.get(key).and_then(Value::as_str).filter(|text| !text.trim().is_empty())
}
