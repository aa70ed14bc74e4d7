//! What a client makes of a stream: messages and state, by the rules of the official client
//! 1.0.0, on JSON, apart from the product's own types.

use agui_adapter::truncate::TRUNCATED;
use agui_protocol::Event;
use serde_json::{Map, Value, json};

/// A client in the middle of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Client {
    pub messages: Vec<Value>,
    pub state: Value,
}

impl Client {
    /// One that holds what it sent.
    pub fn new(messages: &Value, state: Option<&Value>) -> Self {
        let messages = messages.as_array().cloned().unwrap_or_default();
        Self { messages, state: state.cloned().unwrap_or_else(|| json!({})) }
    }

    pub fn apply_all(&mut self, events: &[Event]) -> &mut Self {
        for event in events {
            self.apply(&json!(event));
        }
        self
    }

    fn apply(&mut self, event: &Value) {
        match text(event, "type") {
            "TEXT_MESSAGE_START" => {
                let role = event["role"].as_str().unwrap_or("assistant");
                self.open(event, json!({ "role": role, "content": "" }));
            }
            "REASONING_MESSAGE_START" => {
                self.open(event, json!({ "role": "reasoning", "content": "" }));
            }
            "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT" => self.content(event),
            "TEXT_MESSAGE_END" | "REASONING_MESSAGE_END" => {
                if let Some(message) = self.message(text(event, "messageId")) {
                    merge(message, event);
                }
            }
            "TOOL_CALL_START" => self.call_start(event),
            "TOOL_CALL_ARGS" => {
                let call = self.call(text(event, "toolCallId")).expect("a call that was started");
                let arguments = &mut call["function"]["arguments"];
                *arguments = json!(format!("{}{}", shown(arguments), text(event, "delta")));
                merge(call, event);
            }
            "TOOL_CALL_END" => {
                let call = self.call(text(event, "toolCallId")).expect("a call that was started");
                merge(call, event);
            }
            "TOOL_CALL_RESULT" => self.result(event),
            "REASONING_ENCRYPTED_VALUE" => self.encrypted(event),
            "ACTIVITY_SNAPSHOT" => self.activity(event),
            "ACTIVITY_DELTA" => self.activity_delta(event),
            "MESSAGES_SNAPSHOT" => self.snapshot(&event["messages"]),
            "STATE_SNAPSHOT" => self.state = event["snapshot"].clone(),
            "STATE_DELTA" => patch(&mut self.state, &event["delta"]),
            "RUN_STARTED" => self.echo(&event["input"]["messages"]),
            _ => {}
        }
    }

    fn position(&self, id: &str) -> Option<usize> {
        self.messages.iter().position(|message| message["id"] == id)
    }

    fn message(&mut self, id: &str) -> Option<&mut Value> {
        self.messages.iter_mut().find(|message| message["id"] == id)
    }

    fn call(&mut self, id: &str) -> Option<&mut Value> {
        let calls = self.messages.iter_mut().filter_map(|message| message.get_mut("toolCalls"));
        calls.filter_map(Value::as_array_mut).flatten().find(|call| call["id"] == id)
    }

    fn owner(&self, call: &str) -> Option<usize> {
        self.messages.iter().position(|message| {
            let calls = message["toolCalls"].as_array();
            calls.is_some_and(|calls| calls.iter().any(|other| other["id"] == call))
        })
    }

    fn open(&mut self, event: &Value, mut new: Value) {
        let id = text(event, "messageId");
        if self.position(id).is_none() {
            new["id"] = json!(id);
            copy(&mut new, event, &["name", "subagentRunId"]);
            self.messages.push(new);
        }
        if let Some(message) = self.message(id) {
            merge(message, event);
        }
    }

    fn content(&mut self, event: &Value) {
        let message = self.message(text(event, "messageId")).expect("a message that was opened");
        message["content"] =
            json!(format!("{}{}", shown(&message["content"]), text(event, "delta")));
        merge(message, event);
    }

