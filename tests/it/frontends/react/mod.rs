//! The react agent behind the official clients: what a person sees of it, what its model reads,
//! and what its tools were asked to do.
//!
//! The model is the test's. The instructions of every agent name the agent and the thread, so that
//! each conversation has a model of its own, though all are played at once on one server.

mod approvals;
mod builtins;
mod children;
mod elsewhere;
mod failures;
mod memory;
mod plain;
mod signatures;

use std::{
    collections::{BTreeMap, VecDeque},
    fs,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};

use super::{
    agentscope::name_replies,
    complaints,
    driver::{self, CLIENTS, Job, Record},
    expected,
    golden::{self, Entry},
    report,
    server::Server,
};
use crate::support::model::{Answer, Endpoint, Frame, dialect::Dialect, openai};

/// A conversation of each client, and what becomes of it elsewhere.
struct Talk {
    name: &'static str,
    agent: &'static str,
    steps: Vec<Value>,
    offers: Vec<Value>,
    /// What the models of the agents say, in the order in which each is asked.
    says: Vec<(&'static str, Said)>,
    /// What the tools were asked to do.
    executes: Vec<&'static str>,
    /// What the agents' models read the last time, without the instructions.
    hears: Vec<(&'static str, Vec<&'static str>)>,
}

/// An answer of a model.
#[derive(Clone)]
enum Said {
    /// Of OpenAI's wire.
    Chunks(Vec<Value>),
    /// Of any wire.
    Frames(Vec<Frame>),
    Fails(u16),
}

impl Talk {
    fn new(name: &'static str, agent: &'static str) -> Self {
        Self {
            name,
            agent,
            steps: Vec::new(),
            offers: Vec::new(),
            says: Vec::new(),
            executes: Vec::new(),
            hears: Vec::new(),
        }
    }

    /// The front end has this tool.
    fn offers(mut self, name: &str) -> Self {
        let colour = json!({"type": "object", "properties": {"colour": {"type": "string"}}});
        let description = format!("Does {name}.");
        self.offers.push(json!({"name": name, "description": description, "parameters": colour}));
        self
    }

    fn steps(mut self, steps: impl IntoIterator<Item = Value>) -> Self {
        self.steps.extend(steps);
        self
    }

    /// Answers of the agent's own model.
    fn says(self, said: impl IntoIterator<Item = Said>) -> Self {
        let agent = self.agent;
        self.says_of(agent, said)
    }

    /// Answers of a sub-agent's model.
    fn says_of(mut self, agent: &'static str, said: impl IntoIterator<Item = Said>) -> Self {
        self.says.extend(said.into_iter().map(|said| (agent, said)));
        self
    }

    /// Calls that reach the tools, as path and body.
    fn executes(mut self, calls: impl IntoIterator<Item = &'static str>) -> Self {
        self.executes.extend(calls);
        self
    }

    /// The last request of the agent's own model, a line for each message.
    fn hears(self, lines: impl IntoIterator<Item = &'static str>) -> Self {
        let agent = self.agent;
        self.hears_of(agent, lines)
    }

    fn hears_of(
        mut self,
        agent: &'static str,
        lines: impl IntoIterator<Item = &'static str>,
    ) -> Self {
        self.hears.push((agent, lines.into_iter().collect()));
        self
    }

