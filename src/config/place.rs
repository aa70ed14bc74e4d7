//! Where a configuration value was written: file, line and column, or an environment variable.
//! Holds positions only; how an error looks is `diagnostic.rs`.

use std::{collections::BTreeMap, sync::Arc};

/// A line and a column, both counted from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pos {
    /// Line.
    pub line: usize,
    /// Column.
    pub column: usize,
}

/// A configuration text and the name that messages give it.
#[derive(Debug)]
pub struct SourceText {
    /// File name as the user gave it.
    pub name: String,
    /// Its lines, without line ends.
    pub lines: Vec<String>,
}

impl SourceText {
    /// Splits a text into its lines.
    pub fn new(name: impl Into<String>, text: &str) -> Arc<Self> {
        Arc::new(Self { name: name.into(), lines: text.lines().map(str::to_owned).collect() })
    }

    /// A text of which only these lines are known, by their numbers.
    pub fn of_lines(name: impl Into<String>, known: &[(usize, String)]) -> Arc<Self> {
        let mut lines = Vec::new();
        for (number, line) in known {
            lines.resize(number.saturating_sub(1), String::new());
            lines.push(line.clone());
        }
        Arc::new(Self { name: name.into(), lines })
    }
}

/// Where a value was written.
#[derive(Clone, Debug)]
pub enum Place {
    /// In a file: where its key stands and where the value begins.
    File {
        /// The text.
        text: Arc<SourceText>,
        /// The key, or the value for an item of a list.
        key: Pos,
        /// The value.
        value: Pos,
    },
    /// In an environment variable of this name.
    Variable(String),
}

/// The places of all values, by key path.
#[derive(Clone, Debug, Default)]
pub struct Places {
    by_path: BTreeMap<String, Place>,
}

impl Places {
    /// Notes where the value of `path` was written; a later layer replaces an earlier one.
    pub fn note(&mut self, path: &str, place: Place) {
        self.by_path.insert(path.to_owned(), place);
    }

    /// Takes over what another text noted at and inside `path`.
    pub fn adopt(&mut self, other: Places, path: &str) {
        self.by_path.extend(other.by_path.into_iter().filter(|(inner, _)| within(inner, path)));
    }

    /// Whether something was written at exactly this path.
    pub fn knows(&self, path: &str) -> bool {
        self.by_path.contains_key(path)
    }

    /// The place of `path`. If nothing was written there: of what a variable sets inside it, since
    /// that made it; else of the nearest block around it.
    pub fn find(&self, path: &str) -> Option<&Place> {
        let mut inside = self.by_path.range(path.to_owned()..);
        let inside = inside.find(|(inner, _)| within(inner, path) || !inner.starts_with(path));
        if let Some((inner, place)) = inside
            && within(inner, path)
        {
            return Some(place);
        }
        let mut path = path;
        loop {
            if let Some(place) = self.by_path.get(path) {
                return Some(place);
            }
            path = parent(path)?;
        }
    }
}

/// The path of `key` inside `path`. Names that would make the path ambiguous are quoted.
pub fn join(path: &str, key: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let key =
        if !key.is_empty() && key.chars().all(plain) { key.to_owned() } else { format!("{key:?}") };
    if path.is_empty() { key } else { format!("{path}.{key}") }
}

/// The path of the item `index` of the list `path`.
pub fn item(path: &str, index: usize) -> String {
    format!("{path}[{index}]")
}

/// The path around `path`; a separator inside quotes does not count.
fn parent(path: &str) -> Option<&str> {
    let mut cut = None;
    let mut quoted = false;
    let mut escaped = false;
    for (at, c) in path.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '.' | '[' if !quoted => cut = Some(at),
            _ => {}
        }
    }
    cut.and_then(|at| path.get(..at))
}

/// Whether `inner` is `outer` or lies inside it.
pub fn within(inner: &str, outer: &str) -> bool {
    inner
        .strip_prefix(outer)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.') || rest.starts_with('['))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_path_is_found_at_the_block_around_it() {
        let mut places = Places::default();
        places.note("agentscope.agents.\"a.b\"", Place::Variable("X".into()));
        let found = places.find("agentscope.agents.\"a.b\".turns[3].when");
        assert!(matches!(found, Some(Place::Variable(name)) if name == "X"));
        assert!(places.find("agentscope.agents.a").is_none());
    }

    #[test]
    fn names_with_a_dot_are_quoted() {
        assert_eq!(join("agentscope.agents", "a.b"), "agentscope.agents.\"a.b\"");
        assert_eq!(join("", "server"), "server");
    }
}
