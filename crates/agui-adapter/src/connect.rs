//! stub
#![allow(missing_docs)]
use crate::{
    model::event::Object,
    options::{AdapterOptions, Peer},
    transcript::OpenItems,
    view::View,
};
use agui_protocol::*;
use serde_json::Value;
use std::sync::Arc;
pub struct Snapshot {
    pub messages: Vec<Message>,
    pub state: Option<Arc<Value>>,
}
pub struct Ending {
    pub outcome: RunOutcome,
    pub metadata: Object,
}
pub struct Connect {
    input: RunAgentInput,
    peer: Peer,
    options: AdapterOptions,
    metadata: Object,
}
impl Connect {
    pub fn new(
        input: &RunAgentInput,
        peer: Peer,
        options: &AdapterOptions,
        metadata: Object,
    ) -> Self {
        Self { input: input.clone(), peer, options: options.clone(), metadata }
    }
    fn view(&self) -> View {
        View::joining(
            self.peer,
            &self.options,
            self.input.thread_id.clone(),
            self.input.run_id.clone(),
        )
    }
    fn head(&self, s: Snapshot) -> Vec<Event> {
        let mut e = Event::new(Body::RunStarted {
            thread_id: self.input.thread_id.clone(),
            run_id: self.input.run_id.clone(),
            protocol_version: Some(PROTOCOL_VERSION.into()),
            parent_run_id: None,
            input: None,
        });
        if !self.metadata.is_empty() {
            e.metadata = Some(Box::new(self.metadata.clone()).as_ref().clone().into());
        }
        let mut v = vec![e];
        if !s.messages.is_empty() {
            v.push(Event::new(Body::MessagesSnapshot { messages: s.messages }));
        }
        if let Some(state) = s.state {
            v.push(Event::new(Body::StateSnapshot {
                snapshot: (*state).clone(),
                subagent_run_id: None,
            }));
        }
        v
    }
    pub fn at_rest(self, s: Snapshot, e: Ending, now_ms: i64) -> Vec<Event> {
        let mut v = self.head(s);
        v.push(Event::new(Body::RunFinished {
            thread_id: self.input.thread_id.clone(),
            run_id: self.input.run_id.clone(),
            outcome: Some(e.outcome),
            result: None,
            usage: vec![],
        }));
        let mut out = Vec::new();
        self.view().show(v, now_ms, &mut out);
        out
    }
    pub fn joining(
        self,
        _joined: &RunId,
        s: Snapshot,
        open: &OpenItems,
        now_ms: i64,
    ) -> (Vec<Event>, View) {
        let mut v = self.head(s);
        v.extend_from_slice(open.starts());
        let mut view = self.view();
        let mut out = Vec::new();
        view.show(v, now_ms, &mut out);
        (out, view)
    }
}
pub fn pending_calls(m: &[Message]) -> Vec<ToolCallId> {
    let mut made = Vec::new();
    for x in m {
        match x {
            Message::Assistant { tool_calls, .. } => {
                made.extend(tool_calls.iter().map(|c| c.id.clone()))
            }
            Message::Tool { tool_call_id, .. } => made.retain(|c| c != tool_call_id),
            _ => {}
        }
    }
    made
}
