//! Reading the merged layers: typed getters by key, and the list of faults found while reading.
//! Types were checked before; here a value of another type counts as absent.

use std::{path::PathBuf, time::Duration};

use config::{Map, Value, ValueKind};

use super::{
    diagnostic::ConfigError,
    load::Folder,
    place::{Place, Places, item, join, within},
};

/// A block of the merged configuration.
#[derive(Clone, Debug)]
pub(super) struct Block<'a> {
    table: Option<&'a Map<String, Value>>,
    path: String,
}

impl<'a> Block<'a> {
    pub(super) fn root(table: &'a Map<String, Value>) -> Self {
        Self { table: Some(table), path: String::new() }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// The path of one of its keys.
    pub(super) fn at(&self, key: &str) -> String {
        join(&self.path, key)
    }

    fn kind(&self, key: &str) -> Option<&'a ValueKind> {
        self.table?.get(key).map(|value| &value.kind).filter(|kind| **kind != ValueKind::Nil)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.kind(key).is_some()
    }

    pub(super) fn block(&self, key: &str) -> Block<'a> {
        Block { table: self.kind(key).and_then(as_table), path: self.at(key) }
    }

    pub(super) fn boolean(&self, key: &str) -> Option<bool> {
        match self.kind(key)? {
            ValueKind::Boolean(value) => Some(*value),
            _ => None,
        }
    }

    pub(super) fn integer<T: TryFrom<i64>>(&self, key: &str) -> Option<T> {
        match self.kind(key)? {
            ValueKind::I64(value) => T::try_from(*value).ok(),
            _ => None,
        }
    }

    /// `Some(None)` = written as 0: no limit, off.
    pub(super) fn duration(&self, key: &str) -> Option<Option<Duration>> {
        let ms: u64 = self.integer(key)?;
        Some((ms > 0).then(|| Duration::from_millis(ms)))
    }

    pub(super) fn text(&self, key: &str) -> Option<&'a str> {
        as_text(self.kind(key)?)
    }

    pub(super) fn json(&self, key: &str) -> Option<serde_json::Value> {
        self.table?.get(key).map(|value| to_json(&value.kind))
    }

    /// The texts of a list with their places in it; what is no text is left out.
    pub(super) fn texts(&self, key: &str) -> Option<Vec<(usize, &'a str)>> {
        let ValueKind::Array(items) = self.kind(key)? else { return None };
        let texts = items.iter().enumerate();
        Some(texts.filter_map(|(n, value)| Some((n, as_text(&value.kind)?))).collect())
    }

    /// The blocks of a list.
    pub(super) fn blocks(&self, key: &str) -> Option<Vec<Block<'a>>> {
        let ValueKind::Array(items) = self.kind(key)? else { return None };
        let path = self.at(key);
        let blocks = items.iter().enumerate();
        Some(
            blocks
                .map(|(n, value)| Block { table: as_table(&value.kind), path: item(&path, n) })
                .collect(),
        )
    }

    /// The blocks of a map by name.
    pub(super) fn entries(&self) -> Vec<(&'a str, Block<'a>)> {
        let Some(table) = self.table else { return Vec::new() };
        table
            .iter()
            .map(|(name, value)| {
                (name.as_str(), Block { table: as_table(&value.kind), path: self.at(name) })
            })
            .collect()
    }
}

fn as_table(kind: &ValueKind) -> Option<&Map<String, Value>> {
    match kind {
        ValueKind::Table(table) => Some(table),
        _ => None,
    }
}

fn as_text(kind: &ValueKind) -> Option<&str> {
    match kind {
        ValueKind::String(text) => Some(text),
        _ => None,
    }
}

fn to_json(kind: &ValueKind) -> serde_json::Value {
    match kind {
        ValueKind::Nil => serde_json::Value::Null,
        ValueKind::Boolean(value) => (*value).into(),
        ValueKind::I64(value) => (*value).into(),
        ValueKind::U64(value) => (*value).into(),
        ValueKind::I128(value) => value.to_string().into(),
        ValueKind::U128(value) => value.to_string().into(),
        ValueKind::Float(value) => (*value).into(),
        ValueKind::String(value) => value.as_str().into(),
        ValueKind::Table(table) => {
            table.iter().map(|(key, value)| (key.clone(), to_json(&value.kind))).collect()
        }
        ValueKind::Array(items) => items.iter().map(|value| to_json(&value.kind)).collect(),
    }
}

/// Collects what is wrong between and behind the keys.
pub(super) struct Faults<'a> {
    places: &'a Places,
    errors: Vec<ConfigError>,
}

impl<'a> Faults<'a> {
    pub(super) fn new(places: &'a Places, errors: Vec<ConfigError>) -> Self {
        Self { places, errors }
    }

    /// The value of `path` is wrong.
    pub(super) fn value(&mut self, path: &str, message: impl Into<String>) {
        let error = self.places.error(path, message);
        self.errors.push(error);
    }

    /// The key of `path` is wrong, or something is missing in its block.
    pub(super) fn key(&mut self, path: &str, message: impl Into<String>) {
        let error = self.places.fault(path, message, ConfigError::of_key);
        self.errors.push(error);
    }

    /// Whether an environment variable gave the value of `path`.
    pub(super) fn is_variables(&self, path: &str) -> bool {
        matches!(self.places.find(path), Some(Place::Variable(_)))
    }

    /// What a relative path starts at: the folder of the file, or the working directory if a
    /// variable says the path or there is no file.
    pub(super) fn base(&self, path: &str, folder: &Folder) -> PathBuf {
        match folder {
            Folder::Disk(folder) if !self.is_variables(path) => folder.clone(),
            _ => PathBuf::new(),
        }
    }

    /// Whether something at or in `path` is wrong already.
    pub(super) fn within(&self, path: &str) -> bool {
        self.errors.iter().any(|error| within(&error.path, path))
    }

    pub(super) fn into_errors(self) -> Vec<ConfigError> {
        self.errors
    }
}

impl Places {
    /// A fault of the value of `path`, at its place.
    pub fn error(&self, path: &str, message: impl Into<String>) -> ConfigError {
        self.fault(path, message, ConfigError::of_value)
    }

    fn fault<M: Into<String>>(
        &self,
        path: &str,
        message: M,
        at: impl FnOnce(&Place, &str, M) -> ConfigError,
    ) -> ConfigError {
        match self.find(path) {
            Some(place) => at(place, path, message),
            None => ConfigError::source("configuration", path, message),
        }
    }
}
