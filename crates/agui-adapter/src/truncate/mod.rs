//! Keeps every frame below what clients can take: they give up on a frame of 10 Mi characters
//! (SSE-18), so none of ours is longer than 8 MiB.
//!
//! Streamed text is split, which loses nothing. Whatever else is too long is cut or left out,
//! and the event's metadata says so under [`TRUNCATED`]. Nothing may be cut here for any other
//! reason than the length of the frame.

mod latest;
mod size;

pub(crate) use latest::latest_turns;
pub(crate) use size::exact;

use agui_protocol::{
    Body, Content, ContentPart, Event, EventType, Interrupt, Message, Object, PartSource, RunId,
    RunOutcome, ThreadId, ToolCall,
};
use serde_json::{Value, json};

/// The longest JSON text of one event, in bytes.
pub const MAX_FRAME: usize = 8 * 1024 * 1024;

/// The longest piece of streamed text in one event, in bytes before escaping.
pub const MAX_DELTA: usize = 1024 * 1024;

/// The metadata key that marks what was cut: `{"originalBytes": n}`, the length of what it was
/// cut from.
pub const TRUNCATED: &str = "agentscope.truncated";

/// What the marker itself and the members that are never cut may take.
const RESERVE: usize = 64 * 1024;

/// What the content of an event that is cut may take.
const CONTENT: usize = MAX_FRAME - MAX_FRAME / 8 - RESERVE;

/// The stage that keeps frames short; one per run.
#[derive(Debug)]
pub struct Truncate {
    thread_id: ThreadId,
    run_id: RunId,
    warned: bool,
    warned_of_loss: bool,
}

impl Truncate {
    /// The stage for one run; the ids are for the log.
    pub fn new(thread_id: ThreadId, run_id: RunId) -> Self {
        Self { thread_id, run_id, warned: false, warned_of_loss: false }
    }

    /// Whether the event can leave as it is. Cheap unless the event is large.
    pub fn fits(event: &Event) -> bool {
        if event.body.delta().is_some_and(|delta| delta.len() > MAX_DELTA) {
            return false;
        }
        let harmless = MAX_FRAME / size::WORST_ESCAPE;
        size::guess(event, harmless) < harmless || size::exact(event) <= MAX_FRAME
    }

    /// Appends the event to `out`, in several pieces or shortened if it is too long. An event
    /// that cannot be shortened without making it wrong is left out.
    pub fn apply(&mut self, event: Event, out: &mut Vec<Event>) {
        if Self::fits(&event) {
            return out.push(event);
        }
        let event = match split(event, out) {
            Ok(()) => return,
            Err(event) => *event,
        };
        let (kind, length) = (event.event_type(), size::exact(&event));
        match shorten(event) {
            Some(event) => {
                self.warn(kind, length);
                out.push(event);
            }
            None => self.warn_of_loss(kind, length),
        }
    }

    fn warn(&mut self, kind: EventType, length: usize) {
        if !std::mem::replace(&mut self.warned, true) {
            tracing::warn!(
                thread.id = self.thread_id.as_str(),
                run.id = self.run_id.as_str(),
                event = kind.as_str(),
                length,
                limit = MAX_FRAME,
                "an event is longer than clients can take and was cut; further ones of this run \
                 are not logged"
            );
        }
    }

    fn warn_of_loss(&mut self, kind: EventType, length: usize) {
        if !std::mem::replace(&mut self.warned_of_loss, true) {
            tracing::warn!(
                thread.id = self.thread_id.as_str(),
                run.id = self.run_id.as_str(),
                event = kind.as_str(),
                length,
                limit = MAX_FRAME,
                "an event is longer than clients can take and cannot be cut, so it was left out; \
                 further ones of this run are not logged"
            );
        }
    }
}

/// Whether a body leaves whole, whatever stands beside it. Asked where a later event builds on
/// what the client was sent.
pub(crate) fn leaves(body: &Body) -> bool {
    let harmless = MAX_FRAME / size::WORST_ESCAPE;
    size::guess_body(body, harmless) < harmless || size::exact(body) <= MAX_FRAME - RESERVE
}

