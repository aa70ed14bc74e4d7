//! The react agent behind the official clients: what a person may be asked, and what a front end
//! does itself, from a model over HTTP and back to it.

use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::{
    agentscope::name_replies,
    driver::{self, CLIENTS, Job},
    judge, model,
    server::Server,
};
use crate::support::model::{Answer, Endpoint, Request};

/// What the tools of the agent say.
fn tool(request: &Request) -> Answer {
    let (tool, body) = (request.path.trim_start_matches('/'), &request.body);
    Answer::text(
        200,
        &match tool {
            "get_weather" => format!("cold in {}", body["city"].as_str().unwrap_or("?")),
            _ => format!("{tool} to {}: {}", body["to"], body["subject"]),
        },
    )
}

/// An agent with tools of every kind, and one that it may hand tasks to.
fn config(model: &str, tools: &Endpoint) -> Value {
    let http = |name: &str, properties: Value| {
        let parameters = json!({"type": "object", "properties": properties});
        json!({"http": {
            "name": name, "description": "A tool.", "method": "POST", "parameters": parameters,
            "url": format!("{}/{name}", tools.url()),
        }})
    };
    let text = json!({"type": "string"});
    let mail = || http("send_mail", json!({"to": text, "subject": text}));
    let label = json!({"type": "object", "properties": {"text": text}});
    let external = json!({"name": "print_label", "description": "Prints.", "parameters": label});
    let tools = json!([
        http("get_weather", json!({"city": text})), mail(), {"external": external},
        {"builtin": "ask_user"},
    ]);
    let agent = |tools: Value| {
        json!({
            "type": "react", "model": "scripted", "tools": tools, "permission": {"ask": ["send_mail"]},
        })
    };
    let (mut assistant, helper) = (agent(tools), agent(json!([mail()])));
    assistant["subagents"] = json!(["helper"]);
    let model = json!({"base-url": model, "model": "m", "max-retries": 0});
    json!({"agentscope": {
        "models": {"scripted": model}, "agents": {"assistant": assistant, "helper": helper},
    }})
}

/// The conversations of one client.
fn jobs(client: &str, url: &str) -> Vec<Job> {
    let user = |text: &str| json!({"user": text});
    let resume = |answers: Value| json!({"resume": answers});
    let talk = |name: &str, steps: &[Value]| Job::new(name, client, url, json!(steps));
    let painter = |name: &str, steps: &[Value]| {
        let mut job = talk(name, steps);
        job.set("tools", json!([{"name": "paint", "description": "Paints the page."}]));
        job
    };
    let painted = json!({"toolResults": {"paint": "painted"}});
    let only_painted = json!({"messages": [
        {"id": "painted", "role": "tool", "toolCallId": "call_paint", "content": "painted"},
    ]});
    let edited = json!({"to": "b@example.com", "subject": "Edited"});
    let known = vec![
        talk("text", &[user("Hello"), user("And again")]),
        talk("tool", &[user("weather")]),
        painter("frontend", &[user("paint"), painted]),
    ];
    if client != CLIENTS[0] {
        return known;
    }
    let asked = vec![
        talk("approve", &[user("mail"), resume(json!("approve"))]),
        talk("edit", &[user("mail"), resume(json!({"approve": edited}))]),
        talk("deny", &[user("mail"), resume(json!({"deny": "wrong address"})), user("Hello")]),
        talk("cancel", &[user("mail"), resume(json!("cancel"))]),
        talk("two-asks", &[user("two mails"), resume(json!(["approve", "deny"]))]),
        talk("external", &[user("label"), resume(json!({"answer": "printed on printer 2"}))]),
        talk("external-cancel", &[user("label"), resume(json!("cancel"))]),
        talk("mixed", &[user("mail and label"), resume(json!(["approve", {"answer": "printed"}]))]),
        talk("form", &[user("ask me"), resume(json!({"answer": {"name": "Ann", "age": 7}}))]),
        talk("form-cancel", &[user("ask me"), resume(json!("cancel"))]),
        // The model fails behind the approved call; the same answer goes on behind its result.
        talk("retry", &[user("flaky mail"), resume(json!("approve")), resume(json!("approve"))]),
        talk("child-approve", &[user("delegate"), resume(json!("approve"))]),
        talk("child-deny", &[user("delegate"), resume(json!({"deny": "not now"}))]),
        // The ask waits until the front end has answered its own call.
        painter(
            "frontend-mixed",
            &[user("paint and mail"), only_painted, resume(json!("approve"))],
        ),
    ];
    known.into_iter().chain(asked).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_react_agent_plays_through_the_official_clients() {
    let tools = Endpoint::with(tool).await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("react.yaml");
    std::fs::write(&path, config(&model::start(), &tools).to_string()).expect("the configuration");
    block_in_place(|| {
        let server = Server::start(&path);
        let url = server.run_url("assistant");
        let all = CLIENTS.iter().flat_map(|client| jobs(client, &url)).collect();
        let mut records = driver::drive(all);
        records.iter_mut().for_each(name_replies);
        judge("react", &records, &server);
    });
    // Once for each approval: approve, edit, the first of two, mixed, retry, child-approve,
    // frontend-mixed.
    let mails = tools.requests().iter().filter(|request| request.path == "/send_mail").count();
    assert_eq!(mails, 7);
}
