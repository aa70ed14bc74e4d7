//! What the checker remembers of the thread: messages, tool calls, activities, shared state.
//!
//! Lasts over all runs of a stream; what is open in the current run is in [`super::items`].

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{Log, VerifyInput};

/// How the checker came to know a message or a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// From the input's history.
    Input,
    /// From a `MESSAGES_SNAPSHOT` of this stream.
    Snapshot,
    /// Streamed by events of its own.
    Stream,
    /// An assistant message that clients make up to carry a tool call.
    Carrier,
}

/// A message.
pub(super) struct Known {
    pub(super) role: String,
    pub(super) owner: Option<String>,
    pub(super) origin: Origin,
}

/// A tool call.
pub(super) struct Call {
    pub(super) name: String,
    pub(super) owner: Option<String>,
    pub(super) origin: Origin,
    pub(super) answered: bool,
}

/// An activity's content.
struct Activity {
    kind: String,
    content: Value,
    owner: Option<String>,
}

/// The thread as a client would hold it.
pub(super) struct Thread {
    pub(super) messages: HashMap<String, Known>,
    pub(super) calls: HashMap<String, Call>,
    activities: HashMap<String, Activity>,
    /// A `MESSAGES_SNAPSHOT` came.
    pub(super) is_restated: bool,
    /// `None` = unknown.
    state: Option<Value>,
}

fn string(value: &Value, name: &str) -> Option<String> {
    value.get(name)?.as_str().map(str::to_owned)
}

impl Thread {
    pub(super) fn new(context: &VerifyInput) -> Self {
        let mut thread = Self {
            messages: HashMap::new(),
            calls: HashMap::new(),
            activities: HashMap::new(),
            is_restated: false,
            state: context.state(),
        };
        for message in context.messages() {
            thread.remember(message, Origin::Input);
        }
        thread
    }

    fn remember(&mut self, message: &Value, origin: Origin) {
        let (Some(id), Some(role)) = (string(message, "id"), string(message, "role")) else {
            return;
        };
        let owner = string(message, "subagentRunId");
        for call in message.get("toolCalls").and_then(Value::as_array).into_iter().flatten() {
            let Some(call_id) = string(call, "id") else { continue };
            let name = string(&call["function"], "name").unwrap_or_default();
            let answered = self.calls.get(&call_id).is_some_and(|call| call.answered);
            self.calls.insert(call_id, Call { name, owner: owner.clone(), origin, answered });
        }
        if role == "tool"
            && let Some(call) = string(message, "toolCallId")
            && let Some(call) = self.calls.get_mut(&call)
        {
            call.answered = true;
        }
        if role == "activity" {
            self.activities.insert(
                id.clone(),
                Activity {
                    kind: string(message, "activityType").unwrap_or_default(),
                    content: message["content"].clone(),
                    owner: owner.clone(),
                },
            );
        }
        self.messages.insert(id, Known { role, owner, origin });
    }

    /// Adds the messages of an echoed input that are not known yet (IN-22).
    pub(super) fn echo(&mut self, messages: &Value) {
        for message in messages.as_array().into_iter().flatten() {
            let known = string(message, "id").is_some_and(|id| self.messages.contains_key(&id));
            if !known {
                self.remember(message, Origin::Input);
            }
        }
    }

    /// Takes over a `MESSAGES_SNAPSHOT` (SNAP-1 to SNAP-3).
    pub(super) fn snapshot(&mut self, messages: &[Value], context: &VerifyInput, log: &mut Log) {
        self.is_restated = true;
        let mut ids = HashSet::new();
        for message in messages {
            let (Some(id), Some(role)) = (string(message, "id"), string(message, "role")) else {
                continue;
            };
            if self.messages.get(&id).is_some_and(|known| known.role != role) {
                log.flag("TXT-5", format!("message {id} is restated with another role"));
            }
            if !ids.insert(id.clone()) {
                log.flag("TXT-5", format!("message {id} stands twice in the snapshot"));
            }
            // What was streamed before stays so: only what came by a snapshot is gone on with.
            let streamed = self.messages.get(&id).is_some_and(|m| m.origin == Origin::Stream);
            self.remember(message, if streamed { Origin::Stream } else { Origin::Snapshot });
        }
        for message in context.messages().iter().filter(|message| message["role"] == "user") {
            if let Some(id) = message["id"].as_str().filter(|id| !ids.contains(*id)) {
                log.flag("SNAP-2", format!("the input's user message {id} is not in the snapshot"));
            }
        }
    }

