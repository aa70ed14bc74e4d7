//! The thread's shared state: what the agent has, what the client has, and the way from one to
//! the other.

use std::sync::Arc;

use agui_protocol::{Body, PatchOperation};
use serde_json::Value;

use super::{RunSetup, context::StreamContext};
use crate::{
    model::{AgentEvent, event::StateChange},
    sequencer::OwnerId,
    truncate,
};

/// Both ends' state.
pub(super) struct SharedState {
    agent: Arc<Value>,
    client: Arc<Value>,
    /// The client is known to have `client`: it sent it, or a snapshot was sent.
    certain: bool,
    changed: bool,
    /// State of the thread that the client has to be told first.
    restore: bool,
}

impl SharedState {
    pub(super) fn new(setup: &RunSetup) -> Self {
        let sent = setup.input.state.clone();
        let certain = sent.is_some();
        // What the client sends is the state, whatever the server remembers (STATE-9).
        let stored = setup.stored_state.clone().filter(|_| !certain);
        let client = sent.unwrap_or_else(|| Arc::new(Value::Object(serde_json::Map::new())));
        let restore = stored.is_some();
        let agent = stored.unwrap_or_else(|| Arc::clone(&client));
        Self { restore, agent, client, certain, changed: false }
    }

    /// The state as the agent has it.
    pub(super) fn current(&self) -> &Arc<Value> {
        &self.agent
    }

    /// The state that the stream's clients have; `None` = nothing is known of it. Later changes
    /// are told against it.
    pub(super) fn shown(&self) -> Option<&Arc<Value>> {
        self.certain.then_some(&self.client)
    }

    /// The agent's state, if it changed in this run.
    pub(super) fn final_state(&self) -> Option<Arc<Value>> {
        self.changed.then(|| Arc::clone(&self.agent))
    }

    /// What takes the client to the agent's state; `None` = it is there (STATE-2 to STATE-7).
    fn update(&self) -> Option<StateUpdate> {
        if self.certain && self.agent == self.client {
            return None;
        }
        let delta = (self.certain && same_container(&self.client, &self.agent))
            .then(|| diff(&self.client, &self.agent))
            .flatten()
            .filter(|delta| truncate::exact(delta) <= truncate::exact(&*self.agent));
        Some(
            delta.map_or_else(
                || StateUpdate::Snapshot(Value::clone(&self.agent)),
                StateUpdate::Delta,
            ),
        )
    }

    /// The client was taken to the agent's state.
    fn told(&mut self) {
        self.client = Arc::clone(&self.agent);
        self.certain = true;
    }
}

enum StateUpdate {
    Snapshot(Value),
    Delta(Vec<PatchOperation>),
}

fn same_container(a: &Value, b: &Value) -> bool {
    (a.is_object() && b.is_object()) || (a.is_array() && b.is_array())
}

fn diff(from: &Value, to: &Value) -> Option<Vec<PatchOperation>> {
    let patch = serde_json::to_value(json_patch::diff(from, to)).ok()?;
    serde_json::from_value(patch).ok()
}

pub(super) fn convert(event: &AgentEvent, change: &StateChange, context: &mut StreamContext) {
    if let Err(error) = change.apply(&mut context.state.agent) {
        context.note(error.as_str());
        return;
    }
    context.state.changed = true;
    if context.options.emit_state_events
        && let Some(update) = context.state.update()
    {
        let owner = context.owner_of(event);
        send(owner, update, context);
    }
}

/// A change that is too long for a frame would be left out later, so it counts as not sent: the
/// client still has what it had.
fn send(owner: OwnerId, update: StateUpdate, context: &mut StreamContext) {
    let subagent_run_id = context.sequencer.tag(owner);
    let body = match update {
        StateUpdate::Snapshot(snapshot) => Body::StateSnapshot { snapshot, subagent_run_id },
        StateUpdate::Delta(delta) => Body::StateDelta { delta, subagent_run_id },
    };
    if truncate::leaves(&body) {
        context.state.told();
        context.sequencer.emit(owner, |_| body);
    } else {
        context.note("a change of the state that is longer than clients can take was left out");
    }
}

impl StreamContext {
    /// Sends RUN_STARTED and what the client lacks of earlier runs: a state that the server kept,
    /// results of settled calls.
    pub(super) fn start_run(&mut self) {
        self.sequencer.start_run();
        if std::mem::take(&mut self.state.restore)
            && self.options.emit_state_events
            && let Some(update) = self.state.update()
        {
            send(OwnerId::ROOT, update, self);
        }
        self.send_again();
    }
}
