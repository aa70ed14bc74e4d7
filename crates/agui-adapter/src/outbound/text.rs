//! Text and thinking blocks.

use std::collections::{HashMap, HashSet};

use super::context::StreamContext;
use crate::{
    model::{AgentEvent, AgentEventKind, Origin},
    sequencer::{BlockKey, OwnerId},
};

/// What was sent of blocks whose wire may correct it at the end (Python's `TEXT_BLOCK_END.text`),
/// and whether an owner said anything since its last model call.
#[derive(Default)]
pub(super) struct SentTexts {
    open: HashMap<OwnerId, Vec<SentText>>,
    spoke: HashSet<OwnerId>,
}

struct SentText {
    reply: String,
    block: String,
    text: String,
}

impl SentText {
    fn is(&self, key: BlockKey<'_>) -> bool {
        self.block == key.block && self.reply == key.reply
    }
}

impl SentTexts {
    fn sent(&mut self, owner: OwnerId, key: BlockKey<'_>, delta: &str) {
        let open = self.open.entry(owner).or_default();
        match open.iter_mut().find(|sent| sent.is(key)) {
            Some(sent) => sent.text.push_str(delta),
            None => open.push(SentText {
                reply: key.reply.to_owned(),
                block: key.block.to_owned(),
                text: delta.to_owned(),
            }),
        }
    }

    fn take(&mut self, owner: OwnerId, key: BlockKey<'_>) -> String {
        let Some(open) = self.open.get_mut(&owner) else { return String::new() };
        let known = open.iter().position(|sent| sent.is(key));
        known.map(|at| open.swap_remove(at).text).unwrap_or_default()
    }

    /// The owner streamed text.
    pub(super) fn mark_spoken(&mut self, owner: OwnerId) {
        self.spoke.insert(owner);
    }

    /// Whether the owner streamed text since its last model call began.
    pub(super) fn has_spoken(&self, owner: OwnerId) -> bool {
        self.spoke.contains(&owner)
    }

    /// A model call begins.
    pub(super) fn new_model_call(&mut self, owner: OwnerId) {
        self.spoke.remove(&owner);
    }
}

impl StreamContext {
    /// Sends text of a block, and remembers that the owner spoke.
    pub(super) fn send_text(&mut self, owner: OwnerId, key: BlockKey<'_>, delta: &str) {
        if delta.is_empty() {
            return;
        }
        self.pay_owed();
        self.sequencer.text(owner, key, delta);
        self.texts.mark_spoken(owner);
    }
}

/// TEXT_BLOCK_START means nothing by itself, but for a block that is open: Java reopens the
/// constant block id `text`, which is another block then.
pub(super) fn convert_text(event: &AgentEvent, context: &mut StreamContext) {
    match &event.kind {
        AgentEventKind::TextBlockStart { reply, block } => {
            let owner = context.owner_of(event);
            context.texts.take(owner, BlockKey { reply, block });
            context.sequencer.end_text(owner, BlockKey { reply, block });
        }
        AgentEventKind::TextBlockDelta { reply, block, delta } => {
            let owner = context.owner_of(event);
            context.send_text(owner, BlockKey { reply, block }, delta);
            if event.origin == Origin::Python {
                context.texts.sent(owner, BlockKey { reply, block }, delta);
            }
        }
        AgentEventKind::TextBlockEnd { reply, block, text } => {
            let owner = context.owner_of(event);
            let key = BlockKey { reply, block };
            let sent = context.texts.take(owner, key);
            // Nobody else corrects a text at its end, and nobody else's text is remembered.
            if let Some(text) = text.as_ref().filter(|_| event.origin == Origin::Python) {
                match text.strip_prefix(sent.as_str()) {
                    Some(rest) => context.send_text(owner, key, rest),
                    None => context.note(
                        "the final text of a block is not a continuation of what was streamed; \
                         the streamed text stands",
                    ),
                }
            }
            context.sequencer.end_text(owner, key);
        }
        _ => {}
    }
}

/// Thinking leaves only with `enable-reasoning`.
pub(super) fn convert_thinking(event: &AgentEvent, context: &mut StreamContext) {
    if !context.options.enable_reasoning {
        return;
    }
    match &event.kind {
        AgentEventKind::ThinkingBlockStart { reply, block } => {
            let owner = context.owner_of(event);
            context.sequencer.end_reasoning(owner, BlockKey { reply, block }, None);
        }
        AgentEventKind::ThinkingBlockDelta { reply, block, delta } => {
            let owner = context.owner_of(event);
            if !delta.is_empty() {
                context.pay_owed();
            }
            context.sequencer.reasoning(owner, BlockKey { reply, block }, delta);
        }
        AgentEventKind::ThinkingBlockEnd { reply, block, encrypted } => {
            let owner = context.owner_of(event);
            let key = BlockKey { reply, block };
            context.sequencer.end_reasoning(owner, key, encrypted.as_deref());
        }
        _ => {}
    }
}
