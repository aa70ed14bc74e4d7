//! The configuration: what loads, what does not, and what the errors say, to the letter.

use std::{path::PathBuf, time::Duration};

use agentscope_agui::config::{self, CommandConfig, Config, ContextSource, Environment, Source};
use agui_adapter::options::{AdapterOptions, ConverterAction, EnricherSpec, SubagentEvents};

use super::support::config::load as load_with;

fn load(text: &str) -> Config {
    load_with(text, &[]).expect("a valid configuration").config
}

fn errors(text: &str) -> String {
    load_with(text, &[]).expect_err("an invalid configuration")
}

const ONE: &str = "agentscope:\n  agents:\n    default:\n      type: scripted\n      turns:\n        \
                   - events: ['{\"type\":\"AGENT_START\"}']\n";

#[test]
fn an_empty_file_serves_the_demo_agents_with_the_documented_defaults() {
    let config = load("");
    assert_eq!(config.server.host, "127.0.0.1");
    assert_eq!(config.server.port, 8080);
    assert_eq!(config.server.request_body_limit, 16 << 20);
    assert_eq!(config.server.max_concurrent_runs, 10_000);
    assert_eq!(config.server.shutdown_grace, Duration::from_secs(25));
    assert_eq!(config.agui.write_timeout, Some(Duration::from_secs(30)));
    assert_eq!(config.agui.coalesce_window, None);
    assert_eq!(config.agui.path_prefix, "/agui");
    assert_eq!(config.agui.adapter, AdapterOptions::default());
    assert_eq!(config.agents.len(), 20);
}

#[test]
fn times_can_be_turned_off_and_on() {
    let config = load(
        "server: {shutdown-grace: 0}\nagentscope: {agui: {write-timeout: 0, coalesce-window: 20ms}}",
    );
    assert_eq!(config.server.shutdown_grace, Duration::ZERO);
    assert_eq!(config.agui.write_timeout, None);
    assert_eq!(config.agui.coalesce_window, Some(Duration::from_millis(20)));
}

#[test]
fn the_shipped_file_says_the_defaults_of_the_code() {
    let text = include_str!("../../config/agentscope.yaml");
    let name = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/config/agentscope.yaml"));
    let source = Source::Text { name, text: text.to_owned() };
    let shipped = config::load(source, &Environment::default()).expect("valid").config;
    let mut default = load("");
    default.agui.default_agent_id = Some("default".to_owned());
    for agent in default.agents.values_mut() {
        let config::AgentKind::Scripted(scripted) = &mut agent.kind else { panic!("{agent:?}") };
        for turn in &mut scripted.turns {
            let file = turn.origin.clone();
            turn.origin = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("config").join(file);
        }
    }
    assert_eq!(format!("{shipped:#?}"), format!("{default:#?}"));
}

#[test]
fn the_block_of_the_spring_starter_loads_unchanged() {
    let config = load(
        "agentscope:\n  agui:\n    path-prefix: /agui\n    cors-enabled: true\n    run-timeout: 10m\n    \
         default-agent-id: default\n    enable-path-routing: true\n    agent-id-header: X-Agent-Id\n    \
         emit-state-events: true\n    emit-tool-call-args: true\n    emit-token-usage: false\n    \
         enable-reasoning: false\n    emit-run-finished-after-error: false\n    \
         server-side-memory: false\n",
    );
    assert_eq!(config.agui.default_agent_id.as_deref(), Some("default"));
    assert_eq!(config.agui.adapter, AdapterOptions::default());
}

#[test]
fn every_fault_of_a_file_is_told_at_once_with_its_place() {
    let text = "server:\n  prot: 8080\n  port: 99999\nagentscope:\n  agui:\n    pathPrefix: /x\n    \
                run-timeout: soon\n    subagent-events: attribted\n";
    assert_eq!(
        errors(text),
        "test.yaml:2:3: server.prot: unknown key; did you mean `port`? Valid keys: host, port, \
         request-body-limit, max-concurrent-runs, shutdown-grace, auth\n  2 |   prot: 8080\n    |   ^\n\
         test.yaml:3:9: server.port: expected a whole number from 0 to 65535, found `99999`\n  3 |   port: 99999\n    |         ^\n\
         test.yaml:6:5: agentscope.agui.pathPrefix: unknown key; keys are written in kebab-case: \
         `path-prefix`\n  6 |     pathPrefix: /x\n    |     ^\n\
         test.yaml:7:18: agentscope.agui.run-timeout: expected a duration such as `10m`, `PT10M` \
         or milliseconds, at most ten years, found `soon`\n  7 |     run-timeout: soon\n    |                  ^\n\
         test.yaml:8:22: agentscope.agui.subagent-events: expected one of auto, attributed, \
         custom, native, found `attribted`; did you mean `attributed`?\n  8 |     \
         subagent-events: attribted\n    |                      ^"
    );
}

