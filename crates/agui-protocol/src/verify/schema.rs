//! The engine that holds a JSON value against a shape of [`super::tables`].
//!
//! Knows shapes, not AG-UI.

use serde_json::{Map, Value};

use super::{Log, tables};

/// What a value may be.
pub(super) enum Shape {
    /// A string.
    Str,
    /// A boolean.
    Bool,
    /// Any JSON, `null` included.
    Any,
    /// Any JSON but `null`.
    NonNull,
    /// An object that is open by key.
    Object,
    /// An object that is open by key, but for the reserved one.
    Metadata,
    /// An integer of the range.
    Int(i64, i64),
    /// One of these strings.
    OneOf(&'static [&'static str]),
    /// A JSON pointer.
    Pointer,
    /// A list with at least so many elements.
    List(&'static Shape, usize),
    /// A string, or a list.
    StrOrList(&'static Shape),
    /// An object with these members.
    Struct(&'static Struct),
    /// One of several objects, told apart by a string member.
    Union(&'static Union),
}

/// An object's members; closed unless `open`.
pub(super) struct Struct {
    pub(super) members: &'static [&'static [Member]],
    pub(super) open: bool,
}

/// One member.
pub(super) struct Member {
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    pub(super) required: bool,
    /// The rule that a wrong value breaks.
    pub(super) rule: &'static str,
}

/// Several objects, told apart by the member `tag`.
pub(super) struct Union {
    pub(super) tag: &'static str,
    pub(super) variants: &'static [(&'static str, &'static Struct)],
    /// The rule that an unknown tag breaks.
    pub(super) rule: &'static str,
    /// Tags that are reserved, and the rule that they break.
    pub(super) reserved: (&'static [&'static str], &'static str),
}

/// Checks one event.
pub(super) fn check_event(event: &Value, log: &mut Log) {
    let mut checker = Checker { path: String::new(), log };
    checker.union(event, &tables::EVENT, "VER-11");
}

struct Checker<'a> {
    path: String,
    log: &'a mut Log,
}

impl Checker<'_> {
    fn flag(&mut self, rule: &'static str, what: &str) {
        let place = if self.path.is_empty() { "/" } else { &self.path };
        let message = format!("{place}: {what}");
        self.log.flag(rule, message);
    }

    fn inside(&mut self, segment: &str, check: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push('/');
        self.path.push_str(segment);
        check(self);
        self.path.truncate(length);
    }

    fn value(&mut self, value: &Value, shape: &Shape, rule: &'static str) {
        match shape {
            Shape::Any => {}
            Shape::Str => self.expect(value.is_string(), "a string", rule),
            Shape::Bool => self.expect(value.is_boolean(), "a boolean", rule),
            Shape::NonNull => self.expect(!value.is_null(), "any JSON but null", rule),
            Shape::Object => self.expect(value.is_object(), "an object", rule),
            Shape::Metadata => self.metadata(value),
            Shape::Int(min, max) => self.integer(value, *min, *max, rule),
            Shape::OneOf(names) => {
                let known = value.as_str().is_some_and(|name| names.contains(&name));
                self.expect(known, &format!("one of {names:?}"), rule);
            }
            Shape::Pointer => {
                let good = value.as_str().is_some_and(is_pointer);
                self.expect(good, "a JSON pointer", rule);
            }
            Shape::List(of, min) => self.list(value, of, *min, rule),
            Shape::StrOrList(of) => {
                if !value.is_string() {
                    self.list(value, of, 0, rule);
                }
            }
            Shape::Struct(shape) => match value.as_object() {
                Some(object) => self.members(object, shape, None),
                None => self.flag(rule, "expected an object"),
            },
            Shape::Union(union) => self.union(value, union, rule),
        }
    }

    fn expect(&mut self, good: bool, what: &str, rule: &'static str) {
        if !good {
            self.flag(rule, &format!("expected {what}"));
        }
    }

    fn metadata(&mut self, value: &Value) {
        self.expect(value.is_object(), "an object", "META-1");
        if value.get("ag-ui").is_some() {
            self.flag("META-2", "the key ag-ui is reserved");
        }
    }

    fn integer(&mut self, value: &Value, min: i64, max: i64, rule: &'static str) {
        let good = value.as_i64().is_some_and(|number| (min..=max).contains(&number));
        self.expect(good, &format!("an integer from {min} to {max}"), rule);
    }

    fn list(&mut self, value: &Value, of: &Shape, min: usize, rule: &'static str) {
        let Some(values) = value.as_array() else { return self.flag(rule, "expected a list") };
        if values.len() < min {
            self.flag(rule, &format!("expected at least {min} element(s)"));
        }
        for (index, value) in values.iter().enumerate() {
            self.inside(&index.to_string(), |checker| checker.value(value, of, rule));
        }
    }

    fn union(&mut self, value: &Value, union: &Union, rule: &'static str) {
        let Some(object) = value.as_object() else { return self.flag(rule, "expected an object") };
        let Some(tag) = object.get(union.tag).and_then(Value::as_str) else {
            return self.flag(rule, &format!("expected a string as {}", union.tag));
        };
        if let Some((_, shape)) = union.variants.iter().find(|(name, _)| *name == tag) {
            return self.members(object, shape, Some(union.tag));
        }
        let (names, reserved_rule) = union.reserved;
        let rule = if names.contains(&tag) { reserved_rule } else { union.rule };
        self.flag(rule, &format!("unknown {} {tag:?}", union.tag));
    }

    /// Checks the members of an object; `tag` was checked before.
    fn members(&mut self, object: &Map<String, Value>, shape: &Struct, tag: Option<&str>) {
        let members = || shape.members.iter().copied().flatten();
        for member in members() {
            match object.get(member.name) {
                None if member.required => {
                    self.flag(member.rule, &format!("the member {} is missing", member.name));
                }
                None => {}
                Some(Value::Null) if !member.required => {
                    let rule = if member.rule == tables::GENERAL { "SER-1" } else { member.rule };
                    self.inside(member.name, |checker| {
                        checker.flag(rule, "null for an optional member");
                    });
                }
                Some(value) => self.inside(member.name, |checker| {
                    checker.value(value, &member.shape, member.rule);
                }),
            }
        }
        if shape.open {
            return;
        }
        for key in object.keys() {
            if Some(key.as_str()) != tag && !members().any(|member| member.name == key) {
                self.inside(key, |checker| checker.flag(tables::GENERAL, "unknown member"));
            }
        }
    }
}

/// `^(/([^/~]|~[01])*)*$`
fn is_pointer(text: &str) -> bool {
    (text.is_empty() || text.starts_with('/'))
        && text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']))
}
