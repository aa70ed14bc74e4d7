//! Activities, and the assistant's own media, which are shown as activities.

use std::collections::HashMap;

use agui_protocol::{Body, MessageId, PatchOperation};
use serde::Deserialize;
use serde_json::Value;

use super::{
    context::StreamContext,
    media::MediaData,
    tool::{MAX_GATHERED, OVERHEAD},
};
use crate::{
    model::{
        AgentEvent, AgentEventKind,
        event::{ActivityChange, Object},
        patch::apply_patch,
    },
    names::MEDIA_ACTIVITY,
    sequencer::OwnerId,
    shown_media::{media_activity, unsendable_media},
    truncate::{self, MAX_FRAME, TRUNCATED},
};

/// What was shown so far.
#[derive(Default)]
pub(super) struct Activities {
    shown: Vec<Shown>,
    media: HashMap<OwnerId, Vec<Media>>,
    /// How many media began.
    begun: u64,
    /// About how many bytes are kept of the media.
    kept: usize,
}

struct Shown {
    owner: OwnerId,
    id: String,
    message_id: MessageId,
    activity_type: String,
    content: Value,
    /// The client has this content; `false` = it was too long to be sent.
    told: bool,
}

impl Activities {
    fn find(&self, owner: OwnerId, id: &str) -> Option<usize> {
        self.shown.iter().position(|shown| shown.owner == owner && shown.id == id)
    }
}

struct Media {
    /// Its place among all media.
    place: u64,
    owner: OwnerId,
    reply: String,
    block: String,
    media_type: Option<String>,
    name: Option<String>,
    data: Option<MediaData>,
}

pub(super) fn convert(event: &AgentEvent, context: &mut StreamContext) {
    let AgentEventKind::Activity { id, activity_type, change } = &event.kind else { return };
    let owner = context.owner_of(event);
    match change {
        ActivityChange::Content(content) => {
            snapshot(owner, id, activity_type, content.clone(), context);
        }
        ActivityChange::Patch(operations) => {
            patch(owner, id, operations, context);
        }
    }
}

fn snapshot(
    owner: OwnerId,
    id: &str,
    activity_type: &str,
    content: Object,
    context: &mut StreamContext,
) {
    let at = context.activities.find(owner, id).unwrap_or_else(|| {
        let message_id = context.sequencer.next_message_id();
        context.activities.shown.push(Shown {
            owner,
            id: id.to_owned(),
            message_id,
            activity_type: String::new(),
            content: Value::Null,
            told: false,
        });
        context.activities.shown.len() - 1
    });
    let shown = &mut context.activities.shown[at];
    activity_type.clone_into(&mut shown.activity_type);
    shown.content = Value::Object(content);
    send_snapshot(at, context);
}

/// A content that is too long for a frame is not sent, and not cut either: patches would not know
/// of the cut.
fn send_snapshot(at: usize, context: &mut StreamContext) {
    let shown = &mut context.activities.shown[at];
    let Value::Object(content) = &shown.content else { return };
    let (owner, content) = (shown.owner, content.clone());
    let body = Body::ActivitySnapshot {
        message_id: shown.message_id.clone(),
        activity_type: shown.activity_type.clone(),
        content,
        replace: None,
        subagent_run_id: context.sequencer.tag(owner),
    };
    shown.told = truncate::leaves(&body);
    if shown.told {
        context.sequencer.emit(owner, |_| body);
    } else {
        context.note("an activity that is longer than clients can take was left out");
    }
}

/// A patch of an activity that was never shown, or that does not apply, or that would make the
/// content something else than an object, is left out (ACT-2, ACT-4). The activity keeps its type,
/// whatever the patch says (ACT-3). Where the client does not have what the patch changes, or the
/// patch is too long for a frame, the whole content is sent.
fn patch(owner: OwnerId, id: &str, operations: &Value, context: &mut StreamContext) {
    let Some(at) = context.activities.find(owner, id) else {
        context.note("a patch of an activity that was never shown was left out");
        return;
    };
    let shown = &mut context.activities.shown[at];
    let mut content = shown.content.clone();
    let applied = apply_patch(&mut content, operations);
    let patch = Vec::<PatchOperation>::deserialize(operations).ok();
    let (Ok(()), true, Some(patch)) = (applied, content.is_object(), patch) else {
        context.note("a patch of an activity that does not apply was left out");
        return;
    };
    shown.content = content;
    let body = Body::ActivityDelta {
        message_id: shown.message_id.clone(),
        activity_type: shown.activity_type.clone(),
        patch,
        subagent_run_id: context.sequencer.tag(owner),
    };
    if shown.told && truncate::leaves(&body) {
        context.sequencer.emit(owner, |_| body);
    } else {
        send_snapshot(at, context);
    }
}