#[test]
fn an_unknown_key_inside_an_agent_points_at_its_own_line() {
    let text = format!("{ONE}      modle: qwen\n");
    assert_eq!(
        errors(&text),
        "test.yaml:7:7: agentscope.agents.default.modle: unknown key; valid keys: type, name, \
         description, turns, script, agui\n  7 |       modle: qwen\n    |       ^"
    );
}

#[test]
fn a_type_of_agent_that_is_not_there_names_those_that_are() {
    let text = "agentscope:\n  agents:\n    a:\n      type: reactt\n";
    assert_eq!(
        errors(text),
        "test.yaml:4:13: agentscope.agents.a.type: unknown type `reactt`; did you mean `react`? \
         Valid types: scripted, command, react\n  4 |       \
         type: reactt\n    |             ^"
    );
}

#[test]
fn combinations_that_cannot_work_are_refused() {
    let one = |lines: &str| errors(&format!("agentscope:\n  agui:\n{lines}"));
    assert_eq!(
        one("    cors-allow-credentials: true\n"),
        "test.yaml:3:29: agentscope.agui.cors-allow-credentials: browsers refuse credentials from \
         any origin: name the origins in cors-allowed-origins, or set this to false\n  3 |     \
         cors-allow-credentials: true\n    |                             ^"
    );
    assert_eq!(
        one("    enrichers: [{type: drop, event: RUN_FINISHED}]\n"),
        "test.yaml:3:37: agentscope.agui.enrichers[0].event: `RUN_FINISHED` cannot be dropped: \
         only CUSTOM, RAW and the whole families REASONING, STEP, STATE, ACTIVITY can, since a \
         stream without single boundary events is refused by clients\n  3 |     enrichers: [{type: \
         drop, event: RUN_FINISHED}]\n    |                                     ^"
    );
    assert_eq!(
        one("    interrupt-ttl: 3651d\n"),
        "test.yaml:3:20: agentscope.agui.interrupt-ttl: expected a duration such as `10m`, `PT10M` \
         or milliseconds, at most ten years, found `3651d`\n  3 |     \
         interrupt-ttl: 3651d\n    |                    ^"
    );
}

#[test]
fn placeholders_are_filled_from_the_environment() {
    let text = "server:\n  host: ${BIND:127.0.0.2}\n  port: ${PORT_OF_TEST}\n";
    let config = load_with(text, &[("PORT_OF_TEST", "81")]).expect("valid").config;
    assert_eq!((config.server.host.as_str(), config.server.port), ("127.0.0.2", 81));
    assert_eq!(
        load_with("server:\n  host: ${NOT_THERE}\n", &[]).expect_err("a missing variable"),
        "test.yaml:2:9: server.host: the environment variable NOT_THERE is not set; set it, or give a \
         default: `${NOT_THERE:default}`\n  2 |   host: ${NOT_THERE}\n    |         ^"
    );
}

#[test]
fn every_key_can_be_set_from_the_environment_in_both_spellings() {
    for name in ["AGENTSCOPE_AGUI_PATHPREFIX", "AGENTSCOPE_AGUI_PATH_PREFIX"] {
        let config = load_with("", &[(name, "/chat")]).expect("valid").config;
        assert_eq!(config.agui.path_prefix, "/chat");
    }
    let variables = [
        ("SERVER_PORT", "0"),
        ("AGENTSCOPE_AGUI_CORSALLOWEDORIGINS", "http://a.example,http://b.example"),
        ("AGENTSCOPE_AGUI_ENABLE_REASONING", "true"),
        ("AGENTSCOPE_AGENTS_DEFAULT_NAME", "Anna"),
    ];
    let config = load_with("", &variables).expect("valid").config;
    assert_eq!(config.server.port, 0);
    assert_eq!(config.agui.cors_allowed_origins, ["http://a.example", "http://b.example"]);
    assert!(config.agui.adapter.enable_reasoning);
    assert_eq!(config.agents["default"].name, "Anna");
}

#[test]
fn switches_of_an_agent_lie_over_the_servers() {
    let text = format!(
        "{ONE}      agui: {{enable-reasoning: true, run-timeout: 2s, subagent-events: NATIVE}}\n  \
         agui:\n    emit-token-usage: true\n    runtime-context:\n      tenant: {{header: X-Tenant-Id}}\n      \
         stage: {{value: [1, 2]}}\n    enrichers: [{{type: raw-event}}]\n    \
         converters: [{{custom: a, rename: b}}]\n"
    );
    let config = load(&text);
    let agent = &config.agents["default"];
    assert_eq!(agent.run_timeout, Some(Duration::from_secs(2)));
    let expected = AdapterOptions {
        enable_reasoning: true,
        emit_token_usage: true,
        subagent_events: SubagentEvents::Native,
        enrichers: vec![EnricherSpec::RawEvent],
        converters: vec![agui_adapter::options::ConverterSpec {
            custom: "a".to_owned(),
            action: ConverterAction::Rename("b".to_owned()),
        }],
        ..AdapterOptions::default()
    };
    assert_eq!(agent.adapter, expected);
    let context: Vec<_> = config.agui.runtime_context.into_iter().collect();
    assert_eq!(
        context,
        [
            ("stage".to_owned(), ContextSource::Value(serde_json::json!([1, 2]))),
            ("tenant".to_owned(), ContextSource::Header("X-Tenant-Id".to_owned())),
        ]
    );
}

