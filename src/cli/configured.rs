//! The configuration, the agents that it declares and the settings of the log: all that can be
//! wrong before anything is bound, found in one pass. What is done with them is a command's
//! business.

use anyhow::anyhow;

use super::{CONFIG, ConfigArguments, Failure};
use crate::{
    agents::registry::{BuildError, Registry},
    config::{
        self, Config, ConfigError, ConfigErrors, Environment, Loaded, Origin, Source, Survey,
        place::{self, Pos, SourceText, within},
    },
    telemetry::{self, LogFormat},
};

/// Everything that `serve` needs and `check` looks at.
#[derive(Debug)]
pub(super) struct Configured {
    pub(super) logs: Logs,
    pub(super) config: Config,
    pub(super) agents: Registry,
    /// What works and is likely to surprise.
    pub(super) warnings: Vec<String>,
    pub(super) origin: Origin,
}

impl Configured {
    /// Loads what the arguments and the environment of the process name.
    pub(super) fn load(arguments: &ConfigArguments) -> Result<Self, Failure> {
        Self::of(arguments.source(), &Environment::of_process()).map_err(|faults| refused(&faults))
    }

    fn of(source: Source, environment: &Environment) -> Result<Self, ConfigErrors> {
        let logs = Logs::of(environment);
        let Survey { loaded, mut faults } = match (config::survey(source, environment), &logs) {
            (Ok(survey), _) => survey,
            (Err(errors), Ok(_)) => return Err(errors),
            (Err(errors), Err(more)) => {
                return Err(errors.followed_by(ConfigErrors::new(more.clone())));
            }
        };
        let built = Registry::from_config(&loaded.config);
        let mut scripts = Vec::new();
        for error in built.as_ref().err().into_iter().flatten() {
            if !follows_from(error, &faults) {
                match placed(error, &loaded) {
                    Placed::Here(error) => faults.push(error),
                    Placed::Script(error) => scripts.push(error),
                }
            }
        }
        faults.extend(logs.as_ref().err().into_iter().flatten().cloned());
        match (built, logs) {
            (Ok(agents), Ok(logs)) if faults.is_empty() => {
                let Loaded { config, warnings, origin, .. } = loaded;
                Ok(Self { logs, config, agents, warnings, origin })
            }
            _ => Err(ConfigErrors::new(faults).followed_by(ConfigErrors::new(scripts))),
        }
    }
}

/// How the program logs: `LOG_FORMAT` and `RUST_LOG`.
#[derive(Debug)]
pub(super) struct Logs {
    format: LogFormat,
    filter: String,
}

impl Logs {
    fn of(environment: &Environment) -> Result<Self, Vec<ConfigError>> {
        let variable = |name| environment.get(name).unwrap_or_default();
        let (format, filter) = (variable("LOG_FORMAT"), variable("RUST_LOG").to_owned());
        let checked = telemetry::check(&filter);
        let bad_filter =
            checked.map_err(|bad| ConfigError::variable("RUST_LOG", "", bad.to_string()));
        match (LogFormat::parse(format), bad_filter) {
            (Some(format), Ok(())) => Ok(Self { format, filter }),
            (format, filter) => {
                let bad_format = format
                    .is_none()
                    .then(|| ConfigError::variable("LOG_FORMAT", "", "expected pretty or json"));
                Err(bad_format.into_iter().chain(filter.err()).collect())
            }
        }
    }

    /// From here on what happens is told.
    pub(super) fn start(&self) -> Result<(), Failure> {
        telemetry::init(self.format, &self.filter).map_err(|error| Failure::new(CONFIG, error))
    }
}

/// All faults of a configuration, each on lines of its own so that editors find the place.
pub(super) fn refused(faults: &ConfigErrors) -> Failure {
    Failure::new(CONFIG, anyhow!("the configuration is not valid\n{faults}"))
}

