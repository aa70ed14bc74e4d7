//! The last stage, one for each client that reads a stream: its peer's downgrade, and, for a
//! client that joined a run under way, the boundary events of its own request.

use std::collections::HashSet;

use agui_protocol::{Body, Event, RunId, SubagentRunId, ThreadId};

use crate::{
    downgrade::Downgrade,
    options::{AdapterOptions, Peer},
};

/// What one client is shown of a stream. The default shows everything as it is.
#[derive(Debug, Default)]
pub struct View {
    /// Only for peers that need it.
    downgrade: Option<Downgrade>,
    joined: Option<Joined>,
}

/// A client that did not begin the run.
#[derive(Debug)]
struct Joined {
    thread_id: ThreadId,
    run_id: RunId,
    /// Its own RUN_STARTED was sent; a later one is that of the run it joined.
    begun: bool,
    /// The sub-agents that this client saw begin.
    subagents: HashSet<SubagentRunId>,
}

impl View {
    /// Of the client that began the run; the ids are for the log.
    pub fn new(peer: Peer, options: &AdapterOptions, thread_id: ThreadId, run_id: RunId) -> Self {
        let downgrade = (peer == Peer::Legacy).then(|| Downgrade::new(options, thread_id, run_id));
        Self { downgrade, joined: None }
    }

    /// Of a client that joins a run under way with a request of its own, whose ids these are. What
    /// it is sent begins with its own RUN_STARTED; the run's is left out, and the end has its ids.
    pub fn joining(
        peer: Peer,
        options: &AdapterOptions,
        thread_id: ThreadId,
        run_id: RunId,
    ) -> Self {
        let joined = Joined {
            thread_id: thread_id.clone(),
            run_id: run_id.clone(),
            begun: false,
            subagents: HashSet::new(),
        };
        Self { joined: Some(joined), ..Self::new(peer, options, thread_id, run_id) }
    }

    /// Whether the client is shown every event as it is.
    pub fn shows_all(&self) -> bool {
        self.downgrade.is_none() && self.joined.is_none()
    }

    /// Appends to `out` what the client is shown of `events`. `now_ms` is the time of a RUN_ERROR
    /// that is made of another event.
    pub fn show(
        &mut self,
        events: impl IntoIterator<Item = Event>,
        now_ms: i64,
        out: &mut Vec<Event>,
    ) {
        let Self { downgrade, joined } = self;
        if downgrade.is_none() && joined.is_none() {
            return out.extend(events);
        }
        let events = events.into_iter();
        let events = events.filter_map(|event| match joined {
            Some(joined) => joined.apply(event),
            None => Some(event),
        });
        match downgrade {
            None => out.extend(events),
            Some(downgrade) => {
                out.extend(events.filter_map(|event| downgrade.apply(event, now_ms)));
            }
        }
    }
}

impl Joined {
    fn apply(&mut self, mut event: Event) -> Option<Event> {
        match &mut event.body {
            Body::RunStarted { .. } if std::mem::replace(&mut self.begun, true) => return None,
            Body::RunFinished { thread_id, run_id, .. } => {
                thread_id.clone_from(&self.thread_id);
                run_id.clone_from(&self.run_id);
            }
            Body::SubagentStarted { subagent_run_id, parent_subagent_run_id, .. } => {
                // One that ended before this client came is not known to it (G8).
                if parent_subagent_run_id.as_ref().is_some_and(|id| !self.subagents.contains(id)) {
                    *parent_subagent_run_id = None;
                }
                self.subagents.insert(subagent_run_id.clone());
            }
            _ => {}
        }
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn shown(view: &mut View, events: Value) -> Value {
        let events: Vec<Event> = serde_json::from_value(events).unwrap();
        let mut out = Vec::new();
        view.show(events, 5, &mut out);
        json!(out)
    }

    fn boundary(kind: &str, run: &str) -> Value {
        json!({"type": kind, "threadId": "t1", "runId": run})
    }

    #[test]
    fn who_joins_gets_the_boundaries_of_its_own_request() {
        let options = AdapterOptions::default();
        let mut view = View::joining(Peer::Current, &options, "t1".into(), "r1".into());
        // Its request has the id of the run that it joins.
        let head = json!([boundary("RUN_STARTED", "r1")]);
        assert_eq!(shown(&mut view, head.clone()), head);
        let end = json!([boundary("RUN_STARTED", "r1"), boundary("RUN_FINISHED", "r2")]);
        assert_eq!(shown(&mut view, end), json!([boundary("RUN_FINISHED", "r1")]));
    }

    #[test]
    fn a_sub_agent_whose_parent_ended_before_has_none() {
        let options = AdapterOptions::default();
        let mut view = View::joining(Peer::Current, &options, "t1".into(), "r1".into());
        let start = |id: &str, parent: Option<&str>| {
            let mut event = json!({"type": "SUBAGENT_STARTED", "subagentRunId": id, "name": "n"});
            if let Some(parent) = parent {
                event["parentSubagentRunId"] = parent.into();
            }
            event
        };
        let events = json!([start("s2", Some("s1")), start("s3", Some("s2"))]);
        let expected = json!([start("s2", None), start("s3", Some("s2"))]);
        assert_eq!(shown(&mut view, events.clone()), expected);
        assert_eq!(shown(&mut View::default(), events.clone()), events);
    }

    #[test]
    fn an_old_peer_gets_the_downgraded_stream() {
        let options = AdapterOptions::default();
        let mut view = View::joining(Peer::Legacy, &options, "t1".into(), "r1".into());
        let mut end = boundary("RUN_FINISHED", "r2");
        end["outcome"] = json!({"type": "success"});
        let events = json!([boundary("RUN_STARTED", "r1"), end]);
        let expected = json!([boundary("RUN_STARTED", "r1"), boundary("RUN_FINISHED", "r1")]);
        assert_eq!(shown(&mut view, events), expected);
    }
}
