//! Placeholders inside the strings of a script: parsed at start-up, filled in while playing.
//!
//! Substitution happens on the strings of the parsed JSON, never on its text, so that a value with
//! quotes in it stays one string. Object keys are left alone.

use std::{collections::HashSet, fmt, fmt::Write as _, sync::Arc};

use agui_adapter::resume::{Decision, Verdict};
use agui_protocol::{RunId, ThreadId};
use serde_json::Value;

use super::matching::last_user_text;
use crate::agents::{AgentRequest, RuntimeContext};

/// What stands between `${` and `}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Placeholder {
    ThreadId,
    RunId,
    LastUserText,
    /// Index of the innermost repetition, from 0.
    N,
    /// Payload of the answer to this call or question, as JSON.
    Resume(String),
    /// Arguments of this call, if it was approved.
    Args(String),
    /// A key of the runtime context.
    Context(String),
    /// A JSON pointer into the thread's state.
    State(String),
    /// A JSON pointer into what the agent parked.
    Parked(String),
    /// A JSON pointer into what the agent kept.
    Kept(String),
}

const KNOWN: &str = "${threadId}, ${runId}, ${lastUserText}, ${n}, ${resume.<id>}, \
                     ${args.<toolCallId>}, ${context.<key>}, ${state.<pointer>}, \
                     ${parked.<pointer>}, ${kept.<pointer>}";

impl Placeholder {
    fn parse(name: &str) -> Result<Self, String> {
        let unknown = || Err(format!("unknown placeholder `${{{name}}}`; known: {KNOWN}"));
        match name {
            "threadId" => return Ok(Self::ThreadId),
            "runId" => return Ok(Self::RunId),
            "lastUserText" => return Ok(Self::LastUserText),
            "n" => return Ok(Self::N),
            _ => {}
        }
        let Some((kind, key)) = name.split_once('.') else { return unknown() };
        match kind {
            "resume" | "args" | "context" if key.is_empty() => {
                Err(format!("placeholder `${{{name}}}` names nothing after the dot"))
            }
            "resume" => Ok(Self::Resume(key.to_owned())),
            "args" => Ok(Self::Args(key.to_owned())),
            "context" => Ok(Self::Context(key.to_owned())),
            "state" | "parked" | "kept" if !key.is_empty() && !key.starts_with('/') => {
                Err(format!(
                    "placeholder `${{{name}}}`: a JSON pointer begins with `/`, as in `${{{kind}./{key}}}`"
                ))
            }
            "state" => Ok(Self::State(key.to_owned())),
            "parked" => Ok(Self::Parked(key.to_owned())),
            "kept" => Ok(Self::Kept(key.to_owned())),
            _ => unknown(),
        }
    }
}

impl fmt::Display for Placeholder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ThreadId => f.write_str("${threadId}"),
            Self::RunId => f.write_str("${runId}"),
            Self::LastUserText => f.write_str("${lastUserText}"),
            Self::N => f.write_str("${n}"),
            Self::Resume(key) => write!(f, "${{resume.{key}}}"),
            Self::Args(key) => write!(f, "${{args.{key}}}"),
            Self::Context(key) => write!(f, "${{context.{key}}}"),
            Self::State(key) => write!(f, "${{state.{key}}}"),
            Self::Parked(key) => write!(f, "${{parked.{key}}}"),
            Self::Kept(key) => write!(f, "${{kept.{key}}}"),
        }
    }
}

/// A string, cut at its placeholders.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Text(Vec<Piece>);

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Literal(String),
    Hole(Placeholder),
}

impl Text {
    /// Cuts `text`; `$${` stands for a literal `${`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            if let Some(escaped) = before.strip_suffix('$') {
                literal.push_str(escaped);
                literal.push_str("${");
                rest = after;
                continue;
            }
            literal.push_str(before);
            let Some((name, behind)) = after.split_once('}') else {
                return Err("`${` without `}`; a literal `${` is written `$${`".to_owned());
            };
            if !literal.is_empty() {
                pieces.push(Piece::Literal(std::mem::take(&mut literal)));
            }
            pieces.push(Piece::Hole(Placeholder::parse(name)?));
            rest = behind;
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        Ok(Self(pieces))
    }

    /// The text, if it has no placeholder.
    pub(super) fn fixed(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [Piece::Literal(text)] => Some(text),
            _ => None,
        }
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| match piece {
            Piece::Literal(literal) => f.write_str(literal),
            Piece::Hole(placeholder) => placeholder.fmt(f),
        })
    }
}

/// A JSON value whose strings may have placeholders; the parts without any are kept whole.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Template {
    Fixed(Value),
    Text(Text),
    List(Vec<Template>),
    Map(Vec<(String, Template)>),
}

impl Template {
    pub(super) fn parse(value: Value) -> Result<Self, String> {
        match value {
            Value::String(text) if text.contains("${") => {
                let text = Text::parse(&text)?;
                let fixed = text.fixed().map(|text| Self::Fixed(text.into()));
                Ok(fixed.unwrap_or(Self::Text(text)))
            }
            Value::Array(items) => {
                let items: Vec<Self> =
                    items.into_iter().map(Self::parse).collect::<Result<_, _>>()?;
                Ok(Self::list(items))
            }
            Value::Object(members) => {
                let members: Vec<(String, Self)> = members
                    .into_iter()
                    .map(|(key, value)| Ok((key, Self::parse(value)?)))
                    .collect::<Result<_, String>>()?;
                Ok(Self::map(members))
            }
            other => Ok(Self::Fixed(other)),
        }
    }

