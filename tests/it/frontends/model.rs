//! A model with an OpenAI-compatible API, over HTTP: it calls the tools that the person names and
//! tells what came of it. What it says depends on the request alone.

use std::{
    io::Write,
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use serde_json::{Value, json};

use super::server::read_request;

/// Starts a model that answers until the tests end; returns its base URL.
pub(super) fn start() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        let failures = Arc::new(AtomicUsize::new(0));
        for connection in listener.incoming().map_while(Result::ok) {
            let failures = Arc::clone(&failures);
            thread::spawn(move || answer(connection, &failures));
        }
    });
    url
}

fn answer(mut connection: TcpStream, failures: &AtomicUsize) {
    let request: Value = serde_json::from_slice(&read_request(&connection)).expect("JSON");
    if fails(&request, failures) {
        let head = "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n";
        write!(connection, "{head}Connection: close\r\nContent-Length: 2\r\n\r\n{{}}").ok();
        return;
    }
    let frames: String =
        chunks(&request).iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    // Fails when the agent was stopped meanwhile.
    write!(connection, "{head}{frames}data: [DONE]\n\n").ok();
}

/// The result of a mail to `flaky@example.com` is too much for the model once.
fn fails(request: &Value, failures: &AtomicUsize) -> bool {
    let flaky = |turn: &Turn| turn.role == "tool" && turn.text.contains("flaky@example.com");
    turns(request).last().is_some_and(flaky) && failures.fetch_add(1, Ordering::Relaxed) == 0
}

fn chunks(request: &Value) -> Vec<Value> {
    let deltas = deltas(&turns(request));
    let chunk = |choices: Value, usage: Value| {
        json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": choices, "usage": usage})
    };
    let choice = |delta: &Value, finish: Value| {
        chunk(json!([{"index": 0, "delta": delta, "finish_reason": finish}]), Value::Null)
    };
    let mut chunks: Vec<Value> = deltas.iter().map(|delta| choice(delta, Value::Null)).collect();
    chunks.push(choice(&json!({}), json!("stop")));
    let usage = json!({"prompt_tokens": 20, "completion_tokens": 8, "total_tokens": 28});
    chunks.push(chunk(json!([]), usage));
    chunks
}

/// A message of the conversation as the model cares for it.
struct Turn {
    role: String,
    text: String,
}

/// The conversation, without what AgentScope puts in between.
fn turns(request: &Value) -> Vec<Turn> {
    let messages = request["messages"].as_array().expect("messages").iter();
    let turns = messages.map(|message| Turn {
        role: message["role"].as_str().unwrap_or_default().to_owned(),
        text: text(&message["content"]),
    });
    turns.filter(|turn| turn.role != "user" || !turn.text.starts_with('<')).collect()
}

fn text(content: &Value) -> String {
    match content {
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        other => other.as_str().unwrap_or_default().to_owned(),
    }
}

fn deltas(turns: &[Turn]) -> Vec<Value> {
    let results: Vec<&str> = turns
        .iter()
        .rev()
        .take_while(|turn| turn.role == "tool")
        .map(|turn| turn.text.as_str())
        .collect();
    if !results.is_empty() {
        let results: Vec<&str> = results.into_iter().rev().collect();
        return says(&["The tools said: ", &results.join("; ")]);
    }
    let asked = turns.last().map(|turn| turn.text.as_str()).unwrap_or_default();
    let mail = |id: &str, to: &str| call(id, "send_mail", &json!({"to": to, "subject": "Hi"}));
    let label = || call("call_label", "print_label", &json!({"text": "42"}));
    let paint = || call("call_paint", "paint", &json!({"colour": "blue"}));
    match asked {
        "weather" => calls(&[call("call_weather", "get_weather", &json!({"city": "Oslo"}))]),
        "mail" => calls(&[mail("call_mail", "a@example.com")]),
        "flaky mail" => calls(&[mail("call_mail", "flaky@example.com")]),
        "two mails" => {
            calls(&[mail("call_one", "one@example.com"), mail("call_two", "two@example.com")])
        }
        "label" => calls(&[label()]),
        "mail and label" => calls(&[mail("call_mail", "a@example.com"), label()]),
        "paint" => calls(&[paint()]),
        "ask me" => calls(&[call("call_ask", "ask_user", &question())]),
        "delegate" => calls(&[call("call_helper", "helper", &json!({"task": "mail"}))]),
        "paint and mail" => calls(&[paint(), mail("call_mail", "a@example.com")]),
        _ => says(&["I heard ", &format!("{} messages.", turns.len())]),
    }
}

/// A form of two fields.
fn question() -> Value {
    let fields = json!([{"name": "name"}, {"name": "age", "type": "integer", "required": false}]);
    json!({"question": "Who are you?", "fields": fields})
}

fn says(words: &[&str]) -> Vec<Value> {
    words.iter().map(|words| json!({"content": words})).collect()
}

fn call(id: &str, name: &str, arguments: &Value) -> Value {
    let function = json!({"name": name, "arguments": arguments.to_string()});
    json!({"id": id, "type": "function", "function": function})
}

/// All calls in one chunk, behind a sentence.
fn calls(calls: &[Value]) -> Vec<Value> {
    let indexed = calls.iter().enumerate().map(|(index, call)| {
        let mut call = call.clone();
        call["index"] = index.into();
        call
    });
    let mut deltas = says(&["One moment."]);
    deltas.push(json!({"tool_calls": indexed.collect::<Vec<_>>()}));
    deltas
}