/// About how many bytes of memory an event holds; once past `enough` the count may stop.
pub fn weight(event: &Event, enough: usize) -> usize {
    size_of::<Event>() + size::guess(event, enough).saturating_sub(size::FRAME_OVERHEAD)
}

/// Splits streamed text into events of at most [`MAX_DELTA`]. The base members other than the
/// time travel on the first one only, where they merge as they would have on the whole.
fn split(mut event: Event, out: &mut Vec<Event>) -> Result<(), Box<Event>> {
    let Some(mut text) = event.body.delta_mut().map(std::mem::take) else {
        return Err(Box::new(event));
    };
    shorten_base(&mut event, MAX_FRAME - size::WORST_ESCAPE * MAX_DELTA - RESERVE);
    loop {
        let rest = text.split_off(text.floor_char_boundary(MAX_DELTA));
        let mut piece = event.clone();
        if let Some(delta) = piece.body.delta_mut() {
            *delta = std::mem::replace(&mut text, rest);
        }
        out.push(piece);
        if text.is_empty() {
            return Ok(());
        }
        (event.raw_event, event.metadata) = (None, None);
    }
}

/// Cuts what can be cut: the base members, which mean nothing to the protocol, then the content.
/// `None` = nothing sensible would be left. A boundary of the run leaves in any case.
fn shorten(mut event: Event) -> Option<Event> {
    let (budget, before) = (base_budget(&event.body), marked(&event).unwrap_or_default());
    shorten_base(&mut event, budget);
    if size::exact(&event) <= MAX_FRAME {
        return Some(event);
    }
    let original = shorten_body(&mut event.body);
    if let Some(original) = original {
        mark(&mut event, original.max(before));
    }
    let fits = original.is_some() && size::exact(&event) <= MAX_FRAME;
    let boundary = matches!(
        event.body,
        Body::RunStarted { .. } | Body::RunFinished { .. } | Body::RunError { .. }
    );
    (fits || boundary).then_some(event)
}

/// What the base members may take: the room beside a body that leaves whole, else a share.
fn base_budget(body: &Body) -> usize {
    if leaves(body) { MAX_FRAME - RESERVE / 2 - size::exact(body) } else { MAX_FRAME / 8 }
}

fn mark(event: &mut Event, original_bytes: usize) {
    event.metadata.get_or_insert_default().insert(TRUNCATED.to_owned(), marker(original_bytes));
}

/// What stands under [`TRUNCATED`].
pub(crate) fn marker(original_bytes: usize) -> Value {
    json!({"originalBytes": original_bytes})
}

/// What the event was cut from before it came here.
fn marked(event: &Event) -> Option<usize> {
    let bytes = event.metadata.as_ref()?.get(TRUNCATED)?.get("originalBytes")?.as_u64()?;
    usize::try_from(bytes).ok()
}

/// Removes the raw event, then the metadata, if they take more than `budget`.
fn shorten_base(event: &mut Event, budget: usize) {
    let raw = event.raw_event.as_ref().map_or(0, size::exact);
    let metadata = event.metadata.as_ref().map_or(0, size::exact);
    if raw + metadata <= budget {
        return;
    }
    event.raw_event = None;
    if metadata > budget {
        event.metadata = None;
    }
    let original = if metadata > budget { raw + metadata } else { raw };
    mark(event, original);
}

