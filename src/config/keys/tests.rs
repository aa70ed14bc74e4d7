//! No key is dead: each one, set to something, changes the configuration or what is wrong with it.
//! Walks the table, so that it knows every key that is added.

use std::collections::BTreeSet;

use config::{Map, Value, ValueKind};

use super::ROOT;
use crate::config::{
    load::{Folder, Folders, read_sections},
    place::Places,
    schema::{Key, Kind, Variant},
    tree::{Block, Faults},
};

/// Texts to try: a key may be particular about its own.
const TEXTS: &[&str] = &["one", "/one", "http://one", "CUSTOM"];

/// What a value becomes when it is put into its place in the whole file.
type Place<'a> = &'a dyn Fn(ValueKind) -> ValueKind;

/// What the sections make of a file that was found to be of the right types.
fn outcome(root: ValueKind) -> String {
    let ValueKind::Table(table) = root else { panic!("a file is a map") };
    let places = Places::default();
    let mut faults = Faults::new(&places, Vec::new());
    let folders = Folders { file: &Folder::Embedded, agents: &Folder::Embedded };
    let config = read_sections(&Block::root(&table), &folders, &mut faults);
    let faults: Vec<String> = faults.into_errors().iter().map(ToString::to_string).collect();
    format!("{config:?} {faults:?}")
}

fn table<'a>(entries: impl IntoIterator<Item = (&'a str, ValueKind)>) -> ValueKind {
    let entries = entries.into_iter();
    ValueKind::Table(
        entries.map(|(name, value)| (name.to_owned(), Value::new(None, value))).collect(),
    )
}

fn list(item: ValueKind) -> ValueKind {
    ValueKind::Array(vec![Value::new(None, item)])
}

/// Values of a kind that holds no keys of the table; none for one that does.
fn samples(kind: &Kind) -> Vec<ValueKind> {
    let texts = || TEXTS.iter().map(|text| ValueKind::String((*text).to_owned()));
    match kind {
        Kind::Bool => vec![ValueKind::Boolean(true), ValueKind::Boolean(false)],
        Kind::Int { min, max } => vec![ValueKind::I64(*min), ValueKind::I64(*max)],
        Kind::Duration | Kind::Size => vec![ValueKind::I64(1)],
        Kind::Text | Kind::Verbatim => texts().collect(),
        Kind::Choice(names) => {
            names.iter().map(|name| ValueKind::String((*name).to_owned())).collect()
        }
        Kind::Any => vec![ValueKind::I64(1)],
        Kind::List(item) => samples(item).into_iter().map(list).collect(),
        Kind::Map(value) => {
            samples(value).into_iter().map(|value| table([("one", value)])).collect()
        }
        Kind::Struct(_) | Kind::Variants(_) => Vec::new(),
    }
}

/// Collects the keys in a value of this kind that change nothing.
fn walk(kind: &Kind, path: &str, place: Place<'_>, dead: &mut BTreeSet<String>) {
    match kind {
        Kind::Struct(keys) => block(keys, None, path, place, dead),
        Kind::Variants(variants) => {
            for Variant { name, keys } in *variants {
                block(keys, Some(name), &format!("{path}({name})"), place, dead);
            }
            let without = outcome(place(table([])));
            let typed = |variant: &Variant| table([("type", text(variant.name))]);
            if variants.iter().all(|variant| outcome(place(typed(variant))) == without) {
                dead.insert(format!("{path}.type"));
            }
        }
        Kind::Map(inner) => {
            walk(inner, &format!("{path}.*"), &|value| place(table([("one", value)])), dead);
        }
        Kind::List(inner) => walk(inner, &format!("{path}[]"), &|value| place(list(value)), dead),
        _ => {}
    }
}

fn text(text: &str) -> ValueKind {
    ValueKind::String(text.to_owned())
}

/// Looks at the keys of one block: alone, and beside each other key, since some mean something
/// only together.
fn block(
    keys: &[Key],
    tag: Option<&str>,
    path: &str,
    place: Place<'_>,
    dead: &mut BTreeSet<String>,
) {
    let tag: Vec<(&str, ValueKind)> = tag.map(|tag| ("type", text(tag))).into_iter().collect();
    for key in keys {
        let path = format!("{path}.{}", key.name);
        let values = samples(&key.kind);
        if values.is_empty() {
            let inside = |value| place(table(tag.iter().cloned().chain([(key.name, value)])));
            walk(&key.kind, &path, &inside, dead);
            continue;
        }
        let others = keys.iter().filter(|other| other.name != key.name);
        let beside = others.flat_map(|other| {
            samples(&other.kind).into_iter().map(|value| vec![(other.name, value)])
        });
        let matters = std::iter::once(Vec::new()).chain(beside).any(|beside| {
            let with = |value: Option<(&'static str, ValueKind)>| {
                outcome(place(table(tag.iter().cloned().chain(beside.clone()).chain(value))))
            };
            let without = with(None);
            values.iter().any(|value| with(Some((key.name, value.clone()))) != without)
        });
        if !matters {
            dead.insert(path);
        }
    }
}

#[test]
fn no_key_is_dead() {
    let mut dead = BTreeSet::new();
    walk(&ROOT, "", &|value| value, &mut dead);
    assert_eq!(dead, BTreeSet::new());
}

#[test]
fn a_dead_key_is_found() {
    static NAMES: Kind = Kind::Struct(&[
        crate::config::schema::key("port", Kind::Int { min: 0, max: 1 }, "A key with a reader."),
        crate::config::schema::key("prot", Kind::Int { min: 0, max: 1 }, "A key without one."),
    ]);
    let mut dead = BTreeSet::new();
    walk(&NAMES, "server", &|value| table([("server", value)]), &mut dead);
    assert_eq!(dead, BTreeSet::from(["server.prot".to_owned()]));
}

/// Keys of sections that stand once, in the shipped file, which shows every option.
#[test]
fn the_shipped_file_shows_every_key() {
    fn missing(
        kind: &Kind,
        shown: Option<&Map<String, Value>>,
        path: &str,
        found: &mut Vec<String>,
    ) {
        let Kind::Struct(keys) = kind else { return };
        for key in *keys {
            let path = format!("{path}.{}", key.name);
            let Some(value) = shown.and_then(|table| table.get(key.name)) else {
                found.push(path);
                continue;
            };
            let inner = match &value.kind {
                ValueKind::Table(table) => Some(table),
                _ => None,
            };
            missing(&key.kind, inner, &path, found);
        }
    }
    let shipped = crate::config::load::built_in_layer();
    let mut found = Vec::new();
    missing(&ROOT, Some(&shipped), "", &mut found);
    assert_eq!(found, Vec::<String>::new());
}
