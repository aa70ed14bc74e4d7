//! Where an invocation stands: the level that is put on a child's events and taken off the answers
//! to its questions.

use std::sync::Arc;

use agui_adapter::{model::AgentEvent, resume::Decision};
use serde_json::Value;

/// How an agent names itself in the `source` paths of its children.
pub(super) const ROOT: &str = "main";

/// Metadata key of the invocation.
const TASK: &str = "taskId";

/// One invocation: the agent, and the call that delegated to it.
///
/// The child's own events get the source `main/<agent>` and the call's id as their `taskId`. What
/// stands below the child keeps its path and its `taskId` behind these, `main/<agent>/<deeper>` and
/// `<call>/<deeper>`: agents below two children may well use the same ids.
pub(super) struct Place {
    source: Arc<str>,
    task: String,
}

impl Place {
    pub(super) fn new(agent: &str, call: &str) -> Self {
        Self { source: format!("{ROOT}/{agent}").into(), task: call.to_owned() }
    }

    /// The child's event as the parent sends it on.
    pub(super) fn put(&self, mut event: AgentEvent) -> AgentEvent {
        let (source, task) = match event.source.take() {
            None => (Arc::clone(&self.source), self.task.clone()),
            Some(source) => {
                let deeper = source.split_once('/').map_or(&*source, |(_root, deeper)| deeper);
                let task = event.metadata.get(TASK).and_then(Value::as_str).unwrap_or_default();
                (format!("{}/{deeper}", self.source).into(), format!("{}/{task}", self.task))
            }
        };
        event.source = Some(source);
        event.metadata.insert(TASK.to_owned(), Value::String(task));
        event
    }

    /// The answer as the child gets it; `None` = the question was not asked in this invocation.
    pub(super) fn take_off(&self, decision: &Decision) -> Option<Decision> {
        let (source, task) = (decision.open.source.as_deref()?, decision.open.task.as_deref()?);
        let (source, task) = if (source, task) == (&*self.source, self.task.as_str()) {
            (None, None)
        } else {
            let deeper = source.strip_prefix(&*self.source)?.strip_prefix('/')?;
            let task = task.strip_prefix(&*self.task)?.strip_prefix('/')?;
            (Some(format!("{ROOT}/{deeper}")), (!task.is_empty()).then(|| task.to_owned()))
        };
        let mut decision = decision.clone();
        (decision.open.source, decision.open.task) = (source, task);
        Some(decision)
    }
}
