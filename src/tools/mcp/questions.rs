//! What MCP servers ask the person, in both protocols.
//!
//! Since 2026-07-28 a call answers `input_required` and is made again with the answers, on any
//! connection. Before, the server asks in the middle of the call, which waits meanwhile.
//!
//! Several questions of one answer become one form, with a member for each under its id.

use std::collections::BTreeMap;

use agui_adapter::model::event::Object;
use rmcp::model::{
    ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest, InputRequests,
    InputRequiredResult,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::tools::ToolEnd;

/// What is parked with a question, and how the call goes on.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all_fields = "camelCase", untagged)]
pub(super) enum Parked {
    /// By making it again.
    Again {
        /// What the server wants back as it is.
        #[serde(skip_serializing_if = "Option::is_none")]
        request_state: Option<String>,
        /// Ids of the questions.
        input_requests: Vec<String>,
    },
    /// By answering in the middle of it, in this process.
    Held {
        /// Id of the question.
        elicitation: String,
    },
}

impl Parked {
    pub(super) fn read(value: &Value) -> Option<Self> {
        Self::deserialize(value).ok()
    }

    fn to_value(&self) -> Option<Value> {
        serde_json::to_value(self).ok()
    }
}

/// A question in the middle of a call.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) id: String,
    pub(super) message: String,
    pub(super) schema: Object,
    pub(super) answer: oneshot::Sender<ElicitResult>,
}

impl Question {
    /// Nobody waits for the answer any more.
    pub(super) fn is_over(&self) -> bool {
        self.answer.is_closed()
    }

    /// How the run ends with it, and who waits for the answer.
    pub(super) fn ask(self) -> (ToolEnd, String, oneshot::Sender<ElicitResult>) {
        let Self { id, message, schema, answer } = self;
        let parked = Parked::Held { elicitation: id.clone() }.to_value();
        (ToolEnd::Asks { message, schema: Some(schema), parked }, id, answer)
    }
}

/// What a call that needs input is to do.
#[derive(Debug, PartialEq)]
pub(super) enum Needs {
    /// Ask the person.
    Person(ToolEnd),
    /// Make the call again with this state.
    Again(String),
    /// Something that is not offered to servers.
    Else,
}

/// What this answer of a call asks for.
pub(super) fn needs(result: InputRequiredResult) -> Needs {
    let InputRequiredResult { input_requests, request_state, .. } = result;
    let requests = input_requests.unwrap_or_default();
    if requests.is_empty() {
        return request_state.map_or(Needs::Else, Needs::Again);
    }
    let input_requests = requests.keys().cloned().collect();
    let Some((message, schema)) = form(requests) else { return Needs::Else };
    let parked = Parked::Again { request_state, input_requests }.to_value();
    Needs::Person(ToolEnd::Asks { message, schema: Some(schema), parked })
}

/// One form for all questions; `None` = one of them is not for the person or no form.
fn form(requests: InputRequests) -> Option<(String, Object)> {
    let mut questions = Vec::new();
    for (id, request) in requests {
        let InputRequest::Elicitation(request) = request else { return None };
        let (message, schema) = question(request.params)?;
        questions.push((id, message, schema));
    }
    if questions.len() == 1 {
        return questions.pop().map(|(_, message, schema)| (message, schema));
    }
    let ids: Vec<&String> = questions.iter().map(|(id, ..)| id).collect();
    let required = json!(ids);
    let messages: Vec<&str> = questions.iter().map(|(_, message, _)| message.as_str()).collect();
    let message = messages.join("\n");
    let mut properties = Object::new();
    for (id, message, mut schema) in questions {
        schema.entry("description").or_insert(message.into());
        properties.insert(id, Value::Object(schema));
    }
    let mut schema = Object::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), Value::Object(properties));
    schema.insert("required".to_owned(), required);
    Some((message, schema))
}

/// The words and the form of a question; `None` = it is none that a form can answer.
pub(super) fn question(params: ElicitRequestParams) -> Option<(String, Object)> {
    let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = params
    else {
        return None;
    };
    match serde_json::to_value(requested_schema) {
        Ok(Value::Object(schema)) => Some((message, schema)),
        _ => None,
    }
}

