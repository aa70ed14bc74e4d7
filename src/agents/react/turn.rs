//! One answer of a model: its events as the agent's, its content as a message.
//!
//! No I/O: what the model says is fed in, what the agent says of it comes out.

use std::collections::HashSet;

use agui_adapter::model::{
    AgentEvent, AgentEventKind, Block, Msg, Role,
    event::{Call, DataChunk, ModelUsage, Object},
    msg::{MediaKind, MediaSource},
};
use uuid::Uuid;

use crate::llm::{FinishReason, ModelEvent};

/// An answer that is being given.
pub(super) struct Turn {
    reply: String,
    /// How many blocks were opened; makes their ids.
    opened: usize,
    open: Option<Open>,
    blocks: Vec<Block>,
    calls: Vec<Calling>,
    usage: Option<ModelUsage>,
    finish: Option<FinishReason>,
}

/// The block that deltas go to.
enum Open {
    Text { block: String, text: String },
    Thinking { block: String, thinking: String },
}

/// A call that is being made.
struct Calling {
    index: usize,
    /// Where its block stands.
    at: usize,
    id: String,
    name: String,
    arguments: String,
    encrypted: Option<String>,
    ended: bool,
}

/// An answer that is complete.
#[derive(Debug, PartialEq)]
pub(super) struct Answer {
    /// What was said, for the history; without content when nothing was.
    pub(super) message: Msg,
    /// The calls, in the order in which they began.
    pub(super) calls: Vec<Made>,
    /// Why it is complete.
    pub(super) finish: FinishReason,
}

/// A call that the model made.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Made {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
    /// The answer was cut in the middle of it.
    pub(super) is_cut: bool,
}

impl Turn {
    pub(super) fn new() -> Self {
        Self {
            reply: fresh_id(),
            opened: 0,
            open: None,
            blocks: Vec::new(),
            calls: Vec::new(),
            usage: None,
            finish: None,
        }
    }

    /// The reply id of this answer.
    pub(super) fn reply(&self) -> &str {
        &self.reply
    }

    /// Takes what the model says; `used` are the call ids that stand for other calls.
    pub(super) fn on_event(
        &mut self,
        event: ModelEvent,
        used: &mut HashSet<String>,
        out: &mut Vec<AgentEvent>,
    ) {
        match event {
            ModelEvent::Text(delta) => self.text(delta, out),
            ModelEvent::Thinking(delta) => self.thinking(delta, out),
            ModelEvent::ThinkingEnd { encrypted } => self.end_thinking(encrypted, out),
            ModelEvent::Media(source) => self.media(source, out),
            ModelEvent::CallStart { index, id, name } => {
                self.close(out);
                self.start_call(index, id, name, used, out);
            }
            ModelEvent::CallDelta { index, delta } => self.call_delta(index, delta, out),
            ModelEvent::CallEnd { index, encrypted } => self.end_call(index, encrypted, out),
            ModelEvent::Usage(usage) => self.usage = Some(usage),
            ModelEvent::Finish(finish) => self.finish = Some(finish),
        }
    }

    /// Whether the model has said that it is done.
    pub(super) fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// Closes what is open, and the call of the model with it.
    pub(super) fn finish(mut self, out: &mut Vec<AgentEvent>) -> Answer {
        self.close(out);
        let finish = self.finish.take().unwrap_or(FinishReason::Stop);
        let cut = finish == FinishReason::Length;
        let last = self.calls.len().saturating_sub(1);
        let mut calls = Vec::with_capacity(self.calls.len());
        for (n, call) in self.calls.into_iter().enumerate() {
            if !call.ended {
                let (call, encrypted) = (call.id.clone(), None);
                say(out, AgentEventKind::ToolCallEnd { call, encrypted });
            }
            let input = serde_json::from_str::<Object>(&call.arguments).ok();
            // That a provider ended the call says nothing: all calls end with the answer.
            let is_cut = cut && n == last && input.is_none();
            let Calling { at, id, name, arguments, encrypted, .. } = call;
            if let Some(block) = self.blocks.get_mut(at) {
                let (id, name, arguments) = (id.clone(), name.clone(), arguments.clone());
                let call = Call { id, name, arguments, input, suggested_rules: Vec::new() };
                *block = Block::ToolUse { call, encrypted };
            }
            calls.push(Made { id, name, arguments, is_cut });
        }
        let (reply, usage) = (self.reply.clone(), self.usage);
        say(out, AgentEventKind::ModelCallEnd { reply, usage });
        let message = message(self.reply, Role::Assistant, self.blocks);
        Answer { message, calls, finish }
    }

    fn text(&mut self, delta: String, out: &mut Vec<AgentEvent>) {
        if delta.is_empty() {
            return;
        }
        if !matches!(self.open, Some(Open::Text { .. })) {
            self.close(out);
            let block = self.block_id();
            let (reply, id) = (self.reply.clone(), block.clone());
            say(out, AgentEventKind::TextBlockStart { reply, block: id });
            self.open = Some(Open::Text { block, text: String::new() });
        }
        if let Some(Open::Text { block, text }) = &mut self.open {
            text.push_str(&delta);
            let (reply, block) = (self.reply.clone(), block.clone());
            say(out, AgentEventKind::TextBlockDelta { reply, block, delta });
        }
    }

