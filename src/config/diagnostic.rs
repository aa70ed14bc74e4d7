//! How configuration errors look: place, key path, message, and the line with a caret below the
//! fault. Also near matches and the masking of secrets. Decides nothing about validity.

use std::{fmt, sync::Arc};

use super::place::{Place, Pos, SourceText};

/// Longest part of a line that is shown.
const EXCERPT_WIDTH: usize = 100;

/// What stands in place of a secret.
pub const MASK: &str = "***";

/// One fault of the configuration.
#[derive(Clone, Debug)]
pub struct ConfigError {
    /// Where it is.
    at: At,
    /// Key path; empty = the whole file.
    pub path: String,
    /// What is wrong and what would be right.
    pub message: String,
}

#[derive(Clone, Debug)]
enum At {
    Text { text: Arc<SourceText>, pos: Pos },
    Variable(String),
    Source(String),
}

impl ConfigError {
    /// A fault at a place of a text.
    pub fn at(text: &Arc<SourceText>, pos: Pos, path: &str, message: impl Into<String>) -> Self {
        Self {
            at: At::Text { text: Arc::clone(text), pos },
            path: path.to_owned(),
            message: message.into(),
        }
    }

    /// A fault of a value; `place` = where the value was written.
    pub fn of_value(place: &Place, path: &str, message: impl Into<String>) -> Self {
        match place {
            Place::File { text, value, .. } => Self::at(text, *value, path, message),
            Place::Variable(name) => Self::variable(name, path, message),
        }
    }

    /// A fault of a key; `place` = where it was written.
    pub fn of_key(place: &Place, path: &str, message: impl Into<String>) -> Self {
        match place {
            Place::File { text, key, .. } => Self::at(text, *key, path, message),
            Place::Variable(name) => Self::variable(name, path, message),
        }
    }

    /// A fault of an environment variable.
    pub fn variable(name: &str, path: &str, message: impl Into<String>) -> Self {
        Self { at: At::Variable(name.to_owned()), path: path.to_owned(), message: message.into() }
    }

    /// A fault of a whole source, such as a file that cannot be read.
    pub fn source(name: impl Into<String>, path: &str, message: impl Into<String>) -> Self {
        Self { at: At::Source(name.into()), path: path.to_owned(), message: message.into() }
    }

