//! What a key may hold. The one table of keys (`keys.rs`) is written in these terms; reading YAML,
//! binding environment variables and the error texts all follow it.

/// What a value may be.
#[derive(Debug)]
pub enum Kind {
    /// true or false.
    Bool,
    /// A whole number within bounds.
    Int {
        /// Smallest.
        min: i64,
        /// Largest.
        max: i64,
    },
    /// A time span, read to milliseconds.
    Duration,
    /// A number of bytes, greater than zero.
    Size,
    /// Text.
    Text,
    /// Text in which `${…}` is not a placeholder of the configuration.
    Verbatim,
    /// One of these; case, `-` and `_` do not count.
    Choice(&'static [&'static str]),
    /// A list.
    List(&'static Kind),
    /// A map whose keys the user chooses.
    Map(&'static Kind),
    /// A map with these keys.
    Struct(&'static [Key]),
    /// A map whose key `type` decides which other keys it has.
    Variants(&'static [Variant]),
    /// Anything.
    Any,
}

/// A key of a [`Kind::Struct`].
#[derive(Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// What it is for.
    pub doc: &'static str,
}

/// A value of `type` and the keys that come with it.
#[derive(Debug)]
pub struct Variant {
    /// The value of `type`.
    pub name: &'static str,
    /// The keys beside `type`.
    pub keys: &'static [Key],
}

/// The variant that a value of `type` names, or the names there are.
pub fn variant<'v>(variants: &'v [Variant], name: &str) -> Result<&'v Variant, Vec<&'static str>> {
    let found = variants.iter().find(|variant| canonical(variant.name) == canonical(name));
    found.ok_or_else(|| variants.iter().map(|variant| variant.name).collect())
}

/// Makes a [`Key`].
pub const fn key(name: &'static str, kind: Kind, doc: &'static str) -> Key {
    Key { name, kind, doc }
}

/// The form in which names are compared: case, `-` and `_` do not count.
pub fn canonical(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
}

impl Kind {
    /// What an error says was expected.
    pub fn expected(&self) -> String {
        match self {
            Kind::Bool => "true or false".to_owned(),
            Kind::Int { min, max } => format!("a whole number from {min} to {max}"),
            Kind::Duration => {
                "a duration such as `10m`, `PT10M` or milliseconds, at most ten years".to_owned()
            }
            Kind::Size => "a size such as `16MiB` or a number of bytes".to_owned(),
            Kind::Text | Kind::Verbatim => "text".to_owned(),
            Kind::Choice(names) => format!("one of {}", names.join(", ")),
            Kind::List(_) => "a list".to_owned(),
            Kind::Map(_) | Kind::Struct(_) | Kind::Variants(_) => "a map of keys".to_owned(),
            Kind::Any => "a value".to_owned(),
        }
    }

    /// The names of environment variables that set this value or something in it, `prefix` being
    /// the name of the value itself.
    pub fn variables(&self, prefix: &str) -> Vec<String> {
        let of_keys = |keys: &mut dyn Iterator<Item = &'static Key>| -> Vec<String> {
            keys.flat_map(|key| {
                key.kind.variables(&format!("{prefix}_{}", variable_part(key.name)))
            })
            .collect()
        };
        match self {
            Kind::Struct(keys) => of_keys(&mut keys.iter()),
            Kind::Variants(variants) => {
                let mut names = vec![format!("{prefix}_TYPE")];
                for name in of_keys(&mut variants.iter().flat_map(|variant| variant.keys)) {
                    if !names.contains(&name) {
                        names.push(name);
                    }
                }
                names
            }
            Kind::Map(value) => value.variables(&format!("{prefix}_<NAME>")),
            _ if self.is_comma_list() => vec![prefix.to_owned()],
            Kind::List(element) => element.variables(&format!("{prefix}_<N>")),
            _ => vec![prefix.to_owned()],
        }
    }

    /// Whether one text with commas can stand for the list. Verbatim items may hold commas.
    pub fn is_comma_list(&self) -> bool {
        matches!(self, Kind::List(Kind::Text))
    }

    /// Whether one piece of text can hold a value of this kind.
    pub fn is_scalar(&self) -> bool {
        !matches!(self, Kind::List(_) | Kind::Map(_) | Kind::Struct(_) | Kind::Variants(_))
    }
}

/// A key's name as part of the name of an environment variable.
fn variable_part(name: &str) -> String {
    name.replace('-', "_").to_ascii_uppercase()
}