pub(super) fn convert_media(event: &AgentEvent, context: &mut StreamContext) {
    let owner = context.owner_of(event);
    match &event.kind {
        AgentEventKind::DataBlockStart { reply, block, media_type, name } => {
            end_media(owner, reply, block, context);
            change_media(owner, reply, block, context, |media, _| {
                media.media_type.clone_from(media_type);
                media.name.clone_from(name);
            });
        }
        AgentEventKind::DataBlockDelta { reply, block, media_type, data } => {
            change_media(owner, reply, block, context, |media, room| {
                if media.media_type.is_none() {
                    media.media_type.clone_from(media_type);
                }
                let room = room.min(MAX_FRAME.saturating_sub(media.kept()));
                match &mut media.data {
                    Some(whole) => whole.add(data, room),
                    None => media.data = Some(MediaData::new(data, room)),
                }
            });
        }
        AgentEventKind::DataBlockEnd { reply, block } => end_media(owner, reply, block, context),
        _ => {}
    }
}

impl Media {
    /// About how many bytes are kept.
    fn kept(&self) -> usize {
        let texts = [&self.media_type, &self.name].into_iter().flatten().map(String::len);
        let data = self.data.as_ref().map_or(0, MediaData::kept);
        OVERHEAD + self.reply.len() + self.block.len() + texts.sum::<usize>() + data
    }
}

/// Changes a medium, which is given the number of bytes for which there is room. A medium for
/// which there is none is left out.
fn change_media(
    owner: OwnerId,
    reply: &str,
    block: &str,
    context: &mut StreamContext,
    change: impl FnOnce(&mut Media, usize),
) {
    let Activities { media, kept, begun, .. } = &mut context.activities;
    let media = media.entry(owner).or_default();
    let room = MAX_GATHERED.saturating_sub(*kept);
    let known = media.iter().rposition(|m| m.block == block && m.reply == reply);
    let at = known.unwrap_or(media.len());
    if known.is_none() {
        *begun += 1;
        let new = Media {
            place: *begun,
            owner,
            reply: reply.to_owned(),
            block: block.to_owned(),
            media_type: None,
            name: None,
            data: None,
        };
        if new.kept() > room {
            return context.note("a medium was left out: too much is kept of others without end");
        }
        *kept += new.kept();
        media.push(new);
    }
    let one = &mut media[at];
    let before = one.kept();
    change(one, MAX_GATHERED.saturating_sub(*kept));
    *kept = *kept - before + one.kept();
}

fn end_media(owner: OwnerId, reply: &str, block: &str, context: &mut StreamContext) {
    let Some(media) = context.activities.media.get_mut(&owner) else { return };
    let known = media.iter().position(|m| m.block == block && m.reply == reply);
    if let Some(at) = known {
        let media = media.remove(at);
        context.activities.kept -= media.kept();
        show(media, context);
    }
}

fn show(media: Media, context: &mut StreamContext) {
    let Some(data) = media.data else { return };
    let (content, cut_from) = match data.into_whole() {
        Ok(data) => (media_activity(data.typed(media.media_type), media.name.as_deref()), None),
        Err(length) => (unsendable_media(media.media_type, media.name.as_deref()), Some(length)),
    };
    let message_id = context.sequencer.next_message_id();
    let mut metadata = Object::new();
    if let Some(length) = cut_from {
        context.note("a medium that is longer than clients can take was left out");
        metadata.insert(TRUNCATED.to_owned(), truncate::marker(length));
    }
    context.sequencer.emit_with(media.owner, metadata, |subagent_run_id| Body::ActivitySnapshot {
        message_id,
        activity_type: MEDIA_ACTIVITY.to_owned(),
        content,
        replace: None,
        subagent_run_id,
    });
}

impl StreamContext {
    /// Shows the media of an owner whose blocks were never ended.
    pub(super) fn flush_media(&mut self, owner: Option<OwnerId>) {
        let media = &mut self.activities.media;
        let mut ended = match owner {
            Some(owner) => media.remove(&owner).unwrap_or_default(),
            None => std::mem::take(media).into_values().flatten().collect(),
        };
        ended.sort_by_key(|media| media.place);
        for media in ended {
            self.activities.kept -= media.kept();
            show(media, self);
        }
    }
}