/// The answers to these questions out of what the person sent; `None` = the person declined.
pub(super) fn answers(ids: &[String], payload: Option<Value>) -> BTreeMap<String, Value> {
    let mut answers = BTreeMap::new();
    if let [id] = ids {
        answers.insert(id.clone(), json!(answer(payload)));
        return answers;
    }
    let mut payload = payload;
    for id in ids {
        let own = payload.as_mut().and_then(|all| all.get_mut(id)).map(Value::take);
        answers.insert(id.clone(), json!(answer(own)));
    }
    answers
}

/// The answer to one question.
pub(super) fn answer(payload: Option<Value>) -> ElicitResult {
    match payload {
        Some(content) => ElicitResult::new(ElicitationAction::Accept).with_content(content),
        None => ElicitResult::new(ElicitationAction::Decline),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn required(result: Value) -> Needs {
        let mut result = result;
        result["resultType"] = "input_required".into();
        needs(serde_json::from_value(result).unwrap())
    }

    fn elicitation(message: &str, schema: &Value) -> Value {
        let params = json!({"mode": "form", "message": message, "requestedSchema": schema});
        json!({"method": "elicitation/create", "params": params})
    }

    fn asks(message: &str, schema: &Value, parked: Value) -> Needs {
        let schema = schema.as_object().cloned();
        Needs::Person(ToolEnd::Asks { message: message.to_owned(), schema, parked: Some(parked) })
    }

    #[test]
    fn one_question_is_asked_as_it_is() {
        let schema = json!({
            "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"],
        });
        let result = json!({
            "inputRequests": {"q": elicitation("Your name?", &schema)}, "requestState": "s",
        });
        let parked = json!({"requestState": "s", "inputRequests": ["q"]});
        assert_eq!(required(result), asks("Your name?", &schema, parked));
    }

    #[test]
    fn several_questions_are_one_form_under_their_ids() {
        let of = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}});
        let result = json!({"inputRequests": {
            "a": elicitation("Name?", &of("name")), "b": elicitation("Town?", &of("town")),
        }});
        let with = |mut schema: Value, text: &str| {
            schema["description"] = text.into();
            schema
        };
        let schema = json!({
            "type": "object",
            "properties": {"a": with(of("name"), "Name?"), "b": with(of("town"), "Town?")},
            "required": ["a", "b"],
        });
        let parked = json!({"inputRequests": ["a", "b"]});
        assert_eq!(required(result), asks("Name?\nTown?", &schema, parked));
    }

    #[test]
    fn without_questions_the_call_is_made_again_and_other_wishes_are_not_granted() {
        assert_eq!(required(json!({"requestState": "s"})), Needs::Again("s".to_owned()));
        let roots = json!({"inputRequests": {"r": {"method": "roots/list"}}});
        assert_eq!(required(roots), Needs::Else);
        let params = json!({"mode": "url", "message": "Look", "url": "https://example.invalid"});
        let url = json!({"method": "elicitation/create", "params": params});
        assert_eq!(required(json!({"inputRequests": {"u": url}})), Needs::Else);
    }

    #[test]
    fn answers_go_to_their_questions() {
        let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        let sent = |of: &[&str], payload| json!(answers(&ids(of), payload));
        let accepted = |content: Value| json!({"action": "accept", "content": content});
        let declined = json!({"action": "decline"});
        assert_eq!(sent(&["q"], Some(json!({"n": 1}))), json!({"q": accepted(json!({"n": 1}))}));
        assert_eq!(sent(&["q"], None), json!({"q": declined}));
        let both = Some(json!({"a": {"n": 1}, "b": {"m": 2}}));
        assert_eq!(
            sent(&["a", "b"], both),
            json!({"a": accepted(json!({"n": 1})), "b": accepted(json!({"m": 2}))})
        );
        assert_eq!(sent(&["a", "b"], None), json!({"a": declined, "b": declined}));
    }

    #[test]
    fn what_is_parked_is_read_again() {
        let held = Parked::Held { elicitation: "e".to_owned() };
        assert_eq!(held.to_value().as_ref().and_then(Parked::read), Some(held));
        let input_requests = vec!["q".to_owned()];
        let again = Parked::Again { request_state: None, input_requests };
        assert_eq!(again.to_value(), Some(json!({"inputRequests": ["q"]})));
        assert_eq!(again.to_value().as_ref().and_then(Parked::read), Some(again));
        assert_eq!(Parked::read(&json!({"other": 1})), None);
    }
}
