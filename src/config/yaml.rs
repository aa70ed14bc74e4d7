//! YAML text to a tree that remembers where everything stands and how scalars were written.
//! Knows no key of the configuration.

use std::{collections::HashMap, sync::Arc};

use yaml_rust2::{
    parser::{Event, Parser, Tag},
    scanner::{Marker, TScalarStyle},
};

use super::{
    diagnostic::ConfigError,
    place::{Pos, SourceText},
    scalar::{self, Looks},
};

/// Deepest nesting; far beyond any real configuration.
const MAX_DEPTH: usize = 64;
/// Most nodes, counted after aliases are replaced by what they name.
const MAX_NODES: usize = 200_000;

/// A value with its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it is.
    pub content: Content,
    /// Where it begins.
    pub pos: Pos,
    /// Nodes in it, itself included.
    size: usize,
}

/// What a node is.
#[derive(Clone, Debug)]
pub enum Content {
    /// A scalar, not yet interpreted.
    Scalar {
        /// Its text.
        text: String,
        /// Written without quotes, so that YAML gives it a type by its looks.
        plain: bool,
    },
    /// A sequence.
    List(Vec<Node>),
    /// A mapping, in order, repeated keys included.
    Map(Vec<(Name, Node)>),
}

/// A key of a mapping.
#[derive(Clone, Debug)]
pub struct Name {
    /// Its text.
    pub text: String,
    /// Where it stands.
    pub pos: Pos,
}

impl Node {
    /// Whether nothing was written here.
    pub fn is_null(&self) -> bool {
        matches!(&self.content, Content::Scalar { text, plain: true }
            if scalar::looks(text) == Looks::Null)
    }

    /// The value of a key of a mapping.
    pub fn get(&self, key: &str) -> Option<&Node> {
        let Content::Map(entries) = &self.content else { return None };
        entries.iter().find(|(name, _)| name.text == key).map(|(_, node)| node)
    }
}

/// Reads one document; `None` = the text holds no value.
pub fn parse(source: &Arc<SourceText>, text: &str) -> Result<Option<Node>, ConfigError> {
    let mut builder = Builder::new(source);
    // The scanner takes it for the end, and what stands behind it would not count.
    if let Some(at) = text.find('\0') {
        let before = text.get(..at).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        return Err(builder.fail(Pos { line, column }, "not valid YAML: a NUL character"));
    }
    let mut parser = Parser::new_from_str(text);
    loop {
        let (event, mark) = parser.next_token().map_err(|error| {
            builder.fail(pos(error.marker()), format!("not valid YAML: {}", error.info()))
        })?;
        if event == Event::StreamEnd {
            return Ok(builder.root);
        }
        builder.take(event, pos(&mark))?;
    }
}

fn pos(mark: &Marker) -> Pos {
    Pos { line: mark.line(), column: mark.col() + 1 }
}

struct Builder<'a> {
    source: &'a Arc<SourceText>,
    root: Option<Node>,
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    documents: usize,
    total: usize,
}

/// A collection whose end has not come yet.
struct Open {
    node: Node,
    anchor: usize,
    /// In a mapping: the key whose value comes next.
    key: Option<Name>,
}

impl<'a> Builder<'a> {
    fn new(source: &'a Arc<SourceText>) -> Self {
        Self {
            source,
            root: None,
            open: Vec::new(),
            anchors: HashMap::new(),
            documents: 0,
            total: 0,
        }
    }

    fn fail(&self, pos: Pos, message: impl Into<String>) -> ConfigError {
        ConfigError::at(self.source, pos, "", message)
    }

