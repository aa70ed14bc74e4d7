//! Addresses of services and the headers that go to them, as far as their text can be judged.

use std::collections::{BTreeMap, HashSet};

use http::HeaderName;
use reqwest::Url;

use super::{
    models::Secret,
    tree::{Block, Faults},
};

/// What is wrong with the address of a service. What readers of addresses leave out or put right
/// (blanks, backslashes, a third `/`) is refused: the host is to be where it seems to be.
pub(super) fn url_fault(text: &str) -> Option<&'static str> {
    let host = ["http://", "https://"].iter().find_map(|scheme| text.strip_prefix(scheme));
    let odd = |c: char| c.is_whitespace() || c.is_control() || c == '\\';
    let is_plain = host.is_some_and(|host| !host.starts_with('/') && !host.contains(odd));
    match Url::parse(text) {
        Ok(url) if is_plain && url.has_host() => {
            let has_credentials = !url.username().is_empty() || url.password().is_some();
            has_credentials.then_some("credentials do not belong into an address: use a header")
        }
        _ => Some("expected an address such as `https://example.com/path`"),
    }
}

/// Headers that say where a message ends and what becomes of its connection.
const FRAMING: [&str; 6] =
    ["connection", "content-length", "keep-alive", "te", "transfer-encoding", "upgrade"];

/// The headers of a block, by name. `own` are names in lower case that cannot be chosen, beside
/// those of every connection.
pub(super) fn headers(
    block: &Block<'_>,
    own: &[&str],
    faults: &mut Faults<'_>,
) -> BTreeMap<String, Secret> {
    let mut headers = BTreeMap::new();
    let mut names = HashSet::new();
    for (name, entry) in block.entries() {
        match HeaderName::from_bytes(name.as_bytes()) {
            Err(_) => faults.key(entry.path(), "this cannot be the name of a header"),
            Ok(header) if own.iter().chain(&FRAMING).any(|own| header == *own) => {
                faults.key(entry.path(), "this header is the server's own and cannot be replaced");
            }
            Ok(header) => {
                if !names.insert(header) {
                    faults.key(entry.path(), "this header stands there already, in other letters");
                }
            }
        }
        let Some(value) = block.text(name) else { continue };
        header_value(value, entry.path(), faults);
        headers.insert(name.to_owned(), Secret::new(value));
    }
    headers
}

/// Says so when no header can hold a text, such as a key that was read from a file together with
/// the end of its line.
pub(super) fn header_value(text: &str, path: &str, faults: &mut Faults<'_>) {
    let visible = |c: char| c == ' ' || c == '\t' || c.is_ascii_graphic();
    if !text.chars().all(visible) {
        let message = "only visible ASCII characters can be sent here; a line end is none";
        faults.value(path, message);
    }
}
