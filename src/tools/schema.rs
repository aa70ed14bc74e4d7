//! Arguments of tools, held against their JSON Schema.

use agui_adapter::model::event::Object;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;

/// The longest argument text that is read.
pub const MAX_TEXT: usize = 1024 * 1024;

/// How many faults one answer names.
const MAX_FAULTS: usize = 5;

/// How many characters one fault may have; it may tell the value that is wrong, or all that would
/// be right.
const MAX_FAULT: usize = 300;

/// How deep the members of a place are told.
const MAX_PLACE: usize = 200;

/// How often a `pattern` that looks around or back may be tried at other places. Those that do not
/// take a time that their text is proportional to.
const MAX_BACKTRACKS: usize = 100_000;

/// What a tool takes: its JSON Schema, compiled. Of drafts, `$schema` decides; without it, 2020-12.
///
/// References lead nowhere but into the schema itself. `format` only annotates: what a tool makes
/// of a date without a zone is for the tool to say.
#[derive(Debug)]
pub struct Arguments {
    validator: Validator,
}

impl Arguments {
    /// Compiles a schema.
    ///
    /// # Errors
    ///
    /// Why it is none.
    pub fn compile(schema: &Value) -> Result<Self, String> {
        let patterns = PatternOptions::fancy_regex().backtrack_limit(MAX_BACKTRACKS);
        let options = jsonschema::options()
            .offline()
            .should_validate_formats(false)
            .with_pattern_options(patterns);
        let validator = options.build(schema).map_err(|error| fault(&error))?;
        Ok(Self { validator })
    }

    /// Reads the argument text of a call. Text of nothing but white space means no arguments.
    ///
    /// # Errors
    ///
    /// For the model: what does not fit, and where.
    pub fn parse(&self, text: &str) -> Result<Object, String> {
        let arguments = Value::Object(object(text)?);
        let faults: Vec<String> = self
            .validator
            .iter_errors(&arguments)
            .take(MAX_FAULTS)
            .map(|error| fault(&error))
            .collect();
        match arguments {
            Value::Object(arguments) if faults.is_empty() => Ok(arguments),
            _ => Err(format!("The arguments do not fit the tool's schema: {}", faults.join("; "))),
        }
    }

    /// Checks arguments that a person typed.
    ///
    /// # Errors
    ///
    /// What does not fit, and where; not what was typed.
    pub fn check(&self, arguments: &Object) -> Result<(), String> {
        let arguments = Value::Object(arguments.clone());
        let Some(error) = self.validator.iter_errors(&arguments).next() else { return Ok(()) };
        let masked = clipped(&error.masked().to_string(), MAX_FAULT);
        Err(placed(error.instance_path().as_str(), &masked))
    }
}

/// The JSON object that an argument text is.
///
/// # Errors
///
/// For the model: why it is none.
pub fn object(text: &str) -> Result<Object, String> {
    if text.len() > MAX_TEXT {
        return Err(format!("The arguments are longer than {MAX_TEXT} bytes."));
    }
    if text.trim().is_empty() {
        return Ok(Object::new());
    }
    // The parser refuses what is nested more than 127 deep.
    match serde_json::from_str(text) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(other) => Err(format!("The arguments must be a JSON object, not {}.", kind(&other))),
        Err(error) => Err(format!("The arguments are not valid JSON: {error}")),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// A fault with its place and, where it is short, the value.
fn fault(error: &ValidationError<'_>) -> String {
    let told = error.to_string();
    let told = if told.chars().count() > MAX_FAULT { error.masked().to_string() } else { told };
    placed(error.instance_path().as_str(), &clipped(&told, MAX_FAULT))
}

fn placed(place: &str, fault: &str) -> String {
    match place {
        "" => fault.to_owned(),
        place => format!("at {}: {fault}", clipped(place, MAX_PLACE)),
    }
}

fn clipped(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests;