    fn sort_key(&self) -> (u8, &str, Option<Pos>) {
        match &self.at {
            At::Source(name) => (0, name, None),
            At::Text { text, pos } => (1, &text.name, Some(*pos)),
            At::Variable(name) => (2, name, None),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.at {
            At::Text { text, pos } => write!(f, "{}:{}:{}: ", text.name, pos.line, pos.column)?,
            At::Variable(name) => write!(f, "environment variable {name}: ")?,
            At::Source(name) => write!(f, "{name}: ")?,
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        if let At::Text { text, pos } = &self.at {
            write_excerpt(f, text, *pos)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

/// All faults of a configuration, in the order of the file.
#[derive(Debug)]
pub struct ConfigErrors(Vec<ConfigError>);

impl ConfigErrors {
    /// Sorts the faults by place.
    pub fn new(mut errors: Vec<ConfigError>) -> Self {
        errors.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
        Self(errors)
    }
}

impl ConfigErrors {
    /// Adds faults of other files behind these.
    #[must_use]
    pub fn followed_by(mut self, others: ConfigErrors) -> Self {
        self.0.extend(others.0);
        self
    }
}

impl From<ConfigError> for ConfigErrors {
    fn from(error: ConfigError) -> Self {
        Self(vec![error])
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

/// The line of `pos` with a caret below the column; secrets are masked.
fn write_excerpt(f: &mut fmt::Formatter<'_>, text: &SourceText, pos: Pos) -> fmt::Result {
    let Some(line) = pos.line.checked_sub(1).and_then(|at| masked_line(&text.lines, at)) else {
        return Ok(());
    };
    let chars: Vec<char> = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let column = pos.column.saturating_sub(1).min(chars.len());
    let start = column.saturating_sub(EXCERPT_WIDTH * 3 / 4);
    let shown: String = chars.iter().skip(start).take(EXCERPT_WIDTH).collect();
    let number = pos.line.to_string();
    let margin = " ".repeat(number.len());
    let indent = " ".repeat(column - start);
    write!(f, "\n  {number} | {}\n  {margin} | {indent}^", shown.trim_end())
}

/// The line with secret values masked: everything behind a secret key, and lines that continue
/// such a value.
fn masked_line(lines: &[String], at: usize) -> Option<String> {
    let line = lines.get(at)?;
    if let Some(end) = secret_value_start(line) {
        let head = line.get(..end)?;
        return Some(format!("{head} {MASK}"));
    }
    if within_secret(lines.get(..at)?, level_of(line)) {
        return Some(format!("{}{MASK}", " ".repeat(indent_of(line))));
    }
    Some(line.clone())
}

/// Whether a line of this level, with these before it, stands somewhere in a secret's value.
fn within_secret(before: &[String], mut level: usize) -> bool {
    if in_open_brackets(before) {
        return true;
    }
    before.iter().rev().filter(|line| !line.trim().is_empty()).any(|line| {
        let encloses = level_of(line) < level;
        level = level.min(level_of(line));
        encloses && secret_value_start(line).is_some()
    })
}

/// Whether a secret's value in brackets has begun and not ended: its lines may stand anywhere.
fn in_open_brackets(before: &[String]) -> bool {
    let mut open = 0_usize;
    for line in before {
        let value = match secret_value_start(line).filter(|_| open == 0) {
            Some(start) => line.get(start..).unwrap_or_default(),
            None if open == 0 => continue,
            None => line,
        };
        for c in value.chars() {
            match c {
                '{' | '[' => open += 1,
                '}' | ']' => open = open.saturating_sub(1),
                _ => {}
            }
        }
    }
    open > 0
}

/// How deep a line stands. An item of a list is deeper than a key of the same indent: it belongs
/// to that key.
fn level_of(line: &str) -> usize {
    let item = line
        .trim_start()
        .strip_prefix('-')
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
    indent_of(line) * 2 + usize::from(item)
}

fn indent_of(line: &str) -> usize {
    line.chars().take_while(|c| *c == ' ').count()
}

/// Byte offset behind the colon of the first key of a line that names a secret, or behind the `=` of
/// such a parameter of an address, or behind the `//` of an address with a user in it.
fn secret_value_start(line: &str) -> Option<usize> {
    let of_name = secret_name_end(line);
    let of_user = line.match_indices("://").map(|(at, found)| at + found.len()).find(|start| {
        let rest = line.get(*start..).unwrap_or_default();
        let end = rest.find(|c: char| c.is_whitespace() || matches!(c, '/' | '"' | '\''));
        rest.get(..end.unwrap_or(rest.len())).is_some_and(|host| host.contains('@'))
    });
    of_name.into_iter().chain(of_user).min()
}

fn secret_name_end(line: &str) -> Option<usize> {
    line.char_indices().filter(|(_, c)| matches!(c, ':' | '=')).map(|(at, _)| at).find_map(|at| {
        let before = line.get(..at)?.trim_end_matches(['"', '\'', ' ']);
        let name = before
            .rsplit(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '.')))
            .next()?;
        is_secret_name(name).then_some(at + 1)
    })
}

/// Whether values of this key are secrets. The last word of the name decides, a number behind it
/// aside. A program's environment and the headers of requests are where secrets stand, under names
/// of their own, and its arguments may hold some.
fn is_secret_name(name: &str) -> bool {
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_');
    let last = name.rsplit(['-', '_', '.']).next().unwrap_or(name);
    let lower = last.to_ascii_lowercase();
    let camel_tail = last
        .char_indices()
        .rfind(|(_, c)| c.is_ascii_uppercase())
        .and_then(|(at, _)| last.get(at..))
        .map(str::to_ascii_lowercase);
    [Some(lower), camel_tail].into_iter().flatten().any(|word| {
        matches!(
            word.as_str(),
            "key"
                | "apikey"
                | "password"
                | "passwd"
                | "pass"
                | "secret"
                | "secrets"
                | "token"
                | "tokens"
                | "authorization"
                | "env"
                | "args"
                | "headers"
        )
    })
}

/// Whether any name of a key path is a secret's.
pub fn is_secret_path(path: &str) -> bool {
    path.split(['.', '[', '"']).any(is_secret_name)
}

/// The candidate that is close enough to `name` to be what was meant.
pub fn near<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&name, &candidate.to_lowercase()), candidate))
        .filter(|(score, _)| *score >= 0.85)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, line: usize, column: usize) -> String {
        let text = SourceText::new("a.yaml", text);
        ConfigError::at(&text, Pos { line, column }, "a", "no").to_string()
    }