/// Cuts the body's own content and gives its length before that.
fn shorten_body(body: &mut Body) -> Option<usize> {
    let budget = CONTENT;
    match body {
        Body::ToolCallResult { content, .. } => Some(shorten_content(content, budget)),
        // Left out, the start of something would leave its end and all between without it.
        Body::RunError { message: text, .. }
        | Body::SubagentError { message: text, .. }
        | Body::ToolCallStart { tool_call_name: text, .. }
        | Body::StepStarted { step_name: text, .. }
        | Body::StepFinished { step_name: text, .. } => {
            let original = text.len();
            size::cut(text, budget);
            Some(original)
        }
        Body::SubagentStarted { name, description, .. } => {
            let original = name.len() + description.take().map_or(0, |text| text.len());
            size::cut(name, budget);
            Some(original)
        }
        Body::TextMessageStart { name, .. } => name.take().map(|name| name.len()),
        Body::ActivitySnapshot { content, .. } => shorten_activity(content, budget),
        Body::Custom { value, .. } | Body::Raw { event: value, .. } => {
            let original = size::exact(value);
            *value = Value::Null;
            Some(original)
        }
        Body::RunFinished { result, outcome, .. } => Some(shorten_end(result, outcome, budget)),
        Body::SubagentFinished { result, .. } => result.take().map(|result| size::exact(&result)),
        Body::RunStarted { input, .. } => input.take().map(|input| size::exact(&input)),
        Body::MessagesSnapshot { messages } => Some(shorten_messages(messages, budget)),
        // Half a state or half a patch is a wrong one.
        _ => None,
    }
}

/// Leaves out the result; without one, what interrupts say beyond their own members, then cuts
/// their messages. The answer to an interrupt needs only its id.
fn shorten_end(
    result: &mut Option<Value>,
    outcome: &mut Option<RunOutcome>,
    budget: usize,
) -> usize {
    if let Some(result) = result.take() {
        return size::exact(&result);
    }
    let Some(RunOutcome::Interrupt { interrupts }) = outcome else { return 0 };
    let metadata = interrupts.iter_mut().filter_map(|interrupt| interrupt.metadata.take());
    let original: usize = metadata.map(|metadata| size::exact(&metadata)).sum();
    if size::exact(interrupts) <= budget {
        return original;
    }
    original + cut_messages(interrupts, budget)
}

fn cut_messages(interrupts: &mut [Interrupt], budget: usize) -> usize {
    let share = budget / interrupts.len().max(1);
    let mut original = 0;
    for message in interrupts.iter_mut().filter_map(|interrupt| interrupt.message.as_mut()) {
        original += message.len();
        size::cut(message, share);
    }
    original
}

pub(crate) fn shorten_content(content: &mut Content, budget: usize) -> usize {
    match content {
        Content::Text(text) => {
            let original = text.len();
            size::cut(text, budget);
            original
        }
        Content::Parts(parts) => {
            let original = parts.iter().map(part_len).sum();
            drop_media(parts, budget);
            if size::exact(parts) > budget {
                cut_texts(parts, budget);
            }
            original
        }
    }
}

pub(crate) fn part_len(part: &ContentPart) -> usize {
    match part.media() {
        Some(media) => size::source_len(&media.source),
        None => part.text().map_or(0, str::len),
    }
}

/// Leaves out media parts, the largest first, until the rest fits. A part that is cut in the
/// middle is no picture any more.
fn drop_media(parts: &mut Vec<ContentPart>, budget: usize) {
    let mut total = size::exact(parts);
    while total > budget {
        let media = parts.iter().enumerate().filter(|(_, part)| part.media().is_some());
        let Some((index, _)) = media.max_by_key(|(_, part)| part_len(part)) else { return };
        total -= size::exact(&parts.remove(index)).min(total);
    }
}

/// Gives every text its place in order until the budget is used up; what has no room is left out.
fn cut_texts(parts: &mut Vec<ContentPart>, budget: usize) {
    let mut left = budget;
    parts.retain_mut(|part| {
        let ContentPart::Text { text, metadata, .. } = part else { return false };
        let Some(room) = left.checked_sub(128) else { return false };
        if size::cut(text, room) {
            *metadata = None;
        }
        let used = size::exact(part);
        left = left.saturating_sub(used);
        used <= room + 128
    });
}

