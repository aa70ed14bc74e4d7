//! A script: its lines, compiled once at start-up, and the order in which they are played.
//!
//! Everything that can be wrong with a line is found here, with the file and the line number.

use std::{path::Path, time::Duration};

use agui_adapter::model::{AgentEvent, AgentEventKind, wire::DecodeOptions};
use serde_json::Value;

use super::placeholder::{Template, Text, Values};
use crate::{
    agents::{
        directive::{Directive, decode},
        registry::BuildError,
    },
    config::Turn,
};

/// A compiled script.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Script {
    steps: Vec<Step>,
}

/// A compiled line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Step {
    /// Line number, for the log.
    pub(super) line: usize,
    pub(super) action: Action,
}

/// What a line does.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Action {
    Emit(Source),
    Sleep(Duration),
    Fail(Text),
    Panic,
    End,
    Hang,
    Repeat { times: u64, step: Box<Step> },
}

/// Where the event of a line comes from.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Source {
    /// Decoded at start-up.
    Fixed(Box<AgentEvent>),
    /// A delta whose placeholders all stand in its own strings: filled in without decoding.
    Delta { event: Box<AgentEvent>, texts: Vec<(usize, Text)> },
    /// Decoded each time, after the placeholders are filled in.
    Line(Template, DecodeOptions),
}

impl Script {
    /// Compiles the lines of a turn; reports every bad one under the key path `path`.
    pub(super) fn compile(
        turn: &Turn,
        path: &str,
        options: DecodeOptions,
    ) -> Result<Self, Vec<BuildError>> {
        let mut steps = Vec::with_capacity(turn.lines.len());
        let mut errors = Vec::new();
        for (line, text) in &turn.lines {
            match compile_text(*line, text, options) {
                Ok(step) => steps.push(step),
                Err(message) => errors.push(fault(path, &turn.origin, *line, message)),
            }
        }
        if errors.is_empty() { Ok(Self { steps }) } else { Err(errors) }
    }

    /// The lines in the order in which they are played, repetitions unrolled.
    pub(super) fn play(&self) -> Cursor<'_> {
        Cursor { steps: self.steps.iter(), loops: Vec::new() }
    }

    /// The events that the script can send, each line once, placeholders not filled in.
    pub(super) fn events(&self) -> impl Iterator<Item = AgentEvent> {
        self.steps.iter().filter_map(|step| step.innermost().sample())
    }
}

impl Step {
    fn innermost(&self) -> &Self {
        match &self.action {
            Action::Repeat { step, .. } => step.innermost(),
            _ => self,
        }
    }

    fn sample(&self) -> Option<AgentEvent> {
        match &self.action {
            Action::Emit(Source::Fixed(event) | Source::Delta { event, .. }) => {
                Some((**event).clone())
            }
            Action::Emit(Source::Line(template, options)) => {
                decode(template.sample(), *options).ok()
            }
            _ => None,
        }
    }
}

impl Source {
    /// The event, its placeholders filled in.
    pub(super) fn event(&self, values: &mut Values) -> Result<AgentEvent, String> {
        match self {
            Self::Fixed(event) => Ok((**event).clone()),
            Self::Delta { event, texts } => {
                let mut event = (**event).clone();
                if let Some(mut fields) = delta_fields(&mut event.kind) {
                    for (index, text) in texts {
                        if let Some(Some(field)) = fields.get_mut(*index) {
                            **field = values.text(text);
                        }
                    }
                }
                Ok(event)
            }
            Self::Line(template, options) => decode(values.value(template), *options),
        }
    }
}

/// Walks a script; yields each step with the index of the innermost repetition.
pub(super) struct Cursor<'a> {
    steps: std::slice::Iter<'a, Step>,
    loops: Vec<Loop<'a>>,
}

struct Loop<'a> {
    step: &'a Step,
    times: u64,
    n: u64,
}

impl<'a> Iterator for Cursor<'a> {
    type Item = (&'a Step, Option<u64>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (step, n) = match self.loops.last_mut() {
                Some(top) if top.n == top.times => {
                    self.loops.pop();
                    continue;
                }
                Some(top) => {
                    let n = top.n;
                    top.n += 1;
                    (top.step, Some(n))
                }
                None => (self.steps.next()?, None),
            };
            match &step.action {
                Action::Repeat { times, step } => {
                    self.loops.push(Loop { step, times: *times, n: 0 });
                }
                _ => return Some((step, n)),
            }
        }
    }
}

