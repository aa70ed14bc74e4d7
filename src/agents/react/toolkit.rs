//! What the model of one run may call: the agent's own tools, and the client's.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{Arc, OnceLock},
};

use agui_adapter::{model::event::Object, options::ToolMergeMode};
use agui_protocol::input::Tool as FrontendTool;
use serde_json::{Value, json};

use super::subagent;
use crate::{
    config::react::{Builtin, Declared},
    llm::FunctionSpec,
    tools::{
        Tool,
        schema::{self, Arguments},
    },
};

/// Name of the source of built-in tools.
pub const BUILTIN_SOURCE: &str = "builtin";
/// Name of the source of HTTP tools.
pub const HTTP_SOURCE: &str = "http";
/// Name of the source of external tools.
pub const EXTERNAL_SOURCE: &str = "external";
/// Name of the source of sub-agents.
pub const SUBAGENT_SOURCE: &str = "subagent";

/// A sub-agent as a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubagentTool {
    /// Id of the agent, and name of the tool.
    pub id: String,
    /// For the model.
    pub description: String,
}

/// Who executes a call.
#[derive(Clone)]
pub enum EntryKind {
    /// This server.
    Server(Arc<dyn Tool>),
    /// Somebody outside, who answers through an interrupt.
    External,
    /// The client whose run it is.
    Frontend,
    /// The agent of this id.
    Subagent(String),
}

impl fmt::Debug for EntryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(_) => f.write_str("Server"),
            Self::External => f.write_str("External"),
            Self::Frontend => f.write_str("Frontend"),
            Self::Subagent(id) => f.debug_tuple("Subagent").field(id).finish(),
        }
    }
}

/// One tool.
#[derive(Debug)]
pub struct Entry {
    /// The name under which the model and the client know it.
    pub name: String,
    /// The name under which its source knows it.
    pub bare: String,
    /// Where it comes from; `None` = the client.
    pub source: Option<Arc<str>>,
    /// Who executes it.
    pub kind: EntryKind,
    /// It changes nothing.
    pub read_only: bool,
    /// It may destroy something.
    pub destructive: bool,
    description: String,
    parameters: Arc<Value>,
    /// Compiled by the first call; `None` = the schema cannot be used.
    arguments: OnceLock<Option<Arguments>>,
}

impl Entry {
    /// Reads the argument text of a call and holds it against the schema.
    ///
    /// # Errors
    ///
    /// For the model: what is wrong, and where.
    pub fn arguments(&self, text: &str) -> Result<Object, String> {
        match self.compiled() {
            Some(arguments) => arguments.parse(text),
            None => schema::object(text),
        }
    }

    /// Holds arguments that a person edited against the schema.
    ///
    /// # Errors
    ///
    /// What is wrong, and where, without what was typed.
    pub fn check(&self, arguments: &Object) -> Result<(), String> {
        self.compiled().map_or(Ok(()), |compiled| compiled.check(arguments))
    }

    /// Its full name: `source:tool`.
    pub fn qualified(&self) -> Option<String> {
        self.source.as_ref().map(|source| format!("{source}:{}", self.bare))
    }

    /// Whether it changes the thread's state, and how depends on what the state is.
    pub fn changes_state(&self) -> bool {
        let changes = [Builtin::UpdateState, Builtin::UpdatePlan];
        self.source.as_deref() == Some(BUILTIN_SOURCE)
            && changes.iter().any(|builtin| builtin.name() == self.bare)
    }

    fn compiled(&self) -> Option<&Arguments> {
        self.arguments.get_or_init(|| self.compile()).as_ref()
    }

    fn compile(&self) -> Option<Arguments> {
        // Definitions that use each other can make a check take for ever, and a client may send
        // any; it is the one that runs the call, and the one to check it.
        if matches!(self.kind, EntryKind::Frontend) && refers(&self.parameters) {
            return None;
        }
        let compiled = Arguments::compile(&self.parameters);
        if compiled.is_err() {
            let source = self.source.as_deref().unwrap_or("the input");
            // The name of a client's tool is the client's text.
            let tool = self.source.as_ref().map(|_| self.bare.as_str());
            tracing::warn!(
                source,
                tool,
                "a tool's schema cannot be used; its arguments are not checked"
            );
        }
        compiled.ok()
    }

