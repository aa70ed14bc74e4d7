//! The last stage for peers older than 1.0: takes from the stream what they fail on.
//!
//! A pure transformation (VER-8): nothing is invented and nothing reordered, with one exception.
//! Such peers know no cancelled run, and a success would be a lie, so it becomes RUN_ERROR
//! `CANCELLED` (VER-14). Whatever loses something is logged once a run.

use agui_protocol::{
    Body, Content, ContentPart, Event, Message, PartSource, RunId, RunOutcome, ThreadId,
};

use crate::{
    names::CANCELLED,
    options::{AdapterOptions, SubagentEvents},
};

/// The stage for one run of a peer older than 1.0.
#[derive(Debug)]
pub struct Downgrade {
    thread_id: ThreadId,
    run_id: RunId,
    /// `subagent-events: attributed`, which holds for every peer.
    keeps_subagents: bool,
    warned: Vec<Loss>,
}

/// What a peer older than 1.0 is not told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    CancelledOutcome,
    ResultParts,
    FileParts,
    DeltaMetadata,
    SubagentEvents,
    SubagentEventsKept,
}

impl Loss {
    fn describe(self) -> (&'static str, &'static str) {
        match self {
            Self::CancelledOutcome => {
                ("RUN_FINISHED outcome cancelled", "it was sent as RUN_ERROR CANCELLED")
            }
            Self::ResultParts => ("media parts of tool results", "only their text was sent"),
            Self::FileParts => ("content parts with a file source", "they were left out"),
            Self::DeltaMetadata => ("metadata of an empty delta", "the event was left out"),
            Self::SubagentEvents => ("SUBAGENT_* events", "they were left out"),
            Self::SubagentEventsKept => (
                "SUBAGENT_* events",
                "subagent-events is attributed, so they were sent, and older clients fail on them",
            ),
        }
    }
}

impl Downgrade {
    /// The stage for one run; the ids are for the log.
    pub fn new(options: &AdapterOptions, thread_id: ThreadId, run_id: RunId) -> Self {
        let keeps_subagents = options.subagent_events == SubagentEvents::Attributed;
        Self { thread_id, run_id, keeps_subagents, warned: Vec::new() }
    }

    /// The event as such a peer understands it; `None` = not at all. `now_ms` is the time of a
    /// RUN_ERROR that had none.
    pub fn apply(&mut self, mut event: Event, now_ms: i64) -> Option<Event> {
        match &mut event.body {
            Body::RunFinished { outcome, .. } => match outcome {
                Some(RunOutcome::Cancelled) => return Some(self.cancelled(event, now_ms)),
                Some(RunOutcome::Success { .. }) => *outcome = None,
                Some(RunOutcome::Interrupt { .. }) | None => {}
            },
            Body::ToolCallResult { content, .. } => self.flatten(content),
            Body::MessagesSnapshot { messages } => self.messages(messages),
            Body::RunStarted { input: Some(input), .. } => self.messages(&mut input.messages),
            body if body.delta().is_some_and(str::is_empty) => {
                if event.metadata.is_some() {
                    self.lost(Loss::DeltaMetadata);
                }
                return None;
            }
            Body::SubagentStarted { .. }
            | Body::SubagentFinished { .. }
            | Body::SubagentError { .. } => {
                if !self.keeps_subagents {
                    self.lost(Loss::SubagentEvents);
                    return None;
                }
                self.lost(Loss::SubagentEventsKept);
            }
            _ => {}
        }
        Some(event)
    }

    fn cancelled(&mut self, mut event: Event, now_ms: i64) -> Event {
        self.lost(Loss::CancelledOutcome);
        let usage = match &mut event.body {
            Body::RunFinished { usage, .. } => std::mem::take(usage),
            _ => Vec::new(),
        };
        let message = "The run was cancelled.".to_owned();
        event.body = Body::RunError { message, code: Some(CANCELLED.to_owned()), usage };
        event.timestamp.get_or_insert(now_ms);
        event
    }

    fn messages(&mut self, messages: &mut [Message]) {
        for message in messages {
            match message {
                Message::Tool { content, .. } => self.flatten(content),
                Message::User { content: Content::Parts(parts), .. } => self.drop_files(parts),
                _ => {}
            }
        }
    }

    fn flatten(&mut self, content: &mut Content) {
        let Content::Parts(parts) = content else { return };
        if parts.iter().any(|part| part.media().is_some()) {
            self.lost(Loss::ResultParts);
        }
        *content = Content::Text(content.text_content());
    }

    fn drop_files(&mut self, parts: &mut Vec<ContentPart>) {
        let count = parts.len();
        let is_file = |part: &ContentPart| {
            part.media().is_some_and(|media| matches!(media.source, PartSource::File { .. }))
        };
        parts.retain(|part| !is_file(part));
        if parts.len() != count {
            self.lost(Loss::FileParts);
        }
    }

    fn lost(&mut self, loss: Loss) {
        if self.warned.contains(&loss) {
            return;
        }
        self.warned.push(loss);
        let (lost, how) = loss.describe();
        tracing::warn!(
            thread.id = self.thread_id.as_str(),
            run.id = self.run_id.as_str(),
            lost,
            how,
            "the client declares no protocolVersion and cannot be told everything; upgrade it to \
             an AG-UI 1.0 client (@ag-ui/client 1.0.0 or later)"
        );
    }
}

#[cfg(test)]
mod tests;