fn fault(path: &str, origin: &Path, line: usize, message: String) -> BuildError {
    BuildError::at(path, message).in_file(origin, line)
}

fn compile_text(line: usize, text: &str, options: DecodeOptions) -> Result<Step, String> {
    let value = serde_json::from_str(text).map_err(|error| not_json(&error))?;
    compile_value(line, value, options)
}

fn not_json(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    format!("not JSON, column {}: {what}", error.column())
}

fn compile_value(line: usize, value: Value, options: DecodeOptions) -> Result<Step, String> {
    let is_directive = match &value {
        Value::Object(members) if members.contains_key("@") => true,
        Value::Object(members) if members.contains_key("type") => false,
        Value::Object(_) => {
            return Err("neither an agent event (`type`) nor a directive (`@`)".to_owned());
        }
        _ => return Err("a line of a script is a JSON object".to_owned()),
    };
    let action = if is_directive {
        compile_directive(line, value, options)?
    } else {
        Action::Emit(compile_event(value, options)?)
    };
    Ok(Step { line, action })
}

fn compile_directive(line: usize, value: Value, options: DecodeOptions) -> Result<Action, String> {
    match Directive::parse(value.clone())? {
        Directive::Sleep { ms } => Ok(Action::Sleep(Duration::from_millis(ms))),
        Directive::Fail { message } => Text::parse(&message).map(Action::Fail),
        Directive::Panic {} => Ok(Action::Panic),
        Directive::End {} => Ok(Action::End),
        Directive::Hang {} => Ok(Action::Hang),
        Directive::Repeat { times, line: nested } => {
            let step = Box::new(compile_value(line, nested, options)?);
            // Nothing many times over is nothing: the cursor must not count it out.
            let empty = matches!(step.action, Action::Repeat { times: 0, .. });
            Ok(Action::Repeat { times: if empty { 0 } else { times }, step })
        }
        Directive::State { .. }
        | Directive::Activity { .. }
        | Directive::Ask { .. }
        | Directive::Park { .. }
        | Directive::Keep { .. } => compile_event(value, options).map(Action::Emit),
    }
}

fn compile_event(value: Value, options: DecodeOptions) -> Result<Source, String> {
    let template = match Template::parse(value.clone())? {
        Template::Fixed(value) => {
            return decode(value, options).map(|event| Source::Fixed(Box::new(event)));
        }
        template => template,
    };
    let event = decode(value, options)?;
    match delta_source(event, template.holes())? {
        Some(source) => Ok(source),
        None => Ok(Source::Line(template, options)),
    }
}

/// The quick form of a delta, if all of the line's placeholders stand in its strings.
fn delta_source(mut event: AgentEvent, holes: usize) -> Result<Option<Source>, String> {
    if event.raw.is_some() {
        return Ok(None);
    }
    let Some(fields) = delta_fields(&mut event.kind) else { return Ok(None) };
    let mut texts = Vec::new();
    for (index, field) in fields.into_iter().enumerate() {
        let Some(field) = field.filter(|field| field.contains("${")) else { continue };
        let text = Text::parse(field)?;
        match text.fixed() {
            Some(fixed) => *field = fixed.to_owned(),
            None => {
                field.clear();
                texts.push((index, text));
            }
        }
    }
    if texts.len() != holes {
        return Ok(None);
    }
    Ok(Some(Source::Delta { event: Box::new(event), texts }))
}

/// The strings of a delta.
fn delta_fields(kind: &mut AgentEventKind) -> Option<[Option<&mut String>; 3]> {
    match kind {
        AgentEventKind::TextBlockDelta { reply, block, delta }
        | AgentEventKind::ThinkingBlockDelta { reply, block, delta } => {
            Some([Some(delta), Some(reply), Some(block)])
        }
        AgentEventKind::ToolCallDelta { call, delta }
        | AgentEventKind::ToolResultTextDelta { call, delta } => {
            Some([Some(delta), Some(call), None])
        }
        _ => None,
    }
}
