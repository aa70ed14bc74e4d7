//! Names of tools in the form that every provider takes: a letter or `_`, then letters, digits,
//! `_` and `-`, at most 64.

use std::{borrow::Cow, collections::HashMap, fmt::Write as _};

use sha2::{Digest, Sha256};

use super::FunctionSpec;

/// The longest name that a provider takes.
const MAX: usize = 64;

/// How many bytes of the hash stand behind an encoded name.
const HASH_BYTES: usize = 4;

/// The name for the provider: itself if it takes it, else the characters that it takes with a
/// hash of the whole, which tells apart what would look the same. The same name always becomes
/// the same, so that a history names its tools as the list of tools does.
pub(super) fn encode(name: &str) -> Cow<'_, str> {
    if is_taken(name) {
        return Cow::Borrowed(name);
    }
    let kept = MAX - 2 * HASH_BYTES - 1;
    let mut encoded = String::with_capacity(MAX);
    if !name.starts_with(is_first) {
        encoded.push('_');
    }
    let taken = name.chars().map(|c| if is_further(c) { c } else { '_' });
    encoded.extend(taken.take(kept - encoded.len()));
    encoded.push('_');
    for byte in Sha256::digest(name).iter().take(HASH_BYTES) {
        // Writing to a string cannot fail.
        write!(encoded, "{byte:02x}").unwrap_or_default();
    }
    Cow::Owned(encoded)
}

fn is_taken(name: &str) -> bool {
    name.len() <= MAX && name.starts_with(is_first) && name.chars().all(is_further)
}

fn is_first(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn is_further(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// The way back, for one request: what its tools are called here.
#[derive(Debug, Default)]
pub(super) struct Names(HashMap<String, String>);

impl Names {
    /// Of the tools of a request.
    pub(super) fn of(tools: &[FunctionSpec]) -> Self {
        let changed = tools.iter().filter_map(|tool| match encode(&tool.name) {
            Cow::Borrowed(_) => None,
            Cow::Owned(encoded) => Some((encoded, tool.name.clone())),
        });
        Self(changed.collect())
    }

    /// What a name of the provider's is called here; one that stands for no tool stays as it is.
    pub(super) fn decode(&self, name: &str) -> String {
        self.0.get(name).map_or_else(|| name.to_owned(), Clone::clone)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    fn spec(name: &str) -> FunctionSpec {
        FunctionSpec {
            name: name.to_owned(),
            description: String::new(),
            parameters: Arc::new(json!({"type": "object"})),
        }
    }

    #[test]
    fn a_name_that_providers_take_stays() {
        for name in ["search", "_x", "get-weather_2", &"a".repeat(64)] {
            assert_eq!(encode(name), Cow::Borrowed(name));
        }
    }

    #[test]
    fn another_becomes_one_that_they_take() {
        assert_eq!(encode("docs.search"), "docs_search_a7e557a3");
        assert_eq!(encode("2fast"), "_2fast_323a2d31");
        for name in ["", "ü", "搜索", "a b", "a/b", &"a".repeat(65), &"é".repeat(200), "-x"] {
            let encoded = encode(name);
            assert!(is_taken(&encoded), "{name} became {encoded}");
        }
        assert_ne!(encode("a.b"), encode("a/b"));
    }

    #[test]
    fn the_way_back_knows_the_tools_of_the_request() {
        let names = Names::of(&[spec("docs.search"), spec("docs/search"), spec("plain")]);
        for name in ["docs.search", "docs/search", "plain"] {
            assert_eq!(names.decode(&encode(name)), name);
        }
        assert_eq!(names.decode("never_heard_of"), "never_heard_of");
    }
}