    fn take(&mut self, event: Event, pos: Pos) -> Result<(), ConfigError> {
        match event {
            Event::DocumentStart => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(self.fail(pos, "a second YAML document; the file must hold one"));
                }
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                let text_tag = self.check_tag(tag.as_ref(), pos)?;
                let plain = style == TScalarStyle::Plain && !text_tag;
                self.place(Content::Scalar { text, plain }, pos, anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                self.check_tag(tag.as_ref(), pos)?;
                self.begin(Content::List(Vec::new()), pos, anchor)
            }
            Event::MappingStart(anchor, tag) => {
                self.check_tag(tag.as_ref(), pos)?;
                self.begin(Content::Map(Vec::new()), pos, anchor)
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(done) = self.open.pop() else { return Ok(()) };
                if done.anchor > 0 {
                    self.anchors.insert(done.anchor, done.node.clone());
                }
                self.attach(done.node)
            }
            Event::Alias(anchor) => {
                let Some(mut node) = self.anchors.get(&anchor).cloned() else {
                    return Err(self.fail(pos, "the alias names a block that it is part of"));
                };
                node.pos = pos;
                self.count(node.size, pos)?;
                self.attach(node)
            }
            Event::DocumentEnd | Event::StreamStart | Event::StreamEnd | Event::Nothing => Ok(()),
        }
    }

    /// Whether the tag makes a scalar text. Only YAML's own tags are known.
    fn check_tag(&self, tag: Option<&Tag>, pos: Pos) -> Result<bool, ConfigError> {
        match tag {
            None => Ok(false),
            Some(tag) if tag.handle == "tag:yaml.org,2002:" => Ok(tag.suffix == "str"),
            Some(tag) if tag.handle.is_empty() && tag.suffix == "!" => Ok(true),
            Some(_) => Err(self.fail(pos, "tags are not supported here")),
        }
    }

    fn begin(&mut self, content: Content, pos: Pos, anchor: usize) -> Result<(), ConfigError> {
        if self.open.len() >= MAX_DEPTH {
            return Err(self.fail(pos, format!("nested deeper than {MAX_DEPTH} levels")));
        }
        if self.open.last().is_some_and(|open| open.wants_key()) {
            return Err(self.fail(pos, "a key must be a plain name"));
        }
        self.count(1, pos)?;
        self.open.push(Open { node: Node { content, pos, size: 1 }, anchor, key: None });
        Ok(())
    }

    fn place(&mut self, content: Content, pos: Pos, anchor: usize) -> Result<(), ConfigError> {
        self.count(1, pos)?;
        let node = Node { content, pos, size: 1 };
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        self.attach(node)
    }

    fn count(&mut self, nodes: usize, pos: Pos) -> Result<(), ConfigError> {
        self.total = self.total.saturating_add(nodes);
        if self.total > MAX_NODES {
            return Err(self.fail(pos, format!("more than {MAX_NODES} values")));
        }
        Ok(())
    }

    fn attach(&mut self, mut node: Node) -> Result<(), ConfigError> {
        let source = self.source;
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        open.node.size += node.size;
        match &mut open.node.content {
            Content::List(items) => items.push(node),
            Content::Map(entries) => match open.key.take() {
                Some(key) => {
                    // The parser puts a value that is not there at the next token.
                    if node.is_null() {
                        node.pos = key.pos;
                    }
                    entries.push((key, node));
                }
                None => {
                    let Content::Scalar { text, .. } = node.content else {
                        return Err(ConfigError::at(
                            source,
                            node.pos,
                            "",
                            "a key must be a plain name",
                        ));
                    };
                    // A block mapping begins at its first key; the parser says: at the colon.
                    open.node.pos = open.node.pos.min(node.pos);
                    open.key = Some(Name { text, pos: node.pos });
                }
            },
            Content::Scalar { .. } => {}
        }
        Ok(())
    }
}

impl Open {
    fn wants_key(&self) -> bool {
        self.key.is_none() && matches!(self.node.content, Content::Map(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        parse(&SourceText::new("a.yaml", text), text).unwrap_err().to_string()
    }

    #[test]
    fn positions_are_those_of_the_text() {
        let text = "a:\n  é: [x, {y: 'z'}]\n  n:\n";
        let root = parse(&SourceText::new("a.yaml", text), text).unwrap().unwrap();
        let a = root.get("a").unwrap();
        assert_eq!(a.pos, Pos { line: 2, column: 3 });
        let list = a.get("é").unwrap();
        assert_eq!(list.pos, Pos { line: 2, column: 6 });
        let Content::List(items) = &list.content else { panic!("a list") };
        assert_eq!(items[1].pos, Pos { line: 2, column: 10 });
        assert_eq!(items[1].get("y").unwrap().pos, Pos { line: 2, column: 14 });
        assert_eq!(a.get("n").unwrap().pos, Pos { line: 3, column: 3 });
    }

    #[test]
    fn aliases_stand_for_what_they_name() {
        let text = "a: &x {b: 1}\nc: *x\n";
        let root = parse(&SourceText::new("a.yaml", text), text).unwrap().unwrap();
        assert!(root.get("c").unwrap().get("b").is_some());
    }

    #[test]
    fn an_alias_bomb_is_refused() {
        let mut text = String::from("a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n");
        for n in 1..9 {
            let before = n - 1;
            let items = vec![format!("*a{before}"); 10].join(",");
            text.push_str(&format!("a{n}: &a{n} [{items}]\n"));
        }
        assert!(error(&text).contains("more than 200000 values"));
    }

    #[test]
    fn what_is_not_one_plain_document_is_refused() {
        assert_eq!(
            error("a: 1\n---\nb: 2\n"),
            "a.yaml:2:1: a second YAML document; the file must hold one\n  2 | ---\n    | ^"
        );
        assert_eq!(
            error("[a]: 1\n"),
            "a.yaml:1:1: a key must be a plain name\n  1 | [a]: 1\n    | ^"
        );
        assert_eq!(
            error("a: !secret b\n"),
            "a.yaml:1:12: tags are not supported here\n  1 | a: !secret b\n    |            ^"
        );
        assert!(error("a: 1\n\0b: 2\n").starts_with("a.yaml:2:1: not valid YAML: a NUL character"));
        assert!(error(&"[".repeat(100)).contains("nested deeper than 64 levels"));
    }
}
