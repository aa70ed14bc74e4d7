//! What is open in the current run: started and not yet ended.

use super::Log;

/// What has a start and an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Text,
    Reasoning,
    Span,
    Call,
}

impl Family {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Text => "text message",
            Self::Reasoning => "reasoning message",
            Self::Span => "reasoning span",
            Self::Call => "tool call",
        }
    }

    /// The rule broken by content or an end without a start.
    fn not_open(self) -> &'static str {
        match self {
            Self::Text => "TXT-1",
            Self::Reasoning => "REAS-3",
            Self::Span => "REAS-2",
            Self::Call => "TOOL-1",
        }
    }

    /// The rule broken by a second start.
    fn still_open(self) -> &'static str {
        match self {
            Self::Text => "TXT-2",
            other => other.not_open(),
        }
    }
}

/// One open item.
pub(super) struct Item {
    pub(super) family: Family,
    pub(super) id: String,
    pub(super) owner: Option<String>,
}

/// The open items, in the order of their starts.
#[derive(Default)]
pub(super) struct Items {
    pub(super) open: Vec<Item>,
    /// Items that chunks opened; their end is never explicit (CHK-1).
    by_chunk: Vec<(Family, String)>,
}

impl Items {
    fn position(&self, family: Family, id: &str) -> Option<usize> {
        self.open.iter().position(|item| item.family == family && item.id == id)
    }

    pub(super) fn is_open(&self, family: Family, id: &str) -> bool {
        self.position(family, id).is_some()
    }

    /// A start; `false` when the item is open already, which is flagged.
    pub(super) fn start(
        &mut self,
        family: Family,
        id: &str,
        owner: Option<&str>,
        log: &mut Log,
    ) -> bool {
        if self.is_open(family, id) {
            log.flag(family.still_open(), format!("{} {id} is open already", family.name()));
            return false;
        }
        self.by_chunk.retain(|(other, name)| *other != family || name != id);
        let (id, owner) = (id.to_owned(), owner.map(str::to_owned));
        self.open.push(Item { family, id, owner });
        true
    }

    /// A start by a chunk.
    pub(super) fn start_by_chunk(&mut self, family: Family, id: &str, owner: Option<&str>) {
        let (id, owner) = (id.to_owned(), owner.map(str::to_owned));
        self.by_chunk.push((family, id.clone()));
        self.open.push(Item { family, id, owner });
    }

    /// Content of an item; its index while it is open.
    pub(super) fn go_on(
        &mut self,
        family: Family,
        id: &str,
        tag: Option<&str>,
        log: &mut Log,
    ) -> Option<usize> {
        let Some(position) = self.position(family, id) else {
            let by_chunk = self.by_chunk.iter().any(|(other, name)| *other == family && name == id);
            let rule = if by_chunk { "CHK-1" } else { family.not_open() };
            log.flag(rule, format!("{} {id} is not open", family.name()));
            return None;
        };
        let owner = self.open.get(position).and_then(|item| item.owner.as_deref());
        if tag.is_some() && owner != tag {
            log.flag("SUB-6", format!("{} {id} belongs to another owner", family.name()));
        }
        Some(position)
    }

    /// An end.
    pub(super) fn end(&mut self, family: Family, id: &str, tag: Option<&str>, log: &mut Log) {
        if let Some(position) = self.go_on(family, id, tag, log) {
            self.open.remove(position);
        }
    }

    /// Ends an item that a chunk opened.
    pub(super) fn end_by_chunk(&mut self, family: Family, id: &str) {
        self.open.retain(|item| item.family != family || item.id != id);
    }
}
