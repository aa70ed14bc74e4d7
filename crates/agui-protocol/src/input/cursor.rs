//! Walking a JSON value with a pointer to where one is.
//!
//! Knows JSON types and pointers, and nothing of AG-UI's own types.

use std::fmt::Write as _;

use serde_json::Value;

use super::{InputError, InputWarning, MAX_WARNINGS};
use crate::Object;

/// How much of a client's own key is shown in a warning.
const MAX_KEY_CHARS: usize = 64;

/// Where in the body the parser is; costs nothing until somebody asks for the pointer.
#[derive(Clone, Copy)]
pub(super) enum Path<'a> {
    Root,
    Key(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl Path<'_> {
    /// The RFC 6901 pointer.
    pub(super) fn pointer(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) {
        match self {
            Self::Root => {}
            Self::Key(parent, key) => {
                parent.write(out);
                out.push('/');
                write_key(key, out);
            }
            Self::Index(parent, index) => {
                parent.write(out);
                // Writing into a String cannot fail.
                write!(out, "/{index}").ok();
            }
        }
    }

    /// An error at this place.
    pub(super) fn invalid(&self, message: impl Into<String>) -> InputError {
        InputError::Invalid { pointer: self.pointer(), message: message.into() }
    }

    /// The error for a value of a wrong type.
    pub(super) fn wrong_type(&self, expected: &str, found: &Value) -> InputError {
        self.invalid(format!("expected {expected}, found {}", type_name(found)))
    }
}

fn write_key(key: &str, out: &mut String) {
    for (count, c) in key.chars().enumerate() {
        if count == MAX_KEY_CHARS {
            out.push('…');
            return;
        }
        match c {
            '~' => out.push_str("~0"),
            '/' => out.push_str("~1"),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// What was dropped so far.
#[derive(Default)]
pub(super) struct Warnings(Vec<InputWarning>);

impl Warnings {
    pub(super) fn add(&mut self, path: &Path<'_>, reason: &'static str) {
        if self.0.len() < MAX_WARNINGS {
            self.0.push(InputWarning { pointer: path.pointer(), reason });
        }
    }

    pub(super) fn into_vec(self) -> Vec<InputWarning> {
        self.0
    }
}

/// What a `null` in an optional any-JSON place means.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Null {
    /// The same as leaving the member out: older clients send it (IN-6).
    Absent,
    /// Malformed.
    Refused,
}

/// The members of one object, read one after the other; what nobody asked for is unknown.
pub(super) struct Members<'a> {
    path: &'a Path<'a>,
    object: Object,
    asked: Vec<&'static str>,
}

impl<'a> Members<'a> {
    /// Opens `value`, which must be an object.
    pub(super) fn open(value: Value, path: &'a Path<'a>) -> Result<Self, InputError> {
        match value {
            Value::Object(object) => Ok(Self { path, object, asked: Vec::with_capacity(12) }),
            other => Err(path.wrong_type("an object", &other)),
        }
    }

    /// The place of a member.
    pub(super) fn at(&self, key: &'static str) -> Path<'a> {
        Path::Key(self.path, key)
    }

    /// Takes a member out, whatever it is.
    pub(super) fn take(&mut self, key: &'static str) -> Option<Value> {
        self.asked.push(key);
        self.object.get_mut(key).map(Value::take)
    }

    /// Takes a member that must be there; `expected` is for the error.
    pub(super) fn required(
        &mut self,
        key: &'static str,
        expected: &str,
    ) -> Result<Value, InputError> {
        self.take(key).ok_or_else(|| self.at(key).invalid(format!("missing; expected {expected}")))
    }

    /// A string that must be there.
    pub(super) fn string(&mut self, key: &'static str) -> Result<String, InputError> {
        let value = self.required(key, "a string")?;
        as_string(value, &self.at(key))
    }

    /// A string, or nothing.
    pub(super) fn optional_string(
        &mut self,
        key: &'static str,
    ) -> Result<Option<String>, InputError> {
        self.take(key).map(|value| as_string(value, &self.at(key))).transpose()
    }

    /// An object that is open by key and must be there.
    pub(super) fn object(&mut self, key: &'static str) -> Result<Object, InputError> {
        let value = self.required(key, "an object")?;
        as_object(value, &self.at(key))
    }

    /// An object that is open by key, or nothing.
    pub(super) fn optional_object(
        &mut self,
        key: &'static str,
    ) -> Result<Option<Object>, InputError> {
        self.take(key).map(|value| as_object(value, &self.at(key))).transpose()
    }

    /// Any JSON, or nothing.
    pub(super) fn optional_any(
        &mut self,
        key: &'static str,
        null: Null,
    ) -> Result<Option<Value>, InputError> {
        match (self.take(key), null) {
            (Some(Value::Null), Null::Absent) => Ok(None),
            (Some(Value::Null), Null::Refused) => {
                Err(self.at(key).invalid("expected any JSON but null, found null"))
            }
            (value, _) => Ok(value),
        }
    }

    /// Warns about every member that nobody asked for (IN-3).
    pub(super) fn finish(self, warnings: &mut Warnings) {
        for key in self.object.keys() {
            if !self.asked.contains(&key.as_str()) {
                warnings.add(&Path::Key(self.path, key), "unknown member, ignored");
            }
        }
    }
}

/// Reads every element of a list with `read`, leaving out those for which it gives `None`.
pub(super) fn list<T>(
    value: Value,
    path: &Path<'_>,
    mut read: impl FnMut(Value, &Path<'_>) -> Result<Option<T>, InputError>,
) -> Result<Vec<T>, InputError> {
    let Value::Array(values) = value else { return Err(path.wrong_type("a list", &value)) };
    let mut out = Vec::with_capacity(values.len());
    for (index, value) in values.into_iter().enumerate() {
        out.extend(read(value, &Path::Index(path, index))?);
    }
    Ok(out)
}

fn as_string(value: Value, path: &Path<'_>) -> Result<String, InputError> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(path.wrong_type("a string", &other)),
    }
}

fn as_object(value: Value, path: &Path<'_>) -> Result<Object, InputError> {
    match value {
        Value::Object(object) => Ok(object),
        other => Err(path.wrong_type("an object", &other)),
    }
}
