//! How much of a run is kept: the longest texts are cut once there is more.

use agui_protocol::{Content, Message, Object, RunId, ThreadId};
use serde_json::json;

use super::{Transcript, items};
use crate::truncate::{self, TRUNCATED};

/// The most bytes of text, arguments, results and activities that are kept of one run. Beyond it
/// the longest ones are cut, so that three quarters of this are left, and marked with
/// `agentscope.truncated` in their metadata.
pub const MAX_RECORDED: usize = 16 * 1024 * 1024;

/// What is left after cutting, so that a cut is made once in many events.
const KEPT: usize = MAX_RECORDED / 4 * 3;

/// About what a message or a call takes beside its text.
const OVERHEAD: usize = 256;

/// How much was recorded.
#[derive(Clone, Debug)]
pub(super) struct Bound {
    thread_id: ThreadId,
    run_id: RunId,
    bytes: usize,
    /// The bytes at which it is worth to look for something to cut again.
    limit: usize,
    warned: bool,
}

impl Bound {
    pub(super) fn new(thread_id: ThreadId, run_id: RunId) -> Self {
        Self { thread_id, run_id, bytes: 0, limit: MAX_RECORDED, warned: false }
    }

    pub(super) fn add(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    pub(super) fn message(&mut self) {
        self.add(OVERHEAD);
    }

    pub(super) fn is_exceeded(&self) -> bool {
        self.bytes > self.limit
    }

    /// What there is. Where nothing could be cut the next look comes a quarter later,
    /// so that looking stays cheap.
    fn measured(&mut self, bytes: usize) {
        self.bytes = bytes;
        self.limit = MAX_RECORDED.max(bytes + MAX_RECORDED / 4);
    }

    fn warn(&mut self) {
        if !std::mem::replace(&mut self.warned, true) {
            tracing::warn!(
                thread.id = self.thread_id.as_str(),
                run.id = self.run_id.as_str(),
                limit = MAX_RECORDED,
                "the run says more than is kept; the longest texts are cut in the thread's history"
            );
        }
    }
}

/// Cuts the longest texts to one length, so that all of them take [`KEPT`].
pub(super) fn shorten(transcript: &mut Transcript) {
    let lengths = lengths(transcript);
    let overhead = (transcript.entries.len() + transcript.calls.len()) * OVERHEAD;
    if lengths.iter().sum::<usize>() + overhead > KEPT {
        let longest = truncate::level(lengths, KEPT.saturating_sub(overhead));
        cut_all(transcript, longest);
        transcript.bound.warn();
    }
    let left: usize = self::lengths(transcript).iter().sum();
    transcript.bound.measured(left + overhead);
}

/// The length of everything that can be cut, and of what cannot.
fn lengths(transcript: &mut Transcript) -> Vec<usize> {
    let mut lengths = Vec::new();
    for entry in &mut transcript.entries {
        lengths.push(message_len(&entry.message));
        lengths.extend(entry.answers.iter().map(message_len));
        let calls = entry.calls_mut().into_iter().flatten();
        lengths.extend(calls.map(|call| call.function.arguments.len()));
    }
    lengths
}

fn message_len(message: &Message) -> usize {
    match message {
        Message::User { content, .. } | Message::Tool { content, .. } => {
            items::content_len(content)
        }
        Message::Assistant { content, .. } => content.as_ref().map_or(0, String::len),
        Message::System { content, .. }
        | Message::Developer { content, .. }
        | Message::Reasoning { content, .. } => content.len(),
        Message::Activity { content, .. } => truncate::exact(content),
    }
}

fn cut_all(transcript: &mut Transcript, longest: usize) {
    for entry in &mut transcript.entries {
        entry.cut |= cut_message(&mut entry.message, longest);
        for answer in &mut entry.answers {
            cut_message(answer, longest);
        }
    }
    for place in transcript.calls.values_mut() {
        let calls = transcript.entries[place.entry].calls_mut();
        let Some(call) = calls.and_then(|calls| calls.get_mut(place.at)) else { continue };
        let original = call.function.arguments.len();
        if cut_text(&mut call.function.arguments, longest) {
            place.cut = true;
            mark(&mut call.metadata, original);
        }
    }
}

/// Cuts one message; `true` = its text was cut, and what else comes of it is left out.
fn cut_message(message: &mut Message, longest: usize) -> bool {
    let original = message_len(message);
    if original <= longest {
        return false;
    }
    let (cut, streamed) = match message {
        Message::Tool { content: content @ Content::Parts(_), .. } => {
            truncate::shorten_content(content, longest);
            (true, false)
        }
        Message::Tool { content: Content::Text(text), .. } => (cut_text(text, longest), false),
        Message::Activity { content, .. } => {
            let data = truncate::shorten_activity(content, longest);
            (data.is_some(), false)
        }
        _ => {
            let cut = items::text_mut(message).is_some_and(|text| cut_text(text, longest));
            (cut, cut)
        }
    };
    if cut {
        mark(&mut message.base_mut().metadata, original);
    }
    streamed
}

fn cut_text(text: &mut String, longest: usize) -> bool {
    if text.len() <= longest {
        return false;
    }
    text.truncate(text.floor_char_boundary(longest));
    text.shrink_to_fit();
    true
}

/// Marks what was cut with its length before the first cut.
fn mark(metadata: &mut Option<Object>, original: usize) {
    let mark = || json!({ "originalBytes": original });
    metadata.get_or_insert_default().entry(TRUNCATED).or_insert_with(mark);
}

/// Notes that more would have been added to something that was cut.
pub(super) fn note_more(metadata: &mut Option<Object>, bytes: usize) {
    let Some(mark) = metadata.as_mut().and_then(|metadata| metadata.get_mut(TRUNCATED)) else {
        return;
    };
    let before = mark["originalBytes"].as_u64().unwrap_or_default();
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
    *mark = json!({ "originalBytes": before.saturating_add(bytes) });
}