/// Whether a fault of an agent is only what an earlier fault leads to: what is wrong in the
/// agent's block is missing when the agent is built, and where agents are missing there is no
/// telling which one could be the default.
fn follows_from(error: &BuildError, faults: &[ConfigError]) -> bool {
    if error.file.is_some() {
        return false;
    }
    let mut paths = faults.iter().map(|fault| fault.path.as_str());
    if within(&error.path, "agentscope.agui") {
        return paths.any(|path| !path.contains('.') || is_member(path, "agentscope"));
    }
    // What cannot be read has no place in the list of tools that a factory counts.
    let (list, _) = error.path.split_once('[').unwrap_or((&error.path, ""));
    let place = if list.ends_with(".tools") { list } else { &error.path };
    // A key that is missing is a fault of its block.
    let block = place.rsplit_once('.').map(|(block, _)| block);
    paths.any(|path| within(path, place) || Some(path) == block)
}

/// Whether `path` is a key of the block `block` itself.
fn is_member(path: &str, block: &str) -> bool {
    let rest = path.strip_prefix(block).and_then(|rest| rest.strip_prefix('.'));
    rest.is_some_and(|key| !key.contains(['.', '[']))
}

/// A fault of an agent where it stands.
enum Placed {
    /// In the configuration.
    Here(ConfigError),
    /// In a file that the configuration names.
    Script(ConfigError),
}

