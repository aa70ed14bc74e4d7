//! Tool calls and tool results.

use std::collections::HashMap;

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
    truncate::{self, MAX_FRAME, TRUNCATED},
};

/// How many bytes of results, or of media, that have not ended are kept in sum, those of all
/// agents of a run together. Nothing of them leaves before their ends, so no slow client holds an
/// agent back that never ends them.
pub(super) const MAX_GATHERED: usize = 4 * MAX_FRAME;

/// About what a result or a part of one takes beside its content.
pub(super) const OVERHEAD: usize = 256;

/// Results that are being streamed.
#[derive(Default)]
pub(super) struct Results {
    open: HashMap<OwnerId, HashMap<String, Accumulated>>,
    kept: usize,
}

#[derive(Default)]
struct Accumulated {
    name: String,
    content: ResultContent,
}

impl Accumulated {
    fn kept(&self) -> usize {
        OVERHEAD + self.name.len() + self.content.kept
    }
}

impl Results {
    /// Changes what there is of one answer, which is given the number of bytes for which there is
    /// room. An answer for which there is none does not begin.
    fn change(
        &mut self,
        owner: OwnerId,
        call: &str,
        change: impl FnOnce(&mut Accumulated, usize),
    ) -> bool {
        // Beyond the content's room, so that what is left out of an answer can be counted.
        let room = (MAX_GATHERED + MAX_FRAME).saturating_sub(self.kept);
        let calls = self.open.entry(owner).or_default();
        if !calls.contains_key(call) {
            if room < OVERHEAD + call.len() {
                return false;
            }
            calls.insert(call.to_owned(), Accumulated::default());
            self.kept += OVERHEAD + call.len();
        }
        let Some(one) = calls.get_mut(call) else { return false };
        let before = one.kept();
        change(one, MAX_GATHERED.saturating_sub(self.kept));
        self.kept = self.kept - before + one.kept();
        true
    }

    pub(super) fn take(&mut self, owner: OwnerId, call: &str) -> Option<(String, ResultContent)> {
        let one = self.open.get_mut(&owner)?.remove(call)?;
        self.kept -= call.len() + one.kept();
        Some((one.name, one.content))
    }

    /// A tool begins to answer.
    pub(super) fn start(&mut self, owner: OwnerId, call: &str, name: &str) -> bool {
        self.change(owner, call, |one, _| name.clone_into(&mut one.name))
    }

    /// More text of an answer.
    pub(super) fn add_text(&mut self, owner: OwnerId, call: &str, delta: &str) -> bool {
        self.change(owner, call, |one, room| one.content.push_text(delta, room))
    }

    /// A media part of an answer, or a piece of one.
    pub(super) fn add_data(
        &mut self,
        owner: OwnerId,
        call: &str,
        block: Option<&String>,
        data: &ResultData,
    ) -> bool {
        self.change(owner, call, |one, room| one.content.push(block, data, room))
    }

    /// Whether a result for this call is being streamed.
    pub(super) fn is_open(&self, owner: OwnerId, call: &str) -> bool {
        self.open.get(&owner).is_some_and(|calls| calls.contains_key(call))
    }

    /// The tool of a suspended result, and its text: why it waits.
    pub(super) fn suspended(&mut self, owner: OwnerId, call: &str) -> (String, Option<String>) {
        let (name, content) = self.take(owner, call).unwrap_or_default();
        let text = content.into_content().text_content();
        (name, (!text.is_empty()).then_some(text))
    }
}

/// The content of one result: text, and parts once media came. No more of it is kept than a frame
/// can hold; the rest is counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ResultContent {
    pieces: Vec<Piece>,
    /// Where the media are whose blocks have an id.
    blocks: HashMap<String, usize>,
    /// About how many bytes are kept.
    kept: usize,
    /// Bytes that are not kept, but for those of media that are still there by their length.
    left_out: usize,
}

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Text(String),
    Media {
        kind: Option<MediaKind>,
        media_type: Option<String>,
        name: Option<String>,
        data: MediaData,
    },
}

impl ResultContent {
    pub(super) fn text(text: &str) -> Self {
        let mut content = Self::default();
        content.push_text(text, MAX_FRAME);
        content
    }

    pub(super) fn of_blocks(blocks: &[Block]) -> Self {
        let mut content = Self::default();
        for block in blocks {
            match block {
                Block::Text { text } => content.push_text_block(text, MAX_FRAME),
                Block::Media { kind, source, name, .. } => {
                    let media_type = source.media_type().map(str::to_owned);
                    let data = DataChunk::from(source.clone());
                    content.begin_media(Some(*kind), media_type, name.clone(), &data, MAX_FRAME);
                }
                _ => {}
            }
        }
        content
    }

    /// How many more bytes may be kept, if there is `room` for so many.
    fn room(&self, room: usize) -> usize {
        room.min(MAX_FRAME.saturating_sub(self.kept))
    }

    fn push_text(&mut self, delta: &str, room: usize) {
        if delta.is_empty() {
            return;
        }
        let begins = !matches!(self.pieces.last(), Some(Piece::Text(_)));
        let overhead = if begins { OVERHEAD } else { 0 };
        let kept = match self.room(room).checked_sub(overhead) {
            Some(room) if self.left_out == 0 => delta.split_at(delta.floor_char_boundary(room)).0,
            _ => "",
        };
        self.left_out += delta.len() - kept.len();
        if kept.is_empty() {
            return;
        }
        self.kept += kept.len() + overhead;
        match self.pieces.last_mut() {
            Some(Piece::Text(text)) => text.push_str(kept),
            _ => self.pieces.push(Piece::Text(kept.to_owned())),
        }
    }