    fn job(&self, client: &str, server: &Server) -> Job {
        let mut job = Job::new(self.name, client, &server.run_url(self.agent), json!(self.steps));
        job.set("tools", json!(self.offers));
        job
    }
}

/// A person says something.
fn user(text: &str) -> Value {
    json!({"user": text})
}

/// Answers what was asked.
fn resume(answers: impl Into<Value>) -> Value {
    json!({"resume": answers.into()})
}

/// The client's tools give results.
fn results(results: Value) -> Value {
    json!({"toolResults": results})
}

/// The client has lost its messages before that.
fn forgetting(mut step: Value) -> Value {
    step["forget"] = true.into();
    step
}

/// The page is opened anew.
fn reload() -> Value {
    json!({"reload": true})
}

/// A model's words.
fn says(words: &[&str]) -> Said {
    let words = words.iter().map(|words| openai::text(words));
    Said::Chunks(words.chain([openai::finish("stop")]).collect())
}

/// Calls of id, name and arguments.
fn calls(calls: &[(&str, &str, Value)]) -> Said {
    let chunk = |(index, (id, name, arguments)): (usize, &(&str, &str, Value))| {
        openai::call(index, id, name, &arguments.to_string())
    };
    let chunks = calls.iter().enumerate().map(chunk);
    Said::Chunks(chunks.chain([openai::finish("tool_calls")]).collect())
}

/// A call of `wipe`, which asks first.
fn wipes(id: &str, disk: &str) -> Said {
    calls(&[(id, "wipe", json!({"disk": disk}))])
}

/// A kind of server.
struct Kind {
    name: &'static str,
    remembers: bool,
}

/// As it is without configuration.
const FORGETFUL: Kind = Kind { name: "forgetful", remembers: false };

/// Keeps histories.
const REMEMBERING: Kind = Kind { name: "remembering", remembers: true };

/// A server with the agents, their models and tools.
struct Stage {
    server: Server,
    models: Models,
    /// Serves the models.
    _endpoint: Endpoint,
    tools: Endpoint,
    kind: &'static str,
}

/// What the models have to say and what they were asked, by agent and thread.
type Models = Arc<Mutex<BTreeMap<(String, String), Model>>>;

#[derive(Default)]
struct Model {
    says: VecDeque<Said>,
    /// The messages of each request, the instructions first.
    heard: Vec<Vec<String>>,
}

impl Stage {
    async fn new(kind: &Kind) -> Self {
        let models = Models::default();
        let endpoint = Endpoint::with({
            let models = Arc::clone(&models);
            move |request| answer(&models, &request.body)
        })
        .await;
        let tools = Endpoint::with(|request| Answer::text(200, &done(&request.path))).await;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("react.yaml");
        // JSON is YAML too.
        fs::write(&path, configuration(&endpoint, &tools, kind).to_string()).unwrap();
        Self { server: Server::start(&path), models, _endpoint: endpoint, tools, kind: kind.name }
    }

    /// Plays the conversations and gives their records; what is not as it should be is in `faults`.
    fn play(&self, talks: &[Talk], faults: &mut Vec<String>) -> Vec<Record> {
        let mut jobs = Vec::new();
        for talk in talks {
            for client in CLIENTS {
                let thread = format!("{}-{client}", talk.name);
                let mut models = self.models.lock().unwrap();
                for (agent, said) in &talk.says {
                    let model = models.entry(((*agent).to_owned(), thread.clone())).or_default();
                    model.says.push_back(said.clone());
                }
                jobs.push(talk.job(client, &self.server));
            }
        }
        let mut records = driver::drive(jobs);
        for record in &mut records {
            name_replies(record);
            leave_out_schemas(record);
            let talk = talks.iter().find(|talk| talk.name == record.name).unwrap();
            let wrong = complaints(record).into_iter().chain(self.elsewhere(talk, record));
            faults.extend(wrong.map(|wrong| format!("{}: {wrong}", self.kind)));
        }
        records
    }

    /// What was not as it should be with the models and the tools.
    fn elsewhere(&self, talk: &Talk, record: &Record) -> Vec<String> {
        let mut wrong = Vec::new();
        let models = self.models.lock().unwrap();
        for ((agent, _), model) in
            models.iter().filter(|((_, thread), _)| *thread == record.thread_id)
        {
            if !model.says.is_empty() {
                wrong.push(format!("the model of {agent} has {} answers left", model.says.len()));
            }
        }
        for (agent, lines) in &talk.hears {
            let of = models.get(&((*agent).to_owned(), record.thread_id.clone()));
            let heard = of.and_then(|model| model.heard.last()).map(Vec::as_slice);
            let heard = heard.and_then(<[_]>::split_first).map(|(_, lines)| lines);
            if heard.is_none_or(|heard| heard != lines) {
                wrong.push(format!("the model of {agent} read {heard:#?}, not {lines:#?}"));
            }
        }
        let executed = self.executed(&record.thread_id);
        if executed != talk.executes {
            wrong.push(format!("executed: {executed:?}, not {:?}", talk.executes));
        }
        wrong.into_iter().map(|wrong| format!("{}: {wrong}", record.thread_id)).collect()
    }

