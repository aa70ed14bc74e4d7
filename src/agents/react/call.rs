//! One call of a tool of the server: bounded in time, and no panic leaves it.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use agui_adapter::model::{
    AgentEvent, Block,
    event::{Object, ResultState},
};
use futures_util::{Stream, StreamExt};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::subagent::ChildItem;
use crate::{
    agents::AgentError,
    tools::{Tool, ToolCall, ToolEnd, ToolEvent},
};

/// What comes of a call, its end last.
pub(super) type Steps = Pin<Box<dyn Stream<Item = Step> + Send>>;

/// What comes of a call.
pub(super) enum Step {
    /// A tool says something that is not its end.
    Tool(ToolEvent),
    /// A sub-agent says something.
    Child(AgentEvent),
    /// A sub-agent wants to know this in later runs.
    ChildKeeps(Arc<Value>),
    /// The call has its result.
    Done(Outcome),
    /// The tool asks the person.
    Asks { message: String, schema: Option<Object>, parked: Option<Value> },
    /// Something that a sub-agent asked waits.
    Waits { parked: Value },
    /// The run fails.
    Failed(AgentError),
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    pub(super) output: Vec<Block>,
    pub(super) state: ResultState,
}

impl Outcome {
    pub(super) fn text(text: impl Into<String>, state: ResultState) -> Self {
        Self { output: vec![Block::Text { text: text.into() }], state }
    }

    pub(super) fn error(text: impl Into<String>) -> Self {
        Self::text(text, ResultState::Error)
    }
}

/// Runs a tool for `limit` at most.
pub(super) fn steps(tool: Arc<dyn Tool>, call: ToolCall, limit: Option<Duration>) -> Steps {
    let name = tool.spec().name.clone();
    Box::pin(async_stream::stream! {
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        let Ok(events) = catch_unwind(AssertUnwindSafe(|| tool.call(call))) else {
            yield Step::Done(died(&name));
            return;
        };
        let mut events = AssertUnwindSafe(events).catch_unwind();
        loop {
            let next = match deadline {
                None => events.next().await,
                Some(deadline) => match timeout_at(deadline, events.next()).await {
                    Ok(next) => next,
                    Err(_elapsed) => {
                        yield Step::Done(Outcome::error("The tool timed out."));
                        return;
                    }
                },
            };
            match next {
                Some(Ok(ToolEvent::End(end))) => {
                    yield ended(end);
                    return;
                }
                Some(Ok(event)) => yield Step::Tool(event),
                Some(Err(_panic)) => {
                    yield Step::Done(died(&name));
                    return;
                }
                None => {
                    tracing::error!(tool = name, "a tool ended without a result");
                    yield Step::Done(Outcome::error(FAILED));
                    return;
                }
            }
        }
    })
}

/// What the model reads of a tool that broke.
const FAILED: &str = "The tool failed.";

fn died(tool: &str) -> Outcome {
    tracing::error!(tool, "a tool panicked");
    Outcome::error(FAILED)
}

/// What a sub-agent says, as a step of its call.
pub(super) fn child_step(item: ChildItem) -> Step {
    match item {
        ChildItem::Event(event) => Step::Child(*event),
        ChildItem::Kept(state) => Step::ChildKeeps(state),
        ChildItem::Done { output, state } => Step::Done(Outcome { output, state }),
        ChildItem::Waits { parked } => Step::Waits { parked },
        ChildItem::Failed(error) => Step::Failed(error),
    }
}

fn ended(end: ToolEnd) -> Step {
    match end {
        ToolEnd::Result { output, state } => {
            // Only calls that somebody else runs are suspended.
            let state = if state == ResultState::Running { ResultState::Error } else { state };
            Step::Done(Outcome { output, state })
        }
        ToolEnd::Asks { message, schema, parked } => Step::Asks { message, schema, parked },
    }
}
