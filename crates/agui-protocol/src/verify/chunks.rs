//! Chunk events: one open item per lane, a lane per owner (CHK-1 to CHK-8).

use serde_json::Value;

use super::{
    items::Family,
    sequence::{Run, Sequence, text},
};

/// The item that chunks of one owner go on with.
pub(super) struct Lane {
    owner: Option<String>,
    family: Family,
    id: String,
    /// Values that later chunks may only repeat (CHK-3).
    fixed: Vec<(&'static str, Option<String>)>,
}

/// Name of the id member, and the members that later chunks may only repeat.
fn members(family: Family) -> (&'static str, &'static [&'static str]) {
    match family {
        Family::Call => ("toolCallId", &["toolCallName", "parentMessageId"]),
        Family::Text => ("messageId", &["role", "name"]),
        Family::Reasoning | Family::Span => ("messageId", &[]),
    }
}

/// The event type's chunk family.
pub(super) fn family(kind: &str) -> Option<Family> {
    match kind {
        "TEXT_MESSAGE_CHUNK" => Some(Family::Text),
        "REASONING_MESSAGE_CHUNK" => Some(Family::Reasoning),
        "TOOL_CALL_CHUNK" => Some(Family::Call),
        _ => None,
    }
}

/// Which lanes an event closes (CHK-5).
enum Closes {
    Nothing,
    LaneOf,
    All,
}

fn closes(kind: &str) -> Closes {
    match kind {
        "RUN_STARTED" | "RUN_FINISHED" | "RUN_ERROR" | "MESSAGES_SNAPSHOT" => Closes::All,
        "RAW"
        | "ACTIVITY_SNAPSHOT"
        | "ACTIVITY_DELTA"
        | "REASONING_ENCRYPTED_VALUE"
        | "SUBAGENT_STARTED" => Closes::Nothing,
        _ => Closes::LaneOf,
    }
}

impl Run {
    /// Closes the lanes that an event which is no chunk closes.
    pub(super) fn close_lanes(&mut self, kind: &str, owner: Option<&str>) {
        match closes(kind) {
            Closes::Nothing => {}
            Closes::LaneOf => self.close_lane(owner),
            Closes::All => {
                for lane in std::mem::take(&mut self.lanes) {
                    self.items.end_by_chunk(lane.family, &lane.id);
                }
            }
        }
    }

    fn close_lane(&mut self, owner: Option<&str>) {
        let items = &mut self.items;
        self.lanes.retain(|lane| {
            let stays = lane.owner.as_deref() != owner;
            if !stays {
                items.end_by_chunk(lane.family, &lane.id);
            }
            stays
        });
    }

    /// The lane that a chunk goes on with, if there is exactly one.
    fn lane_of(&self, family: Family, id: Option<&str>, owner: Option<&str>) -> Vec<usize> {
        let fits = |lane: &Lane| {
            lane.family == family
                && id.is_none_or(|id| lane.id == id)
                && (owner.is_none() || lane.owner.as_deref() == owner)
        };
        (0..self.lanes.len()).filter(|index| self.lanes.get(*index).is_some_and(fits)).collect()
    }
}

impl Sequence<'_> {
    /// A chunk.
    pub(super) fn chunk(&mut self, event: &Value, family: Family) {
        if self.context.forbid_chunks {
            self.log.flag("CHK-9", "a chunk event");
        }
        let (id_member, _) = members(family);
        let (id, owner) = (text(event, id_member), text(event, "subagentRunId"));
        match (self.run.lane_of(family, id, owner).as_slice(), id) {
            ([lane], _) => self.go_on_with(*lane, event),
            ([], Some(id)) => self.open_lane(event, family, id, owner),
            ([], None) => {
                let rule = if self.run.chunked { "CHK-6" } else { "CHK-2" };
                self.log.flag(rule, format!("the first chunk of a {} has no id", family.name()));
            }
            (_, _) => self.log.flag("CHK-7", "a chunk that could belong to several owners"),
        }
        self.run.chunked = true;
    }

    fn go_on_with(&mut self, lane: usize, event: &Value) {
        let Some(lane) = self.run.lanes.get(lane) else { return };
        for (name, value) in &lane.fixed {
            let repeated = text(event, name);
            if repeated.is_some() && repeated != value.as_deref() {
                self.log.flag("CHK-3", format!("a later chunk of {} changes {name}", lane.id));
            }
        }
    }

    fn open_lane(&mut self, event: &Value, family: Family, id: &str, owner: Option<&str>) {
        self.run.close_lane(owner);
        if self.run.items.is_open(family, id) {
            let name = family.name();
            self.log.flag("CHK-1", format!("a chunk for {name} {id}, which is open explicitly"));
            return;
        }
        if family == Family::Call && text(event, "toolCallName").is_none() {
            self.log.flag("CHK-2", format!("the first chunk of tool call {id} has no name"));
            return;
        }
        let (_, names) = members(family);
        let fixed = names.iter().map(|name| {
            let default = (*name == "role").then_some("assistant");
            (*name, text(event, name).or(default).map(str::to_owned))
        });
        let fixed = fixed.collect();
        self.introduce(event, family, id, owner);
        self.run.items.start_by_chunk(family, id, owner);
        let (id, owner) = (id.to_owned(), owner.map(str::to_owned));
        self.run.lanes.push(Lane { owner, family, id, fixed });
    }
}