    /// How many strings have placeholders.
    pub(super) fn holes(&self) -> usize {
        match self {
            Self::Fixed(_) => 0,
            Self::Text(_) => 1,
            Self::List(items) => items.iter().map(Self::holes).sum(),
            Self::Map(members) => members.iter().map(|(_, member)| member.holes()).sum(),
        }
    }

    /// The value as it was written, placeholders and all.
    pub(super) fn sample(&self) -> Value {
        match self {
            Self::Fixed(value) => value.clone(),
            Self::Text(text) => text.to_string().into(),
            Self::List(items) => items.iter().map(Self::sample).collect(),
            Self::Map(members) => Value::Object(
                members.iter().map(|(key, member)| (key.clone(), member.sample())).collect(),
            ),
        }
    }

    fn list(items: Vec<Self>) -> Self {
        if items.iter().any(|item| item.holes() > 0) {
            return Self::List(items);
        }
        Self::Fixed(items.into_iter().filter_map(Self::into_fixed).collect())
    }

    fn map(members: Vec<(String, Self)>) -> Self {
        if members.iter().any(|(_, member)| member.holes() > 0) {
            return Self::Map(members);
        }
        let fixed =
            members.into_iter().filter_map(|(key, member)| Some((key, member.into_fixed()?)));
        Self::Fixed(Value::Object(fixed.collect()))
    }

    fn into_fixed(self) -> Option<Value> {
        match self {
            Self::Fixed(value) => Some(value),
            _ => None,
        }
    }
}

/// What the placeholders of one run stand for.
pub(super) struct Values {
    thread_id: ThreadId,
    run_id: RunId,
    last_user_text: Option<String>,
    decisions: Vec<Decision>,
    context: Arc<RuntimeContext>,
    /// The thread's state, as the script has changed it so far.
    pub(super) state: Arc<Value>,
    /// Index of the innermost repetition.
    pub(super) n: Option<u64>,
    parked: Option<Arc<Value>>,
    kept: Option<Arc<Value>>,
    reported: HashSet<Placeholder>,
}

impl Values {
    pub(super) fn new(request: AgentRequest) -> Self {
        Self {
            last_user_text: last_user_text(&request.messages),
            thread_id: request.thread_id,
            run_id: request.run_id,
            decisions: request.decisions,
            context: request.context,
            state: request.state,
            parked: request.parked,
            kept: request.kept,
            n: None,
            reported: HashSet::new(),
        }
    }

    /// The text with every placeholder filled in.
    pub(super) fn text(&mut self, text: &Text) -> String {
        let mut out = String::new();
        for piece in &text.0 {
            match piece {
                Piece::Literal(literal) => out.push_str(literal),
                Piece::Hole(placeholder) => {
                    if self.write(placeholder, &mut out).is_none() {
                        self.report(placeholder);
                    }
                }
            }
        }
        out
    }

    /// The value with every placeholder filled in.
    pub(super) fn value(&mut self, template: &Template) -> Value {
        match template {
            Template::Fixed(value) => value.clone(),
            Template::Text(text) => self.text(text).into(),
            Template::List(items) => items.iter().map(|item| self.value(item)).collect(),
            Template::Map(members) => Value::Object(
                members.iter().map(|(key, member)| (key.clone(), self.value(member))).collect(),
            ),
        }
    }

    /// Appends what `placeholder` stands for; `None` = it has no value.
    fn write(&self, placeholder: &Placeholder, out: &mut String) -> Option<()> {
        match placeholder {
            Placeholder::ThreadId => out.push_str(self.thread_id.as_str()),
            Placeholder::RunId => out.push_str(self.run_id.as_str()),
            Placeholder::LastUserText => out.push_str(self.last_user_text.as_deref()?),
            Placeholder::N => push(out, self.n?),
            Placeholder::Resume(id) => {
                push(out, self.decision(id)?.payload.as_ref()?);
            }
            Placeholder::Args(id) => match &self.decision(id)?.verdict {
                Verdict::Approved { call, .. } if call.arguments.is_empty() => {
                    push(out, Value::Object(call.input.clone()?));
                }
                Verdict::Approved { call, .. } => out.push_str(&call.arguments),
                _ => return None,
            },
            Placeholder::Context(key) => push_plain(out, &*self.context.get(key)?),
            Placeholder::State(pointer) => push_plain(out, self.state.pointer(pointer)?),
            Placeholder::Parked(pointer) => {
                push_plain(out, self.parked.as_ref()?.pointer(pointer)?);
            }
            Placeholder::Kept(pointer) => push_plain(out, self.kept.as_ref()?.pointer(pointer)?),
        }
        Some(())
    }

    fn decision(&self, id: &str) -> Option<&Decision> {
        self.decisions.iter().find(|decision| {
            let open = &decision.open;
            let call = open.call.as_ref();
            open.question.as_deref() == Some(id)
                || call.is_some_and(|call| call.id == id || call.wire_id == id)
        })
    }

    fn report(&mut self, placeholder: &Placeholder) {
        if self.reported.insert(placeholder.clone()) {
            tracing::warn!(
                run.id = self.run_id.as_str(),
                %placeholder,
                "a placeholder of the script has no value, the empty string takes its place"
            );
        }
    }
}

/// A string as it is, anything else as JSON.
fn push_plain(out: &mut String, value: &Value) {
    match value {
        Value::String(text) => out.push_str(text),
        other => push(out, other),
    }
}

fn push(out: &mut String, value: impl fmt::Display) {
    // Writing to a String cannot fail.
    write!(out, "{value}").ok();
}
