//! Tool calls and tool results.

use agui_protocol::{Content, ContentPart};
use serde_json::Value;

use super::{context::StreamContext, media::MediaData};
use crate::{
    model::{
        AgentEvent, AgentEventKind,
        event::{DataChunk, Object, ResultData, ResultState},
        msg::{Block, MediaKind},
    },
    names::STATE_KEY,
    sequencer::OwnerId,
    shown_media::{media_part, named},
};

/// Results that are being streamed.
#[derive(Default)]
pub(super) struct Results(Vec<Accumulated>);

struct Accumulated {
    owner: OwnerId,
    call: String,
    name: String,
    content: ResultContent,
}

impl Results {
    fn of(&mut self, owner: OwnerId, call: &str) -> &mut Accumulated {
        let at = self.0.iter().position(|one| one.owner == owner && one.call == call);
        let at = at.unwrap_or_else(|| {
            self.0.push(Accumulated {
                owner,
                call: call.to_owned(),
                name: String::new(),
                content: ResultContent::default(),
            });
            self.0.len() - 1
        });
        &mut self.0[at]
    }

    pub(super) fn take(&mut self, owner: OwnerId, call: &str) -> Option<(String, ResultContent)> {
        let at = self.0.iter().position(|one| one.owner == owner && one.call == call)?;
        let one = self.0.swap_remove(at);
        Some((one.name, one.content))
    }

    /// A tool begins to answer.
    pub(super) fn start(&mut self, owner: OwnerId, call: &str, name: &str) {
        name.clone_into(&mut self.of(owner, call).name);
    }

    /// More text of an answer.
    pub(super) fn add_text(&mut self, owner: OwnerId, call: &str, delta: &str) {
        self.of(owner, call).content.push_text(delta);
    }

    /// A media part of an answer, or a piece of one.
    pub(super) fn add_data(
        &mut self,
        owner: OwnerId,
        call: &str,
        block: Option<&String>,
        data: &ResultData,
    ) {
        self.of(owner, call).content.push(block, data);
    }

    /// Whether a result for this call is being streamed.
    pub(super) fn is_open(&self, owner: OwnerId, call: &str) -> bool {
        self.0.iter().any(|one| one.owner == owner && one.call == call)
    }

    /// The tool of a suspended result, and its text: why it waits.
    pub(super) fn suspended(&mut self, owner: OwnerId, call: &str) -> (String, Option<String>) {
        let (name, content) = self.take(owner, call).unwrap_or_default();
        let text = content.into_content().text_content();
        (name, (!text.is_empty()).then_some(text))
    }
}

/// The content of one result: text, and parts once media came.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ResultContent(Vec<Piece>);

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Text(String),
    Media {
        block: Option<String>,
        kind: Option<MediaKind>,
        media_type: Option<String>,
        name: Option<String>,
        data: MediaData,
    },
}

impl ResultContent {
    pub(super) fn text(text: &str) -> Self {
        let mut content = Self::default();
        content.push_text(text);
        content
    }

    pub(super) fn of_blocks(blocks: &[Block]) -> Self {
        let mut content = Self::default();
        for block in blocks {
            match block {
                Block::Text { text } => content.push_text_block(text),
                Block::Media { kind, source, name, .. } => content.push_media(
                    None,
                    Some(*kind),
                    source.media_type().map(str::to_owned),
                    name.clone(),
                    source.clone().into(),
                ),
                _ => {}
            }
        }
        content
    }

    fn push_text(&mut self, delta: &str) {
        if delta.is_empty() {
            return;
        }
        match self.0.last_mut() {
            Some(Piece::Text(text)) => text.push_str(delta),
            _ => self.0.push(Piece::Text(delta.to_owned())),
        }
    }

    /// A whole text block: on a line of its own behind other text.
    fn push_text_block(&mut self, text: &str) {
        if let Some(Piece::Text(before)) = self.0.last_mut()
            && !text.is_empty()
        {
            before.push('\n');
        }
        self.push_text(text);
    }

    fn push_media(
        &mut self,
        block: Option<String>,
        kind: Option<MediaKind>,
        media_type: Option<String>,
        name: Option<String>,
        data: DataChunk,
    ) {
        let known = self.0.iter_mut().find_map(|piece| match piece {
            Piece::Media { block: of, data, .. } if block.is_some() && *of == block => Some(data),
            _ => None,
        });
        if let Some(whole) = known {
            whole.add(&data);
            return;
        }
        let data = MediaData::from(data);
        let media_type = media_type.filter(|media_type| !media_type.is_empty());
        self.0.push(Piece::Media { block, kind, media_type, name, data });
    }

