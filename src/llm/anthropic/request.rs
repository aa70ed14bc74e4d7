//! A request as the messages API takes it.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{
    super::{
        FunctionSpec, ModelRequest, ToolChoice,
        body::{merge, note_left_out},
        names,
        turns::{Conversation, Part, Side},
    },
    Anthropic, WIRE,
    messages::{Messages, is_thinking, told},
};

/// Room for an answer, where the parameters say nothing: the most that every model takes.
const MAX_TOKENS: u64 = 4096;
/// Room on top of it for thinking whose budget the model chooses itself.
const ADAPTIVE_THINKING: u64 = 16_384;

impl Anthropic {
    /// The body.
    pub(super) fn body(&self, request: &ModelRequest) -> Map<String, Value> {
        let conversation = Conversation::of(&request.messages, WIRE);
        let withheld = self.thinking() == Some("enabled") && lacks_thinking(&conversation);
        if withheld {
            tracing::warn!(
                request.id = %request.request_id,
                model = self.model,
                "thinking is off in this request: the turn in progress lacks what it began with",
            );
        }
        // Without thinking the API takes none in the turn in progress.
        let unthought = withheld || self.thinking() == Some("disabled");

        let mut body = Map::new();
        body.insert("model".to_owned(), json!(self.model));
        body.insert("max_tokens".to_owned(), json!(self.max_tokens()));
        body.insert("stream".to_owned(), json!(true));
        let system = conversation.system(&request.system);
        if !system.is_empty() {
            body.insert("system".to_owned(), json!(system));
        }
        let (messages, left_out) = Messages::new(self.vision).of(&conversation, unthought);
        note_left_out(left_out, &self.model, request);
        body.insert("messages".to_owned(), Value::Array(messages));
        let tools = tools(request, &conversation);
        if !tools.is_empty() {
            body.insert("tools".to_owned(), Value::Array(tools));
        }
        merge(&mut body, &self.parameters);
        if withheld {
            body.remove("thinking");
        }
        // Over the parameters, which do not know the call at hand.
        let past = request.tools.is_empty() && !self.parameters.contains_key("tools");
        if (request.tool_choice == ToolChoice::None || past) && body.contains_key("tools") {
            body.insert("tool_choice".to_owned(), json!({"type": "none"}));
        }
        body
    }

    fn thinking(&self) -> Option<&str> {
        self.parameters.get("thinking")?.get("type")?.as_str()
    }

    /// Must be larger than the budget of thinking, which is a part of it.
    fn max_tokens(&self) -> u64 {
        let budget = self.parameters.get("thinking").and_then(|it| it.get("budget_tokens"));
        match self.thinking() {
            Some("enabled") => {
                MAX_TOKENS.saturating_add(budget.and_then(Value::as_u64).unwrap_or_default())
            }
            Some("adaptive") => MAX_TOKENS + ADAPTIVE_THINKING,
            _ => MAX_TOKENS,
        }
    }
}

/// Whether the turn in progress began without signed thinking: another provider's, or one whose
/// thinking was lost on its way through a client. With thinking by budget the API refuses such a
/// turn; later answers of it may well have none.
fn lacks_thinking(conversation: &Conversation<'_>) -> bool {
    let mut in_progress = conversation.turns.iter().skip(conversation.in_progress());
    let first = in_progress.find(|turn| turn.side == Side::Model);
    first.is_some_and(|turn| !told(turn).first().is_some_and(|part| is_thinking(part)))
}

/// The tools. The API takes no calls in a conversation without tools, so where there are none any
/// more, those that were called stand for themselves.
fn tools(request: &ModelRequest, conversation: &Conversation<'_>) -> Vec<Value> {
    if !request.tools.is_empty() {
        return request.tools.iter().map(tool_spec).collect();
    }
    let parts = conversation.turns.iter().flat_map(|turn| &turn.parts);
    let called: BTreeSet<&str> = parts
        .filter_map(|part| match part {
            Part::Call { call, .. } => Some(call.name.as_str()),
            _ => None,
        })
        .collect();
    let past = |name| json!({"name": names::encode(name), "input_schema": {"type": "object"}});
    called.into_iter().map(past).collect()
}

fn tool_spec(tool: &FunctionSpec) -> Value {
    let mut spec = Map::new();
    spec.insert("name".to_owned(), json!(names::encode(&tool.name)));
    if !tool.description.trim().is_empty() {
        spec.insert("description".to_owned(), json!(tool.description));
    }
    spec.insert("input_schema".to_owned(), input_schema(&tool.parameters));
    Value::Object(spec)
}

/// The API wants `type` to be `object` and takes no combination at the top. Arguments are checked
/// against the whole schema anyway, so nothing is lost but a hint.
fn input_schema(parameters: &Value) -> Value {
    let mut schema = parameters.as_object().cloned().unwrap_or_default();
    for combination in ["oneOf", "anyOf", "allOf"] {
        schema.shift_remove(combination);
    }
    schema.insert("type".to_owned(), json!("object"));
    Value::Object(schema)
}