    #[test]
    fn an_excerpt_has_a_caret_below_the_column() {
        assert_eq!(shown("a:\n  b: c\n", 2, 6), "a.yaml:2:6: a: no\n  2 |   b: c\n    |      ^");
    }

    #[test]
    fn a_secrets_brackets_enclose_lines_of_any_indent() {
        let text = "a:\n  env: {A: x,\n  DSN: sk-1, B: [1]}\n  cwd: here\n";
        assert_eq!(shown(text, 3, 3), "a.yaml:3:3: a: no\n  3 |   ***\n    |   ^");
        assert_eq!(shown(text, 4, 3), "a.yaml:4:3: a: no\n  4 |   cwd: here\n    |   ^");
        let args = shown("a: {args: [--token=sk-1, [1]]}", 1, 4);
        assert_eq!(args, "a.yaml:1:4: a: no\n  1 | a: {args: ***\n    |    ^");
    }

    #[test]
    fn secrets_are_masked_in_excerpts() {
        assert_eq!(shown("api-key: sk-1", 1, 1), "a.yaml:1:1: a: no\n  1 | api-key: ***\n    | ^");
        assert_eq!(
            shown("keys: [{nam: alice, \"key\": sk-1}]", 1, 9),
            "a.yaml:1:9: a: no\n  1 | keys: [{nam: alice, \"key\": ***\n    |         ^"
        );
        assert_eq!(
            shown("x:\n  Authorization: |\n    Bearer sk-1\n", 3, 5),
            "a.yaml:3:5: a: no\n  3 |     ***\n    |     ^"
        );
        assert_eq!(
            shown("x:\n  token:\n  - sk-1\n", 3, 3),
            "a.yaml:3:3: a: no\n  3 |   ***\n    |   ^"
        );
        assert_eq!(
            shown("a: {env: {DSN: sk-1, X: [1]}}", 1, 25),
            "a.yaml:1:25: a: no\n  1 | a: {env: ***\n    |             ^"
        );
        let nested = "apiKey:\n  value:\n\n    inner: sk-1\n  other: x\nopen: y\n";
        assert_eq!(shown(nested, 4, 5), "a.yaml:4:5: a: no\n  4 |     ***\n    |     ^");
        assert_eq!(shown(nested, 5, 3), "a.yaml:5:3: a: no\n  5 |   ***\n    |   ^");
        assert_eq!(shown(nested, 6, 1), "a.yaml:6:1: a: no\n  6 | open: y\n    | ^");
        assert_eq!(
            shown("accessToken: sk-1", 1, 14),
            "a.yaml:1:14: a: no\n  1 | accessToken: ***\n    |              ^"
        );
    }

    #[test]
    fn secrets_in_addresses_are_masked() {
        assert_eq!(
            shown("url: https://x.example/mcp?userApiKey=sk-1", 1, 6),
            "a.yaml:1:6: a: no\n  1 | url: https://x.example/mcp?userApiKey= ***\n    |      ^"
        );
        assert_eq!(
            shown("url: 'https://me:pw@x.example/'", 1, 6),
            "a.yaml:1:6: a: no\n  1 | url: 'https:// ***\n    |      ^"
        );
        let open = "url: https://x.example/@me?mail=a@b";
        assert_eq!(shown(open, 1, 6), format!("a.yaml:1:6: a: no\n  1 | {open}\n    |      ^"));
    }

    #[test]
    fn ordinary_names_are_not_secrets() {
        for name in ["emit-token-usage", "keys", "monkey", "key-prefix", "agent-id-header"] {
            assert!(!is_secret_name(name), "{name}");
        }
        for name in [
            "key",
            "api-key",
            "X-API-Key",
            "hs256-secret",
            "apiKey",
            "authorization",
            "OPENAI_API_KEY_2",
            "DB_PASS",
            "env",
            "headers",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn a_near_match_is_one_slip_away() {
        let names = ["path-prefix", "cors-enabled"];
        assert_eq!(near("pathprefx", names), Some("path-prefix"));
        assert_eq!(near("heartbeat", names), None);
    }
}