    fn push(&mut self, block: Option<&String>, data: &ResultData) {
        match data {
            ResultData::Text(text) => self.push_text_block(text),
            ResultData::Media { kind, media_type, name, data } => {
                let (block, name) = (block.cloned(), name.clone());
                self.push_media(block, *kind, media_type.clone(), name, data.clone());
            }
        }
    }

    /// A string while there is only text, `""` when there is nothing (TOOL-8); else parts.
    pub(super) fn into_content(mut self) -> Content {
        match self.0.as_mut_slice() {
            [] => Content::Text(String::new()),
            [Piece::Text(text)] => Content::Text(std::mem::take(text)),
            _ => Content::Parts(self.0.into_iter().map(part).collect()),
        }
    }
}

fn part(piece: Piece) -> ContentPart {
    match piece {
        Piece::Text(text) => ContentPart::plain(text),
        Piece::Media { kind, media_type, name, data, .. } => {
            let typed = || media_type.as_deref().map_or(MediaKind::Document, MediaKind::of);
            let kind = kind.unwrap_or_else(typed);
            let metadata = name.as_deref().map(named);
            media_part(kind, data.into_whole().typed(media_type), None, metadata)
        }
    }
}

pub(super) fn convert_call(event: &AgentEvent, context: &mut StreamContext) {
    let owner = context.owner_of(event);
    match &event.kind {
        AgentEventKind::ToolCallStart { call, name, .. } => {
            context.pay_owed();
            context.sequencer.start_call(owner, call, name);
        }
        AgentEventKind::ToolCallDelta { call, delta } => {
            let started = context.sequencer.call_args(owner, call, delta);
            context.note_unless(
                started,
                "arguments of a tool call that was never started were left out",
            );
        }
        AgentEventKind::ToolCallEnd { call, encrypted } => {
            context.sequencer.end_call(owner, call, encrypted.as_deref());
        }
        _ => {}
    }
}

pub(super) fn convert_result(event: &AgentEvent, context: &mut StreamContext) {
    let owner = context.owner_of(event);
    match &event.kind {
        AgentEventKind::ToolResultStart { call, name, .. } => {
            context.sequencer.flush_call_ends(owner);
            context.start_tool_round(owner);
            context.results.start(owner, call, name);
        }
        AgentEventKind::ToolResultTextDelta { call, delta } => {
            context.sequencer.flush_call_ends(owner);
            context.results.add_text(owner, call, delta);
        }
        AgentEventKind::ToolResultDataDelta { call, block, data } => {
            context.sequencer.flush_call_ends(owner);
            context.results.add_data(owner, call, block.as_ref(), data);
        }
        AgentEventKind::ToolResultEnd { reply, call, state } => {
            end_result(owner, reply, call, *state, context);
        }
        _ => {}
    }
}

/// A running result is a suspended call, not a result; anything else is the answer.
fn end_result(
    owner: OwnerId,
    reply: &str,
    call: &str,
    state: ResultState,
    context: &mut StreamContext,
) {
    if state == ResultState::Running {
        let (name, text) = context.results.suspended(owner, call);
        context.suspend(owner, reply, call, &name, text);
        context.sequencer.flush_call_ends(owner);
        return;
    }
    let (name, content) = context.results.take(owner, call).unwrap_or_default();
    if context.is_the_clients(owner, call, &name) {
        context.note("a result for a call of a tool that the client runs was left out");
        return;
    }
    context.asks.answered(owner, call);
    context.forget_owed(owner, call);
    send_result(owner, call, &name, content, state, context);
}

impl StreamContext {
    /// Whether a result is one that only the client may give (TOOL-16): an answer of ours would
    /// keep it from running.
    pub(super) fn is_the_clients(&self, owner: OwnerId, call: &str, name: &str) -> bool {
        self.is_frontend_tool(self.sequencer.tool_to_answer(owner, call, name))
    }
}

/// Sends the answer to a call; a state other than success stands in the metadata.
pub(super) fn send_result(
    owner: OwnerId,
    call: &str,
    name: &str,
    content: ResultContent,
    state: ResultState,
    context: &mut StreamContext,
) {
    let (content, metadata) = (content.into_content(), result_metadata(state));
    let first = context.sequencer.call_result(owner, call, name, content, metadata);
    context.note_unless(first, "a second result for a call was left out");
}

/// What the metadata of a result says of its state.
pub(super) fn result_metadata(state: ResultState) -> Object {
    let mut metadata = Object::new();
    if state != ResultState::Success {
        metadata.insert(STATE_KEY.to_owned(), Value::from(state.as_str()));
    }
    metadata
}