    fn spec(&self) -> FunctionSpec {
        FunctionSpec {
            name: self.name.clone(),
            description: self.description.clone(),
            parameters: Arc::clone(&self.parameters),
        }
    }

    fn own(source: &Arc<str>, tool: &Arc<dyn Tool>) -> Self {
        let spec = tool.spec();
        Self {
            read_only: spec.read_only,
            // A tool that changes nothing destroys nothing, whatever it says.
            destructive: spec.destructive && !spec.read_only,
            ..Self::new(
                &spec.name,
                &spec.description,
                Arc::clone(&spec.parameters),
                Some(Arc::clone(source)),
                EntryKind::Server(Arc::clone(tool)),
            )
        }
    }

    fn external(declared: &Declared) -> Self {
        let Declared { name, description, parameters } = declared;
        let source = Some(EXTERNAL_SOURCE.into());
        Self::new(name, description, Arc::clone(parameters), source, EntryKind::External)
    }

    fn subagent(subagent: &SubagentTool) -> Self {
        let SubagentTool { id, description } = subagent;
        let kind = EntryKind::Subagent(id.clone());
        let parameters = Arc::new(subagent::parameters());
        Self::new(id, description, parameters, Some(SUBAGENT_SOURCE.into()), kind)
    }

    fn frontend(tool: &FrontendTool) -> Self {
        let parameters = tool.parameters.clone().unwrap_or_default();
        Self::new(&tool.name, &tool.description, Arc::new(parameters), None, EntryKind::Frontend)
    }

    fn new(
        name: &str,
        description: &str,
        parameters: Arc<Value>,
        source: Option<Arc<str>>,
        kind: EntryKind,
    ) -> Self {
        Self {
            name: name.to_owned(),
            bare: name.to_owned(),
            source,
            kind,
            read_only: false,
            destructive: false,
            description: description.to_owned(),
            parameters: object_schema(parameters),
            arguments: OnceLock::new(),
        }
    }
}

/// A schema in the form that every provider takes: an object with a type and properties.
fn object_schema(schema: Arc<Value>) -> Arc<Value> {
    let whole = |schema: &Value| schema.get("type").is_some() && schema.get("properties").is_some();
    if whole(&schema) {
        return schema;
    }
    let mut schema = match Arc::unwrap_or_clone(schema) {
        Value::Object(schema) => schema,
        _ => Object::new(),
    };
    schema.entry("type").or_insert_with(|| "object".into());
    schema.entry("properties").or_insert_with(|| json!({}));
    Arc::new(Value::Object(schema))
}

/// Whether a schema refers to others.
fn refers(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(key, value)| {
            matches!(key.as_str(), "$ref" | "$dynamicRef" | "$recursiveRef") || refers(value)
        }),
        Value::Array(items) => items.iter().any(refers),
        _ => false,
    }
}

/// The agent's own tools, made once and shared by its runs.
#[derive(Debug)]
pub struct OwnTools {
    entries: HashMap<String, Entry>,
    specs: Arc<[FunctionSpec]>,
    notices: Vec<String>,
}

impl OwnTools {
    /// Puts them together, in the order in which they are listed: tools with the name of their
    /// source, external tools, sub-agents.
    ///
    /// A name that several sources use becomes `<source>_<name>` for all of them. Of what still
    /// has one name, the first stays.
    pub fn new(
        tools: &[(Arc<str>, Arc<dyn Tool>)],
        external: &[Declared],
        subagents: &[SubagentTool],
    ) -> Self {
        let mut entries: Vec<Entry> =
            tools.iter().map(|(source, tool)| Entry::own(source, tool)).collect();
        entries.extend(external.iter().map(Entry::external));
        entries.extend(subagents.iter().map(Entry::subagent));
        let mut notices = Vec::new();
        tell_apart(&mut entries, &mut notices);
        let mut taken = HashSet::new();
        entries.retain(|entry| {
            let first = taken.insert(entry.name.clone());
            if !first {
                let tool = entry.qualified().unwrap_or_default();
                notices.push(format!(
                    "the tool {tool} is left out: another one is called {}",
                    entry.name
                ));
            }
            first
        });
        let specs = entries.iter().map(Entry::spec).collect();
        let entries = entries.into_iter().map(|entry| (entry.name.clone(), entry)).collect();
        Self { entries, specs, notices }
    }