    fn call_start(&mut self, event: &Value) {
        let id = text(event, "toolCallId");
        if let Some(call) = self.call(id) {
            call["function"]["name"] = event["toolCallName"].clone();
            return merge(call, event);
        }
        let parent = event["parentMessageId"].as_str();
        let known = parent.and_then(|parent| self.position(parent));
        let at =
            known.filter(|at| self.messages[*at]["role"] == "assistant").unwrap_or_else(|| {
                let free = parent.filter(|_| known.is_none());
                let mut carrier = json!({ "id": free.unwrap_or(id), "role": "assistant" });
                copy(&mut carrier, event, &["subagentRunId"]);
                self.messages.push(carrier);
                self.messages.len() - 1
            });
        let mut call = json!({ "id": id, "type": "function",
            "function": { "name": event["toolCallName"], "arguments": "" } });
        merge(&mut call, event);
        let message = self.messages[at].as_object_mut().expect("a message");
        let calls = message.entry("toolCalls").or_insert_with(|| json!([]));
        calls.as_array_mut().expect("calls").push(call);
    }

    fn result(&mut self, event: &Value) {
        let mut message = json!({ "id": event["messageId"], "role": "tool" });
        copy(&mut message, event, &["toolCallId", "content", "subagentRunId"]);
        merge(&mut message, event);
        let at = self.owner(text(event, "toolCallId")).map_or(self.messages.len(), |owner| {
            let others = self.messages[owner + 1..].iter();
            owner + 1 + others.take_while(|message| message["role"] == "tool").count()
        });
        self.messages.insert(at, message);
    }

    fn encrypted(&mut self, event: &Value) {
        let id = text(event, "entityId");
        let entity = match text(event, "subtype") {
            "tool-call" => self.call(id),
            _ => self.message(id),
        };
        entity.expect("what the value belongs to")["encryptedValue"] =
            event["encryptedValue"].clone();
    }

    fn activity(&mut self, event: &Value) {
        let id = text(event, "messageId");
        let mut new = json!({ "id": id, "role": "activity" });
        copy(&mut new, event, &["activityType", "content", "subagentRunId"]);
        match self.message(id) {
            None => self.messages.push(new),
            Some(message) => {
                copy(&mut new, message, &["metadata"]);
                *message = new;
            }
        }
        if let Some(message) = self.message(id) {
            merge(message, event);
        }
    }

    fn activity_delta(&mut self, event: &Value) {
        let message = self.message(text(event, "messageId")).expect("an activity");
        merge(message, event);
        patch(&mut message["content"], &event["patch"]);
        message["activityType"] = event["activityType"].clone();
    }

    fn snapshot(&mut self, messages: &Value) {
        let new = messages.as_array().expect("messages");
        let restates = |role: &str| new.iter().any(|message| message["role"] == role);
        let (activities, reasoning) = (restates("activity"), restates("reasoning"));
        let find = |id: &Value| new.iter().find(|message| message["id"] == *id);
        let own = |message: &Value| {
            (message["role"] == "activity" && !activities)
                || (message["role"] == "reasoning" && !reasoning)
        };
        self.messages.retain(|message| find(&message["id"]).is_some() || own(message));
        for message in &mut self.messages {
            if let Some(new) = find(&message["id"]) {
                *message = new.clone();
            }
        }
        self.echo(messages);
    }

    /// Adds the messages that are not known.
    fn echo(&mut self, messages: &Value) {
        for message in messages.as_array().into_iter().flatten() {
            if self.position(text(message, "id")).is_none() {
                self.messages.push(message.clone());
            }
        }
    }
}

fn text<'a>(event: &'a Value, member: &str) -> &'a str {
    event[member].as_str().unwrap_or_default()
}

fn shown(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn copy(to: &mut Value, from: &Value, members: &[&str]) {
    for member in members {
        if let Some(value) = from.get(member) {
            to[*member] = value.clone();
        }
    }
}

fn merge(target: &mut Value, event: &Value) {
    let Some(more) = event["metadata"].as_object() else { return };
    let members = target.as_object_mut().expect("an object");
    let metadata = members.entry("metadata").or_insert_with(|| json!(Map::new()));
    for (key, value) in more.iter().filter(|(key, _)| *key != TRUNCATED) {
        metadata[key] = value.clone();
    }
}

fn patch(target: &mut Value, operations: &Value) {
    let patch: json_patch::Patch = serde_json::from_value(operations.clone()).expect("a patch");
    json_patch::patch(target, &patch).expect("a patch that applies");
}