/// The assistant's own media travel in an activity; without their bytes it still says what there
/// was. Any other activity of this size cannot be cut.
pub(crate) fn shorten_activity(content: &mut Object, budget: usize) -> Option<usize> {
    let data = content.get("data").filter(|data| data.is_string())?;
    let original = data.as_str().map_or(0, str::len);
    content.shift_remove("data");
    (size::exact(content) <= budget).then_some(original)
}

/// Media go first, wherever they are, then the longest tool answers, then the longest of all other
/// texts. A message itself is never left out: the client would delete its own (SNAP-1).
fn shorten_messages(messages: &mut [Message], budget: usize) -> usize {
    let original = size::exact(&messages);
    let mut total = original;
    while total > budget {
        let Some(parts) = fattest(messages) else { break };
        let before = size::exact(parts);
        let media = parts.iter().enumerate().filter(|(_, part)| is_data(part));
        let Some((index, _)) = media.max_by_key(|(_, part)| part_len(part)) else { break };
        parts.remove(index);
        total -= (before - size::exact(parts).min(before)).min(total);
    }
    let mut answers: Vec<&mut Content> = messages.iter_mut().filter_map(tool_content).collect();
    answers.sort_by_cached_key(|content| std::cmp::Reverse(size::exact(content)));
    for content in answers {
        if total <= budget {
            break;
        }
        let before = size::exact(content);
        shorten_content(content, before.saturating_sub(total - budget));
        total -= (before - size::exact(content).min(before)).min(total);
    }
    if total > budget {
        let lengths: Vec<usize> = texts(messages).map(|text| size::exact(text)).collect();
        let others = total - lengths.iter().sum::<usize>().min(total);
        let longest = level(lengths, budget.saturating_sub(others));
        texts(messages).for_each(|text| {
            // Without the quotes.
            size::cut(text, longest.saturating_sub(2));
        });
    }
    original
}

/// The texts and arguments of messages that are no answers.
fn texts(messages: &mut [Message]) -> impl Iterator<Item = &mut String> {
    messages.iter_mut().flat_map(|message| {
        let (text, calls): (Option<&mut String>, &mut [ToolCall]) = match message {
            Message::Assistant { content, tool_calls, .. } => (content.as_mut(), tool_calls),
            Message::User { content: Content::Text(text), .. }
            | Message::System { content: text, .. }
            | Message::Developer { content: text, .. }
            | Message::Reasoning { content: text, .. } => (Some(text), &mut []),
            Message::User { .. } | Message::Tool { .. } | Message::Activity { .. } => {
                (None, &mut [])
            }
        };
        text.into_iter().chain(calls.iter_mut().map(|call| &mut call.function.arguments))
    })
}

/// The greatest length such that all lengths, cut to it, fit into `room`.
pub(crate) fn level(mut lengths: Vec<usize>, room: usize) -> usize {
    lengths.sort_unstable();
    let (mut left, mut count) = (room, lengths.len());
    for length in lengths {
        let share = left / count.max(1);
        if length > share {
            return share;
        }
        left -= length;
        count -= 1;
    }
    left
}

/// The parts among which the largest inline medium of all messages is.
fn fattest(messages: &mut [Message]) -> Option<&mut Vec<ContentPart>> {
    let lists = messages.iter_mut().filter_map(|message| match message {
        Message::User { content: Content::Parts(parts), .. }
        | Message::Tool { content: Content::Parts(parts), .. } => Some(parts),
        _ => None,
    });
    let largest =
        |parts: &[ContentPart]| parts.iter().filter(|part| is_data(part)).map(part_len).max();
    lists
        .filter_map(|parts| largest(parts).map(|length| (length, parts)))
        .max_by_key(|(length, _)| *length)
        .map(|(_, parts)| parts)
}

fn is_data(part: &ContentPart) -> bool {
    part.media().is_some_and(|media| matches!(media.source, PartSource::Data { .. }))
}

fn tool_content(message: &mut Message) -> Option<&mut Content> {
    match message {
        Message::Tool { content, .. } => Some(content),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