    /// A streamed message begins, or goes on after its end.
    pub(super) fn mint(
        &mut self,
        (role, id, owner): (&str, &str, Option<&str>),
        forbid_reopen: bool,
        log: &mut Log,
    ) {
        let fresh = Known {
            role: role.to_owned(),
            owner: owner.map(str::to_owned),
            origin: Origin::Stream,
        };
        let Some(known) = self.messages.get_mut(id) else {
            self.messages.insert(id.to_owned(), fresh);
            return;
        };
        if known.role != role {
            log.flag(
                "TXT-5",
                format!("{id} is already the id of a message of role {}", known.role),
            );
            return;
        }
        match known.origin {
            // A client that joins a run gets its open messages with the snapshot.
            Origin::Carrier | Origin::Snapshot => {}
            Origin::Input => {
                log.flag("LIFE-27", format!("message {id} of the input is streamed again"));
            }
            Origin::Stream if forbid_reopen => {
                log.flag("TXT-6", format!("message {id} is opened again"));
            }
            Origin::Stream => {}
        }
        if known.owner.as_deref() != owner {
            log.flag("SUB-6", format!("message {id} is opened again under another owner"));
        }
        *known = fresh;
    }

    /// A message that comes whole in one event: its id must be fresh.
    pub(super) fn mint_whole(
        &mut self,
        (role, id, owner): (&str, &str, Option<&str>),
        rule: &'static str,
        log: &mut Log,
    ) {
        if let Some(known) = self.messages.get(id) {
            let role = &known.role;
            return log.flag(rule, format!("{id} is already the id of a message of role {role}"));
        }
        let known = Known {
            role: role.to_owned(),
            owner: owner.map(str::to_owned),
            origin: Origin::Stream,
        };
        self.messages.insert(id.to_owned(), known);
    }

    /// The assistant message that carries a new call (TOOL-4, TOOL-5, SUB-7).
    pub(super) fn carry(
        &mut self,
        call: &str,
        parent: Option<&str>,
        owner: Option<&str>,
        log: &mut Log,
    ) {
        let id = parent.unwrap_or(call);
        match self.messages.get(id) {
            Some(known) if known.role != "assistant" => {
                let (rule, role) = (if parent.is_some() { "TOOL-5" } else { "TXT-5" }, &known.role);
                log.flag(rule, format!("call {call} hangs on a message of role {role}"));
            }
            Some(known) if known.owner.as_deref() != owner => {
                log.flag("SUB-7", format!("call {call} hangs on a message of another owner"));
            }
            Some(_) => {}
            None => {
                let owner = owner.map(str::to_owned);
                let role = "assistant".to_owned();
                self.messages.insert(id.to_owned(), Known { role, owner, origin: Origin::Carrier });
            }
        }
    }

    pub(super) fn state_snapshot(&mut self, state: &Value) {
        self.state = Some(state.clone());
    }

    pub(super) fn state_delta(&mut self, patch: &Value, log: &mut Log) {
        let Some(state) = &mut self.state else { return };
        if !state.is_object() && !state.is_array() {
            log.flag("STATE-7", "a delta of a state that is neither object nor list");
        }
        if let Err(error) = apply(state, patch) {
            log.flag("STATE-4", format!("the delta does not apply: {error}"));
        }
    }

    pub(super) fn activity_snapshot(
        &mut self,
        id: &str,
        owner: Option<&str>,
        event: &Value,
        log: &mut Log,
    ) {
        let replace = event.get("replace").and_then(Value::as_bool).unwrap_or(true);
        match self.activities.get(id) {
            None => self.mint_whole(("activity", id, owner), "ACT-6", log),
            Some(known) if !replace => {
                if owner.is_some() && known.owner.as_deref() != owner {
                    log.flag("ACT-7", format!("activity {id} belongs to another owner"));
                }
                return;
            }
            Some(_) => {}
        }
        let activity = Activity {
            kind: string(event, "activityType").unwrap_or_default(),
            content: event["content"].clone(),
            owner: owner.map(str::to_owned),
        };
        self.activities.insert(id.to_owned(), activity);
    }

    pub(super) fn activity_delta(
        &mut self,
        id: &str,
        owner: Option<&str>,
        event: &Value,
        log: &mut Log,
    ) {
        let Some(known) = self.activities.get_mut(id) else {
            return log.flag("ACT-2", format!("a delta of activity {id}, which has no snapshot"));
        };
        if owner.is_some() && known.owner.as_deref() != owner {
            log.flag("ACT-7", format!("activity {id} belongs to another owner"));
        }
        if event["activityType"] != known.kind.as_str() {
            log.flag("ACT-3", format!("the delta changes the type of activity {id}"));
        }
        if let Err(error) = apply(&mut known.content, &event["patch"]) {
            log.flag("STATE-4", format!("the patch of activity {id} does not apply: {error}"));
        }
        if !known.content.is_object() {
            log.flag("ACT-4", format!("the content of activity {id} is no object any more"));
        }
    }
}

/// Applies a patch, or leaves the document as it was. What is no patch at all is the schema's
/// finding, not one of its own.
fn apply(document: &mut Value, patch: &Value) -> Result<(), String> {
    let Ok(patch) = serde_json::from_value::<json_patch::Patch>(patch.clone()) else {
        return Ok(());
    };
    json_patch::patch(document, &patch).map_err(|error| error.to_string())
}