    fn thinking(&mut self, delta: String, out: &mut Vec<AgentEvent>) {
        if delta.is_empty() {
            return;
        }
        self.open_thinking(out);
        if let Some(Open::Thinking { block, thinking }) = &mut self.open {
            thinking.push_str(&delta);
            let (reply, block) = (self.reply.clone(), block.clone());
            say(out, AgentEventKind::ThinkingBlockDelta { reply, block, delta });
        }
    }

    fn open_thinking(&mut self, out: &mut Vec<AgentEvent>) {
        if matches!(self.open, Some(Open::Thinking { .. })) {
            return;
        }
        self.close(out);
        let block = self.block_id();
        let (reply, id) = (self.reply.clone(), block.clone());
        say(out, AgentEventKind::ThinkingBlockStart { reply, block: id });
        self.open = Some(Open::Thinking { block, thinking: String::new() });
    }

    fn end_thinking(&mut self, encrypted: Option<String>, out: &mut Vec<AgentEvent>) {
        if encrypted.is_some() {
            self.open_thinking(out);
        }
        if let Some(Open::Thinking { .. }) = &self.open {
            self.close_with(encrypted, out);
        }
    }

    fn media(&mut self, source: MediaSource, out: &mut Vec<AgentEvent>) {
        self.close(out);
        let (block, media_type) = (self.block_id(), source.media_type().map(str::to_owned));
        let kind = media_type.as_deref().map_or(MediaKind::Document, MediaKind::of);
        let (reply, id, typed) = (self.reply.clone(), block.clone(), media_type.clone());
        let start =
            AgentEventKind::DataBlockStart { reply, block: id, media_type: typed, name: None };
        say(out, start);
        let (reply, id) = (self.reply.clone(), block.clone());
        let data = DataChunk::from(source.clone());
        say(out, AgentEventKind::DataBlockDelta { reply, block: id, media_type, data });
        say(out, AgentEventKind::DataBlockEnd { reply: self.reply.clone(), block });
        self.blocks.push(Block::Media { kind, source, name: None, metadata: None });
    }

    /// A call keeps the model's id, so that both find its result, unless there is none or it
    /// stands for another call.
    fn start_call(
        &mut self,
        index: usize,
        id: String,
        name: String,
        used: &mut HashSet<String>,
        out: &mut Vec<AgentEvent>,
    ) {
        if self.calls.iter().any(|call| call.index == index) {
            tracing::debug!(index, "a model began a call twice");
            return;
        }
        let id = if id.is_empty() || used.contains(&id) { fresh_id() } else { id };
        used.insert(id.clone());
        let (reply, call) = (self.reply.clone(), id.clone());
        say(out, AgentEventKind::ToolCallStart { reply, call, name: name.clone() });
        let at = self.blocks.len();
        self.blocks.push(Block::ToolUse { call: Call::default(), encrypted: None });
        self.calls.push(Calling {
            index,
            at,
            id,
            name,
            arguments: String::new(),
            encrypted: None,
            ended: false,
        });
    }

    fn call_delta(&mut self, index: usize, delta: String, out: &mut Vec<AgentEvent>) {
        let Some(call) = self.calling(index).filter(|_| !delta.is_empty()) else { return };
        call.arguments.push_str(&delta);
        let call = call.id.clone();
        say(out, AgentEventKind::ToolCallDelta { call, delta });
    }

    fn end_call(&mut self, index: usize, encrypted: Option<String>, out: &mut Vec<AgentEvent>) {
        let Some(call) = self.calling(index) else { return };
        call.ended = true;
        call.encrypted.clone_from(&encrypted);
        let call = call.id.clone();
        say(out, AgentEventKind::ToolCallEnd { call, encrypted });
    }

    /// A call that is still being made.
    fn calling(&mut self, index: usize) -> Option<&mut Calling> {
        self.calls.iter_mut().rev().find(|call| call.index == index && !call.ended)
    }

    fn close(&mut self, out: &mut Vec<AgentEvent>) {
        self.close_with(None, out);
    }

    fn close_with(&mut self, encrypted: Option<String>, out: &mut Vec<AgentEvent>) {
        let reply = self.reply.clone();
        match self.open.take() {
            None => {}
            Some(Open::Text { block, text }) => {
                say(out, AgentEventKind::TextBlockEnd { reply, block, text: None });
                self.blocks.push(Block::Text { text });
            }
            Some(Open::Thinking { block, thinking }) => {
                let kept = encrypted.clone();
                say(out, AgentEventKind::ThinkingBlockEnd { reply, block, encrypted });
                self.blocks.push(Block::Thinking { thinking, encrypted: kept });
            }
        }
    }

    fn block_id(&mut self) -> String {
        self.opened += 1;
        format!("{}-{}", self.reply, self.opened)
    }
}

/// An id that nobody has.
pub(super) fn fresh_id() -> String {
    Uuid::new_v4().simple().to_string()
}

pub(super) fn say(out: &mut Vec<AgentEvent>, kind: AgentEventKind) {
    out.push(AgentEvent::local(kind));
}

pub(super) fn message(id: String, role: Role, content: Vec<Block>) -> Msg {
    Msg { id, name: String::new(), role, content, metadata: Object::new() }
}
