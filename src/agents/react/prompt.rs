//! The instructions of a model call: the configured ones, what the application tells, the state.

use std::fmt::Write as _;

use serde_json::Value;

use crate::agents::AgentRequest;

/// `sys-prompt`, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Prompt(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    ThreadId,
    RunId,
    Context(String),
}

impl Prompt {
    /// Reads placeholders: `{{threadId}}`, `{{runId}}`, `{{context.<key>}}`.
    ///
    /// # Errors
    ///
    /// The names in double braces that are no placeholders.
    pub(super) fn parse(text: &str) -> Result<Self, Vec<String>> {
        let mut parts = Vec::new();
        let mut unknown = Vec::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once("{{") {
            let named = behind.split_once("}}").filter(|(name, _)| is_name(name));
            let Some((name, behind)) = named else {
                push_text(&mut parts, before);
                push_text(&mut parts, "{{");
                rest = behind;
                continue;
            };
            push_text(&mut parts, before);
            match (name, name.strip_prefix("context.")) {
                ("threadId", _) => parts.push(Part::ThreadId),
                ("runId", _) => parts.push(Part::RunId),
                (_, Some(key)) if !key.is_empty() => parts.push(Part::Context(key.to_owned())),
                _ => unknown.push(name.to_owned()),
            }
            rest = behind;
        }
        push_text(&mut parts, rest);
        if unknown.is_empty() { Ok(Self(parts)) } else { Err(unknown) }
    }

    /// The instructions for a run, without the state: that changes while the run goes on.
    pub(super) fn fill(&self, request: &AgentRequest) -> String {
        let mut system = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => system.push_str(text),
                Part::ThreadId => system.push_str(request.thread_id.as_str()),
                Part::RunId => system.push_str(request.run_id.as_str()),
                Part::Context(key) => match request.context.resolved().get(key) {
                    Some(Value::String(text)) => system.push_str(text),
                    Some(value) => system.push_str(&value.to_string()),
                    None => {}
                },
            }
        }
        let context = &request.input.context;
        if !context.is_empty() {
            begin_section(&mut system, "Context from the application:");
            for entry in context {
                write_line(&mut system, format_args!("- {}: {}", entry.description, entry.value));
            }
        }
        system
    }
}

/// The instructions with the state behind them.
pub(super) fn with_state(system: &str, state: &Value) -> String {
    let mut system = system.to_owned();
    begin_section(&mut system, "Shared state:");
    write_line(&mut system, format_args!("{state}"));
    system
}

fn begin_section(system: &mut String, title: &str) {
    if !system.is_empty() {
        system.push_str("\n\n");
    }
    system.push_str(title);
}

fn write_line(system: &mut String, line: std::fmt::Arguments<'_>) {
    system.push('\n');
    // Writing to a string does not fail.
    let _written = system.write_fmt(line);
}

fn push_text(parts: &mut Vec<Part>, text: &str) {
    match parts.last_mut() {
        _ if text.is_empty() => {}
        Some(Part::Text(last)) => last.push_str(text),
        _ => parts.push(Part::Text(text.to_owned())),
    }
}

/// What could be a placeholder; other text in double braces is text.
fn is_name(name: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    !name.is_empty() && name.chars().all(legal)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::agents::react::tests::request;

    fn filled(prompt: &str) -> String {
        let mut request = request();
        let values = json!({"tenant": "acme", "level": 3, "my-key": true});
        let values: serde_json::Map<String, Value> = serde_json::from_value(values).unwrap();
        request.context = std::sync::Arc::new(values.into());
        Prompt::parse(prompt).unwrap().fill(&request)
    }

    #[test]
    fn placeholders_are_the_runs_values() {
        assert_eq!(filled("Thread {{threadId}}, run {{runId}}."), "Thread t1, run r1.");
        assert_eq!(
            filled("{{context.tenant}}/{{context.level}}/{{context.my-key}}/{{context.none}}"),
            "acme/3/true/"
        );
        assert_eq!(
            filled(r#"{{"a": {}}}, {{ and }}, {{ runId }}"#),
            r#"{{"a": {}}}, {{ and }}, {{ runId }}"#
        );
    }

    #[test]
    fn other_names_are_faults() {
        assert_eq!(
            Prompt::parse("{{thread}} {{context.}} {{threadId}}"),
            Err(vec!["thread".to_owned(), "context.".to_owned()])
        );
    }

    #[test]
    fn the_applications_context_and_the_state_stand_at_the_end() {
        let mut request = request();
        let input = json!({"threadId": "t1", "runId": "r1", "messages": [], "context": [
            {"description": "Page", "value": "cart"}, {"description": "User", "value": "Ann"},
        ]});
        request.input = std::sync::Arc::new(serde_json::from_value(input).unwrap());
        let system = Prompt::parse("Help.").unwrap().fill(&request);
        assert_eq!(system, "Help.\n\nContext from the application:\n- Page: cart\n- User: Ann");
        let system = with_state(&system, &json!({"a": 1}));
        assert_eq!(
            system,
            "Help.\n\nContext from the application:\n- Page: cart\n- User: Ann\n\nShared \
             state:\n{\"a\":1}"
        );
        assert_eq!(with_state("", &json!({})), "Shared state:\n{}");
    }
}