    /// A whole text block: on a line of its own behind other text.
    fn push_text_block(&mut self, text: &str, room: usize) {
        if !text.is_empty() && matches!(self.pieces.last(), Some(Piece::Text(_))) {
            self.push_text("\n", room);
        }
        self.push_text(text, room);
    }

    fn begin_media(
        &mut self,
        kind: Option<MediaKind>,
        media_type: Option<String>,
        name: Option<String>,
        data: &DataChunk,
        room: usize,
    ) -> Option<usize> {
        let texts = [&media_type, &name].into_iter().flatten().map(String::len);
        let overhead = OVERHEAD + texts.sum::<usize>();
        let room = self.room(room).checked_sub(overhead);
        let data = MediaData::new(data, room.unwrap_or_default());
        if room.is_none() {
            self.left_out += data.original();
            return None;
        }
        self.kept += overhead + data.kept();
        let media_type = media_type.filter(|media_type| !media_type.is_empty());
        self.pieces.push(Piece::Media { kind, media_type, name, data });
        Some(self.pieces.len() - 1)
    }

    fn push(&mut self, block: Option<&String>, data: &ResultData, room: usize) {
        let (kind, media_type, name, data) = match data {
            ResultData::Text(text) => return self.push_text_block(text, room),
            ResultData::Media { kind, media_type, name, data } => (kind, media_type, name, data),
        };
        let more = self.room(room);
        let known = block.and_then(|block| self.blocks.get(block));
        if let Some(Piece::Media { data: whole, .. }) =
            known.and_then(|at| self.pieces.get_mut(*at))
        {
            let before = whole.kept();
            whole.add(data, more);
            self.kept = self.kept - before + whole.kept();
            return;
        }
        let at = self.begin_media(*kind, media_type.clone(), name.clone(), data, room);
        if let (Some(at), Some(block)) = (at, block) {
            self.kept += block.len();
            self.blocks.insert(block.clone(), at);
        }
    }

    /// How long everything was that came, if not all of it is kept.
    pub(super) fn cut_from(&self) -> Option<usize> {
        let is_lost =
            |piece: &Piece| matches!(piece, Piece::Media { data: MediaData::TooLong(_), .. });
        let lost = self.left_out > 0 || self.pieces.iter().any(is_lost);
        let lengths = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.len(),
            Piece::Media { data, .. } => data.original(),
        });
        lost.then(|| lengths.sum::<usize>() + self.left_out)
    }

    /// A string while there is only text, `""` when there is nothing (TOOL-8); else parts.
    pub(super) fn into_content(mut self) -> Content {
        match self.pieces.as_mut_slice() {
            [] => Content::Text(String::new()),
            [Piece::Text(text)] => Content::Text(std::mem::take(text)),
            _ => Content::Parts(self.pieces.into_iter().filter_map(part).collect()),
        }
    }
}

/// A part; none of a medium that was too long.
fn part(piece: Piece) -> Option<ContentPart> {
    match piece {
        Piece::Text(text) => Some(ContentPart::plain(text)),
        Piece::Media { kind, media_type, name, data, .. } => {
            let typed = || media_type.as_deref().map_or(MediaKind::Document, MediaKind::of);
            let kind = kind.unwrap_or_else(typed);
            let metadata = name.as_deref().map(named);
            Some(media_part(kind, data.into_whole().ok()?.typed(media_type), None, metadata))
        }
    }
}

/// Said once a run when results have no end.
const NO_ROOM: &str = "a result was left out: too much is kept of others that have not ended";

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
            let begun = context.results.start(owner, call, name);
            context.note_unless(begun, NO_ROOM);
        }
        AgentEventKind::ToolResultTextDelta { call, delta } => {
            context.sequencer.flush_call_ends(owner);
            let begun = context.results.add_text(owner, call, delta);
            context.note_unless(begun, NO_ROOM);
        }
        AgentEventKind::ToolResultDataDelta { call, block, data } => {
            context.sequencer.flush_call_ends(owner);
            let begun = context.results.add_data(owner, call, block.as_ref(), data);
            context.note_unless(begun, NO_ROOM);
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
    context.note_child_result(owner, call, &content, state);
    send_result(owner, call, &name, content, state, context);
}

impl StreamContext {
    /// Whether a result is one that only the client may give (TOOL-16): an answer of ours would
    /// keep it from running.
    pub(super) fn is_the_clients(&self, owner: OwnerId, call: &str, name: &str) -> bool {
        self.is_frontend_tool(owner, self.sequencer.tool_to_answer(owner, call, name))
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
    let (metadata, content) = (result_metadata(state, &content), content.into_content());
    let first = context.sequencer.call_result(owner, call, name, content, metadata);
    context.note_unless(first, "a second result for a call was left out");
}

/// What the metadata of a result says of its state, and of what was left out of it.
pub(super) fn result_metadata(state: ResultState, content: &ResultContent) -> Object {
    let mut metadata = Object::new();
    if let Some(original) = content.cut_from() {
        metadata.insert(TRUNCATED.to_owned(), truncate::marker(original));
    }
    if state != ResultState::Success {
        metadata.insert(STATE_KEY.to_owned(), Value::from(state.as_str()));
    }
    metadata
}