/// The place of a fault: the item of an agent's `events`, the line of its script, else its key.
fn placed(error: &BuildError, loaded: &Loaded) -> Placed {
    let BuildError { path, message, file, line } = error;
    let places = &loaded.places;
    let (file, line) = match (file, line) {
        (Some(file), Some(line)) => (file, *line),
        (Some(file), None) => {
            return Placed::Script(ConfigError::source(file.to_string_lossy(), path, message));
        }
        (None, _) => return Placed::Here(places.error(path, message)),
    };
    let events = file.to_string_lossy();
    let item = place::item(&events, line.saturating_sub(1));
    if places.knows(&item) {
        return Placed::Here(places.error(&item, message));
    }
    let turns = loaded.config.agents.values().flat_map(|agent| agent.turns());
    let lines = turns.filter(|turn| turn.origin == *file).map(|turn| turn.lines.as_slice()).next();
    let text = SourceText::of_lines(&*events, lines.unwrap_or_default());
    let at = Pos { line, column: 1 };
    Placed::Script(ConfigError::at(&text, at, path, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a file of this text and these variables are refused for.
    fn faults(text: &str, variables: &[(&str, &str)]) -> String {
        let source = Source::Text { name: "test.yaml".into(), text: text.to_owned() };
        Configured::of(source, &variables.iter().copied().collect()).unwrap_err().to_string()
    }

    /// The same without the excerpts.
    fn messages(text: &str) -> Vec<String> {
        let faults = faults(text, &[]);
        faults.lines().filter(|line| !line.starts_with("  ")).map(str::to_owned).collect()
    }

    #[test]
    fn faults_of_agents_stand_at_their_place() {
        let text = "agentscope:\n  agui: {default-agent-id: nobody}\n  agents:\n    a.b:\n      \
                    type: scripted\n      turns:\n        - events: ['{}', '{\"@\": \"end\"}', 'x']\n";
        let line = "\n  7 |         - events: ['{}', '{\"@\": \"end\"}', 'x']\n    |";
        assert_eq!(
            faults(text, &[]),
            [
                "test.yaml:2:28: agentscope.agui.default-agent-id: there is no agent `nobody`; \
                 agents: a.b\n  2 |   agui: {default-agent-id: nobody}\n    |                            ^"
                    .to_owned(),
                format!(
                    "test.yaml:7:20: agentscope.agents.\"a.b\".turns[0].events[0]: neither an agent \
                     event (`type`) nor a directive (`@`){line}                    ^"
                ),
                format!(
                    "test.yaml:7:42: agentscope.agents.\"a.b\".turns[0].events[2]: not JSON, column \
                     1: expected value{line}                                          ^"
                ),
            ]
            .join("\n")
        );
        let sound = "agentscope: {agents: {a: {type: scripted, turns: [{events: []}]}}}";
        assert_eq!(
            faults(sound, &[("AGENTSCOPE_AGUI_DEFAULT_AGENT_ID", "nobody")]),
            "environment variable AGENTSCOPE_AGUI_DEFAULT_AGENT_ID: \
             agentscope.agui.default-agent-id: there is no agent `nobody`; agents: a"
        );
    }

    #[test]
    fn scripts_keys_variables_and_the_settings_of_the_log_are_faulted_together() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("bad.jsonl");
        std::fs::write(&script, "# a comment\n{\"@\":\"end\"}\n\nnonsense\n").unwrap();
        let script = script.display();
        let text = format!(
            "server: {{prot: 1}}\nagentscope:\n  agents:\n    a:\n      type: scripted\n      \
             modle: x\n      turns:\n        - {{script: '{script}'}}\n        - events: [1, 'y']\n"
        );
        let variables =
            [("LOG_FORMAT", "xml"), ("AGENTSCOPE_AGUI_RUNTIMEOUTT", "1"), ("RUST_LOG", "a=loud")];
        let all = faults(&text, &variables);
        let heads: Vec<&str> = all
            .lines()
            .filter(|line| !line.starts_with("  "))
            .map(|line| line.split(": ").next().unwrap())
            .collect();
        let end = format!(
            "{script}:4:1: agentscope.agents.a: not JSON, column 2: expected ident\n  \
                           4 | nonsense\n    | ^"
        );
        assert_eq!(
            heads,
            [
                "test.yaml:1:10",
                "test.yaml:6:7",
                "test.yaml:9:20",
                "test.yaml:9:23",
                "environment variable AGENTSCOPE_AGUI_RUNTIMEOUTT",
                "environment variable LOG_FORMAT",
                "environment variable RUST_LOG",
                &format!("{script}:4:1"),
            ]
        );
        assert!(all.ends_with(&end), "{all}");
    }

    #[test]
    fn a_tool_that_cannot_be_read_shifts_no_other() {
        let text = "agentscope:\n  models: {q: {model: m}}\n  agents:\n    a:\n      type: react\n      \
                    model: q\n      tools:\n        - {builtin: calculater}\n        - {http: {name: x, \
                    url: 'http://x/a/..'}}\n";
        assert_eq!(
            messages(text),
            ["test.yaml:8:21: agentscope.agents.a.tools[0].builtin: expected one of \
              get_current_time, calculate, update_state, update_plan, ask_user, found `calculater`; \
              did you mean `calculate`?"]
        );
        let text = text.replace("calculater", "calculate");
        assert_eq!(
            messages(&text),
            [
                "test.yaml:9:18: agentscope.agents.a.tools[1].http: `url` may not have segments of dots"
            ]
        );
    }

    #[test]
    fn one_slip_gives_one_fault() {
        let agents = "a: {type: scripted, turns: [{events: ['{\"@\":\"end\"}']}]}";
        let cases = [
            // No agents are read, so none can be the default.
            format!("agentscope: {{agnets: {{{agents}}}, agui: {{default-agent-id: a}}}}"),
            format!("agentscope: {{agents: [{{{agents}}}], agui: {{default-agent-id: a}}}}"),
            format!("agents: {{{agents}}}\nagentscope: {{agui: {{default-agent-id: a}}}}"),
            // An agent that is wrong is known all the same, and not wrong twice.
            "agentscope: {agents: {a: {type: scriptd}}, agui: {default-agent-id: a}}".to_owned(),
            "agentscope: {agents: {a: {type: scripted}}, agui: {default-agent-id: a}}".to_owned(),
            "agentscope: {agents: {run: {type: scripted, turns: [{events: []}]}}}".to_owned(),
            // What is missing is not there under an empty name either.
            "agentscope: {models: {q: {model: m}}, agents: {a: {type: react}}}".to_owned(),
            "agentscope: {mcp-servers: {s: {}}}".to_owned(),
        ];
        for text in cases {
            let messages = messages(&text);
            assert_eq!(messages.len(), 1, "{messages:#?}");
        }
    }
}
