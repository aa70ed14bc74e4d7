//! A request as `generateContent` takes it.

use serde_json::{Map, Value, json};

use super::{
    super::{
        FunctionSpec, ModelRequest, ToolChoice,
        body::{merge, note_left_out},
        names,
        turns::Conversation,
    },
    Gemini, WIRE,
    parts::Contents,
};

/// Parameters that stand beside `generationConfig`, not in it.
const BESIDE: &[&str] = &[
    "cachedContent",
    "contents",
    "generationConfig",
    "labels",
    "safetySettings",
    "serviceTier",
    "store",
    "systemInstruction",
    "toolConfig",
    "tools",
];

impl Gemini {
    /// The body.
    pub(super) fn body(&self, request: &ModelRequest) -> Map<String, Value> {
        let conversation = Conversation::of(&request.messages, WIRE);
        let mut body = Map::new();
        let system = conversation.system(&request.system);
        if !system.is_empty() {
            body.insert("systemInstruction".to_owned(), json!({"parts": [{"text": system}]}));
        }
        let signed = insists_on_signatures(&self.model);
        let contents = Contents::new(self.vision, signed, !self.is_vertex);
        let (contents, left_out) = contents.of(&conversation);
        note_left_out(left_out, &self.model, request);
        body.insert("contents".to_owned(), Value::Array(contents));
        if !request.tools.is_empty() {
            let declarations: Vec<Value> = request.tools.iter().map(declaration).collect();
            body.insert("tools".to_owned(), json!([{"functionDeclarations": declarations}]));
        }
        self.configure(&mut body);
        // Over the parameters, which do not know the call at hand.
        if request.tool_choice == ToolChoice::None && body.contains_key("tools") {
            forbid_calls(&mut body);
        }
        body
    }

    fn configure(&self, body: &mut Map<String, Value>) {
        let (beside, within): (Map<_, _>, Map<_, _>) = self
            .parameters
            .clone()
            .into_iter()
            .partition(|(name, _)| BESIDE.contains(&name.as_str()));
        merge(body, &beside);
        if within.is_empty() {
            return;
        }
        let config = body.entry("generationConfig").or_insert_with(|| json!({}));
        if let Value::Object(config) = config {
            merge(config, &within);
        }
    }
}

/// Whether the model refuses calls of the turn in progress that it did not sign: Gemini does
/// since its third generation.
fn insists_on_signatures(model: &str) -> bool {
    let behind = model.split_once("gemini-").map(|(_, behind)| behind);
    let digits: Option<String> =
        behind.map(|behind| behind.chars().take_while(char::is_ascii_digit).collect());
    digits.and_then(|digits| digits.parse::<u32>().ok()).is_some_and(|generation| generation >= 3)
}

/// `parameters` would be a dialect of OpenAPI; this field takes JSON Schema as it is.
fn declaration(tool: &FunctionSpec) -> Value {
    let mut declaration = Map::new();
    declaration.insert("name".to_owned(), json!(names::encode(&tool.name)));
    if !tool.description.trim().is_empty() {
        declaration.insert("description".to_owned(), json!(tool.description));
    }
    let mut schema = tool.parameters.as_object().cloned().unwrap_or_default();
    schema.entry("type").or_insert_with(|| json!("object"));
    declaration.insert("parametersJsonSchema".to_owned(), Value::Object(schema));
    Value::Object(declaration)
}

fn forbid_calls(body: &mut Map<String, Value>) {
    let forbidden = json!({"mode": "NONE"});
    match body.get_mut("toolConfig") {
        Some(Value::Object(config)) => {
            config.insert("functionCallingConfig".to_owned(), forbidden);
        }
        _ => {
            let config = json!({"functionCallingConfig": forbidden});
            body.insert("toolConfig".to_owned(), config);
        }
    }
}