    /// What the tools were asked to do for a thread; calls of one batch in any order.
    fn executed(&self, thread: &str) -> Vec<String> {
        let requests = self.tools.requests();
        let own = requests.iter().filter(|request| request.header("x-thread-id") == Some(thread));
        let mut executed: Vec<String> =
            own.map(|request| format!("{} {}", request.path, request.text)).collect();
        executed.sort_unstable();
        executed
    }

    /// The instructions that a model read the last time.
    fn instructions(&self, agent: &str, thread: &str) -> String {
        let models = self.models.lock().unwrap();
        let model = &models[&(agent.to_owned(), thread.to_owned())];
        model.heard.last().unwrap()[0].clone()
    }
}

/// Plays the conversations on a server of each kind and compares with the files of `group`.
async fn judge(group: &str, talks: &[Talk], kinds: &[Kind]) -> Vec<Record> {
    let (mut faults, mut entries, mut log) = (Vec::new(), Vec::new(), String::new());
    let mut all = Vec::new();
    for kind in kinds {
        let stage = Stage::new(kind).await;
        let records = stage.play(talks, &mut faults);
        entries.extend(records.iter().map(|record| entry(record, kind.name)));
        log.push_str(&stage.server.log());
        all.extend(records);
    }
    faults.extend(golden::compare(&expected("react").join(group), entries));
    report(faults, &log);
    all
}

/// Every ask for consent has the same schema, which other conversations show.
fn leave_out_schemas(record: &mut Record) {
    for run in &mut record.runs {
        leave_out_schemas_of(&mut run.pending_interrupts);
        if let Some(interrupts) = run.outcome.get_mut("interrupts") {
            leave_out_schemas_of(interrupts);
        }
    }
}

fn leave_out_schemas_of(interrupts: &mut Value) {
    for interrupt in interrupts.as_array_mut().into_iter().flatten() {
        if interrupt["metadata"]["agentscope.interruptKind"] == "permission_confirm" {
            interrupt.as_object_mut().unwrap().shift_remove("responseSchema");
        }
    }
}

fn entry(record: &Record, kind: &str) -> Entry {
    Entry::keyed(record, format!("{} {kind}", record.client))
}

/// The next answer of the model of the agent and the thread that the instructions name.
fn answer(models: &Models, body: &Value) -> Answer {
    let lines = lines(body);
    let named = lines[0].strip_prefix("system: You are ").unwrap();
    let (named, _) = named.split_once('!').unwrap();
    let (agent, thread) = named.split_once(" on ").unwrap();
    let mut models = models.lock().unwrap();
    let model = models.entry((agent.to_owned(), thread.to_owned())).or_default();
    model.heard.push(lines);
    match model.says.pop_front() {
        Some(Said::Chunks(chunks)) => openai::answer(chunks),
        Some(Said::Frames(frames)) => Answer::events(frames),
        Some(Said::Fails(status)) => openai::failure(status, &json!({"message": "no"})),
        None => Answer::text(418, "no answer is left"),
    }
}

/// The instructions and the messages of a request: a line for each, on the other wires its JSON.
fn lines(body: &Value) -> Vec<String> {
    let system = |text: &Value| format!("system: {}", text.as_str().unwrap());
    let (system, messages) = if body["systemInstruction"].is_object() {
        (system(&body["systemInstruction"]["parts"][0]["text"]), &body["contents"])
    } else if body["system"].is_string() {
        (system(&body["system"]), &body["messages"])
    } else {
        return openai::lines(body);
    };
    let messages = messages.as_array().unwrap().iter().map(|message| {
        let mut message = message.clone();
        leave_out_ids(&mut message);
        message.to_string()
    });
    [system].into_iter().chain(messages).collect()
}

/// Gemini has no ids, so the server makes them up.
fn leave_out_ids(message: &mut Value) {
    for part in message.get_mut("parts").and_then(Value::as_array_mut).into_iter().flatten() {
        for kind in ["functionCall", "functionResponse"] {
            if let Some(call) = part.get_mut(kind).and_then(Value::as_object_mut) {
                call.shift_remove("id");
            }
        }
    }
}

fn done(path: &str) -> String {
    format!("{} is done", path.trim_start_matches('/'))
}

fn configuration(models: &Endpoint, tools: &Endpoint, kind: &Kind) -> Value {
    let agent = |id: &str, keys: Value| {
        let mut agent = json!({
            "type": "react", "model": "mock", "sys-prompt": format!("You are {id} on {{{{threadId}}}}!"),
        });
        agent.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
        agent
    };
    let model = |dialect: Dialect| {
        json!({
            "provider": dialect.name(), "base-url": format!("{}{}", models.url(), dialect.base()),
            "api-key": "sk-test", "model": "m", "max-retries": 0,
        })
    };
    let thinks = json!({"enable-reasoning": true});
    let tool = |name: &str, argument: &str| {
        json!({"http": {
            "name": name, "description": format!("Does {name}."), "method": "POST",
            "url": format!("{}/{name}", tools.url()),
            "parameters": {
                "type": "object", "properties": {argument: {"type": "string"}},
                "required": [argument],
            },
        }})
    };
    let (wipe, look) = (tool("wipe", "disk"), tool("look", "at"));
    let asks = json!({"ask": ["wipe"]});
    let label = json!({"external": {
        "name": "label", "description": "Prints a label.",
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}}},
    }});
    let (asking, stating) = (json!({"builtin": "ask_user"}), json!({"builtin": "update_state"}));
    json!({"agentscope": {
        "agui": {"server-side-memory": kind.remembers},
        "models": {
            "mock": model(Dialect::OpenAi),
            "claude": model(Dialect::Anthropic),
            "gemini": model(Dialect::Gemini),
        },
        "agents": {
            "looker": agent("looker", json!({"tools": [look]})),
            "wiper": agent("wiper", json!({"tools": [wipe, look, asking], "permission": asks})),
            "orderly": agent("orderly", json!({
                "tools": [wipe, look], "permission": asks, "parallel-tool-calls": false,
            })),
            "printer": agent("printer", json!({"tools": [label]})),
            "careful": agent("careful", json!({
                "tools": [label], "permission": {"ask": ["external:label"]},
            })),
            "waiter": agent("waiter", json!({"agui": {"frontend-tool-outcome": "interrupt"}})),
            "helper": agent("helper", json!({"tools": [
                asking, stating, {"builtin": "update_plan"}, {"builtin": "calculate"}, look,
            ]})),
            "hasty": agent("hasty", json!({"tools": [look, wipe], "max-iters": 2, "permission": asks})),
            "thinker": agent("thinker", json!({
                "tools": [look], "agui": thinks,
            })),
            "signer": agent("signer", json!({
                "model": "claude", "tools": [wipe], "permission": asks, "agui": thinks,
            })),
            "secretive": agent("secretive", json!({
                "model": "claude", "tools": [wipe], "permission": asks,
            })),
            "sealer": agent("sealer", json!({
                "model": "gemini", "tools": [wipe], "permission": asks, "agui": thinks,
            })),
            "boss": agent("boss", json!({"subagents": ["worker"]})),
            "worker": agent("worker", json!({
                "name": "Worker", "description": "Works.", "permission": asks,
                "tools": [wipe, look, asking, stating],
            })),
        },
    }})
}