#[test]
fn a_script_that_is_not_there_is_told_with_its_place() {
    let text = "agentscope:\n  agents:\n    a: {type: scripted, script: nowhere.jsonl}\n";
    assert_eq!(
        errors(text),
        "test.yaml:3:33: agentscope.agents.a.script: the file nowhere.jsonl cannot be read: No such \
         file or directory (os error 2)\n  3 |     a: {type: scripted, script: nowhere.jsonl}\n    |                                 ^"
    );
}

#[test]
fn repeated_keys_are_errors() {
    assert_eq!(
        errors("server:\n  port: 1\n  port: 2\n"),
        "test.yaml:3:3: server.port: the key stands twice; first in line 2\n  3 |   port: 2\n    |   ^"
    );
}

fn command(text: &str) -> CommandConfig {
    match load(text).agents.remove("mine").expect("the agent").kind {
        config::AgentKind::Command(command) => command,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_shipped_file_says_the_defaults_of_programs() {
    let shipped = include_str!("../../config/agentscope.yaml");
    let block = shipped.lines().skip_while(|line| *line != "  #   mine:");
    let block: Vec<_> = block.map_while(|line| line.strip_prefix("  #   ")).collect();
    let block = format!("agentscope:\n  agents:\n    {}\n", block.join("\n    "));
    let short = "agentscope:\n  agents:\n    mine: {type: command, command: python3, cwd: .}\n";
    assert_eq!(command(&block), command(short));
    let expected =
        CommandConfig { command: "python3".into(), cwd: ".".into(), ..CommandConfig::default() };
    assert_eq!(command(&block), expected);
    assert_eq!(
        (expected.line_limit, expected.silence_timeout, expected.kill_grace),
        (16 << 20, Some(Duration::from_secs(300)), Duration::from_secs(5))
    );
}

#[test]
fn a_programs_keys_are_read_and_its_paths_start_at_the_files_folder() {
    let name = PathBuf::from("conf/test.yaml");
    let text = "agentscope:\n  agents:\n    mine:\n      type: command\n      command: bin/agent\n      \
                args: [-v, \"8\"]\n      env: {KEY: a, OTHER: ''}\n      cwd: ../work\n      \
                line-limit: 1KiB\n      silence-timeout: 0\n      kill-grace: 0\n";
    let source = Source::Text { name, text: text.to_owned() };
    let config = config::load(source, &Environment::default()).expect("valid").config;
    let config::AgentKind::Command(command) = &config.agents["mine"].kind else { panic!() };
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let expected = CommandConfig {
        command: "conf/bin/agent".into(),
        args: vec!["-v".to_owned(), "8".to_owned()],
        env: [pair("KEY", "a"), pair("OTHER", "")].into(),
        cwd: "conf/../work".into(),
        line_limit: 1024,
        silence_timeout: None,
        kill_grace: Duration::ZERO,
    };
    assert_eq!(*command, expected);
}

#[test]
fn what_a_program_cannot_be_is_told_with_its_place() {
    let one = |lines: &str| {
        let errors = errors(&format!("agentscope:\n  agents:\n    a: {{type: command{lines}}}\n"));
        errors.lines().next().expect("a line").to_owned()
    };
    assert_eq!(one(""), "test.yaml:3:5: agentscope.agents.a: `command` is missing");
    assert_eq!(
        one(", command: ''"),
        "test.yaml:3:33: agentscope.agents.a.command: expected the name or the path of a program"
    );
    assert_eq!(
        one(", command: a, env: {'A=B': c}"),
        "test.yaml:3:42: agentscope.agents.a.env.\"A=B\": this cannot be the name of an environment \
         variable"
    );
    assert_eq!(
        one(", command: a, script: b"),
        "test.yaml:3:36: agentscope.agents.a.script: unknown key; valid keys: type, name, \
         description, command, args, env, cwd, line-limit, silence-timeout, kill-grace, agui"
    );
}

#[test]
fn a_variable_cannot_give_an_agent_a_key_of_another_type() {
    assert_eq!(
        load_with("", &[("AGENTSCOPE_AGENTS_TEXT_COMMAND", "python3")]).expect_err("refused"),
        "environment variable AGENTSCOPE_AGENTS_TEXT_COMMAND: agentscope.agents.text.command: only \
         agents of type `command` have this key"
    );
    let variables =
        [("AGENTSCOPE_AGENTS_MINE_COMMAND", "./run"), ("AGENTSCOPE_AGENTS_MINE_TYPE", "command")];
    let config = load_with(ONE, &variables).expect("valid").config;
    let config::AgentKind::Command(command) = &config.agents["mine"].kind else { panic!() };
    assert_eq!(command.command, PathBuf::from("./run"));
}
