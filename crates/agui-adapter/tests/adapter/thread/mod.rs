//! What is kept of a run, and what a client is shown that comes to it later, against what a
//! client makes of the run's stream.

mod any;
mod at_rest;
mod client;
mod golden;
mod joined;
mod record;

use std::sync::Arc;

use agui_adapter::{
    model::{
        AgentEvent,
        wire::{DecodeOptions, decode},
    },
    options::{AdapterOptions, Peer},
    outbound::{Adapter, Extensions, RunEnd, RunSetup, StreamEnd},
};
use agui_protocol::{Event, Message, RunAgentInput};
use serde_json::{Value, json};

use crate::support;
use client::Client;

fn messages_json(messages: &[Message]) -> Vec<Value> {
    messages.iter().map(|message| json!(message)).collect()
}

fn read(line: &str) -> AgentEvent {
    decode(line, DecodeOptions { keep_raw: false }).expect(line)
}

/// A run that is played event by event.
struct Playing {
    adapter: Adapter,
    input: Arc<RunAgentInput>,
    events: Vec<Event>,
    end: Option<RunEnd>,
}

impl Playing {
    fn new(input: RunAgentInput, options: AdapterOptions) -> Self {
        Self::with(RunSetup::new(Arc::new(input), Peer::Current), options, Extensions::default())
    }

    fn with(setup: RunSetup, options: AdapterOptions, extensions: Extensions) -> Self {
        let input = Arc::clone(&setup.input);
        let adapter = support::adapter(setup, options, extensions);
        Self { adapter, input, events: Vec::new(), end: None }
    }

    /// Feeds one event; gives those that it brought about.
    fn feed(&mut self, event: &AgentEvent) -> &[Event] {
        let before = self.events.len();
        if self.end.is_none() {
            self.end = self.adapter.on_event(event, &mut self.events);
        }
        &self.events[before..]
    }

    fn finish(&mut self, end: StreamEnd) -> &[Event] {
        let before = self.events.len();
        if self.end.is_none() {
            self.end = Some(self.adapter.finish(end, &mut self.events));
        }
        &self.events[before..]
    }

    /// The thread as it is now.
    fn thread(&self) -> Vec<Message> {
        self.adapter.transcript().clone().onto(self.input.messages.clone())
    }

    /// What the client holds that began the run.
    fn client(&self) -> Client {
        let mut client = Client::new(&json!(self.input.messages), self.input.state.as_deref());
        client.apply_all(&self.events);
        client
    }
}
