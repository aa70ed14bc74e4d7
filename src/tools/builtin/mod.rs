//! The server's own tools.

mod ask_user;
mod calculate;
mod get_current_time;
mod update_plan;
mod update_state;

use std::sync::Arc;

use agui_adapter::model::event::ResultState;
use futures_util::stream;
use serde_json::Value;

use super::{Tool, ToolEnd, ToolEvent, ToolSpec, ToolStream};
use crate::config::react::Builtin;

/// One of the server's own tools.
pub fn builtin(kind: Builtin) -> Arc<dyn Tool> {
    match kind {
        Builtin::GetCurrentTime => Arc::new(get_current_time::GetCurrentTime::default()),
        Builtin::Calculate => Arc::new(calculate::Calculate::default()),
        Builtin::UpdateState => Arc::new(update_state::UpdateState::default()),
        Builtin::UpdatePlan => Arc::new(update_plan::UpdatePlan::default()),
        Builtin::AskUser => Arc::new(ask_user::AskUser::default()),
    }
}

fn spec(kind: Builtin, description: &str, parameters: Value, read_only: bool) -> ToolSpec {
    ToolSpec {
        name: kind.name().to_owned(),
        description: description.to_owned(),
        parameters: Arc::new(parameters),
        read_only,
        destructive: false,
    }
}

/// All that a tool says that is done at once.
fn said(events: Vec<ToolEvent>) -> ToolStream {
    Box::pin(stream::iter(events))
}

/// A result alone; an error is a result too.
fn result(result: Result<String, String>) -> ToolEvent {
    ToolEvent::End(match result {
        Ok(text) => ToolEnd::text(text, ResultState::Success),
        Err(text) => ToolEnd::text(text, ResultState::Error),
    })
}

#[cfg(test)]
mod tests;
