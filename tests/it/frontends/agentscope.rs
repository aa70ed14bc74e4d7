//! The agent of `examples/command`: AgentScope's own library in a Python process, a model over
//! HTTP behind it, the official client in front of it.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{
    driver::{self, CLIENTS, Job, Record},
    judge, model, root,
    server::Server,
};

#[test]
fn the_python_example_plays_through_the_official_client() {
    let python = python();
    let server = Server::start_with(
        &root().join("examples/command/agentscope.yaml"),
        &[
            ("PYTHON", python.to_str().expect("a path of text")),
            ("OPENAI_API_KEY", "none"),
            ("OPENAI_BASE_URL", &model::start()),
            ("MODEL", "scripted"),
        ],
    );
    let url = server.run_url("assistant");
    let user = |text: &str| json!({"user": text});
    let resume = |answers: Value| json!({"resume": answers});
    let talk = |name: &str, steps: &[Value]| Job::new(name, CLIENTS[0], &url, json!(steps));
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
    let jobs = vec![
        talk("text", &[user("Hello"), user("And again")]),
        talk("tool", &[user("weather")]),
        talk("approve", &[user("mail"), resume(json!("approve"))]),
        talk("edit", &[user("mail"), resume(json!({"approve": edited}))]),
        talk("deny", &[user("mail"), resume(json!({"deny": "wrong address"})), user("Hello")]),
        talk("external", &[user("label"), resume(json!({"answer": "printed on printer 2"}))]),
        talk("external-cancel", &[user("label"), resume(json!("cancel"))]),
        talk("mixed", &[user("mail and label"), resume(json!(["approve", {"answer": "printed"}]))]),
        // The model fails behind the approved call; the same answer goes on behind its result.
        talk("retry", &[user("flaky mail"), resume(json!("approve")), resume(json!("approve"))]),
        talk("ask-again", &[user("two mails"), resume(json!("approve")), resume(json!("deny"))]),
        painter("frontend", &[user("paint"), painted]),
        // The ask waits until the front end has answered its own call.
        painter(
            "frontend-mixed",
            &[user("paint and mail"), only_painted, resume(json!("approve"))],
        ),
    ];
    let mut records = driver::drive_slow_agents(jobs);
    records.iter_mut().for_each(name_replies);
    judge("agentscope", &records, &server);
    // Once for each approval: approve, edit, mixed, retry, the first of two, frontend-mixed.
    assert_eq!(server.log().matches("stderr: sending a mail").count(), 6, "{}", server.log());
}

/// Python of the environment that `scripts/test` makes.
fn python() -> PathBuf {
    let python = root().join(".venv/bin/python");
    let library = Path::new(".venv").join(".installed-requirements.txt");
    assert!(
        python.is_file() && root().join(library).is_file(),
        "AgentScope is not installed: run ./scripts/test, or make .venv as it does",
    );
    python
}

/// Agents make up an id for every reply, which interrupts repeat.
pub(super) fn name_replies(record: &mut Record) {
    for run in &mut record.runs {
        let ids = run.pending_interrupts.as_array().cloned().unwrap_or_default();
        let ids = ids.iter().filter_map(|interrupt| interrupt["metadata"]["replyId"].as_str());
        for id in ids {
            for value in [&mut run.pending_interrupts, &mut run.outcome] {
                let text = value.to_string().replace(id, "reply");
                *value = serde_json::from_str(&text).expect("JSON");
            }
        }
    }
}
