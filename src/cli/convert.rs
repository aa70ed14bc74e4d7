//! `convert`: AgentEvent JSON lines on stdin -> AG-UI frames on stdout, without a server.

use std::{
    io::{self, BufRead},
    sync::Arc,
};

use agui_adapter::{
    model::wire::{DecodeOptions, decode},
    options::{AdapterOptions, Peer, SubagentEvents},
    outbound::{Adapter, AdapterParts, Extensions, RunSetup, StreamEnd},
};
use agui_protocol::{Event, RunAgentInput, sse};
use anyhow::Context;
use bytes::BytesMut;
use serde_json::json;

use super::{Failure, Reader, UNAVAILABLE, USAGE};
use crate::runs::Sources;

/// Exit code: the input is not what it should be.
const DATA: u8 = 65;

/// Arguments of `convert`.
#[derive(Debug, clap::Args)]
pub(super) struct ConvertArguments {
    /// Thread id of the run.
    #[arg(long, default_value = "thread-1")]
    thread_id: String,
    /// Run id of the run.
    #[arg(long, default_value = "run-1")]
    run_id: String,
    /// Write for a client older than AG-UI 1.0.
    #[arg(long)]
    legacy: bool,
    /// Show the model's thinking.
    #[arg(long)]
    enable_reasoning: bool,
    /// CUSTOM token_usage after each model call.
    #[arg(long)]
    emit_token_usage: bool,
    /// STEP_* around model calls and tool rounds.
    #[arg(long)]
    emit_step_events: bool,
    /// How events of sub-agents are written.
    #[arg(long, value_enum, default_value_t = Subagents::Auto)]
    subagent_events: Subagents,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Subagents {
    Auto,
    Attributed,
    Custom,
    Native,
}

pub(super) fn run(arguments: &ConvertArguments) -> Result<(), Failure> {
    let mut adapter = adapter(arguments)?;
    let mut events = Vec::new();
    let mut ended = false;
    for (index, line) in io::stdin().lock().lines().enumerate() {
        let line = line.context("standard input").map_err(|error| Failure::new(DATA, error))?;
        if line.trim().is_empty() || ended {
            continue;
        }
        let event = decode(&line, DecodeOptions { keep_raw: false })
            .with_context(|| format!("line {}", index + 1))
            .map_err(|error| Failure::new(DATA, error))?;
        ended = adapter.on_event(&event, &mut events).is_some();
        if let Reader::Gone = write(&mut events)? {
            return Ok(());
        }
    }
    if !ended {
        adapter.finish(StreamEnd::Completed, &mut events);
        write(&mut events)?;
    }
    Ok(())
}

fn adapter(arguments: &ConvertArguments) -> Result<Adapter, Failure> {
    let input = json!({
        "threadId": arguments.thread_id, "runId": arguments.run_id, "messages": [],
    });
    let input = RunAgentInput::from_value(input).map_err(|error| Failure::new(USAGE, error))?.input;
    let peer = if arguments.legacy { Peer::Legacy } else { Peer::Current };
    let options = AdapterOptions {
        enable_reasoning: arguments.enable_reasoning,
        emit_token_usage: arguments.emit_token_usage,
        emit_step_events: arguments.emit_step_events,
        subagent_events: match arguments.subagent_events {
            Subagents::Auto => SubagentEvents::Auto,
            Subagents::Attributed => SubagentEvents::Attributed,
            Subagents::Custom => SubagentEvents::Custom,
            Subagents::Native => SubagentEvents::Native,
        },
        ..AdapterOptions::default()
    };
    let sources = Sources::default();
    Ok(Adapter::new(AdapterParts {
        setup: RunSetup::new(Arc::new(input), peer),
        options: Arc::new(options),
        extensions: Arc::new(Extensions::default()),
        context: Arc::default(),
        ids: sources.ids(),
        clock: sources.clock(),
    }))
}

fn write(events: &mut Vec<Event>) -> Result<Reader, Failure> {
    let unavailable = |error| Failure::new(UNAVAILABLE, error);
    let mut frames = BytesMut::new();
    for event in events.drain(..) {
        sse::write_frame(&event, &mut frames)
            .context("an event cannot be written as JSON")
            .map_err(unavailable)?;
    }
    super::write_out(&frames).context("standard output").map_err(unavailable)
}