    /// The tools, in no order.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// What the log should say of their names.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }
}

/// Puts the source in front of names that several sources use, until no two do.
fn tell_apart(entries: &mut [Entry], notices: &mut Vec<String>) {
    loop {
        let shared = shared_names(entries);
        // Each entry is renamed once at most, so this ends.
        let mut unsettled = entries
            .iter_mut()
            .filter(|entry| entry.name == entry.bare && shared.contains(&entry.name))
            .peekable();
        if unsettled.peek().is_none() {
            return;
        }
        for entry in unsettled {
            let source = entry.source.as_deref().unwrap_or_default();
            entry.name = format!("{source}_{}", entry.bare);
            let (bare, name) = (&entry.bare, &entry.name);
            notices.push(format!(
                "several sources have a tool {bare}: that of {source} is called {name}"
            ));
        }
    }
}

fn shared_names(entries: &[Entry]) -> HashSet<String> {
    let mut sources: HashMap<&str, Option<&str>> = HashMap::new();
    let mut shared = HashSet::new();
    for entry in entries {
        let source = entry.source.as_deref();
        if *sources.entry(&entry.name).or_insert(source) != source {
            shared.insert(entry.name.clone());
        }
    }
    shared
}

/// What a run's toolkit is made of.
#[derive(Clone, Copy, Debug)]
pub struct ToolkitParts<'a> {
    /// The agent's own.
    pub own: &'a Arc<OwnTools>,
    /// The input's.
    pub frontend: &'a [FrontendTool],
    /// Which of them count.
    pub mode: ToolMergeMode,
}

/// The tools of one run.
#[derive(Debug)]
pub struct Toolkit {
    own: Option<Arc<OwnTools>>,
    frontend: HashMap<String, Entry>,
    specs: Arc<[FunctionSpec]>,
}

impl Toolkit {
    /// Puts them together. A tool of the input hides the agent's own of that name; one without a
    /// name, or with that of one before it, is left out.
    pub fn build(parts: ToolkitParts<'_>) -> Self {
        let own = (parts.mode != ToolMergeMode::FrontendOnly).then(|| Arc::clone(parts.own));
        let offered = match parts.mode {
            ToolMergeMode::AgentOnly => &[],
            _ => parts.frontend,
        };
        let own_specs = own.as_ref().map(|own| Arc::clone(&own.specs)).unwrap_or_default();
        if offered.is_empty() {
            return Self { own, frontend: HashMap::new(), specs: own_specs };
        }
        let mut frontend: HashMap<String, Entry> = HashMap::new();
        let mut frontend_specs = Vec::new();
        for tool in offered {
            if !tool.name.trim().is_empty() && !frontend.contains_key(&tool.name) {
                let entry = Entry::frontend(tool);
                frontend_specs.push(entry.spec());
                frontend.insert(tool.name.clone(), entry);
            }
        }
        let left_out = offered.len() - frontend.len();
        if left_out > 0 {
            tracing::warn!(left_out, "tools of the input without a name of their own are left out");
        }
        let visible = own_specs.iter().filter(|spec| !frontend.contains_key(&spec.name)).cloned();
        let specs = visible.chain(frontend_specs).collect();
        Self { own, frontend, specs }
    }

    /// What the model is told: the agent's own tools first, in a steady order.
    pub fn specs(&self) -> Arc<[FunctionSpec]> {
        Arc::clone(&self.specs)
    }

    /// The tool of that name.
    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.frontend.get(name).or_else(|| self.own.as_ref()?.entries.get(name))
    }
}

#[cfg(test)]
mod tests;
