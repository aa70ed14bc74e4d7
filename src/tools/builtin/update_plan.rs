//! What the agent is going to do, shown to the person.

use agui_adapter::model::event::{ActivityChange, Object, StateChange};
use serde_json::{Value, json};

use super::{result, said, spec};
use crate::{
    config::react::Builtin,
    tools::{Tool, ToolCall, ToolEvent, ToolSpec, ToolStream},
};

/// Id of the activity: a thread has one plan, which changes.
const ACTIVITY_ID: &str = "plan";
/// Type of the activity.
const ACTIVITY_TYPE: &str = "PLAN";

/// Shows a plan: as an activity and under `/plan` of the state, because clients render either.
/// Counts as read-only, since it changes nothing but what is shown.
pub(super) struct UpdatePlan {
    spec: ToolSpec,
}

impl Default for UpdatePlan {
    fn default() -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {
                "steps": {
                    "type": "array",
                    "description": "All steps, those that are done included.",
                    "items": {
                        "type": "object",
                        "properties": {
                            "description": {"type": "string"},
                            "status": {
                                "type": "string",
                                "enum": ["pending", "in_progress", "completed"],
                            },
                        },
                        "required": ["description", "status"],
                    },
                },
            },
            "required": ["steps"],
        });
        let description = "Shows the user the plan of a longer task and how far it is. Call it with \
                           the whole plan whenever a step begins or is completed.";
        Self { spec: spec(Builtin::UpdatePlan, description, parameters, true) }
    }
}

impl Tool for UpdatePlan {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, call: ToolCall) -> ToolStream {
        let steps = call.arguments.get("steps").and_then(Value::as_array);
        let steps: Vec<Value> = steps.into_iter().flatten().map(step).collect();
        let completed = steps.iter().filter(|step| step["status"] == "completed").count();
        let told = format!("The plan is shown: {completed} of {} steps completed.", steps.len());
        let mut plan = Object::new();
        plan.insert("steps".to_owned(), Value::Array(steps));
        let state = state_change(&call.state, &plan);
        let activity = ToolEvent::Activity {
            id: ACTIVITY_ID.to_owned(),
            activity_type: ACTIVITY_TYPE.to_owned(),
            change: ActivityChange::Content(plan),
        };
        let mut events = vec![activity];
        events.extend(state.map(ToolEvent::State));
        events.push(result(Ok(told)));
        said(events)
    }
}

/// A step with the members that clients know.
fn step(step: &Value) -> Value {
    let text = |key: &str| step.get(key).and_then(Value::as_str).unwrap_or_default();
    json!({"description": text("description"), "status": text("status")})
}

/// The plan in the state; a state that is a list or a scalar has no place for it.
fn state_change(state: &Value, plan: &Object) -> Option<StateChange> {
    match state {
        Value::Object(_) => {
            Some(StateChange::Patch(json!([{"op": "add", "path": "/plan", "value": plan}])))
        }
        Value::Null => Some(StateChange::Set(json!({"plan": plan}))),
        _ => None,
    }
}
