//! A URL with places for arguments.

use std::collections::HashSet;

use agui_adapter::model::event::Object;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use reqwest::Url;
use serde_json::Value;

/// All that has a meaning in any part of a URL, or could get one.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'~').remove(b'.');

/// A URL in which arguments stand in the path or the query. They never change where it leads: its
/// origin and the number of its path's segments are those of the configuration.
#[derive(Debug)]
pub(super) struct Template {
    pieces: Vec<Piece>,
    /// The URL with a letter in place of every argument.
    sample: Url,
}

#[derive(Debug)]
enum Piece {
    Text(String),
    /// A parameter of the path; it has to be there.
    Path(String),
    /// A parameter of the query; nothing stands for one that is missing.
    Query(String),
}

impl Template {
    /// # Errors
    ///
    /// What is wrong with it; not what it is, since a URL may hold a password.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.contains(|sign: char| sign == '#' || sign == '\\' || sign.is_control()) {
            return Err("`url` may have neither a fragment nor backslashes".to_owned());
        }
        let host = authority_end(text)?;
        let pieces = pieces(text, host)?;
        let sample: String = pieces
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => text.as_str(),
                Piece::Path(_) | Piece::Query(_) => "x",
            })
            .collect();
        if has_dots(&sample) {
            return Err("`url` may not have segments of dots".to_owned());
        }
        let sample = Url::parse(&sample).map_err(|error| format!("`url` is no URL: {error}"))?;
        if !matches!(sample.scheme(), "http" | "https") {
            return Err("`url` must begin with http:// or https://".to_owned());
        }
        Ok(Self { pieces, sample })
    }

    /// The names of its parameters.
    pub(super) fn parameters(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Path(name) | Piece::Query(name) => Some(name.as_str()),
        })
    }

    /// The URL with the arguments that it names, which are taken out of the others.
    ///
    /// # Errors
    ///
    /// For the model: which argument cannot stand there.
    pub(super) fn fill(&self, arguments: &mut Object) -> Result<Url, String> {
        let mut filled = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Query(name) => {
                    let value = arguments.get(name).and_then(text).unwrap_or_default();
                    filled.extend(utf8_percent_encode(&value, ESCAPED));
                }
                Piece::Path(name) => {
                    let value = arguments.get(name).and_then(text).unwrap_or_default();
                    if value.is_empty() {
                        return Err(format!("The argument {name} is needed and may not be empty."));
                    }
                    filled.extend(utf8_percent_encode(&value, ESCAPED));
                }
            }
        }
        let named: HashSet<&str> = self.parameters().collect();
        arguments.retain(|name, _| !named.contains(name.as_str()));
        // What is left are segments such as `..`, which no escape keeps from meaning what they do,
        // here or at a server that reads the escapes first.
        match Url::parse(&filled) {
            Ok(url)
                if !has_dots(&filled)
                    && url.origin() == self.sample.origin()
                    && depth(&url) == depth(&self.sample) =>
            {
                Ok(url)
            }
            _ => Err("The arguments do not make a valid address.".to_owned()),
        }
    }
}

/// Whether a segment of the path means this or the upper one, or would to a reader of escapes.
fn has_dots(url: &str) -> bool {
    let path = url.split('?').next().unwrap_or_default();
    let read: Vec<u8> = percent_decode_str(path).collect();
    read.split(|byte| matches!(byte, b'/' | b'\\')).any(|segment| matches!(segment, b"." | b".."))
}

/// An argument as text; lists and objects as JSON. `None` = there is none.
pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn depth(url: &Url) -> usize {
    url.path_segments().map_or(0, Iterator::count)
}

/// Where scheme, host and port end.
fn authority_end(text: &str) -> Result<usize, String> {
    let (scheme, rest) =
        text.split_once("://").ok_or("`url` must begin with http:// or https://")?;
    let start = scheme.len() + "://".len();
    Ok(start + rest.find(['/', '?']).unwrap_or(rest.len()))
}

fn pieces(text: &str, host: usize) -> Result<Vec<Piece>, String> {
    let query = text.find('?').unwrap_or(text.len());
    let (mut pieces, mut at) = (Vec::new(), 0);
    for (open, _) in text.match_indices('{') {
        let before = text.get(at..open).ok_or("a `{` of `url` stands inside another")?;
        let (name, _) = text
            .get(open + 1..)
            .and_then(|rest| rest.split_once('}'))
            .filter(|(name, _)| !name.is_empty() && !name.contains(['{', '/', '?', '&']))
            .ok_or("a `{` of `url` has no parameter and `}` behind it")?;
        if open < host {
            return Err("a parameter of `url` may not stand in front of the path".to_owned());
        }
        pieces.push(Piece::Text(before.to_owned()));
        pieces.push(match open < query {
            true => Piece::Path(name.to_owned()),
            false => Piece::Query(name.to_owned()),
        });
        at = open + name.len() + "{}".len();
    }
    pieces.push(Piece::Text(text.get(at..).unwrap_or_default().to_owned()));
    let stray = |piece: &Piece| matches!(piece, Piece::Text(text) if text.contains('}'));
    if pieces.iter().any(stray) {
        return Err("a `}` of `url` has no `{` in front of it".to_owned());
    }
    Ok(pieces)
}
